"""One site as fast as it goes: real documentation served by nginx, Lycosa beside Scrapy and beside the floor.

Lycosa by its command line with everything on: robots, analysis, WARC, state. Scrapy with the same number of connections
follows the same links and keeps nothing. The floor fetches, parses, joins and compresses the same pages and does
nothing else (`ground/site_floor.py`); it runs once more with its joins by bare C functions, for comparison only. Pages
a second are from the first response to the last in nginx's log. CPU seconds are those of the whole command; compared
with the floor, which counts without its start, they are without the start too: that is what a crawl of one page takes.
Lycosa and the floor run in turns, and each crawl is set beside the floors just before and just after it: the machine's
own drift is mostly in both. The median counts.
"""

import json
import subprocess
import sys
from statistics import median
from typing import NamedTuple

from lycosa.errors import LycosaError
from proof import Bar, Experiment, Run
from proof.bench.peers import scrapy_command
from proof.ground.commands import run_command, scratch
from proof.ground.servers import Nginx
from proof.ground.sites import CONNECTIONS, RealSite, SiteCrawl, crawl_command, served_site

FLOOR, SCRAPY = "the floor", "Scrapy"
BESIDE_FLOOR, BESIDE_SCRAPY = "CPU a page beside the floor", "pages/s beside Scrapy"
OTHER_PAGES = "pages that only one of them has, guessed folders apart"


class FloorRun(NamedTuple):
    pages_per_s: float
    cpu_us: float  # a page


def by_lycosa(server: Nginx, site: RealSite) -> SiteCrawl:
    with scratch() as folder:
        usage = run_command(crawl_command(server, site, folder / "crawl"))
    found = SiteCrawl.of(server.served(), usage)
    pages = json.loads(usage.out)["pages"]
    if pages != len(found.paths):
        raise LycosaError(f"Lycosa counts {pages:,} pages, nginx gave it {len(found.paths):,}")
    return found


def start_cpu_s(server: Nginx, site: RealSite) -> float:
    """CPU seconds of a crawl of one page: what it takes to begin and to end, the best of three."""
    spent = []
    for _ in range(3):
        with scratch() as folder:
            spent.append(run_command([*crawl_command(server, site, folder / "crawl"), "--pages", "1"]).cpu_s)
        server.served()
    return min(spent)


def floor(server: Nginx, paths: frozenset[str], *options: str) -> FloorRun:
    urls = "\n".join(server.origin + path for path in sorted(paths))
    command = [sys.executable, "-m", "proof.ground.site_floor", str(CONNECTIONS), *options]
    done = json.loads(subprocess.run(command, input=urls, capture_output=True, text=True, check=True).stdout)
    server.served()
    return FloorRun(done["pages"] / done["wall_s"], done["cpu_s"] / done["pages"] * 1e6)


def beside(crawls_us: list[float], floors: list[FloorRun]) -> list[float]:
    """Each crawl in multiples of the floors just before and just after it."""
    around = [[each.cpu_us for each in floors[max(0, n - 1) : n + 1]] for n in range(len(crawls_us))]
    return [cpu_us * len(some) / sum(some) for cpu_us, some in zip(crawls_us, around, strict=True)]


def measure(run: Run) -> None:
    crawls: list[SiteCrawl] = []
    floors: list[FloorRun] = []
    bare_floors: list[FloorRun] = []
    with served_site(run) as (site, server):
        with run.progress(run.runs, "crawls and floors") as step:
            for _ in range(run.runs):
                crawls.append(by_lycosa(server, site))
                floors.append(floor(server, crawls[-1].paths))
                bare_floors.append(floor(server, crawls[-1].paths, "--bare"))
                step.advance()
        start_s = start_cpu_s(server, site)
        scrapy = None
        if SCRAPY in run.chosen:
            run.say("Scrapy, once; it takes a while")
            with scratch() as folder:
                usage = run_command(scrapy_command(server, site, folder))
            scrapy = SiteCrawl.of(server.served(), usage)
    _report_floor(run, crawls, floors, bare_floors, start_s)
    if scrapy is None:
        for figure in (BESIDE_SCRAPY, OTHER_PAGES):
            run.leave_out(figure, "--only without Scrapy")
    else:
        _report_scrapy(run, crawls, scrapy)
    pages = len(crawls[0].paths)
    rows = [_row(f"Lycosa, run {n}", crawl) for n, crawl in enumerate(crawls, 1)]
    for name, some in (("floor", floors), ("floor with bare joins", bare_floors)):
        rate, cpu_us = median(each.pages_per_s for each in some), median(each.cpu_us for each in some)
        rows.append([name, pages, "", "", round(rate), round(cpu_us)])
    rows += [_row(SCRAPY, scrapy)] if scrapy else []
    run.table(["", "pages", "first to last s", "command s", "pages/s", "CPU µs/page"], rows)


def _report_floor(
    run: Run, crawls: list[SiteCrawl], floors: list[FloorRun], bare_floors: list[FloorRun], start_s: float
) -> None:
    without_start = [(crawl.usage.cpu_s - start_s) / (len(crawl.paths) - 1) * 1e6 for crawl in crawls]
    ratios, bare = beside(without_start, floors), beside(without_start, bare_floors)
    run.figure("pages/s", median(crawl.pages_per_s for crawl in crawls), "/s")
    run.figure("CPU a page without start and end", median(without_start), "µs")
    run.figure("CPU of start and end", start_s, "s")
    run.figure(BESIDE_FLOOR, median(ratios), "×")
    run.figure("least of the runs", min(ratios), "×")
    run.figure("most of the runs", max(ratios), "×")
    run.figure("beside the floor with bare joins", median(bare), "×")


def _report_scrapy(run: Run, crawls: list[SiteCrawl], scrapy: SiteCrawl) -> None:
    run.figure(BESIDE_SCRAPY, median(crawl.pages_per_s for crawl in crawls) / scrapy.pages_per_s, "×")
    only, others = crawls[0].paths - scrapy.paths, scrapy.paths - crawls[0].paths
    guessed = {path for path in only if path.endswith("/")}  # folders that nobody links to
    run.figure("folders that Lycosa guessed", len(guessed))
    run.figure(OTHER_PAGES, len(only - guessed) + len(others))


def _row(name: str, crawl: SiteCrawl) -> list[str | int | float]:
    times = round(crawl.seconds, 1), round(crawl.usage.wall_s, 1)
    return [name, len(crawl.paths), *times, round(crawl.pages_per_s), round(crawl.cpu_us)]


EXPERIMENT = Experiment(
    name="site",
    summary="one site as fast as it goes, beside Scrapy and the floor",
    run=measure,
    runs=5,
    choices=(FLOOR, SCRAPY),
    bars=(
        Bar("near the floor", BESIDE_FLOOR, "<=", 2.5),
        Bar("faster than Scrapy", BESIDE_SCRAPY, ">=", 10.0),
        Bar("the same pages", OTHER_PAGES, "<=", 0),
    ),
)
