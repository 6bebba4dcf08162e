"""The crawl of one shard: the loop that joins frontier, mapping, fetch, web and store.

The life of a URL is the first part of `Engine`: lease, resolve, fetch, read, admit, commit, one method a step, and each
says in which module the work is done. The second part is the life of a crawl: how it begins, goes on and ends.
Everything that touches the state runs on the event loop; pages may be read beside it (`crawl.reading`).
A failed page is an outcome, never an exception; a failed disk pauses the crawl and ends it after a while. Optional
features hang on it by `crawl.seams`.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from lycosa.crawl.assembly import LoopParts
from lycosa.crawl.committer import COMMIT_AGAIN_S
from lycosa.crawl.intake import Intake, accept_urls, move_hosts
from lycosa.crawl.progress import WAITING, waits_long
from lycosa.crawl.reader_threads import ReaderThreads
from lycosa.crawl.reading import LeaseAnswer
from lycosa.crawl.requeue import readmit_links, requeue_lost
from lycosa.crawl.seams import CopyClaim, Fetch, ReadPage
from lycosa.crawl.stats import CrawlStats
from lycosa.crawl.steering import NEW_SETTINGS, OrderTaker
from lycosa.frontier import ForwardedUrl, Lease, RequestKind
from lycosa.records import Failure, Request, Response
from lycosa.web import FollowedLinks, Steps, Url

INBOX_EVERY_S = 1.0
STOP_GRACE_S = 3.0  # what is in flight when the user stops may end in this time; all is over within five seconds
BY_USER = frozenset({"interrupted", "stopped"})  # reasons to stop after which nobody wants to wait
LINKS_AT_ONCE = 1_000  # a page with more of them is taken in step by step


class Engine:
    """A crawl of one collection. `run` goes on until nothing is queued, a limit is reached or `stop` is called."""

    # The life of a URL

    def _lease(self) -> Iterator[Lease]:
        """1. Lease (`frontier`): the URLs whose hosts may be asked now, while the limits leave room.

        2. Resolve (`crawl.addresses`, `mapping`): before it leases, the frontier asks where a host lives, or why it may
        not be asked. A host whose name is being looked up is put aside until `on_located` names it."""
        for _ in range(self.settings.crawl_batch):
            if not self._has_room():
                return
            if (lease := self.frontier.leasing.next(self.now(), self.now_unix())) is None:
                yield from self._lease_idle_slots()
                return
            yield lease
        self.wake()  # before the next ones the event loop has its turn

    def _fetch(self, lease: Lease) -> None:
        """3. Fetch (`fetch`): the handler of this kind makes the request, the downloader sends it, and the answer comes
        to `_on_response`. A host without an address is an answer, too."""
        for observer in self._observers:
            lease = observer.started(lease)
        now = self.now()
        self._in_flight[lease.ticket] = Fetch(lease, now)
        if lease.failure is not None:
            response = Response(lease.url, failure=lease.failure, detail=lease.detail, started_s=now, ended_s=now)
            self._loop.call_soon(self._on_response, lease, None, response)
            return
        request = self._handlers[lease.kind].request(lease)
        self.downloader.start(request, partial(self._on_response, lease, request))

    def _on_response(self, lease: Lease, request: Request | None, response: Response) -> None:
        answer = LeaseAnswer(lease, request, response, self.now_unix())
        converter = self.features.converter
        if converter is None or not converter.take(answer):
            self._readers.arrived(answer)  # it comes to `_take`, in order

    def on_converted(self, answer: LeaseAnswer) -> None:
        """An answer that was converted is read and kept as others are. Its lease holds no slots any more."""
        self._take(answer)

    def _take(self, answer: LeaseAnswer) -> None:
        """Answers come here in the order of their arrival. The links of a page that has very many are admitted first,
        while the event loop goes on."""
        lease, prepared = answer.lease, answer.prepared
        if self.committer.has_failed:
            self._deferred.append(answer)  # it must not slip into the batch that is half written
            self._changed.set()
        elif prepared and prepared.links.leading > LINKS_AT_ONCE and self.pages.can_take_early(answer):
            if lease.kind is not RequestKind.REVISIT:  # which compares the body several times
                answer.hold_packed(self.shard.reader.max_decoded_bytes)
            with self._errors_end_crawl():
                self._background.start(self._handle_in_steps(answer, prepared.links), lease.host.host)
            self._changed.set()
        else:
            self._handle(answer)

    def _handle_in_steps(self, answer: LeaseAnswer, links: FollowedLinks) -> Steps[None]:
        self._handle(answer, (yield from self.pages.admission.take_in_steps(answer.lease, links)))

    def _handle(self, answer: LeaseAnswer, new: Sequence[Url] = ()) -> None:
        """The answer is read, the links of a page are admitted, and when enough has gathered it is committed. `new` are
        URLs that became known by it already."""
        lease, response = answer.lease, answer.response
        try:  # as `_errors_end_crawl`, which costs a microsecond more
            del self._in_flight[lease.ticket]
            page = self._read(answer)
            if page is not None:
                page.new += new
            for observer in self._observers:
                observer.ended(lease, response, page)
            if page is not None:
                self._admit(page)
            elif response.failure is Failure.CANCELLED:
                self._put_back(lease, response)
            if self._readers.has_apart(answer):  # a long document: what is held of it goes before the next is read
                del response, page
                answer.let_go()
                self._commit()
            else:
                self._commit_if_full()
        except Exception as error:
            self.fail(error)
        self._readers.handled(answer)
        self.wake()
        self._changed.set()

    def _read(self, answer: LeaseAnswer) -> ReadPage | None:
        """4. Read: the handler of this kind of request reads the answer and keeps it (`crawl.keeper`). A new page
        comes back from `crawl.pages`; all else is dealt with there: redirects, failures (`crawl.pages`), robots.txt
        and sitemaps (`crawl.host_rules`), revisits (`recrawl`), tables (`tables`)."""
        lease, response = answer.lease, answer.response
        if response.failure is Failure.CANCELLED:
            return None
        self.counters.request(response)
        if not response.was_held:
            self._addresses.outage.record(lease.host.host, response.failure, self.now())
        seconds = max(0.0, response.ended_s - response.started_s)
        lease.host.record_request(response.size_bytes, seconds, self.now_unix())
        return self._handlers[lease.kind].handle(answer)

    def _admit(self, page: ReadPage) -> None:
        """5. Admit (`crawl.admission`): links that pass the filters and the seen test are queued in the frontier."""
        self.pages.admit(page)

    def _commit(self) -> None:
        """6. Commit (`crawl.committer`): records, rows and counts of all that was read since become one commit."""
        if self._failure is None:
            with self._errors_end_crawl():
                if self.committer.commit(self.now(), is_last=self._finished.is_set()):
                    self._after_commit()

    # The life of a crawl

    def __init__(self, parts: LoopParts) -> None:
        self.shard, self.seeds, self.downloader = parts.shard, parts.seeds, parts.given.downloader
        self.collection, self.settings, self.linker = parts.shard.collection, parts.shard.settings, parts.shard.linker
        self.frontier, self.counters, self.events = parts.shard.frontier, parts.shard.counters, parts.shard.events
        self.committer, self._background = parts.shard.committer, parts.shard.background
        self.now, self.now_unix, self._loop = parts.shard.now, parts.shard.now_unix, asyncio.get_running_loop()
        self.pages, self.host_rules, self.limits = parts.pages, parts.host_rules, parts.limits
        self.features = parts.features
        self._handlers, self._observers = parts.features.handlers, parts.features.observers
        self._sources, self._companions = parts.features.sources, parts.features.companions
        self._addresses, self._other_shards, self._copies = parts.addresses, parts.given.other_shards, parts.copies
        self._traps, self._in_flight, self._reporter = parts.traps, parts.in_flight, parts.reporter
        self.orders = OrderTaker(self.shard, parts.reporter, self)
        self.intake = Intake(self.shard, parts.inbox, self._sources, commit=self._commit, wake=self.wake)
        self._addresses.on_located, self._background.on_turn_done = self.on_located, self._after_background
        is_virtual = parts.given.now is not None
        self._readers = ReaderThreads(self.shard.reader, self._take, threads=parts.threads, is_virtual=is_virtual)
        self._is_endless = parts.is_endless
        self._turn_handle: asyncio.Handle | None = None
        self._wake_handle: asyncio.TimerHandle | None = None
        self._stopping = ""
        self._failure: Exception | None = None
        self._finished, self._changed = asyncio.Event(), asyncio.Event()
        self._deferred: list[LeaseAnswer] = []
        self.waits_for_consumer = False  # The consumer of pages is slower than the crawl.
        self.on_commit: Callable[[], None] | None = None

    def __repr__(self) -> str:
        return f"<Engine {self.collection.path} pages={self.counters.totals.pages} in_flight={len(self._in_flight)}>"

    def on_arriving(self, request: Request, response: Response) -> None:
        """A part of a slow response has come: the observers need not wait for the rest."""
        fetch = self._in_flight.get(request.ticket)
        if fetch is not None and not self.committer.has_failed and not self._stopping:
            with self._errors_end_crawl():
                for observer in self._observers:
                    observer.arriving(fetch.lease, response)
            self.wake()

    # beginning and end

    async def run(self) -> CrawlStats:
        """Crawls until nothing is left, a limit is reached or the crawl is stopped; commits; tells how it went."""
        self.events.write("start", seeds=[seed.href for seed in self.seeds])
        self.orders.begin()
        try:
            requeue_lost(self.shard)
            if pages := self.linker.catch_up():
                self.events.write("links-caught-up", pages=pages)
            for companion in self._companions:
                companion.begin()
            if await self.intake.take_in_inbox():
                self._commit()  # the sources find the intervals that were set since the last run
            for source in self._sources:
                await source.begin()
            if not self.frontier.only_due:
                await self.intake.add_all([seed for seed in self.seeds if self.frontier.owns(seed.host)])
                readmit_links(self.shard, self._commit)
            self.frontier.load(self.now())
            ticker = self._loop.create_task(self._tick())
            self.wake()
            try:
                await self._finished.wait()
            finally:
                ticker.cancel()
            await self._wind_down()
            for companion in self._companions:
                await companion.finish(is_hurried=self._stopping in BY_USER)
        finally:
            reason = str(self._failure) if self._failure else self._stopping or "nothing queued"
            self._background.close()
            self._readers.close()
            self.linker.close()
            for source in self._sources:
                source.close()
            for companion in self._companions:
                companion.close()
            self.events.write("stop", reason=reason, pages=self.counters.totals.pages)
            self.events.close()
            await self._addresses.close()
            await self.downloader.close()
        if self._failure is not None:
            raise self._failure
        return self.stats()

    def stop(self, reason: str = "stopped") -> None:
        """Lets what is in flight end, commits and finishes; a second call cancels what is in flight."""
        if self._stopping:
            self._cancel_all()
            for companion in self._companions:
                companion.hurry()
        # Whoever ends a crawl that is about to continue with other settings does not want it to continue.
        self._stopping = reason if self._stopping in ("", NEW_SETTINGS) else self._stopping
        self._check_end()

    @property
    def stopped_by(self) -> str:
        """What ended the crawl: a limit's name, "stopped", "waiting", or nothing."""
        return self._stopping

    def fail(self, error: Exception) -> None:
        """Ends the crawl at once: what is in flight is cancelled, nothing more is committed, `run` raises the error."""
        self._failure = self._failure or error
        self._finished.set()
        self._changed.set()

    @contextmanager
    def _errors_end_crawl(self) -> Iterator[None]:
        """A mistake in a callback ends the crawl and is raised by `run`: a crawl never hangs in silence."""
        try:
            yield
        except Exception as error:  # the event loop would only log it
            self.fail(error)

    async def _wind_down(self) -> None:
        deadline = self.now() + STOP_GRACE_S
        while self._in_flight and self.now() < deadline:
            self._changed.clear()
            try:
                await asyncio.wait_for(self._changed.wait(), max(0.0, deadline - self.now()))
            except TimeoutError:
                break
        self._cancel_all()
        self._readers.hurry()
        while self._readers and self._failure is None:
            self._changed.clear()
            await self._changed.wait()
        self._background.close()
        self._commit()
        while self.committer.has_failed and self._failure is None:
            await asyncio.sleep(COMMIT_AGAIN_S)
            self._commit()

    def _cancel_all(self) -> None:
        self.downloader.cancel_all()
        if self.features.converter is not None:
            self.features.converter.cancel_all()

    # other shards

    def receive(self, messages: Sequence[ForwardedUrl | CopyClaim]) -> bool:
        """Takes in what other shards found; False while the disk refuses: then they must be sent again."""
        if self.committer.has_failed or self._failure is not None:
            return False
        if self._copies is not None:
            self._copies.take([one for one in messages if isinstance(one, CopyClaim)])
        accept_urls(self.shard, self._traps, [one for one in messages if isinstance(one, ForwardedUrl)])
        self.wake()
        return True

    def run_between_pages(self, action: Callable[[], None]) -> bool:
        """Runs `action` between two pages; False: it was not run, as the disk refuses; try again later."""
        if self.committer.has_failed:
            return False
        with self._errors_end_crawl():
            action()
        self.wake()
        return True

    def hosts_in_flight(self) -> set[str]:
        """The hosts at which requests are under way, or ended and are not read yet."""
        return {fetch.lease.host.host for fetch in self._in_flight.values()} | self._background.hosts

    def move_hosts(self, *, leaving_buckets: Sequence[bytes], arriving_hosts: Sequence[tuple[bytes, bytes]]) -> bool:
        """Gives buckets away and takes hosts in, in a commit of its own; False: not now, try again."""
        self._commit()
        self.linker.flush()
        self.linker.catch_up()  # after a start: what the feed tells of pages that leave is lost with them
        if self.committer.has_failed or self.committer.waiting or self.linker.is_waiting:
            return False
        batch = move_hosts(self.shard, self._traps, leaving_buckets=leaving_buckets, arriving_hosts=arriving_hosts)
        self._reporter.write_counts(batch)
        self.collection.commit(batch)
        self.frontier.load(self.now())
        self.events.write("moved", lost=len(leaving_buckets), came=len(arriving_hosts))
        self.wake()
        return True

    def on_located(self, names: list[str]) -> None:
        """It is known now where these hosts live, and whether they may be asked there."""
        for name in names:
            self.frontier.host_control.on_resolved(name, self.now())
        self.wake()

    # turns of the loop

    def wake(self) -> None:
        """Something has changed: the loop looks for work when the event loop turns next."""
        if self._turn_handle is None:
            self._turn_handle = self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        """Fetches what may be fetched, then sleeps until a host may be asked again."""
        self._turn_handle = None
        if self._stopping or self._failure or self.committer.has_failed:
            return
        if self.waits_for_consumer or self._reporter.is_paused:
            return
        try:  # as `_errors_end_crawl`, which costs a microsecond more
            for lease in self._lease():
                self._fetch(lease)
            if self._has_room():  # else the next response is what there is to wait for
                self._plan_wake()
            self._check_end()
        except Exception as error:
            self.fail(error)

    def _lease_idle_slots(self) -> Iterator[Lease]:
        """The frontier has nothing to give now: slots that would stand idle are for what observers want to fetch."""
        if self.frontier.leasing.has_more:
            self.wake()
            return
        for observer in self._observers:
            leases = observer.idle()
            while self._has_room() and (lease := next(leases, None)) is not None:
                yield lease

    def _has_room(self) -> bool:
        return self.limits.has_room(len(self._in_flight))

    def _plan_wake(self) -> None:
        if self._wake_handle is not None:
            self._wake_handle.cancel()
            self._wake_handle = None
        at = self.frontier.scheduler.next_wake()
        if at is not None:
            self._wake_handle = self._loop.call_later(max(0.0, at - self.now()), self.wake)

    async def _tick(self) -> None:
        """Commits what has gathered, looks into the inbox, watches the limits."""
        next_inbox = self.now()
        while True:
            await asyncio.sleep(self.settings.store_interval_s)
            with self._errors_end_crawl():
                if self.now() >= next_inbox and not self.committer.has_failed:
                    next_inbox = self.now() + INBOX_EVERY_S
                    await self.intake.take_in_inbox()
                self.orders.obey()
                if not self.committer.has_failed and not self._stopping:
                    for source in self._sources:
                        source.feed()
                self._commit()
                limit = self.limits.reached(len(self._in_flight))
                if limit and not self._stopping:
                    self.stop(limit)
                self._check_end()
                self.wake()

    def _put_back(self, lease: Lease, response: Response) -> None:
        """A request was cancelled: its URL is still queued, and goes first."""
        self.frontier.outcomes.return_to_queue(lease)
        self.frontier.outcomes.release(lease, response.ended_s, self.now())

    def _after_background(self, error: Exception | None) -> None:
        """A turn of long work is over."""
        if error is not None:
            self.fail(error)
            return
        with self._errors_end_crawl():
            self._commit_if_full()
        self.wake()

    def _commit_if_full(self) -> None:
        """Commits where enough has gathered, or nothing more is to come."""
        waiting = self.committer.waiting
        if waiting >= self.settings.store_batch or (waiting and not self._in_flight and self._has_nothing_left()):
            self._commit()

    def _after_commit(self) -> None:
        self.events.flush()
        if self.on_commit is not None:
            self.on_commit()
        deferred, self._deferred = self._deferred, []
        for answer in deferred:
            self._take(answer)

    @property
    def is_idle(self) -> bool:
        """Nothing is left to be fetched, and nothing waits to be committed."""
        return self._has_nothing_left() and not self.committer.waiting

    def _check_end(self) -> None:
        is_done = self.is_idle and (self._other_shards is None or self._other_shards.may_end())
        if self._other_shards is None and not self._stopping and self.waits_long:
            self._stopping = WAITING
        if self._stopping or (not self._in_flight and (is_done or self._failure)):
            self._finished.set()

    @property
    def waits_long(self) -> bool:
        """Is there nothing to do but to wait for very long, and was that not asked for? It is left to the next run."""
        is_busy = self._in_flight or self.committer.waiting or self._failure or self._background
        if self.settings.wait or self._sources or is_busy or self._reporter.is_paused:
            return False
        return waits_long(self.frontier, self.now(), self.now_unix())

    def _has_nothing_left(self) -> bool:
        frontier = self.frontier
        if self._is_endless or self._background or not all(source.is_exhausted for source in self._sources):
            return False
        return frontier.counts.revisiting <= 0 and (frontier.counts.queued <= 0 or frontier.only_due)

    def stats(self) -> CrawlStats:
        return self._reporter.stats(is_over=self._finished.is_set())
