"""libcurl's multi handle on an event loop: sockets, timers, and the transfers that have ended.

libcurl's sockets are watched by an epoll set of our own, and the event loop watches that set as one descriptor. libcurl
starts and stops watching a kept-alive connection at every request; in our own set that costs one system call, not two
changes of the event loop's (in a bare loop 25 against 56 µs a request), and a socket that libcurl closed leaves the set
by itself. So a socket that libcurl lets go stays in the set until it is used again or stirs. Nothing here raises out of
a callback. Called by `fetch.curl` only.
"""

import asyncio
import select
from collections.abc import Callable
from contextlib import suppress

import pycurl

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
        """A connection nobody uses has stirred, mostly because its server closed it: libcurl will see on next use."""
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
        """Report what has ended. Reporting may start and end other transfers."""
        while True:
            left, good, bad = self._multi.info_read()
            for curl in good:
                self._on_ended(curl, 0, "")
            for curl, code, message in bad:
                self._on_ended(curl, code, message)
            if not left or self._epoll.closed:
                return
