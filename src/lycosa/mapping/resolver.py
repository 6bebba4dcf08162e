"""From a name to its addresses: the `Resolver` port and its c-ares adapter.

A resolver never raises for what the world does: every answer, good or bad, is a `Resolved`. It is asked for names only;
literal addresses and `localhost` are answered before it (see `mapping.guard.literal_address`). It checks nothing: the
mapper applies the address guard to whatever comes back. Called by `mapping.mapper`, from one event loop.
"""

import asyncio
from collections.abc import Sequence
from typing import Protocol

import pycares
from pycares import errno

from lycosa.errors import SettingsError
from lycosa.mapping.guard import parse_ip_address
from lycosa.records import Failure, Resolved

# Asked of each server in turn; c-ares doubles it at each further try.
TIMEOUT_S = 3.0
TRIES = 2

# c-ares keeps answers itself and offers no way to turn that off; a new channel starts empty. Not more often than this.
FLUSH_INTERVAL_S = 1.0

_NO_SUCH = {errno.ARES_ENOTFOUND, errno.ARES_ENODATA, errno.ARES_EBADNAME}


class Resolver(Protocol):
    """The port through which names are resolved. `flush` makes a resolver forget what it may have cached itself."""

    async def resolve(self, name: str) -> Resolved: ...

    def flush(self) -> None: ...

    async def close(self) -> None: ...


class CaresResolver:
    """Asks DNS servers through c-ares on the running event loop, for A first and for AAAA only when there is no A.

    `servers` are "host:port" or plain addresses; none means those of the system. Names are asked for as they are: no
    search domains, no hosts file.
    """

    def __init__(
        self,
        servers: Sequence[str] = (),
        *,
        use_ipv6: bool = True,
        timeout_s: float = TIMEOUT_S,
        tries: int = TRIES,
        flush_interval_s: float = FLUSH_INTERVAL_S,
    ) -> None:
        self._servers = [parse_server(server) for server in servers]
        self._types = (pycares.QUERY_TYPE_A, pycares.QUERY_TYPE_AAAA) if use_ipv6 else (pycares.QUERY_TYPE_A,)
        self._timeout_s = timeout_s
        self._tries = tries
        self._flush_interval_s = flush_interval_s
        self._loop = asyncio.get_running_loop()
        self._channel = self._open()
        self._opened_s = self._loop.time()
        self._has_flush_due = False

    def __repr__(self) -> str:
        return f"CaresResolver(servers={self._servers or 'system'}, pending={self._channel.pending})"

    async def resolve(self, name: str) -> Resolved:
        """The addresses of `name`. NO_SUCH_HOST means that a server said so, DNS that no server gave a usable
        answer."""
        channel = self._fresh_channel()
        for query_type in self._types:
            try:
                result = await channel.ask(name, query_type)
            except pycares.AresError as error:
                code = error.args[0]
                if code == errno.ARES_ENODATA and query_type != self._types[-1]:
                    continue
                failure = Failure.NO_SUCH_HOST if code in _NO_SUCH else Failure.DNS
                return Resolved(name, failure=failure, detail=str(errno.strerror(code)))
            addresses = tuple(
                record.data.addr
                for record in result.answer
                if isinstance(record.data, pycares.ARecordData | pycares.AAAARecordData)
            )
            if addresses:
                return Resolved(name, addresses, float(min(record.ttl for record in result.answer)))
        return Resolved(name, failure=Failure.NO_SUCH_HOST, detail="no address")

    def flush(self) -> None:
        self._has_flush_due = True

    async def close(self) -> None:
        self._channel.retire()

    def _fresh_channel(self) -> "_Channel":
        now_s = self._loop.time()
        if self._has_flush_due and now_s - self._opened_s >= self._flush_interval_s:
            self._channel.retire()
            self._channel, self._opened_s, self._has_flush_due = self._open(), now_s, False
        return self._channel

    def _open(self) -> "_Channel":
        return _Channel(self._loop, self._servers, timeout_s=self._timeout_s, tries=self._tries)


class _Channel:
    """One c-ares channel on the event loop. Once retired, it answers what is pending and then closes."""

    def __init__(self, loop: asyncio.AbstractEventLoop, servers: list[str], *, timeout_s: float, tries: int) -> None:
        self._loop = loop
        self._watched: dict[int, tuple[bool, bool]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._is_retired = False
        self.pending = 0
        self._ares = pycares.Channel(
            flags=pycares.ARES_FLAG_NOSEARCH | pycares.ARES_FLAG_EDNS | pycares.ARES_FLAG_STAYOPEN,
            timeout=timeout_s,
            tries=tries,
            servers=servers or None,
            sock_state_cb=self._on_socket,
        )

    def ask(self, name: str, query_type: int) -> asyncio.Future[pycares.DNSResult]:
        future: asyncio.Future[pycares.DNSResult] = self._loop.create_future()
        self.pending += 1

        def answered(result: pycares.DNSResult, code: int | None) -> None:
            self._answer(future, result if code is None else pycares.AresError(code))

        try:
            self._ares.query(name, query_type, callback=answered)
        except (pycares.AresError, UnicodeError) as error:
            # c-ares also reports some of these through the callback; the first report counts
            is_ours = isinstance(error, pycares.AresError)
            self._answer(future, error if is_ours else pycares.AresError(errno.ARES_EBADNAME))
        self._set_timer()
        return future

    def retire(self) -> None:
        self._is_retired = True
        self._close_if_done()

    def _answer(self, future: asyncio.Future[pycares.DNSResult], outcome: pycares.DNSResult | Exception) -> None:
        if future.done() and not future.cancelled():
            return
        self.pending -= 1
        if not future.cancelled():
            if isinstance(outcome, Exception):
                future.set_exception(outcome)
            else:
                future.set_result(outcome)
        if self._is_retired and not self.pending:
            self._loop.call_soon(self._close_if_done)  # not from inside a c-ares callback

    def _close_if_done(self) -> None:
        if self.pending or not self._is_retired:
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for fd in list(self._watched):
            self._on_socket(fd, False, False)
        self._ares.close()

    def _on_socket(self, fd: int, readable: bool, writable: bool) -> None:
        was_readable, was_writable = self._watched.pop(fd, (False, False))
        if readable and not was_readable:
            self._loop.add_reader(fd, self._process, fd, pycares.ARES_SOCKET_BAD)
        elif was_readable and not readable:
            self._loop.remove_reader(fd)
        if writable and not was_writable:
            self._loop.add_writer(fd, self._process, pycares.ARES_SOCKET_BAD, fd)
        elif was_writable and not writable:
            self._loop.remove_writer(fd)
        if readable or writable:
            self._watched[fd] = (readable, writable)

    def _process(self, read_fd: int, write_fd: int) -> None:
        self._ares.process_fd(read_fd, write_fd)
        self._set_timer()

    def _set_timer(self) -> None:
        if self._timer is None and self.pending:
            wait_s: float = self._ares.timeout(1.0)  # type: ignore[no-untyped-call]
            self._timer = self._loop.call_later(max(wait_s, 0.01), self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        if self.pending:
            self._process(pycares.ARES_SOCKET_BAD, pycares.ARES_SOCKET_BAD)


def parse_server(text: str) -> str:
    """A DNS server as c-ares takes it: "127.0.0.1:5353", "[::1]:53", or the address alone."""
    host, port = text, "53"
    if text.startswith("["):
        host, closing, rest = text[1:].partition("]")
        port = (rest.removeprefix(":") or "53") if closing else ""
    elif text.count(":") == 1:
        host, _, port = text.partition(":")
    packed = parse_ip_address(host)
    if packed is None or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65_536:
        raise SettingsError(f"dns server {text!r}: give an address and a port, like 127.0.0.1:53 or [::1]:53")
    return f"{host}:{port}" if len(packed) == 4 else f"[{host}]:{port}"
