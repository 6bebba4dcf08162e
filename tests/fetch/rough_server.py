"""A server that says exactly the bytes a test wants, when it wants, and remembers what it was asked."""

import asyncio
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

Act = Callable[["Line"], Awaitable[None]]


class Line:
    """One connection, as an act sees it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def say(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def hang(self) -> None:
        """Say nothing more until the other side goes away."""
        while await self.reader.read(4096):
            pass

    def hang_up(self) -> None:
        self.writer.close()

    def reset(self) -> None:
        sock: socket.socket = self.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


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


def says(data: bytes, *, then: Callable[[Line], None] | None = None, hangs: bool = False) -> Act:
    """An act that says `data` and then hangs up, resets, hangs, or waits for the next request."""

    async def act(line: Line) -> None:
        await line.say(data)
        if hangs:
            await line.hang()
        if then is not None:
            await asyncio.sleep(0.02)  # let it arrive
            then(line)

    return act


def page(body: bytes = b"hello", *, fields: str = "", status: str = "200 OK") -> Act:
    return says(f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{fields}\r\n".encode() + body)


def drips(head: bytes, piece: bytes, *, every_s: float) -> Act:
    """An act that never ends: a piece now and then."""

    async def act(line: Line) -> None:
        await line.say(head)
        while True:
            await line.say(piece)
            await asyncio.sleep(every_s)

    return act


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
