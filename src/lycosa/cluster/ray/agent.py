"""An agent as a Ray actor, and the client by which it calls the others and the coordinator.

The actor holds nothing that its shard's folder does not: Ray brings it back empty after a death, and the coordinator's
actor starts it anew. Actors find each other by name, and every call answers in time or fails.
"""

import asyncio
import contextlib
import gc
import os
from collections.abc import Awaitable
from typing import Any, TypeVar

import ray
import ray.util
from ray.exceptions import ActorDiedError, RayError

from lycosa.cluster.agent import Agent
from lycosa.cluster.delegation import ROBOTS_TIMEOUT_S
from lycosa.cluster.heartbeat import AgentOrders, AgentReport, Enrolment
from lycosa.cluster.outbox import Message, Reply, busy_reply
from lycosa.cluster.ray import CALL_TIMEOUT_S, NAMESPACE
from lycosa.cluster.transfer import BucketTransfer
from lycosa.errors import ClusterError, LycosaError, StoreError
from lycosa.processes import return_large_blocks
from lycosa.records import Request, Resolved, Response
from lycosa.version import __version__

# The coordinator's downloader has limits of its own, and an agent that is cut off has no lease after a few seconds.
FETCH_TIMEOUT_S = 600.0

T = TypeVar("T")


async def await_answer(call: Awaitable[T], *, whom: str, within_s: float = CALL_TIMEOUT_S) -> T:
    """The answer to a remote call, or ClusterError in time."""
    try:
        return await asyncio.wait_for(call, within_s)
    except (RayError, TimeoutError, ValueError) as error:  # ValueError: no actor has that name
        raise ClusterError(f"{whom} does not answer: {type(error).__name__}") from error


def agent_name(crawl: str, shard: str) -> str:
    return f"{crawl}/agent/{shard}"


def coordinator_name(crawl: str) -> str:
    return f"{crawl}/coordinator"


def actor_options(name: str, *, is_detached: bool) -> dict[str, Any]:
    """The options of an actor that others find by its name; a detached one outlives whoever made it."""
    options: dict[str, Any] = {"name": name, "namespace": NAMESPACE, "get_if_exists": True}
    return options | ({"lifetime": "detached"} if is_detached else {})


def own_address() -> str:
    """The address of this machine, as the cluster knows it."""
    return str(ray.util.get_node_ip_address())  # type: ignore[no-untyped-call]


class RayClient:
    """The `PeerClient` and `CoordinatorClient` of an agent; its messages go straight, or through the coordinator."""

    def __init__(self, crawl: str, *, is_direct: bool) -> None:
        self._crawl, self._is_direct = crawl, is_direct
        self._handles: dict[str, Any] = {}

    async def send(self, receiver: str, message: Message) -> Reply:
        if not self._is_direct:
            return await await_answer(self._coordinator().relay.remote(receiver, message), whom="the coordinator")
        reply: Reply = await self._call_agent(receiver, "receive", message)
        return reply

    async def send_transfer(self, receiver: str, transfer: BucketTransfer) -> bool:
        return bool(await self._call_agent(receiver, "receive_transfer", transfer))

    async def fetch_robots(self, receiver: str, href: str) -> Response:
        within_s = ROBOTS_TIMEOUT_S + CALL_TIMEOUT_S
        response: Response = await self._call_agent(receiver, "fetch_robots", href, within_s=within_s)
        return response

    async def _call_agent(self, receiver: str, what: str, argument: Any, within_s: float = CALL_TIMEOUT_S) -> Any:
        name = agent_name(self._crawl, receiver)
        try:
            call = getattr(self._handle(name), what).remote(argument)
            return await await_answer(call, whom=receiver, within_s=within_s)
        except ClusterError as error:
            if isinstance(error.__cause__, ActorDiedError):  # there is, or will be, another one elsewhere
                self._handles.pop(name, None)
            raise

    async def look_up(self, name: str) -> Resolved:
        call = self._coordinator().look_up.remote(name)
        return await await_answer(call, whom="the coordinator", within_s=ROBOTS_TIMEOUT_S)

    async def fetch(self, request: Request) -> Response:
        call = self._coordinator().fetch.remote(request)
        return await await_answer(call, whom="the coordinator", within_s=FETCH_TIMEOUT_S)

    async def heartbeat(self, report: AgentReport) -> AgentOrders:
        return await await_answer(self._coordinator().heartbeat.remote(report), whom="the coordinator")

    def _coordinator(self) -> Any:
        return self._handle(coordinator_name(self._crawl))

    def _handle(self, name: str) -> Any:
        handle = self._handles.get(name)
        if handle is None:
            try:
                handle = self._handles[name] = ray.get_actor(name, namespace=NAMESPACE)
            except ValueError as error:
                raise ClusterError(f"there is no {name}") from error
        return handle


class ShardProcess:
    """One shard's process, wherever Ray put it."""

    def __init__(self, crawl: str, *, is_direct: bool) -> None:
        self._crawl, self._is_direct = crawl, is_direct
        self._agent: Agent | None = None
        self._task: asyncio.Task[None] | None = None

    async def running(self) -> int:
        """The incarnation that runs here; 0 if none does."""
        return self._agent.incarnation if self._agent and self._task and not self._task.done() else 0

    async def start(self, enrolment: Enrolment) -> None:
        # Messages and rows may differ from version to version: better one sentence now than a broken shard later.
        if enrolment.version != __version__:
            address = own_address()
            raise ClusterError(f"{address} has Lycosa {__version__}, the coordinator has {enrolment.version}")
        client = RayClient(self._crawl, is_direct=self._is_direct)
        self._agent = Agent(enrolment, client, client)
        gc.freeze()  # what is there by now stays
        return_large_blocks()
        self._task = asyncio.get_running_loop().create_task(self._run(self._agent))

    async def _run(self, agent: Agent) -> None:
        """An agent that fails says why and takes its process with it: nothing half alive is left behind."""
        try:
            await agent.run()
        except Exception as error:
            reason = str(error) if isinstance(error, LycosaError) else f"{type(error).__name__}: {error}"
            coordinator = ray.get_actor(coordinator_name(self._crawl), namespace=NAMESPACE)
            with contextlib.suppress(ClusterError):
                is_store = isinstance(error, StoreError)
                call: Awaitable[None] = coordinator.on_failure.remote(agent.name, reason, is_store, own_address())
                await await_answer(call, whom="the coordinator")
            # Ray starts the process again, empty; a half-ended event loop would hold the shard's lock for ever.
            os._exit(1)

    async def receive(self, message: Message) -> Reply:
        return await self._agent.receive(message) if self._agent else busy_reply()

    async def receive_transfer(self, transfer: BucketTransfer) -> bool:
        return await self._agent.receive_transfer(transfer) if self._agent else False

    async def fetch_robots(self, href: str) -> Response:
        return await self._require_agent().fetch_robots(href)

    async def add_urls(self, urls: list[str]) -> None:
        await self._require_agent().add_urls(urls)

    def _require_agent(self) -> Agent:
        if self._agent is None:
            raise ClusterError("the agent is not open yet")
        return self._agent


# Ray restarts it as often as it dies. It takes none of the processors that Ray hands out: how many shards a machine
# gets is the coordinator's decision.
AgentActor: Any = ray.remote(num_cpus=0, max_restarts=-1)(ShardProcess)
