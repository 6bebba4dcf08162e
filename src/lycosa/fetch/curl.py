"""The HTTP downloader: libcurl's multi interface on the running event loop, for http and https.

Invariants: a request goes to the address it names and to no other; nothing is followed; no cookies or credentials are
sent but those of a request's private parts, and a handle that has carried these is closed; no proxy is used that was
not set; every transfer ends, by one of four clocks at the latest; an error in libcurl is a `Response`, never an
exception. `MultiDriver` joins libcurl's sockets and timer to the event loop; `CurlDownloader` owns the transfers.
libcurl's sockets are watched by an epoll set of our own, and the event loop watches that set as one descriptor. libcurl
starts and stops watching a kept-alive connection at every request; in our own set that costs one system call, not two
changes of the event loop's (in a bare loop 25 against 56 µs a request), and a socket that libcurl closed leaves the set
by itself. So a socket that libcurl lets go stays in the set until it is used again or stirs.
`start`, `cancel_all` and `close` are called by the crawl loop.
"""

import asyncio
import resource
import select
import ssl
import weakref
from collections.abc import Callable
from contextlib import suppress
from time import monotonic

import msgspec
import pycurl

from lycosa.errors import SettingsError
from lycosa.fetch.downloader import (
    AcceptsResponse,
    DoneCallback,
    DownloaderStats,
    TransferLimits,
    Watcher,
    refused_response,
)
from lycosa.fetch.flow import FlowControl
from lycosa.fetch.transfer import Transfer, TransferContext
from lycosa.records import BodyClaim, Failure, Request, Response

# Events taken at a time; the rest wait for the loop's next turn, so that others get theirs.
EVENTS_A_TURN = 256

_EPOLL_FOR = {
    pycurl.POLL_IN: select.EPOLLIN,
    pycurl.POLL_OUT: select.EPOLLOUT,
    pycurl.POLL_INOUT: select.EPOLLIN | select.EPOLLOUT,
}
_IDLE = 0


class MultiDriver:
    """Runs transfers. `on_ended(curl, code, message)` is called outside libcurl, with code 0 for success."""

    def __init__(self, on_ended: Callable[[pycurl.Curl, int, str], None], *, connections: int, idle: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._on_ended = on_ended
        self.fence: Callable[[], bool] | None = None  # True: nothing may be sent or read any more, all is cancelled
        self._watched: dict[int, int] = {}  # descriptor -> what libcurl waits for; _IDLE when it has let go
        self._timer: asyncio.TimerHandle | None = None
        self._due_s = 0.0
        self._is_action_due = False
        self._epoll = select.epoll()
        self._loop.add_reader(self._epoll.fileno(), self._on_events)
        self._multi = pycurl.CurlMulti()
        self._multi.setopt(pycurl.M_SOCKETFUNCTION, self._on_socket)
        self._multi.setopt(pycurl.M_TIMERFUNCTION, self._on_timer)
        self._multi.setopt(pycurl.M_PIPELINING, pycurl.PIPE_MULTIPLEX)
        self._multi.setopt(pycurl.M_MAXCONNECTS, idle)
        self._multi.setopt(pycurl.M_MAX_TOTAL_CONNECTIONS, connections)

    def add(self, curl: pycurl.Curl) -> None:
        self._multi.add_handle(curl)

    def remove(self, curl: pycurl.Curl) -> None:
        self._multi.remove_handle(curl)

    def close(self) -> None:
        self._loop.remove_reader(self._epoll.fileno())
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._multi.close()
        self._epoll.close()

    def _on_socket(self, what: int, fd: int, _multi: object, _assigned: object) -> None:
        if what == pycurl.POLL_REMOVE or what == pycurl.POLL_NONE:
            self._watched[fd] = _IDLE
            return
        events = _EPOLL_FOR[what]
        try:
            self._epoll.modify(fd, events)
        except FileNotFoundError:  # a new socket
            self._epoll.register(fd, events)
        self._watched[fd] = events

    def _on_events(self) -> None:
        if self.fence is not None and self.fence():
            return
        watched = self._watched
        for fd, events in self._epoll.poll(0, EVENTS_A_TURN):
            if not watched.get(fd):
                self._forget(fd)
                continue
            mask = pycurl.CSELECT_IN if events & select.EPOLLIN else 0
            if events & select.EPOLLOUT:
                mask |= pycurl.CSELECT_OUT
            if events & (select.EPOLLERR | select.EPOLLHUP):
                mask |= pycurl.CSELECT_ERR
            self._act(fd, mask)
        self._collect()

    def _forget(self, fd: int) -> None:
        """Stops watching an unused connection that has an event, mostly because its server closed it: libcurl sees that
        on next use."""
        self._watched.pop(fd, None)
        with suppress(OSError):  # closed meanwhile: then it has left by itself
            self._epoll.unregister(fd)

    def _on_timer(self, timeout_ms: int) -> None:
        if timeout_ms < 0:
            self._due_s = 0.0
        elif timeout_ms == 0:
            if not self._is_action_due:
                self._is_action_due = True
                self._loop.call_soon(self._on_due_now)
        else:
            self._due_s = self._loop.time() + timeout_ms / 1000
            # a timer that rings too early sets itself anew: cheaper than a new one for every request
            if self._timer is None or self._timer.when() > self._due_s:
                self._set_timer()

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(self._due_s, self._on_ring)

    def _on_ring(self) -> None:
        self._timer = None
        if not self._due_s:
            return
        if self._due_s > self._loop.time():
            self._set_timer()
            return
        self._due_s = 0.0
        if self.fence is not None and self.fence():
            return
        self._act(pycurl.SOCKET_TIMEOUT, 0)
        self._collect()

    def _on_due_now(self) -> None:
        self._is_action_due = False
        if self._epoll.closed or (self.fence is not None and self.fence()):
            return
        self._act(pycurl.SOCKET_TIMEOUT, 0)
        self._collect()

    def _act(self, fd: int, mask: int) -> None:
        try:
            self._multi.socket_action(fd, mask)
        except pycurl.error:
            # libcurl does not know this socket: it is not ours to watch
            if fd != pycurl.SOCKET_TIMEOUT:
                self._forget(fd)

    def _collect(self) -> None:
        """Reports the transfers that have ended. Reporting may start and end others."""
        while True:
            left, good, bad = self._multi.info_read()
            for curl in good:
                self._on_ended(curl, 0, "")
            for curl, code, message in bad:
                self._on_ended(curl, code, message)
            if not left or self._epoll.closed:
                return


# The clocks are looked at this often, all transfers in one go: 0.15 µs each, 0.7 % of a core with 5,000 under way. A
# heap of deadlines costs 0.5 µs a request for push and pop alone, which is as much at 10,000 requests/s, and keeps the
# deadlines of finished ones until they are due.
TICK_S = 0.1
# Handles kept for further requests, about 6 KB each.
SPARE_HANDLES = 1024
# Connections kept for further requests, where there are descriptors for twice as many.
IDLE_CONNECTIONS = 4096
# Descriptors left for the state, the archive, DNS and the dashboard.
OTHER_DESCRIPTORS = 512
# Larger pieces than libcurl's usual 16 KB mean fewer callbacks for large bodies. Where bandwidth is shared out, a piece
# is what one transfer gets before the others: there, what comes in this time, but not less than a packet or two.
PIECE_BYTES = 64 * 1024
PIECE_S = 0.02
SMALLEST_PIECE_BYTES = 2048


class CurlDownloader:
    """An HTTP downloader. It asks `accepts(status, headers)` at the end of the headers; False ends the
    transfer there."""

    def __init__(
        self,
        limits: TransferLimits | None = None,
        *,
        accepts: AcceptsResponse | None = None,
        verify_tls: bool = True,
        ca_file: str = "",
        use_http2: bool = False,
    ) -> None:
        limits = limits or TransferLimits()
        self._loop = asyncio.get_running_loop()
        self._flow = FlowControl(limits, now_s=monotonic(), plan_turn=self._plan_turn)
        self._shared = TransferContext(
            limits=limits,
            flow=self._flow,
            accepts=accepts,
            options=(
                *_options(verify_tls=verify_tls, ca_file=ca_file, use_http2=use_http2),
                (pycurl.BUFFERSIZE, _piece_bytes(limits.bandwidth_bytes_s)),
            ),
            on_broken=self._on_broken,
        )
        connections = max(raise_descriptor_limit() - OTHER_DESCRIPTORS, 64)
        self._driver = MultiDriver(
            self._on_ended, connections=connections, idle=min(IDLE_CONNECTIONS, connections // 2)
        )
        self._active: dict[pycurl.Curl, Transfer] = {}
        self._spare: list[Transfer] = []
        self._tick: asyncio.TimerHandle | None = None
        self._has_turn_due = False
        self._is_closed = False
        self._watcher: Watcher | None = None
        self._started = self._ended = self._failed = self._received_bytes = self._connections_opened = 0

    def __repr__(self) -> str:
        return f"CurlDownloader({self.stats()})"

    def start(self, request: Request, done: DoneCallback) -> None:
        self._started += 1
        if self._is_closed:
            self._refuse(request, done, Failure.CANCELLED, "the downloader is closed")
            return
        # A handle that has carried private parts never serves another request.
        transfer = self._spare.pop() if self._spare and request.private is None else Transfer(self._shared)
        try:
            transfer.begin(request, done)
            self._driver.add(transfer.curl)
        except (ValueError, pycurl.error) as error:
            # the handle may be half set up: it is not used again
            self._refuse(request, done, Failure.PROTOCOL, str(error))
            return
        self._active[transfer.curl] = transfer
        if self._tick is None:
            self._tick = self._loop.call_later(TICK_S, self._on_tick)

    def watch(self, watcher: Watcher) -> None:
        self._watcher = watcher

    def set_fence(self, fence: Callable[[], bool]) -> None:
        """Sets a check that runs before every action on a socket. Where it returns True, it has cancelled everything,
        and the action is left out."""
        self._driver.fence = fence

    def cancel_all(self) -> None:
        for transfer in list(self._active.values()):
            self._end(transfer, transfer.response(0, "", Failure.CANCELLED))

    async def close(self) -> None:
        """Ends what is under way and releases everything. A `start` after this hears CANCELLED."""
        if self._is_closed:
            return
        self._is_closed = True
        self.cancel_all()
        if self._tick is not None:
            self._tick.cancel()
        self._driver.close()
        for transfer in self._spare:
            transfer.curl.close()
        self._spare.clear()

    def stats(self) -> DownloaderStats:
        return DownloaderStats(
            active=len(self._active),
            paused=self._flow.held,
            in_flight_bytes=self._flow.in_flight_bytes,
            started=self._started,
            ended=self._ended,
            failed=self._failed,
            received_bytes=self._received_bytes,
            connections_opened=self._connections_opened,
        )

    def _on_ended(self, curl: pycurl.Curl, code: int, text: str) -> None:
        transfer = self._active.get(curl)
        if transfer is not None:
            self._end(transfer, transfer.response(code, text))

    def _on_broken(self, transfer: Transfer, code: int, text: str) -> None:
        """Ends a held transfer that could not go on; libcurl reports that here and not with the ended ones."""
        if transfer.curl in self._active:
            self._end(transfer, transfer.response(code, text))

    def _end(self, transfer: Transfer, response: Response) -> None:
        del self._active[transfer.curl]
        self._driver.remove(transfer.curl)
        self._flow.leave(transfer)
        if self._flow.counted_bytes(transfer.body_bytes):
            response = msgspec.structs.replace(response, claim=BodyClaim())
            weakref.finalize(response.claim, self._let_go_soon, transfer.body_bytes).atexit = False
        self._received_bytes += transfer.body_bytes
        self._connections_opened += transfer.curl.getinfo(pycurl.NUM_CONNECTS)
        done = transfer.done
        if len(self._spare) < SPARE_HANDLES and transfer.request.private is None:
            transfer.let_go()
            self._spare.append(transfer)
        else:
            transfer.curl.close()
        if self._flow.held:
            self._plan_turn()
        self._tell(done, response)

    def _let_go_soon(self, body_bytes: int) -> None:
        """Called when a response with a large body is gone, by whichever thread had it last."""
        with suppress(RuntimeError):  # the event loop has ended
            self._loop.call_soon_threadsafe(self._let_go, body_bytes)

    def _let_go(self, body_bytes: int) -> None:
        self._flow.let_go(body_bytes)
        if self._flow.held:
            self._plan_turn()

    def _tell(self, done: DoneCallback, response: Response) -> None:
        self._ended += 1
        self._failed += response.failure is not None
        try:
            done(response)
        except Exception as error:  # the others that have ended must still be told
            self._loop.call_exception_handler({"message": f"done failed for {response.url}", "exception": error})

    def _refuse(self, request: Request, done: DoneCallback, failure: Failure, detail: str) -> None:
        self._loop.call_soon(self._tell, done, refused_response(request, failure, detail))

    def _plan_turn(self) -> None:
        if not self._has_turn_due:
            self._has_turn_due = True
            self._loop.call_soon(self._on_turn)

    def _on_turn(self) -> None:
        self._has_turn_due = False
        if not self._is_closed:
            self._flow.turn(monotonic())

    def _on_tick(self) -> None:
        now_s = monotonic()
        self._tick = None
        late = [(transfer, late) for transfer in self._active.values() if (late := transfer.overdue(now_s))]
        for transfer, failure in late:
            if transfer.curl in self._active:  # telling one may have ended another
                self._end(transfer, transfer.response(0, "", failure))
        if self._flow.held:
            self._flow.turn(now_s)
        if self._watcher is not None:
            self._show_news(self._watcher)
        if self._active and self._tick is None:
            self._tick = self._loop.call_later(TICK_S, self._on_tick)

    def _show_news(self, watcher: Watcher) -> None:
        """Shows the watcher what slow responses have so far; what is done before the next tick is never looked at."""
        for transfer in [transfer for transfer in self._active.values() if transfer.has_news]:
            if transfer.curl in self._active:  # the watcher may have ended another
                try:
                    watcher(transfer.request, transfer.so_far())
                except Exception as error:
                    message = f"a watcher failed for {transfer.request.url}"
                    self._loop.call_exception_handler({"message": message, "exception": error})


def raise_descriptor_limit() -> int:
    """Raises this process's limit of open files as far as the system allows, and returns it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
            soft = hard
        except (ValueError, OSError):
            pass  # some systems name a hard limit they do not grant: the soft one stays
    return soft if soft != resource.RLIM_INFINITY else 1 << 20


def _piece_bytes(bandwidth_bytes_s: float | None) -> int:
    if bandwidth_bytes_s is None:
        return PIECE_BYTES
    return max(SMALLEST_PIECE_BYTES, min(PIECE_BYTES, int(bandwidth_bytes_s * PIECE_S)))


def _options(*, verify_tls: bool, ca_file: str, use_http2: bool) -> tuple[tuple[int, object], ...]:
    """The options that are set once on every handle."""
    web = pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS
    return (
        (pycurl.NOSIGNAL, True),
        (pycurl.PROTOCOLS, web),
        (pycurl.PROXY, ""),  # not even that of the environment
        (pycurl.USERAGENT, ""),  # pycurl names itself unless told not to
        (pycurl.FOLLOWLOCATION, False),
        (pycurl.NETRC, pycurl.NETRC_IGNORED),
        (pycurl.HTTP_CONTENT_DECODING, False),
        (pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_2TLS if use_http2 else pycurl.CURL_HTTP_VERSION_1_1),
        (pycurl.SSL_VERIFYPEER, verify_tls),
        (pycurl.SSL_VERIFYHOST, 2 if verify_tls else 0),
        *(_authorities(ca_file) if verify_tls else ()),
    )


def _authorities(ca_file: str) -> tuple[tuple[int, object], ...]:
    """The certificate authorities to trust. libcurl's own default is a path of the system it was built on: ask this
    one's."""
    if ca_file:
        try:
            ssl.create_default_context(cafile=ca_file)
        except (OSError, ssl.SSLError) as error:
            raise SettingsError(f"CA file {ca_file!r} cannot be used: {error}") from error
        return ((pycurl.CAINFO, ca_file),)
    paths = ssl.get_default_verify_paths()
    found = (
        (pycurl.CAINFO, paths.cafile or paths.openssl_cafile),
        (pycurl.CAPATH, paths.capath or paths.openssl_capath),
    )
    return tuple((option, path) for option, path in found if path)
