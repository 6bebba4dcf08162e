"""Lycosa beside other crawlers: a whole site of real documentation, served by nginx, as fast as each of them goes.

All get the same 32 connections to one host without a delay and follow the same links to the end. They run in turns,
round by round, so that the machine's drift is in all of them. Pages are the distinct paths that nginx answered with
200; every crawler has to fetch those of Lycosa, the folders that it guesses apart. Pages a second are from nginx's
first response to its last; CPU and memory are those of the whole command, with its start. Lycosa runs as it does by
default, and its collection has to hold what that means. A crawler that cannot be had is left out with the reason.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import NamedTuple

from lycosa.errors import LycosaError
from lycosa.graph.index import LinkIndex
from lycosa.inspect.status import open_to_read
from lycosa.records import Family
from lycosa.store.page_rows import unpack_page
from lycosa.web.document import text_digest
from proof import Bar, Experiment, Run
from proof.ground import launch, peers
from proof.ground.commands import run_command, scratch
from proof.ground.servers import Nginx
from proof.ground.sites import CONNECTIONS, RealSite, SiteCrawl, crawl_command, served_site

OURS, SPIDER = "Lycosa", "spider"
MOST_S = 600  # a crawl that takes longer is ended
UNLIMITED = "1000000"  # requests a second, and links from the first page to the last
OTHER_PAGES = "most pages that only one of two crawlers has, guessed folders apart"


class PageWork(NamedTuple):
    """What a crawler does for a page, as it is started here; empty: nothing."""

    robots: str = ""
    dedupe: str = "URLs"
    archive: str = ""
    resume: str = ""
    parse: str = "links"
    indexes: str = ""


class Peer(NamedTuple):
    """A crawler: how it is started in a folder of its own, and what it does for a page."""

    command: Callable[[Nginx, RealSite, Path], list[str | Path]]
    does: PageWork
    may: int = 0  # an exit code that is no failure


class PeerTurn(NamedTuple):
    """One crawl of one peer."""

    crawl: SiteCrawl
    disk_bytes: int


def heritrix_command(server: Nginx, site: RealSite, folder: Path) -> list[str | Path]:
    job = peers.HeritrixJob(server.origin + site.start, CONNECTIONS, per_host=CONNECTIONS, seconds=MOST_S)
    return [*peers.heritrix_command(job, folder)]


def scrapy_command(server: Nginx, site: RealSite, _folder: Path) -> list[str | Path]:
    connections = {"CONCURRENT_REQUESTS": CONNECTIONS, "CONCURRENT_REQUESTS_PER_DOMAIN": CONNECTIONS}
    return [*peers.scrapy_command(server.origin + site.start, connections | {"DOWNLOAD_DELAY": 0})]


def katana_command(server: Nginx, site: RealSite, folder: Path) -> list[str | Path]:
    limits = ["-c", str(CONNECTIONS), "-rl", UNLIMITED, "-d", UNLIMITED, "-fs", "fqdn"]
    quiet: list[str | Path] = ["-silent", "-duc", "-o", folder / "urls"]
    return ["env", f"HOME={folder}", peers.katana(), "-u", server.origin + site.start, *limits, *quiet]


def spider_command(server: Nginx, site: RealSite, _folder: Path) -> list[str | Path]:
    return [peers.spider(), server.origin + site.start, str(CONNECTIONS)]


def wget2_command(server: Nginx, site: RealSite, _folder: Path) -> list[str | Path]:
    follow = ["--recursive", "--level=0", "--follow-tags=a/href", f"--max-threads={CONNECTIONS}"]
    return [*peers.wget2(), "--quiet", *follow, server.origin + site.start]


def crawlee_command(server: Nginx, site: RealSite, _folder: Path) -> list[str | Path]:
    return [peers.crawlee(), peers.CRAWLEE_SPIDER, server.origin + site.start, str(CONNECTIONS)]


def colly_command(server: Nginx, site: RealSite, _folder: Path) -> list[str | Path]:
    return [peers.colly(), server.origin + site.start, str(CONNECTIONS)]


PEERS = {
    OURS: Peer(
        lambda server, site, folder: crawl_command(server, site, folder / "crawl"),
        PageWork("yes", "URLs, content, near-copies", "WARC", "yes", "links, text, change codes", "links, budgets"),
    ),
    "Scrapy": Peer(scrapy_command, PageWork("yes")),
    "Heritrix": Peer(heritrix_command, PageWork("yes", archive="WARC", resume="yes")),
    "katana": Peer(katana_command, PageWork(dedupe="URLs, content", archive="URLs only")),
    SPIDER: Peer(spider_command, PageWork("yes")),
    "Crawlee": Peer(crawlee_command, PageWork("yes")),
    "Colly": Peer(colly_command, PageWork("yes")),
    "wget2": Peer(wget2_command, PageWork("yes", archive="files"), may=8),  # 8: some URL was not found
}

# Crawlers that people know and that this comparison cannot have, and why.
NOT_TO_BE_HAD = {
    "Nutch": "the registry has its core (org.apache.nutch:nutch:1.22) without the plugins by which it fetches",
    "BUbiNG": "it asks a host over one connection and this is one host; the registry lacks sux4j 4.3.0, which it names",
}


def take_turn(name: str, server: Nginx, site: RealSite) -> PeerTurn:
    peer = PEERS[name]
    with scratch() as folder:
        command = peer.command(server, site, folder)
        with scratch() as beside:
            launched = [sys.executable, "-I", "-S", launch.__file__, beside / "usage", str(MOST_S), *command]
            usage = run_command(launched, cwd=folder, may=peer.may)
            cpu_s, peak_mb = map(float, (beside / "usage").read_text().split())
        usage = usage._replace(cpu_s=cpu_s, peak_mb=peak_mb)
        disk_bytes = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
        crawl = SiteCrawl.of(server.served(), usage)
        if len(crawl.paths) < 2:
            raise LycosaError(f"{name} got no further than the first page")
        if name == OURS:
            check_collection(folder / "crawl", len(crawl.paths))
    return PeerTurn(crawl, disk_bytes)


def check_collection(path: Path, pages: int) -> None:
    """LycosaError unless a collection has the archive, state, link index, codes and budgets of so many pages."""
    with open_to_read(path) as collection:
        rows = [row for _, packed in collection.state.walk(Family.PAGE) if (row := unpack_page(packed)).status == 200]
        html = [row for row in rows if row.essence == "text/html"]
        documents = len({row.payload_sha1 for row in rows})
        records = sum(record.type == "response" for _, record in collection.records())
        found = {
            "state": len(rows) == pages,
            "archive": records >= documents and all(row.place or row.original for row in rows),
            "codes": all(row.structure[0] and (row.codes[0] or row.text_digest == text_digest(b"")) for row in html),
            "link index": LinkIndex.open(path).links >= sum(row.links > 0 for row in html),
            "budgets": any(key.startswith(b"mind:") for key, _ in collection.state.walk(Family.META)),
        }
    if missing := [name for name, is_there in found.items() if not is_there]:
        raise LycosaError(f"the collection of {pages:,} pages lacks: {', '.join(missing)}")


def measure(run: Run) -> None:
    turns: dict[str, list[PeerTurn]] = {name: [] for name in PEERS if name == OURS or name in run.chosen}
    absent: dict[str, str] = {name: "--only without it" for name in PEERS if name not in turns}
    with served_site(run) as (site, server), run.progress(run.runs * len(turns), "crawls") as step:
        for _ in range(run.runs):
            for name, taken in turns.items():
                try:
                    if name not in absent:
                        taken.append(take_turn(name, server, site))
                except LycosaError as error:
                    if name == OURS:
                        raise
                    absent[name] = str(error)
                    server.served()
                step.advance()
    run.setting("connections", CONNECTIONS)
    run.setting("rounds", run.runs)
    _report(run, {name: taken for name, taken in turns.items() if name not in absent}, absent)


def _report(run: Run, ran: dict[str, list[PeerTurn]], absent: dict[str, str]) -> None:
    ours = ran[OURS]
    run.table(
        ["", "pages", "pages/s", "spread", "Lycosa ×", "command s", "CPU µs/page", "Lycosa ×", "peak MB", "MB on disk"],
        [_row(name, taken, ours) for name, taken in ran.items()],
        title="medians of the rounds",
    )
    work = [[name, *(word or "no" for word in PEERS[name].does)] for name in ran]
    run.table(["", *PageWork._fields], work, title="what each one does for a page")
    for name, why in NOT_TO_BE_HAD.items():
        run.remark(f"{name} left out: {why}")
    others = 0
    for name in PEERS:
        if name in absent:
            run.remark(f"{name} left out: {absent[name]}")
            for figure in (_rate(name), _cpu(name)):
                run.leave_out(figure, absent[name])
            continue
        if name == OURS:
            continue
        run.figure(_rate(name), median(_rates(ran[name], ours)), "×")
        run.figure(_cpu(name), median(_cpus(ran[name], ours)), "×")
        mine, theirs = ours[0].crawl.paths, ran[name][0].crawl.paths
        only = {path for path in mine - theirs if not path.endswith("/")}  # folders that nobody links to are guessed
        if only or theirs - mine:
            run.remark(f"pages only by Lycosa {len(only):,}, only by {name} {len(theirs - mine):,}")
        others = max(others, len(only) + len(theirs - mine))
    run.figure(OTHER_PAGES, 100 * others / len(ours[0].crawl.paths), "%")


def _rate(name: str) -> str:
    return f"pages/s beside {name}"


def _cpu(name: str) -> str:
    return f"CPU a page beside {name}"


def _rates(taken: list[PeerTurn], ours: list[PeerTurn]) -> list[float]:
    return [our.crawl.pages_per_s / each.crawl.pages_per_s for our, each in zip(ours, taken, strict=True)]


def _cpus(taken: list[PeerTurn], ours: list[PeerTurn]) -> list[float]:
    return [our.crawl.cpu_us / each.crawl.cpu_us for our, each in zip(ours, taken, strict=True)]


def _row(name: str, taken: list[PeerTurn], ours: list[PeerTurn]) -> list[str | int | float]:
    rates, usages = [each.crawl.pages_per_s for each in taken], [each.crawl.usage for each in taken]
    return [
        name,
        round(median(len(each.crawl.paths) for each in taken)),
        round(median(rates)),
        f"{min(rates):,.0f}–{max(rates):,.0f}",
        round(median(_rates(taken, ours)), 2),
        round(median(usage.wall_s for usage in usages), 1),
        round(median(each.crawl.cpu_us for each in taken)),
        round(median(_cpus(taken, ours)), 2),
        round(max(usage.peak_mb for usage in usages)),
        round(median(each.disk_bytes for each in taken) / 1e6, 1),
    ]


EXPERIMENT = Experiment(
    name="peers",
    summary="one site as fast as it goes, beside Scrapy, Heritrix, katana, spider, Crawlee, Colly and wget2, in turns",
    run=measure,
    runs=3,
    choices=tuple(PEERS),
    bars=(
        Bar("faster than Scrapy", _rate("Scrapy"), ">=", 20.0),
        Bar("faster than Heritrix", _rate("Heritrix"), ">=", 7.0),
        Bar("faster than katana", _rate("katana"), ">=", 1.8),
        Bar("as lean as spider", _cpu(SPIDER), "<=", 1.3),
        Bar("the same pages", OTHER_PAGES, "<=", 1.0),
    ),
)
