"""The HTTP server of the simulated web, its control endpoint, and bringing all of it up and down together.

One connection answers its pipelined requests in order; every request is logged. Ports are taken before anything
else is built, so that a taken port costs nothing. `GET /.simweb/time` and `/.simweb/stats` are not part of the web.
"""

import asyncio
import os
import socket
import struct
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httptools
import msgspec

from lycosa.errors import StoreError
from lycosa.simweb.log import LoggedRequest, RequestLog
from lycosa.simweb.network import (
    BACKLOG,
    LATEST_S,
    Certificates,
    NameServer,
    Network,
    SimClock,
    TlsStream,
    is_loopback,
    tcp_listener,
    udp_socket,
)
from lycosa.simweb.protocol import WIRE_TROUBLE, WireRequest, WireResponse, misbehave, to_wire
from lycosa.simweb.settings import SimSettings
from lycosa.simweb.web import Answer, SimWeb

CONTROL_PREFIX = "/.simweb/"  # requests that are not part of the web they control, and are not logged


def control_answer(clock: SimClock, stats: dict[str, float], method: str, target: str) -> Answer:
    """The answer to a control request: reads or moves the clock, counts requests."""
    parts = urlsplit(target)
    if parts.path == "/.simweb/stats" and method == "GET":
        return _json(stats)
    if parts.path != "/.simweb/time" or method not in ("GET", "POST"):
        return _json(
            {"error": "GET /.simweb/time, POST /.simweb/time?set=SECONDS&scale=FACTOR, GET /.simweb/stats"}, 404
        )
    if method == "POST":
        try:
            values = {name: float(value[-1]) for name, value in parse_qs(parts.query).items()}
        except ValueError:
            return _json({"error": "set and scale are numbers"}, 400)
        if not values or values.keys() - {"set", "scale"} or not all(0 <= v <= LATEST_S for v in values.values()):
            return _json({"error": f"set=SECONDS and scale=FACTOR, each between 0 and {LATEST_S:.0f}"}, 400)
        clock.set(time_s=values.get("set"), scale=values.get("scale"))
    return _json({"time_s": clock.time_s(), "scale": clock.scale})


def _json(value: object, status: int = 200) -> Answer:
    return Answer(status, msgspec.json.encode(value) + b"\n", "application/json")


MOST_WAITING = 64  # pipelined requests a connection; more and it is closed
PIECE_BYTES = 1 << 18  # a longer body is sent in pieces, so that it needs no copy and other clients have their turn
FLUSH_S = 0.25
# Where the kernel says of a connection how many milliseconds ago data was sent last, and the client was heard from.
_AGES = struct.Struct("=44xI8xI")
MISDIRECTED = Answer(421, b"No such host in the simulated web.\n", "text/plain")
NOT_ALLOWED = Answer(405, b"GET and HEAD only.\n", "text/plain", headers=(("Allow", "GET, HEAD"),))
BAD_REQUEST = Answer(400, b"Not HTTP.\n", "text/plain")


class PendingResponse(msgspec.Struct):
    """One request of a connection, from its first byte to its log line."""

    start: float
    method: str
    host_name: str
    target: str
    agent: str
    asked: WireRequest
    keep_alive: bool
    is_http: bool = True


class WebServer:
    """The simulated web on a listening socket. `on_failure` is called when the log cannot be written any more."""

    def __init__(
        self,
        web: SimWeb,
        clock: SimClock,
        log: RequestLog,
        *,
        gzip: bool = True,
        certificates: Certificates | None = None,
        on_failure: Callable[[], None] | None = None,
    ) -> None:
        self.web, self.clock, self.log, self.gzip, self.certificates = web, clock, log, gzip, certificates
        self._on_failure = on_failure or (lambda: None)
        self.network = Network(web.settings, web.draws)
        self.connections: set[ServerConnection] = set()
        self._server: asyncio.Server | None = None
        self._flusher: asyncio.TimerHandle | None = None

    def stats(self) -> dict[str, float]:
        return {"requests": self.log.requests, "connections": len(self.connections), "time_s": self.clock.time_s()}

    async def start(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: ServerConnection(self, loop), sock=listener, backlog=BACKLOG)
        self._flush()

    def _flush(self) -> None:
        try:
            self.log.flush()
        except StoreError:  # the log keeps it and raises it again when it is closed
            self._on_failure()
            return
        self._flusher = asyncio.get_running_loop().call_later(FLUSH_S, self._flush)

    async def close(self) -> None:
        """Stop listening, drop every connection, write the log's last lines."""
        if self._flusher:
            self._flusher.cancel()
        if self._server:
            self._server.close()
        for connection in list(self.connections):
            connection.abort()
        self.log.close()

    def answer(self, job: PendingResponse) -> tuple[Answer, int]:
        """The answer to a request, and the number of the host that gives it."""
        if not job.is_http:
            return BAD_REQUEST, 0
        if job.target.startswith(CONTROL_PREFIX):
            return control_answer(self.clock, self.stats(), job.method, job.target), 0
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


class ServerConnection(asyncio.Protocol):
    """One client. Invariant: at most one job is being answered; the others wait in order."""

    def __init__(self, server: WebServer, loop: asyncio.AbstractEventLoop) -> None:
        self._server, self._loop = server, loop
        self._parser = httptools.HttpRequestParser(self)
        self._waiting: deque[PendingResponse] = deque()
        self._job: PendingResponse | None = None
        self._status, self._sent = 0, 0
        self._retry_after_s = 0.0
        self._task: asyncio.Task[None] | None = None
        self._drained = asyncio.Event()
        self._drained.set()
        self._is_new, self._is_deaf = True, False
        self._received = self._began = self._left = 0.0
        self._tls: TlsStream | None = None
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
        self._descriptor: int = self.transport.get_extra_info("socket").fileno()
        if self._server.certificates is not None:
            self._tls = TlsStream(self._server.certificates.context(self.address))
        self._server.connections.add(self)

    def data_received(self, data: bytes) -> None:
        self._received = time.monotonic()
        if self._tls is not None:
            data, reply = self._tls.receive(data)
            self._put(reply)
        if data and not self._is_deaf:
            try:
                self._parser.feed_data(data)
            except httptools.HttpParserUpgrade:
                pass
            except httptools.HttpParserError:
                self._reject()
        if self._tls is not None and self._tls.is_closed:
            self.transport.close()

    def pause_writing(self) -> None:
        self._drained.clear()

    def resume_writing(self) -> None:
        self._drained.set()
        self._left, _ = self._last_times()
        if self._job is not None and self._task is None:
            self._finish()

    def connection_lost(self, error: Exception | None) -> None:
        self._server.connections.discard(self)
        self._drained.set()
        if self._task:
            self._task.cancel()
        _, self._left = self._last_times()
        self._log_unfinished()

    def abort(self) -> None:
        """Ends the connection now; what it was doing is in the log when this returns."""
        self._left = time.monotonic()
        self._log_unfinished()
        self.transport.abort()

    def _last_times(self) -> tuple[float, float]:
        """When data was sent last, and when the client was heard from last, as far as the kernel says it: a busy server
        notices later that an answer has left, or that the client has hung up, and would find its next request early."""
        now = time.monotonic()
        try:
            with socket.socket(fileno=os.dup(self._descriptor)) as beside:
                sent_ms, heard_ms = _AGES.unpack(beside.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _AGES.size))
        except (AttributeError, OSError, struct.error):  # another system, or the connection is gone
            return now, now
        began = self._job.start if self._job is not None else self._received
        return max(now - sent_ms / 1000, began), max(now - heard_ms / 1000, began)

    def _log_unfinished(self) -> None:
        self._log()
        while self._waiting:
            self._job, self._status, self._sent = self._waiting.popleft(), 0, 0
            self._log()

    # what the parser calls

    def on_message_begin(self) -> None:
        self._began = self._received
        self._target, self._headers = b"", {}

    def on_url(self, url: bytes) -> None:
        self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.lower()] = value

    def on_message_complete(self) -> None:
        h = self._headers
        target = self._target.decode("latin-1")
        host_name = h.get(b"host", b"").decode("latin-1")
        if target.startswith(("http://", "https://")):  # the form that proxies use; its host counts
            url = httptools.parse_url(self._target)
            target = (url.path or b"/").decode("latin-1") + (f"?{url.query.decode('latin-1')}" if url.query else "")
            host_name = url.host.decode("latin-1")
        method = self._parser.get_method().decode("latin-1")
        asked = WireRequest(
            method=method,
            accept_encoding=h.get(b"accept-encoding", b"").decode("latin-1"),
            if_none_match=h.get(b"if-none-match", b"").decode("latin-1"),
            if_modified_since=h.get(b"if-modified-since", b"").decode("latin-1"),
            range=h.get(b"range", b"").decode("latin-1"),
        )
        self._waiting.append(
            PendingResponse(
                start=self._began,
                method=method,
                host_name=host_name.lower(),
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
        answer, host = self._server.answer(job)
        if answer.status in (429, 503):
            self._retry_after_s = float(dict(answer.headers)["Retry-After"])
        message = to_wire(
            answer, job.asked, time_s=self._server.clock.time_s(), gzip=self._server.gzip, keep_alive=job.keep_alive
        )
        is_short = message.size_bytes <= PIECE_BYTES and not answer.delay_s and message.trouble not in WIRE_TROUBLE
        if is_short and self._server.network.is_ideal:
            self._status = message.status
            self.write(message.head + message.body)
        else:
            self._task = self._loop.create_task(self._slowly(message, host, answer.delay_s))

    async def _slowly(self, message: WireResponse, host: int, delay_s: float) -> None:
        """Waits as the line to the host does, then sends, or misbehaves."""
        trips = 2 if self._is_new else 1  # the first request on a connection pays for the handshake as well
        self._is_new = False
        await asyncio.sleep(delay_s + trips * self._server.network.line(host).rtt_s)
        self._status = message.status
        if message.trouble in WIRE_TROUBLE:
            await misbehave(self, message)
            self._close()
        else:
            await self._stream(message, host)
        await self._drained.wait()
        self._task = None
        if self._job is not None and not self.transport.is_closing():
            self._finish()

    async def _stream(self, message: WireResponse, host: int) -> None:
        """Sends piece by piece, each when the line to the host has room for it and the client has the last one."""
        network = self._server.network
        size = min(PIECE_BYTES, network.piece_bytes(host))
        for part in (memoryview(message.head + message.body), memoryview(message.tail)):
            for at in range(0, len(part), size):
                piece = part[at : at + size]
                await asyncio.sleep(network.reserve(host, len(piece), self._loop.time()) - self._loop.time())
                self.write(piece)
                await self._drained.wait()

    def write(self, data: bytes | memoryview) -> None:
        """Sends; when nobody else will, notes that the answer is complete."""
        if self.transport.is_closing():
            return
        self._sent += len(data)
        self._put(data if self._tls is None else self._tls.send(data))
        if self._task is None and self._drained.is_set():
            self._finish()

    def _put(self, data: bytes | memoryview) -> None:
        """What fits leaves now: the event loop would wait for the end of its turn, and `end` would be wrong."""
        self._left = time.monotonic()
        rest = data[self._send_now(data) :]
        if rest:
            self.transport.write(rest)

    def _send_now(self, data: bytes | memoryview) -> int:
        """How many bytes the network took at once; none where the event loop still has some to send."""
        if not data or not self._drained.is_set() or self.transport.is_closing():
            return 0
        try:
            return os.write(self._descriptor, data)
        except OSError:  # full, or gone: the event loop knows what to do
            return 0

    def _close(self) -> None:
        """Ends the connection after what has been written."""
        if self._tls is not None:
            self._put(self._tls.close())
        self.transport.close()

    async def drained(self) -> None:
        await self._drained.wait()

    def set_status(self, status: int) -> None:
        self._status = status

    def _finish(self) -> None:
        job = self._job
        self._log()
        if job is not None and not job.keep_alive:
            self._close()
        else:
            self._next()

    def _log(self) -> None:
        job, self._job = self._job, None
        if job is None or job.target.startswith(CONTROL_PREFIX):
            return
        self._server.log.add(
            LoggedRequest(
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
        """Answers 400 after the requests before it, and listens no more."""
        self._is_deaf = True
        self._waiting.append(
            PendingResponse(
                start=self._began,
                method="",
                host_name=self._headers.get(b"host", b"").decode("latin-1").lower(),
                target=self._target.decode("latin-1"),
                agent=self._headers.get(b"user-agent", b"").decode("latin-1"),
                asked=WireRequest(),
                keep_alive=False,
                is_http=False,
            )
        )
        if self._job is None:
            self._next()


class RunningWeb(msgspec.Struct, frozen=True):
    """A simulated web that is up: where it listens, and the parts that can be asked."""

    web: SimWeb
    clock: SimClock
    server: WebServer
    port: int
    dns_port: int

    @property
    def front_page(self) -> str:
        return f"{self.web.settings.scheme}://127.0.0.1:{self.port}/"


@asynccontextmanager
async def serve_web(
    settings: SimSettings,
    *,
    dns_port: int = 0,
    log: Path | None = None,
    time_scale: float = 0.0,
    gzip: bool = True,
    ca_file: Path | None = None,
    on_failure: Callable[[], None] | None = None,
) -> AsyncIterator[RunningWeb]:
    """A simulated web for as long as the block runs. Port 0 takes a free one.

    With `ca_file` it speaks TLS and writes its authority there. When the log fails, `on_failure` is called and the
    block's end raises the error.
    """
    loop = asyncio.get_running_loop()
    with ExitStack() as taken:
        listener = taken.enter_context(tcp_listener(settings.port))
        names = taken.enter_context(udp_socket(dns_port))
        settings = msgspec.structs.replace(settings, port=listener.getsockname()[1])
        web, clock = SimWeb(settings), SimClock(loop.time, scale=time_scale)
        web.prepare()
        certificates = Certificates() if ca_file else None
        request_log = RequestLog(log, settings)
        taken.callback(request_log.close)
        if certificates and ca_file:
            certificates.write(ca_file)
        taken.pop_all()
    server = WebServer(web, clock, request_log, gzip=gzip, certificates=certificates, on_failure=on_failure)
    transport, _ = await loop.create_datagram_endpoint(lambda: NameServer(web, clock), sock=names)
    try:
        await server.start(listener)
        yield RunningWeb(web, clock, server, settings.port, names.getsockname()[1])
    finally:
        transport.close()
        await server.close()
