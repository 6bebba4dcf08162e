"""What it takes to keep a changing site fresh for a month: whole documents, conditional requests, tables.

Every page is looked at once a day on simulated time. After each visit what the visitor has is compared with what the
web serves at that moment, byte by byte. Requests and answers are counted whole, heads included, and everything is sent
compressed: without that, tables would look better than they are. A visitor has what it stored and nothing else: whether
a page has a table it sees by the marks in what it stored.
"""

import gzip
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple, Protocol

from lycosa.recrawl.table_revisits import SAME_TABLES_MOST, TABLE_VISITS_MOST
from lycosa.simweb import Answer, SimSettings, SimWeb
from lycosa.simweb.layout import FOLDER_PAGES, PagePlace
from lycosa.simweb.pages import DAY_S
from lycosa.simweb.protocol import WireRequest, WireResponse, to_wire
from lycosa.tables import TVI, TableRefusal, Tvi, parse_tvi, patch_document, table_url
from lycosa.web import marked_parts
from proof import Axis, Bar, Column, ColumnChart, Experiment, Line, LineChart, PaperFigure, Run
from proof.progress import Step

REQUEST_BYTES = 200  # of a request, about: its line, host, agent, accepted types and codings


class StoredPage(NamedTuple):
    """What a visitor keeps of a page: its document, the validators of the document and of its table, and how many
    visits in a row fetched only that table, and found it as it was."""

    body: bytes | None = None
    etag: str = ""
    modified: str = ""
    table_etag: str = ""
    by_table: int = 0
    same_tables: int = 0


Answers = Callable[[int, str, float], Answer]


class CountedLine:
    """The way to the web: asks, and counts what that takes."""

    def __init__(self, answer: Answers) -> None:
        self._answer = answer
        self.requests = self.bytes = 0

    def get(self, host: int, path: str, time_s: float, *, etag: str = "", modified: str = "") -> WireResponse:
        asked = WireRequest(accept_encoding="gzip", if_none_match=etag, if_modified_since=modified)
        message = to_wire(self._answer(host, path, time_s), asked, time_s=time_s, gzip=True)
        self.requests += 1
        self.bytes += REQUEST_BYTES + len(etag) + len(modified) + message.size_bytes
        return message


class Visitor(Protocol):
    """One way of looking again. Gives what it has after the visit; a body of None: the page is gone."""

    def __call__(self, line: CountedLine, host: int, path: str, time_s: float, stored: StoredPage) -> StoredPage: ...


def whole(line: CountedLine, host: int, path: str, time_s: float, stored: StoredPage) -> StoredPage:
    """The document, every time."""
    return _kept(line.get(host, path, time_s), stored)


def conditional(line: CountedLine, host: int, path: str, time_s: float, stored: StoredPage) -> StoredPage:
    """The document, if its validators say that it changed."""
    if stored.body is None:
        return whole(line, host, path, time_s, stored)
    return _kept(line.get(host, path, time_s, etag=stored.etag, modified=stored.modified), stored)


def by_table(line: CountedLine, host: int, path: str, time_s: float, stored: StoredPage) -> StoredPage:
    """The table, where the stored document has volatile parts; the document where the table shows that it must be, and
    as often as the crawl asks for it anyway."""
    where = table_url(path, TVI)
    if stored.by_table >= TABLE_VISITS_MOST or stored.same_tables >= SAME_TABLES_MOST:
        return conditional(line, host, path, time_s, stored)._replace(table_etag="", by_table=0, same_tables=0)
    if stored.body is None or where is None or not marked_parts(stored.body, is_xml=False):
        return conditional(line, host, path, time_s, stored)
    answer = line.get(host, where, time_s, etag=stored.table_etag)
    if answer.status == 304:
        return stored._replace(by_table=stored.by_table + 1, same_tables=stored.same_tables + 1)
    found = parse_tvi(_body(answer)) if answer.status == 200 else TableRefusal.NOT_A_TABLE
    patched = patch_document(stored.body, found, is_xml=False) if isinstance(found, Tvi) else found
    if isinstance(patched, bytes):
        # the document's own validators are of a version that was never fetched, and would only be asked for in vain
        validators = (stored.etag, stored.modified) if patched == stored.body else ("", "")
        same_tables = stored.same_tables + 1 if patched == stored.body else 0
        return StoredPage(patched, *validators, _field(answer, "ETag"), stored.by_table + 1, same_tables)
    return conditional(line, host, path, time_s, stored)._replace(table_etag="", by_table=0, same_tables=0)


def _kept(answer: WireResponse, stored: StoredPage) -> StoredPage:
    if answer.status == 304:
        return stored
    if answer.status != 200:
        return StoredPage()
    return StoredPage(_body(answer), _field(answer, "ETag"), _field(answer, "Last-Modified"))


def _body(answer: WireResponse) -> bytes:
    return gzip.decompress(answer.body) if _field(answer, "Content-Encoding") == "gzip" else answer.body


def _field(answer: WireResponse, name: str) -> str:
    for line in answer.head.decode("latin-1").split("\r\n"):
        if line.startswith(f"{name}: "):
            return line[len(name) + 2 :]
    return ""


PAGES, QUICK_PAGES = 1_000, 200
HOSTS = 4
DAYS = 30
WAYS: dict[str, Visitor] = {"whole documents": whole, "conditional requests": conditional, "tables": by_table}
WANTED = 5.0


class MonthTotals:
    """One way over the month: bytes after each day, requests, visits that left something else than the truth."""

    def __init__(self) -> None:
        self.bytes_by_day = [0]
        self.requests = self.wrong = 0

    @property
    def bytes(self) -> int:
        return self.bytes_by_day[-1]


def measure(run: Run) -> None:
    web = SimWeb(SimSettings(seed=run.seed, hosts=HOSTS, pages=QUICK_PAGES if run.quick else PAGES, tables=1.0))
    places = [
        PagePlace(host, folder, page)
        for host in range(HOSTS)
        for folder in range(web.layout.folder_count(host))
        for page in range(FOLDER_PAGES)
        if _is_there(web, PagePlace(host, folder, page))
    ]
    marked = [place for place in places if web.pages.has_marked_volatile(web.pages.source(place))]
    for name, value in (("hosts", HOSTS), ("pages", len(places)), ("with volatile parts", len(marked)), ("days", DAYS)):
        run.setting(name, value)
    run.setting("visits", "each page once a day")
    run.setting("content coding", "gzip for all")
    with run.progress(DAYS, "days") as step:
        volatile, every = _month(web, places, frozenset(marked), step)
    _report(run, volatile, every, len(marked), len(places))


def _is_there(web: SimWeb, place: PagePlace) -> bool:
    folder = web.layout.folder(place.host, place.folder)
    is_page = place.page <= folder.articles + folder.series
    return is_page and web.layout.locate(place.host, web.layout.path_of(place)) == place


def _month(
    web: SimWeb, places: list[PagePlace], marked: frozenset[PagePlace], step: Step
) -> tuple[dict[str, MonthTotals], dict[str, MonthTotals]]:
    """All ways side by side: those pages that have volatile parts, and all of them."""
    answer = lru_cache(8)(web.answer)  # the ways ask for the same at the same time
    volatile, every = ({name: MonthTotals() for name in WAYS} for _ in range(2))
    stored: dict[tuple[str, PagePlace], StoredPage] = {}
    for day in range(DAYS + 1):
        for kept in (*volatile.values(), *every.values()):
            if day:
                kept.bytes_by_day.append(kept.bytes)
        for place in places:
            path, time_s = web.layout.path_of(place), day * DAY_S
            truth = answer(place.host, path, time_s)
            for name, visit in WAYS.items():
                line = CountedLine(answer)
                has = visit(line, place.host, path, time_s, stored.get((name, place), StoredPage()))
                stored[name, place] = has
                is_wrong = has.body != (truth.body if truth.status == 200 else None)
                for kept in (every[name], volatile[name])[: 1 + (place in marked)]:
                    kept.wrong += is_wrong
                    if day:  # the first visit is the crawl, and the same for all
                        kept.requests += line.requests
                        kept.bytes_by_day[-1] += line.bytes
        step.advance(1 if day else 0)
    return volatile, every


def _report(run: Run, volatile: dict[str, MonthTotals], every: dict[str, MonthTotals], marked: int, pages: int) -> None:
    run.figure("bytes of whole documents for one with tables", _times(volatile, "whole documents"), "×")
    run.figure("bytes of conditional requests for one with tables", _times(volatile, "conditional requests"), "×")
    run.figure("the same over all pages, whole documents", _times(every, "whole documents"), "×")
    run.figure("the same over all pages, conditional requests", _times(every, "conditional requests"), "×")
    run.figure(
        "visits that left something else than the truth", sum(k.wrong for k in (*volatile.values(), *every.values()))
    )
    rows = [
        (which, name, count * DAYS, kept.requests, round(kept.bytes / 1e6, 2), round(kept.bytes / count / DAYS))
        for which, count, ways in (("with volatile parts", marked, volatile), ("all", pages, every))
        for name, kept in ways.items()
    ]
    run.table(["pages", "by", "visits", "requests", "MB", "bytes a visit"], rows)
    days = [float(day) for day in range(DAYS + 1)]
    lines = tuple(Line(name, days, [size / 1e6 for size in kept.bytes_by_day]) for name, kept in volatile.items())
    run.plot(LineChart("Pages with volatile parts, kept fresh", Axis("time", "days"), Axis("transferred", "MB"), lines))
    for title, count, ways in (
        ("Pages with volatile parts", marked, volatile),
        ("All pages of the site", pages, every),
    ):
        columns = tuple(Column(name, kept.bytes / count / DAYS) for name, kept in ways.items())
        run.plot(ColumnChart(title, Axis("bytes a visit", "B"), columns))


def _times(ways: dict[str, MonthTotals], other: str) -> float:
    return ways[other].bytes / ways["tables"].bytes


EXPERIMENT = Experiment(
    name="tvi",
    summary="bytes that keep a changing site fresh for a month",
    claim_id="P7",
    claim="On a revisit only the table of volatile information is fetched and patched into the stored document.",
    bars=(
        Bar("far fewer bytes", "bytes of whole documents for one with tables", ">=", WANTED),
        Bar("the same content", "visits that left something else than the truth", "<=", 0),
    ),
    papers=(
        PaperFigure(
            "P7",
            "a revisit fetches the table of volatile information alone",
            "",
            "bytes of whole documents for one with tables",
        ),
    ),
    run=measure,
)
