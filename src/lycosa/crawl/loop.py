"""One shard's crawl: the loop that joins frontier, mapping, fetch, web and store.

The whole way of a URL is here: `_pump` leases what may be asked for and starts it, `_on_response` settles what came
back, `_commit` makes it last. One thread: everything runs on the event loop, a page takes a millisecond.
A failed page is an outcome, never an exception; a failed disk pauses the crawl and ends it after a while.
"""

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lycosa.crawl.addresses import HostAddresses
from lycosa.crawl.admission import readmit_links
from lycosa.crawl.background import BackgroundWork
from lycosa.crawl.committer import Committer
from lycosa.crawl.copies import CopyClaim
from lycosa.crawl.events import EventLog
from lycosa.crawl.inbox import Inbox
from lycosa.crawl.limits import LimitChecker, Recrawl, effective_limits
from lycosa.crawl.other_shards import accept_parcels, move_hosts
from lycosa.crawl.parts import Parts
from lycosa.crawl.progress import WAITING, ProgressReporter, waits_long
from lycosa.crawl.reading import LinkFilter, filters_of
from lycosa.crawl.requests import RequestBuilder
from lycosa.crawl.responses import ResponseHandler
from lycosa.crawl.shard import Shard
from lycosa.crawl.stats import Counters, CrawlStats, Totals, load_counts
from lycosa.errors import StoreError
from lycosa.fetch import Watchable
from lycosa.frontier import (
    ForwardedUrl,
    Frontier,
    HostGroup,
    Lease,
    Origin,
    Politeness,
    ProcessStart,
    RequestKind,
    UrlCounts,
)
from lycosa.graph import LinkIndexer
from lycosa.records import Failure, Request, Response
from lycosa.settings import CrawlSettings, read_group
from lycosa.store import Batch, CollectionStore
from lycosa.web import Url, parse_url, reads_links_as_usual

if TYPE_CHECKING:
    from lycosa.recrawl.due import RevisitFeeder

COMMIT_AGAIN_S = 1.0
COMMIT_TRIES = 10  # a second apart; then the crawl ends with what is committed
INBOX_EVERY_S = 1.0
STOP_GRACE_S = 3.0  # what is in flight when the user stops may end in this time; all is over within five seconds
ADDED_A_TURN = 500  # URLs of a list taken in before the loop gets a turn


class Engine:
    """A crawl of one collection. `run` goes on until nothing is queued, a limit is reached or `stop` is called."""

    def __init__(
        self,
        collection: CollectionStore,
        settings: CrawlSettings,
        parts: Parts,
        *,
        is_restart: bool = False,
        recrawl: Recrawl | None = None,
    ) -> None:
        self.collection, self.settings = collection, settings
        self._loop = asyncio.get_running_loop()
        self.now = parts.now or time.monotonic
        began, began_unix = self.now(), (parts.wall or time.time)()
        self._unix_offset = began_unix - began
        self.counters = Counters(load_counts(collection.state, Totals))
        self.committer = Committer(collection, syncs=settings.durability == "power")
        self._whereabouts = HostAddresses(settings, parts, now=self.now, now_unix=self.now_unix, on_news=self.located)
        start = ProcessStart(began, began_unix, is_restart=is_restart)
        self._outside = parts.outside
        totals = self.counters.totals
        self.frontier = Frontier(
            collection.state,
            self.committer.batch,
            _pace(settings),
            start,
            locate=self._whereabouts.locate,
            policy=parts.policy,
            forwarder=parts.outside,
            counts=UrlCounts(
                totals.known, totals.queued, totals.revisiting, totals.hosts, totals.failed, totals.dropped
            ),
            only_due=recrawl is not None and totals.queued > 0,  # what was never asked for is left to the crawl
        )
        self.downloader = parts.downloader
        if settings.eager and reads_links_as_usual(parts.analysers) and isinstance(parts.downloader, Watchable):
            parts.downloader.watch(self._on_arriving)
        self.events = EventLog(collection.log_path, self.now_unix)
        self._inbox = Inbox(collection.path)
        self.seeds = [url for seed in settings.seeds if (url := parse_url(seed))]
        filters = [*filters_of(settings, self.seeds), *parts.filters]
        self.linker = LinkIndexer(collection)
        self._background = BackgroundWork(is_held=lambda: self.committer.has_failed, ran=self._after_background)
        self._shard = shard = Shard(
            collection,
            settings,
            self.frontier,
            self.counters,
            self.committer,
            self._whereabouts.mapper,
            self.events,
            LinkFilter(filters, totals.ignored),
            self.linker,
            self._background,
            list(self.seeds),
            self.now,
            self.now_unix,
        )
        self.outcomes = ResponseHandler(shard, parts)
        self._asking = RequestBuilder(settings, self.outcomes)
        ends = effective_limits(settings, recrawl, totals.seconds)
        self.limits = LimitChecker(
            ends,
            self.counters,
            lambda: self.now() - began,
            self.frontier,
            visits=recrawl.most if recrawl else None,
            outside=parts.outside,
        )
        is_fresh = recrawl is not None or settings.keep_fresh
        self._due = self._due_of(shard, recrawl) if is_fresh else None
        self._is_endless = settings.keep_fresh and recrawl is None
        self._teller = ProgressReporter(shard, self.limits, began=began)
        self._in_flight: dict[int, Lease] = {}
        self._pump_handle: asyncio.Handle | None = None
        self._wake_handle: asyncio.TimerHandle | None = None
        self._stopping = ""
        self._failure: Exception | None = None
        self._finished = asyncio.Event()
        self._changed = asyncio.Event()
        self._commit_failures = 0
        self._next_commit = 0.0
        self._deferred: list[tuple[Lease, Request | None, Response]] = []
        self.is_paused = False  # whoever reads the pages as they come cannot follow
        self.on_commit: Callable[[], None] | None = None

    def _due_of(self, shard: Shard, recrawl: Recrawl | None) -> "RevisitFeeder":
        from lycosa.recrawl.due import RevisitFeeder

        self.outcomes.sees_new = recrawl is not None
        self.outcomes.revisits.hints.is_off = recrawl is not None and recrawl.everything
        due = RevisitFeeder(shard, self.outcomes.revisits.plan, recrawl)
        self.outcomes.revisits.pictures.ask = due.ask
        return due

    def __repr__(self) -> str:
        return f"<Engine {self.collection.path} pages={self.counters.totals.pages} in_flight={len(self._in_flight)}>"

    def now_unix(self) -> float:
        return self.now() + self._unix_offset

    # the life of a crawl

    async def run(self) -> CrawlStats:
        """Crawls until nothing is left, a limit is reached or the crawl is stopped; commits; tells how it went."""
        self.events.write("start", seeds=[seed.href for seed in self.seeds])
        try:
            self._take_in_losses()
            if pages := self.linker.catch_up():
                self.events.write("links-caught-up", pages=pages)
            if self._due is not None:
                await self._due.begin()
            if not self.frontier.only_due:
                await self._add_all([seed for seed in self.seeds if self.frontier.owns(seed.host)])
                await self._take_in_inbox()
                if queued := readmit_links(self._shard, self._commit):
                    self.events.write("looked-again", queued=queued)
            self.frontier.load(self.now())
            ticker = self._loop.create_task(self._tick())
            self._plan_pump()
            try:
                await self._finished.wait()
            finally:
                ticker.cancel()
            await self._wind_down()
        finally:
            reason = str(self._failure) if self._failure else self._stopping or "nothing queued"
            self._background.close()
            self.linker.close()
            if self._due is not None:
                self._due.close()
            self.events.write("stop", reason=reason, pages=self.counters.totals.pages)
            self.events.close()
            await self._whereabouts.mapper.close()
            await self.downloader.close()
        if self._failure is not None:
            raise self._failure
        return self.stats()

    def stop(self, reason: str = "stopped") -> None:
        """Lets what is in flight end, commits and finishes; a second call cancels what is in flight."""
        if self._stopping:
            self.downloader.cancel_all()
        self._stopping = self._stopping or reason
        self._check_end()

    @property
    def stopped_by(self) -> str:
        """What ended the crawl: a limit's name, "stopped", "waiting", or nothing."""
        return self._stopping

    def add(self, urls: Sequence[Url]) -> int:
        """Takes in URLs that the user asks for, whatever the scope; their hosts become part of it."""
        if not urls:
            return 0
        if self.committer.has_failed:  # the batch is half written: they are taken in after it
            self._inbox.put(url.href for url in urls)
            return 0
        self.outcomes.widen(urls)
        new = len(self.frontier.admit(urls, depth=0, now=self.now(), origin=Origin.SEED))
        new += self.outcomes.ask_again(urls)
        self._plan_pump()
        return new

    async def _add_all(self, urls: Sequence[Url]) -> None:
        """As `add`, of lists that may be long: they are taken in slice by slice, each with a commit of its own."""
        for start in range(0, len(urls), ADDED_A_TURN):
            self.add(urls[start : start + ADDED_A_TURN])
            if len(urls) >= ADDED_A_TURN:
                self._commit()
                await asyncio.sleep(0)

    async def _take_in_inbox(self) -> None:
        for urls in self._inbox.take():
            await self._add_all(urls)
            if self.committer.has_failed:  # what is left of the file is taken in when the disk is well
                break

    def receive(self, parcels: Sequence[ForwardedUrl | CopyClaim]) -> bool:
        """Takes in what other shards found; False while the disk refuses: then they must be sent again."""
        if self.committer.has_failed or self._failure is not None:
            return False
        accept_parcels(self._shard, self.outcomes, parcels, now=self.now())
        self._plan_pump()
        return True

    def hear(self, what: Callable[[], None]) -> bool:
        """Lets something from outside be settled between two pages; False while the disk refuses: later, then."""
        if self.committer.has_failed:
            return False
        with self._watched():
            what()
        self._plan_pump()
        return True

    def fail(self, error: Exception) -> None:
        """Ends the crawl at once: what is in flight is cancelled, nothing more is committed, `run` raises the error."""
        self._failed(error)

    @property
    def scope_seeds(self) -> list[Url]:
        """The URLs whose hosts, folders or domains are the scope; it only grows."""
        return self._shard.scope_seeds

    def hosts_in_flight(self) -> set[str]:
        """The hosts at which requests are under way, or ended and are not settled yet."""
        return {lease.host.host for lease in self._in_flight.values()} | self._background.hosts

    def move_hosts(self, *, lost: Sequence[bytes], came: Sequence[tuple[bytes, bytes]]) -> bool:
        """Gives buckets away and takes hosts in, in a commit of its own; False: not now, try again."""
        self._commit()
        self.linker.flush()
        self.linker.catch_up()  # after a start: what the feed tells of pages that leave is lost with them
        if self.committer.has_failed or self.committer.waiting or self.linker.is_waiting:
            return False
        batch = move_hosts(self._shard, self._forget, lost=lost, came=came, now=self.now(), now_unix=self.now_unix())
        batch.put(*self._teller.row())
        self.collection.commit(batch)
        self.frontier.load(self.now())
        self.events.write("moved", lost=len(lost), came=len(came))
        self._plan_pump()
        return True

    def _forget(self) -> None:
        self.outcomes.traps.forget()
        self.linker.feed.forget()

    def in_use(self, address: str) -> int:
        """Requests under way to an address, or one if it has to be left alone for a while."""
        return self.frontier.scheduler.in_use_of(address, self.now())

    def wake(self) -> None:
        """Something has changed outside: there may be more to do."""
        self._plan_pump()

    async def _wind_down(self) -> None:
        deadline = self.now() + STOP_GRACE_S
        while self._in_flight and self.now() < deadline:
            self._changed.clear()
            try:
                await asyncio.wait_for(self._changed.wait(), max(0.0, deadline - self.now()))
            except TimeoutError:
                break
        self.downloader.cancel_all()
        self._background.close()
        self._commit()
        while self.committer.has_failed and self._failure is None:
            await asyncio.sleep(COMMIT_AGAIN_S)
            self._commit()

    async def _tick(self) -> None:
        """Commits what has gathered, looks into the inbox, watches the limits."""
        next_inbox = self.now()
        while True:
            await asyncio.sleep(self.settings.store_interval_s)
            with self._watched():
                if self.now() >= next_inbox and not self.committer.has_failed and not self.frontier.only_due:
                    next_inbox = self.now() + INBOX_EVERY_S
                    await self._take_in_inbox()
                if self._due is not None and not self.committer.has_failed and not self._stopping:
                    self.outcomes.sees_new |= self.frontier.queued <= 0 < self.counters.totals.visits
                    self._due.feed()
                self._commit()
                limit = self.limits.reached()
                if limit and not self._stopping:
                    self.stop(limit)
                self._check_end()
                self._plan_pump()

    @property
    def is_idle(self) -> bool:
        """Nothing is left to be asked for, and nothing waits to be committed."""
        return self._has_nothing_left() and not self.committer.waiting

    def _check_end(self) -> None:
        is_done = self.is_idle and (self._outside is None or self._outside.may_end())
        if self._outside is None and not self._stopping and self.waits_long:
            self._stopping = WAITING
        if (not self._in_flight and (self._stopping or is_done or self._failure)) or self._stopping:
            self._finished.set()

    @property
    def waits_long(self) -> bool:
        """Is there nothing to do but to wait for very long, and nobody who wants that? It is left to the next run."""
        is_busy = self._in_flight or self.committer.waiting or self._failure
        if self.settings.wait or self._due is not None or is_busy:
            return False
        if self._background:
            return False
        return waits_long(self.frontier, self.now(), self.now_unix())

    def _has_nothing_left(self) -> bool:
        frontier = self.frontier
        if self._is_endless or self._background or (self._due is not None and not self._due.is_exhausted):
            return False
        return frontier.revisiting <= 0 and (frontier.queued <= 0 or frontier.only_due)

    # asking

    def _plan_pump(self) -> None:
        if self._pump_handle is None:
            self._pump_handle = self._loop.call_soon(self._pump)

    def _pump(self) -> None:
        self._pump_handle = None
        try:
            self._start_all()
        except Exception as error:
            self._failed(error)

    @contextmanager
    def _watched(self) -> Iterator[None]:
        """A mistake in a callback ends the crawl and is raised by `run`: a crawl never hangs in silence."""
        try:
            yield
        except Exception as error:  # the event loop would only log it
            self._failed(error)

    def _failed(self, error: Exception) -> None:
        self._failure = self._failure or error
        self._finished.set()

    def _start_all(self) -> None:
        """Starts what may be started, then sleeps until a host may be asked again."""
        if self._stopping or self._failure or self.committer.has_failed or self.is_paused:
            return
        started = 0
        while self.limits.has_room(len(self._in_flight)):
            if started >= self.settings.crawl_batch:
                self._plan_pump()
                return
            lease = self.frontier.next(self.now(), self.now_unix())
            if lease is None:
                if self.frontier.has_more:
                    self._plan_pump()
                else:
                    self._start_tables()
                break
            self._start(lease)
            started += 1
        if self.limits.has_room(len(self._in_flight)):  # else the next response is what there is to wait for
            self._plan_wake()
        self._check_end()

    def _start_tables(self) -> None:
        """Nothing else can be asked for: slots that would stand idle are for tables of links."""
        tables = self.outcomes.tables.idle()
        while self.limits.has_room(len(self._in_flight)) and (lease := next(tables, None)) is not None:
            self._start(lease)

    def _plan_wake(self) -> None:
        if self._wake_handle is not None:
            self._wake_handle.cancel()
            self._wake_handle = None
        at = self.frontier.scheduler.next_wake()
        if at is not None:
            self._wake_handle = self._loop.call_later(max(0.0, at - self.now()), self._plan_pump)

    def _start(self, lease: Lease) -> None:
        ticket = id(lease)
        self._in_flight[ticket] = lease
        if lease.failure is not None:
            now = self.now()
            response = Response(lease.url, failure=lease.failure, detail=lease.detail, started_s=now, ended_s=now)
            self._loop.call_soon(self._on_response, lease, None, response)
            return
        tables = self.outcomes.tables
        if lease.kind is RequestKind.PAGE and tables.is_on and (table := tables.started(lease)) is not None:
            del self._in_flight[ticket]
            self._start(table)
            return
        request = self._asking.request(lease, ticket)
        self.downloader.start(request, lambda response: self._on_response(lease, request, response))

    def _on_arriving(self, request: Request, response: Response) -> None:
        """A part of a slow response has come: its links need not wait for the rest."""
        lease = self._in_flight.get(request.ticket)
        if lease is not None and not self.committer.has_failed and not self._stopping:
            with self._watched():
                self.outcomes.early.arriving(lease, response)
            self._plan_pump()

    def located(self, names: list[str]) -> None:
        """It is known now where these hosts live, and whether they may be asked there."""
        for name in names:
            self.frontier.on_resolved(name, self.now())
        self._plan_pump()

    # settling

    def _on_response(self, lease: Lease, request: Request | None, response: Response) -> None:
        if self.committer.has_failed:
            self._deferred.append((lease, request, response))  # it must not slip into the batch that is half written
            return
        try:  # as `_watched`, which costs a microsecond more
            self._settle(lease, request, response)
        except Exception as error:
            self._failed(error)
        self._changed.set()

    def _settle(self, lease: Lease, request: Request | None, response: Response) -> None:
        del self._in_flight[id(lease)]
        if response.failure is Failure.CANCELLED:
            self.outcomes.early.ended(lease)
            self.outcomes.tables.cancelled(lease)
            self.frontier.put_back(lease)
            self.frontier.release(lease, response.ended_s, self.now())
        else:
            self.outcomes.settle(lease, request, response)
        self._commit_if_full()
        self._plan_pump()

    def _after_background(self, error: Exception | None) -> None:
        """A turn of long work is over."""
        if error is not None:
            self._failed(error)
            return
        with self._watched():
            self._commit_if_full()
        self._plan_pump()

    # keeping

    def _commit_if_full(self) -> None:
        if self.committer.waiting >= self.settings.store_batch:
            self._commit()

    def _commit(self) -> None:
        if self._failure is not None or self.now() < self._next_commit:
            return
        try:
            if self._commit_failures:
                self.collection.state.reopen()
            if not self.committer.has_failed:
                if self.outcomes.copies is not None:
                    self.outcomes.copies.prepare()
                self.linker.prepare(self.committer.batch)
            self.committer.commit(self.now(), self._write_last)
        except StoreError as error:
            self._commit_failures += 1
            self._next_commit = self.now() + COMMIT_AGAIN_S
            self.events.write("commit-failed", error=str(error), tries=self._commit_failures)
            if self._commit_failures >= COMMIT_TRIES:
                self._failure = error
                self._finished.set()
            return
        self._commit_failures, self._next_commit = 0, 0.0
        self.frontier.on_committed(self.committer.batch, self.now())
        self.outcomes.committed()
        if self._due is not None:
            self._due.committed()
        self.linker.committed()
        if self._outside is not None:
            self._outside.committed()
        self._inbox.settle()
        self.committer.announce_all()
        self.events.flush()
        if self.on_commit is not None:
            self.on_commit()
        deferred, self._deferred = self._deferred, []
        for lease, request, response in deferred:
            self._on_response(lease, request, response)

    def _write_last(self, batch: Batch) -> None:
        self.outcomes.before_commit(batch, is_last=self._finished.is_set())
        self.frontier.before_commit()
        self.linker.write(batch)
        batch.put(*self._teller.row())
        self._teller.write_moment(batch, in_flight=len(self._in_flight), is_over=self._finished.is_set())
        if self._outside is not None:
            self._outside.write(batch)

    def _take_in_losses(self) -> None:
        """After a power loss: the pages whose records are not whole are queued again."""
        lost = self.outcomes.take_back(self.collection.recovery)
        self.counters.run_lost = lost
        if lost:
            self.events.write("records-lost", pages=lost)
            self.collection.acknowledge_losses(self.committer.batch)

    # telling

    def stats(self) -> CrawlStats:
        return self._teller.stats(in_flight=len(self._in_flight), is_over=self._finished.is_set())


def _pace(settings: CrawlSettings) -> Politeness:
    return Politeness(
        delay_s=settings.delay_s,
        per_host=settings.per_host,
        ip_delay_s=settings.ip_delay_s,
        per_ip=settings.parallel_per_ip,
        groups=tuple(HostGroup(*read_group(text)) for text in settings.groups),
        pages_per_host=settings.pages_per_host,
        host_depth=settings.host_depth,
        robots=settings.robots,
    )
