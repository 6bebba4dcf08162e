"""The lanes of a host's queue in memory: windows over the bands of the policy, and lanes in which URLs wait for a time.

The bands of the policy are lanes through which a `LaneWindow` moves; in a `TimedLane` URLs wait for a time. Only the
next entries of a lane are in memory; `frontier.queues` reads the others from disk, in one range, when a window is
spent. Invariant of a window [lo, hi): every entry of its lane with lo ≤ key < hi that is not out (leased, or finished a
moment ago) is in `entries`, sorted by key; `unread` counts the entries outside.

Pure: takes `now`, never reads a clock. A host has its lanes (`frontier.hosts`); `frontier.queues` fills them.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from operator import attrgetter

from lycosa.frontier.rows import DUE_COUNTER_BITS, DUE_LANE, QueueEntry, lane_start

NEVER = float("inf")

_key = attrgetter("key")


class TimedLane:
    """A lane in which URLs of one host wait for a time, sorted by it. A host has two: in `DUE_LANE` a URL goes before
    the host's others once it is due, in `RETRY_LANE` are those that have failed, and they go behind the others.

    `ready` are the entries that are due; `at` is when the first of the others is, as far as known, and `next` is that
    entry; what lies before the key `loaded` was read."""

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
        """Start over: so many `entries` are to be read again from disk."""
        self.ready.clear()
        self.loaded = self.start
        self.at = 0.0 if entries else NEVER
        self.next: QueueEntry | None = None

    def is_due(self, now: float) -> bool:
        return bool(self.ready) or self.at <= now

    def add(self, entry: QueueEntry, due: float) -> None:
        """Note an entry that the open batch holds."""
        if due < self.at:
            self.at, self.next = due, entry

    def key(self, due_unix: float, counter: int) -> bytes:
        """Return the key under which a URL waits for its time; never below what was read already."""
        # A key below `loaded` would be found only after a restart. Entries of a run before may stand right behind what
        # was read, so a key that would come too early goes to the next millisecond rather than to the next number.
        number = counter % (1 << DUE_COUNTER_BITS)
        order = int(due_unix * 1000) << DUE_COUNTER_BITS | number
        if len(self.loaded) > len(self.start):
            loaded = int.from_bytes(self.loaded[-9:-1])
            if order <= loaded:
                order = ((loaded >> DUE_COUNTER_BITS) + 1) << DUE_COUNTER_BITS | number
        return self.start + order.to_bytes(8)


NO_LANE = TimedLane(b"", DUE_LANE, entries=0)  # of a host that is not made yet


class LaneWindow:
    """The part of one band of one host that is in memory.

    A window that only moves forwards keeps its lo at the lane's start, so that `entries[0]` is the lane's first entry:
    the oldest, or the leftmost leaf of the host's trie. One that `alternates_direction` goes on from the key that it
    took last (`at`) and turns round at the lane's ends; what it has passed waits for the way back."""

    __slots__ = ("alternates_direction", "at", "end", "entries", "forwards", "hi", "lo", "start", "unread")

    def __init__(self, start: bytes, head: bytes, unread: int, *, alternates_direction: bool = False) -> None:
        self.alternates_direction = alternates_direction
        self.start, self.end = start, start[:-1] + bytes((start[-1] + 1,))
        self.lo, self.hi = start, head if unread else self.end
        self.entries: list[QueueEntry] = []
        # From `head` on, where the row says that the first entry is: what lies before it are tombstones.
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
        """Return whether nothing lies further on, in the direction of the window."""
        return self.hi >= self.end if self.forwards else self.lo <= self.start

    def add(self, entry: QueueEntry, room: int) -> None:
        """Count a new entry, and take it in if it lies in the window."""
        # An entry outside is on disk with the next commit, or in the host's `pending` until then: it is found when the
        # window gets there.
        key, entries = entry.key, self.entries
        if not self.unread and not self.alternates_direction:  # nothing lies outside
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
        """Forget what the window has passed, or what comes last on its way; it is still on disk, or in the batch."""
        entries = self.entries
        if self.alternates_direction:
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
        """Forget what lies behind the place that the window has come to."""
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
        """Return the index of the next entry on the way; outside of `entries` if there is none."""
        if self.forwards:
            return bisect_left(self.entries, self.at, key=_key) if self.alternates_direction else 0
        return bisect_right(self.entries, self.at, key=_key) - 1

    @property
    def is_spent(self) -> bool:
        """Return whether the window has to be read on, or turned round, before anything can be taken."""
        return not 0 <= self._place() < len(self.entries)

    def take(self) -> QueueEntry | None:
        # The place is kept as a key, not as an index: entries come in before and behind it while the window is used.
        if self.is_spent:
            return None
        entry = self.entries.pop(self._place())
        self.at = entry.key
        return entry

    def return_to_queue(self, entry: QueueEntry) -> None:
        """Return an entry that was taken, to be the first again if it can be."""
        if not self.lo <= entry.key < self.hi:
            self.unread += 1
            return
        self.entries.insert(bisect_left(self.entries, entry.key, key=_key), entry)

    def remove(self, key: bytes) -> None:
        """Take out an entry that moves to another lane."""
        # If it is not in memory, it is one of those outside; they are counted, not known.
        at = bisect_left(self.entries, key, key=_key)
        if at < len(self.entries) and self.entries[at].key == key:
            del self.entries[at]
        else:
            self.unread -= 1

    def extend(self, found: Iterable[QueueEntry], upto: bytes, room: int) -> None:
        """Take in what was found between the window's edge and `upto`, on the side it moves to."""
        new = sorted(found, key=_key)
        # Counted, not looked at: how many are left outside must come out at 0 when the lane's end is reached.
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
        """Move on from a spent window: what lies behind it counts as unread again."""
        self.unread += len(self.entries)
        self.entries = []
        if self.forwards:
            self.lo = self.at = self.hi
        else:
            self.hi = self.at = self.lo

    def forget(self) -> None:
        """Start over: everything is to be read again from disk."""
        # Of a host given up, whose entries in memory would only take the place of others.
        self.unread = len(self)
        self.entries = []
        self.lo = self.hi = self.start
