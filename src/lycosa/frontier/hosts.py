"""A host in memory: its row, its slots, the front of its queue.

A host is in exactly one `Place`. In memory are the hosts that have work or were asked a moment ago; the rest is a row
on disk. The front holds the next entries of the main lane; what lies behind is read in one range when it runs low.
"""

from collections import deque
from enum import Enum

import msgspec

from lycosa.frontier.politeness import Slots
from lycosa.frontier.rows import Entry, HostRow, Lane, lane_start, queue_key
from lycosa.web.url import from_key


class Place(Enum):
    """Where a host is."""

    IDLE = "idle"  # nothing queued
    READY = "ready"  # may be asked now
    WAITING = "waiting"  # may be asked at a known time
    BUSY = "busy"  # all its slots are in use
    PARKED = "parked"  # waits after a failure
    ADDRESS = "address"  # its address has no free slot
    NAME = "name"  # its name is being resolved
    ROBOTS = "robots"  # its robots.txt is being fetched
    COMMIT = "commit"  # its next entries are in the batch that is not committed yet


class RobotsJob(msgspec.Struct, frozen=True):
    """A robots.txt that is wanted from here for another host, because that host redirects to it."""

    url: str
    wanted_by: bytes
    hops: int


class Host:
    """One host with work. `loaded` is the sequence up to which the main lane has been read into the front or leased."""

    __slots__ = (
        "awaits_robots",
        "committed_tail",
        "delay_s",
        "due",
        "front",
        "host",
        "is_dirty",
        "jobs",
        "key",
        "leased",
        "loaded",
        "origin",
        "place",
        "port",
        "retry_at",
        "retry_loaded",
        "row",
        "slots",
        "turn",
    )

    def __init__(self, key: bytes, row: HostRow, slots: Slots, delay_s: float) -> None:
        self.key, self.row, self.slots, self.delay_s = key, row, slots, delay_s
        self.origin = from_key(key + b"\0")
        authority = self.origin.partition("://")[2]
        name, colon, port = authority.rpartition(":")
        has_port = bool(colon) and not port.endswith("]")
        self.host = name if has_port else authority
        self.port = int(port) if has_port else (443 if self.origin.startswith("https") else 80)
        self.front: deque[Entry] = deque()
        self.due: deque[Entry] = deque()  # of the retry lane, their time has come
        self.jobs: deque[RobotsJob] = deque()
        self.leased: set[int] = set()
        self.loaded = row.head
        self.committed_tail = row.tail
        self.awaits_robots = False
        self.retry_at = 0.0 if row.retries else float("inf")
        self.retry_loaded = lane_start(key, Lane.RETRY)
        self.place = Place.IDLE
        self.turn = 0
        self.is_dirty = False

    def __repr__(self) -> str:
        return f"<Host {self.origin} {self.place.value} queued={self.row.queued} front={len(self.front)}>"

    @property
    def has_unread(self) -> bool:
        """Are there entries of the main lane behind the front?"""
        return self.loaded < self.row.tail

    def add(self, entry: Entry, *, room: int) -> None:
        """Count a new entry, and take it into the front if nothing lies between and there is room."""
        self.row.queued += 1
        if not self.has_unread and len(self.front) < room:
            self.front.append(entry)
            self.loaded += 1
        self.row.tail += 1
        self.is_dirty = True

    def next_key(self) -> bytes:
        return queue_key(self.key, Lane.MAIN, self.row.tail)

    def settle_head(self) -> None:
        """Moves the head to the oldest entry that is not done."""
        oldest = self.front[0].sequence if self.front else self.loaded
        self.row.head = min(oldest, *self.leased) if self.leased else oldest

    @property
    def has_work(self) -> bool:
        """Is there anything that could be asked for now, politeness aside?"""
        return bool(self.front or self.due or self.jobs or self.has_unread)
