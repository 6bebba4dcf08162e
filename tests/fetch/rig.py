"""A downloader beside a rough server, for tests: ask, and wait for the response."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import uvloop
from rough_server import RoughServer, rough_server

from lycosa.fetch.curl import CurlDownloader
from lycosa.fetch.downloader import TransferLimits
from lycosa.records import Request, Response

# Short clocks for what ends by them, far enough apart that a busy machine does not confuse them; and clocks that end
# nothing, for all else.
QUICK = TransferLimits(connect_s=0.8, first_byte_s=0.8, idle_s=0.8, total_s=60.0, body_bytes=100_000)
UNHURRIED = TransferLimits(connect_s=120.0, first_byte_s=120.0, idle_s=120.0, total_s=120.0, body_bytes=100_000)


class Rig:
    def __init__(self, server: RoughServer, downloader: CurlDownloader) -> None:
        self.server = server
        self.downloader = downloader

    def request(self, path: str = "/", **changes: Any) -> Request:
        host = changes.pop("host", "site.example")
        scheme = changes.pop("scheme", "http")
        port = changes.pop("port", self.server.port)
        url = changes.pop("url", f"{scheme}://{host}:{port}{path}")
        return Request(url, host, port, changes.pop("address", "127.0.0.1"), **changes)

    async def send(self, request: Request) -> Response:
        """The one response to a request; a second one would fail the test."""
        future: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        self.downloader.start(request, future.set_result)
        return await asyncio.wait_for(future, 150)

    async def get(self, path: str = "/", **changes: Any) -> Response:
        return await self.send(self.request(path, **changes))


def with_rig(
    work: Callable[[Rig], Awaitable[None]], limits: TransferLimits = UNHURRIED, *, tls: Any = None, **options: Any
) -> None:
    async def main() -> None:
        async with rough_server(tls=tls) as server:
            downloader = CurlDownloader(limits, **options)
            try:
                await work(Rig(server, downloader))
            finally:
                await downloader.close()
            assert downloader.stats().active == 0
            assert downloader.stats().in_flight_bytes == 0

    uvloop.run(main())
