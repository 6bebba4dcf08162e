"""What tables of links are worth on real documentation, in the setting of `make lab NAME=tol` but for the pages.

The real crawler on virtual time crawls all HTML of Debian packages through the simulated web's transport: round trip
50 ms, 30 KB/s a transfer, 8 transfers, delay 0. Beside the time stands the share of it in which transfers stood idle
with neither tables nor early links: that is all that links can save, however early they come. No bar: the figures say
which real sites are narrow enough for tables to help.
"""

from functools import lru_cache
from pathlib import Path

from lycosa.simweb import Answer, SimSettings, SimWeb
from lycosa.simweb.web import NOT_FOUND
from lycosa.tables import AugmentOptions, tables_of
from proof import Experiment, Run
from proof.ground.sites import POSTGRESQL, RealSite
from proof.lab.tol import MODES, RTT_MS, TRANSFER_BYTES_S, TimedCrawl, timed_crawl

KEPT_PAGES = 2_000  # in memory


SITES = (
    RealSite("git-doc", "usr/share/doc/git-doc", "/index.html"),
    POSTGRESQL,
    RealSite("python3.11-doc", "usr/share/doc/python3.11/html", "/index.html"),
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


def crawl(site: RealSite, mode: str) -> TimedCrawl:
    web = FolderSite(site.folder())
    return timed_crawl(web, web.linker.origin(0) + site.start, MODES[mode])


def measure(run: Run) -> None:
    sites = SITES[:1] if run.quick else SITES
    rows: list[tuple[str | int | float, ...]] = []
    with run.progress(len(sites) * len(MODES), "crawls") as step:
        for site in sites:
            took = {}
            for mode in MODES:
                took[mode] = crawl(site, mode)
                step.advance()
            neither = took["neither"]
            for mode, each in took.items():
                saved = 100 * (1 - each.seconds / neither.seconds)
                numbers = each.pages, round(each.seconds, 1), round(saved, 1), round(100 * each.idle, 1), each.tables
                rows.append((site.package, mode, *numbers))
            run.figure(f"{site.package}: idle with neither", 100 * neither.idle, "%")
            run.figure(f"{site.package}: saved with tables", 100 * (1 - took["tables"].seconds / neither.seconds), "%")
    run.table(["site", "mode", "pages", "seconds", "saved %", "idle %", "tables"], rows)


EXPERIMENT = Experiment(
    name="tables",
    summary="tables of links on real documentation, by virtual time: what is there to save",
    run=measure,
)
