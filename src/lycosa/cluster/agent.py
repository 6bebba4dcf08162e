"""An agent runs one shard's crawl in a cluster: it sends other shards their URLs, takes its own, and heartbeats.

Everything runs on the event loop of the crawl. Without a heartbeat that was answered lately it makes no request:
another agent may own its hosts by then. Imports no Ray: `PeerClient` and `CoordinatorClient` are how it speaks.
"""

import asyncio
import contextlib
import platform
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec

from lycosa.cluster.assignment import AssignmentTable, Scheme
from lycosa.cluster.backup import AddedUrls, RunInThread, ShardBackup
from lycosa.cluster.checkpoints import ensure_shard_folder, write_generation
from lycosa.cluster.delegation import (
    CentralResolver,
    CentralRobotsDownloader,
    CoordinatorLookups,
    RobotsClient,
    RobotsDelegation,
)
from lycosa.cluster.exchange import UrlExchange, UrlInbox, busy_reply
from lycosa.cluster.heartbeat import HEARTBEAT_S, AgentOrders, AgentReport, Enrolment, Heartbeat, cancel_and_wait
from lycosa.cluster.leases import AgentLease, HeldAddresses
from lycosa.cluster.locality import ObservedAddresses
from lycosa.cluster.messages import Message, Reply
from lycosa.cluster.outbox import UrlOutbox
from lycosa.cluster.transfer import BucketTransfer, OwnedHosts
from lycosa.crawl.copies import CopyClaim
from lycosa.crawl.inbox import Inbox
from lycosa.crawl.loop import Engine
from lycosa.crawl.parts import usual_parts
from lycosa.crawl.stats import CrawlStats
from lycosa.errors import ClusterError, LycosaError, StoreError
from lycosa.frontier import ForwardedUrl
from lycosa.records import Response
from lycosa.settings import CrawlSettings, to_toml
from lycosa.store import Batch, CentralStore, CollectionStore, is_collection, open_central_store
from lycosa.version import __version__
from lycosa.web import Url, split_url


class PeerClient(RobotsClient, Protocol):
    """How an agent speaks to others."""

    async def tell(self, receiver: str, message: Message) -> Reply:
        """Hands a message over; ClusterError if that was not to be."""
        ...

    async def carry(self, receiver: str, cargo: BucketTransfer) -> bool:
        """Hands rows over; True when they are on disk there, ClusterError if that was not to be."""
        ...


class CoordinatorClient(CoordinatorLookups, Protocol):
    """How an agent speaks to the coordinator."""

    async def beat(self, report: AgentReport) -> AgentOrders:
        """Reports; ClusterError if nobody answers."""
        ...


LOCK_TIMEOUT_S = 60.0  # a killed process holds its folder a moment longer, one that is cut off until it ends
STORE_TIMEOUT_S = 60.0  # a store may be away for a moment
LOCK_AGAIN_S, STORE_AGAIN_S = 0.5, 10.0


async def prepare_shard_folder(
    folder: Path, shard: str, generation: int, store: CentralStore, warcs: range, in_thread: RunInThread
) -> None:
    """The shard's folder, restored if need be; a store that does not answer is asked again for a while."""
    deadline = time.monotonic() + STORE_TIMEOUT_S
    while True:
        try:
            await in_thread(ensure_shard_folder, folder, shard, generation, store, warcs)
            return
        except StoreError:
            if time.monotonic() > deadline:
                raise
            await asyncio.sleep(STORE_AGAIN_S)


async def open_shard(folder: Path, warc_bytes: int, warc_first: int) -> CollectionStore:
    """The shard's collection, made or gone on with, once nobody else has it."""
    info = {"software": f"lycosa/{__version__}", "format": "WARC File Format 1.1"}
    deadline = time.monotonic() + LOCK_TIMEOUT_S
    while True:
        try:
            return CollectionStore.create(folder, warc_info=info, warc_bytes=warc_bytes, warc_first=warc_first)
        except LycosaError as error:
            if "in use" not in str(error) or time.monotonic() > deadline:
                raise
            await asyncio.sleep(LOCK_AGAIN_S)


def shard_settings(settings: CrawlSettings) -> CrawlSettings:
    """The settings of one shard: limits over the whole are the coordinator's to watch."""
    return settings.replace(pages=None, bytes=None, time_s=None)


NO_CAP = 1 << 62
WARCS_PER_SHARD = 100_000  # numbers that a shard has for its archive's files, so that no two shards use the same


class Agent:
    """The agent of one shard. `run` goes on until the crawl is over, stopped, or the agent is void."""

    def __init__(self, enrolment: Enrolment, peers: PeerClient, coordination: CoordinatorClient, **parts: Any) -> None:
        self.name, self.incarnation = enrolment.name, enrolment.incarnation
        self.settings = shard_settings(enrolment.settings)
        self.folder = Path(enrolment.folder)
        self._warcs = range(enrolment.number * WARCS_PER_SHARD, (enrolment.number + 1) * WARCS_PER_SHARD)
        self._known = dict(enrolment.members)
        self.part = OwnedHosts(self.name, enrolment.table, enrolment.moving)
        self._peers, self._coordination, self._parts = peers, coordination, parts
        self._now: Callable[[], float] = parts.get("now") or time.monotonic
        self._is_central = enrolment.settings.exchange == "coordinator"
        if self._is_central:
            parts["resolver"] = CentralResolver(coordination)
        self._cap = NO_CAP if enrolment.settings.pages is None else 0
        self._is_over = False
        self.lease, self.pace = AgentLease(self._now), Heartbeat()
        self.visits, self.errands = HeldAddresses(), RobotsDelegation(self.part, peers)
        self._boot = self._told_boot = ""  # the coordinator's start, and that of it which knows what is held here
        goes_by_address = enrolment.table.scheme is Scheme.IP or enrolment.settings.places
        self._sightings = ObservedAddresses() if goes_by_address else None
        self._scope_told: int = 0
        self.engine: Engine | None = None
        self._generation = enrolment.generation
        self._in_thread: RunInThread = parts.pop("in_thread", asyncio.to_thread)
        self.keeper: ShardBackup | None = None
        self._added: AddedUrls | None = None

    def __repr__(self) -> str:
        return f"<Agent {self.name}/{self.incarnation} epoch={self.part.table.epoch} {self.engine!r}>"

    # the life of an agent

    async def run(self) -> CrawlStats:
        """Crawls; raises what ended it, if that was not meant."""
        store = open_central_store(self.settings.store) if self.settings.store else None
        if store is not None:
            await prepare_shard_folder(self.folder, self.name, self._generation, store, self._warcs, self._in_thread)
        is_restart = is_collection(self.folder) or self._generation > 0
        collection = await open_shard(self.folder, self.settings.warc_bytes, self._warcs.start)
        self.lease.begin_late()
        try:
            collection.save_settings(to_toml(self.settings))
            outbox = UrlOutbox(collection.state, self.name, self.incarnation, self.part.table)
            self.exchange = UrlExchange(outbox, UrlInbox(collection.state), self._peers.tell)
            if store is not None:
                write_generation(self.folder, self._generation)
                self.keeper = ShardBackup(self, collection, self.exchange.arrivals, store, in_thread=self._in_thread)
                self._added = AddedUrls(self.folder, self.keeper) if self.keeper.has_copies else None
                self.exchange.want_copy = self.keeper.want_soon
                self._note_parting()
            parts = usual_parts(self.settings, outside=self, **self._parts)
            if self._is_central:
                parts.downloader = CentralRobotsDownloader(parts.downloader, self._coordination, self._now)
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
                await cancel_and_wait([beats, watch, *keeping, *asking])
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
                await asyncio.wait([task], timeout=HEARTBEAT_S)

    # what the engine asks (`crawl.other_shards.OtherShards`)

    def owns(self, host: str) -> bool:
        return self.part.owns(host)

    def send(self, crossings: Sequence[ForwardedUrl]) -> list[ForwardedUrl]:
        return self.exchange.outbox.send(crossings)

    def owns_document(self, digest: bytes) -> bool:
        return self.part.owns_document(digest)

    def send_claims(self, claims: Sequence[CopyClaim]) -> None:
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
            return busy_reply()
        return await self.exchange.take(message, self.part.table.epoch, self.engine.receive)

    async def load(self, cargo: BucketTransfer) -> bool:
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

    def _obey(self, engine: Engine, orders: AgentOrders) -> None:
        self._cap = NO_CAP if orders.cap is None else orders.cap
        engine.limits.heard(orders.seconds)
        for name, incarnation in orders.members.items():
            if self._known.get(name, incarnation) != incarnation:
                self.exchange.outbox.restarted(name)
            self._known[name] = incarnation
        if orders.widened:
            engine.outcomes.widen([split_url(href) for href in orders.widened])
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

    def _route(self, engine: Engine, table: AssignmentTable) -> None:
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

    def _report(self, engine: Engine, *, ended: str = "") -> AgentReport:
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
        return AgentReport(
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
