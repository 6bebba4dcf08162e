"""A cluster in one process on virtual time: real engines, real states, agents that call each other directly.

Used by experiments and by the tests of `cluster`.
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any

from lycosa.cluster.agent import Agent
from lycosa.cluster.assignment import Scheme
from lycosa.cluster.coordinator import Coordinator
from lycosa.cluster.delegation import CentralLookups
from lycosa.cluster.heartbeat import AgentOrders, AgentReport, Enrolment
from lycosa.cluster.outbox import Message, Reply
from lycosa.cluster.recrawl import divide_recrawl
from lycosa.cluster.transfer import BucketTransfer
from lycosa.crawl import CrawlStats, Recrawl
from lycosa.errors import ClusterError
from lycosa.records import Request, Resolved, Response
from lycosa.settings import CrawlSettings
from lycosa.simweb import LoggedRequest, MemoryWeb, SimWeb, run_virtual
from lycosa.store import claim_store, open_central_store

NOT_PAGES = ("robots.txt", ".xml", ".gz", ".tol", ".tvi", ".png")
LINE_S = 0.002  # a message takes so long
START_AGAIN_S = 1.0
WORK_S = 0.01


async def at_once(call: Callable[..., Any], *words: Any) -> Any:
    """In place of a thread, for which virtual time would not wait; it takes a moment all the same."""
    await asyncio.sleep(WORK_S)
    return call(*words)


class MemoryCluster:
    """Agents, a coordinator and the lines between them. `cut` holds the names that nobody can reach; `machines` have
    addresses and places, and one agent each."""

    make_web: type[MemoryWeb] = MemoryWeb

    def __init__(
        self,
        web: SimWeb,
        into: Path,
        workers: int,
        *,
        machines: Mapping[str, str] | None = None,
        recrawl: Recrawl | None = None,
        **settings: Any,
    ) -> None:
        options = {"allow_private": ["127.0.0.0/8"], "scope": "any", **settings}
        into.mkdir(exist_ok=True)
        self.web, self.into = web, into
        self._loop = asyncio.get_running_loop()
        self.settings = CrawlSettings(**options)
        self._recrawl = divide_recrawl(into, recrawl, self.settings) if recrawl is not None else None
        self.coordinator = self.make_coordinator(into, self._loop.time)
        if not self.coordinator.names:
            scheme = Scheme(self.settings.assignment)
            self.coordinator.create_members(list(machines or [""] * workers), scheme=scheme, places=machines or {})
        if self.settings.store:
            claim_store(open_central_store(self.settings.store), self.coordinator.identity(), into)
        self.centre = self.make_web(web)  # what the coordinator itself asks for
        parts: Any = {"resolver": self.centre, "downloader": self.centre}
        self._central = CentralLookups(self.settings, **parts)
        self.agents: dict[str, Agent] = {}
        self.tasks: dict[str, asyncio.Task[CrawlStats]] = {}
        self.webs: dict[str, list[MemoryWeb]] = defaultdict(list)
        self.cut: set[str] = set()
        self.messages = 0

    def make_coordinator(self, into: Path, now: Callable[[], float]) -> Coordinator:
        return Coordinator(into, self.settings, now=now, recrawl=self._recrawl)

    def make_agent(self, enrolment: Enrolment, **parts: Any) -> Agent:
        return Agent(enrolment, self, self, **parts)

    @property
    def hops(self) -> int:
        """How many lines a message passes."""
        return 2 if self.settings.exchange == "coordinator" else 1

    async def send(self, receiver: str, message: Message) -> Reply:
        await asyncio.sleep(self.hops * LINE_S)
        self.messages += self.hops
        if {receiver, message.sender} & self.cut or receiver not in self.agents:
            raise ClusterError(f"{receiver} cannot be reached")
        return await self.agents[receiver].receive(message)

    async def send_transfer(self, receiver: str, transfer: BucketTransfer) -> bool:
        await asyncio.sleep(LINE_S)
        if receiver in self.cut or receiver not in self.agents:
            raise ClusterError(f"{receiver} cannot be reached")
        return await self.agents[receiver].receive_transfer(transfer)

    async def fetch_robots(self, receiver: str, href: str) -> Response:
        await asyncio.sleep(LINE_S)
        if receiver in self.cut or receiver not in self.agents:
            raise ClusterError(f"{receiver} cannot be reached")
        return await self.agents[receiver].fetch_robots(href)

    async def look_up(self, name: str) -> Resolved:
        await asyncio.sleep(LINE_S)
        return await self._central.look_up(name)

    async def fetch(self, request: Request) -> Response:
        await asyncio.sleep(LINE_S)
        return await self._central.fetch(request)

    async def heartbeat(self, report: AgentReport) -> AgentOrders:
        await asyncio.sleep(LINE_S)
        if report.name in self.cut:
            raise ClusterError("the coordinator cannot be reached")
        return self.coordinator.heartbeat(report)

    def start(self, name: str) -> None:
        memory = self.make_web(self.web)
        self.webs[name].append(memory)
        enrolment = self.coordinator.enrol(name)
        parts = {"resolver": memory, "downloader": memory, "now": self._loop.time, "in_thread": at_once}
        agent = self.agents[name] = self.make_agent(enrolment, **parts)
        self.tasks[name] = self._loop.create_task(agent.run())

    async def kill(self, name: str) -> None:
        """What is not committed is gone."""
        agent = self.agents.pop(name)
        task = self.tasks.pop(name)
        if agent.engine is not None:
            agent.engine.fail(ClusterError("killed"))
        await asyncio.gather(task, return_exceptions=True)

    async def run(self) -> None:
        """Until every member has come to its end."""
        for name in self.coordinator.names:
            self.start(name)
        while not self.coordinator.has_ended:
            await asyncio.sleep(0.25)
            for task in self.tasks.values():
                if task.done() and task.exception():
                    raise task.exception()  # type: ignore[misc]
        await asyncio.gather(*self.tasks.values())

    def entries(self) -> list[LoggedRequest]:
        webs = [self.centre, *(memory for webs in self.webs.values() for memory in webs)]
        return [entry for memory in webs for entry in memory.entries]

    def fetched(self, name: str = "") -> Counter[str]:
        """The pages that were fetched, by one agent or by all, and how often."""
        entries = [entry for memory in self.webs[name] for entry in memory.entries] if name else self.entries()
        return Counter(
            f"http://{e.host}:8800{e.path}" for e in entries if e.status == 200 and not e.path.endswith(NOT_PAGES)
        )

    def askers(self) -> dict[str, set[str]]:
        """URL → the agents that asked for it."""
        asked: dict[str, set[str]] = defaultdict(set)
        for name, webs in self.webs.items():
            for memory in webs:
                for entry in memory.entries:
                    asked[f"{entry.host}{entry.path}"].add(name)
        return asked


def crawl(
    web: SimWeb,
    into: Path,
    *seeds: str,
    workers: int = 3,
    act: Callable[[MemoryCluster], Coroutine[Any, Any, None]] | None = None,
    cluster_type: type[MemoryCluster] = MemoryCluster,
    **settings: Any,
) -> MemoryCluster:
    """Crawls to the end; `act` runs beside the crawl."""

    async def main() -> MemoryCluster:
        cluster = cluster_type(web, into, workers, seeds=seeds, **settings)
        beside = asyncio.get_running_loop().create_task(act(cluster)) if act else None
        await cluster.run()
        if beside is not None:
            await beside
        return cluster

    return run_virtual(main())
