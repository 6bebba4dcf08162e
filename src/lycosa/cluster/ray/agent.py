"""An agent as a Ray actor.

The actor holds nothing that its shard's folder does not: Ray brings it back empty after a death, and the coordinator's
actor starts it anew.
"""

import asyncio
import contextlib
import os
import time
from collections.abc import Awaitable
from typing import Any

import ray

from lycosa.api.process import freeze_garbage_collector, return_large_blocks
from lycosa.cluster.agent import Agent
from lycosa.cluster.exchange import busy_reply
from lycosa.cluster.heartbeat import Enrolment
from lycosa.cluster.messages import Message, Reply
from lycosa.cluster.ray.client import NAMESPACE, RayClient, await_answer, coordinator_name, own_address
from lycosa.cluster.transfer import BucketTransfer
from lycosa.errors import ClusterError, LycosaError, StoreError
from lycosa.records import Response
from lycosa.version import __version__


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
            address = own_address()
            raise ClusterError(f"{address} has Lycosa {__version__}, the coordinator has {enrolment.version}")
        lines = RayClient(self._crawl, is_direct=self._is_direct)
        self._agent = Agent(enrolment, lines, lines)
        freeze_garbage_collector()
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
                is_store = isinstance(error, StoreError)
                failed: Awaitable[None] = coordinator.failed.remote(agent.name, words, is_store, own_address())
                await await_answer(failed, whom="the coordinator")
            os._exit(1)

    async def take(self, message: Message) -> Reply:
        return await self._agent.take(message) if self._agent else busy_reply()

    async def load(self, cargo: BucketTransfer) -> bool:
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


# Ray brings it back, as often as it dies; it takes no processor of its own from those that Ray hands out.
AgentActor: Any = ray.remote(num_cpus=0, max_restarts=-1)(ShardProcess)
