"""A small HTTP/1.1 server for one reader: GET and HEAD, on loopback unless it is told otherwise.

It checks the Host of each request before anything else is looked at: a name that is not ours is the sign of DNS
rebinding, by which a page elsewhere would read what only this machine may. Heads are bounded, connections are few, and
an answer is sent in pieces as fast as the client takes them. What answers runs on one thread of its own, because a
collection is read from one thread.
"""

import asyncio
import os
import re
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http.client import responses
from ipaddress import ip_address
from ssl import SSLContext

import msgspec

from lycosa.errors import SettingsError

HEAD_BYTES = 32 << 10
CONNECTIONS = 64
LARGE_BYTES, LARGE_ANSWERS = 4 << 20, 8  # bodies of more are in memory so many at a time, until they are sent
IDLE_S = 60.0
PIECE_BYTES = 256 << 10
_RANGE = re.compile(r"bytes=([0-9]{0,18})-([0-9]{0,18})\Z")
_HOST = re.compile(r"(\[[0-9a-fA-F:.]+\]|[0-9A-Za-z.-]+)(?::[0-9]{1,5})?\Z")


class ReplayRequest(msgspec.Struct, frozen=True):
    """A request: `target` is its path with its query, as sent; names of header fields are in lower case."""

    method: str
    target: str
    headers: Mapping[str, str] = {}

    @property
    def host(self) -> str:
        return self.headers.get("host", "")


class ReplayAnswer(msgspec.Struct, frozen=True):
    """An answer. What its client may do with it is all in `headers`."""

    status: int
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()


class HttpServer:
    """Serves what `answer` answers, once it is started. `name` is a host name by which it may be asked beside
    addresses and localhost."""

    def __init__(self, answer: Callable[[ReplayRequest], ReplayAnswer], *, name: str = "") -> None:
        self._answer, self._name = answer, name.lower()
        self._reader = ThreadPoolExecutor(1, "lycosa-replay")
        self._large = asyncio.Semaphore(LARGE_ANSWERS)
        self._connections: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    def __repr__(self) -> str:
        return f"<HttpServer port={self.port if self._server else None} connections={len(self._connections)}>"

    async def start(self, address: str, port: int, tls: SSLContext | None = None) -> None:
        """Listens; raises SettingsError where it cannot."""
        try:
            self._server = await asyncio.start_server(self._connected, address, port, limit=HEAD_BYTES, ssl=tls)
        except (OSError, OverflowError) as error:
            number = getattr(error, "errno", None)  # asyncio's own words for it are long
            why = os.strerror(number) if number else str(error)
            raise SettingsError(f"cannot listen on port {port} of {address} ({why}): choose another --port") from error

    @property
    def port(self) -> int:
        assert self._server is not None
        return int(self._server.sockets[0].getsockname()[1])

    async def close(self) -> None:
        """Stops listening, and ends every connection."""
        if self._server is not None:
            self._server.close()
        for task in tuple(self._connections):
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        self._reader.shutdown(cancel_futures=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is None or len(self._connections) >= CONNECTIONS:
            writer.close()
            return
        self._connections.add(task)
        try:
            while await self._serve_one(reader, writer):
                pass
        except (OSError, EOFError, TimeoutError, asyncio.LimitOverrunError, asyncio.CancelledError):
            pass  # the client has gone, is silent, sends a head without end, or this is the end
        finally:
            self._connections.discard(task)
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def _serve_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answers one request; returns whether another may follow."""
        async with asyncio.timeout(IDLE_S):
            request = _parse(await reader.readuntil(b"\r\n\r\n"))
        refusal = _refusal(request, self._name)
        if request is None or refusal is not None:
            await _send(writer, refusal or ReplayAnswer(400), keeps=False, has_body=True)
            return False
        keeps, has_body = _may_follow(request), request.method != "HEAD"
        await self._large.acquire()
        try:
            answer = await asyncio.get_running_loop().run_in_executor(self._reader, self._answer, request)
            answer = _in_range(request, answer)
            if is_large := len(answer.body) > LARGE_BYTES:
                await _send(writer, answer, keeps=keeps, has_body=has_body)
        finally:
            self._large.release()
        if not is_large:
            await _send(writer, answer, keeps=keeps, has_body=has_body)
        return keeps


async def _send(writer: asyncio.StreamWriter, answer: ReplayAnswer, *, keeps: bool, has_body: bool) -> None:
    """Sends an answer, as fast as the client takes it."""
    head = [f"HTTP/1.1 {answer.status} {responses.get(answer.status, '')}"]
    head += [f"{name}: {value}" for name, value in answer.headers]
    head += [f"Content-Length: {len(answer.body)}", f"Connection: {'keep-alive' if keeps else 'close'}", "", ""]
    writer.write("\r\n".join(head).encode("latin-1", "replace"))
    rest = memoryview(answer.body if has_body else b"")
    for at in range(0, max(len(rest), 1), PIECE_BYTES):
        writer.write(rest[at : at + PIECE_BYTES])
        async with asyncio.timeout(IDLE_S):
            await writer.drain()


def _parse(head: bytes) -> ReplayRequest | None:
    first, *lines = head.decode("utf-8", "replace").split("\r\n")
    words = first.split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1.") or not words[1].startswith("/"):
        return None
    pairs = (line.partition(":") for line in lines if line)
    return ReplayRequest(words[0], words[1], {name.strip().lower(): value.strip() for name, _, value in pairs})


def _refusal(request: ReplayRequest | None, name: str) -> ReplayAnswer | None:
    if request is None:
        return _plain(400, "This is not a request for a page.")
    if not is_own_host(request.host, name):
        return _plain(421, "This server is asked by its address or as localhost only.")
    if request.method not in ("GET", "HEAD"):
        return _plain(405, "This server is for reading: GET and HEAD only.", ("Allow", "GET, HEAD"))
    return None


def _plain(status: int, words: str, *headers: tuple[str, str]) -> ReplayAnswer:
    return ReplayAnswer(status, f"{words}\n".encode(), (("Content-Type", "text/plain; charset=utf-8"), *headers))


def is_own_host(host: str, name: str = "") -> bool:
    """Whether a Host can be meant for us: an address, which nobody can rebind, localhost, or the name we were given."""
    found = _HOST.match(host)
    asked = found[1].strip("[]").lower() if found else ""
    if asked in ("localhost", name or "localhost"):
        return True
    try:
        return bool(asked) and bool(ip_address(asked))
    except ValueError:
        return False


def _may_follow(request: ReplayRequest) -> bool:
    has_body = request.headers.get("content-length", "0") != "0" or "transfer-encoding" in request.headers
    return not has_body and request.headers.get("connection", "").lower() != "close"


def _in_range(request: ReplayRequest, answer: ReplayAnswer) -> ReplayAnswer:
    """One range of bytes, by which browsers play sound and film; any other question is answered whole."""
    if answer.status != 200:
        return answer
    found, size = _RANGE.match(request.headers.get("range", "")), len(answer.body)
    headers = (*answer.headers, ("Accept-Ranges", "bytes"))
    if found is None or not (found[1] or found[2]):
        return ReplayAnswer(200, answer.body, headers)
    start = int(found[1]) if found[1] else max(0, size - int(found[2]))
    end = min(int(found[2]), size - 1) if found[1] and found[2] else size - 1
    if start > end:
        return ReplayAnswer(416, b"", (*headers, ("Content-Range", f"bytes */{size}")))
    part = answer.body[start : end + 1]
    return ReplayAnswer(206, part, (*headers, ("Content-Range", f"bytes {start}-{end}/{size}")))
