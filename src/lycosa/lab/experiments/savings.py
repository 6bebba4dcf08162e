"""What a month of keeping fresh costs: the real engine on the simulated web in virtual time, beside downloading all.

`crawl --keep-fresh` runs for thirty simulated days. Every request is in the web's log, so for every page and moment it
is known when it was seen last, and the web says whether it has changed since: that is the freshness reached. Beside it
stands whoever downloads everything again and again, all pages equally often and unconditionally; how often is worked
out on the same web so that the freshness is the same. Bytes are those on the wire, header blocks included.
"""

import asyncio
import tempfile
from bisect import bisect_right
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

from lycosa.engine.crawl import Crawl
from lycosa.lab import Axis, Bar, Column, Columns, Experiment, Run
from lycosa.simweb import SimSettings, SimWeb
from lycosa.simweb.change import DAY_S
from lycosa.simweb.draws import mix, unit
from lycosa.simweb.layout import Place
from lycosa.simweb.log import Entry
from lycosa.simweb.memory import MemoryWeb
from lycosa.simweb.virtual import run_virtual

DAYS, QUICK_DAYS = 30, 6
VISITS_A_PAGE = (1.0, 0.5)  # a day; the first is the one that the bar is about
SAMPLES_A_DAY = 2
PHASES = 8  # moments in its round at which a page is looked at, for whoever downloads everything
COMMIT_S = 60.0
SHORTEST_ROUND, LONGEST_ROUND = 0.02, 60.0  # days
NOT_PAGES = ("robots.txt", ".xml", ".gz", ".tol", ".tvi", ".png")
PHASE_PURPOSE = 91


class Seen(NamedTuple):
    """A page, the bytes of its document, and when it was seen, in seconds."""

    place: Place
    size: int
    times: list[float]


class Kept(NamedTuple):
    """What a budget came to, and what the same freshness would have taken without Lycosa."""

    budget: float
    pages: int
    fresh: float
    requests: int
    not_modified: int
    spent: int
    round_days: float
    anew: float

    @property
    def share(self) -> float:
        return self.spent / self.anew


def measure(run: Run) -> None:
    hosts, pages, days = (4, 120, QUICK_DAYS) if run.quick else (10, 500, DAYS)
    for name, value in (("hosts", hosts), ("pages", pages), ("days", days)):
        run.setting(name, value)
    web = SimWeb(SimSettings(seed=run.seed, hosts=hosts, pages=pages))
    found = []
    with run.progress(len(VISITS_A_PAGE), "months") as step:
        for budget in VISITS_A_PAGE:
            found.append(weighed(web, kept_fresh(web, days, budget), days, budget))
            step.advance()
    _report(run, found, days)


def weighed(web: SimWeb, entries: list[Entry], days: int, budget: float) -> Kept:
    """What was sent beyond the first fetch of everything, and what downloading all would have taken to be as fresh."""
    firsts, again = set[tuple[str, str]](), list[Entry]()
    for entry in entries:
        if (entry.host, entry.path) in firsts:
            again.append(entry)
        firsts.add((entry.host, entry.path))
    seen = pages_of(web, entries)
    fresh = freshness(web, seen, days)
    round_days = round_for(web, seen, days, fresh)
    anew = sum(page.size for page in seen) * days / round_days
    not_modified = sum(entry.status == 304 for entry in again)
    spent = sum(entry.bytes for entry in again)
    return Kept(budget, len(seen), fresh, len(again), not_modified, spent, round_days, anew)


def kept_fresh(web: SimWeb, days: int, budget: float) -> list[Entry]:
    """The log of a crawl that keeps itself fresh for so many days."""

    async def main() -> list[Entry]:
        loop = asyncio.get_running_loop()
        memory = MemoryWeb(web, time_scale=1.0)
        parts: Any = {"resolver": memory, "downloader": memory, "now": loop.time}
        with tempfile.TemporaryDirectory() as folder:
            async with Crawl(
                f"{web.linker.origin(0)}/",
                into=Path(folder) / "crawl",
                **parts,
                scope="any",
                allow_private=["127.0.0.0/8"],
                keep_fresh=True,
                visits_per_day=int(budget * web.settings.pages),
                time_s=days * DAY_S,
                store_interval_s=COMMIT_S,
            ) as crawl:
                await crawl.finish()
        return memory.entries

    return run_virtual(main())


def _report(run: Run, found: list[Kept], days: int) -> None:
    kept = found[0]
    run.figure("pages", kept.pages)
    run.figure("fresh", 100 * kept.fresh, "%")
    run.figure("not modified", 100 * kept.not_modified / max(kept.requests, 1), "%")
    run.figure("bytes of downloading everything", 100 * kept.share, "%")
    rows: list[tuple[str | int | float, ...]] = []
    for one in found:
        rounds = days / one.round_days
        fresh, share = round(100 * one.fresh, 2), round(100 * one.share, 1)
        rows.append(
            (f"kept fresh, {one.budget:g} visits a page and day", one.requests, round(one.spent / 1e6, 2), fresh, share)
        )
        rows.append(
            (f"all, every {one.round_days:.2f} days", int(one.pages * rounds), round(one.anew / 1e6, 2), fresh, 100)
        )
    run.table(["who", "requests", "MB", "fresh %", "bytes %"], rows)
    columns = tuple(Column(str(row[0]), float(row[2])) for row in rows)
    run.plot(Columns("Bytes for the same freshness", Axis("received", "MB"), columns))


def pages_of(web: SimWeb, entries: list[Entry]) -> list[Seen]:
    """Every page that was fetched, and when it was looked at."""
    times: dict[tuple[int, str], list[float]] = defaultdict(list)
    sizes: dict[tuple[int, str], int] = {}
    for entry in entries:
        host = web.layout.host_number(entry.host)
        if host is None or entry.path.endswith(NOT_PAGES) or entry.status not in (200, 304, 404, 410):
            continue
        times[host, entry.path].append(entry.end)
        if entry.status == 200:
            sizes[host, entry.path] = entry.bytes
    found = []
    for (host, path), size in sizes.items():
        place = web.layout.locate(host, path)
        if place is not None:
            found.append(Seen(place, size, sorted(times[host, path])))
    return found


def _is_as_seen(web: SimWeb, place: Place, seen_s: float, now_s: float) -> bool:
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
    bars=(Bar("a quarter of the bytes", "bytes of downloading everything", "<=", 25.0),),
    run=measure,
)
