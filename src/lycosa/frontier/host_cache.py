"""The host cache decides which hosts are in memory and which are only rows on disk.

Invariants: once a commit is over, at most `MemoryLimits.hosts` hosts with work are in memory, and the others rotate in
as there is room; a host leaves memory only when its row is written, nothing of it is in flight, and its last delay has
passed. Called by `Frontier` only.
"""

from collections.abc import Callable
from itertools import islice

import msgspec

from lycosa.frontier.hosts import Host, HostPlace
from lycosa.frontier.politeness import Politeness, ProcessStart, Slots
from lycosa.frontier.rows import HostRow, Rows, UrlCounts, Writes, pack_host, unpack_host
from lycosa.frontier.scheduler import HostScheduler
from lycosa.records import Family


class MemoryLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What a frontier holds in memory at most, however many URLs and hosts there are."""

    hosts: int = 50_000  # with work; less than 1 KB each without its windows
    idle_hosts: int = 10_000  # without work, remembered so that their rows are not read again
    windows: int = 100_000  # entries in the windows of all hosts together, shared evenly
    window: int = 512  # entries in one window
    # A look at the rows of hosts on disk ends after so many, a tenth of a second: the next commit looks further.
    rows_per_look: int = 20_000
    hosts_per_look: int = 5_000
    rows_per_read: int = 1_000


MEMORY_LIMITS = MemoryLimits()


class HostCache:
    """The hosts of a frontier. `only_due`: they give out nothing but what is due."""

    def __init__(
        self,
        rows: Rows,
        scheduler: HostScheduler,
        start: ProcessStart,
        politeness: Politeness,
        counts: UrlCounts,
        memory: MemoryLimits,
        *,
        alternates_direction: bool = False,
        only_due: bool = False,
    ) -> None:
        self._rows, self._scheduler, self._start = rows, scheduler, start
        self._politeness, self._counts, self._memory = politeness, counts, memory
        self._alternates_direction, self._only_due = alternates_direction, only_due
        self.hosts: dict[bytes, Host] = {}
        self._dirty: dict[bytes, Host] = {}  # hosts whose rows have changed: `Host.touch` puts them in
        self._writing: list[Host] = []
        self._cursor = b""
        self._rounds = 1  # ends of the family to be reached before every host put out has been looked at again
        self._is_first_round = True

    def __repr__(self) -> str:
        return f"<HostCache {len(self.hosts)} of {self._counts.hosts} hosts, {len(self._dirty)} changed>"

    def set_only_due(self, only_due: bool) -> list[Host]:
        """Let hosts give out nothing but what is due, or everything; return those that may have another place now."""
        self._only_due = only_due
        for host in self.hosts.values():
            host.only_due = only_due
        movable = (HostPlace.READY, HostPlace.WAITING, HostPlace.PARKED, HostPlace.IDLE)
        return [host for host in self.hosts.values() if host.place in movable]

    def get(self, key: bytes) -> tuple[Host, bool]:
        """Return the host, and whether it has just come into memory."""
        host = self.hosts.get(key)
        if host is not None:
            return host, False
        row = self._rows.get(Family.HOST, key)
        if row is None:
            self._counts.hosts += 1
        return self._adopt(key, unpack_host(row) if row is not None else HostRow()), True

    def _adopt(self, key: bytes, row: HostRow) -> Host:
        delay_s = self._politeness.pause_s(row.robots)
        slots = Slots(self._politeness.per_host, first_at=self._start.first_at(row, delay_s))
        host = Host(key, row, slots, delay_s, self._dirty, self._alternates_direction, self._only_due)
        self.hosts[key] = host
        self._scheduler.enter(host)
        return host

    def write(self, batch: Writes) -> None:
        """Put the rows of all hosts that changed into the batch."""
        for host in self._dirty.values():
            host.note_lanes()
            batch.put(Family.HOST, host.key, pack_host(host.row))
        # Until the commit has succeeded they keep what is pending: it is not on disk yet, and could not be read.
        self._writing += self._dirty.values()
        self._dirty.clear()

    def on_committed(self, now: float) -> list[Host]:
        """The batch is on disk: put surplus hosts out of memory, and return those that came in."""
        # Only now: a row that is read while its successor is in the open batch would bring old counts back.
        for host in self._writing:
            host.on_committed()
        self._writing = []
        # Half of them at once, so that the search for those at rest is not made with every commit.
        if self._scheduler.places[HostPlace.IDLE] > self._memory.idle_hosts:
            self._put_out(now, lambda host: host.place is HostPlace.IDLE, self._memory.idle_hosts // 2)
        surplus = len(self.hosts) - self._scheduler.places[HostPlace.IDLE] - self._memory.hosts
        if surplus > 0:
            # The hosts put out may lie before the cursor: after the rest of this round comes a whole one.
            self._rounds = 2
            # Ready ones only: a host that waits would have to be read again when its time comes, a busy one may not go.
            self._put_out(now, lambda host: host.place is HostPlace.READY, surplus)
            return []
        return self.rotate()

    def rotate(self) -> list[Host]:
        """Read host rows on from where the last look ended, and take in those with work while there is room."""
        taken: list[Host] = []
        room, memory = self.room, self._memory
        for _ in range(memory.rows_per_look // memory.rows_per_read):
            if not self._rounds or len(taken) >= room:
                break
            rows = self._rows.scan(Family.HOST, self._cursor, limit=memory.rows_per_read)
            is_whole = self._take_in(rows, taken, room)
            if is_whole and len(rows) < memory.rows_per_read:
                self._cursor = b""
                self._rounds -= 1
                self._is_first_round = False
        return taken

    @property
    def tries_again(self) -> bool:
        """Return whether hosts that earlier runs gave up are brought in: once a run, in the first round over the
        rows."""
        return self._is_first_round and not self._only_due

    @property
    def room(self) -> int:
        """Return how many hosts may come in at once."""
        memory = self._memory
        return min(memory.hosts_per_look, memory.hosts - len(self.hosts) + self._scheduler.places[HostPlace.IDLE])

    def _take_in(self, rows: list[tuple[bytes, bytes]], taken: list[Host], room: int) -> bool:
        """Take in hosts with work until there are `room` of them; return False if that left rows over."""
        for key, packed in rows:
            if len(taken) >= room:
                return False
            self._cursor = key + b"\0"
            row = unpack_host(packed)
            if key not in self.hosts and row.queued and (not row.gave_up or self.tries_again):
                taken.append(self._adopt(key, row))
        return True

    def remove(self, key: bytes) -> None:
        """Forget a host that belongs to another shard: nothing of it is written any more."""
        host = self.hosts.pop(key, None)
        if host is not None:
            self._scheduler.leave(host)
        self._dirty.pop(key, None)

    def begin_anew(self, start: ProcessStart) -> None:
        """Look through all rows again, for hosts that have come from another shard."""
        self._start, self._cursor, self._rounds = start, b"", 2

    def _put_out(self, now: float, wanted: Callable[[Host], bool], most: int) -> None:
        resting = (host for host in self.hosts.values() if wanted(host) and self._is_resting(host, now))
        for host in list(islice(resting, most)):
            self._scheduler.leave(host)
            del self.hosts[host.key]

    def _is_resting(self, host: Host, now: float) -> bool:
        # A sitemap is leased until all of it is taken in, long after its slot is free again. And a host whose last
        # delay has not passed would come back without it, to be asked too early.
        is_busy = host.slots.in_use or host.leased or host.jobs or host.awaits_robots or host.key in self._dirty
        return not is_busy and max(host.slots.free_at) <= now
