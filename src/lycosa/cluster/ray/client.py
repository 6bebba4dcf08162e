"""The Ray client: actors find each other by name, and every call answers in time or fails.

A call over a cut connection never returns, so each one has a time limit.
"""

import asyncio
from collections.abc import Awaitable
from typing import Any, TypeVar

import ray
import ray.util
from ray.exceptions import ActorDiedError, RayError

from lycosa.cluster.delegation import ROBOTS_TIMEOUT_S
from lycosa.cluster.heartbeat import AgentOrders, AgentReport
from lycosa.cluster.messages import Message, Reply
from lycosa.cluster.transfer import BucketTransfer
from lycosa.errors import ClusterError
from lycosa.records import Request, Resolved, Response

NAMESPACE = "lycosa"
FETCH_TIMEOUT_S = (
    600.0  # whoever fetches has limits of its own, and whoever is cut off has no lease after a few seconds
)
CALL_TIMEOUT_S = 10.0  # a call that takes longer has failed: a cut line answers never

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


class RayClient:
    """How an agent speaks to the others: straight, or through the coordinator (papers 3 and 4)."""

    def __init__(self, crawl: str, *, is_direct: bool) -> None:
        self._crawl, self._is_direct = crawl, is_direct
        self._handles: dict[str, Any] = {}

    async def tell(self, receiver: str, message: Message) -> Reply:
        if not self._is_direct:
            coordinator = self._handle(coordinator_name(self._crawl))
            return await await_answer(coordinator.relay.remote(receiver, message), whom="the coordinator")
        reply: Reply = await self._ask(receiver, "take", message)
        return reply

    async def carry(self, receiver: str, cargo: BucketTransfer) -> bool:
        return bool(await self._ask(receiver, "load", cargo))

    async def robots(self, receiver: str, href: str) -> Response:
        response: Response = await self._ask(receiver, "robots", href, within_s=ROBOTS_TIMEOUT_S + CALL_TIMEOUT_S)
        return response

    async def _ask(self, receiver: str, what: str, word: Any, within_s: float = CALL_TIMEOUT_S) -> Any:
        name = agent_name(self._crawl, receiver)
        try:
            return await await_answer(getattr(self._handle(name), what).remote(word), whom=receiver, within_s=within_s)
        except ClusterError as error:
            if isinstance(error.__cause__, ActorDiedError):  # there is, or will be, another one elsewhere
                self._handles.pop(name, None)
            raise

    async def look_up(self, name: str) -> Resolved:
        coordinator = self._handle(coordinator_name(self._crawl))
        return await await_answer(coordinator.look_up.remote(name), whom="the coordinator", within_s=ROBOTS_TIMEOUT_S)

    async def fetch(self, request: Request) -> Response:
        coordinator = self._handle(coordinator_name(self._crawl))
        return await await_answer(coordinator.fetch.remote(request), whom="the coordinator", within_s=FETCH_TIMEOUT_S)

    async def beat(self, report: AgentReport) -> AgentOrders:
        return await await_answer(
            self._handle(coordinator_name(self._crawl)).beat.remote(report), whom="the coordinator"
        )

    def _handle(self, name: str) -> Any:
        handle = self._handles.get(name)
        if handle is None:
            try:
                handle = self._handles[name] = ray.get_actor(name, namespace=NAMESPACE)
            except ValueError as error:
                raise ClusterError(f"there is no {name}") from error
        return handle


def own_address() -> str:
    """The address of this machine, as the cluster knows it."""
    return str(ray.util.get_node_ip_address())  # type: ignore[no-untyped-call]


def actor_options(name: str, *, is_detached: bool) -> dict[str, Any]:
    """The options of an actor that others find by its name; a detached one outlives whoever made it."""
    options: dict[str, Any] = {"name": name, "namespace": NAMESPACE, "get_if_exists": True}
    return options | ({"lifetime": "detached"} if is_detached else {})
