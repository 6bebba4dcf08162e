"""The coordinator as a Ray actor; it also starts agents.

An agent that has been silent is asked whether it runs, and started if it does not. Ray brings the coordinator back
after
a death, and it reads what it saved.
"""

import asyncio
import contextlib
import os
import time
from collections import Counter
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
import ray
import ray.util
import xxhash
from ray.exceptions import ActorDiedError, RayError, RayTaskError

from lycosa.cluster.coordinator import Coordinator
from lycosa.cluster.delegation import CentralLookups
from lycosa.cluster.exchange import RETRY_S
from lycosa.cluster.heartbeat import AgentOrders, AgentReport
from lycosa.cluster.leases import AGENT_LEASE_S
from lycosa.cluster.messages import Message, Reply
from lycosa.cluster.ray.agent import AgentActor
from lycosa.cluster.ray.client import (
    CALL_TIMEOUT_S,
    NAMESPACE,
    actor_options,
    agent_name,
    await_answer,
    coordinator_name,
    own_address,
)
from lycosa.cluster.ray.node import addresses, places_of_machines
from lycosa.cluster.termination import MemberFailure, MemberHealth
from lycosa.crawl.inbox import Inbox
from lycosa.crawl.stats import CrawlStats
from lycosa.errors import ClusterError, LycosaError
from lycosa.records import Request, Resolved, Response
from lycosa.settings import CrawlSettings

NEW_NODES_S = 5.0
SILENT_AFTER_S = 2.0  # then a member is looked after; it beats twice a second
WATCH_S = 0.25
TROUBLE_REPEAT_WINDOW = 4  # the same words are told again only when so many others came in between
DEAD_AFTER_S = AGENT_LEASE_S + 5.0  # then a member that does not answer is ended: nobody can be asked by it any more


class CrawlReport(msgspec.Struct, frozen=True, kw_only=True):
    """What whoever watches a crawl is told."""

    stats: CrawlStats
    ended_by: str = ""
    has_ended: bool = False
    failure: str = ""
    is_store: bool = False
    troubles: tuple[str, ...] = ()
    reports: tuple[AgentReport, ...] = ()
    epoch: int = 0


class CoordinatorProcess:
    """The coordinator, and the one who starts agents."""

    def __init__(
        self,
        crawl: str,
        folder: str,
        settings: CrawlSettings,
        seconds: float,
        *,
        is_detached: bool = False,
        is_elastic: bool = False,
    ) -> None:
        self._crawl, self._folder = crawl, Path(folder)
        self._is_detached, self._is_elastic, self._next_census = is_detached, is_elastic, 0.0
        self._coordinator = Coordinator(self._folder, settings, seconds=seconds)
        self._inbox = Inbox(self._folder)
        self._agents: dict[str, Any] = {}
        self._ailing = MemberHealth()
        self._begun: set[str] = set()
        self._troubles: list[str] = []
        self._last_troubles: dict[str, str] = {}
        self._failure, self._is_store = "", False
        self._task: asyncio.Task[None] | None = None
        self._handing_out: asyncio.Task[None] | None = None

    async def beat(self, report: AgentReport) -> AgentOrders:
        self._watch()
        if report.trouble and report.trouble != self._last_troubles.get(report.name):
            self._troubles.append(f"{report.name}: {report.trouble}")
        self._last_troubles[report.name] = report.trouble
        orders = self._coordinator.beat(report)
        self._troubles += self._coordinator.take_warnings()
        return orders

    async def relay(self, receiver: str, message: Message) -> Reply:
        return await await_answer(self._agent(receiver).take.remote(message), whom=receiver)

    @cached_property
    def _central(self) -> CentralLookups:
        return CentralLookups(self._coordinator.settings)

    async def look_up(self, name: str) -> Resolved:
        return await self._central.look_up(name)

    async def fetch(self, request: Request) -> Response:
        return await self._central.fetch(request)

    async def seen(self) -> CrawlReport:
        """How it goes; asked by whoever watches."""
        self._watch()
        one = self._coordinator
        return CrawlReport(
            stats=one.stats(),
            ended_by=one.stopping,
            has_ended=one.has_ended,
            failure=self._failure,
            is_store=self._is_store,
            troubles=tuple(self._troubles),
            reports=tuple(one.reports()),
            epoch=one.table.epoch,
        )

    async def stop(self, reason: str) -> None:
        self._coordinator.stop(reason)

    async def resize(self, join: int, leave: list[str]) -> str:
        """Members join or leave; returns why not, if it cannot be."""
        try:
            if join:
                self._coordinator.join(self._coordinator.roomiest(join, addresses()), places_of_machines())
            if leave:
                self._coordinator.leave(leave)
        except LycosaError as error:
            return str(error)
        return ""

    async def spent(self) -> tuple[int, float]:
        return os.getpid(), time.process_time()

    async def failed(self, name: str, words: str, is_store: bool, where: str = "") -> None:
        """An agent came to an end that was not meant: it is started again, less often if that goes on."""
        self._ailing.failed(name, MemberFailure(words, is_store), time.monotonic())
        text = f"{name} on {where}: {words}" if where else f"{name}: {words}"
        if text not in self._troubles[-TROUBLE_REPEAT_WINDOW:]:
            self._troubles.append(text)

    def _give_up_in_vain(self) -> None:
        """Who fails for ever ends the crawl when nobody else has anything left to do."""
        resting = [report.name for report in self._coordinator.reports() if report.is_resting]
        trouble = self._ailing.verdict(self._coordinator.names, resting, time.monotonic())
        if trouble is not None:
            self._failure, self._is_store = trouble
            self._coordinator.stop("failed")

    # looking after agents

    def _watch(self) -> None:
        """Begun by the first call after a start or a restart."""
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._look_after())

    async def _look_after(self) -> None:
        while not self._coordinator.has_ended and not self._failure:
            silent = [name for name in self._coordinator.names if self._coordinator.silent_s(name) > SILENT_AFTER_S]
            await asyncio.gather(*(self._revive(name) for name in silent))
            if self._handing_out is None or self._handing_out.done():
                self._handing_out = asyncio.get_running_loop().create_task(self._hand_out())
            self._take_census()
            self._give_up_in_vain()
            await asyncio.sleep(WATCH_S)

    def _take_census(self) -> None:
        """Machines that have joined the cluster get shards, one a processor."""
        if not self._is_elastic or time.monotonic() < self._next_census or not self._coordinator.is_calm:
            return
        self._next_census = time.monotonic() + NEW_NODES_S
        known = {self._coordinator.address(name) for name in self._coordinator.names}
        new = [address for address in addresses() if address not in known]
        if new:
            self._coordinator.join(new, places_of_machines())

    async def _revive(self, name: str) -> None:
        """Starts a silent member, unless it runs and has only been slow to tell."""
        if self._is_homeless(name):
            return
        agent = self._agent(name)
        try:
            is_running = bool(await await_answer(agent.running.remote(), whom=name))
        except ClusterError as error:
            if isinstance(error.__cause__, ActorDiedError):
                self._agents.pop(name, None)  # the one before its new home
            elif self._coordinator.silent_s(name) > DEAD_AFTER_S and name in self._begun:
                self._begun.discard(name)
                ray.kill(agent, no_restart=False)  # frozen: its lease is void, and it would hold its files for ever
            return
        if is_running or not self._ailing.may_start(name, time.monotonic()):
            return
        try:
            await await_answer(agent.start.remote(self._coordinator.enrol(name)), whom=name)
            self._begun.add(name)
        except ClusterError as error:
            if isinstance(error.__cause__, RayTaskError):
                await self.failed(name, str(error.__cause__.cause), is_store=False)

    def _is_homeless(self, name: str) -> bool:
        """Is a member's machine gone? Once its lease is void it gets a new home: the machine that has the fewest."""
        home = self._coordinator.address(name)
        if not home or not self._coordinator.is_restorable or home in (alive := set(addresses())):
            return False
        if not alive or self._coordinator.gone_s(name) < DEAD_AFTER_S:
            return True
        homes = Counter(self._coordinator.address(other) for other in self._coordinator.names)
        new = min(sorted(alive), key=lambda address: homes[address])
        self._troubles.append(f"{name}: {home} is gone, the shard is restored at {new} from its last copy")
        ray.kill(self._agent(name))
        del self._agents[name]
        self._begun.discard(name)
        self._coordinator.rehome(name, new)
        return True

    def _agent(self, name: str) -> Any:
        if name not in self._agents:
            is_direct = self._coordinator.settings.exchange == "direct"
            address = self._coordinator.address(name)
            where = {"resources": {f"node:{address}": 0.001}} if address else {"scheduling_strategy": "SPREAD"}
            maker = AgentActor.options(
                **actor_options(agent_name(self._crawl, name), is_detached=self._is_detached), **where
            )
            self._agents[name] = maker.remote(self._crawl, is_direct=is_direct)
        return self._agents[name]

    async def end(self) -> None:
        """Ends the agents' actors."""
        for agent in self._agents.values():
            ray.kill(agent)

    async def _hand_out(self) -> None:
        """What `lycosa add` left goes to the inboxes of its owners, and only then out of ours."""
        by_owner: dict[str, list[str]] = {}
        for some in self._inbox.take():
            for url in some:
                by_owner.setdefault(self._coordinator.table.owner(url.host), []).append(url.href)
            await asyncio.sleep(0)
        if not by_owner:
            return
        try:
            for name, urls in by_owner.items():
                await await_answer(self._agent(name).put.remote(urls), whom=name)
        except ClusterError:
            self._inbox = Inbox(self._folder)  # the files are still there: all of it again, later
            await asyncio.sleep(RETRY_S)
        else:
            self._inbox.settle()


# Ray brings it back, as often as it dies; it takes no processor of its own from those that Ray hands out.
CoordinatorActor: Any = ray.remote(num_cpus=0, max_restarts=-1)(CoordinatorProcess)


def start_coordinator(
    folder: Path, settings: CrawlSettings, seconds: float, *, is_detached: bool, is_elastic: bool
) -> Any:
    """The coordinator of the collection at `folder`, on this machine; the one that is there, if there is one."""
    crawl = crawl_name(folder)
    where = {"resources": {f"node:{own_address()}": 0.001}}
    maker = CoordinatorActor.options(**actor_options(coordinator_name(crawl), is_detached=is_detached), **where)
    return maker.remote(crawl, str(folder), settings, seconds, is_detached=is_detached, is_elastic=is_elastic)


def crawl_name(folder: Path) -> str:
    return f"crawl-{xxhash.xxh3_64_hexdigest(str(folder).encode())}"


def end_crawl(coordinator: Any) -> None:
    """Ends the actors of a crawl that is over."""
    with contextlib.suppress(RayError):
        ray.get(coordinator.end.remote(), timeout=CALL_TIMEOUT_S)
    ray.kill(coordinator)


def running_crawls() -> dict[str, Any]:
    """The coordinators of all crawls on the cluster, by name."""
    names = [one["name"] for one in ray.util.list_named_actors(all_namespaces=True) if one["namespace"] == NAMESPACE]
    found = [name for name in names if name.endswith("/coordinator")]
    return {name.partition("/")[0]: ray.get_actor(name, namespace=NAMESPACE) for name in found}
