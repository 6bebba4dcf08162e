"""A compressed trie of URL keys: many keys in few bytes, in order, with counts of subtrees.

Keys are bytes, host first as `lycosa.web.url.url_key` makes them, so that a domain, a host and a folder are subtrees:
all keys with one prefix. They lie in immutable compressed segments under a small sorted front that takes what is new.
A full front becomes a segment, together with every segment that is not much larger, so that sizes grow geometrically:
a key is written anew a few times, and there are never more than a few segments to look into.

Invariants: a key is in the front or live in one segment, never both, so counts add up; at most `FRONT_MOST` keys are in
the front; a segment of which more than half is gone is written anew. Pure: no I/O, no clock. Not for two threads.
What a walk shows of changes made during it is not defined, except that it ends and shows every key that stayed.
"""

import sys
from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import msgspec

from lycosa.frontier.runs import RUN_KEYS, ahead, behind, merged, merged_back
from lycosa.frontier.segment import Segment

# About 1 MB of URLs. Half of it would mean one segment more to look into, twice of it one less.
FRONT_MOST = 8_192
# A segment is at least this many times as large as all that came after it. With 2 a key of two million was written six
# times and there were six segments at most; with 4 eight times and four.
_GROWTH = 2


class TrieStats(msgspec.Struct, frozen=True):
    """Keys and memory of a trie; `gone` are removed keys whose place is not free yet."""

    keys: int
    front: int
    gone: int
    segments: int
    segment_bytes: int
    front_bytes: int


class UrlTrie:
    """A sorted set of byte keys. `UrlTrie(keys)` takes any order, `UrlTrie.from_sorted` reads a sorted stream."""

    def __init__(self, keys: Iterable[bytes] = ()) -> None:
        self._front: list[bytes] = []
        self._segments: list[Segment] = []  # the largest and oldest first
        self.update(keys)

    @classmethod
    def from_sorted(cls, keys: Iterable[bytes]) -> "UrlTrie":
        """A trie of one segment from keys that ascend, as a scan of the state gives them. ValueError if they do not."""
        trie = cls()
        if (segment := Segment.of(_ascending(keys))).size:
            trie._segments.append(segment)
        return trie

    # membership and change

    def __contains__(self, key: bytes) -> bool:
        return self._is_in_front(key) or any(_has(segment, key) for segment in self._segments)

    def has_many(self, keys: Sequence[bytes]) -> list[bool]:
        """Membership of each; asked in key order, so that neighbours share the work."""
        known = {key: key in self for key in sorted(set(keys))}
        return [known[key] for key in keys]

    def add(self, key: bytes) -> bool:
        """True if the key is new."""
        if self._is_in_front(key):
            return False
        for segment in self._segments:
            if (spot := segment.find(key)) is not None:
                return segment.bring_back(spot)
        insort(self._front, key)
        if len(self._front) >= FRONT_MOST:
            self._flush()
        return True

    def update(self, keys: Iterable[bytes]) -> int:
        """Adds all of them, much faster than one by one; returns how many were new."""
        rest, added = iter(keys), 0
        while some := list(islice(rest, FRONT_MOST)):
            added += self._add_sorted(sorted(set(some)))
        return added

    def discard(self, key: bytes) -> bool:
        """True if the key was here."""
        if self._is_in_front(key):
            del self._front[bisect_left(self._front, key)]
            return True
        for segment in self._segments:
            if (spot := segment.find(key)) is not None:
                was_here = segment.take(spot)
                if segment.live * 2 < segment.size:
                    self._rewrite(segment)
                return was_here
        return False

    # counts

    def __len__(self) -> int:
        return len(self._front) + sum(segment.live for segment in self._segments)

    def rank(self, key: bytes) -> int:
        """How many keys lie before `key`."""
        return bisect_left(self._front, key) + sum(segment.rank(key) for segment in self._segments)

    def count(self, prefix: bytes) -> int:
        """The size of a subtree: keys that start with `prefix`. Two searches a segment, however large it is."""
        end = prefix_end(prefix)
        return (len(self) if end is None else self.rank(end)) - self.rank(prefix)

    # leaves in order

    def forwards(self, start: bytes = b"", end: bytes | None = None) -> Iterator[bytes]:
        """The keys from `start` up to, not including, `end`, ascending."""
        runs = [segment.forwards(start) for segment in self._segments]
        for keys in merged([ahead(self._front, start), *runs]):
            if end is not None and keys[-1] >= end:
                yield from keys[: bisect_left(keys, end)]
                return
            yield from keys

    def backwards(self, end: bytes | None = None, start: bytes = b"") -> Iterator[bytes]:
        """The keys below `end` (None: all) down to `start`, descending."""
        runs = [segment.backwards(end) for segment in self._segments]
        for keys in merged_back([behind(self._front, end), *runs]):
            if keys[0] < start:
                yield from reversed(keys[bisect_left(keys, start) :])
                return
            yield from reversed(keys)

    def __iter__(self) -> Iterator[bytes]:
        return self.forwards()

    def __reversed__(self) -> Iterator[bytes]:
        return self.backwards()

    def subtree(self, prefix: bytes) -> Iterator[bytes]:
        """The keys that start with `prefix`, ascending."""
        return self.forwards(prefix, prefix_end(prefix))

    def at_or_after(self, key: bytes) -> bytes | None:
        """The leftmost leaf that is not before `key`; None if all are."""
        return next(self.forwards(key), None)

    def before(self, key: bytes) -> bytes | None:
        """The rightmost leaf before `key`; None if there is none."""
        return next(self.backwards(key), None)

    def leftmost(self, prefix: bytes = b"") -> bytes | None:
        """The first key of a subtree; None if it is empty."""
        return next(self.subtree(prefix), None)

    def rightmost(self, prefix: bytes = b"") -> bytes | None:
        """The last key of a subtree; None if it is empty."""
        return next(self.backwards(prefix_end(prefix), prefix), None)

    def branches(self, prefix: bytes, separator: bytes = b"/") -> Iterator[tuple[bytes, int]]:
        """The subtrees one separator below `prefix`, with their sizes, in order; a key without a further separator is
        one by itself, of size 1. Takes a few searches a branch, however large it is."""
        key = self.leftmost(prefix)
        while key is not None and key.startswith(prefix):
            cut = key.find(separator, len(prefix))
            if cut < 0:
                yield key, 1
                key = self.at_or_after(key + b"\0")
                continue
            branch = key[: cut + len(separator)]
            yield branch, self.count(branch)
            end = prefix_end(branch)
            key = None if end is None else self.at_or_after(end)

    def stats(self) -> TrieStats:
        return TrieStats(
            keys=len(self),
            front=len(self._front),
            gone=sum(segment.size - segment.live for segment in self._segments),
            segments=len(self._segments),
            segment_bytes=sum(segment.size_bytes() for segment in self._segments),
            front_bytes=sys.getsizeof(self._front) + sum(map(sys.getsizeof, self._front)),
        )

    def __repr__(self) -> str:
        return f"<UrlTrie {len(self):,} keys, {len(self._front):,} of them in front of {self._segments}>"

    # inside

    def _is_in_front(self, key: bytes) -> bool:
        at = bisect_left(self._front, key)
        return at < len(self._front) and self._front[at] == key

    def _add_sorted(self, keys: list[bytes]) -> int:
        """Adds distinct sorted keys; returns how many were new."""
        added = 0
        fresh = [key for key in keys if not self._is_in_front(key)]
        for segment in self._segments:
            elsewhere = []
            for key in fresh:
                if (spot := segment.find(key)) is None:
                    elsewhere.append(key)
                else:
                    added += segment.bring_back(spot)
            fresh = elsewhere
        self._front += fresh
        self._front.sort()  # two sorted runs: one merge
        if len(self._front) >= FRONT_MOST:
            self._flush()
        return added + len(fresh)

    def _flush(self) -> None:
        """The front becomes a segment, with the segments that are not much larger."""
        size, joins = len(self._front), 0
        for segment in reversed(self._segments):
            if segment.live > _GROWTH * size:
                break
            size += segment.live
            joins += 1
        kept = len(self._segments) - joins
        runs = [segment.forwards(b"") for segment in self._segments[kept:]]
        joined = Segment.of(merged([ahead(self._front, b""), *runs]))
        self._segments = [*self._segments[:kept], joined]
        self._front = []

    def _rewrite(self, segment: Segment) -> None:
        """Frees the places of what is gone; nothing is left of a segment that is empty."""
        smaller = [Segment.of(segment.forwards(b""))] if segment.live else []
        self._segments = [part for old in self._segments for part in (smaller if old is segment else [old])]


def prefix_end(prefix: bytes) -> bytes | None:
    """The least key above every key that starts with `prefix`; None where there is none."""
    stem = prefix.rstrip(b"\xff")
    return stem[:-1] + bytes((stem[-1] + 1,)) if stem else None


def _has(segment: Segment, key: bytes) -> bool:
    spot = segment.find(key)
    return spot is not None and not segment.is_gone(spot)


def _ascending(keys: Iterable[bytes]) -> Iterator[list[bytes]]:
    rest, last = iter(keys), None
    while run := list(islice(rest, RUN_KEYS)):
        before = run[:-1] if last is None else [last, *run[:-1]]
        if any(map(bytes.__ge__, before, run[1:] if last is None else run)):
            raise ValueError("the keys do not ascend")
        last = run[-1]
        yield run
