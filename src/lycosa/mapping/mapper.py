"""The mapping stage: hosts wait in a bounded queue, workers resolve them in sets, answers are kept by their TTL.

Invariants: a host is queued or being resolved at most once at a time; every host taken in is delivered exactly once
(unless the stage is closed); an address that leaves here has passed the guard together with all others of its answer;
a host keeps one chosen address while its answer holds. Filled by `want` (the crawl, for hosts that `lookup` does not
know), emptied by the workers; results go to `deliver`, as many at a time as came in one turn of the event loop.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TypeVar
from zlib import crc32

import msgspec

from lycosa.mapping.guard import AddressGuard, literal_address
from lycosa.mapping.resolver import Resolver
from lycosa.records import Failure, Mapped, Resolved

# TTLs below this would mean a query for nearly every page of a slow host; the address was checked and is pinned.
MIN_TTL_S = 30.0
# Longer promises are not believed: sites move.
MAX_TTL_S = 86_400.0
# How long a failure is believed. The second is shorter than the retry table's first wait for it.
NO_SUCH_HOST_TTL_S = 300.0
FAILED_TTL_S = 5.0

FOREVER_S = float("inf")

V = TypeVar("V")


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
