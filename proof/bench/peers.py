"""Lycosa beside other crawlers: a whole site of real documentation, served by nginx, as fast as each of them goes.

    python -m proof.bench.peers [--quick] [--rounds 3] [--only lycosa,heritrix]

All get the same 32 connections to one host without a delay, obey robots.txt and follow the same links to the end. They
run in turns, round by round, so that the machine's drift is in all of them. Pages are the distinct paths that nginx
answered with 200, pages a second from its first response to its last; CPU and memory are those of the whole command,
with its start. A crawler that cannot be had is left out with the reason.
"""

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from lycosa.errors import LycosaError
from proof import heritrix, peers
from proof.bench.ground import say
from proof.bench.measure import Ran, load, median, run, table
from proof.bench.server import Nginx, nginx_of
from proof.bench.site import CONNECTIONS, QUICK, WHOLE, Crawled, Site, crawl_command, crawled, scrapy_command

Command = Callable[[Nginx, Site, Path], list[str | Path]]
MOST_S = 600  # a crawl that takes longer is ended


class Peer(NamedTuple):
    """A crawler: how it is started in a folder of its own, and what it does a page beyond fetching and parsing."""

    command: Command
    does: str


class Turn(NamedTuple):
    """One crawl of one peer."""

    crawl: Crawled
    ran: Ran
    disk_bytes: int


def heritrix_command(server: Nginx, site: Site, folder: Path) -> list[str | Path]:
    job = heritrix.Job(server.origin + site.start, CONNECTIONS, per_host=CONNECTIONS, seconds=MOST_S)
    return [*heritrix.command(peers.heritrix(), job, folder)]


PEERS = {
    "Lycosa": Peer(
        lambda server, site, folder: crawl_command(server, site, folder / "crawl"),
        "robots, dedupe, WARC, resume, link index, change parameters",
    ),
    "Heritrix": Peer(heritrix_command, "robots, dedupe of URLs, WARC, resume"),
    "Scrapy": Peer(lambda server, site, _: scrapy_command(server, site), "robots, dedupe of URLs; keeps nothing"),
}


def turn(peer: Peer, server: Nginx, site: Site) -> Turn:
    with tempfile.TemporaryDirectory(prefix="lycosa-bench-") as name:
        folder = Path(name)
        ran = run(peer.command(server, site, folder), cwd=folder)
        disk_bytes = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return Turn(crawled(server.served(), ran), ran, disk_bytes)


def row(name: str, turns: list[Turn], ours: list[Turn]) -> list[str]:
    rates = [each.crawl.pages_per_s for each in turns]
    ratios = [our.crawl.pages_per_s / rate for our, rate in zip(ours, rates, strict=True)]
    return [
        name,
        f"{median([len(each.crawl.paths) for each in turns]):,.0f}",
        f"{median(rates):,.0f}",
        f"{min(rates):,.0f}–{max(rates):,.0f}",
        f"{median(ratios):.2f}",
        f"{min(ratios):.2f}–{max(ratios):.2f}",
        f"{median([each.crawl.whole_s for each in turns]):.1f}",
        f"{median([each.crawl.cpu_us for each in turns]):,.0f}",
        f"{max(each.ran.peak_mb for each in turns):,.0f}",
        f"{median([each.disk_bytes for each in turns]) / 1e6:,.1f}",
    ]


HEAD = ["", "pages", "pages/s", "spread", "Lycosa ×", "spread", "command s", "CPU µs/page", "peak MB", "MB on disk"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="postgresql-doc-15, one round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default=",".join(PEERS), help="names with commas between them; Lycosa always runs")
    options = parser.parse_args()
    names = {name.strip().lower() for name in options.only.split(",")}
    if unknown := names - {name.lower() for name in PEERS}:
        parser.error(f"--only knows {', '.join(PEERS)}, not {', '.join(sorted(unknown))}")
    chosen = {name: peer for name, peer in PEERS.items() if name == "Lycosa" or name.lower() in names}
    site, rounds = (QUICK, 1) if options.quick else (WHOLE, max(1, options.rounds))
    turns: dict[str, list[Turn]] = {name: [] for name in chosen}
    absent: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="lycosa-bench-") as folder, nginx_of(site.folder(), Path(folder)) as server:
        for n in range(rounds):
            for name, peer in chosen.items():
                if name in absent:
                    continue
                say(f"round {n + 1} of {rounds}: {name}")
                try:
                    turns[name].append(turn(peer, server, site))
                except LycosaError as error:
                    absent[name] = str(error)
    print(f"{site.package}, {CONNECTIONS} connections, rounds in turns: {rounds}, medians; {load()}")
    print(table(HEAD, [row(name, some, turns["Lycosa"]) for name, some in turns.items() if some]))
    for name, some in turns.items():
        print(f"{name}: {PEERS[name].does if some else f'left out: {absent[name]}'}")
    pages = {name: some[0].crawl.paths for name, some in turns.items() if some}
    for name, paths in pages.items():
        if name != "Lycosa":
            only, others = len(pages["Lycosa"] - paths), len(paths - pages["Lycosa"])
            print(f"pages only by Lycosa {only:,}, only by {name} {others:,}")


if __name__ == "__main__":
    main()
