"""Trouble on the wire: what a connection does instead of answering properly.

Each is a short script over the connection; it ends when the client goes away (the task is cancelled) or at a limit,
so that no trouble outlives its test.
"""

import asyncio
import contextlib
import socket
import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lycosa.simweb.protocol import Wire
    from lycosa.simweb.server import Connection

LONGEST_S = 600.0
ENDLESS_BYTES = 1 << 30
CHUNK = b"10000\r\n" + b"<p>without end</p>".ljust(0x10000) + b"\r\n"
FLOOD = b"".join(b"X-Flood-%d: %s\r\n" % (i, b"x" * 200) for i in range(64))

WIRE_TROUBLE = frozenset({"hang", "drip", "reset", "truncated", "wrong-length", "endless", "header-flood"})


async def misbehave(connection: "Connection", message: "Wire") -> None:
    """Plays the message's trouble to its end, LONGEST_S at most."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(LONGEST_S):
            await _SCRIPTS[message.trouble](connection, message)


async def _hang(connection: "Connection", message: "Wire") -> None:
    connection.set_status(0)
    await asyncio.sleep(LONGEST_S)


async def _drip(connection: "Connection", message: "Wire") -> None:
    connection.write(message.head)
    for i in range(len(message.body)):
        await asyncio.sleep(1)
        connection.write(message.body[i : i + 1])


async def _truncated(connection: "Connection", message: "Wire") -> None:
    connection.write(message.head + message.body[: len(message.body) // 2])
    await connection.drained()


async def _reset(connection: "Connection", message: "Wire") -> None:
    await _truncated(connection, message)
    await asyncio.sleep(0.02)  # lets the client read what came before the reset
    sock = connection.transport.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # close now means RST
    connection.transport.abort()


async def _wrong_length(connection: "Connection", message: "Wire") -> None:
    connection.write(message.head + message.body)
    await connection.drained()


async def _endless(connection: "Connection", message: "Wire") -> None:
    head = b"".join(
        line for line in message.head.splitlines(keepends=True) if not line.lower().startswith(b"content-length")
    )
    connection.write(head[:-2] + b"Transfer-Encoding: chunked\r\n\r\n")
    for _ in range(ENDLESS_BYTES // len(CHUNK)):
        connection.write(CHUNK)
        await connection.drained()
        await asyncio.sleep(0.001)  # other clients come first


async def _header_flood(connection: "Connection", message: "Wire") -> None:
    connection.write(message.head[:-2])
    for _ in range(ENDLESS_BYTES // len(FLOOD)):
        connection.write(FLOOD)
        await connection.drained()
        await asyncio.sleep(0.001)


_SCRIPTS = {
    "hang": _hang,
    "drip": _drip,
    "reset": _reset,
    "truncated": _truncated,
    "wrong-length": _wrong_length,
    "endless": _endless,
    "header-flood": _header_flood,
}
