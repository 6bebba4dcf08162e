"""Delegation: requests that another process makes for a shard.

`RobotsDelegation`: a robots.txt that redirects to another shard's host is fetched by that host's owner, at the host's
own pace. With `exchange = "coordinator"` one process looks up names and reads robots.txt for all shards
(`CentralLookups`); a shard has `CentralResolver` in place of its own resolver and `CentralRobotsDownloader` in front of
its downloader. All else of a host stays with its owner: politeness, the address guard, retries and the archive.
"""

import asyncio
from collections.abc import Callable
from ipaddress import ip_network
from typing import Protocol

from msgspec.structs import replace

from lycosa.cluster.transfer import OwnedHosts
from lycosa.crawl import ROBOTS_BYTES, Engine
from lycosa.errors import ClusterError
from lycosa.fetch import DoneCallback, Downloader, DownloaderStats, Watchable, refused_response
from lycosa.frontier import HostJob
from lycosa.mapping import AddressGuard, Resolver, literal_address
from lycosa.records import Failure, Request, Resolved, Response
from lycosa.settings import CrawlSettings
from lycosa.web import Url, named_part, parse_url

# A delegated request that takes longer has failed, and is retried like any other.
ROBOTS_TIMEOUT_S = 60.0
RETRY_S = 0.5


class RobotsClient(Protocol):
    """How an agent asks another one to fetch a robots.txt."""

    async def fetch_robots(self, receiver: str, href: str) -> Response:
        """The response to the URL, fetched by the receiver; ClusterError if it could not be asked."""


class CoordinatorLookups(Protocol):
    """How a shard asks the coordinator; ClusterError if nobody answers."""

    async def look_up(self, name: str) -> Resolved:
        """The addresses of a name."""

    async def fetch(self, request: Request) -> Response:
        """The response to a request for a robots.txt."""


class RobotsDelegation:
    """The requests for robots.txt that an agent has others make, and makes for others.

    Without it two agents would ask one host, each by its own idea of that host's pace. A further redirect comes back
    as it is, and is followed from here. Nothing of it has to last: a request that was lost is retried.
    """

    def __init__(self, hosts: OwnedHosts, peers: RobotsClient) -> None:
        self._hosts, self._peers = hosts, peers
        self._delegated: set[asyncio.Task[None]] = set()
        self._fetching: dict[str, asyncio.Future[Response]] = {}

    def __repr__(self) -> str:
        return f"<RobotsDelegation delegated={len(self._delegated)} fetching={len(self._fetching)}>"

    def tasks(self) -> "list[asyncio.Task[None]]":
        return list(self._delegated)

    def delegate(self, engine: Engine, url: Url, then: Callable[[Response], None]) -> None:
        """Has a URL fetched by the owner of its host; `then` gets the response."""
        task = asyncio.get_running_loop().create_task(self._delegate(engine, url, then))
        self._delegated.add(task)
        task.add_done_callback(self._delegated.discard)

    async def _delegate(self, engine: Engine, url: Url, then: Callable[[Response], None]) -> None:
        try:
            response = await self._peers.fetch_robots(self._hosts.table.owner(url.host), url.href)
        except ClusterError as error:
            response = Response(url.href, failure=Failure.CONNECT, detail=str(error))
        while not engine.run_between_pages(lambda: then(response)):  # noqa: ASYNC110 -- the disk refuses, no event tells
            await asyncio.sleep(RETRY_S)

    async def fetch_for_peer(self, engine: Engine, href: str) -> Response:
        """Fetches a robots.txt for another shard, among the other requests to its host."""
        url = parse_url(href)
        if url is None or not self._hosts.owns(url.host):
            raise ClusterError(f"{href} is no longer asked for by this shard")
        done = self._fetching.get(href)
        if done is None:
            done = self._fetching[href] = asyncio.get_running_loop().create_future()
            job = HostJob(url.href, answer=_answer(href, done))
            # By way of the frontier, as one more request for the host: its delay and its slots hold for it too.
            if not engine.run_between_pages(lambda: engine.frontier.host_control.want(job, engine.now())):
                del self._fetching[href]
                raise ClusterError("the disk of this shard refuses")
        try:
            return await asyncio.wait_for(asyncio.shield(done), ROBOTS_TIMEOUT_S)
        except TimeoutError as error:
            raise ClusterError(f"{href} could not be fetched in time") from error
        finally:
            self._fetching.pop(href, None)


def _answer(href: str, done: "asyncio.Future[Response]") -> Callable[[Response], None]:
    def answer(response: Response) -> None:
        if not done.done():
            body = response.body[:ROBOTS_BYTES]
            times = {"started_s": 0.0, "first_byte_s": 0.0, "ended_s": 0.0}  # by this machine's clock, not theirs
            done.set_result(replace(response, url=href, body=body, header_block=b"", **times))

    return answer


class CentralLookups:
    """The coordinator's side of central lookups. Needs the running event loop."""

    def __init__(
        self, settings: CrawlSettings, *, resolver: Resolver | None = None, downloader: Downloader | None = None
    ) -> None:
        self._resolver = resolver or named_part("resolver", settings.resolver, settings)
        self._downloader = downloader or named_part("downloader", settings.downloader, settings)
        # This process connects by itself, so it needs a guard of its own: a shard's verdict came over the network.
        self._guard = AddressGuard(ip_network(network) for network in settings.allow_private)
        for typed in settings.typed_hosts:
            host, _, port = typed.rpartition(":")
            self._guard.allow_literal(host, int(port))
        self._fetching: dict[str, asyncio.Future[Response]] = {}

    def __repr__(self) -> str:
        return f"<CentralLookups fetching={len(self._fetching)}>"

    async def look_up(self, name: str) -> Resolved:
        self._resolver.flush()  # whoever asks again has reason to doubt the last answer
        return await self._resolver.resolve(name)

    async def fetch(self, request: Request) -> Response:
        """Fetches a robots.txt. A shard that was started anew may ask for what is in flight: it waits for that."""
        in_flight = self._fetching.get(request.url)
        if in_flight is None:
            if (reason := self._refusal(request)) is not None:
                return refused_response(request, Failure.ADDRESS_REFUSED, f"{request.address}: {reason}")
            in_flight = self._fetching[request.url] = asyncio.get_running_loop().create_future()
            self._downloader.start(request, lambda response: self._fetching.pop(request.url).set_result(response))
        return await asyncio.shield(in_flight)

    def _refusal(self, request: Request) -> str | None:
        """Why this process must not connect there. The shard's guard has judged the address, too; this process does not
        take its word for it."""
        is_typed = self._guard.is_typed(request.host, request.port) and request.address == literal_address(request.host)
        return None if is_typed else self._guard.refusal(request.address)


class CentralResolver:
    """A shard's resolver that asks the coordinator, and waits while that is away."""

    def __init__(self, coordinator: CoordinatorLookups) -> None:
        self._coordinator = coordinator

    async def resolve(self, name: str) -> Resolved:
        # A coordinator that is being restarted is no failure of the host, which must not be given up for it.
        while True:
            try:
                return await self._coordinator.look_up(name)
            except ClusterError:
                await asyncio.sleep(RETRY_S)

    def flush(self) -> None:
        """Does nothing: no answer is kept here."""

    async def close(self) -> None:
        """Does nothing: no connection is held here."""


class CentralRobotsDownloader:
    """A shard's downloader that has robots.txt fetched by the coordinator; `now` is the shard's clock."""

    def __init__(self, downloader: Downloader, coordinator: CoordinatorLookups, now: Callable[[], float]) -> None:
        self._downloader, self._coordinator, self._now = downloader, coordinator, now
        self._delegated: dict[asyncio.Task[Response], tuple[Request, DoneCallback]] = {}
        if isinstance(downloader, Watchable):
            self.watch = downloader.watch

    def start(self, request: Request, done: DoneCallback) -> None:
        # `ROBOTS_BYTES` is the limit of nothing else; credentials do not leave the process.
        if request.body_limit_bytes != ROBOTS_BYTES or request.private is not None:
            self._downloader.start(request, done)
            return
        task = asyncio.get_running_loop().create_task(self._fetch(request))
        self._delegated[task] = request, done
        task.add_done_callback(self._on_done)

    async def _fetch(self, request: Request) -> Response:
        began = self._now()
        try:
            response = await self._coordinator.fetch(request)
        except ClusterError as error:  # as if the host could not be reached: it may have been asked, so it has to wait
            response = Response(request.url, failure=Failure.CONNECT, detail=str(error))
        # `response` has the times of another machine's clock: only their differences count.
        now = self._now()
        first = max(began, now - (response.ended_s - response.first_byte_s))
        return replace(response, started_s=began, first_byte_s=first, ended_s=now)

    def _on_done(self, task: "asyncio.Task[Response]") -> None:
        if (delegated := self._delegated.pop(task, None)) is not None:  # else it was cancelled
            delegated[1](task.result())

    def cancel_all(self) -> None:
        while self._delegated:
            task, (request, done) = self._delegated.popitem()
            task.cancel()
            now = self._now()
            done(Response(request.url, started_s=now, ended_s=now, failure=Failure.CANCELLED))
        self._downloader.cancel_all()

    async def close(self) -> None:
        self.cancel_all()
        await self._downloader.close()

    def stats(self) -> DownloaderStats:
        return self._downloader.stats()
