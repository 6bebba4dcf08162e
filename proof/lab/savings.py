"""What a month of keeping fresh costs: the real crawler on the simulated web in virtual time, beside downloading all.

After a crawl `recrawl` runs once a day for thirty simulated days, first with the budget that it has by default. Every
request is in the web's log, so for every page and moment it is known when it was seen last, and the web says whether it
has changed since: that is the freshness reached. Beside it stands whoever downloads everything again and again, all
pages equally often and unconditionally; how often is worked out on the same web so that the freshness is the same.
Bytes are those on the wire, header blocks included.
"""

from bisect import bisect_right
from collections import defaultdict
from typing import NamedTuple

import msgspec

from lycosa.crawl import Recrawl
from lycosa.simweb import LoggedRequest, SimSettings, SimWeb
from lycosa.simweb.layout import PagePlace
from lycosa.simweb.pages import DAY_S
from lycosa.simweb.vocabulary import mix, unit
from lycosa.tables import TVI, table_url
from proof import Axis, Bar, Column, ColumnChart, Experiment, PaperFigure, Run
from proof.ground.commands import scratch
from proof.ground.memory_crawl import look

DAYS, QUICK_DAYS = 30, 6
BUDGETS = (None, 0.5, 1.0)  # visits a page and day; None: as `recrawl` has it, which is what the bars are about
QUARTER = 25.0  # percent of the bytes of downloading everything
SAMPLES_A_DAY = 2
PHASES = 8  # moments in its round at which a page is looked at, for whoever downloads everything
SHORTEST_ROUND, LONGEST_ROUND = 0.02, 60.0  # days
NOT_PAGES = ("robots.txt", ".xml", ".gz", ".tol", ".tvi", ".png")
PHASE_PURPOSE = 91


class Seen(NamedTuple):
    """A page, the bytes of its document, when it was seen, in seconds, and whether a document was sent each time."""

    place: PagePlace
    size: int
    times: list[float]
    sent: list[bool]


class Kept(NamedTuple):
    """What a budget came to, and what the same freshness would have taken without Lycosa. `sent_in_vain` are documents
    that were sent again though their content had not changed, of `unchanged` visits that found it so."""

    budget: float | None
    pages: int
    fresh: float
    requests: int
    spent: int
    round_days: float
    anew: float
    unchanged: int
    sent_in_vain: int

    @property
    def share(self) -> float:
        return 100 * self.spent / self.anew

    @property
    def name(self) -> str:
        if self.budget is None:
            return "the default budget"
        return f"{self.budget:g} visit{'s' * (self.budget != 1)} a page and day"


def measure(run: Run) -> None:
    hosts, pages, days = (4, 120, QUICK_DAYS) if run.quick else (10, 500, DAYS)
    for name, value in (("hosts", hosts), ("pages", pages), ("days", days)):
        run.setting(name, value)
    web = SimWeb(SimSettings(seed=run.seed, hosts=hosts, pages=pages))
    found = []
    with run.progress(len(BUDGETS), "months") as step:
        for budget in BUDGETS:
            found.append(weighed(web, kept_fresh(web, days, budget), days, budget))
            step.advance()
    _report(run, found, days)


def weighed(web: SimWeb, entries: list[LoggedRequest], days: int, budget: float | None) -> Kept:
    """What was sent beyond the first fetch of everything, and what downloading all would have taken to be as fresh."""
    firsts, again = set[tuple[str, str]](), list[LoggedRequest]()
    for entry in entries:
        if (entry.host, entry.path) in firsts:
            again.append(entry)
        firsts.add((entry.host, entry.path))
    seen = pages_of(web, entries)
    fresh = freshness(web, seen, days)
    round_days = round_for(web, seen, days, fresh)
    anew = sum(page.size for page in seen) * days / round_days
    unchanged, in_vain = visits_in_vain(web, seen)
    return Kept(
        budget, len(seen), fresh, len(again), sum(entry.bytes for entry in again), round_days, anew, unchanged, in_vain
    )


def kept_fresh(web: SimWeb, days: int, budget: float | None) -> list[LoggedRequest]:
    """The log of a crawl and of a recrawl a day."""
    with scratch() as folder:
        into = folder / "crawl"
        first = look(web, into, days=0)
        entries, visits = first.entries, None if budget is None else int(budget * first.stats.pages)
        for day in range(1, days):
            later = look(web, into, days=day, recrawl=Recrawl(budget=visits)).entries
            entries += [msgspec.structs.replace(one, end=one.end + day * DAY_S) for one in later]
    return entries


def _report(run: Run, found: list[Kept], days: int) -> None:
    kept = found[0]
    spared = 100 * (1 - kept.sent_in_vain / max(kept.unchanged, 1))
    run.figure("pages", kept.pages)
    run.figure("fresh", 100 * kept.fresh, "%")
    run.figure("visits without a change that fetched no document", spared, "%")
    run.figure("bytes of downloading everything", kept.share, "%")
    rows: list[tuple[str | int | float, ...]] = []
    for one in found:
        rounds = days / one.round_days
        fresh, share = round(100 * one.fresh, 2), round(one.share, 1)
        rows.append((f"recrawl, {one.name}", one.requests, round(one.spent / 1e6, 2), fresh, share))
        rows.append(
            (f"all, every {one.round_days:.2f} days", int(one.pages * rounds), round(one.anew / 1e6, 2), fresh, 100)
        )
    run.table(["who", "requests", "MB", "fresh %", "bytes %"], rows)
    run.remark(
        f"That only what changed is fetched again holds as far as servers allow it: {spared:.0f} % of the visits that "
        "found the content unchanged fetched headers or a table, the others a whole document, in which a volatile part "
        "was another one."
    )
    reached = next((one for one in found if one.share <= QUARTER), None)
    where = f"reached at {reached.name} ({reached.share:.0f} %)" if reached else "not reached at any of these"
    if kept.share > QUARTER:
        run.remark(
            f"That this takes a quarter of the bytes of downloading everything does not hold at the default budget, "
            f"where it takes {kept.share:.0f} %: so few visits go to pages that do change. A quarter is {where}."
        )
    columns = tuple(Column(str(row[0]), float(row[2])) for row in rows)
    run.plot(ColumnChart("Bytes for the same freshness", Axis("received", "MB"), columns))


def pages_of(web: SimWeb, entries: list[LoggedRequest]) -> list[Seen]:
    """Every page that was fetched, and when it was looked at, itself or by its table."""
    looks: dict[tuple[int, str], list[tuple[float, bool]]] = defaultdict(list)
    sizes: dict[tuple[int, str], int] = {}
    for entry in entries:
        host, path = web.layout.host_number(entry.host), entry.path
        if host is not None and path.endswith(".tvi") and entry.status in (200, 304):
            looks[host, path].append((entry.end, False))
        if host is None or path.endswith(NOT_PAGES) or entry.status not in (200, 304, 404, 410):
            continue
        looks[host, path].append((entry.end, entry.status == 200))
        if entry.status == 200:
            sizes[host, path] = entry.bytes
    found = []
    for (host, path), size in sizes.items():
        place = web.layout.locate(host, path)
        if place is not None:
            by_table = looks.get((host, table_url(path, TVI) or ""), [])
            times, sent = zip(*sorted([*looks[host, path], *by_table]), strict=True)
            found.append(Seen(place, size, list(times), list(sent)))
    return found


def visits_in_vain(web: SimWeb, pages: list[Seen]) -> tuple[int, int]:
    """How many visits found the content as it was, and in how many of these the document was sent all the same."""
    unchanged = in_vain = 0
    for page in pages:
        for visit in range(1, len(page.times)):
            if _is_as_seen(web, page.place, page.times[visit - 1], page.times[visit]):
                unchanged += 1
                in_vain += page.sent[visit]
    return unchanged, in_vain


def _is_as_seen(web: SimWeb, place: PagePlace, seen_s: float, now_s: float) -> bool:
    """Is the content the same as it was? Volatile parts and images are not asked about."""
    source = web.pages.source(place)
    old, new = web.state(source, seen_s), web.state(source, now_s)
    is_there = web.state(place, seen_s).gone == web.state(place, now_s).gone
    return is_there and (old.text, old.structure) == (new.text, new.structure)


def _moments(days: int) -> list[float]:
    return [(number + 0.5) * DAY_S / SAMPLES_A_DAY for number in range(days * SAMPLES_A_DAY)]


def freshness(web: SimWeb, pages: list[Seen], days: int) -> float:
    """The share of pages that are as they were seen last, over the whole time."""
    moments, fresh, asked = _moments(days), 0, 0
    for page in pages:
        for now in moments:
            place = bisect_right(page.times, now)
            if place:
                asked += 1
                fresh += _is_as_seen(web, page.place, page.times[place - 1], now)
    return fresh / max(asked, 1)


def freshness_of_rounds(web: SimWeb, pages: list[Seen], days: int, round_days: float) -> float:
    """The same for whoever looks at every page once in so many days, each at its own moment."""
    moments, fresh, asked = _moments(days)[:: max(1, days * SAMPLES_A_DAY // PHASES)], 0, 0
    length = round_days * DAY_S
    for page in pages:
        offset = unit(mix(web.pages.key(page.place), 0, PHASE_PURPOSE)) * length
        for now in moments:
            last = max(0.0, now - (now + offset) % length)
            asked += 1
            fresh += _is_as_seen(web, page.place, last, now)
    return fresh / max(asked, 1)


def round_for(web: SimWeb, pages: list[Seen], days: int, wanted: float) -> float:
    """The longest round, in days, by which everything is as fresh as wanted."""
    low, high = SHORTEST_ROUND, LONGEST_ROUND
    for _ in range(12):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if freshness_of_rounds(web, pages, days, middle) >= wanted else (low, middle)
    return low


EXPERIMENT = Experiment(
    name="savings",
    summary="what a month of keeping fresh costs, beside downloading everything anew",
    claim_id="Y12",
    claim="Only what changed is fetched and stored again.",
    bars=(Bar("much less than downloading everything", "bytes of downloading everything", "<=", 60.0),),
    papers=(
        PaperFigure(
            "Y12",
            "only what changed is fetched again: bytes of downloading everything",
            "",
            "bytes of downloading everything",
        ),
    ),
    run=measure,
)
