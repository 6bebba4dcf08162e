"""A server that says exactly the bytes a test wants, when it wants, and remembers what it was asked."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from lycosa.simweb.raw import Act, drips, page, says
from lycosa.simweb.raw import RawConnection as Line

__all__ = ["Act", "Line", "RoughServer", "drips", "page", "rough_server", "says"]


class RoughServer:
    """`acts` by path; other paths get a small page. `heads`: the request heads as they came. `lines`: how many."""

    def __init__(self) -> None:
        self.acts: dict[str, Act] = {}
        self.heads: list[bytes] = []
        self.lines = 0
        self.port = 0
        self._tasks: set[asyncio.Task[None]] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.lines += 1
        try:
            with suppress(
                asyncio.CancelledError,
                ConnectionError,
                asyncio.IncompleteReadError,
                asyncio.LimitOverrunError,
                ssl.SSLError,
            ):
                while not writer.is_closing():
                    head = await reader.readuntil(b"\r\n\r\n")
                    self.heads.append(head)
                    path = head.split(b" ")[1].decode()
                    await self.acts.get(path, page())(Line(reader, writer))
        finally:
            self._tasks.discard(task)
            writer.close()

    async def stop(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@asynccontextmanager
async def rough_server(*, host: str = "127.0.0.1", tls: ssl.SSLContext | None = None) -> AsyncIterator[RoughServer]:
    rough = RoughServer()
    server = await asyncio.start_server(rough.serve, host, 0, ssl=tls, backlog=2048)
    rough.port = server.sockets[0].getsockname()[1]
    try:
        yield rough
    finally:
        server.close()
        await rough.stop()
