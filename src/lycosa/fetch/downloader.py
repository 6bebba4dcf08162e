"""Getting one response: the `Downloader` port, its limits, and the choice of a downloader by a URL's scheme.

Contract of a downloader: `start` returns at once and never raises for what the world or a URL is like; `done` is called
exactly once for each `start`, later, from the event loop, and may call `start` itself. Every outcome is a `Response`.
Called by the crawl loop only, from one event loop.
"""

import asyncio
from collections.abc import Callable, Mapping
from time import monotonic
from typing import Protocol, runtime_checkable

import msgspec

from lycosa.records import Failure, Request, Response

DoneCallback = Callable[[Response], None]
Watcher = Callable[[Request, Response], None]
AcceptsResponse = Callable[[int, dict[str, str]], bool]


class TransferLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of one transfer, and of all of them together.

    There are four clocks, since none alone is a limit: until connected, from there to the first byte, between any two
    bytes, and for the whole. `in_flight_bytes` is shared by the bodies of all unfinished transfers; beyond it they
    pause.
    """

    connect_s: float = 10.0
    first_byte_s: float = 20.0
    idle_s: float = 20.0
    total_s: float = 120.0
    body_bytes: int = 10_000_000
    header_bytes: int = 256 * 1024
    in_flight_bytes: int = 256_000_000
    bandwidth_bytes_s: float | None = None


class DownloaderStats(msgspec.Struct, frozen=True):
    """Counts of what is under way now (the first three), and of all since the start."""

    active: int
    paused: int
    in_flight_bytes: int
    started: int
    ended: int
    failed: int
    received_bytes: int
    connections_opened: int


class Downloader(Protocol):
    """The port through which a crawl sends requests; the contract is in the module's docstring."""

    def start(self, request: Request, done: DoneCallback) -> None: ...

    def cancel_all(self) -> None:
        """Ends every transfer now; each `done` hears CANCELLED before this returns."""

    async def close(self) -> None: ...

    def stats(self) -> DownloaderStats: ...


@runtime_checkable
class Watchable(Protocol):
    """A downloader that can show what it has of a response while the rest is on its way."""

    def watch(self, watcher: Watcher) -> None:
        """From now on `watcher` hears of slow responses: from the event loop, a few times a second at most, only of
        those with news since, never after their `done`. What it is shown is the beginning of what `done` will hear."""


class SchemeDownloader:
    """A downloader made of others, one for each scheme of URLs. One may serve several schemes."""

    def __init__(self, downloaders: Mapping[str, Downloader]) -> None:
        self._downloaders = dict(downloaders)
        self._each = list({id(part): part for part in downloaders.values()}.values())

    def __repr__(self) -> str:
        return f"ByScheme({self._downloaders})"

    def start(self, request: Request, done: DoneCallback) -> None:
        downloader = self._downloaders.get(request.url.partition(":")[0].lower())
        if downloader is not None:
            downloader.start(request, done)
            return
        asyncio.get_running_loop().call_soon(
            done, refused_response(request, Failure.PROTOCOL, "no downloader for this scheme")
        )

    def watch(self, watcher: Watcher) -> None:
        for downloader in self._each:
            if isinstance(downloader, Watchable):
                downloader.watch(watcher)

    def set_fence(self, fence: Callable[[], bool]) -> None:
        """Sets the fence of those parts that can have one."""
        for downloader in self._each:
            if hasattr(downloader, "set_fence"):
                downloader.set_fence(fence)

    def cancel_all(self) -> None:
        for downloader in self._each:
            downloader.cancel_all()

    async def close(self) -> None:
        for downloader in self._each:
            await downloader.close()

    def stats(self) -> DownloaderStats:
        """The sums over the parts."""
        fields = DownloaderStats.__struct_fields__
        each = [downloader.stats() for downloader in self._each]
        return DownloaderStats(*(sum(getattr(stats, field) for stats in each) for field in fields))


def refused_response(request: Request, failure: Failure, detail: str) -> Response:
    """The response to a request that was never sent."""
    now_s = monotonic()
    return Response(request.url, started_s=now_s, ended_s=now_s, failure=failure, detail=detail)
