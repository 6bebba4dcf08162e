"""From host names to addresses: the mapping stage of a crawl, and the resolvers that it asks.

The stage (`Mapper`) has a bounded queue of hosts, workers that resolve them in sets, and a cache that keeps answers by
their TTL. It is filled by `want` (the crawl, for hosts that `lookup` does not know) and emptied by the workers; results
go to `deliver`, as many at a time as came in one turn of the event loop. Invariants: a host is queued or being resolved
at most once at a time; every host taken in is delivered exactly once (unless the stage is closed); an address that
leaves here has passed the guard together with all others of its answer; a host keeps one chosen address while its
answer holds.

A resolver (the port `Resolver`, and its c-ares adapter) never raises for what the world does: every answer, good or
bad, is a `Resolved`. It is asked for names only, from one event loop; literal addresses and `localhost` are answered
before it (see `mapping.guard.literal_address`). It checks nothing: the mapper applies the address guard to whatever
comes back.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol, TypeVar
from zlib import crc32

import msgspec
import pycares
from pycares import errno

from lycosa.errors import SettingsError
from lycosa.mapping.guard import AddressGuard, literal_address, parse_ip_address
from lycosa.records import Failure, Mapped, Resolved

# Asked of each server in turn; c-ares doubles it at each further try.
TIMEOUT_S = 3.0
TRIES = 2

# c-ares keeps answers itself and offers no way to turn that off; a new channel starts empty. Not more often than this.
FLUSH_INTERVAL_S = 1.0

# TTLs below this would mean a query for nearly every page of a slow host; the address was checked and is pinned.
MIN_TTL_S = 30.0
# Longer promises are not believed: sites move.
MAX_TTL_S = 86_400.0
# How long a failure is believed. The second is shorter than the retry table's first wait for it.
NO_SUCH_HOST_TTL_S = 300.0
FAILED_TTL_S = 5.0

FOREVER_S = float("inf")

V = TypeVar("V")

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


class MapperStats(msgspec.Struct, frozen=True):
    """Hosts waiting and being resolved now, answers in the cache, and counts since the start."""

    queued: int
    resolving: int
    cached: int
    resolved: int
    failed: int
    refused: int


class _Entry(msgspec.Struct, frozen=True):
    mapped: Mapped
    addresses: tuple[str, ...]


class Mapper:
    """The mapping stage of a crawl. `workers` sets of at most `batch` hosts are being resolved at a time."""

    def __init__(
        self,
        resolver: Resolver,
        guard: AddressGuard,
        deliver: Callable[[list[Mapped]], None],
        *,
        now: Callable[[], float],
        workers: int = 4,
        batch: int = 64,
        queue_hosts: int = 10_000,
        cache_hosts: int = 100_000,
    ) -> None:
        self._resolver = resolver
        self._guard = guard
        self._deliver = deliver
        self._now = now
        self._batch = batch
        self._queue_hosts = queue_hosts
        self._cache_hosts = cache_hosts
        self._queue: deque[str] = deque()
        self._pending: set[str] = set()  # queued or being resolved
        self._cache: dict[str, _Entry] = {}  # oldest answer first
        self._turns: dict[str, int] = {}  # how often a host's address was given up
        self._ready: list[Mapped] = []
        self._loop = asyncio.get_running_loop()
        self._has_dispatch_due = False
        self._resolved = self._failed = self._refused = 0
        self._workers: list[set[asyncio.Task[None]]] = [set() for _ in range(workers)]  # what each one is resolving

    def __repr__(self) -> str:
        return f"Mapper({self.stats()})"

    def lookup(self, host: str, port: int) -> Mapped | None:
        """The answer known for `host` now, at once; None when it must be resolved. Literal hosts are always known.

        `port` counts for literal hosts only: a seed typed as an address opens that address on that port.
        """
        entry = self._cache.get(host)
        if entry is not None:
            if entry.mapped.expires_s > self._now():
                return entry.mapped
            del self._cache[host]
        address = literal_address(host)
        return None if address is None else self._map_literal(host, port, address)

    def want(self, host: str) -> bool:
        """Queues the name `host` to be resolved and delivered. False means that the queue is full: ask again later."""
        if host in self._pending:
            return True
        if literal_address(host) is not None:
            raise ValueError(f"{host} is no name: lookup knows it")  # it must never reach a name server
        if len(self._queue) >= self._queue_hosts:
            return False
        self._pending.add(host)
        self._queue.append(host)
        self._plan_dispatch()
        return True

    def forget(self, host: str) -> None:
        """Drops what is known of `host`: it is resolved anew when wanted next, and another of its addresses
        is tried."""
        if self._cache.pop(host, None) is not None:
            turns = self._turns.pop(host, 0) + 1
            _put_bounded(self._turns, host, turns, limit=self._cache_hosts)
        self._resolver.flush()

    def restore(self, host: str, address: str, *, valid_s: float) -> None:
        """Takes back an address from before a restart. The guard judges again: what is allowed may have changed."""
        if valid_s > 0:
            until_s = self._now() + min(valid_s, MAX_TTL_S)
            self._keep(self._judge(host, (address,), until_s), (address,))

    def stats(self) -> MapperStats:
        return MapperStats(
            queued=len(self._queue),
            resolving=len(self._pending) - len(self._queue),
            cached=len(self._cache),
            resolved=self._resolved,
            failed=self._failed,
            refused=self._refused,
        )

    async def close(self) -> None:
        """Stops the workers. Hosts that were still wanted are not delivered."""
        self._queue.clear()
        tasks = [task for held in self._workers for task in held]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._pending.clear()
        self._ready.clear()

    def _dispatch(self) -> None:
        """Gives queued hosts, as sets, to the workers that have answered at least half of the set they were given.

        Waiting for the last of a set would let one dead name server hold up the others.
        """
        self._has_dispatch_due = False
        for held in self._workers:
            if len(held) > self._batch // 2:
                continue
            while self._queue and len(held) < self._batch:
                task = asyncio.create_task(self._resolve(self._queue.popleft()))
                held.add(task)
                task.add_done_callback(partial(self._on_resolved, held))

    def _on_resolved(self, held: set[asyncio.Task[None]], task: asyncio.Task[None]) -> None:
        held.discard(task)
        if self._queue:
            self._plan_dispatch()

    def _plan_dispatch(self) -> None:
        if not self._has_dispatch_due:
            self._has_dispatch_due = True
            self._loop.call_soon(self._dispatch)

    async def _resolve(self, host: str) -> None:
        try:
            answer = await self._resolver.resolve(host)
        except Exception as error:  # a resolver is a plug-in: whatever it raises is a failed answer, not a lost host
            answer = Resolved(host, failure=Failure.DNS, detail=f"{type(error).__name__}: {error}")
        mapped = self._map(host, answer)
        self._keep(mapped, answer.addresses)
        self._pending.discard(host)
        self._ready.append(mapped)
        if len(self._ready) == 1:
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        ready, self._ready = self._ready, []
        if ready:
            self._deliver(ready)

    def _map(self, host: str, answer: Resolved) -> Mapped:
        now_s = self._now()
        if answer.addresses and answer.failure is None:
            ttl_s = min(max(answer.ttl_s, MIN_TTL_S), MAX_TTL_S)
            return self._judge(host, answer.addresses, now_s + ttl_s)
        self._failed += 1
        failure = answer.failure or Failure.NO_SUCH_HOST
        ttl_s = NO_SUCH_HOST_TTL_S if failure is Failure.NO_SUCH_HOST else FAILED_TTL_S
        return Mapped(host, "", now_s + ttl_s, failure, answer.detail)

    def _judge(self, host: str, addresses: tuple[str, ...], expires_s: float) -> Mapped:
        reason = self._guard.refusal_of_any(addresses)
        if reason is not None:
            self._refused += 1
            return Mapped(host, "", expires_s, Failure.ADDRESS_REFUSED, reason)
        self._resolved += 1
        # the same choice as long as the answer is the same, spread over the addresses by host
        ordered = sorted(addresses)
        chosen = ordered[(crc32(host.encode()) + self._turns.get(host, 0)) % len(ordered)]
        return Mapped(host, chosen, expires_s)

    def _map_literal(self, host: str, port: int, address: str) -> Mapped:
        reason = None if self._guard.is_typed(host, port) else self._guard.refusal(address)
        if reason is not None:
            return Mapped(host, "", FOREVER_S, Failure.ADDRESS_REFUSED, f"{address}: {reason}")
        return Mapped(host, address, FOREVER_S)

    def _keep(self, mapped: Mapped, addresses: tuple[str, ...]) -> None:
        self._cache.pop(mapped.host, None)
        _put_bounded(self._cache, mapped.host, _Entry(mapped, addresses), limit=self._cache_hosts)


def _put_bounded(store: dict[str, V], key: str, value: V, *, limit: int) -> None:
    """Adds to a dictionary of bounded size, dropping the oldest entry when it is full."""
    if len(store) >= limit:
        del store[next(iter(store))]
    store[key] = value
