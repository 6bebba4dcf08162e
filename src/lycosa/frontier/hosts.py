"""One host in memory: its row, its slots and its queue, which is divided into lanes.

A host is in exactly one `HostPlace`. Only hosts that have work or were asked a moment ago are in memory; the others are
rows on disk (`frontier.host_cache`). Of a lane only the next entries are in memory, in a `LaneWindow` (the bands of the
policy) or a `TimedLane` (URLs that wait for a time); `frontier.queues` reads on from disk when a window is empty.

Invariant of a window: every entry of its lane with lo ≤ key < hi that is not out (leased, or finished a moment ago) is
in `entries`, sorted by key. Pure: takes `now`, never reads a clock.
"""

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Iterable
from enum import StrEnum
from operator import attrgetter, itemgetter

import msgspec

from lycosa.frontier.politeness import Slots
from lycosa.frontier.rows import DUE_LANE, KEY_END, MOST_BANDS, RETRY_LANE, HostRow, QueueEntry, lane_start
from lycosa.records import Response
from lycosa.web import url_from_key

DUE_COUNTER_BITS = 20  # the order in the lane is the time in milliseconds and a counter
NEVER = float("inf")


class TimedLane:
    """One such lane of one host. `ready` are the entries that are due; `at` is when the first of the others is, as far
    as known, and `next` that entry; what lies before the key `loaded` was read."""

    __slots__ = ("at", "loaded", "next", "ready", "start")

    def __init__(self, host_key: bytes, lane: int, *, entries: int) -> None:
        self.start = lane_start(host_key, lane)
        self.ready: list[QueueEntry] = []
        self.forget(entries)

    def __repr__(self) -> str:
        return f"<TimedLane {len(self.ready)} ready, the next at {self.at:.3f}>"

    @property
    def end(self) -> bytes:
        return self.start[:-1] + bytes((self.start[-1] + 1,))

    def forget(self, entries: int) -> None:
        """Everything is to be read anew; there are so many entries."""
        self.ready.clear()
        self.loaded = self.start
        self.at = 0.0 if entries else NEVER
        self.next: QueueEntry | None = None

    def is_due(self, now: float) -> bool:
        return bool(self.ready) or self.at <= now

    def add(self, entry: QueueEntry, due: float) -> None:
        """Counts an entry in that is in the batch."""
        if due < self.at:
            self.at, self.next = due, entry

    def key(self, due_unix: float, counter: int) -> bytes:
        """The key under which a URL waits for its time; never before what was read already.

        Entries of a run before may stand right behind what was read, so a key that would come too early goes to the
        next millisecond rather than to the next number.
        """
        number = counter % (1 << DUE_COUNTER_BITS)
        order = int(due_unix * 1000) << DUE_COUNTER_BITS | number
        if len(self.loaded) > len(self.start):
            loaded = int.from_bytes(self.loaded[-9:-1])
            if order <= loaded:
                order = ((loaded >> DUE_COUNTER_BITS) + 1) << DUE_COUNTER_BITS | number
        return self.start + order.to_bytes(8)


def due_of(entry: QueueEntry) -> float:
    """When an entry of such a lane is due, by the wall clock."""
    return (int.from_bytes(entry.order) >> DUE_COUNTER_BITS) / 1000


_key = attrgetter("key")


class LaneWindow:
    """One lane of one host, in memory. `forwards` is the way it moves; one that swings turns round at the ends."""

    __slots__ = ("at", "end", "entries", "forwards", "hi", "lo", "start", "swings", "unread")

    def __init__(self, start: bytes, head: bytes, unread: int, *, swings: bool = False) -> None:
        self.swings = swings
        self.start, self.end = start, start[:-1] + bytes((start[-1] + 1,))
        self.lo, self.hi = start, head if unread else self.end
        self.entries: list[QueueEntry] = []
        self.unread = unread
        self.forwards = True
        self.at = start  # the key that was taken last

    def __repr__(self) -> str:
        return f"<Window {len(self.entries)} of {len(self)}>"

    def __len__(self) -> int:
        return len(self.entries) + self.unread

    @property
    def first(self) -> bytes:
        """No entry lies before this key."""
        if self.lo > self.start and self.unread:
            return self.start
        return self.entries[0].key if self.entries else self.hi

    @property
    def is_at_end(self) -> bool:
        """Is there nothing further on, the way it moves?"""
        return self.hi >= self.end if self.forwards else self.lo <= self.start

    def add(self, entry: QueueEntry, room: int) -> None:
        """Counts a new entry, and takes it in if it lies in the window."""
        key, entries = entry.key, self.entries
        if not self.unread and not self.swings:  # nothing lies outside
            self.lo, self.hi = self.start, self.end
        if not self.lo <= key < self.hi:
            self.unread += 1
            return
        if entries and key < entries[-1].key:
            entries.insert(bisect_left(entries, key, key=_key), entry)
        else:
            entries.append(entry)
        if len(entries) > room:
            self._cut(room)

    def _cut(self, room: int) -> None:
        """Forgets what it has passed, or what comes last on its way; it is still on disk, or in the batch."""
        entries = self.entries
        if self.swings:
            self._drop_passed()
            if len(entries) <= room:
                return
        self.unread += len(entries) - room
        if self.forwards:
            self.hi = entries[room].key
            del entries[room:]
        else:
            del entries[:-room]
            self.lo = entries[0].key

    def _drop_passed(self) -> None:
        """Forgets what lies behind the place it has come to."""
        place, entries = self._place(), self.entries
        if self.forwards:
            self.unread += place
            del entries[:place]
            self.lo = max(self.lo, min(self.at, self.hi))
        else:
            self.unread += len(entries) - place - 1
            del entries[place + 1 :]
            self.hi = min(self.hi, max(self.at + b"\0", self.lo))

    def _place(self) -> int:
        """Where the next entry on the way stands; outside of `entries` if there is none."""
        if self.forwards:
            return bisect_left(self.entries, self.at, key=_key) if self.swings else 0
        return bisect_right(self.entries, self.at, key=_key) - 1

    @property
    def is_spent(self) -> bool:
        """Is there nothing more to take before it is read on, or turned round?"""
        return not 0 <= self._place() < len(self.entries)

    def take(self) -> QueueEntry | None:
        if self.is_spent:
            return None
        entry = self.entries.pop(self._place())
        self.at = entry.key
        return entry

    def give_back(self, entry: QueueEntry) -> None:
        """An entry that was taken is wanted again, first if it can be."""
        if not self.lo <= entry.key < self.hi:
            self.unread += 1
            return
        self.entries.insert(bisect_left(self.entries, entry.key, key=_key), entry)

    def remove(self, key: bytes) -> None:
        """An entry leaves the lane for another one."""
        at = bisect_left(self.entries, key, key=_key)
        if at < len(self.entries) and self.entries[at].key == key:
            del self.entries[at]
        else:
            self.unread -= 1

    def extend(self, found: Iterable[QueueEntry], upto: bytes, room: int) -> None:
        """Takes in what lies between the window's edge and `upto`, on the side it moves to."""
        new = sorted(found, key=_key)
        self.unread -= len(new)
        if self.forwards:
            self.entries += new
            self.hi = upto
        else:
            self.entries[:0] = new
            self.lo = upto
        if len(self.entries) > room:
            self._cut(room)

    def leave(self) -> None:
        """The window is spent and moves on: what lies behind it is unread again."""
        self.unread += len(self.entries)
        self.entries = []
        if self.forwards:
            self.lo = self.at = self.hi
        else:
            self.hi = self.at = self.lo

    def forget(self) -> None:
        """Everything is to be read anew."""
        self.unread = len(self)
        self.entries = []
        self.lo = self.hi = self.start


class HostPlace(StrEnum):
    """Where a host is."""

    IDLE = "idle"  # nothing queued
    READY = "ready"  # may be asked now
    WAITING = "waiting"  # may be asked at a known time
    BUSY = "busy"  # all its slots are in use
    PARKED = "parked"  # waits after a failure
    SHARED = "shared"  # its address or its group has no free slot
    NAME = "name"  # its name is being resolved
    ROBOTS = "robots"  # its robots.txt is being fetched


class RobotsJob(msgspec.Struct, frozen=True):
    """A robots.txt that is wanted from here for another host, because that host redirects to it."""

    url: str
    wanted_by: bytes
    hops: int
    answer: Callable[[Response], None] | None = None  # who hears of it instead: another shard wants it


NO_OFFER = MOST_BANDS + 1
LAST_OFFER = NO_OFFER + 1  # whatever it has: others go first


class Host:
    """One host with work. `windows` are its lanes by band, best first; `available` counts those not leased."""

    __slots__ = (
        "_swings",
        "available",
        "awaits_robots",
        "delay_s",
        "due",
        "first",
        "group",
        "host",
        "is_held",
        "is_live",
        "is_put_last",
        "jobs",
        "key",
        "late_at",
        "leased",
        "offer",
        "offered",
        "origin",
        "out",
        "pending",
        "place",
        "port",
        "retries",
        "retries_from",
        "row",
        "slots",
        "spin",
        "step",
        "turn",
        "waits_for_due",
        "windows",
        "woken_for",
    )

    def __init__(self, key: bytes, row: HostRow, slots: Slots, delay_s: float, *, swings: bool = False) -> None:
        self._swings = swings
        self.key, self.row, self.slots, self.delay_s = key, row, slots, delay_s
        self.origin = url_from_key(key + KEY_END)
        authority = self.origin.partition("://")[2]
        name, colon, port = authority.rpartition(":")
        has_port = bool(colon) and not port.endswith("]")
        self.host = name if has_port else authority
        self.port = int(port) if has_port else (443 if self.origin.startswith("https") else 80)
        self.group = ""  # whose slots it shares, beside those of its address
        self.windows = {
            band: LaneWindow(start := lane_start(key, band), start + order, entries, swings=swings)
            for band, (order, entries) in sorted(row.lanes.items())
        }
        self.available = sum(map(len, self.windows.values()))
        self.due = TimedLane(key, DUE_LANE, entries=row.waits)
        self.retries = TimedLane(key, RETRY_LANE, entries=row.retries)
        self.retries_from = 0.0  # until then its other URLs go before them
        self.jobs: deque[RobotsJob] = deque()
        self.leased: set[bytes] = set()
        self.first: list[QueueEntry] = []  # leased, but for the next turn: something else was asked for in their place
        self.out: set[bytes] = set()  # settled, but on disk until the next commit
        self.pending: dict[bytes, QueueEntry] = {}  # queued, but not on disk before the next commit
        self.awaits_robots = False
        self.late_at = 0.0  # when late entries may be looked for, if there is nothing else
        self.place = HostPlace.IDLE
        self.turn = self.spin = 0
        self.step = -1
        self.offer = self.offered = 0
        self.is_live = False  # will be asked soon: holds back whoever has less to offer
        self.is_put_last = False  # it has had its share: asked only when nobody else is to be asked soon
        self.waits_for_due = False  # has nothing but what waits for its time
        self.is_held = False  # of its queue only what is due is given out
        self.woken_for = ""  # the share whose free slot is meant for it

    def __repr__(self) -> str:
        return f"<Host {self.origin} {self.place.value} queued={self.row.queued} available={self.available}>"

    def window(self, band: int) -> LaneWindow:
        window = self.windows.get(band)
        if window is None:
            start = lane_start(self.key, band)
            window = LaneWindow(start, start, 0, swings=self._swings)
            self.windows = dict(sorted([*self.windows.items(), (band, window)], key=itemgetter(0)))
        return window

    def add(self, entry: QueueEntry, *, room: int) -> None:
        """Count a new entry of a band."""
        self.row.queued += 1
        self.available += 1
        self.pending[entry.key] = entry
        self.out.discard(entry.key)
        self.window(entry.lane).add(entry, room)

    def remove(self, entry_key: bytes, band: int) -> None:
        """An entry that is not leased leaves its band."""
        self.row.queued -= 1
        self.available -= 1
        self.out.add(entry_key)
        self.pending.pop(entry_key, None)
        self.window(band).remove(entry_key)

    def next_sequence(self) -> bytes:
        self.row.tail += 1
        return (self.row.tail - 1).to_bytes(8)

    def note_lanes(self) -> None:
        """Writes into the row how many entries every lane has, and where its first one is."""
        leased: dict[int, list[bytes]] = {}
        start = len(self.key) + 1
        for key in self.leased:
            leased.setdefault(key[start], []).append(key)
        lanes = {}
        for band, window in self.windows.items():
            out = leased.get(band, [])
            if entries := len(window) + len(out):
                first = min((window.first, *out))
                lanes[band] = (first[start + 1 :] if first < window.end else b"", entries)
        self.row.lanes = lanes

    def committed(self) -> None:
        """What was pending is on disk, what was settled is gone."""
        self.pending = {}
        self.out = set()

    @property
    def has_work(self) -> bool:
        """Is there anything that could be asked for now, politeness aside?"""
        return bool(self.has_others or self.retries.ready or self.jobs)

    @property
    def has_others(self) -> bool:
        """Is there anything that could be asked for now, beside retries?"""
        return bool((self.available and not self.is_held) or self.due.ready or self.first)

    @property
    def retries_left(self) -> int:
        """How many of its URLs wait for another try; not those that are asked for now."""
        place = len(self.key) + 1
        return self.row.retries - sum(key[place] == RETRY_LANE for key in self.leased)

    def is_due(self, now: float) -> bool:
        """Has the time of something come that does not wait for better URLs? Of a retry, if there is nothing else."""
        return self.due.is_due(now) or (not self.available and self.retries.is_due(now))

    @property
    def waits_until(self) -> float:
        """When there is something to be asked for that waits for its time."""
        at = min(self.due.at, self.retries.at)
        return min(at, self.late_at) if self.row.late else at
