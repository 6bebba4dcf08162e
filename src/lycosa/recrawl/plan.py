"""When every page is looked at next: the plan that spreads the budget, and the times it gives to pages.

A plan is a price: at it, importance and rate of change say how often a page is visited (`recrawl.change.schedule`).
It is made
by one walk over the pages, which also gives a time to every page that has none; afterwards each visit asks for its
page's next interval. Memory: two numbers for each of at most `SAMPLE` pages, whatever their number. Times that a wrong
clock has put too far away are pulled in, so a clock that goes back loses nothing.
"""

import asyncio
from array import array
from collections.abc import Iterator

import msgspec
import numpy as np

from lycosa.crawl.shard import Shard
from lycosa.frontier import unpack_host
from lycosa.graph import Ranks, load_ranks
from lycosa.records import Family
from lycosa.recrawl.change.schedule import (
    LEAST_RATE,
    NUTCH_FIRST_DAYS,
    NUTCH_GROWS,
    NUTCH_SHRINKS,
    prices_by_host,
    visit_rate,
)
from lycosa.recrawl.change.verdict import Presence
from lycosa.recrawl.rows import VisitRow, due_key, unpack_visit
from lycosa.store import Batch, PageRow, unpack_page

DAY_S = 86_400.0
PLAN_KEY = b"visits:plan"
SAMPLE = 500_000  # pages that the price is worked out from
ROWS_A_TURN = 1_000  # rows walked before the loop gets a turn
SHORTEST_DAYS, LONGEST_DAYS = 1 / 24, 180.0
USUAL_SHARE, LEAST_BUDGET = 0.1, 24.0  # of the pages, a day, where no budget is set
HOST_SHARE = 0.5  # of the requests that a host may get politely
EMPTY_WORTH = 0.25  # of what is gone or leads elsewhere, beside a page
SITEMAP_DAYS = 1.0  # sitemaps are read again so often: what they say of changes is worth more than they cost
SPREAD = 0.1  # times differ by so much, so that what was fetched together is not due together
TOO_FAR = 1.5  # times the interval: no due time is further away than that


class VisitPlan(msgspec.Struct, array_like=True):
    """What a walk found. `prices` are those of hosts that cannot take their share."""

    budget: float = 0.0
    pages: int = 0
    price: float = 0.0
    total_rate: float = 0.0
    made_s: float = 0.0
    prices: dict[bytes, float] = {}


_decode = msgspec.msgpack.Decoder(VisitPlan).decode


class VisitImportance:
    """How much a page matters: its rank where ranks were worked out, else how near it is to a seed; 1 on average."""

    def __init__(self, ranks: Ranks | None) -> None:
        self._ranks = ranks if ranks is not None and len(ranks.file_nums) else None

    def of(self, row: PageRow) -> float:
        ranks = self._ranks
        if ranks is None:
            return 2 / (2 + row.depth)
        place = int(np.searchsorted(ranks.file_nums, row.file_num))
        is_there = place < len(ranks.file_nums) and int(ranks.file_nums[place]) == row.file_num
        return float(ranks.ranks[place]) * len(ranks.file_nums) if is_there else 0.2


class VisitPlanner:
    """The plan in force, and the walk that makes it."""

    def __init__(self, shard: Shard) -> None:
        self._shard, self._state = shard, shard.collection.state
        packed = self._state.get(Family.META, PLAN_KEY)
        self.plan = _decode(packed) if packed else VisitPlan()
        self._importance = VisitImportance(load_ranks(shard.collection.path))
        self._schedule = shard.settings.schedule

    def __repr__(self) -> str:
        return f"<VisitPlan {self._schedule} budget={self.plan.budget:g} pages={self.plan.pages}>"

    # the times of a page

    def interval(self, key: bytes, row: PageRow, visit: VisitRow, *, changed: bool | None = None) -> float:
        """Days until a page is looked at next; `changed` tells what a visit found, None where there was none."""
        plan = self.plan
        if row.is_sitemap:
            return SITEMAP_DAYS
        if self._schedule == "adaptive":
            factor = 1.0 if changed is None else 1 - NUTCH_SHRINKS if changed else 1 + NUTCH_GROWS
            days = (visit.interval or NUTCH_FIRST_DAYS) * factor
        elif self._schedule == "uniform":
            days = plan.pages / plan.budget if plan.budget else 10.0
        elif self._schedule == "proportional":
            days = plan.total_rate / (plan.budget * max(visit.rate, LEAST_RATE)) if plan.budget else 10.0
        else:
            price = plan.prices.get(_host_of(key), plan.price) or 1.0
            days = 1 / visit_rate(self._worth(row, visit), visit.rate, price)
        return min(max(days, SHORTEST_DAYS), LONGEST_DAYS)

    def _worth(self, row: PageRow, visit: VisitRow) -> float:
        is_empty = row.location or visit.presence is Presence.GONE
        return self._importance.of(row) * (EMPTY_WORTH if is_empty else 1.0)

    def schedule(self, batch: Batch, key: bytes, row: PageRow, visit: VisitRow, *, changed: bool | None = None) -> None:
        """Gives a page its next time, counted from its last visit, in the open batch."""
        visit.interval = self.interval(key, row, visit, changed=changed)
        days = visit.interval * (1 + SPREAD * (2 * self._shard.roll() - 1))
        visit.due_s = (visit.checked_s or row.fetched_s) + days * DAY_S
        batch.put(Family.DUE, due_key(key, visit.due_s), b"")
        batch.put(Family.VISIT, key, visit.pack())

    # the walk

    async def make(self, budget: float | None) -> VisitPlan:
        """Works the price out, gives a time to every page that has none, and keeps the plan."""
        now = self._shard.now_unix()
        stride = -(-max(self._shard.counters.totals.pages, 1) // SAMPLE)
        worth, rates, hosts, names = array("d"), array("d"), array("q"), list[bytes]()
        lacks_times = False
        for number, (key, row, visit) in enumerate(self.pages()):
            if number % ROWS_A_TURN == 0:
                await asyncio.sleep(0)
            lacks_times = lacks_times or visit is None or _is_too_far(visit, now)
            if number % stride or row.is_sitemap:
                continue
            host = _host_of(key)
            if not names or names[-1] != host:
                names.append(host)
            known = visit or VisitRow()
            worth.append(self._worth(row, known))
            rates.append(known.rate)
            hosts.append(len(names) - 1)
        if not worth:
            return self.plan
        pages = len(worth) * stride
        budget = float(budget or max(LEAST_BUDGET, USUAL_SHARE * pages))
        self.plan = VisitPlan(budget, pages, made_s=now, total_rate=float(np.sum(rates)) * stride)
        self._set_prices(np.array(worth), np.array(rates), np.array(hosts), names, budget / stride, stride)
        batch = Batch()
        batch.put(Family.META, PLAN_KEY, msgspec.msgpack.encode(self.plan))
        self._state.write(batch)
        if lacks_times:
            await self._give_times(now)
        return self.plan

    def _set_prices(
        self,
        worth: "np.ndarray[tuple[int], np.dtype[np.float64]]",
        rates: "np.ndarray[tuple[int], np.dtype[np.float64]]",
        hosts: "np.ndarray[tuple[int], np.dtype[np.int64]]",
        names: list[bytes],
        budget: float,
        stride: int,
    ) -> None:
        most = np.array([self._most_visits(name) for name in names]) / stride
        prices = prices_by_host(worth, rates, hosts, most, budget)
        cheapest = float(prices[prices > 0].min()) if (prices > 0).any() else 0.0
        self.plan.price = cheapest
        self.plan.prices = {
            name: float(price) for name, price in zip(names, prices, strict=True) if price > cheapest * (1 + 1e-9)
        }

    def _most_visits(self, host: bytes) -> float:
        """Visits a day that a host can take politely, beside what else it is asked for."""
        packed, settings = self._state.get(Family.HOST, host), self._shard.settings
        row = unpack_host(packed) if packed else None
        delay_s = max(settings.delay_s, (row and row.robots and row.robots.crawl_delay_s) or 0.0)
        mean_s = row.seconds / row.requests if row and row.requests else 1.0
        return HOST_SHARE * settings.per_host * DAY_S / max(delay_s + mean_s, 0.001)

    async def _give_times(self, now: float) -> None:
        batch = Batch()
        for number, (key, row, visit) in enumerate(self.pages()):
            if number % ROWS_A_TURN == 0:
                self._state.write(batch)
                batch = Batch()
                await asyncio.sleep(0)
            if visit is None:
                self.schedule(batch, key, row, VisitRow())
            elif _is_too_far(visit, now):
                batch.delete(Family.DUE, due_key(key, visit.due_s))
                visit.checked_s = min(visit.checked_s, now)
                self.schedule(batch, key, row, visit)
        self._state.write(batch)

    def pages(self) -> Iterator[tuple[bytes, PageRow, VisitRow | None]]:
        """Every URL that was ever a page, and sitemaps, with their visits: two walks side by side."""
        visits = self._state.walk(Family.VISIT)
        visit_key, visit = next(visits, (b"\xff", b""))
        for key, packed in self._state.walk(Family.PAGE):
            while visit_key < key:
                visit_key, visit = next(visits, (b"\xff" * 64, b""))
            row = unpack_page(packed)
            if row.file_num or (row.is_sitemap and row.status == 200):
                yield key, row, unpack_visit(visit) if visit_key == key else None


def _host_of(key: bytes) -> bytes:
    return key[: key.index(b"\0", 2)]


def _is_too_far(visit: VisitRow, now: float) -> bool:
    """Is the page due so late that the clock must have gone back?"""
    return visit.due_s > now + TOO_FAR * max(visit.interval, SHORTEST_DAYS) * DAY_S
