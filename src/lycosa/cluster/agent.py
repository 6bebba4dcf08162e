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
from typing import Any

import msgspec

from lycosa.cluster.added import Added
from lycosa.cluster.arrivals import Arrivals
from lycosa.cluster.assignment import Scheme, Table
from lycosa.cluster.cargo import Cargo
from lycosa.cluster.central import CentralResolver, CentralRobots
from lycosa.cluster.errands import Errands
from lycosa.cluster.exchange import Exchange, busy
from lycosa.cluster.homes import note_generation
from lycosa.cluster.keeper import InThread, Keeper
from lycosa.cluster.lease import Lease
from lycosa.cluster.lines import Coordination, Peers
from lycosa.cluster.messages import Message, Reply
from lycosa.cluster.opening import find_home, open_shard, shard_settings
from lycosa.cluster.outbox import Outbox
from lycosa.cluster.pace import BEAT_S, Pace, cancelled
from lycosa.cluster.part import Part
from lycosa.cluster.reports import Enrolment, Orders, Report
from lycosa.cluster.sightings import Sightings
from lycosa.cluster.visits import Visits
from lycosa.engine.copies import Claim
from lycosa.engine.engine import Engine
from lycosa.engine.inbox import Inbox
from lycosa.engine.parts import usual_parts
from lycosa.engine.stats import CrawlStats
from lycosa.errors import ClusterError
from lycosa.frontier.crossing import Crossing
from lycosa.records import Response
from lycosa.settings.toml import to_toml
from lycosa.store import Batch, is_collection
from lycosa.store.central import open_store
from lycosa.web.url import Url, split

NO_CAP = 1 << 62
WARCS_A_SHARD = 100_000  # numbers that a shard has for its archive's files, so that no two shards use the same


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
        self._is_central = enrolment.settings.exchange == "coordinator"
        if self._is_central:
            parts["resolver"] = CentralResolver(coordination)
        self._cap = NO_CAP if enrolment.settings.pages is None else 0
        self._is_over = False
        self.lease, self.pace = Lease(self._now), Pace()
        self.visits, self.errands = Visits(), Errands(self.part, peers)
        self._boot = self._told_boot = ""  # the coordinator's start, and that of it which knows what is held here
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
            await find_home(self.folder, self.name, self._generation, store, self._warcs, self._in_thread)
        is_restart = is_collection(self.folder) or self._generation > 0
        collection = await open_shard(self.folder, self.settings.warc_bytes, self._warcs.start)
        self.lease.begin_late()
        try:
            collection.save_settings(to_toml(self.settings))
            outbox = Outbox(collection.state, self.name, self.incarnation, self.part.table)
            self.exchange = Exchange(outbox, Arrivals(collection.state), self._peers.tell)
            if store is not None:
                note_generation(self.folder, self._generation)
                self.keeper = Keeper(self, collection, self.exchange.arrivals, store, in_thread=self._in_thread)
                self._added = Added(self.folder, self.keeper) if self.keeper.has_copies else None
                self.exchange.want_copy = self.keeper.want_soon
                self._note_parting()
            parts = usual_parts(self.settings, outside=self, **self._parts)
            if self._is_central:
                parts.downloader = CentralRobots(parts.downloader, self._coordination, self._now)
            engine = self.engine = Engine(collection, self.settings, parts, is_restart=is_restart)
            self._scope_told = len(engine.scope_seeds)
            self.part.put_right(engine)
            self.exchange.take_back(engine.receive)
            if hasattr(engine.downloader, "set_fence"):
                engine.downloader.set_fence(lambda: self.lease.fence(engine))
            beats = asyncio.get_running_loop().create_task(self._beats(engine))
            watch = asyncio.get_running_loop().create_task(self.lease.watch(engine, self.name))
            keeping = self.keeper.begin(engine) if self.keeper is not None else []
            try:
                stats = await engine.run()
            finally:
                asking = [*self.part.tasks(), *self.errands.tasks(), *self.exchange.tasks()]
                await cancelled([beats, watch, *keeping, *asking])
            await self._bring_the_rest(engine)
            await self._last_beat(engine)
            return stats
        finally:
            self.engine = None
            collection.close()

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
                    self.lease.make_void() if orders.is_void else self.lease.renew(asked)
                await asyncio.wait([task], timeout=BEAT_S)

    # what the engine asks (`engine.outside.Outside`)

    def owns(self, host: str) -> bool:
        return self.part.owns(host)

    def send(self, crossings: Sequence[Crossing]) -> list[Crossing]:
        return self.exchange.outbox.send(crossings)

    def owns_document(self, digest: bytes) -> bool:
        return self.part.owns_document(digest)

    def send_claims(self, claims: Sequence[Claim]) -> None:
        self.exchange.outbox.send_claims(claims)

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
            self.pace.hurry()
        return False

    def ask_robots(self, url: Url, then: Callable[[Response], None]) -> None:
        if self.engine is not None:
            self.errands.ask(self.engine, url, then)

    def may_end(self) -> bool:
        return self._is_over

    def has_lease(self) -> bool:
        return self.lease.is_valid

    def write(self, batch: Batch) -> None:
        self.exchange.write(batch)

    def committed(self) -> None:
        self.exchange.committed()

    # what others ask

    async def take(self, message: Message) -> Reply:
        """URLs from another shard; answered when they are on disk."""
        if self.engine is None or self.part.moving is not None:
            return busy()
        return await self.exchange.take(message, self.part.table.epoch, self.engine.receive)

    async def load(self, cargo: Cargo) -> bool:
        """Buckets that will be this shard's; True when they are on disk."""
        return self.engine is not None and self.part.load(self.engine, cargo)

    async def robots(self, href: str) -> Response:
        """A robots.txt that another shard needs from a host of this one."""
        if self.engine is None:
            raise ClusterError("the agent is not open yet")
        return await self.errands.do(self.engine, href)

    # beats

    async def _beats(self, engine: Engine) -> None:
        try:
            while True:
                await self._beat(engine)
                is_quick = self.visits.is_contended or self._boot != self._told_boot
                await self.pace.rest(len(self.part.table.members), is_quick=is_quick)
        except Exception as error:  # an agent that cannot beat is of no use: it ends, and says why
            engine.fail(error)

    async def _beat(self, engine: Engine) -> None:
        asked = self._now()
        self.pace.begin()
        self.visits.look(engine.in_use, asked)
        report = self._report(engine)
        try:
            orders = await self._coordination.beat(report)
        except ClusterError:
            return
        if orders.is_void:
            self.lease.make_void()
            engine.fail(ClusterError(f"shard {self.name} has been taken over: incarnation {self.incarnation} is void"))
            return
        self.lease.renew(asked)
        if self._sightings is not None:
            self._sightings.heard(report.homes, is_new_to_it=self._boot != orders.boot)
        self._told_boot, self._boot = report.boot, orders.boot
        engine.located(self.visits.granted(orders.granted, orders.awaited, asked))
        self._obey(engine, orders)

    def _obey(self, engine: Engine, orders: Orders) -> None:
        self._cap = NO_CAP if orders.cap is None else orders.cap
        engine.limits.heard(orders.seconds)
        for name, incarnation in orders.members.items():
            if self._known.get(name, incarnation) != incarnation:
                self.exchange.outbox.restarted(name)
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
                self.exchange.outbox.route(orders.moving)
                part.begin(engine, orders.moving, self._peers.carry, self.exchange.next_commit, round=round)
        if (orders.stop or orders.is_over) and not engine.stopped_by and not self._is_over:
            engine.events.write("exchange", **self.exchange.sent())
        if orders.stop and not engine.stopped_by:
            engine.stop(orders.stop)
        if orders.settle != (0, 0) and self.keeper is not None:
            self.keeper.settle(orders.settle)
        self._is_over = orders.is_over
        self.exchange.tell_all()
        engine.wake()

    def _route(self, engine: Engine, table: Table) -> None:
        """A new table is in force."""
        self.exchange.outbox.route(table)
        self._note_parting()
        self.exchange.take_back(engine.receive)
        engine.add([seed for seed in engine.seeds if self.owns(seed.host)])  # their owner may be a restored one
        engine.located(self.visits.wake_all())

    def _note_parting(self) -> None:
        """Has this shard left, and must see to it that copies of the others have what it sent?"""
        has_copies = self.keeper is not None and self.keeper.has_copies
        self.exchange.is_parting = has_copies and all(one.name != self.name for one in self.part.table.members)

    def _report(self, engine: Engine, *, ended: str = "") -> Report:
        stats = engine.stats()
        if self.keeper is not None:
            pages_left, bytes_left = self.keeper.left_out
            stats = msgspec.structs.replace(stats, left_out=pages_left, left_out_bytes=bytes_left)
        pages = stats.pages + stats.in_flight
        has_rest = stats.in_flight or not engine.is_idle
        is_quiet = not self.exchange.unsent and self.part.moving is None
        if not has_rest and self._cap < NO_CAP:
            self._cap = pages  # what it does not need is there for others
        widened = engine.scope_seeds[self._scope_told :]
        self._scope_told = len(engine.scope_seeds)
        return Report(
            name=self.name,
            incarnation=self.incarnation,
            stats=stats,
            is_idle=not has_rest and is_quiet,
            waits_long=is_quiet and engine.waits_long,
            activity=engine.counters.run_requests + self.exchange.activity + stats.known,
            pages=pages,
            cap=min(self._cap, NO_CAP),
            widened=tuple(url.href for url in widened),
            ended=ended,
            boot=self._boot,
            holds=tuple(self.visits.held) if self._boot != self._told_boot else (),
            wants=self.visits.wants(self._now()),
            returns=self.visits.returns(),
            is_resting=not has_rest,
            unix=time.time(),
            machine=platform.node(),
            homes=dict(self._sightings.news) if self._sightings else {},
            **self.part.report(),
            **self.exchange.report(),
            **(self.keeper.report() if self.keeper else {}),
        )

    async def _last_beat(self, engine: Engine) -> None:
        with contextlib.suppress(ClusterError):
            await self._coordination.beat(self._report(engine, ended=engine.stopped_by or "over"))
