"""One shard's crawl: the loop that joins frontier, mapping, fetch, web and store.

The whole way of a URL is here: `_pump` leases what may be asked for and starts it, `_on_response` settles what came
back, `_commit` makes it last. One thread: everything runs on the event loop, a page takes a millisecond.
A failed page is an outcome, never an exception; a failed disk pauses the crawl and ends it after a while.
"""

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from heapq import nlargest
from itertools import islice

from lycosa.engine.committer import Committer
from lycosa.engine.counters import KEY as COUNTERS_KEY
from lycosa.engine.counters import Counters
from lycosa.engine.events import EventLog
from lycosa.engine.host_rules import ROBOTS_BYTES, SITEMAP_BYTES
from lycosa.engine.inbox import Inbox
from lycosa.engine.outcomes import Outcomes
from lycosa.engine.parts import Parts
from lycosa.engine.reading import Sifter, filters_of
from lycosa.engine.shard import Shard
from lycosa.engine.standing import standing
from lycosa.engine.stats import CrawlStats, SlowHost
from lycosa.errors import StoreError
from lycosa.fetch.headers import request_fields, user_agent
from lycosa.frontier.frontier import Frontier, Lease, Pace
from lycosa.frontier.hosts import Host
from lycosa.frontier.rows import Kind
from lycosa.frontier.shelf import Start
from lycosa.mapping.mapper import KnownHost, Mapper
from lycosa.records import Failure, Family, Mapped, Request, Response
from lycosa.settings import CrawlSettings
from lycosa.store import Batch, Collection
from lycosa.web.url import Url, parse

COMMIT_AGAIN_S = 1.0
COMMIT_TRIES = 10  # a second apart; then the crawl ends with what is committed
INBOX_EVERY_S = 1.0
STOP_GRACE_S = 4.0  # what is in flight when the user stops may end in this time
STARTS_A_TURN = 64  # requests started before the loop gets a turn
SLOWEST_SHOWN = 3
HOSTS_LOOKED_AT = 5_000  # for the slowest ones, four times a second


class Engine:
    """A crawl of one collection. `run` goes on until nothing is queued, a limit is reached or `stop` is called."""

    def __init__(
        self, collection: Collection, settings: CrawlSettings, parts: Parts, *, is_restart: bool = False
    ) -> None:
        self.collection, self.settings = collection, settings
        self._loop = asyncio.get_running_loop()
        self.now = parts.now or time.monotonic
        self._started, started_unix = self.now(), time.time()
        self._unix_offset = started_unix - self._started
        self.counters = Counters.load(collection.state.get(Family.META, COUNTERS_KEY))
        self._seconds_before = self.counters.totals.seconds
        self.committer = Committer(collection, syncs=settings.durability == "power")
        start = Start(self._started, started_unix, is_restart=is_restart)
        self.frontier = Frontier(collection.state, _pace(settings), start, locate=self._locate)
        totals = self.counters.totals
        self.frontier.known, self.frontier.queued, self.frontier.shelf.count = totals.known, totals.queued, totals.hosts
        self.frontier.dropped = self.counters.dropped
        self.frontier.batch = self.committer.batch
        self.guard = parts.guard
        for typed in settings.typed_hosts:
            host, _, port = typed.rpartition(":")
            self.guard.allow_literal(host, int(port))
        self.mapper = Mapper(
            parts.resolver,
            parts.guard,
            self._on_mapped,
            now=self.now,
            workers=settings.mapping_workers,
            batch=settings.mapping_batch,
        )
        self.downloader = parts.downloader
        self.events = EventLog(collection.log_path, self.now_unix)
        self._inbox = Inbox(collection.path)
        self.agent = user_agent(settings.agent, contact=settings.contact or "")
        self._fields = request_fields(self.agent)
        self.seeds = [url for seed in settings.seeds if (url := parse(seed))]
        sifter = Sifter(
            [*filters_of(settings, self.seeds), *parts.filters], settings.max_url_bytes, self.counters.dropped
        )
        shard = Shard(
            collection,
            settings,
            self.frontier,
            self.counters,
            self.committer,
            self.mapper,
            self.events,
            sifter,
            list(self.seeds),
            self.now,
            self.now_unix,
        )
        self.outcomes = Outcomes(shard, parts)
        self._in_flight: dict[int, Lease] = {}
        self._unresolved: list[str] = []  # names that found the mapping queue full
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
            self.add(self.seeds)
            self.add(self._inbox.take())
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
            self.events.write("stop", reason=reason, pages=self.counters.totals.pages)
            self.events.close()
            await self.mapper.close()
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
        """What ended the crawl: a limit's name, "stopped", or nothing."""
        return self._stopping

    def add(self, urls: Sequence[Url]) -> int:
        """Takes in URLs that the user asks for, whatever the scope; their hosts become part of it."""
        if not urls:
            return 0
        if self.committer.has_failed:  # the batch is half written: they are taken in after it
            self._inbox.put(url.href for url in urls)
            return 0
        self.outcomes.widen(urls)
        new = self.frontier.admit(urls, depth=0, now=self.now(), is_wish=True)
        self._plan_pump()
        return new

    async def _wind_down(self) -> None:
        deadline = self.now() + STOP_GRACE_S
        while self._in_flight and self.now() < deadline:
            self._changed.clear()
            try:
                await asyncio.wait_for(self._changed.wait(), max(0.0, deadline - self.now()))
            except TimeoutError:
                break
        self.downloader.cancel_all()
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
                if self.now() >= next_inbox and not self.committer.has_failed:
                    next_inbox = self.now() + INBOX_EVERY_S
                    self.add(self._inbox.take())
                self._commit()
                limit = self._limit_reached()
                if limit and not self._stopping:
                    self.stop(limit)
                self._check_end()
                self._plan_pump()

    def _check_end(self) -> None:
        is_done = self.frontier.queued <= 0 and not self.committer.waiting
        if (not self._in_flight and (self._stopping or is_done or self._failure)) or self._stopping:
            self._finished.set()

    def _limit_reached(self) -> str:
        s, t = self.settings, self.counters.totals
        if s.pages is not None and t.pages >= s.pages:
            return "pages"
        if s.bytes is not None and t.bytes >= s.bytes:
            return "bytes"
        if s.time_s is not None and self.seconds() >= s.time_s:
            return "time"
        return ""

    def seconds(self) -> float:
        """Seconds that this collection has been crawled for, this run included."""
        return self._seconds_before + self.now() - self._started

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
        while self._has_room():
            if started >= STARTS_A_TURN:
                self._plan_pump()
                return
            lease = self.frontier.next(self.now(), self.now_unix())
            if lease is None:
                break
            self._start(lease)
            started += 1
        self._plan_wake()
        self._check_end()

    def _has_room(self) -> bool:
        s = self.settings
        if len(self._in_flight) >= s.transfers:
            return False
        return s.pages is None or self.counters.totals.pages + len(self._in_flight) < s.pages

    def _plan_wake(self) -> None:
        if self._wake_handle is not None:
            self._wake_handle.cancel()
            self._wake_handle = None
        at = self.frontier.turns.next_wake()
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
        is_page = lease.kind is Kind.PAGE
        request = Request(
            url=lease.url,
            host=lease.host.host,
            port=lease.host.port,
            address=lease.address,
            headers=self._fields,
            body_limit_bytes=0 if is_page else ROBOTS_BYTES if lease.kind is Kind.ROBOTS else SITEMAP_BYTES,
            takes_any_type=not is_page,
        )
        self.downloader.start(request, lambda response: self._on_response(lease, request, response))

    # where hosts live

    def _locate(self, host: Host) -> Mapped | None:
        mapped = self.mapper.lookup(host.host, host.port)
        row = host.row
        if mapped is None and row.address and row.address_until > self.now_unix():
            self.mapper.restore([KnownHost(host.host, (row.address,), row.address_until)], now_unix_s=self.now_unix())
            mapped = self.mapper.lookup(host.host, host.port)
        if mapped is None:
            if not self.mapper.want(host.host):
                self._unresolved.append(host.host)
        elif mapped.failure is None and row.address != mapped.address:
            row.address = mapped.address
            row.address_until = min(mapped.expires_s + self._unix_offset, 1e12)
        return mapped

    def _on_mapped(self, mapped: list[Mapped]) -> None:
        for each in mapped:
            self.frontier.named(each.host, self.now())
        waiting, self._unresolved = self._unresolved, []
        self._unresolved = [name for name in waiting if not self.mapper.want(name)]
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
            self.frontier.put_back(lease)
            self.frontier.release(lease, response.ended_s, self.now())
        else:
            self.outcomes.settle(lease, request, response)
        if self.committer.waiting >= self.settings.store_batch:
            self._commit()
        self._plan_pump()

    # keeping

    def _commit(self) -> None:
        if self._failure is not None or self.now() < self._next_commit:
            return
        try:
            if self._commit_failures:
                self.collection.state.reopen()
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
        self.frontier.batch = self.committer.batch
        self.frontier.committed(self.now())
        self.outcomes.committed()
        self._inbox.settle()
        self.committer.announce_all()
        self.events.flush()
        if self.on_commit is not None:
            self.on_commit()
        deferred, self._deferred = self._deferred, []
        for lease, request, response in deferred:
            self._on_response(lease, request, response)

    def _write_last(self, batch: Batch) -> None:
        self.frontier.write_hosts()
        frontier = self.frontier
        batch.put(
            *self.counters.row(
                known=frontier.known, queued=frontier.queued, hosts=frontier.shelf.count, seconds=self.seconds()
            )
        )

    def _take_in_losses(self) -> None:
        """After a power loss: the pages whose records are not whole are queued again."""
        lost = self.outcomes.lost_pages(self.collection.recovery)
        if lost:
            self.events.write("records-lost", pages=len(lost))
            self.frontier.requeue(lost, self.now())
            self.collection.settle(self.committer.batch)

    # telling

    def stats(self) -> CrawlStats:
        t, c, f = self.counters.totals, self.counters, self.frontier.stats()
        run_s = max(self.now() - self._started, 1e-9)
        return CrawlStats(
            pages=t.pages,
            bytes=t.bytes,
            requests=t.requests,
            queued=f.queued,
            known=f.known,
            duplicates=t.duplicates,
            redirects=t.redirects,
            not_modified=t.not_modified,
            in_flight=len(self._in_flight),
            hosts=f.hosts,
            hosts_active=f.active,
            hosts_waiting=f.waiting,
            hosts_parked=f.parked,
            failed={str(reason): count for reason, count in c.failed.items()},
            dropped={str(reason): count for reason, count in c.dropped.items() if count},
            types=dict(c.types),
            languages=dict(c.languages),
            statuses=dict(c.statuses),
            sizes=dict(c.sizes),
            links=dict(c.links),
            seconds=self.seconds(),
            run_seconds=run_s,
            run_pages=c.run_pages,
            run_requests=c.run_requests,
            run_bytes=c.run_bytes,
            pages_per_s=c.run_pages / run_s,
            bytes_per_s=c.run_bytes / run_s,
            slowest=self._slowest(),
            left_s=self._left_s(run_s),
            standing=standing(self.frontier, self.now(), self.now_unix(), in_flight=len(self._in_flight)),
        )

    def _slowest(self) -> tuple[SlowHost, ...]:
        """The slowest of the hosts that still have work; of very many, the first ones stand for all."""
        hosts = islice(self.frontier.shelf.hosts.values(), HOSTS_LOOKED_AT)
        asked = [
            (h.row.seconds / h.row.requests, h.host, h.row.queued) for h in hosts if h.row.requests and h.row.queued
        ]
        return tuple(SlowHost(name, mean_s, queued) for mean_s, name, queued in nlargest(SLOWEST_SHOWN, asked))

    def _left_s(self, run_s: float) -> float | None:
        s, c = self.settings, self.counters
        guesses = []
        if s.time_s is not None:
            guesses.append(s.time_s - self.seconds())
        if s.pages is not None and c.run_pages:
            guesses.append((s.pages - c.totals.pages) * run_s / c.run_pages)
        return max(0.0, min(guesses)) if guesses else None


def _pace(settings: CrawlSettings) -> Pace:
    return Pace(
        delay_s=settings.delay_s,
        per_host=settings.per_host,
        ip_delay_s=settings.ip_delay_s,
        per_ip=max(settings.per_ip, settings.per_host),
        pages_per_host=settings.pages_per_host,
        robots=settings.robots,
    )
