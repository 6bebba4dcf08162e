"""A host in memory: its row, its slots, a window over each of its lanes.

A host is in exactly one `Place`. In memory are the hosts that have work or were asked a moment ago; the rest is a row
on disk. A window holds the next entries of a lane; what lies outside is read in one range when it is empty.
"""

from collections import deque
from collections.abc import Callable
from enum import StrEnum
from operator import itemgetter

import msgspec

from lycosa.frontier.politeness import Slots
from lycosa.frontier.rows import DUE_LANE, KEY_END, MOST_BANDS, RETRY_LANE, Entry, HostRow, lane_start
from lycosa.frontier.timed import TimedLane
from lycosa.frontier.window import Window
from lycosa.records import Response
from lycosa.web.url import from_key


class Place(StrEnum):
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
        self.origin = from_key(key + KEY_END)
        authority = self.origin.partition("://")[2]
        name, colon, port = authority.rpartition(":")
        has_port = bool(colon) and not port.endswith("]")
        self.host = name if has_port else authority
        self.port = int(port) if has_port else (443 if self.origin.startswith("https") else 80)
        self.group = ""  # whose slots it shares, beside those of its address
        self.windows = {
            band: Window(start := lane_start(key, band), start + order, entries, swings=swings)
            for band, (order, entries) in sorted(row.lanes.items())
        }
        self.available = sum(map(len, self.windows.values()))
        self.due = TimedLane(key, DUE_LANE, entries=row.waits)
        self.retries = TimedLane(key, RETRY_LANE, entries=row.retries)
        self.retries_from = 0.0  # until then its other URLs go before them
        self.jobs: deque[RobotsJob] = deque()
        self.leased: set[bytes] = set()
        self.first: list[Entry] = []  # leased, but for the next turn: something else was asked for in their place
        self.out: set[bytes] = set()  # settled, but on disk until the next commit
        self.pending: dict[bytes, Entry] = {}  # queued, but not on disk before the next commit
        self.awaits_robots = False
        self.late_at = 0.0  # when late entries may be looked for, if there is nothing else
        self.place = Place.IDLE
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

    def window(self, band: int) -> Window:
        window = self.windows.get(band)
        if window is None:
            start = lane_start(self.key, band)
            window = Window(start, start, 0, swings=self._swings)
            self.windows = dict(sorted([*self.windows.items(), (band, window)], key=itemgetter(0)))
        return window

    def add(self, entry: Entry, *, room: int) -> None:
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
