"""The coordinator and the agents as Ray actors. The one module beside `cluster.ray_node` that imports Ray.

An agent's actor holds nothing that its shard's folder does not: Ray brings it back after a death, empty, and the
coordinator's actor starts it anew. The coordinator's actor watches the beats; whoever has been silent is asked whether
it runs, and started if not. Calls across a line that was cut hang for ever, so every one has a limit of time.
"""

import asyncio
import contextlib
import os
import time
from collections import Counter
from collections.abc import Awaitable
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import ray
import ray.util
import xxhash
from ray.exceptions import ActorDiedError, RayError, RayTaskError

from lycosa import __version__
from lycosa.cluster.agent import AGAIN_S, CALL_S, LEASE_S, Agent
from lycosa.cluster.ailing import Ailing, Trouble
from lycosa.cluster.cargo import Cargo
from lycosa.cluster.coordinator import Coordinator
from lycosa.cluster.errands import ERRAND_S
from lycosa.cluster.messages import START, Message, Reply, Word
from lycosa.cluster.ray_node import addresses, places_of_machines
from lycosa.cluster.reports import Enrolment, Orders, Report
from lycosa.engine.inbox import Inbox
from lycosa.engine.process import calm_collector, return_large_blocks
from lycosa.engine.stats import CrawlStats
from lycosa.errors import ClusterError, LycosaError, StoreError
from lycosa.records import Response
from lycosa.settings import CrawlSettings

NAMESPACE = "lycosa"
CENSUS_S = 5.0
SILENT_S = 2.0  # then a member is looked after; it beats twice a second
WATCH_S = 0.25
TROUBLES_APART = 4  # the same words are told again only when so many others came in between
DEAD_S = LEASE_S + 5.0  # then a member that does not answer is ended: nobody can be asked by it any more

T = TypeVar("T")


async def answer(call: Awaitable[T], *, whom: str, within_s: float = CALL_S) -> T:
    """The answer to a remote call, or ClusterError in time."""
    try:
        return await asyncio.wait_for(call, within_s)
    except (RayError, TimeoutError, ValueError) as error:  # ValueError: no actor has that name
        raise ClusterError(f"{whom} does not answer: {type(error).__name__}") from error


def agent_name(crawl: str, shard: str) -> str:
    return f"{crawl}/agent/{shard}"


def coordinator_name(crawl: str) -> str:
    return f"{crawl}/coordinator"


class RayLines:
    """How an agent speaks to the others: straight, or through the coordinator (papers 3 and 4)."""

    def __init__(self, crawl: str, *, is_direct: bool) -> None:
        self._crawl, self._is_direct = crawl, is_direct
        self._handles: dict[str, Any] = {}

    async def tell(self, receiver: str, message: Message) -> Reply:
        if not self._is_direct:
            coordinator = self._handle(coordinator_name(self._crawl))
            return await answer(coordinator.relay.remote(receiver, message), whom="the coordinator")
        reply: Reply = await self._ask(receiver, "take", message)
        return reply

    async def carry(self, receiver: str, cargo: Cargo) -> bool:
        return bool(await self._ask(receiver, "load", cargo))

    async def robots(self, receiver: str, href: str) -> Response:
        response: Response = await self._ask(receiver, "robots", href, within_s=ERRAND_S + CALL_S)
        return response

    async def _ask(self, receiver: str, what: str, word: Any, within_s: float = CALL_S) -> Any:
        name = agent_name(self._crawl, receiver)
        try:
            return await answer(getattr(self._handle(name), what).remote(word), whom=receiver, within_s=within_s)
        except ClusterError as error:
            if isinstance(error.__cause__, ActorDiedError):  # there is, or will be, another one elsewhere
                self._handles.pop(name, None)
            raise

    async def beat(self, report: Report) -> Orders:
        return await answer(self._handle(coordinator_name(self._crawl)).beat.remote(report), whom="the coordinator")

    def _handle(self, name: str) -> Any:
        handle = self._handles.get(name)
        if handle is None:
            try:
                handle = self._handles[name] = ray.get_actor(name, namespace=NAMESPACE)
            except ValueError as error:
                raise ClusterError(f"there is no {name}") from error
        return handle


class ShardProcess:
    """One shard, wherever Ray put it."""

    def __init__(self, crawl: str, *, is_direct: bool) -> None:
        self._crawl, self._is_direct = crawl, is_direct
        self._agent: Agent | None = None
        self._task: asyncio.Task[None] | None = None

    async def running(self) -> int:
        """The incarnation that runs here; 0 if none does."""
        return self._agent.incarnation if self._agent and self._task and not self._task.done() else 0

    async def start(self, enrolment: Enrolment) -> None:
        if enrolment.version != __version__:
            address = _here()
            raise ClusterError(f"{address} has Lycosa {__version__}, the coordinator has {enrolment.version}")
        lines = RayLines(self._crawl, is_direct=self._is_direct)
        self._agent = Agent(enrolment, lines, lines)
        calm_collector()
        return_large_blocks()
        self._task = asyncio.get_running_loop().create_task(self._run(self._agent))

    async def _run(self, agent: Agent) -> None:
        """An agent that fails tells why and takes its process with it: nothing half alive is left behind."""
        try:
            await agent.run()
        except Exception as error:
            words = str(error) if isinstance(error, LycosaError) else f"{type(error).__name__}: {error}"
            coordinator = ray.get_actor(coordinator_name(self._crawl), namespace=NAMESPACE)
            with contextlib.suppress(ClusterError):
                failed: Awaitable[None] = coordinator.failed.remote(agent.name, words, isinstance(error, StoreError))
                await answer(failed, whom="the coordinator")
            os._exit(1)

    async def take(self, message: Message) -> Reply:
        return await self._agent.take(message) if self._agent else Reply(Word.BUSY, START, START)

    async def load(self, cargo: Cargo) -> bool:
        return await self._agent.load(cargo) if self._agent else False

    async def robots(self, href: str) -> Response:
        if self._agent is None:
            raise ClusterError("the agent is not open yet")
        return await self._agent.robots(href)

    async def put(self, urls: list[str]) -> None:
        """URLs that the user adds: they are safe when this returns."""
        if self._agent is None or self._agent.engine is None:
            raise ClusterError("the agent is not open yet")
        await self._agent.put(urls)

    async def spent(self) -> tuple[int, float]:
        """Process and seconds of processor time."""
        return os.getpid(), time.process_time()


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """What whoever watches a crawl is told."""

    stats: CrawlStats
    ended_by: str = ""
    has_ended: bool = False
    failure: str = ""
    is_store: bool = False
    troubles: tuple[str, ...] = ()
    reports: tuple[Report, ...] = ()
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
        self._ailing = Ailing()
        self._begun: set[str] = set()
        self._troubles: list[str] = []
        self._last_troubles: dict[str, str] = {}
        self._failure, self._is_store = "", False
        self._task: asyncio.Task[None] | None = None
        self._handing_out: asyncio.Task[None] | None = None

    async def beat(self, report: Report) -> Orders:
        self._watch()
        if report.trouble and report.trouble != self._last_troubles.get(report.name):
            self._troubles.append(f"{report.name}: {report.trouble}")
        self._last_troubles[report.name] = report.trouble
        orders = self._coordinator.beat(report)
        self._troubles += self._coordinator.take_warnings()
        return orders

    async def relay(self, receiver: str, message: Message) -> Reply:
        return await answer(self._agent(receiver).take.remote(message), whom=receiver)

    async def seen(self) -> Seen:
        """How it goes; asked by whoever watches."""
        self._watch()
        one = self._coordinator
        return Seen(
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

    async def failed(self, name: str, words: str, is_store: bool) -> None:
        """An agent came to an end that was not meant: it is started again, less often if that goes on."""
        self._ailing.failed(name, Trouble(words, is_store), time.monotonic())
        text = f"{name}: {words}"
        if text not in self._troubles[-TROUBLES_APART:]:
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
            silent = [name for name in self._coordinator.names if self._coordinator.silent_s(name) > SILENT_S]
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
        self._next_census = time.monotonic() + CENSUS_S
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
            is_running = bool(await answer(agent.running.remote(), whom=name))
        except ClusterError as error:
            if isinstance(error.__cause__, ActorDiedError):
                self._agents.pop(name, None)  # the one before its new home
            elif self._coordinator.silent_s(name) > DEAD_S and name in self._begun:
                self._begun.discard(name)
                ray.kill(agent, no_restart=False)  # frozen: its lease is void, and it would hold its files for ever
            return
        if is_running or not self._ailing.may_start(name, time.monotonic()):
            return
        try:
            await answer(agent.start.remote(self._coordinator.enrol(name)), whom=name)
            self._begun.add(name)
        except ClusterError as error:
            if isinstance(error.__cause__, RayTaskError):
                await self.failed(name, str(error.__cause__.cause), is_store=False)

    def _is_homeless(self, name: str) -> bool:
        """Is a member's machine gone? Once its lease is void it gets a new home: the machine that has the fewest."""
        home = self._coordinator.address(name)
        if not home or not self._coordinator.is_restorable or home in (alive := set(addresses())):
            return False
        if not alive or self._coordinator.gone_s(name) < DEAD_S:
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
            maker = AgentActor.options(**_named(agent_name(self._crawl, name), is_detached=self._is_detached), **where)
            self._agents[name] = maker.remote(self._crawl, is_direct=is_direct)
        return self._agents[name]

    async def end(self) -> None:
        """Ends the agents' actors."""
        for agent in self._agents.values():
            ray.kill(agent)

    async def _hand_out(self) -> None:
        """What `lycosa add` left goes to the inboxes of its owners, and only then out of ours."""
        by_owner: dict[str, list[str]] = {}
        for url in self._inbox.take():
            by_owner.setdefault(self._coordinator.table.owner(url.host), []).append(url.href)
        if not by_owner:
            return
        try:
            for name, urls in by_owner.items():
                await answer(self._agent(name).put.remote(urls), whom=name)
        except ClusterError:
            self._inbox = Inbox(self._folder)  # the files are still there: all of it again, later
            await asyncio.sleep(AGAIN_S)
        else:
            self._inbox.settle()


# Ray brings both back, as often as they die; neither takes a processor of its own from those that Ray hands out.
AgentActor: Any = ray.remote(num_cpus=0, max_restarts=-1)(ShardProcess)
CoordinatorActor: Any = ray.remote(num_cpus=0, max_restarts=-1)(CoordinatorProcess)


def _here() -> str:
    """The address of this machine, as the cluster knows it."""
    return str(ray.util.get_node_ip_address())  # type: ignore[no-untyped-call]


def _named(name: str, *, is_detached: bool) -> dict[str, Any]:
    """The options of an actor that others find by its name; a detached one outlives whoever made it."""
    options: dict[str, Any] = {"name": name, "namespace": NAMESPACE, "get_if_exists": True}
    return options | ({"lifetime": "detached"} if is_detached else {})


def make_coordinator(
    folder: Path, settings: CrawlSettings, seconds: float, *, is_detached: bool, is_elastic: bool
) -> Any:
    """The coordinator of the collection at `folder`, on this machine; the one that is there, if there is one."""
    crawl = crawl_name(folder)
    here = {"resources": {f"node:{_here()}": 0.001}}
    maker = CoordinatorActor.options(**_named(coordinator_name(crawl), is_detached=is_detached), **here)
    return maker.remote(crawl, str(folder), settings, seconds, is_detached=is_detached, is_elastic=is_elastic)


def crawl_name(folder: Path) -> str:
    return f"crawl-{xxhash.xxh3_64_hexdigest(str(folder).encode())}"


def end_crawl(coordinator: Any) -> None:
    """Ends the actors of a crawl that is over."""
    with contextlib.suppress(RayError):
        ray.get(coordinator.end.remote(), timeout=CALL_S)
    ray.kill(coordinator)


def running_crawls() -> dict[str, Any]:
    """The coordinators of all crawls on the cluster, by name."""
    names = [one["name"] for one in ray.util.list_named_actors(all_namespaces=True) if one["namespace"] == NAMESPACE]
    found = [name for name in names if name.endswith("/coordinator")]
    return {name.partition("/")[0]: ray.get_actor(name, namespace=NAMESPACE) for name in found}
