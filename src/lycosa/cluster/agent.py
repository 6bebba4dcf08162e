"""An agent runs one shard's crawl in a cluster: it sends other shards their URLs, takes its own, and sends heartbeats.

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

from lycosa.api import assemble_engine, parts_from_settings
from lycosa.cluster.assignment import ObservedAddresses, Scheme
from lycosa.cluster.backup import AddedUrls, RunInThread, ShardBackup
from lycosa.cluster.checkpoints import ensure_shard_folder, write_generation
from lycosa.cluster.delegation import (
    CentralResolver,
    CentralRobotsDownloader,
    CoordinatorLookups,
    RobotsClient,
    RobotsDelegation,
)
from lycosa.cluster.exchange import UrlExchange, UrlInbox
from lycosa.cluster.heartbeat import (
    HEARTBEAT_S,
    NO_MOVE,
    AgentOrders,
    AgentReport,
    Enrolment,
    Heartbeat,
    cancel_and_wait,
)
from lycosa.cluster.leases import AgentLease, HeldAddresses
from lycosa.cluster.outbox import Message, Reply, UrlOutbox, busy_reply
from lycosa.cluster.transfer import BucketTransfer, OwnedHosts
from lycosa.crawl import CopyClaim, CrawlStats, Engine, Inbox
from lycosa.errors import ClusterError, LycosaError, StoreError
from lycosa.frontier import ForwardedUrl
from lycosa.records import Response
from lycosa.settings import to_toml
from lycosa.store import Batch, CentralStore, CollectionStore, is_collection, open_central_store
from lycosa.version import __version__
from lycosa.web import Url, split_url

# A killed process holds its folder a moment longer, a cut-off one longer.
LOCK_TIMEOUT_S, LOCK_RETRY_S = 60.0, 0.5
STORE_TIMEOUT_S, STORE_RETRY_S = 60.0, 10.0  # a store may be away for a moment
NO_CAP = 1 << 62
# Each shard numbers its archive files in a range of its own: in the store they lie together.
WARCS_PER_SHARD = 100_000


class PeerClient(RobotsClient, Protocol):
    """How an agent speaks to other agents; ClusterError if one cannot be reached."""

    async def send(self, receiver: str, message: Message) -> Reply:
        """Hands a message over; the reply comes after the receiver's commit."""

    async def send_transfer(self, receiver: str, transfer: BucketTransfer) -> bool:
        """Hands rows of buckets over; True when they are on disk there."""


class CoordinatorClient(CoordinatorLookups, Protocol):
    """How an agent speaks to the coordinator; ClusterError if it does not answer."""

    async def heartbeat(self, report: AgentReport) -> AgentOrders:
        """Reports, and returns what is in force."""


class Agent:
    """The agent of one shard. `run` goes on until the crawl is over, stopped, or another incarnation takes its place.

    It is the `OtherShards` of its shard's crawl. `parts` replace those that the settings name.
    """

    def __init__(self, enrolment: Enrolment, peers: PeerClient, coordinator: CoordinatorClient, **parts: Any) -> None:
        self.name, self.incarnation = enrolment.name, enrolment.incarnation
        # Limits over the whole crawl are the coordinator's to watch.
        self.settings = enrolment.settings.replace(pages=None, bytes=None, time_s=None)
        self._folder, self._generation = Path(enrolment.folder), enrolment.generation
        self._recrawl = enrolment.recrawl
        self._warcs = range(enrolment.number * WARCS_PER_SHARD, (enrolment.number + 1) * WARCS_PER_SHARD)
        self._incarnations = dict(enrolment.members)
        self.hosts = OwnedHosts(self.name, enrolment.table, enrolment.next_table)
        self._peers, self._coordinator, self._parts = peers, coordinator, parts
        self._now: Callable[[], float] = parts.get("now") or time.monotonic
        self._in_thread: RunInThread = parts.pop("in_thread", asyncio.to_thread)
        self._is_central = enrolment.settings.exchange == "coordinator"
        if self._is_central:
            parts["resolver"] = CentralResolver(coordinator)
        self._counts_visits = self._recrawl is not None and self._recrawl.most is not None
        self._page_cap = NO_CAP if enrolment.settings.pages is None and not self._counts_visits else 0
        self._is_over, self._collected = False, 0
        self._lease, self._heartbeat = AgentLease(self._now), Heartbeat()
        self._addresses, self.robots = HeldAddresses(), RobotsDelegation(self.hosts, peers)
        # The coordinator's start that answered last, and the one that the last report named: it knows which addresses
        # this shard holds.
        self._coordinator_start = self._last_reported_start = ""
        goes_by_address = enrolment.table.scheme is Scheme.IP or enrolment.settings.places
        self._observed = ObservedAddresses() if goes_by_address else None
        self._last_reported_scope = 0
        self.engine: Engine | None = None
        self.backup: ShardBackup | None = None
        self._added: AddedUrls | None = None

    def __repr__(self) -> str:
        return f"<Agent {self.name}/{self.incarnation} epoch={self.hosts.table.epoch} {self.engine!r}>"

    # the life of an agent

    async def run(self) -> CrawlStats:
        """Crawls; raises the error that ended it, if any."""
        store = open_central_store(self.settings.store) if self.settings.store else None
        if store is not None:
            await self._restore_folder(store)
        # A shard that was crawled before lets every host wait one full delay: nobody knows when it was asked last.
        is_restart = is_collection(self._folder) or self._generation > 0
        collection = await self._open_collection()
        self._lease.allow_for_start()
        try:
            engine = self.engine = self._build(collection, store, is_restart=is_restart)
            start = asyncio.get_running_loop().create_task
            tasks = [start(self._send_heartbeats(engine)), start(self._lease.watch(engine, self.name))]
            tasks += [start(self.backup.run(engine))] if self.backup is not None else []
            try:
                stats = await engine.run()
            finally:
                await cancel_and_wait([*tasks, *self.hosts.tasks(), *self.robots.tasks(), *self.exchange.tasks()])
            await self._finish_backup(engine)
            with contextlib.suppress(ClusterError):
                await self._coordinator.heartbeat(self._report(engine, ended=engine.stopped_by or "over"))
            return stats
        finally:
            self.engine = None
            collection.close()

    async def _restore_folder(self, store: CentralStore) -> None:
        """Restores the shard's folder if need be; a store that does not answer is asked again for a while."""
        deadline = time.monotonic() + STORE_TIMEOUT_S
        arguments = self._folder, self.name, self._generation, store, self._warcs
        while True:
            try:
                await self._in_thread(ensure_shard_folder, *arguments)
                return
            except StoreError:
                if time.monotonic() > deadline:
                    raise
                await asyncio.sleep(STORE_RETRY_S)

    async def _open_collection(self) -> CollectionStore:
        """Opens or makes the shard's collection, once no other process has it."""
        info = {"software": f"lycosa/{__version__}", "format": "WARC File Format 1.1"}
        options: dict[str, Any] = {"warc_bytes": self.settings.warc_bytes, "warc_first": self._warcs.start}
        deadline = time.monotonic() + LOCK_TIMEOUT_S
        while True:
            try:
                return CollectionStore.create(self._folder, warc_info=info, **options)
            except LycosaError as error:
                if "in use" not in str(error) or time.monotonic() > deadline:
                    raise
                await asyncio.sleep(LOCK_RETRY_S)

    def _build(self, collection: CollectionStore, store: CentralStore | None, *, is_restart: bool) -> Engine:
        """Puts the shard's exchange, backup and crawl together."""
        collection.save_settings(to_toml(self.settings))
        outbox = UrlOutbox(collection.state, self.name, self.incarnation, self.hosts.table)
        self.exchange = UrlExchange(outbox, UrlInbox(collection.state), self._peers.send)
        if store is not None:
            write_generation(self._folder, self._generation)
            self.backup = ShardBackup(self, collection, self.exchange.inbox, store, in_thread=self._in_thread)
            self._added = AddedUrls(self._folder, self.backup) if self.backup.has_checkpoints else None
            # A member that leaves cannot end before checkpoints of the others have what it sent: it must not wait for
            # minutes.
            self.exchange.request_checkpoint = self.backup.request_checkpoint_once
            self._update_leaving()
        parts = parts_from_settings(self.settings, other_shards=self, **self._parts)
        if self._is_central:
            parts.downloader = CentralRobotsDownloader(parts.downloader, self._coordinator, self._now)
        engine = assemble_engine(collection, self.settings, parts, is_restart=is_restart, recrawl=self._recrawl)
        self._last_reported_scope = len(engine.shard.link_filter.scope_seeds)
        self.hosts.reconcile(engine)
        self.exchange.admit_own(engine.receive)
        if hasattr(engine.downloader, "set_fence"):
            # Before every action on a socket, and not only now and then: a frozen process does not know that it was
            # frozen.
            engine.downloader.set_fence(lambda: self._lease.close_if_expired(engine))
        return engine

    async def _finish_backup(self, engine: Engine) -> None:
        """The crawl has ended: uploads the rest, with heartbeats, so that nobody takes the shard over meanwhile."""
        if self.backup is None:
            return
        upload = asyncio.get_running_loop().create_task(self.backup.finish())
        try:
            while not upload.done():
                reported_at = self._now()
                with contextlib.suppress(ClusterError):
                    orders = await self._coordinator.heartbeat(self._report(engine))
                    self._lease.revoke() if orders.is_void else self._lease.renew(reported_at)
                await asyncio.wait([upload], timeout=HEARTBEAT_S)
            await upload
        finally:
            upload.cancel()

    # what the crawl asks (`crawl.seams.OtherShards`)

    def owns(self, host: str) -> bool:
        return self.hosts.owns(host)

    def send(self, urls: Sequence[ForwardedUrl]) -> list[ForwardedUrl]:
        return self.exchange.outbox.send(urls)

    def owns_document(self, digest: bytes) -> bool:
        return self.hosts.owns_document(digest)

    def send_claims(self, claims: Sequence[CopyClaim]) -> None:
        self.exchange.outbox.send_claims(claims)

    def may_ask(self, pages: int) -> bool:
        return pages < self._page_cap and self.has_lease()

    def may_visit(self, address: str, host: str) -> bool:
        if self._observed is not None:
            self._observed.record(host, address)
        if not self.hosts.may_request(host):
            return False
        # With one member nobody else can ask the address: no lease is needed, and no heartbeat is waited for.
        if len(self.hosts.table.members) == 1 or self._addresses.may_request(address, host, self._now()):
            return True
        if self._addresses.has_new_requests:
            self._heartbeat.hurry()
        return False

    def ask_robots(self, url: Url, then: Callable[[Response], None]) -> None:
        if self.engine is not None:
            self.robots.delegate(self.engine, url, then)

    def share(self) -> float:
        pages = self.engine.counters.totals.pages if self.engine is not None else 0
        return min(1.0, pages / self._collected) if self._collected else 1 / len(self.hosts.table.members)

    def may_end(self) -> bool:
        return self._is_over

    def has_lease(self) -> bool:
        return self._lease.is_valid

    def before_commit(self, batch: Batch, *, is_last: bool) -> None:
        self.exchange.write(batch)

    def on_committed(self) -> None:
        self.exchange.on_committed()

    # what others ask

    async def receive(self, message: Message) -> Reply:
        """URLs from another shard; answered when they are on disk."""
        # While hosts move nobody takes URLs: a URL could reach a shard that has handed its host over already.
        if self.engine is None or self.hosts.next_table is not None:
            return busy_reply()
        return await self.exchange.receive(message, self.hosts.table.epoch, self.engine.receive)

    async def receive_transfer(self, transfer: BucketTransfer) -> bool:
        """Buckets that will be this shard's; True when they are on disk."""
        return self.engine is not None and self.hosts.receive(self.engine, transfer)

    async def fetch_robots(self, href: str) -> Response:
        """A robots.txt that another shard needs from a host of this one."""
        if self.engine is None:
            raise ClusterError("the agent is not open yet")
        return await self.robots.fetch_for_peer(self.engine, href)

    async def add_urls(self, urls: Sequence[str]) -> None:
        """URLs that the user adds; when this returns they are safe here, or in a checkpoint if the shard has any."""
        if self.engine is None:
            raise ClusterError("the agent is not open yet")
        if self._added is not None:
            await self._added.put(urls)
        else:
            Inbox(self._folder).put(urls)

    # heartbeats

    async def _send_heartbeats(self, engine: Engine) -> None:
        try:
            while True:
                await self._send_heartbeat(engine)
                is_quick = self._addresses.is_contended or self._coordinator_start != self._last_reported_start
                await self._heartbeat.pause(len(self.hosts.table.members), is_quick=is_quick)
        except Exception as error:  # an agent without heartbeats is of no use: it ends, and says why
            engine.fail(error)

    async def _send_heartbeat(self, engine: Engine) -> None:
        reported_at = self._now()
        self._heartbeat.begin()
        scheduler = engine.frontier.scheduler
        self._addresses.release_idle(lambda address: scheduler.in_use_of(address, engine.now()), reported_at)
        report = self._report(engine)
        try:
            orders = await self._coordinator.heartbeat(report)
        except ClusterError:
            return
        if orders.is_void:
            self._lease.revoke()
            engine.fail(ClusterError(f"shard {self.name} has been taken over: incarnation {self.incarnation} is void"))
            return
        self._lease.renew(reported_at)
        if self._observed is not None:
            self._observed.on_reported(
                report.bucket_addresses, is_new_coordinator=self._coordinator_start != orders.boot
            )
        self._last_reported_start, self._coordinator_start = report.boot, orders.boot
        engine.on_located(self._addresses.on_granted(orders.granted, orders.contended, reported_at))
        self._apply_orders(engine, orders)

    def _apply_orders(self, engine: Engine, orders: AgentOrders) -> None:
        self._page_cap = NO_CAP if orders.cap is None else orders.cap
        engine.limits.heard(orders.seconds, orders.limits)
        self._collected = orders.collected
        for name, incarnation in orders.members.items():
            # It may have been restored from an older copy of itself, and then it lacks rows that it had acknowledged.
            if self._incarnations.get(name, incarnation) != incarnation:
                self.exchange.outbox.on_receiver_restarted(name)
            self._incarnations[name] = incarnation
        if orders.widened:
            engine.shard.link_filter.widen([split_url(href) for href in orders.widened])
        self._follow_tables(engine, orders)
        if (orders.stop or orders.is_over) and not engine.stopped_by and not self._is_over:
            engine.events.write("exchange", **self.exchange.sent())
        if orders.stop and not engine.stopped_by:
            engine.stop(orders.stop)
        if orders.back_up != NO_MOVE and self.backup is not None:
            self.backup.back_up_move(orders.back_up)
        self._is_over = orders.is_over
        self.exchange.send_pending()
        engine.wake()

    def _follow_tables(self, engine: Engine, orders: AgentOrders) -> None:
        """Adopts a table that is in force, or begins to hand over what leaves by the next one."""
        hosts, table, after = self.hosts, orders.table, orders.next_table
        if table is not None and table.epoch > hosts.table.epoch:
            if hosts.adopt(engine, table):
                self.exchange.outbox.route(table)
                self._update_leaving()
                self.exchange.admit_own(engine.receive)
                # The owner of a seed may have been restored from a checkpoint that did not have it yet.
                engine.intake.add([seed for seed in engine.seeds if self.owns(seed.host)])
                engine.on_located(self._addresses.wake_all())
        elif after is not None and after.epoch == hosts.table.epoch + 1:
            handover_round = orders.last_incarnation if self._has_checkpoints else 0
            if not hosts.is_handing_over or handover_round != hosts.handover_round:
                self.exchange.outbox.route(after)
                hosts.start_handover(
                    engine, after, self._peers.send_transfer, self.exchange.next_commit, handover_round=handover_round
                )

    @property
    def _has_checkpoints(self) -> bool:
        return self.backup is not None and self.backup.has_checkpoints

    def _update_leaving(self) -> None:
        """Records whether this shard has left: it then sees to it that checkpoints of the others have what it sent."""
        is_member = any(one.name == self.name for one in self.hosts.table.members)
        self.exchange.is_leaving = self._has_checkpoints and not is_member

    def _report(self, engine: Engine, *, ended: str = "") -> AgentReport:
        stats = engine.stats()
        if self.backup is not None:
            pages_left, bytes_left = self.backup.left_out
            stats = msgspec.structs.replace(stats, left_out=pages_left, left_out_bytes=bytes_left)
        done = stats.visits if self._counts_visits else stats.pages
        # No page is asked for beyond the cap: what is in flight beyond it is what pages need, asked for all the same.
        pages = max(done, min(done + stats.in_flight, self._page_cap))
        has_work = stats.in_flight or not engine.is_idle
        # A row that is under way is work for somebody, and so is a host that moves: the crawl is not over before both
        # are.
        has_sent_all = not self.exchange.unsent and self.hosts.next_table is None
        if not has_work and self._page_cap < NO_CAP:
            self._page_cap = pages  # what it does not need is there for others
        # Scope is the same everywhere: a host that one agent's redirect made part of it is crawled by another one.
        widened = engine.shard.link_filter.scope_seeds[self._last_reported_scope :]
        self._last_reported_scope = len(engine.shard.link_filter.scope_seeds)
        return AgentReport(
            name=self.name,
            incarnation=self.incarnation,
            boot=self._coordinator_start,
            stats=stats,
            ended=ended,
            is_idle=not has_work and has_sent_all,
            waits_long=has_sent_all and engine.waits_long,
            is_resting=not has_work,
            activity=engine.counters.run_requests + self.exchange.activity + stats.known,
            pages=pages,
            cap=self._page_cap,
            widened=tuple(url.href for url in widened),
            holds=tuple(self._addresses.held) if self._coordinator_start != self._last_reported_start else (),
            wants=self._addresses.requests(self._now()),
            releases=self._addresses.releases(),
            bucket_addresses=dict(self._observed.unreported) if self._observed else {},
            unix=time.time(),
            machine=platform.node(),
            leftovers=engine.features.leftovers() if ended else (),
            **self.hosts.report(),
            **self.exchange.report(),
            **(self.backup.report() if self.backup else {}),
        )
