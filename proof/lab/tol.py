"""What links before their document are worth: tables of links, early links, both, neither, on one slow site.

The real crawler on virtual time. The setting was fixed before the first run: 500 pages of 60 links, a round trip of
50 ms, 30 KB/s a transfer, 8 transfers to the host, no delay, five webs. Whether early links help depends on the site:
where a page is first linked from one of the eight pages before it, transfers stand idle for want of links; where it is
linked from any earlier page they never do, and there is nothing to win. Both are measured, and what lies between. The
share of time that transfers stand idle with neither is all that links can save, however early they come.
"""

from collections.abc import Callable
from functools import lru_cache
from statistics import mean
from typing import Any, NamedTuple

from lycosa.simweb import Answer, AuditRules, SimSettings, SimWeb
from lycosa.simweb.vocabulary import lognormal_table
from lycosa.simweb.web import NOT_FOUND
from lycosa.tables import AugmentOptions, tables_of
from proof import Axis, Bar, Column, ColumnChart, Experiment, Line, LineChart, Mark, PaperFigure, Run
from proof.ground.commands import scratch
from proof.ground.memory_crawl import crawl
from proof.progress import Step

MEDIAN_BYTES, BYTES_SIGMA = 14_000, 0.5
LINKS = 60
PARENT, LINK, SIZE, ORDER = 90, 91, 92, 93  # purposes of draws
_BYTES = lognormal_table(MEDIAN_BYTES, BYTES_SIGMA)


class LocalSite(SimWeb):
    """One host of `count` pages. `window` None: as wide as the site."""

    def __init__(
        self, *, seed: int, count: int, window: int | None, rtt_ms: float = 0.0, transfer_bytes_s: float = 0.0
    ) -> None:
        robots = {"rules": 0.0, "sitemap": 0.0, "missing": 1.0}
        super().__init__(
            SimSettings(
                seed=seed,
                hosts=1,
                pages=max(count, 64),
                robots=robots,
                rtt_ms=rtt_ms,
                transfer_bytes_s=transfer_bytes_s,
            )
        )
        self.count = count
        self._children: list[list[int]] = [[] for _ in range(count)]
        for page in range(1, count):
            first = max(0, page - window) if window else 0
            self._children[first + self.draws.mix(page, 0, PARENT) % (page - first)].append(page)
        self._table_of = lru_cache(count)(self._made_table)

    def front(self) -> str:
        return f"{self.linker.origin(0)}/"

    def answer(self, host: int, target: str, time_s: float = 0.0, elapsed_s: float = 0.0) -> Answer:
        name, _, ending = target.removeprefix("/").rpartition(".")
        page = self._number(target) if ending != "tol" else self._number("/" if name == "index" else f"/{name}.html")
        if page is None:
            return NOT_FOUND
        if ending == "tol":
            return Answer(200, self._table_of(page), "text/plain; charset=utf-8")
        return Answer(200, self._body(page))

    def _number(self, path: str) -> int | None:
        if path == "/":
            return 0
        digits = path.removeprefix("/p").removesuffix(".html")
        page = int(digits) if digits.isdecimal() and len(digits) < 9 else self.count
        return page if 0 < page < self.count and path == self._path(page) else None

    def _path(self, page: int) -> str:
        return f"/p{page}.html" if page else "/"

    def _hrefs(self, page: int) -> list[str]:
        """Sixty links in any order: to the pages found here, to earlier ones, to elsewhere."""
        found = [self._path(child) for child in self._children[page]]
        known: dict[str, None] = {}
        for draw in range(4 * LINKS):
            known[self._path(self.draws.mix(page, draw, LINK) % (page + 1))] = None
        found += [path for path in known if path not in found][: LINKS - len(found)]
        found += [f"http://other.example/{page}-{i}" for i in range(LINKS - len(found))]
        return sorted(found, key=lambda href: self.draws.text_hash(f"{page} {href}", ORDER))

    def _body(self, page: int) -> bytes:
        """Links among prose, evenly, as much of it as the page's size asks for."""
        hrefs, pool = self._hrefs(page), self.vocabulary.passages[page % 16]
        wanted = _BYTES[self.draws.mix(page, 0, SIZE) & 1023]
        pieces = [f'<a href="{href}">{pool[i][:24]}</a>' for i, href in enumerate(hrefs)]
        prose: list[str] = []
        size = sum(map(len, pieces))
        while size < wanted:
            prose.append(f"<p>{pool[self.draws.mix(page, len(prose), SIZE) % len(pool)]} {len(prose)}</p>")
            size += len(prose[-1])
        share = len(prose) / len(pieces)
        lines = [f"{piece}\n{''.join(prose[int(i * share) : int((i + 1) * share)])}" for i, piece in enumerate(pieces)]
        head = f"<!DOCTYPE html><html><head><title>Page {page}</title></head><body><h1>Page {page}</h1>\n"
        return f"{head}{''.join(lines)}</body></html>\n".encode()

    def _made_table(self, page: int) -> bytes:
        name = self._path(page).removeprefix("/") or "index.html"
        made = tables_of(self._body(page), AugmentOptions(), name=name, content_type="text/html").tol
        assert made is not None
        return made


PAGES, QUICK_PAGES = 500, 120
SEEDS, QUICK_SEEDS = 5, 2
RTT_MS, TRANSFER_BYTES_S, TRANSFERS = 50.0, 30_000.0, 8
NARROW = 8  # pages before a page, one of which links to it first
WIDE = None
BETWEEN, BETWEEN_SEEDS = (2, 4, 12, 16, 32), 2  # for the curve
PAPER_PERCENT = 15.1
MODES: dict[str, dict[str, Any]] = {
    "neither": {"tables": "off", "eager": False},
    "tables": {"tables": "auto", "eager": False},
    "early links": {"tables": "off", "eager": True},
    "both": {"tables": "auto", "eager": True},
}
ALWAYS: dict[str, dict[str, Any]] = {"tables, always first": {"tables": "always", "eager": False}}


class TimedCrawl(NamedTuple):
    """One crawl: seconds to its last byte, the share of them in which a transfer stood idle, pages, requests, tables
    among them, and whether the rules were kept."""

    seconds: float
    idle: float
    pages: int
    requests: int
    tables: int
    is_polite: bool


class WindowCrawls(NamedTuple):
    """The crawls of one window by mode, one for each web."""

    window: int | None
    took: dict[str, list[TimedCrawl]]

    def saved(self, mode: str) -> list[float]:
        """For each web: per cent less time than with neither."""
        pairs = zip(self.took["neither"], self.took[mode], strict=True)
        return [100 * (1 - other.seconds / neither.seconds) for neither, other in pairs]

    def idle(self, mode: str) -> float:
        """Per cent of the transfers' time."""
        return 100 * mean(took.idle for took in self.took[mode])

    def seconds(self, mode: str) -> list[float]:
        return [took.seconds for took in self.took[mode]]


def measure(run: Run) -> None:
    pages, seeds = (QUICK_PAGES, QUICK_SEEDS) if run.quick else (PAGES, SEEDS)
    settings: dict[str, str | int] = {
        "pages": pages,
        "links on a page": LINKS,
        "round trip": f"{RTT_MS:g} ms",
        "bandwidth of a transfer": f"{TRANSFER_BYTES_S / 1000:g} KB/s",
        "transfers": TRANSFERS,
        "delay": "0 s",
        "webs": seeds,
        "a page is first linked from": f"one of the {NARROW} pages before it; saturated: any earlier page",
    }
    for name, value in settings.items():
        run.setting(name, value)
    plan: dict[int | None, tuple[int, dict[str, dict[str, Any]]]] = dict.fromkeys(
        (NARROW, WIDE), (seeds, MODES | ALWAYS)
    )
    if not run.quick:
        plan |= dict.fromkeys(BETWEEN, (BETWEEN_SEEDS, MODES))
    total = pages * sum(webs * len(modes) for webs, modes in plan.values())
    with run.progress(total, "pages") as step:
        crawls = {
            window: WindowCrawls(
                window,
                {
                    name: [_crawl(run.seed + i, pages, window, mode, step) for i in range(webs)]
                    for name, mode in modes.items()
                },
            )
            for window, (webs, modes) in plan.items()
        }
    _report(run, crawls, pages)


def timed_crawl(
    site: SimWeb, start: str, mode: dict[str, Any], advance: Callable[[int], None] = lambda pages: None
) -> TimedCrawl:
    rules = AuditRules(delay_s=0.0, per_host=TRANSFERS, per_ip=TRANSFERS)
    manners = {"delay_s": 0.0, "per_host": TRANSFERS, "per_ip": TRANSFERS, "transfers": TRANSFERS}
    with scratch() as folder:
        options: dict[str, Any] = {"scope": "host", "mine": "off", **manners, **mode}
        done = crawl(site, folder / "crawl", start, advance=advance, rules=rules, **options)
    tables = sum(entry.path.endswith(".tol") for entry in done.entries)
    seconds = max(entry.end for entry in done.entries)
    busy = sum(entry.end - entry.start for entry in done.entries)
    idle = 1 - busy / (TRANSFERS * seconds)
    return TimedCrawl(seconds, idle, len(done.urls), len(done.entries), tables, done.is_polite)


def _crawl(seed: int, pages: int, window: int | None, mode: dict[str, Any], step: Step) -> TimedCrawl:
    site = LocalSite(seed=seed, count=pages, window=window, rtt_ms=RTT_MS, transfer_bytes_s=TRANSFER_BYTES_S)
    return timed_crawl(site, site.front(), mode, step.advance)


def _report(run: Run, crawls: dict[int | None, WindowCrawls], pages: int) -> None:
    narrow, wide = crawls[NARROW], crawls[WIDE]
    run.figure("less time with tables", mean(narrow.saved("tables")), "%")
    run.figure("least of the webs", min(narrow.saved("tables")), "%")
    run.figure("less time with early links", mean(narrow.saved("early links")), "%")
    run.figure("less time with both", mean(narrow.saved("both")), "%")
    run.figure("idle with neither: all that can be saved", narrow.idle("neither"), "%")
    run.figure("saturated, idle with neither", wide.idle("neither"), "%")
    run.figure("saturated, more time with tables", -mean(wide.saved("tables")), "%")
    run.figure("saturated, more time with tables, worst of the webs", -min(wide.saved("tables")), "%")
    every = [took for case in crawls.values() for mode in case.took.values() for took in mode]
    run.figure("pages missed", sum(pages - took.pages for took in every))
    run.figure("crawls that broke a rule", sum(not took.is_polite for took in every))
    crawls = dict(sorted(crawls.items(), key=lambda item: item[0] or pages))
    rows = [_row(case, mode) for case in crawls.values() for mode in case.took]
    run.table(
        ["first link within", "mode", "seconds", "least", "most", "saved %", "idle %", "requests", "tables"], rows
    )
    _plot(run, crawls)


def _row(case: WindowCrawls, mode: str) -> tuple[str | int | float, ...]:
    took, seconds = case.took[mode], case.seconds(mode)
    return (
        _within(case.window),
        mode,
        round(mean(seconds), 1),
        round(min(seconds), 1),
        round(max(seconds), 1),
        round(mean(case.saved(mode)), 1),
        round(case.idle(mode), 1),
        round(mean(one.requests for one in took)),
        round(mean(one.tables for one in took)),
    )


def _within(window: int | None) -> str:
    return "all before" if window is None else f"{window} before"


def _plot(run: Run, crawls: dict[int | None, WindowCrawls]) -> None:
    for window, title in ((NARROW, "Links are scarce: tables save time"), (WIDE, "Links are plenty: nothing to save")):
        case = crawls[window]
        columns = tuple(
            Column(mode, mean(seconds := case.seconds(mode)), min(seconds), max(seconds)) for mode in case.took
        )
        run.plot(ColumnChart(title, Axis("time for all pages", "s"), columns))
    bounded = [case for window, case in crawls.items() if window is not None]
    x = [float(case.window or 0) for case in bounded]
    lines = []
    for mode in ("tables", "early links", "both"):
        saved = [case.saved(mode) for case in bounded]
        lines.append(Line(mode, x, list(map(mean, saved)), list(map(min, saved)), list(map(max, saved))))
    idle = [[100 * took.idle for took in case.took["neither"]] for case in bounded]
    lines.append(Line("idle with neither", x, list(map(mean, idle)), list(map(min, idle)), list(map(max, idle))))
    axis = Axis("pages before a page, one of which links to it first", log=True)
    mark = Mark(PAPER_PERCENT, f"the paper's {PAPER_PERCENT} %")
    run.plot(LineChart("What is saved depends on the site", axis, Axis("time saved", "%"), tuple(lines), (mark,)))


EXPERIMENT = Experiment(
    name="tol",
    summary="time with tables of links, early links, both and neither",
    claim_id="P4",
    claim="The paper's crawler takes 15.1 % less time where documents have tables of links.",
    bars=(
        Bar("tables save time", "less time with tables", ">=", PAPER_PERCENT),
        Bar("and cost none where they cannot", "saturated, more time with tables", "<=", 2.0),
        Bar("nothing is missed", "pages missed", "<=", 0),
        Bar("polite", "crawls that broke a rule", "<=", 0),
    ),
    papers=(PaperFigure("P4", "less time where documents have tables of links", "15.1 %", "less time with tables"),),
    run=measure,
)
