"""The frontier: takes URLs in once, says which one goes next, and keeps every host's pace.

States of a URL: queued (a row in `queue`), leased (in memory; the row stays), done, failed or dropped (a row in `url`
with the reason). Only `finish`, `retry` and `drop` take a URL out of its queue, in the same batch as its outcome.
Filled by `admit` (the engine, with a page's links), emptied by `next` (the engine, when a transfer is free).
Memory: hosts with work and the fronts of their queues, all together at most `FRONTS_URLS` entries; a cache of recent
URLs of fixed size. Time is an argument: `now` is monotonic, `now_unix` the wall clock.
"""

import heapq
from collections import Counter, deque
from collections.abc import Callable, Iterable
from itertools import count

import msgspec

from lycosa.frontier.hosts import Host, Place, RobotsJob
from lycosa.frontier.politeness import Slots
from lycosa.frontier.rows import (
    KEY_END,
    Entry,
    HostRow,
    Kind,
    Lane,
    Reason,
    Rows,
    UrlRow,
    UrlState,
    Writes,
    lane_start,
    pack_host,
    queue_key,
    unpack_host,
)
from lycosa.records import Failure, Family, Mapped
from lycosa.web.robots import Robots
from lycosa.web.url import BUCKET_BYTES, Url, url_key

FRONTS_URLS = 100_000  # entries in all fronts together
FRONT_MOST, FRONT_LEAST = 512, 4  # entries in one front
DUE_READ = 64  # retries read at a time
HOSTS_MOST = 50_000  # hosts in memory; more stay on disk and rotate in
IDLE_HOSTS_MOST = 10_000  # hosts without work that are remembered, so that their row is not read again
HOSTS_READ = 1_000  # host rows read at a time
RETRY_COUNTER_BITS = 20
LONGEST_WAIT_S = 86_400.0  # a wait from disk is believed up to here: the wall clock may have been wrong


class Lease(msgspec.Struct, frozen=True):
    """A URL given out, with the address to ask. `failure` says that the host has none."""

    host: Host
    kind: Kind
    url: str
    path: str
    address: str
    entry: Entry | None = None
    job: RobotsJob | None = None
    failure: Failure | None = None
    detail: str = ""

    @property
    def depth(self) -> int:
        return self.entry.depth if self.entry else 0


class Pace(msgspec.Struct, frozen=True, kw_only=True):
    """The politeness that is asked for."""

    delay_s: float = 1.0
    per_host: int = 1
    ip_delay_s: float = 0.0
    per_ip: int = 4
    pages_per_host: int | None = None
    robots: bool = True


class FrontierStats(msgspec.Struct, frozen=True):
    known: int
    queued: int
    hosts: int
    active: int
    waiting: int
    parked: int
    in_use: int


class Frontier:
    """See the module. `locate` says where a host lives, or None when it has to be resolved first."""

    def __init__(
        self,
        rows: Rows,
        pace: Pace,
        *,
        locate: Callable[[Host], Mapped | None],
        started: float,
        started_unix: float,
        is_restart: bool = False,
        hosts_most: int = HOSTS_MOST,
    ) -> None:
        self._rows, self.pace, self._locate = rows, pace, locate
        self._started, self._started_unix, self._hosts_most = started, started_unix, hosts_most
        self._is_restart = is_restart
        self.batch: Writes | None = None
        self.hosts: dict[bytes, Host] = {}
        self._addresses: dict[str, Slots] = {}
        self._address_waiters: dict[str, deque[Host]] = {}
        self._ready: deque[Host] = deque()
        self._waiting: list[tuple[float, int, int, Host]] = []
        self._named: dict[str, list[Host]] = {}  # hosts whose name is being resolved, by name
        self._starved: list[Host] = []
        self._pending: set[bytes] = set()  # url keys put into the batch that is not committed yet
        self._ticket = count()
        self._retry_counter = count()
        self._places: Counter[Place] = Counter()
        self._dirty: dict[bytes, Host] = {}
        self._writing: list[tuple[Host, int]] = []
        self._cursor = b""
        self._has_surplus = True
        self.known = self.queued = self.host_count = 0
        self.dropped: Counter[str] = Counter()

    def __repr__(self) -> str:
        return f"<Frontier known={self.known} queued={self.queued} hosts={len(self.hosts)}>"

    def stats(self) -> FrontierStats:
        places = self._places
        active = sum(places[place] for place in Place if place not in (Place.IDLE, Place.PARKED, Place.WAITING))
        in_use = sum(slots.in_use for slots in self._addresses.values())
        return FrontierStats(
            self.known, self.queued, self.host_count, active, places[Place.WAITING], places[Place.PARKED], in_use
        )

    # taking URLs in

    def admit(
        self,
        urls: Iterable[Url],
        *,
        depth: int,
        kind: Kind = Kind.PAGE,
        hops: int = 0,
        now: float,
        is_wish: bool = False,
    ) -> int:
        """Takes in those of the URLs that are not known yet; returns how many. `is_wish` revives a host given up."""
        pending = self._pending
        asked = [(url, key) for url in urls if (key := url_key(url.href)) not in pending]
        found = self._rows.get_many(Family.URL, [key for _, key in asked]) if asked else []
        new = 0
        row = UrlRow(UrlState.QUEUED, depth).pack()
        touched: dict[bytes, Host] = {}
        for (url, key), known in zip(asked, found, strict=True):
            host = self._host(key[: key.index(KEY_END, BUCKET_BYTES)], now)
            if is_wish and host.row.gave_up:
                self._revive(host)
                touched[host.key] = host
            if known is not None or key in pending:
                continue
            entry = Entry(host.next_key(), url.path, kind, depth, 0, hops)
            self._put(Family.URL, key, row)
            self._put(Family.QUEUE, entry.key, entry.pack())
            pending.add(key)
            host.add(entry, room=self._room())
            touched[host.key] = host
            new += 1
            if host.row.gave_up:
                self.dropped[host.row.gave_up] += 1
            else:
                self.queued += 1
        self.known += new
        for host in touched.values():
            self._dirty[host.key] = host
            if host.row.gave_up:
                continue
            if host.place in (Place.IDLE, Place.WAITING, Place.PARKED):
                self._settle(host, now)
        return new

    def is_known(self, href: str) -> bool:
        key = url_key(href)
        return key in self._pending or self._rows.get(Family.URL, key) is not None

    def _host(self, key: bytes, now: float) -> Host:
        host = self.hosts.get(key)
        if host is None:
            row = self._rows.get(Family.HOST, key)
            if row is None:
                self.host_count += 1
            host = self._adopt(key, unpack_host(row) if row is not None else HostRow())
            self._settle(host, now)  # it may have work from before
        return host

    def _adopt(self, key: bytes, row: HostRow) -> Host:
        """Brings a host into memory. After a restart it waits one full delay from the start on, known or not: whoever
        was asked in the moment before a crash is not in the state."""
        pace = self.pace
        crawl_delay = row.robots.crawl_delay_s if row.robots and row.robots.crawl_delay_s else 0.0
        delay_s = max(pace.delay_s, crawl_delay)
        first_at = self._started + delay_s if self._is_restart or row.requests else 0.0
        if row.wait_until > self._started_unix:
            first_at = max(first_at, self._started + min(row.wait_until - self._started_unix, LONGEST_WAIT_S))
        host = Host(key, row, Slots(pace.per_host, first_at=first_at), delay_s)
        self.hosts[key] = host
        self._places[Place.IDLE] += 1
        return host

    def _revive(self, host: Host) -> None:
        self.queued += host.row.queued
        self.dropped[host.row.gave_up] -= host.row.queued
        host.row.gave_up, host.row.tries, host.row.robots_tries, host.row.wait_until = "", 0, 0, 0.0

    def _room(self) -> int:
        return max(FRONT_LEAST, min(FRONT_MOST, FRONTS_URLS // max(1, len(self.hosts))))

    # giving URLs out

    def next(self, now: float, now_unix: float) -> Lease | None:
        """The next URL that may be asked for now, or None."""
        self._wake(now)
        while self._ready:
            host = self._ready.popleft()
            if host.place is not Place.READY:
                continue
            lease = self._lease(host, now, now_unix)
            if lease is not None:
                return lease
        return None

    def next_wake(self) -> float | None:
        """When the next waiting host may be asked; None if none waits for a time."""
        while self._waiting and self._waiting[0][1] != self._waiting[0][3].turn:
            heapq.heappop(self._waiting)
        return self._waiting[0][0] if self._waiting else None

    def _wake(self, now: float) -> None:
        waiting = self._waiting
        while waiting and waiting[0][0] <= now:
            _, turn, _, host = heapq.heappop(waiting)
            if turn == host.turn and host.place in (Place.WAITING, Place.PARKED):
                self._move(host, Place.READY)
                self._ready.append(host)

    def _lease(self, host: Host, now: float, now_unix: float) -> Lease | None:
        """Gives out one URL of a ready host, or moves the host to where it has to wait."""
        if host.slots.next_at() > now:
            self._settle(host, now)
            return None
        mapped = self._locate(host)
        if mapped is None:
            self._move(host, Place.NAME)
            self._named.setdefault(host.host, []).append(host)
            return None
        address = self._address(mapped.address) if mapped.failure is None else None
        if address is not None and address.next_at() > now:
            self._wait_for_address(host, mapped.address, address)
            return None
        lease = self._choose(host, mapped, now, now_unix)
        if lease is None:
            self._settle(host, now)
            return None
        host.slots.take()
        if address is not None:
            address.take()
        if lease.entry is not None and lease.entry.lane is Lane.MAIN:
            host.leased.add(lease.entry.sequence)
        host.awaits_robots |= lease.kind is Kind.ROBOTS and lease.job is None
        self._settle(host, now)
        return lease

    def _choose(self, host: Host, mapped: Mapped, now: float, now_unix: float) -> Lease | None:
        if host.jobs:
            job = host.jobs.popleft()
            return self._given(host, Kind.ROBOTS, host.origin + _path(job.url), mapped, job=job)
        if host.awaits_robots or not (host.has_work or host.retry_at <= now):
            return None
        if self.pace.robots and (host.row.robots is None or host.row.robots_until < now_unix):
            return self._given(host, Kind.ROBOTS, f"{host.origin}/robots.txt", mapped)
        while entry := self._next_entry(host, now, now_unix):
            rules = host.row.robots
            if self.pace.robots and rules is not None and not rules.allows(entry.path):
                self._close(host, entry, UrlState.DROPPED, Reason.ROBOTS)
                continue
            limit = self.pace.pages_per_host
            if limit is not None and host.row.pages + host.slots.in_use >= limit:
                self._close(host, entry, UrlState.DROPPED, Reason.PAGES_PER_HOST)
                continue
            return self._given(host, entry.kind, host.origin + entry.path, mapped, entry=entry)
        return None

    def _given(
        self,
        host: Host,
        kind: Kind,
        url: str,
        mapped: Mapped,
        *,
        entry: Entry | None = None,
        job: RobotsJob | None = None,
    ) -> Lease:
        return Lease(host, kind, url, _path(url), mapped.address, entry, job, mapped.failure, mapped.detail)

    def _next_entry(self, host: Host, now: float, now_unix: float) -> Entry | None:
        if not host.due and host.retry_at <= now:
            self._read_due(host, now, now_unix)
        if host.due:
            return host.due.popleft()
        if not host.front and host.has_unread:
            self._read_front(host)
        return host.front.popleft() if host.front else None

    def _read_front(self, host: Host) -> None:
        start, end = queue_key(host.key, Lane.MAIN, host.loaded), lane_start(host.key, Lane.RETRY)
        rows = self._rows.scan(Family.QUEUE, start, end, limit=self._room())
        entries = [Entry.unpack(key, row) for key, row in rows]
        host.front.extend(entry for entry in entries if entry.sequence not in host.leased)
        if len(rows) < self._room():  # that was all there is on disk
            host.loaded = max(host.loaded, host.committed_tail)
        if entries:
            host.loaded = max(host.loaded, entries[-1].sequence + 1)

    def _read_due(self, host: Host, now: float, now_unix: float) -> None:
        """Takes the retries whose time has come, and notes when the next one is due."""
        end = host.key + KEY_END + bytes((Lane.RETRY + 1,))
        for key, row in self._rows.scan(Family.QUEUE, host.retry_loaded, end, limit=DUE_READ):
            entry = Entry.unpack(key, row)
            due_in = (entry.sequence >> RETRY_COUNTER_BITS) / 1000 - now_unix
            if due_in > 0:
                host.retry_at = now + due_in
                return
            host.due.append(entry)
            host.retry_loaded = key + b"\0"
        outstanding = host.row.retries - len(host.due)
        host.retry_at = now + 1.0 if outstanding > 0 and not host.due else now if host.due else float("inf")

    # where hosts wait

    def _move(self, host: Host, place: Place) -> None:
        self._places[host.place] -= 1
        self._places[place] += 1
        host.place = place
        host.turn += 1

    def _settle(self, host: Host, now: float) -> None:
        """Puts a host where it belongs now."""
        at = host.slots.next_at()
        if host.awaits_robots and not host.jobs:
            self._move(host, Place.ROBOTS)
            return
        if at == float("inf"):
            self._move(host, Place.BUSY)
            return
        if not host.jobs and (host.row.gave_up or not (host.has_work or host.row.retries)):
            self._move(host, Place.IDLE)
            return
        if not host.has_work:
            at = max(at, host.retry_at)
            if at == float("inf"):  # its retries are all under way
                self._move(host, Place.IDLE)
                return
        elif not (host.front or host.due or host.jobs) and not self._is_readable(host):
            if host.has_unread:
                self._move(host, Place.COMMIT)
                self._starved.append(host)
            elif host.row.retries:
                self._settle(host, now)
            else:
                self._move(host, Place.IDLE)
            return
        if at <= now:
            self._move(host, Place.READY)
            self._ready.append(host)
        else:
            self._move(host, Place.PARKED if host.row.wait_reason else Place.WAITING)
            heapq.heappush(self._waiting, (at, host.turn, next(self._ticket), host))

    def _is_readable(self, host: Host) -> bool:
        """Fills the front; False if what is behind it is still in the batch that is not committed."""
        if not host.front:
            self._read_front(host)
        return bool(host.front)

    def _address(self, address: str) -> Slots:
        slots = self._addresses.get(address)
        if slots is None:
            slots = self._addresses[address] = Slots(self.pace.per_ip)
        return slots

    def _wait_for_address(self, host: Host, address: str, slots: Slots) -> None:
        at = slots.next_at()
        if at == float("inf"):
            self._move(host, Place.ADDRESS)
            self._address_waiters.setdefault(address, deque()).append(host)
        else:
            self._move(host, Place.WAITING)
            heapq.heappush(self._waiting, (at, host.turn, next(self._ticket), host))

    def named(self, name: str, now: float) -> None:
        """A name has been resolved: its hosts may go on."""
        for host in self._named.pop(name, []):
            if host.place is Place.NAME:
                self._settle(host, now)

    # what became of a lease

    def release(
        self, lease: Lease, ended: float, now: float, *, wait_s: float = 0.0, reason: str = "", now_unix: float = 0.0
    ) -> None:
        """The request has ended: its slots are free again a delay later, the whole host after `wait_s` at least."""
        host = lease.host
        host.slots.give_back(ended + host.delay_s)
        if wait_s:
            host.slots.not_before(now + wait_s)
        host.row.wait_reason, host.row.wait_until = (reason, now_unix + wait_s) if wait_s else ("", 0.0)
        self._touch(host)
        if lease.failure is None:
            self._release_address(lease.address, ended + self.pace.ip_delay_s)
        self._settle(host, now)

    def _release_address(self, address: str, free_at: float) -> None:
        """Gives an address's slot back, to the host that has waited for it the longest."""
        slots = self._addresses[address]
        slots.give_back(free_at)
        waiters = self._address_waiters.get(address)
        while waiters:
            host = waiters.popleft()
            if host.place is Place.ADDRESS:
                self._move(host, Place.READY)
                self._ready.append(host)
                return
        self._address_waiters.pop(address, None)
        if slots.in_use == 0 and not self.pace.ip_delay_s:
            del self._addresses[address]

    def finish(self, lease: Lease, state: UrlState, reason: Reason = Reason.NONE) -> None:
        """The URL of the lease is settled for good."""
        if lease.entry is not None:
            self._close(lease.host, lease.entry, state, reason)

    def retry(self, lease: Lease, *, due_unix: float, due: float, counts: bool = True) -> None:
        """The URL of the lease is asked for again when it is due."""
        host, entry = lease.host, lease.entry
        if entry is None:
            return
        sequence = int(due_unix * 1000) << RETRY_COUNTER_BITS | next(self._retry_counter) % (1 << RETRY_COUNTER_BITS)
        if len(host.retry_loaded) > len(lane_start(host.key, Lane.RETRY)):  # never behind what was read already
            sequence = max(sequence, int.from_bytes(host.retry_loaded[-9:-1]) + 1)
        key = queue_key(host.key, Lane.RETRY, sequence)
        again = msgspec.structs.replace(entry, key=key, tries=min(entry.tries + counts, 255))
        self._delete(Family.QUEUE, entry.key)
        self._put(Family.QUEUE, key, again.pack())
        if entry.lane is Lane.MAIN:
            host.leased.discard(entry.sequence)
            host.row.retries += 1
        host.retry_at = min(host.retry_at, due)
        self._touch(host)

    def want_robots(self, host_key: bytes, url: Url, hops: int, now: float) -> None:
        """A host's robots.txt has to be fetched from `url`, on whatever host that is."""
        key = url_key(url.href)
        other = self._host(key[: key.index(KEY_END, BUCKET_BYTES)], now)
        other.jobs.append(RobotsJob(url.href, host_key, hops))
        if other.place in (Place.IDLE, Place.WAITING, Place.PARKED):
            self._settle(other, now)

    def set_robots(self, host: Host, robots: Robots, *, until_unix: float, now: float) -> None:
        """The host's rules are known: it may go on."""
        host.row.robots, host.row.robots_until, host.row.robots_tries = robots, until_unix, 0
        host.awaits_robots = False
        host.delay_s = max(self.pace.delay_s, robots.crawl_delay_s or 0.0)
        self._touch(host)
        if host.place is Place.ROBOTS:
            self._settle(host, now)

    def robots_failed(self, host: Host, now: float) -> None:
        """The host's rules could not be had: they are asked for again when it may be asked again."""
        host.awaits_robots = False
        host.row.robots_tries += 1
        self._touch(host)
        if host.place is Place.ROBOTS:
            self._settle(host, now)

    def park(self, host: Host, now: float, *, wait_s: float, reason: str) -> None:
        """The whole host waits, for something that happened elsewhere."""
        host.slots.not_before(now + wait_s)
        host.row.wait_reason = reason
        self._touch(host)
        if host.place in (Place.READY, Place.WAITING, Place.IDLE):
            self._settle(host, now)

    def requeue(self, urls: Iterable[tuple[str, int]], now: float) -> None:
        """Queues URLs again that were done but whose result is lost."""
        for href, depth in urls:
            key = url_key(href)
            host = self._host(key[: key.index(KEY_END, BUCKET_BYTES)], now)
            entry = Entry(host.next_key(), _path(href), Kind.PAGE, depth)
            self._put(Family.URL, key, UrlRow(UrlState.QUEUED, depth).pack())
            self._put(Family.QUEUE, entry.key, entry.pack())
            host.add(entry, room=self._room())
            self.queued += 1
            self._touch(host)

    def put_back(self, lease: Lease) -> None:
        """The request was cancelled: the URL is still queued, and goes first."""
        host, entry = lease.host, lease.entry
        host.awaits_robots = False
        if entry is None:
            return
        if entry.lane is Lane.MAIN:
            host.leased.discard(entry.sequence)
            host.front.appendleft(entry)
        else:
            host.due.appendleft(entry)

    def give_up(self, host: Host, reason: str) -> None:
        """Nothing more is asked of this host; its queue stays on disk, in case it is wanted again."""
        if host.row.gave_up:
            return
        host.row.gave_up = reason
        self.queued -= host.row.queued
        self.dropped[reason] += host.row.queued
        host.front.clear()
        host.due.clear()
        host.loaded = host.row.head
        self._touch(host)
        self._move(host, Place.IDLE)

    def _close(self, host: Host, entry: Entry, state: UrlState, reason: Reason) -> None:
        self._delete(Family.QUEUE, entry.key)
        self._put(Family.URL, host.key + KEY_END + entry.path.encode(), UrlRow(state, entry.depth, reason).pack())
        if entry.lane is Lane.MAIN:
            host.leased.discard(entry.sequence)
        else:
            host.row.retries -= 1
        host.row.queued -= 1
        if host.row.gave_up:  # counted as dropped when the host was given up
            self.dropped[host.row.gave_up] -= 1
        else:
            self.queued -= 1
        if state is UrlState.DROPPED:
            self.dropped[reason] += 1
        self._touch(host)

    # commits

    def write_hosts(self) -> None:
        """Puts the rows of all hosts that changed into the batch; the engine calls it before a commit."""
        for host in self._dirty.values():
            host.settle_head()
            self._put(Family.HOST, host.key, pack_host(host.row))
        self._writing = [(host, host.row.tail) for host in self._dirty.values()]
        self._dirty.clear()

    def committed(self, now: float) -> None:
        """The batch is on disk: what was in it can be read now."""
        self._pending.clear()
        for host, tail in self._writing:
            host.committed_tail = tail
        self._writing = []
        starved, self._starved = self._starved, []
        for host in starved:
            if host.place is Place.COMMIT:
                self._settle(host, now)
        if len(self.hosts) > self._hosts_most:
            self._evict(now)
        elif self._has_surplus:
            self._rotate(now)
        if self._places[Place.IDLE] > IDLE_HOSTS_MOST:
            self._forget_idle(now)

    def load(self, now: float) -> None:
        """Brings the first hosts with work into memory; the others follow as there is room."""
        self._rotate(now)

    def _rotate(self, now: float) -> None:
        """Reads host rows on from where the last look ended, and takes in those with work."""
        room = self._hosts_most - (len(self.hosts) - self._places[Place.IDLE])
        while room > 0 and self._has_surplus:
            rows = self._rows.scan(Family.HOST, self._cursor, limit=HOSTS_READ)
            for key, packed in rows:
                row = unpack_host(packed)
                if key not in self.hosts and row.queued and not row.gave_up:
                    self._settle(self._adopt(key, row), now)
                    room -= 1
            self._has_surplus = len(rows) == HOSTS_READ
            self._cursor = rows[-1][0] + b"\0" if self._has_surplus else b""

    def _evict(self, now: float) -> None:
        """Puts hosts beyond the bound back to disk: those that have rested for a whole delay and hold no lease."""
        surplus = len(self.hosts) - self._hosts_most
        for host in [h for h in self.hosts.values() if self._can_forget(h, now)][:surplus]:
            self._forget(host)
            self._has_surplus = True

    def _forget_idle(self, now: float) -> None:
        idle = [h for h in self.hosts.values() if h.place is Place.IDLE and self._can_forget(h, now)]
        for host in idle[: len(idle) // 2]:
            self._forget(host)

    def _can_forget(self, host: Host, now: float) -> bool:
        is_resting = host.place in (Place.IDLE, Place.READY) and not host.slots.in_use and not host.jobs
        return is_resting and max(host.slots.free_at) <= now and host.key not in self._dirty

    def _forget(self, host: Host) -> None:
        self._move(host, Place.IDLE)
        self._places[Place.IDLE] -= 1
        del self.hosts[host.key]

    def _touch(self, host: Host) -> None:
        self._dirty[host.key] = host

    def _put(self, family: Family, key: bytes, value: bytes) -> None:
        assert self.batch is not None
        self.batch.put(family, key, value)

    def _delete(self, family: Family, key: bytes) -> None:
        assert self.batch is not None
        self.batch.delete(family, key)


def _path(url: str) -> str:
    return url[url.index("/", 8) :]
