"""Where the time of the `site` scenario goes: the crawl under py-spy, by part, by function and by line.

    python -m proof.bench.site_profile [--quick] [--runs 3] [--top 15]

Samples of all runs are added up. A sample belongs to the innermost function that is Lycosa's own, so that a C library's
time is that of the line that calls it; samples without one are the event loop or the start. Shares are turned into
microseconds a page by the CPU time of crawls without py-spy, whose pauses cost some. The threads of RocksDB, which
py-spy does not see, take about 1 % and are spread over all parts.
"""

import argparse
import json
import tempfile
from collections import Counter
from pathlib import Path

from proof.bench.ground import environment, say
from proof.bench.measure import load, run, table
from proof.bench.server import nginx_of
from proof.bench.site import QUICK, WHOLE, crawl_command

RATE = 400  # samples a second
OWN = "lycosa/"

# The first that fits the innermost own function decides; then the first that fits any function around it.
INNERMOST = (
    ("libcurl and its callbacks", ("fetch/",)),
    ("parse and analysis", ("web/html", "web/text", "web/html", "web/charset", "web/hazard", "web/encodings")),
    ("parse and analysis", ("web/document", "web/analysers", "web/html", "web/links")),
    (
        "parse and analysis",
        ("web/media", "web/media", "web/links", "web/page", "web/document", "web/feed"),
    ),
    (
        "links: join and sift",
        ("web/url", "web/url", "web/scope", "web/url", "web/scope", "crawl/reading", "frontier/recent"),
    ),
    ("WARC records", ("store/warc_record", "store/warc_record")),
    ("commit", ("store/", "crawl/committer", "store/page_rows", "crawl/stats", "crawl/archive")),
    ("frontier", ("frontier/", "web/robots")),
    ("mapping", ("mapping/",)),
    ("engine", ("engine/",)),
    ("progress and start", ("cli/", "settings/", "records", "errors", "__init__", "__main__")),
)


def part_of(frames: list[str]) -> str:
    """The part a stack belongs to, outermost frame first."""
    if any("importlib" in frame for frame in frames):
        return "progress and start"
    own = next((frame for frame in reversed(frames) if OWN in frame), "")
    if not own or own.endswith("cli/crawl.py"):
        return "event loop"
    path = own[own.index(OWN) + len(OWN) :]
    return next((name for name, starts in INNERMOST if path.startswith(starts)), "event loop")


class Profile:
    """Samples by part, by function (itself and with what it calls) and by line."""

    def __init__(self) -> None:
        self.parts: Counter[str] = Counter()
        self.own: Counter[str] = Counter()
        self.whole: Counter[str] = Counter()
        self.lines: Counter[str] = Counter()
        self.samples = 0

    def add(self, stack: str, count: int) -> None:
        thread, *rest = stack.split(";")
        if "Thread-" in thread:  # c-ares has one that only waits, which py-spy takes for work
            return
        frames = [frame for frame in rest if " (" in frame]
        files = [frame[frame.rindex("(") + 1 :].rpartition(":")[0] for frame in frames]
        self.samples += count
        self.parts[part_of(files)] += count
        own = [frame for frame, file in zip(frames, files, strict=True) if OWN in file]
        names = [_short(frame, with_line=False) for frame in own]
        for name in set(names):
            self.whole[name] += count
        if own:
            self.own[names[-1]] += count
            self.lines[_short(own[-1], with_line=True)] += count


def _short(frame: str, *, with_line: bool) -> str:
    """`settle (…/src/lycosa/engine/outcomes.py:60)` → `crawl/responses.py settle`, or with the line."""
    name, _, place = frame.rpartition(" (")
    file, _, line = place.rstrip(")").rpartition(":")
    file = file[file.rindex(OWN) + len(OWN) :]
    return f"{file}:{line} {name}" if with_line else f"{file} {name}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="postgresql-doc-15 instead of openjdk-17-doc")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--top", type=int, default=15, help="functions shown")
    options = parser.parse_args()
    site = QUICK if options.quick else WHOLE
    spy = environment("py-spy", "py-spy").with_name("py-spy")
    profile, cpu_s, pages = Profile(), 0.0, 0
    with tempfile.TemporaryDirectory(prefix="lycosa-bench-") as name, nginx_of(site.folder(), Path(name)) as server:
        folder = Path(name)
        for n in range(options.runs):
            say(f"crawl {n + 1} of {options.runs}, plain and under py-spy")
            ran = run(crawl_command(server, site, folder / f"plain-{n}"))
            cpu_s += ran.cpu_s
            pages += json.loads(ran.out)["pages"]
            record: list[str | Path] = [
                spy,
                "record",
                "--threads",
                "--format",
                "raw",
                "--rate",
                str(RATE),
                "--output",
                folder / "stacks",
                "--",
            ]
            run([*record, *crawl_command(server, site, folder / f"spied-{n}")])
            for line in (folder / "stacks").read_text().splitlines():
                stack, _, count = line.rpartition(" ")
                profile.add(stack, int(count))
    us = cpu_s / pages * 1e6
    print(f"{site.package}: {us:,.0f} µs CPU a page over {options.runs} runs, {profile.samples:,} samples; {load()}")
    each = us / profile.samples
    for title, counts in (
        ("part", profile.parts),
        ("function, itself", profile.own),
        ("function, with what it calls", profile.whole),
        ("line", profile.lines),
    ):
        rows = [[key, f"{n / profile.samples:.1%}", f"{n * each:,.0f}"] for key, n in counts.most_common(options.top)]
        print("\n" + table([title, "share", "µs/page"], rows))


if __name__ == "__main__":
    main()
