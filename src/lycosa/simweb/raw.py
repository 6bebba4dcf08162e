"""Answers byte by byte: connections and acts for servers that say what no HTTP library would.

An act is what a server does with one request: it writes what it likes to the `RawConnection`, may wait, hang up or
reset, and returns when the connection is ready for the next request.
"""

import asyncio
import socket
import struct
from collections.abc import Awaitable, Callable

Act = Callable[["RawConnection"], Awaitable[None]]


class RawConnection:
    """One connection, as an act sees it; `host`, `port` and `path` are those of the request, `turn` counts the
    requests that the server has had for this host and path."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.host = self.path = ""
        self.port, self.turn = 80, 1

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


def says(data: bytes, *, then: Callable[[RawConnection], None] | None = None, hangs: bool = False) -> Act:
    """An act that says `data` and then hangs up, resets, hangs, or waits for the next request."""

    async def act(line: RawConnection) -> None:
        await line.say(data)
        if hangs:
            await line.hang()
        if then is not None:
            await asyncio.sleep(0.02)  # let it arrive
            then(line)

    return act


def page(body: bytes = b"hello", *, fields: str = "", status: str = "200 OK") -> Act:
    return says(page_bytes(body, fields=fields, status=status))


def page_bytes(body: bytes, *, fields: str = "", status: str = "200 OK") -> bytes:
    """A whole answer; `fields` are header lines that end in CR and LF."""
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{fields}\r\n".encode("latin-1") + body


def drips(head: bytes, piece: bytes, *, every_s: float) -> Act:
    """An act that never ends: a piece now and then."""

    async def act(line: RawConnection) -> None:
        await line.say(head)
        while True:
            await line.say(piece)
            await asyncio.sleep(every_s)

    return act
