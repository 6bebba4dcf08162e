"""HTTP around an answer: status line, headers, ranges, compression, and the ways a server misbehaves.

`to_wire` is pure and is used by the server and by the in-memory web, so that both send the same bytes. `misbehave`
plays trouble on an open connection; it ends when the client goes away or at a limit, so no trouble outlives its test.
"""

import asyncio
import contextlib
import re
import socket
import struct
from email.utils import parsedate_to_datetime
from typing import Protocol

import msgspec
from isal import igzip

from lycosa.simweb.documents import EPOCH_S, http_date
from lycosa.simweb.web import Answer

GZIP_LEAST = 256  # smaller bodies are not worth a header
# What goes wrong after the headers: an answer to HEAD is over by then.
BODY_TROUBLE = frozenset({"drip", "reset", "truncated", "wrong-length", "endless"})
_RANGE = re.compile(r"bytes=([0-9]{0,15})-([0-9]{0,15})\Z")  # more digits than any file has bytes
REASONS = {
    200: "OK",
    206: "Partial Content",
    301: "Moved Permanently",
    304: "Not Modified",
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    410: "Gone",
    416: "Range Not Satisfiable",
    421: "Misdirected Request",
    429: "Too Many Requests",
    500: "Internal Server Error",
    503: "Service Unavailable",
}


class WireRequest(msgspec.Struct, frozen=True):
    """What a request says beside its target; header values as text, empty where missing."""

    method: str = "GET"
    accept_encoding: str = ""
    if_none_match: str = ""
    if_modified_since: str = ""
    range: str = ""


class WireResponse(msgspec.Struct, frozen=True):
    """A response as bytes; `tail` follows the body and is shared by many. `trouble` is what to do instead."""

    status: int
    head: bytes
    body: bytes
    tail: bytes = b""
    trouble: str = ""

    @property
    def size_bytes(self) -> int:
        return len(self.head) + len(self.body) + len(self.tail)


def to_wire(answer: Answer, asked: WireRequest, *, time_s: float, gzip: bool, keep_alive: bool = True) -> WireResponse:
    """The response to `asked`, conditions and coding applied."""
    status, body, headers = answer.status, answer.body, list(answer.headers)
    is_spoiled = bool(answer.trouble)
    if status == 200 and not is_spoiled:
        if _is_unchanged(answer, asked):
            status, body = 304, b""
        elif asked.range and asked.method == "GET":
            status, body, extra = _ranged(body, asked.range)
            headers += extra
        elif gzip and len(body) >= GZIP_LEAST and accepts_gzip(asked.accept_encoding) and _is_text(answer.content_type):
            body = igzip.compress(body, compresslevel=1, mtime=0)
            headers += [("Content-Encoding", "gzip"), ("Vary", "Accept-Encoding")]
    length = len(body) // 2 if answer.trouble == "wrong-length" else len(body) + len(answer.tail)
    date = http_date(int(EPOCH_S + time_s))
    head = [f"HTTP/1.1 {status} {REASONS.get(status, 'Unknown')}\r\nServer: simweb\r\nDate: {date}\r\n"]
    if answer.etag:
        head.append(f"ETag: {answer.etag}\r\n")
    if answer.modified_s:
        head.append(f"Last-Modified: {http_date(answer.modified_s)}\r\n")
    if status != 304:
        head.append(f"Content-Type: {answer.content_type}\r\nContent-Length: {length}\r\n")
    head += [f"{name}: {value}\r\n" for name, value in headers]
    head.append("\r\n" if keep_alive else "Connection: close\r\n\r\n")
    block = "".join(head).encode("latin-1")
    if asked.method == "HEAD":
        return WireResponse(status, block, b"", trouble="" if answer.trouble in BODY_TROUBLE else answer.trouble)
    return WireResponse(status, block, body, answer.tail, answer.trouble)


def accepts_gzip(accept_encoding: str) -> bool:
    """`gzip` is named, and not with a weight of nothing."""
    if ";" not in accept_encoding:
        return "gzip" in accept_encoding
    codings = [coding.replace(" ", "") for coding in accept_encoding.lower().split(",")]
    return any(re.match(r"gzip(?:;q=(?!0(?:\.0*)?\Z)|\Z)", coding) for coding in codings)


def _is_text(content_type: str) -> bool:
    return content_type.startswith("text/") or "xml" in content_type


def _is_unchanged(answer: Answer, asked: WireRequest) -> bool:
    """An entity tag decides alone when it is given; else the date does."""
    if asked.if_none_match and answer.etag:
        return asked.if_none_match.strip() == "*" or answer.etag in asked.if_none_match
    if asked.if_modified_since and answer.modified_s and not asked.if_none_match:
        try:
            return answer.modified_s <= parsedate_to_datetime(asked.if_modified_since).timestamp()
        except ValueError:
            return False
    return False


def _ranged(body: bytes, asked: str) -> tuple[int, bytes, list[tuple[str, str]]]:
    """One byte range; anything else is answered whole."""
    match = _RANGE.match(asked.strip())
    first, last = match.groups() if match else ("", "")
    if not (first or last) or (first and last and int(first) > int(last)):
        return 200, body, []
    start = int(first) if first else max(0, len(body) - int(last))
    end = min(int(last), len(body) - 1) if first and last else len(body) - 1
    if start > end:
        return 416, b"", [("Content-Range", f"bytes */{len(body)}")]
    return 206, body[start : end + 1], [("Content-Range", f"bytes {start}-{end}/{len(body)}")]


# trouble on the wire

LONGEST_S = 600.0
ENDLESS_BYTES = 1 << 30
CHUNK = b"10000\r\n" + b"<p>without end</p>".ljust(0x10000) + b"\r\n"
FLOOD = b"".join(b"X-Flood-%d: %s\r\n" % (i, b"x" * 200) for i in range(64))

WIRE_TROUBLE = frozenset({"hang", "drip", "reset", "truncated", "wrong-length", "endless", "header-flood"})


class WireConnection(Protocol):
    """What trouble is played on: an open connection to a client."""

    transport: asyncio.Transport

    def write(self, data: bytes) -> None: ...

    async def drained(self) -> None: ...

    def set_status(self, status: int) -> None: ...


async def misbehave(connection: WireConnection, message: WireResponse) -> None:
    """Plays the message's trouble to its end, LONGEST_S at most."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(LONGEST_S):
            await _SCRIPTS[message.trouble](connection, message)


async def _hang(connection: WireConnection, message: WireResponse) -> None:
    connection.set_status(0)
    await asyncio.sleep(LONGEST_S)


async def _drip(connection: WireConnection, message: WireResponse) -> None:
    connection.write(message.head)
    for i in range(len(message.body)):
        await asyncio.sleep(1)
        connection.write(message.body[i : i + 1])


async def _truncated(connection: WireConnection, message: WireResponse) -> None:
    connection.write(message.head + message.body[: len(message.body) // 2])
    await connection.drained()


async def _reset(connection: WireConnection, message: WireResponse) -> None:
    await _truncated(connection, message)
    await asyncio.sleep(0.02)  # lets the client read what came before the reset
    sock = connection.transport.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # close now means RST
    connection.transport.abort()


async def _wrong_length(connection: WireConnection, message: WireResponse) -> None:
    connection.write(message.head + message.body)
    await connection.drained()


async def _endless(connection: WireConnection, message: WireResponse) -> None:
    head = b"".join(
        line for line in message.head.splitlines(keepends=True) if not line.lower().startswith(b"content-length")
    )
    connection.write(head[:-2] + b"Transfer-Encoding: chunked\r\n\r\n")
    for _ in range(ENDLESS_BYTES // len(CHUNK)):
        connection.write(CHUNK)
        await connection.drained()
        await asyncio.sleep(0.001)  # other clients come first


async def _header_flood(connection: WireConnection, message: WireResponse) -> None:
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
