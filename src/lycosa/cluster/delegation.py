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

import msgspec
from msgspec.structs import replace

from lycosa.cluster.transfer import OwnedHosts
from lycosa.crawl.host_rules import ROBOTS_BYTES
from lycosa.crawl.loop import Engine
from lycosa.errors import ClusterError
from lycosa.fetch import DoneCallback, Downloader, DownloaderStats, Watchable, refused_response
from lycosa.mapping import AddressGuard, Resolver, literal_address
from lycosa.records import Failure, Request, Resolved, Response
from lycosa.settings import CrawlSettings
from lycosa.web import Url, named_part, parse_url

ROBOTS_TIMEOUT_S = 60.0
DISK_RETRY_S = 0.5


class RobotsClient(Protocol):
    """How an errand gets to its owner."""

    async def robots(self, receiver: str, href: str) -> Response:
        """What the URL gave, fetched by the receiver; ClusterError if it could not be asked."""
        ...


class RobotsDelegation:
    """The errands of one agent: those it has others do, and those it does for others."""

    def __init__(self, part: OwnedHosts, messengers: RobotsClient) -> None:
        self._part, self._messengers = part, messengers
        self._asked: set[asyncio.Task[None]] = set()
        self._doing: dict[str, asyncio.Future[Response]] = {}

    def __repr__(self) -> str:
        return f"<Errands asked={len(self._asked)} doing={len(self._doing)}>"

    def tasks(self) -> "list[asyncio.Task[None]]":
        return list(self._asked)

    def ask(self, engine: Engine, url: Url, then: Callable[[Response], None]) -> None:
        """Has a URL fetched by the owner of its host; `then` hears what came back."""
        task = asyncio.get_running_loop().create_task(self._ask(engine, url, then))
        self._asked.add(task)
        task.add_done_callback(self._asked.discard)

    async def _ask(self, engine: Engine, url: Url, then: Callable[[Response], None]) -> None:
        try:
            response = await self._messengers.robots(self._part.table.owner(url.host), url.href)
        except ClusterError as error:
            response = Response(url.href, failure=Failure.CONNECT, detail=str(error))
        while not engine.hear(lambda: then(response)):  # noqa: ASYNC110 -- the disk refuses, no event tells
            await asyncio.sleep(DISK_RETRY_S)

    async def do(self, engine: Engine, href: str) -> Response:
        """Fetches a URL for another shard."""
        url = parse_url(href)
        if url is None or not self._part.owns(url.host):
            raise ClusterError(f"{href} is no longer asked for by this shard")
        done = self._doing.get(href)
        if done is None:
            done = self._doing[href] = asyncio.get_running_loop().create_future()
            answer = self._answer(href, done)
            if not engine.hear(lambda: engine.frontier.want_robots(b"", url, 0, engine.now(), answer)):
                del self._doing[href]
                raise ClusterError("the disk of this shard refuses")
        try:
            return await asyncio.wait_for(asyncio.shield(done), ROBOTS_TIMEOUT_S)
        except TimeoutError as error:
            raise ClusterError(f"{href} could not be fetched in time") from error
        finally:
            self._doing.pop(href, None)

    @staticmethod
    def _answer(href: str, done: "asyncio.Future[Response]") -> Callable[[Response], None]:
        def answer(response: Response) -> None:
            if not done.done():
                body = response.body[:ROBOTS_BYTES]
                times = {"started_s": 0.0, "first_byte_s": 0.0, "ended_s": 0.0}  # another machine's clock
                done.set_result(msgspec.structs.replace(response, url=href, body=body, header_block=b"", **times))

        return answer


CALL_RETRY_S = 0.5  # after a call that failed


class CoordinatorLookups(Protocol):
    """How a shard asks the coordinator; ClusterError if nobody answers."""

    async def look_up(self, name: str) -> Resolved:
        """The addresses of a name."""
        ...

    async def fetch(self, request: Request) -> Response:
        """What a robots.txt gave."""
        ...


class CentralLookups:
    """The coordinator's side. Needs the running event loop."""

    def __init__(
        self, settings: CrawlSettings, *, resolver: Resolver | None = None, downloader: Downloader | None = None
    ) -> None:
        self._resolver = resolver or named_part("resolver", settings.resolver, settings)
        self._downloader = downloader or named_part("downloader", settings.downloader, settings)
        self._guard = AddressGuard(ip_network(network) for network in settings.allow_private)
        for typed in settings.typed_hosts:
            host, _, port = typed.rpartition(":")
            self._guard.allow_literal(host, int(port))
        self._fetching: dict[str, asyncio.Future[Response]] = {}

    def __repr__(self) -> str:
        return f"<Central fetching={len(self._fetching)}>"

    async def look_up(self, name: str) -> Resolved:
        self._resolver.flush()  # whoever asks again has reason to doubt the last answer
        return await self._resolver.resolve(name)

    async def fetch(self, request: Request) -> Response:
        """Whoever asks again for what is still under way, as a shard that was started anew may, waits for that."""
        under_way = self._fetching.get(request.url)
        if under_way is None:
            if (reason := self._refusal(request)) is not None:
                return refused_response(request, Failure.ADDRESS_REFUSED, f"{request.address}: {reason}")
            under_way = self._fetching[request.url] = asyncio.get_running_loop().create_future()
            self._downloader.start(request, self._settle(request.url))
        return await asyncio.shield(under_way)

    def _refusal(self, request: Request) -> str | None:
        """Why this process must not connect there. The shard's guard has judged the address, too."""
        is_typed = self._guard.is_typed(request.host, request.port) and request.address == literal_address(request.host)
        return None if is_typed else self._guard.refusal(request.address)

    def _settle(self, url: str) -> DoneCallback:
        return lambda response: self._fetching.pop(url).set_result(response)


class CentralResolver:
    """A shard's resolver: the coordinator's. Waits while that is away; the shard's mapper judges what it says."""

    def __init__(self, centre: CoordinatorLookups) -> None:
        self._centre = centre

    async def resolve(self, name: str) -> Resolved:
        while True:
            try:
                return await self._centre.look_up(name)
            except ClusterError:
                await asyncio.sleep(CALL_RETRY_S)

    def flush(self) -> None:
        """Nothing is kept here."""

    async def close(self) -> None:
        """Nothing is held here."""


class CentralRobotsDownloader:
    """A shard's downloader, by which robots.txt is fetched through the coordinator; `now` is the shard's clock."""

    def __init__(self, downloader: Downloader, centre: CoordinatorLookups, now: Callable[[], float]) -> None:
        self._downloader, self._centre, self._now = downloader, centre, now
        self._asked: dict[asyncio.Task[Response], tuple[Request, DoneCallback]] = {}
        if isinstance(downloader, Watchable):
            self.watch = downloader.watch

    def start(self, request: Request, done: DoneCallback) -> None:
        if request.body_limit_bytes != ROBOTS_BYTES:  # the limit of nothing else
            self._downloader.start(request, done)
            return
        task = asyncio.get_running_loop().create_task(self._ask(request))
        self._asked[task] = request, done
        task.add_done_callback(self._answered)

    async def _ask(self, request: Request) -> Response:
        began = self._now()
        try:
            response = await self._centre.fetch(request)
        except ClusterError as error:  # as if the host could not be reached: it may have been asked, so it has to wait
            response = Response(request.url, failure=Failure.CONNECT, detail=str(error))
        now = self._now()  # by the clock of another machine it took from `started_s` to `ended_s`
        first = max(began, now - (response.ended_s - response.first_byte_s))
        return replace(response, started_s=began, first_byte_s=first, ended_s=now)

    def _answered(self, task: "asyncio.Task[Response]") -> None:
        if (asked := self._asked.pop(task, None)) is not None:  # else it was cancelled
            asked[1](task.result())

    def cancel_all(self) -> None:
        while self._asked:
            task, (request, done) = self._asked.popitem()
            task.cancel()
            now = self._now()
            done(Response(request.url, started_s=now, ended_s=now, failure=Failure.CANCELLED))
        self._downloader.cancel_all()

    async def close(self) -> None:
        self.cancel_all()
        await self._downloader.close()

    def stats(self) -> DownloaderStats:
        return self._downloader.stats()
