"""Lycosa beside other crawlers: a whole site of real documentation, served by nginx, as fast as each of them goes.

All get the same 32 connections to one host without a delay, obey robots.txt and follow the same links to the end. They
run in turns, round by round, so that the machine's drift is in all of them. Pages are the distinct paths that nginx
answered with 200, pages a second from its first response to its last; CPU and memory are those of the whole command,
with its start. A crawler that cannot be had is left out with the reason.
"""

from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import NamedTuple

from lycosa.errors import LycosaError
from proof import Experiment, Run
from proof.ground import peers
from proof.ground.commands import run_command, scratch
from proof.ground.servers import Nginx
from proof.ground.sites import CONNECTIONS, RealSite, SiteCrawl, crawl_command, served_site

OURS = "Lycosa"
MOST_S = 600  # a crawl that takes longer is ended


class Peer(NamedTuple):
    """A crawler: how it is started in a folder of its own, and what it does a page beyond fetching and parsing."""

    command: Callable[[Nginx, RealSite, Path], list[str | Path]]
    does: str


class PeerTurn(NamedTuple):
    """One crawl of one peer."""

    crawl: SiteCrawl
    disk_bytes: int


def heritrix_command(server: Nginx, site: RealSite, folder: Path) -> list[str | Path]:
    job = peers.HeritrixJob(server.origin + site.start, CONNECTIONS, per_host=CONNECTIONS, seconds=MOST_S)
    return [*peers.heritrix_command(job, folder)]


def scrapy_command(server: Nginx, site: RealSite, folder: Path) -> list[str | Path]:
    connections = {"CONCURRENT_REQUESTS": CONNECTIONS, "CONCURRENT_REQUESTS_PER_DOMAIN": CONNECTIONS}
    return [*peers.scrapy_command(server.origin + site.start, connections | {"DOWNLOAD_DELAY": 0})]


PEERS = {
    OURS: Peer(
        lambda server, site, folder: crawl_command(server, site, folder / "crawl"),
        "robots, dedupe, WARC, resume, link index, change parameters",
    ),
    "Heritrix": Peer(heritrix_command, "robots, dedupe of URLs, WARC, resume"),
    "Scrapy": Peer(scrapy_command, "robots, dedupe of URLs; keeps nothing"),
}


def take_turn(peer: Peer, server: Nginx, site: RealSite) -> PeerTurn:
    with scratch() as folder:
        usage = run_command(peer.command(server, site, folder), cwd=folder)
        disk_bytes = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return PeerTurn(SiteCrawl.of(server.served(), usage), disk_bytes)


def measure(run: Run) -> None:
    turns: dict[str, list[PeerTurn]] = {name: [] for name in PEERS if name == OURS or name in run.chosen}
    absent: dict[str, str] = {}
    with served_site(run) as (site, server), run.progress(run.runs * len(turns), "crawls") as step:
        for _ in range(run.runs):
            for name, taken in turns.items():
                try:
                    if name not in absent:
                        taken.append(take_turn(PEERS[name], server, site))
                except LycosaError as error:
                    absent[name] = str(error)
                step.advance()
    ran = {name: taken for name, taken in turns.items() if taken}
    run.setting("connections", CONNECTIONS)
    run.setting("rounds", run.runs)
    run.table(
        ["", "pages", "pages/s", "spread", "Lycosa ×", "command s", "CPU µs/page", "peak MB", "MB on disk"],
        [_row(name, taken, ran[OURS]) for name, taken in ran.items()],
        title="medians of the rounds",
    )
    for name in turns:
        run.remark(f"{name}: {PEERS[name].does if name in ran else f'left out: {absent[name]}'}")
    for name, taken in ran.items():
        run.figure(f"pages/s of {name}", median(each.crawl.pages_per_s for each in taken), "/s")
        if name != OURS:
            run.figure(f"pages/s beside {name}", median(_ratios(taken, ran[OURS])), "×")
            ours, theirs = ran[OURS][0].crawl.paths, taken[0].crawl.paths
            run.remark(f"pages only by Lycosa {len(ours - theirs):,}, only by {name} {len(theirs - ours):,}")


def _ratios(taken: list[PeerTurn], ours: list[PeerTurn]) -> list[float]:
    return [our.crawl.pages_per_s / each.crawl.pages_per_s for our, each in zip(ours, taken, strict=True)]


def _row(name: str, taken: list[PeerTurn], ours: list[PeerTurn]) -> list[str | int | float]:
    rates, usages = [each.crawl.pages_per_s for each in taken], [each.crawl.usage for each in taken]
    return [
        name,
        round(median(len(each.crawl.paths) for each in taken)),
        round(median(rates)),
        f"{min(rates):,.0f}–{max(rates):,.0f}",
        round(median(_ratios(taken, ours)), 2),
        round(median(usage.wall_s for usage in usages), 1),
        round(median(each.crawl.cpu_us for each in taken)),
        round(max(usage.peak_mb for usage in usages)),
        round(median(each.disk_bytes for each in taken) / 1e6, 1),
    ]


EXPERIMENT = Experiment(
    name="peers",
    summary="one site as fast as it goes, beside Heritrix and Scrapy, in turns",
    run=measure,
    runs=3,
    choices=tuple(PEERS),
)
