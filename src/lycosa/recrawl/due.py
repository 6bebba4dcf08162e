"""The feeder puts pages whose time has come into the frontier, no faster than the budget allows.

A recrawl takes what was due when it began, at most what the budget allows for the days since the last one, a week at
most: a clock that jumps ahead by a year makes a week's work, not a stampede. A crawl that keeps itself fresh never ends
and runs at most an hour's budget ahead. What is taken leaves `due` in the commit that queues it. A recrawl of
everything takes the pages first that were not seen for longest, by the hour: `due` is read once for each range of ages.
Those that were visited within the hour come last or, if visits are counted, not at all.

URLs that the user watches are taken whenever their own time has come, beside the budget and before all others. A
recrawl of some URLs takes these alone.

The feeder also observes fetches: a page that a recrawl finds for the first time is new, and opens its history.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Sequence

from lycosa.crawl import CommitParticipant, FetchObserver, ReadPage, Recrawl, Shard, UrlSource
from lycosa.frontier import Lease, LinkCounter, Origin, UrlRow, UrlState, unpack_host
from lycosa.records import Family, Response
from lycosa.recrawl.plan import DAY_S, ROWS_A_TURN
from lycosa.recrawl.revisits import Revisits
from lycosa.recrawl.versions import VisitRow, due_key, due_range, key_of_due, unpack_visit
from lycosa.store import PageRow, pages_at, unpack_page
from lycosa.web import host_key_of, url_from_key, url_key

AHEAD = 1_000  # revisits queued at a time
DUE_READ = 500  # rows of `due` read at a time
AGES_READ = 2_000  # the same where only those of some ages are wanted
AGE_RANGES = 16  # about as many equal parts of a collection, by the age of what is known of its pages
HOUR_S = 3600.0
ROWS_READ = 5_000  # rows of pages, of which few have failed
MOST_DAYS = 7.0  # of budget that one recrawl may make up for
BURST_S = 3600.0  # of budget that may gather while nothing is due
PLAN_AGAIN_S = DAY_S
PLAN_SOON_S, GROWN = 600.0, 1.1  # a collection that grew by so much needs its plan anew sooner


class RevisitFeeder(UrlSource, CommitParticipant, FetchObserver):
    """Feeds the frontier with what is due. `order` is that of a recrawl, None for a crawl that keeps itself fresh;
    `share` says which part of the budget of visits is for this shard."""

    def __init__(
        self, shard: Shard, revisits: Revisits, order: Recrawl | None, share: Callable[[], float] = lambda: 1.0
    ) -> None:
        self._share = share
        self._shard, self._revisits, self._planner, self._order = shard, revisits, revisits.planner, order
        revisits.images.ask = self.ask
        revisits.hints.is_off = order is not None and (order.everything or bool(order.urls))
        self._state = shard.collection.state
        self._sees_new = order is not None  # the collection was whole: a page that is found now is new
        self._head, self._taken = b"", set[bytes]()
        self._began_unix = shard.now_unix()
        self._failed_head = b""
        self._ages = deque[range]()  # in hours: those of the pages that are taken now, and afterwards
        self._allowance = 0.0
        self._filled_at = self._planned_at = shard.now()
        self._planning: asyncio.Task[object] | None = None
        self._applying: asyncio.Task[None] | None = None
        self._has_new_intervals = False
        self._is_exhausted = False

    @property
    def is_exhausted(self) -> bool:
        is_applying = self._applying is not None and not self._applying.done()
        return self._is_exhausted and not (self._has_new_intervals or is_applying)

    def __repr__(self) -> str:
        return f"<RevisitFeeder {self._planner!r} allowance={self._allowance:.0f} exhausted={self._is_exhausted}>"

    async def begin(self) -> None:
        """Makes the plan and the allowance of this run."""
        await (self._applying or self._apply_watches())
        last_s = self._planner.plan.made_s
        if self._order is not None and self._order.urls:
            if not last_s:
                await self._planner.make(self._budget())
            self._allowance = float("inf")
            self._queue_named([url_key(url) for url in self._order.urls])
            self._is_exhausted = True
            return
        budget = self._order.budget if self._order else None
        plan = await self._planner.make(budget or self._budget())
        if self._order is None:
            self._allowance = plan.budget * BURST_S / DAY_S + 1
        elif self._order.most is not None or self._order.everything:
            most = self._order.most
            self._allowance = float("inf") if most is None else most - self._shard.frontier.counts.revisiting
        else:
            days = (self._began_unix - last_s) / DAY_S if last_s else MOST_DAYS
            self._allowance = max(1.0, plan.budget * min(max(days, 1.0), MOST_DAYS))
        if self._order is not None and self._order.everything:
            await self._range_ages()
        self._planned_at = self._shard.now()

    def _budget(self) -> float | None:
        """The visits a day that the settings allow here; None: as many as the pages deserve."""
        visits = self._shard.settings.visits_per_day
        return None if visits is None else visits * self._share()

    async def _range_ages(self) -> None:
        """Counts the pages by the hours since they were seen, and makes the ranges of hours in which they are taken."""
        hours = Counter[int]()
        for number, (_, row, visit) in enumerate(self._planner.pages()):
            if number % ROWS_A_TURN == 0:
                await asyncio.sleep(0)
            hours[self._hours(row, visit or VisitRow())] += 1
        if self._order is not None and self._order.most is not None:
            del hours[0]
        room = min(self._allowance, hours.total() / AGE_RANGES)
        oldest, many = 0, 0
        for age in sorted(hours, reverse=True):
            if many and many + hours[age] > room:
                self._ages.append(range(age + 1, oldest + 1))
                many = 0
            oldest, many = oldest if many else age, many + hours[age]
        if many:
            self._ages.append(range(min(hours), oldest + 1))

    def _hours(self, row: PageRow, visit: VisitRow) -> int:
        """Whole hours from the last visit of a page to the beginning of this run. The first fetch is no visit, so that
        only pages that were visited can be at 0."""
        hours = int(max(0.0, self._began_unix - (visit.checked_s or row.fetched_s)) / HOUR_S)
        return hours if visit.checked_s else max(1, hours)

    def feed(self) -> None:
        """Queues what is due, as far as there is room and budget."""
        self._sees_new |= self._shard.frontier.counts.queued <= 0 < self._shard.counters.totals.visits
        if self._order is None:
            self._refill()
        room, watched = AHEAD - self._shard.frontier.counts.revisiting, 0
        if self._planner.has_watches and room > 0 and not self._is_exhausted and not self._takes_everything:
            watched = self._feed_watched(min(room, DUE_READ))
            room -= watched
        limit = int(min(room, self._allowance, DUE_READ))
        if limit <= 0 or self._is_exhausted:
            self._is_exhausted |= self._order is not None and self._allowance < 1 and not watched
            return
        if self._takes_everything:
            if self._ages:
                self._feed_by_age(limit)
            else:
                self._is_exhausted = not self._queue_failed(limit)
            return
        rows = self._state.scan(Family.DUE, self._head, due_range(self._due_s())[1], limit=limit)
        if rows:
            self._head = rows[-1][0] + b"\0"
            self._queue([key for key, _ in rows])
        else:
            self._is_exhausted = self._order is not None and not watched

    @property
    def _takes_everything(self) -> bool:
        return self._order is not None and self._order.everything

    def _due_s(self) -> float:
        """What is due until this time is taken."""
        return self._shard.now_unix() if self._order is None else self._began_unix

    def _feed_watched(self, limit: int) -> int:
        """Queues URLs that the user watches; returns how many were due."""
        rows = self._state.scan(Family.DUE, *due_range(self._due_s(), is_watched=True), limit=limit)
        self._queue([key for key, _ in rows])
        return len(rows)

    def _queue_named(self, keys: Sequence[bytes]) -> None:
        """Queues URLs that were fetched before, whether they are due or not."""
        frontier, batch = self._shard.frontier, self._shard.committer.batch
        visits, urls = self._state.get_many(Family.VISIT, keys), self._state.get_many(Family.URL, keys)
        for key, packed, url in zip(keys, visits, urls, strict=True):
            row = UrlRow.unpack(url) if url else None
            if row is not None and row.state in (UrlState.DONE, UrlState.FAILED):
                if packed:
                    batch.delete(Family.DUE, due_key(key, unpack_visit(packed)))
                frontier.revisit(
                    url_from_key(key), row.depth, row.origin, now=self._shard.now(), now_unix=self._shard.now_unix()
                )

    def intervals_set(self) -> None:
        self._has_new_intervals = True

    def _feed_by_age(self, limit: int) -> None:
        dues = [key for key, _ in self._state.scan(Family.DUE, self._head, limit=AGES_READ)]
        if not dues:
            self._head = b""
            self._ages.popleft()
            return
        keys = [key_of_due(due) for due in dues]
        pages, visits = pages_at(self._state, keys), self._state.get_many(Family.VISIT, keys)
        wanted = [
            due
            for due, page, visit in zip(dues, pages, visits, strict=True)
            if not (page and visit) or self._hours(page, unpack_visit(visit)) in self._ages[0]
        ][:limit]
        self._head = (wanted[-1] if len(wanted) == limit else dues[-1]) + b"\0"
        self._queue(wanted)

    def ask(self, keys: Sequence[bytes]) -> None:
        """Queues the images of a page, at the cost of the budget, unless they are queued already."""
        visits = [unpack_visit(packed) if packed else None for packed in self._state.get_many(Family.VISIT, keys)]
        dues = [due_key(key, visit) for key, visit in zip(keys, visits, strict=True) if visit is not None]
        rows = self._state.get_many(Family.DUE, dues)
        dues = [due for due, row in zip(dues, rows, strict=True) if row is not None]  # others are queued already
        if self._order is not None and self._order.most is not None:
            dues = dues[: max(0, int(self._allowance))]
        self._queue(dues)

    def _queue(self, dues: Sequence[bytes]) -> None:
        frontier, batch = self._shard.frontier, self._shard.committer.batch
        if frontier.policy.link_counter is not None:
            dues = self._ranked(dues, frontier.policy.link_counter)
        keys = [key_of_due(due) for due in dues]
        visits = self._state.get_many(Family.VISIT, keys)
        urls = self._state.get_many(Family.URL, keys)
        now, now_unix = self._shard.now(), self._shard.now_unix()
        for due, key, packed, url in zip(dues, keys, visits, urls, strict=True):
            if due in self._taken:
                continue
            visit = unpack_visit(packed) if packed else None
            is_current = visit is not None and due_key(key, visit) == due
            if is_current and visit is not None and visit.checked_s >= self._began_unix and self._order is not None:
                continue  # visited in this very run
            self._taken.add(due)
            batch.delete(Family.DUE, due)
            if is_current and visit is not None and url is not None:
                row = UrlRow.unpack(url)
                if visit.every_s and row.state not in (UrlState.DONE, UrlState.FAILED):  # it was never fetched
                    visit.due_s = now_unix + visit.every_s
                    batch.put(Family.DUE, due_key(key, visit), b"")
                    batch.put(Family.VISIT, key, visit.pack())
                    continue
                frontier.revisit(url_from_key(key), row.depth, row.origin, now=now, now_unix=now_unix)
                self._allowance -= not visit.every_s

    def _ranked(self, dues: Sequence[bytes], counter: LinkCounter) -> list[bytes]:
        """What is due in the order of a ranking by the links on each page, as of the visit before, and to it; a page
        that was gone then has none."""
        keys = [key_of_due(due) for due in dues]
        pages = pages_at(self._state, keys)
        links = [0 if page is None or page.failure or page.status >= 400 else page.links for page in pages]
        back = self._shard.linker.index.counts([url_from_key(key) for key in keys])
        return counter.deal(dict(zip(dues, zip(links, back, strict=True), strict=True)))

    def _queue_failed(self, limit: int) -> bool:
        """Queues URLs that have failed and were never pages, after all that is due; False if there are no more."""
        frontier, now, now_unix = self._shard.frontier, self._shard.now(), self._shard.now_unix()
        if not self._failed_head and frontier.counts.revisiting:
            return True  # what an earlier run has queued comes first: nothing is asked for twice
        rows = self._state.scan(Family.PAGE, self._failed_head, limit=ROWS_READ)
        failed = [key for key, packed in rows if self._is_wanted(unpack_page(packed))]
        urls = self._state.get_many(Family.URL, failed) if failed else []
        for key, packed in zip(failed, urls, strict=True):
            row = UrlRow.unpack(packed) if packed else None
            if row is not None and row.state is UrlState.FAILED and not self._waits_with_host(key):
                if not limit:
                    return True
                frontier.revisit(url_from_key(key), row.depth, row.origin, now=now, now_unix=now_unix)
                limit, self._allowance = limit - 1, self._allowance - 1
            self._failed_head = key + b"\0"
        self._failed_head = rows[-1][0] + b"\0" if rows else self._failed_head
        return bool(rows)

    def _waits_with_host(self, key: bytes) -> bool:
        """Is it queued at a host that was given up? Revisits stay in the queue of such a host for the next run."""
        host_key = host_key_of(key)
        host = self._shard.frontier.hosts.get(host_key)
        packed = self._state.get(Family.HOST, host_key) if host is None else None
        row = host.row if host is not None else unpack_host(packed) if packed else None
        return row is not None and bool(row.gave_up) and row.revisits > 0

    def _is_wanted(self, row: PageRow) -> bool:
        """Has it failed, and not in this very run, nor within the hour if visits are counted?"""
        counts = self._order is not None and self._order.most is not None
        return (
            row.has_failed
            and not row.requisite
            and not row.is_external
            and row.fetched_s < self._began_unix - HOUR_S * counts
        )

    def _refill(self) -> None:
        """A crawl without end gets its budget as time passes, and a new plan every day."""
        now, budget = self._shard.now(), self._planner.plan.budget
        self._allowance = min(
            self._allowance + budget * (now - self._filled_at) / DAY_S, max(1.0, budget * BURST_S / DAY_S)
        )
        self._filled_at = now
        has_grown = self._shard.counters.totals.pages > GROWN * self._planner.plan.pages
        wait_s = PLAN_SOON_S if has_grown else PLAN_AGAIN_S
        if now - self._planned_at >= wait_s and (self._planning is None or self._planning.done()):
            self._planned_at = now
            self._planning = asyncio.get_running_loop().create_task(self._planner.make(self._budget()))

    def on_committed(self) -> None:
        """What was taken is no longer in `due`; a crawl without end reads it from the beginning again."""
        self._taken.clear()
        if self._order is None:
            self._head = b""
        if self._has_new_intervals:
            self._has_new_intervals = False
            self._applying = asyncio.get_running_loop().create_task(self._apply_watches())

    async def _apply_watches(self) -> None:
        """Intervals were set: a run that has taken all that was due looks again."""
        await self._planner.apply_watches()
        if self._order is not None and not self._order.urls:
            self._is_exhausted = False

    def close(self) -> None:
        for task in (self._planning, self._applying):
            if task is not None:
                task.cancel()

    def ended(self, lease: Lease, response: Response, page: ReadPage | None) -> None:
        is_lost = lease.entry is not None and lease.entry.origin is Origin.LOST
        if page is not None and self._sees_new and not is_lost:
            self._revisits.record_new(page)
