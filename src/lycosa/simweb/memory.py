"""The simulated web without sockets, as a resolver and a downloader, and the event loop with a virtual clock.

The loop never waits: when nothing is ready it moves its clock to the next timer, so hours of politeness pass in
milliseconds and the same seed gives the same crawl. Used by tests and experiments.
"""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from contextvars import Context
from email.parser import BytesParser
from typing import Any, TypeVar, TypeVarTuple
from urllib.parse import urlsplit

import msgspec

from lycosa.records import Failure, Request, Resolved, Response, Truncation
from lycosa.simweb.log import LoggedRequest
from lycosa.simweb.network import NameServer, Network, SimClock, has_dns_trouble
from lycosa.simweb.protocol import WireRequest, WireResponse, to_wire
from lycosa.simweb.web import Answer, SimWeb

T = TypeVar("T")
Words = TypeVarTuple("Words")
# asyncio calls a timer up to the clock's resolution (1 ns) before its time. On a clock that moves only when nothing is
# ready, two callers that each plan again for "a moment later" would then keep each other ready, and time would stop.
LATER_S = 2e-9
STUCK_S = 60.0  # real seconds without a timer and without an event: nothing will ever happen


class _VirtualSelector(selectors.DefaultSelector):
    """Looks at real events without waiting, and lets the time jump instead."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        events: list[tuple[selectors.SelectorKey, int]] = super().select(0 if timeout is not None else STUCK_S)
        if timeout is None and not events:
            raise RuntimeError("the virtual clock stands still: tasks wait for something that has no timer")
        if not events and timeout:
            self.now += timeout
        return events


class VirtualLoop(asyncio.SelectorEventLoop):
    """An asyncio loop on virtual time, starting at 0."""

    def __init__(self) -> None:
        self._virtual = _VirtualSelector()
        super().__init__(self._virtual)

    def time(self) -> float:
        return self._virtual.now

    def call_at(
        self, when: float, callback: Callable[[*Words], object], *args: *Words, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return super().call_at(when + LATER_S, callback, *args, context=context)


def run_virtual(main: Coroutine[Any, Any, T]) -> T:
    """`asyncio.run` on virtual time."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)


FAILED_LOOKUP_S = 5.0
# Whoever watches bodies arrive looks so often, at bodies that have grown by half since.
LOOK_EVERY_S, LOOK_LEAST_BYTES, LOOK_GROWTH = 0.1, 2 * 1024, 1.5
WARM_HOSTS = 1024  # hosts to which a connection is held open, as a client with a bounded pool would


class ClientLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of the client that the in-memory web stands in for."""

    first_byte_s: float = 30.0
    total_s: float = 300.0
    body_bytes: int = 10_000_000


DEFAULT_CLIENT_LIMITS = ClientLimits()


class _MemoryTransfer(msgspec.Struct, frozen=True):
    """A request under way and what will come of it."""

    timer: asyncio.TimerHandle
    done: Callable[[Response], None]
    request: Request
    response: Response
    retry_after_s: float


class MemoryWeb:
    """The simulated web as a downloader and a resolver. `entries` is the log, for the audit."""

    def __init__(
        self, web: SimWeb, *, limits: ClientLimits = DEFAULT_CLIENT_LIMITS, gzip: bool = False, time_scale: float = 0.0
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self.web, self.limits, self._gzip = web, limits, gzip
        self.clock = SimClock(self._loop.time, scale=time_scale)
        self.network = Network(web.settings, web.draws)
        self.entries: list[LoggedRequest] = []
        self._names = NameServer(web, self.clock)
        self._open: dict[int, _MemoryTransfer] = {}
        self._count = 0
        self._watcher: Callable[[Request, Response], None] | None = None
        self._warm: dict[tuple[str, str], None] = {}

    def __repr__(self) -> str:
        return f"<MemoryWeb {self.web!r} open={len(self._open)} requests={len(self.entries)}>"

    def stats(self) -> dict[str, int]:
        return {"open": len(self._open), "requests": len(self.entries)}

    # the resolver

    async def resolve(self, name: str) -> Resolved:
        host = self.web.layout.host_number(name) if name.endswith(".sim") else None
        if host is None:
            return Resolved(name, failure=Failure.NO_SUCH_HOST, detail="the simulated web has no such host")
        for trouble, wait_s in (("servfail", 0.0), ("timeout", FAILED_LOOKUP_S)):
            if has_dns_trouble(self.web, host, trouble):
                await asyncio.sleep(wait_s)
                return Resolved(name, failure=Failure.DNS, detail=trouble)
        await asyncio.sleep(1.0 if has_dns_trouble(self.web, host, "slow") else 0)
        return Resolved(name, addresses=(self._names.address(host),), ttl_s=self.web.settings.dns_ttl_s)

    def flush(self) -> None:
        """Nothing is kept here that could be forgotten."""

    # the downloader

    def start(self, request: Request, done: Callable[[Response], None]) -> None:
        """Fetches; `done` is called once, later, with the outcome."""
        parts = urlsplit(request.url)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        host = self.web.layout.host_number(parts.hostname or "")
        answer = (
            Answer(421, b"No such host.\n", "text/plain")
            if host is None
            else self.web.answer(host, target, self.clock.time_s(), self.clock.elapsed_s())
        )
        message = to_wire(answer, _asked(request), time_s=self.clock.time_s(), gzip=self._gzip)
        response = self._timed(self._response(request, message), host or 0, answer.delay_s)
        self._count += 1
        timer = self._loop.call_at(response.ended_s, self._finish, self._count)
        if self._watcher is not None and response.failure is None:
            self._plan_look(self._count, response.first_byte_s, 0)
        wait = float(dict(answer.headers).get("Retry-After", 0))
        self._open[self._count] = _MemoryTransfer(timer, done, request, response, wait)

    def _timed(self, response: Response, host: int, delay_s: float) -> Response:
        """The response with its times, and as a failure where the client's limits were passed."""
        began, limits = self._loop.time(), self.limits
        first = began + delay_s + self._trips(response) * self.network.line(host).rtt_s
        deadline = began + limits.total_s
        if response.failure is Failure.FIRST_BYTE_TIMEOUT or first > began + limits.first_byte_s:
            response = Response(response.url, address=response.address, failure=Failure.FIRST_BYTE_TIMEOUT)
            first = ended = began + limits.first_byte_s
        else:
            ended = self.network.reserve(host, len(response.header_block) + len(response.body), first)
        if ended > deadline:
            arrived = int(len(response.body) * max(0.0, deadline - first) / (ended - first))
            response = msgspec.structs.replace(
                response, failure=Failure.TOTAL_TIMEOUT, body=response.body[:arrived], truncated=None
            )
        if response.failure is Failure.TOTAL_TIMEOUT:
            ended = deadline
        return msgspec.structs.replace(response, started_s=began, first_byte_s=first, ended_s=ended)

    def _trips(self, response: Response) -> int:
        """Round trips before the first byte: one more on a new connection."""
        line = (urlsplit(response.url).netloc, response.address)
        trips = 1 if line in self._warm else 2
        self._warm.pop(line, None)
        self._warm[line] = None
        if len(self._warm) > WARM_HOSTS:
            del self._warm[next(iter(self._warm))]
        return trips

    def watch(self, watcher: Callable[[Request, Response], None]) -> None:
        """`watcher` is shown bodies while they arrive, as the server's pace has them."""
        self._watcher = watcher

    def _plan_look(self, ticket: int, now: float, seen_bytes: int) -> None:
        self._loop.call_at(now + LOOK_EVERY_S, self._look, ticket, seen_bytes)

    def _look(self, ticket: int, seen_bytes: int) -> None:
        transfer, now = self._open.get(ticket), self._loop.time()
        if transfer is None or self._watcher is None:
            return
        response = transfer.response
        first, ended = response.first_byte_s, response.ended_s
        arrived = int(len(response.body) * (now - first) / (ended - first)) if ended > first else 0
        if arrived >= max(LOOK_LEAST_BYTES, LOOK_GROWTH * seen_bytes):
            seen_bytes = arrived
            self._watcher(
                transfer.request, msgspec.structs.replace(response, body=response.body[:arrived], ended_s=0.0)
            )
        self._plan_look(ticket, now, seen_bytes)

    def _finish(self, ticket: int) -> None:
        transfer = self._open.pop(ticket)
        self._log(transfer, transfer.response)
        transfer.done(transfer.response)

    def _log(self, transfer: _MemoryTransfer, response: Response) -> None:
        request = transfer.request
        parts = urlsplit(request.url)
        headers = {name.lower(): value for name, value in request.headers}
        host = self.web.layout.host_number(parts.hostname or "")
        self.entries.append(
            LoggedRequest(
                start=transfer.response.started_s,
                end=self._loop.time(),
                host=self.web.layout.host_name(host) if host is not None else parts.hostname or "",
                address=request.address,
                path=(parts.path or "/") + (f"?{parts.query}" if parts.query else ""),
                status=response.status,
                bytes=len(response.header_block) + len(response.body),
                agent=headers.get("user-agent", ""),
                method=request.method,
                retry_after_s=transfer.retry_after_s if response.status else 0.0,
            )
        )

    def _response(self, request: Request, message: WireResponse) -> Response:
        """The outcome, with trouble on the wire told as a client would tell it."""
        half, cap = len(message.body) // 2, self.limits.body_bytes
        failure: Failure | None = None
        body, truncated = message.body + message.tail[:cap], None
        match message.trouble:
            case "hang":
                failure, body = Failure.FIRST_BYTE_TIMEOUT, b""
            case "drip":
                failure, body = Failure.TOTAL_TIMEOUT, message.body[: int(self.limits.total_s)]
            case "header-flood":
                failure, body = Failure.HEADERS_TOO_LARGE, b""
            case "reset":
                failure, body = Failure.RESET, message.body[:half]
            case "truncated":
                body, truncated = message.body[:half], Truncation.DISCONNECT
            case "wrong-length":
                body = message.body[:half]
            case "endless":
                body, truncated = b"<p>without end</p>".ljust(cap), Truncation.LENGTH
        if len(body) > cap:
            body, truncated = body[:cap], Truncation.LENGTH
        if failure in (Failure.FIRST_BYTE_TIMEOUT, Failure.HEADERS_TOO_LARGE):
            return Response(request.url, address=request.address, failure=failure)
        headers = {k.lower(): v for k, v in BytesParser().parsebytes(message.head.partition(b"\r\n")[2]).items()}
        return Response(
            url=request.url,
            status=message.status,
            header_block=message.head,
            headers=headers,
            body=body,
            address=request.address,
            failure=failure,
            truncated=truncated,
        )

    def cancel_all(self) -> None:
        """Ends every open request now, as cancelled."""
        while self._open:
            _, transfer = self._open.popitem()
            transfer.timer.cancel()
            request = transfer.request
            response = Response(request.url, address=request.address, failure=Failure.CANCELLED)
            self._log(transfer, response)
            transfer.done(response)

    async def close(self) -> None:
        self.cancel_all()


def _asked(request: Request) -> WireRequest:
    headers = {name.lower(): value for name, value in request.headers}
    return WireRequest(
        method=request.method,
        accept_encoding=headers.get("accept-encoding", ""),
        if_none_match=headers.get("if-none-match", ""),
        if_modified_since=headers.get("if-modified-since", ""),
        range=headers.get("range", ""),
    )
