"""The simulated web over sockets: HTTP/1.1 on every loopback address.

One process, one event loop, one `Connection` per client. The plain path is synchronous: parse, answer, write, log when
the bytes have left. Waiting (round trips, bandwidth) and wire trouble run as a task of the connection, which ends
with it. Requests of one connection are answered one after the other.
"""

import asyncio
import os
import socket
import ssl
import time
from collections import deque

import httptools
import msgspec

from lycosa.simweb.clock import SimClock
from lycosa.simweb.control import PREFIX as CONTROL
from lycosa.simweb.control import Control
from lycosa.simweb.log import Entry, RequestLog
from lycosa.simweb.network import Network
from lycosa.simweb.protocol import Asked, Wire, wire
from lycosa.simweb.sockets import BACKLOG, is_loopback
from lycosa.simweb.trouble import WIRE_TROUBLE, misbehave
from lycosa.simweb.web import Answer, SimWeb

MOST_WAITING = 64  # pipelined requests a connection; more and it is closed
PACE_S = 0.02  # bandwidth is spent in steps of this length
FLUSH_S = 0.25
MISDIRECTED = Answer(421, b"No such host in the simulated web.\n", "text/plain")
NOT_ALLOWED = Answer(405, b"GET and HEAD only.\n", "text/plain", headers=(("Allow", "GET, HEAD"),))
BAD_REQUEST = Answer(400, b"Not HTTP.\n", "text/plain")


class Job(msgspec.Struct):
    """One request of a connection, from its first byte to its log line."""

    start: float
    method: str
    host_name: str
    target: str
    agent: str
    asked: Asked
    keep_alive: bool


class Server:
    """The simulated web on a listening socket."""

    def __init__(self, web: SimWeb, clock: SimClock, log: RequestLog, *, gzip: bool = True) -> None:
        self.web, self.clock, self.log, self.gzip = web, clock, log, gzip
        self.network = Network(web.settings, web.draws)
        self.control = Control(clock, self)
        self.connections: set[Connection] = set()
        self._server: asyncio.Server | None = None
        self._flusher: asyncio.TimerHandle | None = None

    def stats(self) -> dict[str, float]:
        return {"requests": self.log.requests, "connections": len(self.connections), "time_s": self.clock.time_s()}

    async def start(self, listener: socket.socket, ssl_context: ssl.SSLContext | None = None) -> None:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: Connection(self, loop), sock=listener, ssl=ssl_context, backlog=BACKLOG
        )
        self._flush()

    def _flush(self) -> None:
        self.log.flush()
        self._flusher = asyncio.get_running_loop().call_later(FLUSH_S, self._flush)

    async def close(self) -> None:
        """Stop listening, drop every connection, write the log's last line."""
        if self._flusher:
            self._flusher.cancel()
        if self._server:
            self._server.close()
        for connection in list(self.connections):
            connection.abort()
        await asyncio.sleep(0)  # lets the connections log what they were doing
        self.log.close()

    def answer(self, job: Job) -> tuple[Answer, int]:
        """The answer to a request, and the number of the host that gives it."""
        host = self.web.layout.host_number(_without_port(job.host_name))
        if host is None:
            return MISDIRECTED, 0
        if job.method not in ("GET", "HEAD"):
            return NOT_ALLOWED, host
        return self.web.answer(host, job.target, self.clock.time_s(), self.clock.elapsed_s()), host

    def canonical_name(self, host_name: str) -> str:
        """The name to log: a request addressed by number was one to host 0."""
        host = self.web.layout.host_number(_without_port(host_name))
        return host_name if host is None else self.web.layout.host_name(host)


def _without_port(host_name: str) -> str:
    name, colon, port = host_name.rpartition(":")
    return name if colon and port.isdigit() else host_name


class Connection(asyncio.Protocol):
    """One client. Invariant: at most one job is being answered; the others wait in order."""

    def __init__(self, server: Server, loop: asyncio.AbstractEventLoop) -> None:
        self._server, self._loop = server, loop
        self._parser = httptools.HttpRequestParser(self)
        self._waiting: deque[Job] = deque()
        self._job: Job | None = None
        self._status, self._sent = 0, 0
        self._retry_after_s = 0.0
        self._task: asyncio.Task[None] | None = None
        self._drained = asyncio.Event()
        self._drained.set()
        self._is_new = True
        self._received = self._left = 0.0
        self._descriptor: int | None = None
        self._target = b""
        self._headers: dict[bytes, bytes] = {}

    # what the event loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: asyncio.Transport = transport  # type: ignore[assignment]
        self.address = str(self.transport.get_extra_info("sockname")[0])
        if not is_loopback(self.address):
            self.transport.abort()
            return
        self.transport.set_write_buffer_limits(high=0)  # so that `resume_writing` means: the last byte has left
        if self.transport.get_extra_info("ssl_object") is None:
            self._descriptor = self.transport.get_extra_info("socket").fileno()
        self._server.connections.add(self)

    def data_received(self, data: bytes) -> None:
        self._received = time.monotonic()
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            pass
        except httptools.HttpParserError:
            self._reject()

    def pause_writing(self) -> None:
        self._drained.clear()

    def resume_writing(self) -> None:
        self._drained.set()
        self._left = time.monotonic()
        if self._job is not None and self._task is None:
            self._finish()

    def connection_lost(self, error: Exception | None) -> None:
        self._server.connections.discard(self)
        self._left = time.monotonic()
        self._drained.set()
        if self._task:
            self._task.cancel()
        if self._job is not None:
            self._log()
        self._waiting.clear()

    def abort(self) -> None:
        self.transport.abort()

    # what the parser calls

    def on_message_begin(self) -> None:
        self._target, self._headers = b"", {}

    def on_url(self, url: bytes) -> None:
        self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.lower()] = value

    def on_message_complete(self) -> None:
        h = self._headers
        target = self._target.decode("latin-1")
        if target.startswith("http"):  # the form that proxies use
            url = httptools.parse_url(self._target)
            target = (url.path or b"/").decode("latin-1") + (f"?{url.query.decode('latin-1')}" if url.query else "")
        method = self._parser.get_method().decode("latin-1")
        asked = Asked(
            method=method,
            accept_encoding=h.get(b"accept-encoding", b"").decode("latin-1"),
            if_none_match=h.get(b"if-none-match", b"").decode("latin-1"),
            if_modified_since=h.get(b"if-modified-since", b"").decode("latin-1"),
            range=h.get(b"range", b"").decode("latin-1"),
        )
        self._waiting.append(
            Job(
                start=self._received,
                method=method,
                host_name=h.get(b"host", b"").decode("latin-1").lower(),
                target=target,
                agent=h.get(b"user-agent", b"").decode("latin-1"),
                asked=asked,
                keep_alive=self._parser.should_keep_alive(),
            )
        )
        if self._job is None:
            self._next()
        elif len(self._waiting) > MOST_WAITING:
            self.transport.abort()

    # a job's life

    def _next(self) -> None:
        if not self._waiting or self.transport.is_closing():
            return
        job = self._job = self._waiting.popleft()
        self._status = self._sent = 0
        if job.target.startswith(CONTROL):
            answer, host = self._server.control.answer(job.method, job.target), 0
        else:
            answer, host = self._server.answer(job)
        if answer.status in (429, 503):
            self._retry_after_s = float(dict(answer.headers)["Retry-After"])
        message = wire(
            answer, job.asked, time_s=self._server.clock.time_s(), gzip=self._server.gzip, keep_alive=job.keep_alive
        )
        if answer.trouble in WIRE_TROUBLE or answer.delay_s or not self._server.network.is_ideal:
            self._task = self._loop.create_task(self._slowly(message, answer, host))
        else:
            self._status = message.status
            self.write(message.head + message.body)

    async def _slowly(self, message: Wire, answer: Answer, host: int) -> None:
        """Waits as the line to the host does, then sends, or misbehaves."""
        line = self._server.network.line(host)
        trips = 2 if self._is_new else 1  # the first request on a connection pays for the handshake as well
        self._is_new = False
        await asyncio.sleep(answer.delay_s + trips * line.rtt_s)
        self._status = message.status
        if answer.trouble in WIRE_TROUBLE:
            await misbehave(self, message, answer.trouble)
            self.transport.close()
        elif line.bandwidth_bytes_s:
            await self._paced(message.head + message.body, line.bandwidth_bytes_s)
        else:
            self.write(message.head + message.body)
        await self._drained.wait()
        self._task = None
        if self._job is not None and not self.transport.is_closing():
            self._finish()

    async def _paced(self, data: bytes, bytes_s: float) -> None:
        began, sent = self._loop.time(), 0
        while sent < len(data):
            await asyncio.sleep(
                max(0.0, min(began + sent / bytes_s - self._loop.time() + PACE_S, (len(data) - sent) / bytes_s))
            )
            due = int((self._loop.time() - began) * bytes_s)
            if due > sent:
                self.write(data[sent:due])
                sent = min(due, len(data))

    def write(self, data: bytes) -> None:
        """Sends; what fits leaves now: the event loop would wait for the end of its turn, and `end` would be wrong."""
        self._sent += len(data)
        self._left = time.monotonic()
        rest = data[self._send_now(data) :]
        if rest:
            self.transport.write(rest)
        if self._task is None and self._drained.is_set():
            self._finish()

    def _send_now(self, data: bytes) -> int:
        """How many bytes the network took at once; none where the event loop still has some to send."""
        if self._descriptor is None or not self._drained.is_set() or self.transport.is_closing():
            return 0
        try:
            return os.write(self._descriptor, data)
        except OSError:  # full, or gone: the event loop knows what to do
            return 0

    async def drained(self) -> None:
        await self._drained.wait()

    def set_status(self, status: int) -> None:
        self._status = status

    def _finish(self) -> None:
        job = self._job
        self._log()
        if job is not None and not job.keep_alive:
            self.transport.close()
        else:
            self._next()

    def _log(self) -> None:
        job, self._job = self._job, None
        if job is None or job.target.startswith(CONTROL):
            return
        self._server.log.add(
            Entry(
                start=job.start,
                end=self._left,
                host=self._server.canonical_name(job.host_name),
                address=self.address,
                path=job.target,
                status=self._status,
                bytes=self._sent,
                agent=job.agent,
                method=job.method,
                retry_after_s=self._retry_after_s,
            )
        )
        self._retry_after_s = 0.0

    def _reject(self) -> None:
        message = wire(BAD_REQUEST, Asked(), time_s=self._server.clock.time_s(), gzip=False, keep_alive=False)
        self.transport.write(message.head + message.body)
        self.transport.close()
