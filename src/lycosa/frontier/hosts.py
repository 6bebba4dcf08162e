"""One host in memory: its row, its slots, and its queue in lanes.

A host is in exactly one `HostPlace`. Only hosts that have work or were asked a moment ago are in memory; the others are
rows on disk (`frontier.host_cache`). Whoever learns something of a host says so through a method of `Host`, which
changes the row and marks it to be written with the next commit; `host.row` is read by all and changed by nobody else.

A host's queue is divided into lanes (`frontier.lanes`); `frontier.queues` reads their entries from disk.

Pure: takes `now`, never reads a clock.
"""

from collections import deque
from collections.abc import Callable
from enum import StrEnum
from operator import itemgetter

import msgspec

from lycosa.frontier.lanes import NO_LANE, LaneWindow, TimedLane
from lycosa.frontier.politeness import MARGIN_S, Slots
from lycosa.frontier.rows import (
    DUE_LANE,
    KEY_END,
    MOST_BANDS,
    RETRY_LANE,
    HostRow,
    QueueEntry,
    RequestKind,
    lane_start,
)
from lycosa.records import Response
from lycosa.web import url_from_key

# What a host has to offer is the band of its best URL; these two come behind every band.
NO_OFFER = MOST_BANDS + 1
LAST_OFFER = NO_OFFER + 1  # whatever it has: others go first


class HostPlace(StrEnum):
    """Where a host is; always in exactly one place."""

    IDLE = "idle"  # nothing queued
    READY = "ready"  # may be asked now
    WAITING = "waiting"  # may be asked at a known time
    BUSY = "busy"  # all its slots are in use
    PARKED = "parked"  # waits after a failure
    SHARED = "shared"  # its address or its group has no free slot
    NAME = "name"  # its name is being resolved
    ROBOTS = "robots"  # its robots.txt is being fetched


class HostJob(msgspec.Struct, frozen=True):
    """A URL to be fetched from here before anything else: a robots.txt for another host, because that host redirects to
    it; or a step of a login."""

    url: str
    wanted_by: bytes = b""
    hops: int = 0
    answer: Callable[[Response], None] | None = None  # who hears of it instead: another shard wants it
    kind: RequestKind = RequestKind.ROBOTS


class Host(msgspec.Struct, eq=False):
    """One host with work. `windows` are its bands, best first; `available` counts their entries that are not leased.
    `dirty` is where the host cache finds hosts whose rows are to be written."""

    key: bytes
    row: HostRow
    slots: Slots
    delay_s: float
    dirty: "dict[bytes, Host]"
    alternates_direction: bool = False
    only_due: bool = False  # of its queue only what is due is given out
    # its name
    origin: str = ""
    host: str = ""
    port: int = 0
    # its queue
    windows: dict[int, LaneWindow] = {}
    available: int = 0
    due: TimedLane = NO_LANE
    retries: TimedLane = NO_LANE
    retries_from: float = 0.0  # until then its other URLs go before them
    late_at: float = 0.0  # when late entries may be looked for, if there is nothing else
    leased: set[bytes] = set()
    next_entries: list[QueueEntry] = []  # leased, but for the next turn: something else was asked for in their place
    # A window is read from committed rows; these two say what the open batch will change in them.
    out: set[bytes] = set()  # finished, but on disk until the next commit
    pending: dict[bytes, QueueEntry] = {}  # queued, but not on disk before the next commit
    # These go first: nothing of those who wait for them may be fetched before.
    jobs: deque[HostJob] = msgspec.field(default_factory=deque)
    awaits_robots: bool = False
    # its turn
    place: HostPlace = HostPlace.IDLE
    turn: int = 0
    spin: int = 0
    step: int = -1
    offer: int = 0
    offered: int = 0
    is_live: bool = False  # will be asked soon: holds back whoever has less to offer
    is_deferred: bool = False  # it has had its share: asked only when nobody else is to be asked soon
    waits_for_due: bool = False  # has nothing but what waits for its time
    woken_for: str = ""  # the share whose free slot is meant for it

    def __post_init__(self) -> None:
        key, row = self.key, self.row
        self.origin = url_from_key(key + KEY_END)
        authority = self.origin.partition("://")[2]
        name, colon, port = authority.rpartition(":")
        has_port = bool(colon) and not port.endswith("]")
        self.host = name if has_port else authority
        self.port = int(port) if has_port else (443 if self.origin.startswith("https") else 80)
        self.windows = {
            band: LaneWindow(
                start := lane_start(key, band), start + order, entries, alternates_direction=self.alternates_direction
            )
            for band, (order, entries) in sorted(row.lanes.items())
        }
        self.available = sum(map(len, self.windows.values()))
        self.due = TimedLane(key, DUE_LANE, entries=row.waits)
        self.retries = TimedLane(key, RETRY_LANE, entries=row.retries)

    def __repr__(self) -> str:
        return f"<Host {self.origin} {self.place.value} queued={self.row.queued} available={self.available}>"

    # what is learned of it

    def touch(self) -> None:
        """Mark the row to be written by the next commit."""
        self.dirty[self.key] = self

    def record_request(self, size_bytes: int, seconds: float, now_unix: float) -> None:
        """Record a request that has ended, whatever came of it."""
        row = self.row
        row.requests += 1
        row.bytes += size_bytes
        row.seconds += seconds
        row.last_asked = now_unix
        row.first_asked = row.first_asked or now_unix
        self.touch()

    def record_answer(self) -> None:
        """Record that the host answers: the failures before this do not count any more."""
        self.row.tries = self.row.failing = 0
        self.touch()

    def record_hsts(self, until_unix: float) -> None:
        """Record until when the host wants to be asked over https alone."""
        self.row.hsts_until = until_unix
        self.touch()

    def record_failure(self, *, tries: int = 0, failing: int = 0) -> None:
        """Record a failure that concerns the whole host (`tries`), or that does once several URLs in a row fail in the
        same way (`failing`)."""
        self.row.tries += tries
        self.row.failing += failing
        self.touch()

    def count(
        self,
        *,
        pages: int = 0,
        failed: int = 0,
        links: int = 0,
        misled: int = 0,
        folders_tried: int = 0,
        folders_found: int = 0,
        hints: int = 0,
        hints_true: int = 0,
    ) -> None:
        """Add to the counts of the host's row; `HostRow` says what each of them means."""
        row = self.row
        row.pages += pages
        row.failed += failed
        row.links += links
        row.misled += misled
        row.folders_tried += folders_tried
        row.folders_found += folders_found
        row.hints += hints
        row.hints_true += hints_true
        self.touch()

    def note_tables(self, known: int) -> None:
        """Record what is known of the host's tables of links."""
        self.row.tables = known
        self.touch()

    def note_volatile(self, known: int) -> None:
        """Record what is known of the host's tables of volatile information."""
        self.row.volatile = known
        self.touch()

    def set_address(self, address: str, until_unix: float) -> None:
        """Record the host's address, so that a restart need not look it up again."""
        self.row.address, self.row.address_until = address, until_unix
        self.touch()

    def forget_address(self) -> None:
        """Look the address up again before the next request: nobody answers there."""
        self.row.address_until = 0.0
        self.touch()

    def wait(self, now: float, wait_s: float, reason: str, now_unix: float) -> None:
        """Nothing is asked of this host for so long."""
        self.slots.not_before(now + wait_s + MARGIN_S)
        # By the wall clock, too: a host that asked for an hour is left alone for it by the next process as well.
        self.row.wait_reason, self.row.wait_until = reason, now_unix + wait_s
        self.touch()

    def hold_back_retries(self, until: float) -> None:
        """Let the host's other URLs go before those that have failed, until then."""
        # In memory only: after a restart a retry may come a little early among its host's URLs, never against
        # politeness.
        self.retries_from = max(self.retries_from, until)

    # its queue

    def window(self, band: int) -> LaneWindow:
        window = self.windows.get(band)
        if window is None:
            start = lane_start(self.key, band)
            window = LaneWindow(start, start, 0, alternates_direction=self.alternates_direction)
            self.windows = dict(sorted([*self.windows.items(), (band, window)], key=itemgetter(0)))
        return window

    def add(self, entry: QueueEntry, window: LaneWindow, room: int) -> None:
        """Add a new entry to its band."""
        self.row.queued += 1
        self.available += 1
        self.pending[entry.key] = entry
        # It may have left this very place a moment ago, for another band.
        self.out.discard(entry.key)
        window.add(entry, room)
        self.touch()

    def remove(self, entry_key: bytes, band: int) -> None:
        """Take an entry that is not leased out of its band."""
        self.row.queued -= 1
        self.available -= 1
        self.out.add(entry_key)
        self.pending.pop(entry_key, None)
        self.window(band).remove(entry_key)

    def next_sequence(self) -> bytes:
        self.row.tail += 1
        return (self.row.tail - 1).to_bytes(8)

    def forget_queue(self) -> None:
        """Drop the queue from memory; it is read again from disk if the host is wanted again."""
        for window in self.windows.values():
            window.forget()
        self.leased.difference_update([entry.key for entry in self.next_entries])
        self.next_entries.clear()
        self.due.forget(self.row.waits)
        self.retries.forget(self.row.retries)

    def note_lanes(self) -> None:
        """Write into the row how many entries every band has, and where its first one is."""
        # Deleted rows are tombstones that a seek walks over: from a lane's start, after 600,000 of them, it took 38 ms,
        # from the remembered first entry 0.007 ms. What is leased counts: after a crash it has to be found.
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

    def on_committed(self) -> None:
        """What was pending is on disk, what was finished is gone."""
        self.pending = {}
        self.out = set()

    @property
    def has_work(self) -> bool:
        """Return whether there is anything to fetch now, politeness aside."""
        return self.has_others or bool(self.retries.ready or self.jobs)

    @property
    def has_others(self) -> bool:
        """Return whether there is anything to fetch now, beside retries."""
        return bool((self.available and not self.only_due) or self.due.ready or self.next_entries)

    @property
    def retries_left(self) -> int:
        """The number of its URLs that wait for a retry, without those in flight."""
        place = len(self.key) + 1
        return self.row.retries - sum(key[place] == RETRY_LANE for key in self.leased)

    def is_due(self, now: float) -> bool:
        """Return whether something is due that does not wait for better URLs; a retry only if there is nothing else."""
        return self.due.is_due(now) or (not self.available and self.retries.is_due(now))

    @property
    def waits_until(self) -> float:
        """The time at which the next of the URLs that wait for a time is due."""
        at = min(self.due.at, self.retries.at)
        return min(at, self.late_at) if self.row.late else at
