"""One site as fast as it goes: real documentation served by nginx, crawled by Lycosa with everything on, and the floor.

The floor fetches, parses, joins and compresses the same pages and does nothing else (`ground/site_floor.py`). Pages a
second are from the first response to the last in nginx's log. CPU a page is that of the whole command without its
start, which is what a crawl of one page takes: the floor counts without its start, too. Crawls and floors run in turns,
and each crawl is set beside the floors just before and just after it, so that the machine's own drift is mostly in
both. The median counts.
"""

import json
import subprocess
import sys
from statistics import median
from typing import NamedTuple

from lycosa.errors import LycosaError
from proof import Bar, Experiment, Run
from proof.ground.commands import run_command, scratch
from proof.ground.servers import Nginx, nginx_of
from proof.ground.sites import CONNECTIONS, OPENJDK, POSTGRESQL, RealSite, SiteCrawl, crawl_command

BESIDE_FLOOR, RATE = "CPU a page beside the floor, {}", "pages/s, {}"


class FloorRun(NamedTuple):
    pages_per_s: float
    cpu_us: float  # a page


def by_lycosa(server: Nginx, site: RealSite) -> tuple[SiteCrawl, str]:
    """A crawl, and which analyser has read its pages."""
    with scratch() as folder:
        usage = run_command(crawl_command(server, site, folder / "crawl"))
    found, told = SiteCrawl.of(server.served(), usage), json.loads(usage.out)
    if told["pages"] != len(found.paths):
        raise LycosaError(f"Lycosa counts {told['pages']:,} pages, nginx gave it {len(found.paths):,}")
    return found, told["kernel"]


def start_cpu_s(server: Nginx, site: RealSite) -> float:
    """CPU seconds of a crawl of one page: what it takes to begin and to end, the best of three."""
    spent = []
    for _ in range(3):
        with scratch() as folder:
            spent.append(run_command([*crawl_command(server, site, folder / "crawl"), "--pages", "1"]).cpu_s)
        server.served()
    return min(spent)


def floor(server: Nginx, paths: frozenset[str]) -> FloorRun:
    urls = "\n".join(server.origin + path for path in sorted(paths))
    command = [sys.executable, "-m", "proof.ground.site_floor", str(CONNECTIONS)]
    done = json.loads(subprocess.run(command, input=urls, capture_output=True, text=True, check=True).stdout)
    server.served()
    return FloorRun(done["pages"] / done["wall_s"], done["cpu_s"] / done["pages"] * 1e6)


def beside(crawls_us: list[float], floors: list[FloorRun]) -> list[float]:
    """Each crawl in multiples of the floors just before and just after it."""
    around = [[each.cpu_us for each in floors[max(0, n - 1) : n + 1]] for n in range(len(crawls_us))]
    return [cpu_us * len(some) / sum(some) for cpu_us, some in zip(crawls_us, around, strict=True)]


def measure_site(run: Run, site: RealSite) -> None:
    crawls: list[SiteCrawl] = []
    floors: list[FloorRun] = []
    name, analyser = site.package, ""
    with scratch() as folder, nginx_of(site.folder(), folder) as server:
        with run.progress(run.runs, f"crawls and floors of {name}") as step:
            for _ in range(run.runs):
                crawl, analyser = by_lycosa(server, site)
                crawls.append(crawl)
                floors.append(floor(server, crawl.paths))
                step.advance()
        start_s = start_cpu_s(server, site)
    net = [(crawl.usage.cpu_s - start_s) / (len(crawl.paths) - 1) * 1e6 for crawl in crawls]
    ratios = beside(net, floors)
    run.figure(RATE.format(name), median(crawl.pages_per_s for crawl in crawls), "/s")
    run.figure(f"CPU a page without start and end, {name}", median(net), "µs")
    run.figure(f"CPU of start and end, {name}", start_s, "s")
    run.figure(BESIDE_FLOOR.format(name), median(ratios), "×")
    run.remark(f"{name}: pages read by {analyser}; {min(ratios):.2f} to {max(ratios):.2f} times the floor")
    rows: list[list[str | int | float]] = [
        [f"Lycosa, run {n}", len(each.paths), each.usage.wall_s, each.pages_per_s, each.cpu_us, net_us]
        for n, (each, net_us) in enumerate(zip(crawls, net, strict=True), 1)
    ]
    rate, cpu_us = median(each.pages_per_s for each in floors), median(each.cpu_us for each in floors)
    rows.append(["floor", len(crawls[0].paths), "", rate, cpu_us, cpu_us])
    shown = [[round(cell, 1) if isinstance(cell, float) else cell for cell in row] for row in rows]
    run.table(["", "pages", "command s", "pages/s", "CPU µs/page", "without start"], shown, title=name)


def measure(run: Run) -> None:
    for site in (OPENJDK, POSTGRESQL):
        if site.package in run.chosen and not (run.quick and site is OPENJDK):
            measure_site(run, site)
        else:
            for figure in (RATE, BESIDE_FLOOR):
                run.leave_out(figure.format(site.package), "not run")


EXPERIMENT = Experiment(
    name="site",
    summary="one site as fast as it goes, beside the floor",
    run=measure,
    runs=5,
    choices=(OPENJDK.package, POSTGRESQL.package),
    bars=(
        Bar("near the floor", BESIDE_FLOOR.format(OPENJDK.package), "<=", 1.4),
        Bar("fast on large pages", RATE.format(OPENJDK.package), ">=", 1_800),
        Bar("fast on small pages", RATE.format(POSTGRESQL.package), ">=", 2_800),
    ),
)
