"""One site as fast as it goes: real documentation served by nginx, Lycosa beside Scrapy and beside the floor.

    python -m proof.bench.site [--quick] [--runs 5] [--no-scrapy]

Lycosa by its command line with everything on: robots, analysis, WARC, state. Scrapy with the same number of connections
follows the same links and keeps nothing. The floor fetches, parses, joins and compresses the same pages and does
nothing else (`site_floor`); it runs once more with its joins by bare C functions, for comparison only. Pages a second
are from the first response to the last in nginx's log. CPU seconds are those of the whole command; compared with the
floor, which counts without its start, they are without the start too: that is what a crawl of one page takes. Lycosa
and the floor run in turns, and each crawl is set beside the floors just before and just after it: the machine's own
drift is mostly in both. The median counts.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from proof import peers
from proof.bench.ground import package, say
from proof.bench.measure import Ran, Verdict, load, lycosa, median, run, table
from proof.bench.server import Nginx, Served, nginx_of
from proof.line_race import SPIDER

CONNECTIONS = 32
TIMES_SCRAPY_BAR = 10.0
TIMES_FLOOR_BAR = 2.5


class Site(NamedTuple):
    """Documentation in a package, and the page from which links reach nearly all of it."""

    package: str
    root: str
    start: str

    def folder(self) -> Path:
        return package(self.package) / self.root


WHOLE = Site("openjdk-17-doc", "usr/share/doc/openjdk-17-jre-headless", "/index.html")
QUICK = Site("postgresql-doc-15", "usr/share/doc/postgresql-doc-15/html", "/index.html")


class Crawled(NamedTuple):
    """One crawl as nginx saw it, and what it took."""

    paths: frozenset[str]
    seconds: float
    whole_s: float
    cpu_s: float

    @property
    def pages_per_s(self) -> float:
        return len(self.paths) / self.seconds

    @property
    def cpu_us(self) -> float:
        return self.cpu_s / len(self.paths) * 1e6


def crawled(served: list[Served], ran: Ran) -> Crawled:
    ends = [each.ended_s for each in served]
    paths = frozenset(each.path for each in served if each.status == 200)
    return Crawled(paths, max(ends) - min(ends), ran.wall_s, ran.cpu_s)


def crawl_command(server: Nginx, site: Site, into: Path) -> list[str | Path]:
    manners = ["--delay", "0", "--per-host", str(CONNECTIONS), "--scope", "host"]
    return lycosa("crawl", server.origin + site.start, "--into", into, *manners, "--json", "--quiet")


def by_lycosa(server: Nginx, site: Site) -> Crawled:
    with tempfile.TemporaryDirectory(prefix="lycosa-bench-") as folder:
        ran = run(crawl_command(server, site, Path(folder) / "crawl"))
    found = crawled(server.served(), ran)
    pages = json.loads(ran.out)["pages"]
    if pages != len(found.paths):
        sys.exit(f"Lycosa counts {pages:,} pages, nginx gave it {len(found.paths):,}")
    return found


def start_cpu_s(server: Nginx, site: Site) -> float:
    """CPU seconds of a crawl of one page: what it takes to begin and to end, the best of three."""
    spent = []
    for _ in range(3):
        with tempfile.TemporaryDirectory(prefix="lycosa-bench-") as folder:
            spent.append(run([*crawl_command(server, site, Path(folder) / "crawl"), "--pages", "1"]).cpu_s)
        server.served()
    return min(spent)


def scrapy_command(server: Nginx, site: Site) -> list[str | Path]:
    settings = {
        "CONCURRENT_REQUESTS": CONNECTIONS,
        "CONCURRENT_REQUESTS_PER_DOMAIN": CONNECTIONS,
        "DOWNLOAD_DELAY": 0,
    }
    return [peers.scrapy(), SPIDER, server.origin + site.start, json.dumps(settings)]


def by_scrapy(server: Nginx, site: Site) -> Crawled:
    say("Scrapy (once; it takes a while)")
    return crawled(server.served(), run(scrapy_command(server, site)))


def floor(server: Nginx, paths: frozenset[str], *options: str) -> tuple[float, float]:
    """Pages a second and CPU microseconds a page of the floor."""
    urls = "\n".join(server.origin + path for path in sorted(paths))
    command = [sys.executable, "-m", "proof.bench.site_floor", str(CONNECTIONS), *options]
    out = subprocess.run(command, input=urls, capture_output=True, text=True, check=True).stdout
    server.served()
    done = json.loads(out)
    return done["pages"] / done["wall_s"], done["cpu_s"] / done["pages"] * 1e6


def row(name: str, crawl: Crawled) -> list[str]:
    return [
        name,
        f"{len(crawl.paths):,}",
        f"{crawl.seconds:.1f}",
        f"{crawl.whole_s:.1f}",
        f"{crawl.pages_per_s:,.0f}",
        f"{crawl.cpu_us:,.0f}",
    ]


def beside(crawls_us: list[float], floors: list[tuple[float, float]]) -> list[float]:
    """Each crawl in multiples of the floors just before and just after it."""
    around = [[cpu_us for _, cpu_us in floors[max(0, n - 1) : n + 1]] for n in range(len(crawls_us))]
    return [cpu_us * len(some) / sum(some) for cpu_us, some in zip(crawls_us, around, strict=True)]


def report(
    site: Site,
    crawls: list[Crawled],
    floors: list[tuple[float, float]],
    bare_floors: list[tuple[float, float]],
    scrapy: Crawled | None,
    start_s: float,
) -> Verdict:
    files = sum(1 for path in site.folder().rglob("*.html") if path.is_file())
    reached = sum(path.endswith(".html") for path in crawls[0].paths)
    print(f"{site.package}: {files:,} HTML files, links from {site.start} reach {reached:,}; {load()}")
    rows = [row(f"Lycosa, run {n}", crawl) for n, crawl in enumerate(crawls, 1)]
    for name, some in (("floor", floors), ("with bare joins", bare_floors)):
        rate, cpu_us = median([rate for rate, _ in some]), median([cpu_us for _, cpu_us in some])
        rows.append([name, f"{len(crawls[0].paths):,}", "", "", f"{rate:,.0f}", f"{cpu_us:,.0f}"])
    rows += [row("Scrapy", scrapy)] if scrapy else []
    print(table(["", "pages", "first to last s", "command s", "pages/s", "CPU µs/page"], rows))
    verdict = Verdict()
    without_start = [(crawl.cpu_s - start_s) / (len(crawl.paths) - 1) * 1e6 for crawl in crawls]
    ratios, bare = beside(without_start, floors), beside(without_start, bare_floors)
    times = median(ratios)
    print(f"start and end {start_s:.2f} s of CPU; without them {median(without_start):,.0f} µs a page")
    print(f"× the floors around it: {', '.join(f'{each:.2f}' for each in ratios)}")
    print(f"with bare joins {median(bare):.2f}: {', '.join(f'{each:.2f}' for each in bare)}")
    verdict.judge(f"CPU a page {times:.2f} × the floor, at most {TIMES_FLOOR_BAR}", times <= TIMES_FLOOR_BAR)
    if scrapy:
        rate = median([crawl.pages_per_s for crawl in crawls])
        times = rate / scrapy.pages_per_s
        verdict.judge(f"pages/s {times:.1f} × Scrapy, at least {TIMES_SCRAPY_BAR:g}", times >= TIMES_SCRAPY_BAR)
        only, others = crawls[0].paths - scrapy.paths, scrapy.paths - crawls[0].paths
        guessed = {path for path in only if path.endswith("/")}  # folders that nobody links to
        what = (
            f"the same pages: {len(only)} only by Lycosa, {len(guessed)} of them guessed, {len(others)} only by Scrapy"
        )
        verdict.judge(what, only == guessed and not others)
    return verdict


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="postgresql-doc-15 instead of openjdk-17-doc")
    parser.add_argument("--runs", type=int, default=5, help="of Lycosa and of the floor")
    parser.add_argument("--no-scrapy", action="store_true")
    options = parser.parse_args()
    site = QUICK if options.quick else WHOLE
    crawls: list[Crawled] = []
    floors: list[tuple[float, float]] = []
    bare_floors: list[tuple[float, float]] = []
    with tempfile.TemporaryDirectory(prefix="lycosa-bench-") as folder, nginx_of(site.folder(), Path(folder)) as server:
        for n in range(options.runs):
            say(f"Lycosa and the floor, {n + 1} of {options.runs}")
            crawls.append(by_lycosa(server, site))
            floors.append(floor(server, crawls[-1].paths))
            bare_floors.append(floor(server, crawls[-1].paths, "--bare"))
        start_s = start_cpu_s(server, site)
        scrapy = None if options.no_scrapy else by_scrapy(server, site)
        report(site, crawls, floors, bare_floors, scrapy, start_s).exit()


if __name__ == "__main__":
    main()
