"""What it takes to keep a changing site fresh for a month: whole documents, conditional requests, tables.

Every page is looked at once a day on simulated time. After each visit what the visitor has is compared with what the
web serves at that moment, byte by byte. Requests and answers are counted whole, heads included, and everything is sent
compressed: without that, tables would look better than they are.
"""

from functools import lru_cache

from lycosa.simweb import SimSettings, SimWeb
from lycosa.simweb.layout import FOLDER_PAGES, PagePlace
from lycosa.simweb.pages import DAY_S
from proof import Axis, Bar, Column, Columns, Experiment, Lines, Run
from proof import Line as Curve
from proof.progress import Step
from proof.table_visits import Line, Stored, Visitor, by_table, conditional, whole

PAGES, QUICK_PAGES = 1_000, 200
HOSTS = 4
DAYS = 30
WAYS: dict[str, Visitor] = {"whole documents": whole, "conditional requests": conditional, "tables": by_table}
WANTED = 5.0


class Kept:
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
) -> tuple[dict[str, Kept], dict[str, Kept]]:
    """All ways side by side: those pages that have volatile parts, and all of them."""
    answer = lru_cache(8)(web.answer)  # the ways ask for the same at the same time
    volatile, every = ({name: Kept() for name in WAYS} for _ in range(2))
    stored: dict[tuple[str, PagePlace], Stored] = {}
    for day in range(DAYS + 1):
        for kept in (*volatile.values(), *every.values()):
            if day:
                kept.bytes_by_day.append(kept.bytes)
        for place in places:
            path, time_s = web.layout.path_of(place), day * DAY_S
            truth = answer(place.host, path, time_s)
            for name, visit in WAYS.items():
                line = Line(answer)
                has = visit(line, place.host, path, time_s, stored.get((name, place), Stored()))
                stored[name, place] = has
                is_wrong = has.body != (truth.body if truth.status == 200 else None)
                for kept in (every[name], volatile[name])[: 1 + (place in marked)]:
                    kept.wrong += is_wrong
                    if day:  # the first visit is the crawl, and the same for all
                        kept.requests += line.requests
                        kept.bytes_by_day[-1] += line.bytes
        step.advance(1 if day else 0)
    return volatile, every


def _report(run: Run, volatile: dict[str, Kept], every: dict[str, Kept], marked: int, pages: int) -> None:
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
    lines = tuple(Curve(name, days, [size / 1e6 for size in kept.bytes_by_day]) for name, kept in volatile.items())
    run.plot(Lines("Pages with volatile parts, kept fresh", Axis("time", "days"), Axis("transferred", "MB"), lines))
    for title, count, ways in (
        ("Pages with volatile parts", marked, volatile),
        ("All pages of the site", pages, every),
    ):
        columns = tuple(Column(name, kept.bytes / count / DAYS) for name, kept in ways.items())
        run.plot(Columns(title, Axis("bytes a visit", "B"), columns))


def _times(ways: dict[str, Kept], other: str) -> float:
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
    run=measure,
)
