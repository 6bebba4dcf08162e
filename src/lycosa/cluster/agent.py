"""An agent: one shard's engine, open to the other shards (M2). It sends what is theirs, takes what is its own, beats.

Everything runs on the event loop of the engine. Without a beat that was answered in the last `LEASE_S` it asks nobody
any more: someone else may own its hosts by then. Knows nothing of Ray: `Peers` and `Coordination` are how it speaks.
"""

import asyncio
import contextlib
import platform
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

from lycosa import __version__
from lycosa.cluster.added import Added
from lycosa.cluster.arrivals import Arrivals
from lycosa.cluster.assignment import Scheme, Table
from lycosa.cluster.cargo import Cargo
from lycosa.cluster.errands import Errands, Messengers
from lycosa.cluster.homes import make_home, note_generation
from lycosa.cluster.keeper import InThread, Keeper
from lycosa.cluster.messages import Message, Reply, Word
from lycosa.cluster.outbox import Outbox
from lycosa.cluster.part import Part
from lycosa.cluster.reports import Enrolment, Orders, Report
from lycosa.cluster.sightings import Sightings
from lycosa.cluster.visits import Visits
from lycosa.engine.engine import Engine
from lycosa.engine.inbox import Inbox
from lycosa.engine.parts import usual_parts
from lycosa.engine.stats import CrawlStats
from lycosa.errors import ClusterError, LycosaError, StoreError
from lycosa.frontier.crossing import Crossing
from lycosa.records import Response
from lycosa.settings import CrawlSettings
from lycosa.settings.toml import to_toml
from lycosa.store import Batch, Collection, is_collection
from lycosa.store.central import CentralStore, open_store
from lycosa.web.url import Url, split

BEAT_S = 0.5
QUICK_S, SOONEST_S = 0.1, 0.05  # between beats while somebody waits for an address; and before the first word of one
BEATERS = 400  # so many agents may beat at this pace; more beat more slowly, and nobody's lease suffers below 10,000
QUICK_BEATERS = 50  # the same for quick beats
LEASE_S = 14.0  # less than an address is held for
CUT_OFF_S = 10.0  # without a lease for so long an agent ends, and its files are free
LOOK_S = 0.25
CALL_S = 10.0  # a call that takes longer has failed: a cut line answers never
AGAIN_S = 0.5  # after a call that failed
LOCK_PATIENCE_S = 60.0  # a killed process holds its folder a moment longer, one that is cut off until it ends
STORE_PATIENCE_S = 60.0  # a store may be away for a moment
NO_CAP = 1 << 62
MACHINE = platform.node()
WARCS_A_SHARD = 100_000  # numbers that a shard has for its archive's files, so that no two shards use the same


class Peers(Messengers, Protocol):
    """How an agent speaks to others."""

    async def tell(self, receiver: str, message: Message) -> Reply:
        """Hands a message over; ClusterError if that was not to be."""
        ...

    async def carry(self, receiver: str, cargo: Cargo) -> bool:
        """Hands rows over; True when they are on disk there, ClusterError if that was not to be."""
        ...


class Coordination(Protocol):
    """How an agent speaks to the coordinator."""

    async def beat(self, report: Report) -> Orders:
        """Reports; ClusterError if nobody answers."""
        ...


class Agent:
    """The agent of one shard. `run` goes on until the crawl is over, stopped, or the agent is void."""

    def __init__(self, enrolment: Enrolment, peers: Peers, coordination: Coordination, **parts: Any) -> None:
        self.name, self.incarnation = enrolment.name, enrolment.incarnation
        self.settings = shard_settings(enrolment.settings)
        self.folder = Path(enrolment.folder)
        self._warcs = range(enrolment.number * WARCS_A_SHARD, (enrolment.number + 1) * WARCS_A_SHARD)
        self._known = dict(enrolment.members)
        self.part = Part(self.name, enrolment.table, enrolment.moving)
        self._peers, self._coordination, self._parts = peers, coordination, parts
        self._now: Callable[[], float] = parts.get("now") or time.monotonic
        self._cap = NO_CAP if enrolment.settings.pages is None else 0
        self._is_over = False
        self._lease_until = self._now() + LEASE_S
        self._telling: dict[str, asyncio.Task[None]] = {}
        self._commit: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._received = 0
        self.visits, self.errands = Visits(), Errands(self.part, peers)
        self._boot = self._told_boot = ""  # the coordinator's start, and that of it which knows what is held here
        self._hurry = asyncio.Event()
        goes_by_address = enrolment.table.scheme is Scheme.IP or enrolment.settings.places
        self._sightings = Sightings() if goes_by_address else None
        self._scope_told: int = 0
        self.engine: Engine | None = None
        self._generation = enrolment.generation
        self._in_thread: InThread = parts.pop("in_thread", asyncio.to_thread)
        self.keeper: Keeper | None = None
        self._added: Added | None = None

    def __repr__(self) -> str:
        return f"<Agent {self.name}/{self.incarnation} epoch={self.part.table.epoch} {self.engine!r}>"

    # the life of an agent

    async def run(self) -> CrawlStats:
        """Crawls; raises what ended it, if that was not meant."""
        store = open_store(self.settings.store) if self.settings.store else None
        if store is not None:
            await self._find_home(store)
        is_restart = is_collection(self.folder) or self._generation > 0
        collection = await self._open()
        self._lease_until = max(self._lease_until, self._now())  # to come here may have taken long
        try:
            collection.save_settings(to_toml(self.settings))
            self.outbox = Outbox(collection.state, self.name, self.incarnation, self.part.table)
            self.arrivals = Arrivals(collection.state)
            if store is not None:
                note_generation(self.folder, self._generation)
                self.keeper = Keeper(self, collection, self.arrivals, store, in_thread=self._in_thread)
                self._added = Added(self.folder, self.keeper) if self.keeper.has_copies else None
            parts = usual_parts(self.settings, outside=self, **self._parts)
            engine = self.engine = Engine(collection, self.settings, parts, is_restart=is_restart)
            self._scope_told = len(engine.scope_seeds)
            self.part.put_right(engine)
            self._take_back()
            if hasattr(engine.downloader, "set_fence"):
                engine.downloader.set_fence(self._fence)
            beats = asyncio.get_running_loop().create_task(self._beats(engine))
            watch = asyncio.get_running_loop().create_task(self._watch_lease(engine))
            keeping = self.keeper.begin(engine) if self.keeper is not None else []
            try:
                stats = await engine.run()
            finally:
                asking = [*self.part.tasks(), *self.errands.tasks(), *self._telling.values()]
                await _cancelled([beats, watch, *keeping, *asking])
            await self._bring_the_rest(engine)
            await self._last_beat(engine)
            return stats
        finally:
            self.engine = None
            collection.close()

    async def _find_home(self, store: CentralStore) -> None:
        """The shard's folder, restored if need be; a store that does not answer is asked again for a while."""
        deadline = time.monotonic() + STORE_PATIENCE_S
        while True:
            try:
                await self._in_thread(make_home, self.folder, self.name, self._generation, store, self._warcs)
                return
            except StoreError:
                if time.monotonic() > deadline:
                    raise
                await asyncio.sleep(CALL_S)

    async def put(self, urls: Sequence[str]) -> None:
        """URLs that the user adds; when this returns they are safe here, or in a copy of this shard if it has any."""
        if self._added is not None:
            await self._added.put(urls)
        else:
            Inbox(self.folder).put(urls)

    async def _bring_the_rest(self, engine: Engine) -> None:
        """The crawl has ended: what is not in the store yet is brought there, and the coordinator hears of it."""
        if self.keeper is None:
            return
        async with self.keeper.finishing() as task:
            while not task.done():
                asked = self._now()
                with contextlib.suppress(ClusterError):
                    orders = await self._coordination.beat(self._report(engine))
                    self._lease_until = 0.0 if orders.is_void else asked + LEASE_S
                await asyncio.wait([task], timeout=BEAT_S)

    async def _open(self) -> Collection:
        info = {"software": f"lycosa/{__version__}", "format": "WARC File Format 1.1"}
        deadline = time.monotonic() + LOCK_PATIENCE_S
        while True:
            try:
                return Collection.create(
                    self.folder, warc_info=info, warc_bytes=self.settings.warc_bytes, warc_first=self._warcs.start
                )
            except LycosaError as error:
                if "in use" not in str(error) or time.monotonic() > deadline:
                    raise
                await asyncio.sleep(AGAIN_S)

    # what the engine asks (`engine.outside.Outside`)

    def owns(self, host: str) -> bool:
        return self.part.owns(host)

    def send(self, crossings: Sequence[Crossing]) -> list[Crossing]:
        return self.outbox.send(crossings)

    def may_ask(self, pages: int) -> bool:
        return pages < self._cap and self.has_lease()

    def may_visit(self, address: str, host: str) -> bool:
        if self._sightings is not None:
            self._sightings.note(host, address)
        if not self.part.may_visit(host):
            return False
        if len(self.part.table.members) == 1 or self.visits.may_visit(address, host, self._now()):
            return True
        if self.visits.has_news:
            self._hurry.set()
        return False

    def ask_robots(self, url: Url, then: Callable[[Response], None]) -> None:
        if self.engine is not None:
            self.errands.ask(self.engine, url, then)

    def may_end(self) -> bool:
        return self._is_over

    def has_lease(self) -> bool:
        return self._now() < self._lease_until

    def write(self, batch: Batch) -> None:
        self.outbox.write(batch)
        self.arrivals.write(batch)

    def committed(self) -> None:
        self.outbox.committed()
        self.arrivals.committed()
        commit, self._commit = self._commit, asyncio.get_running_loop().create_future()
        commit.set_result(None)
        self._tell_all()

    # the exchange

    async def take(self, message: Message) -> Reply:
        """URLs from another shard; answered when they are on disk."""
        if self.engine is None or self.part.moving is not None:
            return Reply(Word.BUSY, (0, 0), (0, 0))
        if message.epoch != self.part.table.epoch:
            return self.arrivals.reply(message.sender, Word.EPOCH)
        crossings = self.arrivals.open(message)
        if crossings is None:
            return self.arrivals.reply(message.sender, Word.GAP)
        if not self.engine.receive(crossings):
            return self.arrivals.reply(message.sender, Word.BUSY)
        self.arrivals.note(message)
        self._received += len(message.rows)
        try:
            await asyncio.wait_for(asyncio.shield(self._commit), CALL_S / 2)
        except TimeoutError:
            return self.arrivals.reply(message.sender, Word.BUSY)
        reply = self.arrivals.reply(message.sender, Word.TAKEN)
        if message.is_parting and reply.covered < reply.committed and self.keeper is not None:
            self.keeper.want_soon()
        return reply

    def _tell_all(self) -> None:
        for receiver in self.outbox.receivers():
            if receiver not in self._telling:
                task = asyncio.get_running_loop().create_task(self._tell(receiver))
                self._telling[receiver] = task
        if self._is_parting:
            for receiver, message in self.outbox.parting():
                if receiver not in self._telling:
                    self._telling[receiver] = asyncio.get_running_loop().create_task(self._part(receiver, message))

    @property
    def _is_parting(self) -> bool:
        """Has this shard left, and must see to it that copies of the others have what it sent?"""
        has_copies = self.keeper is not None and self.keeper.has_copies
        return has_copies and all(member.name != self.name for member in self.part.table.members)

    async def _part(self, receiver: str, message: Message) -> None:
        try:
            with contextlib.suppress(ClusterError):
                self.outbox.answered(receiver, message, await self._peers.tell(receiver, message))
            await asyncio.sleep(AGAIN_S)
        finally:
            del self._telling[receiver]

    async def _tell(self, receiver: str) -> None:
        """Sends to one receiver, a message at a time, until there is nothing left or it does not take them."""
        try:
            while (message := self.outbox.next(receiver)) is not None:
                try:
                    reply = await self._peers.tell(receiver, message)
                except ClusterError:
                    await asyncio.sleep(AGAIN_S)
                    return
                self.outbox.answered(receiver, message, reply)
                if reply.word not in (Word.TAKEN, Word.GAP):
                    await asyncio.sleep(AGAIN_S)
                    return
        finally:
            del self._telling[receiver]

    # beats

    async def _beats(self, engine: Engine) -> None:
        try:
            while True:
                await self._beat(engine)
                await self._rest()
        except Exception as error:  # an agent that cannot beat is of no use: it ends, and says why
            engine.fail(error)

    async def _rest(self) -> None:
        """Until the next beat: soon where an address is wanted that nobody was asked for, or somebody waits."""
        agents = len(self.part.table.members)
        many = max(1.0, agents / QUICK_BEATERS)
        await asyncio.sleep(SOONEST_S * many)
        is_quick = self.visits.is_contended or self._boot != self._told_boot
        rest_s = QUICK_S * many if is_quick else BEAT_S * max(1.0, agents / BEATERS)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._hurry.wait(), max(0.0, rest_s - SOONEST_S * many))

    async def _watch_lease(self, engine: Engine) -> None:
        """Who is not heard any more closes its transfers in time, and ends if that lasts: others may have its shard."""
        while True:
            await asyncio.sleep(LOOK_S)
            self._fence()
            if self._now() > self._lease_until + CUT_OFF_S:
                engine.fail(ClusterError(f"shard {self.name} is cut off from the coordinator"))

    def _fence(self) -> bool:
        """Asked before every action on a socket: a process that was frozen finds its lease void and closes them all."""
        if self._now() < self._lease_until:
            return False
        if self.engine is not None:
            self.engine.downloader.cancel_all()
        return True

    async def _beat(self, engine: Engine) -> None:
        asked = self._now()
        self._hurry.clear()
        self.visits.look(engine.in_use, asked)
        report = self._report(engine)
        try:
            orders = await self._coordination.beat(report)
        except ClusterError:
            return
        if orders.is_void:
            self._lease_until = 0.0
            engine.fail(ClusterError(f"shard {self.name} has been taken over: incarnation {self.incarnation} is void"))
            return
        self._lease_until = asked + LEASE_S
        if self._sightings is not None:
            self._sightings.heard(report.homes)
            if self._boot != orders.boot:
                self._sightings.forget()
        self._told_boot, self._boot = report.boot, orders.boot
        engine.located(self.visits.granted(orders.granted, orders.awaited, asked))
        self._obey(engine, orders)

    def _obey(self, engine: Engine, orders: Orders) -> None:
        self._cap = NO_CAP if orders.cap is None else orders.cap
        for name, incarnation in orders.members.items():
            if self._known.get(name, incarnation) != incarnation:
                self.outbox.restarted(name)
            self._known[name] = incarnation
        if orders.widened:
            engine.outcomes.widen([split(href) for href in orders.widened])
        part = self.part
        if orders.table is not None and orders.table.epoch > part.table.epoch:
            if part.adopt(engine, orders.table):
                self._route(engine, orders.table)
        elif orders.moving is not None and orders.moving.epoch == part.table.epoch + 1:
            round = orders.given if self.keeper is not None and self.keeper.has_copies else 0
            if not part.is_carrying or round != part.round:
                self.outbox.route(orders.moving)
                part.begin(engine, orders.moving, self._peers.carry, self._next_commit, round=round)
        if (orders.stop or orders.is_over) and not engine.stopped_by and not self._is_over:
            out = self.outbox
            engine.events.write("exchange", urls=out.urls_sent, bytes=out.bytes_sent, messages=out.messages_sent)
        if orders.stop and not engine.stopped_by:
            engine.stop(orders.stop)
        if orders.settle != (0, 0) and self.keeper is not None:
            self.keeper.settle(orders.settle)
        self._is_over = orders.is_over
        self._tell_all()
        engine.wake()

    async def load(self, cargo: Cargo) -> bool:
        """Buckets that will be this shard's; True when they are on disk."""
        return self.engine is not None and self.part.load(self.engine, cargo)

    async def robots(self, href: str) -> Response:
        """A robots.txt that another shard needs from a host of this one."""
        if self.engine is None:
            raise ClusterError("the agent is not open yet")
        return await self.errands.do(self.engine, href)

    async def _next_commit(self) -> None:
        await asyncio.shield(self._commit)

    def _route(self, engine: Engine, table: Table) -> None:
        """A new table is in force."""
        self.outbox.route(table)
        self._take_back()
        engine.add([seed for seed in engine.seeds if self.owns(seed.host)])  # their owner may be a restored one
        engine.located(self.visits.wake_all())

    def _take_back(self) -> None:
        """What was kept for others and is this shard's own by now."""
        own = self.outbox.take_back()
        if own and self.engine is not None:
            self.engine.receive(own)

    def _report(self, engine: Engine, *, ended: str = "") -> Report:
        stats = engine.stats()
        pages = stats.pages + stats.in_flight
        has_rest = stats.in_flight or not engine.is_idle
        if not has_rest and self._cap < NO_CAP:
            self._cap = pages  # what it does not need is there for others
        widened = engine.scope_seeds[self._scope_told :]
        self._scope_told = len(engine.scope_seeds)
        return Report(
            name=self.name,
            incarnation=self.incarnation,
            epoch=self.part.table.epoch,
            stats=stats,
            is_idle=not has_rest and not self._unsent() and self.part.moving is None,
            activity=engine.counters.run_requests + self._received + self.outbox.messages_sent + stats.known,
            pages=pages,
            cap=min(self._cap, NO_CAP),
            widened=tuple(url.href for url in widened),
            ended=ended,
            shipped=self.part.shipped,
            round=self.part.round,
            boot=self._boot,
            holds=tuple(self.visits.held) if self._boot != self._told_boot else (),
            wants=self.visits.wants(self._now()),
            returns=self.visits.returns(),
            sent_urls=self.outbox.urls_sent,
            sent_bytes=self.outbox.bytes_sent,
            sent_messages=self.outbox.messages_sent,
            is_resting=not has_rest,
            unix=time.time(),
            machine=MACHINE,
            carrying=self.part.carrying,
            homes=dict(self._sightings.news) if self._sightings else {},
            **(self.keeper.report() if self.keeper else {}),
        )

    def _unsent(self) -> int:
        """Rows that others do not have; once this shard has left, those that no copy of theirs has."""
        return self.outbox.kept + self.outbox.waiting if self._is_parting else self.outbox.waiting

    async def _last_beat(self, engine: Engine) -> None:
        with contextlib.suppress(ClusterError):
            await self._coordination.beat(self._report(engine, ended=engine.stopped_by or "over"))


def shard_settings(settings: CrawlSettings) -> CrawlSettings:
    """The settings of one shard: limits over the whole are the coordinator's to watch."""
    return settings.model_copy(update={"pages": None, "bytes": None, "time_s": None})


async def _cancelled(tasks: Sequence["asyncio.Task[Any]"]) -> None:
    for task in tasks:
        task.cancel()
    for task in tasks:
        with contextlib.suppress(asyncio.CancelledError):
            await task
