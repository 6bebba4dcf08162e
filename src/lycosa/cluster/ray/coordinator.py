"""The coordinator as a Ray actor; it also starts agents, and gives those of a lost machine another one.

An agent that has been silent is asked whether it runs, and started if it does not. Ray brings the coordinator back
after a death, and it reads what it saved.
"""

import asyncio
import contextlib
import time
from collections import Counter
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
import ray
import xxhash
from ray.exceptions import ActorDiedError, RayError, RayTaskError

from lycosa.cluster.coordinator import Coordinator
from lycosa.cluster.delegation import CentralLookups
from lycosa.cluster.exchange import RETRY_S
from lycosa.cluster.heartbeat import AgentOrders, AgentReport
from lycosa.cluster.leases import AGENT_LEASE_S
from lycosa.cluster.outbox import Message, Reply
from lycosa.cluster.ray import CALL_TIMEOUT_S, machine_addresses, machine_places
from lycosa.cluster.ray.agent import AgentActor, actor_options, agent_name, await_answer, coordinator_name, own_address
from lycosa.cluster.recrawl import ShardedRecrawl
from lycosa.cluster.status_file import StatusFile
from lycosa.cluster.termination import MemberFailure, MemberHealth
from lycosa.crawl import CrawlStats, Inbox
from lycosa.errors import ClusterError, LycosaError
from lycosa.records import Request, Resolved, Response
from lycosa.settings import CrawlSettings

WATCH_S = 0.25
NEW_MACHINES_S = 5.0
SILENT_AFTER_S = 2.0  # a member that missed four heartbeats is looked after
# Longer than a lease: an agent that has been silent for so long makes no request any more, whether it is frozen, cut
# off or dead, so its hosts may be asked by another one.
DEAD_AFTER_S = AGENT_LEASE_S + 5.0
# The same trouble is told again only when so many others came in between.
TROUBLE_REPEAT_WINDOW = 4


class CrawlReport(msgspec.Struct, frozen=True, kw_only=True):
    """A crawl as its watcher sees it."""

    stats: CrawlStats
    ended_by: str = ""
    has_ended: bool = False
    failure: str = ""
    is_store: bool = False
    troubles: tuple[str, ...] = ()
    reports: tuple[AgentReport, ...] = ()
    epoch: int = 0


class CoordinatorProcess:
    """The coordinator's process. `is_elastic`: machines that join the cluster get shards."""

    def __init__(
        self,
        crawl: str,
        folder: str,
        settings: CrawlSettings,
        seconds: float,
        *,
        is_detached: bool = False,
        is_elastic: bool = False,
        recrawl: ShardedRecrawl | None = None,
    ) -> None:
        self._crawl, self._folder = crawl, Path(folder)
        self._is_detached, self._is_elastic, self._next_machines_s = is_detached, is_elastic, 0.0
        self._coordinator = Coordinator(self._folder, settings, seconds=seconds, recrawl=recrawl)
        self._inbox, self._status_file = Inbox(self._folder), StatusFile(self._folder)
        self._agents: dict[str, Any] = {}
        self._health = MemberHealth()
        self._started: set[str] = set()
        self._troubles: list[str] = []
        self._reported_troubles: dict[str, str] = {}
        self._failure, self._is_store = "", False
        self._task: asyncio.Task[None] | None = None
        self._handing_out: asyncio.Task[None] | None = None

    # calls of agents

    async def heartbeat(self, report: AgentReport) -> AgentOrders:
        self._watch()
        if report.trouble and report.trouble != self._reported_troubles.get(report.name):
            self._troubles.append(f"{report.name}: {report.trouble}")
        self._reported_troubles[report.name] = report.trouble
        orders = self._coordinator.heartbeat(report)
        self._troubles += self._coordinator.take_warnings()
        return orders

    async def relay(self, receiver: str, message: Message) -> Reply:
        return await await_answer(self._agent(receiver).receive.remote(message), whom=receiver)

    @cached_property
    def _lookups(self) -> CentralLookups:
        return CentralLookups(self._coordinator.settings)

    async def look_up(self, name: str) -> Resolved:
        return await self._lookups.look_up(name)

    async def fetch(self, request: Request) -> Response:
        return await self._lookups.fetch(request)

    async def on_failure(self, name: str, reason: str, is_store: bool, where: str = "") -> None:
        """An agent came to an end that was not meant: it is started again, less often if that goes on."""
        self._health.record_failure(name, MemberFailure(reason, is_store), time.monotonic())
        trouble = f"{name} on {where}: {reason}" if where else f"{name}: {reason}"
        if trouble not in self._troubles[-TROUBLE_REPEAT_WINDOW:]:
            self._troubles.append(trouble)

    # calls of whoever watches or steers

    async def crawl_report(self) -> CrawlReport:
        self._watch()
        coordinator = self._coordinator
        return CrawlReport(
            stats=coordinator.stats(),
            ended_by=coordinator.stopping,
            has_ended=coordinator.has_ended,
            failure=self._failure,
            is_store=self._is_store,
            troubles=tuple(self._troubles),
            reports=tuple(coordinator.reports()),
            epoch=coordinator.table.epoch,
        )

    async def stop(self, reason: str) -> None:
        self._coordinator.stop(reason)

    async def resize(self, join: int, leave: list[str]) -> str:
        """Members join or leave; returns why not, if it cannot be."""
        try:
            if join:
                self._coordinator.join(self._coordinator.least_loaded(join, machine_addresses()), machine_places())
            if leave:
                self._coordinator.leave(leave)
        except LycosaError as error:
            return str(error)
        return ""

    async def end(self) -> None:
        """Ends the agents' actors."""
        for agent in self._agents.values():
            ray.kill(agent)

    # looking after agents

    def _watch(self) -> None:
        """Begun by the first call after a start or a restart: an actor has no event loop before."""
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._look_after_agents())

    async def _look_after_agents(self) -> None:
        while not self._coordinator.has_ended and not self._failure:
            silent = [name for name in self._coordinator.names if self._coordinator.silent_s(name) > SILENT_AFTER_S]
            await asyncio.gather(*(self._revive(name) for name in silent))
            if self._handing_out is None or self._handing_out.done():
                self._handing_out = asyncio.get_running_loop().create_task(self._hand_out_added_urls())
            self._use_new_machines()
            self._check_failure()
            self._status_file.write(self._coordinator)
            await asyncio.sleep(WATCH_S)

    def _use_new_machines(self) -> None:
        """Machines that have joined the cluster get shards, one a processor."""
        if not self._is_elastic or time.monotonic() < self._next_machines_s or not self._coordinator.is_stable:
            return
        self._next_machines_s = time.monotonic() + NEW_MACHINES_S
        # Only machines without any shard: on the others the user, or a resize, has decided how many there are.
        known = {self._coordinator.address(name) for name in self._coordinator.names}
        new = [address for address in machine_addresses() if address not in known]
        if new:
            self._coordinator.join(new, machine_places())

    def _check_failure(self) -> None:
        """A member that fails again and again ends the crawl when nobody else has anything left to do."""
        resting = [report.name for report in self._coordinator.reports() if report.is_resting]
        failure = self._health.crawl_failure(self._coordinator.names, resting, time.monotonic())
        if failure is not None:
            self._failure, self._is_store = failure
            self._coordinator.stop("failed")

    async def _revive(self, name: str) -> None:
        """Starts a silent member, unless it runs and has only been slow to report."""
        if self._has_lost_machine(name):
            return
        agent = self._agent(name)
        try:
            is_running = bool(await await_answer(agent.running.remote(), whom=name))
        except ClusterError as error:
            if isinstance(error.__cause__, ActorDiedError):
                self._agents.pop(name, None)  # it was on the machine before this one
            elif self._coordinator.silent_s(name) > DEAD_AFTER_S and name in self._started:
                self._started.discard(name)
                # Frozen: its lease is void, and it would hold its files for ever.
                ray.kill(agent, no_restart=False)
            return
        if is_running or not self._health.may_start(name, time.monotonic()):
            return
        try:
            await await_answer(agent.start.remote(self._coordinator.enrol(name)), whom=name)
            self._started.add(name)
        except ClusterError as error:
            if isinstance(error.__cause__, RayTaskError):
                await self.on_failure(name, str(error.__cause__.cause), is_store=False)

    def _has_lost_machine(self, name: str) -> bool:
        """Is a member's machine gone? Once its lease is void the member moves to the machine that has the fewest."""
        address = self._coordinator.address(name)
        if not address or not self._coordinator.is_restorable or address in (alive := set(machine_addresses())):
            return False
        if not alive or self._coordinator.gone_s(name) < DEAD_AFTER_S:
            return True
        load = Counter(self._coordinator.address(other) for other in self._coordinator.names)
        new = min(sorted(alive), key=lambda machine: load[machine])
        self._troubles.append(f"{name}: {address} is gone, the shard is restored at {new} from its last copy")
        ray.kill(self._agent(name))
        del self._agents[name]
        self._started.discard(name)
        self._coordinator.relocate(name, new)
        return True

    def _agent(self, name: str) -> Any:
        if name not in self._agents:
            # A shard with files on one machine is started there and nowhere else; one that all machines see, anywhere.
            is_direct = self._coordinator.settings.exchange == "direct"
            address = self._coordinator.address(name)
            where = {"resources": {f"node:{address}": 0.001}} if address else {"scheduling_strategy": "SPREAD"}
            options = actor_options(agent_name(self._crawl, name), is_detached=self._is_detached)
            self._agents[name] = AgentActor.options(**options, **where).remote(self._crawl, is_direct=is_direct)
        return self._agents[name]

    async def _hand_out_added_urls(self) -> None:
        """URLs that `lycosa add` left go to the inboxes of their owners, and only then out of this one."""
        by_owner: dict[str, list[str]] = {}
        for some in self._inbox.take():
            for added in some:
                by_owner.setdefault(self._coordinator.table.owner(added.url.host), []).append(added.line)
            await asyncio.sleep(0)
        if not by_owner:
            return
        try:
            for name, urls in by_owner.items():
                await await_answer(self._agent(name).add_urls.remote(urls), whom=name)
        except ClusterError:
            self._inbox = Inbox(self._folder)  # the files are still there: all of it again, later
            await asyncio.sleep(RETRY_S)
        else:
            self._inbox.on_committed()


# Ray restarts it as often as it dies; it takes none of the processors that Ray hands out.
CoordinatorActor: Any = ray.remote(num_cpus=0, max_restarts=-1)(CoordinatorProcess)


def start_coordinator(
    folder: Path,
    settings: CrawlSettings,
    seconds: float,
    *,
    is_detached: bool,
    is_elastic: bool,
    recrawl: ShardedRecrawl | None = None,
) -> Any:
    """The coordinator of the collection at `folder`, on this machine; the one that runs, if there is one."""
    crawl = f"crawl-{xxhash.xxh3_64_hexdigest(str(folder).encode())}"
    options = actor_options(coordinator_name(crawl), is_detached=is_detached)
    here = {"resources": {f"node:{own_address()}": 0.001}}
    maker = CoordinatorActor.options(**options, **here)
    given = {"is_detached": is_detached, "is_elastic": is_elastic, "recrawl": recrawl}
    return maker.remote(crawl, str(folder), settings, seconds, **given)


def end_crawl(coordinator: Any) -> None:
    """Ends the actors of a crawl that is over."""
    with contextlib.suppress(RayError):
        ray.get(coordinator.end.remote(), timeout=CALL_TIMEOUT_S)
    ray.kill(coordinator)
