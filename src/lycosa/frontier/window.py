"""The part of a lane that is in memory: a window [lo, hi) over its sorted keys.

Invariant: every entry of the lane with lo ≤ key < hi that is not out (leased, or settled a moment ago) is in `entries`,
in key order; `unread` counts the entries outside. A window that only ever moves forwards keeps its lo at the lane's
start, so that `entries[0]` is the lane's first entry: the oldest, or the leftmost leaf of the host's trie. One that
swings goes on from the key it took last and turns round at the lane's ends; what it has passed waits for the way back.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from operator import attrgetter

from lycosa.frontier.rows import Entry

_key = attrgetter("key")


class Window:
    """One lane of one host, in memory. `forwards` is the way it moves; one that swings turns round at the ends."""

    __slots__ = ("at", "end", "entries", "forwards", "hi", "lo", "start", "swings", "unread")

    def __init__(self, start: bytes, head: bytes, unread: int, *, swings: bool = False) -> None:
        self.swings = swings
        self.start, self.end = start, start[:-1] + bytes((start[-1] + 1,))
        self.lo, self.hi = start, head if unread else self.end
        self.entries: list[Entry] = []
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

    def add(self, entry: Entry, room: int) -> None:
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

    def take(self) -> Entry | None:
        if self.is_spent:
            return None
        entry = self.entries.pop(self._place())
        self.at = entry.key
        return entry

    def give_back(self, entry: Entry) -> None:
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

    def extend(self, found: Iterable[Entry], upto: bytes, room: int) -> None:
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
