"""Where the time of the benchmark `site` goes: the crawl under py-spy, by part, by function and by line.

Samples of all runs are added up. A sample belongs to the innermost function that is Lycosa's own, so that a C library's
time is that of the line that calls it; samples without one are the event loop or the start. Shares are turned into
microseconds a page by the CPU time of crawls without py-spy, whose pauses cost some. The threads of RocksDB, which
py-spy does not see, take about 1 % and are spread over all parts.
"""

import json
from collections import Counter
from pathlib import Path

from proof import Experiment, Run
from proof.ground.commands import run_command, scratch
from proof.ground.peers import environment
from proof.ground.sites import crawl_command, served_site

RATE = 400  # samples a second
TOP = 15  # functions shown
OWN = "lycosa/"

# The first that fits the innermost own function decides; then the first that fits any function around it.
INNERMOST = (
    ("libcurl and its callbacks", ("fetch/",)),
    ("links: join and filter", ("web/url", "web/scope", "crawl/link_filter", "crawl/reading", "frontier/queues")),
    ("robots.txt", ("web/robots",)),
    ("parse and analysis", ("web/",)),
    ("WARC records", ("store/warc_record",)),
    ("commit", ("store/", "crawl/committer", "crawl/stats", "crawl/keeper")),
    ("frontier", ("frontier/", "learning/")),
    ("mapping", ("mapping/",)),
    ("crawl loop", ("crawl/", "graph/", "tables/", "recrawl/", "search/", "api/")),
    ("progress and start", ("cli/", "settings/", "records", "errors", "version", "__init__", "__main__")),
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
    """`read (…/src/lycosa/crawl/responses.py:60)` → `crawl/responses.py read`, or with the line."""
    name, _, place = frame.rpartition(" (")
    file, _, line = place.rstrip(")").rpartition(":")
    file = file[file.rindex(OWN) + len(OWN) :]
    return f"{file}:{line} {name}" if with_line else f"{file} {name}"


def measure(run: Run) -> None:
    spy = environment("py-spy", "py-spy").with_name("py-spy")
    record: list[str | Path] = [spy, "record", "--threads", "--format", "raw", "--rate", str(RATE), "--output"]
    profile, cpu_s, pages = Profile(), 0.0, 0
    with served_site(run) as (site, server), scratch() as folder, run.progress(run.runs, "crawls") as step:
        for n in range(run.runs):
            usage = run_command(crawl_command(server, site, folder / f"plain-{n}"))
            cpu_s += usage.cpu_s
            pages += json.loads(usage.out)["pages"]
            run_command([*record, folder / "stacks", "--", *crawl_command(server, site, folder / f"spied-{n}")])
            for line in (folder / "stacks").read_text().splitlines():
                stack, _, count = line.rpartition(" ")
                profile.add(stack, int(count))
            step.advance()
    us = cpu_s / pages * 1e6
    run.figure("CPU a page", us, "µs")
    run.figure("samples", profile.samples)
    for title, counts in (
        ("part", profile.parts),
        ("function, itself", profile.own),
        ("function, with what it calls", profile.whole),
        ("line", profile.lines),
    ):
        shares = [(key, n / profile.samples) for key, n in counts.most_common(TOP)]
        run.table([title, "%", "µs/page"], [(key, round(100 * share, 1), round(share * us)) for key, share in shares])


EXPERIMENT = Experiment(
    name="profile",
    summary="where the time of the benchmark `site` goes, by part, function and line",
    run=measure,
    runs=3,
)
