"""What tables of links are worth on real documentation, in the setting of `make lab NAME=tol` but for the pages.

    python -m proof.bench.tables

The real engine on virtual time crawls all HTML of Debian packages through the simulated web's transport: round trip
50 ms, 30 KB/s a transfer, 8 transfers, delay 0. Beside the time stands the share of it in which transfers stood idle
with neither tables nor early links: that is all that links can save, however early they come. No bar: the figures say
which real sites are narrow enough for tables to help.
"""

import argparse
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from lycosa.simweb import SimSettings, SimWeb
from lycosa.simweb.log import AuditRules
from lycosa.simweb.web import NOT_FOUND, Answer
from lycosa.tables.publisher import AugmentOptions, tables_of
from proof.bench.ground import package, say
from proof.lab.tol import MODES, RTT_MS, TRANSFER_BYTES_S, TRANSFERS
from proof.sim_crawl import crawl

KEPT_PAGES = 2_000  # in memory


class Place(NamedTuple):
    """Where a package has its HTML, and where a reader begins."""

    package: str
    root: str
    front: str


PLACES = (
    Place("python3.11-doc", "usr/share/doc/python3.11/html", "index.html"),
    Place("postgresql-doc-15", "usr/share/doc/postgresql-doc-15/html", "index.html"),
    Place("git-doc", "usr/share/doc/git-doc", "index.html"),
)


class FolderSite(SimWeb):
    """A folder as the one host of a simulated web, with tables of links beside its documents."""

    def __init__(self, root: Path) -> None:
        robots = {"rules": 0.0, "sitemap": 0.0, "missing": 1.0}
        super().__init__(
            SimSettings(hosts=1, pages=64, robots=robots, rtt_ms=RTT_MS, transfer_bytes_s=TRANSFER_BYTES_S)
        )
        self._root = root
        self._document = lru_cache(KEPT_PAGES)(self._read)
        self._tol = lru_cache(KEPT_PAGES)(self._made_tol)

    def answer(self, host: int, target: str, time_s: float = 0.0, elapsed_s: float = 0.0) -> Answer:
        path = target.partition("?")[0].removeprefix("/") or "index.html"
        name = path.removesuffix(".tol") + ".html" if path.endswith(".tol") else path
        body = self._document(name) if name.endswith(".html") else None
        if body is None:
            return NOT_FOUND
        return Answer(200, body) if path == name else Answer(200, self._tol(name), "text/plain; charset=utf-8")

    def _read(self, name: str) -> bytes | None:
        file = self._root / name
        return file.read_bytes() if ".." not in name and file.is_file() else None

    def _made_tol(self, name: str) -> bytes:
        made = tables_of(
            self._document(name) or b"", AugmentOptions(), name=Path(name).name, content_type="text/html"
        ).tol
        return made or b""


class Took(NamedTuple):
    seconds: float
    idle_percent: float
    pages: int
    tables: int


def run(place: Place, mode: str) -> Took:
    site = FolderSite(package(place.package) / place.root)
    manners = {"delay_s": 0.0, "per_host": TRANSFERS, "per_ip": TRANSFERS, "transfers": TRANSFERS}
    rules = AuditRules(delay_s=0.0, per_host=TRANSFERS, per_ip=TRANSFERS)
    seed = f"{site.linker.origin(0)}/{place.front}"
    with tempfile.TemporaryDirectory(prefix="lycosa-bench-") as folder:
        options = {"scope": "host", "mine": "off", **manners, **MODES[mode]}
        done = crawl(site, Path(folder) / "crawl", seed, rules=rules, **options)
    seconds = max(entry.end for entry in done.entries)
    busy = sum(entry.end - entry.start for entry in done.entries)
    tables = sum(entry.path.endswith(".tol") for entry in done.entries)
    return Took(seconds, 100 * (1 - busy / (TRANSFERS * seconds)), len(done.urls), tables)


def main() -> None:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    print(f"{'site':<20}{'mode':<14}{'pages':>7}{'seconds':>10}{'saved %':>9}{'idle %':>8}{'tables':>8}")
    for place in PLACES:
        neither = run(place, "neither")
        for mode in MODES:
            say(f"{place.package}, {mode}")
            took = neither if mode == "neither" else run(place, mode)
            saved = 100 * (1 - took.seconds / neither.seconds)
            numbers = f"{took.pages:>7,}{took.seconds:>10.1f}{saved:>9.1f}{took.idle_percent:>8.1f}{took.tables:>8,}"
            print(f"{place.package:<20}{mode:<14}{numbers}", flush=True)


if __name__ == "__main__":
    main()
