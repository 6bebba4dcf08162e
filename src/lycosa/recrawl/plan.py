"""The visit planner decides when each page is visited next: it spreads the budget, and gives every page its time.

A plan is a price: at that price, importance and rate of change say how often a page is visited
(`recrawl.change.schedule`). It is made by one walk over the pages, which also gives a time to every page that has none;
afterwards each visit asks for its page's next interval. Memory: two numbers for each of at most `SAMPLE` pages. Times
that a wrong clock has put too far away are pulled in, so a clock that goes back loses nothing.

Change hints are the dates in sitemaps and feeds: a page that is said to have changed is visited sooner, if its host has
been right before. A new host is trusted with a few pages; one that dates everything today loses that trust. Hints add
no visits to the budget, they only say which come first.
"""

import asyncio
from array import array
from collections.abc import Iterable, Iterator, Sequence

import msgspec
import numpy as np

from lycosa.crawl import EVERY, Shard, interval_of
from lycosa.frontier import Host, HostRow, Lease, unpack_host
from lycosa.graph import Ranks, load_ranks
from lycosa.records import Family
from lycosa.recrawl.change.schedule import (
    prices_by_host,
    visit_rate,
)
from lycosa.recrawl.change.verdict import Presence
from lycosa.recrawl.versions import VisitRow, due_key, unpack_visit, visit_of
from lycosa.store import Batch, PageRow, page_at, unpack_page
from lycosa.web import MediaKind, Page, SitemapEntry, Steps, host_key_of, parse_url, read_sitemap, run_steps, url_key

DAY_S = 86_400.0
PLAN_KEY = b"visits:plan"
SAMPLE = 500_000  # pages from which the price is computed
ROWS_A_TURN = 1_000  # rows walked before the loop gets a turn
SHORTEST_DAYS, LONGEST_DAYS = 1 / 24, 180.0
USUAL_SHARE, LEAST_BUDGET = 0.1, 24.0  # of the pages, a day, if no budget is set
HOST_SHARE = 0.5  # of the requests that a host may get politely
EMPTY_WORTH = 0.25  # of what is gone or leads elsewhere, beside a page
SITEMAP_DAYS = 1.0  # between visits of a sitemap at most: its dates are worth more than they cost
POLLS_A_CHANGE = 2.0  # of a sitemap or a feed, for each time that it has something new
FEED_TYPES = frozenset({"application/rss+xml", "application/atom+xml", "application/rdf+xml"})
SPREAD = 0.1  # times vary by this share, so that what was fetched together is not due together
TOO_FAR = 1.5  # times the interval: no due time is further away than that
TRIED_FIRST = 5  # pages of a host that are visited sooner on trust
LEAST_TRUE = 0.5  # of what a host said: then it is believed
HINTS_READ = 500  # rows read at a time


class VisitPlan(msgspec.Struct, array_like=True):
    """A plan as it is stored. `prices` are those of hosts that cannot take their share."""

    budget: float = 0.0
    pages: int = 0
    price: float = 0.0
    unused: float = 0.0  # by this version; rows are read by place
    made_s: float = 0.0
    prices: dict[bytes, float] = {}


_decode = msgspec.msgpack.Decoder(VisitPlan).decode


class VisitImportance:
    """How much a page matters: its rank if ranks were computed, else its distance from a seed; 1 on average."""

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
    """Makes and keeps the plan, and gives pages their times. `plan` is the plan in force."""

    def __init__(self, shard: Shard) -> None:
        self._shard, self._state = shard, shard.collection.state
        packed = self._state.get(Family.META, PLAN_KEY)
        self.plan = _decode(packed) if packed else VisitPlan()
        self._importance = VisitImportance(load_ranks(shard.collection.path))
        self.has_watches = False  # until `apply_watches` has looked

    def __repr__(self) -> str:
        return f"<VisitPlanner budget={self.plan.budget:g} pages={self.plan.pages}>"

    # the times of a page

    def interval(self, key: bytes, row: PageRow, visit: VisitRow) -> float:
        """Days until the next visit of a page."""
        plan = self.plan
        if visit.every_s:
            return visit.every_s / DAY_S
        # Sitemaps and feeds are asked for new URLs, with conditions, at the pace at which they have some.
        poll_days = max(1 / (POLLS_A_CHANGE * visit.rate), SHORTEST_DAYS)
        if row.is_sitemap:
            return min(poll_days, SITEMAP_DAYS)
        price = plan.prices.get(host_key_of(key), plan.price) or 1.0
        days = 1 / visit_rate(self._worth(row, visit), visit.rate, price)
        if visit.is_feed or row.essence in FEED_TYPES:
            days = min(days, poll_days)
        return min(max(days, SHORTEST_DAYS), LONGEST_DAYS)

    def _worth(self, row: PageRow, visit: VisitRow) -> float:
        is_empty = row.location or visit.presence is Presence.GONE
        return self._importance.of(row) * (EMPTY_WORTH if is_empty else 1.0)

    def schedule(self, batch: Batch, key: bytes, row: PageRow, visit: VisitRow) -> None:
        """Gives a page its next time, counted from its last visit, in `batch`."""
        visit.every_s = self.every_s(key)
        visit.interval = self.interval(key, row, visit)
        days = visit.interval * (1 if visit.every_s else 1 + SPREAD * (2 * self._shard.roll() - 1))
        visit.due_s = (visit.checked_s or row.fetched_s) + days * DAY_S
        batch.put(Family.DUE, due_key(key, visit), b"")
        batch.put(Family.VISIT, key, visit.pack())

    # URLs that the user watches

    def every_s(self, key: bytes) -> float:
        """How often the user wants a URL visited; 0 if nothing was said of it."""
        return interval_of(self._state, key) if self.has_watches else 0.0

    async def apply_watches(self) -> None:
        """Gives their times to the URLs whose interval the user has set or changed, whether they were fetched or not,
        and to those that are watched no more."""
        batch, end, now = Batch(), EVERY[:-1] + b";", self._shard.now_unix()
        self.has_watches = bool(self._state.scan(Family.META, EVERY, end, limit=1))
        for number, (found, packed) in enumerate(self._state.walk(Family.META, EVERY, end)):
            if number % ROWS_A_TURN == 0:
                self._state.write(batch)
                batch = Batch()
                await asyncio.sleep(0)
            key, every_s = found[len(EVERY) :], int.from_bytes(packed) / 1000
            visit = visit_of(self._state, key) or VisitRow()
            if visit.every_s == every_s and every_s:
                continue
            row = page_at(self._state, key)
            batch.delete(Family.DUE, due_key(key, visit))
            if not every_s:
                batch.delete(Family.META, found)
            if every_s or row is not None:
                self.schedule(batch, key, row or PageRow(0, now), visit)
        self._state.write(batch)

    def schedule_again(self, key: bytes, row: PageRow) -> None:
        """A URL that was never a page has been asked for: if it is watched, it has a next time all the same."""
        if self.every_s(key):
            visit = visit_of(self._state, key) or VisitRow()
            visit.checked_s = self._shard.now_unix()
            self.schedule(self._shard.committer.batch, key, row, visit)

    # the walk

    async def make(self, budget: float | None) -> VisitPlan:
        """Computes the price, gives a time to every page that has none, and stores the plan."""
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
            host = host_key_of(key)
            if not names or names[-1] != host:
                names.append(host)
            known = visit or VisitRow()
            if known.every_s:  # beside the budget
                continue
            worth.append(self._worth(row, known))
            rates.append(known.rate)
            hosts.append(len(names) - 1)
        if not worth:
            return self.plan
        pages = len(worth) * stride
        budget = float(budget or max(LEAST_BUDGET, USUAL_SHARE * pages))
        self.plan = VisitPlan(budget, pages, made_s=now)
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
        """Visits a day that a host can take politely, beside other requests."""
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
                batch.delete(Family.DUE, due_key(key, visit))
                visit.checked_s = min(visit.checked_s, now)
                self.schedule(batch, key, row, visit)
        self._state.write(batch)

    def pages(self) -> Iterator[tuple[bytes, PageRow, VisitRow | None]]:
        """Every URL that was ever a page, and every sitemap, with its visit row: two walks side by side."""
        visits = self._state.walk(Family.VISIT)
        visit_key, visit = next(visits, (b"\xff", b""))
        for key, packed in self._state.walk(Family.PAGE):
            while visit_key < key:
                visit_key, visit = next(visits, (b"\xff" * 64, b""))
            row = unpack_page(packed)
            if row.file_num or (row.is_sitemap and row.status == 200):
                yield key, row, unpack_visit(visit) if visit_key == key else None


def _is_too_far(visit: VisitRow, now: float) -> bool:
    """Is the page due so late that the clock must have gone back?"""
    return visit.due_s > now + TOO_FAR * max(visit.interval, SHORTEST_DAYS) * DAY_S


class ChangeHints:
    """Reads the dates in sitemaps and feeds."""

    def __init__(self, shard: Shard) -> None:
        self._shard, self._state = shard, shard.collection.state
        self.is_off = False  # where everything is visited anyway

    def read_dates(self, host: Host, entries: Sequence[SitemapEntry]) -> Steps[int]:
        """Takes the dates of a sitemap or a feed of `host`; returns how many pages are visited sooner for it."""
        left = _trust(host.row)
        if self.is_off or not left:
            return 0
        dated: dict[bytes, float] = {}
        for start in range(0, len(entries), HINTS_READ):
            for entry in entries[start : start + HINTS_READ]:
                if entry.lastmod_s is not None and (url := parse_url(entry.url)) and url.host == host.host:
                    dated[url_key(url.href)] = entry.lastmod_s
            yield
        sooner, keys = 0, sorted(dated)
        for start in range(0, len(keys), HINTS_READ):
            some = keys[start : start + HINTS_READ]
            visits = self._state.get_many(Family.VISIT, some)
            claimed = [
                (key, visit, dated[key])
                for key, packed in zip(some, visits, strict=True)
                if packed and self._is_waiting(visit := unpack_visit(packed)) and dated[key] > visit.hint_s
            ]
            sooner += self._advance(claimed, left - sooner)
            if sooner >= left:
                break
            yield
        host.touch()
        return sooner

    def read_feed(self, lease: Lease, page: Page, body: bytes) -> None:
        """Takes the dates of a page that is a feed."""
        if page.media.kind is MediaKind.FEED:
            run_steps(self.read_dates(lease.host, read_sitemap(body, lease.url).entries))

    def _is_waiting(self, visit: VisitRow) -> bool:
        """Is the page due later, and without volatile parts, with which its date would change all the time?"""
        return visit.due_s > self._shard.now_unix() and not any(part.is_volatile for part in visit.masks.parts)

    def _advance(self, claimed: Iterable[tuple[bytes, VisitRow, float]], most: int) -> int:
        now, batch, sooner = self._shard.now_unix(), self._shard.committer.batch, 0
        for key, visit, lastmod_s in claimed:
            if sooner >= most:
                break
            page = None if visit.checked_s else page_at(self._state, key)
            seen_s = visit.checked_s or (page.fetched_s if page else now)
            if not seen_s < lastmod_s <= now:
                continue
            batch.delete(Family.DUE, due_key(key, visit))
            visit.hint_s, visit.due_s = lastmod_s, now
            batch.put(Family.DUE, due_key(key, visit), b"")
            batch.put(Family.VISIT, key, visit.pack())
            sooner += 1
        return sooner


def _trust(row: HostRow) -> int:
    """How many pages of a host are visited sooner because it says that they changed."""
    if row.hints < TRIED_FIRST:
        return TRIED_FIRST - row.hints
    return 1_000_000 if row.hints_true >= LEAST_TRUE * row.hints else 0
