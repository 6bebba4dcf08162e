"""With `exchange = "coordinator"` one process looks up names and reads robots.txt for all shards, before any of them
asks a host for anything: the central crawler of paper 2 does so before it hands out a site (M1).

`Central` is the coordinator's side. A shard has `CentralResolver` in place of its own resolver, and `CentralRobots` in
front of its downloader. All else of a host stays with its owner: the pace, since a robots.txt takes the host's slot and
its address's turn there as ever; the guard, which judges every address that the coordinator names; retries; the
archive. Address and rules are kept with the host and move with it, so while they hold nobody asks for them again.
"""

import asyncio
from collections.abc import Callable
from ipaddress import ip_network
from typing import Protocol

from msgspec.structs import replace

from lycosa.engine.host_rules import ROBOTS_BYTES
from lycosa.engine.named_parts import named_part
from lycosa.errors import ClusterError
from lycosa.fetch.downloader import Done, Downloader, DownloaderStats, Watchable, refused
from lycosa.mapping.guard import AddressGuard, literal_address
from lycosa.mapping.resolver import Resolver
from lycosa.records import Failure, Request, Resolved, Response
from lycosa.settings import CrawlSettings

AGAIN_S = 0.5  # after a call that failed


class Centre(Protocol):
    """How a shard asks the coordinator; ClusterError if nobody answers."""

    async def look_up(self, name: str) -> Resolved:
        """The addresses of a name."""
        ...

    async def fetch(self, request: Request) -> Response:
        """What a robots.txt gave."""
        ...


class Central:
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
                return refused(request, Failure.ADDRESS_REFUSED, f"{request.address}: {reason}")
            under_way = self._fetching[request.url] = asyncio.get_running_loop().create_future()
            self._downloader.start(request, self._settle(request.url))
        return await asyncio.shield(under_way)

    def _refusal(self, request: Request) -> str | None:
        """Why this process must not connect there. The shard's guard has judged the address, too."""
        is_typed = self._guard.is_typed(request.host, request.port) and request.address == literal_address(request.host)
        return None if is_typed else self._guard.refusal(request.address)

    def _settle(self, url: str) -> Done:
        return lambda response: self._fetching.pop(url).set_result(response)


class CentralResolver:
    """A shard's resolver: the coordinator's. Waits while that is away; the shard's mapper judges what it says."""

    def __init__(self, centre: Centre) -> None:
        self._centre = centre

    async def resolve(self, name: str) -> Resolved:
        while True:
            try:
                return await self._centre.look_up(name)
            except ClusterError:
                await asyncio.sleep(AGAIN_S)

    def flush(self) -> None:
        """Nothing is kept here."""

    async def close(self) -> None:
        """Nothing is held here."""


class CentralRobots:
    """A shard's downloader, by which robots.txt is fetched through the coordinator; `now` is the shard's clock."""

    def __init__(self, downloader: Downloader, centre: Centre, now: Callable[[], float]) -> None:
        self._downloader, self._centre, self._now = downloader, centre, now
        self._asked: dict[asyncio.Task[Response], tuple[Request, Done]] = {}
        if isinstance(downloader, Watchable):
            self.watch = downloader.watch

    def start(self, request: Request, done: Done) -> None:
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
