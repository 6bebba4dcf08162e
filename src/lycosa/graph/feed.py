"""The feed: the pages that were committed, in the order of the commits; and the numbers of pages.

    file   FileNum (8 bytes)    → url key                   the way back is the page's row
    feed   sequence (8 bytes)   → event (1 byte) · FileNum · for a changed or removed page its link row from before
    meta   "feed" → next sequence        "file:" bucket → next counter

A FileNum is the bucket (16 bits) and a counter of that bucket (48 bits), so that a bucket can move with its pages; it
is never given twice, also not when the page is gone. Everything is written in the batch of the page itself: after a
crash the feed has exactly the pages that are there. A consumer writes the last sequence it has covered to `feed/NAME`;
entries that all consumers have covered are deleted. Written by `LinkIndexer`, read by the link index and the search
index.
"""

import contextlib
import os
import shutil
from collections.abc import Iterator
from enum import IntEnum
from pathlib import Path
from typing import NamedTuple

from lycosa.records import Family
from lycosa.store import Batch, JoinedState, State

FEED_FOLDER = "feed"
COUNTER_BITS = 48
MOST_BEHIND = 1_000_000  # entries: a consumer that is further behind is not waited for, and reads the whole state
FILE_NUM_BYTES = SEQUENCE_BYTES = 8
BUCKET_BYTES = 2
_NEXT_KEY = b"feed"
_COUNTER_KEY = b"file:"


class FeedEvent(IntEnum):
    """What happened to a page. Values are stored: never renumber."""

    NEW = 1
    CHANGED = 2
    REMOVED = 3


class FeedEntry(NamedTuple):
    """One entry of the feed; `before` is the page's link row as it was, empty for a new page or one without links."""

    sequence: int
    event: FeedEvent
    file_num: int
    before: bytes


class Feed:
    """The writing side: numbers pages and appends entries, in the open batch."""

    def __init__(self, state: State, collection: Path) -> None:
        self._state, self._folder = state, collection / FEED_FOLDER
        packed = state.get(Family.META, _NEXT_KEY)
        self.next = int.from_bytes(packed) if packed else 1
        self._cut = 0  # entries before it are deleted
        self._counters: dict[bytes, int] = {}
        self._touched: set[bytes] = set()

    def __repr__(self) -> str:
        return f"<Feed next={self.next}>"

    def forget(self) -> None:
        """Forgets the counters, since hosts have moved in or out between two commits: they are read again."""
        self._counters.clear()

    @property
    def last(self) -> int:
        return self.next - 1

    def number(self, batch: Batch, key: bytes) -> int:
        """Gives a FileNum to the page of a URL key that has none yet."""
        bucket = key[:BUCKET_BYTES]
        counter = self._counters.get(bucket)
        if counter is None:
            packed = self._state.get(Family.META, _COUNTER_KEY + bucket)
            counter = int.from_bytes(packed) if packed else 0
        counter += 1
        self._counters[bucket] = counter
        self._touched.add(bucket)
        file_num = int.from_bytes(bucket) << COUNTER_BITS | counter
        batch.put(Family.FILE, file_num.to_bytes(FILE_NUM_BYTES), key)
        return file_num

    def append(self, batch: Batch, event: FeedEvent, file_num: int, before: bytes = b"") -> int:
        """Appends an entry; returns its sequence."""
        sequence = self.next
        self.next += 1
        row = bytes((event,)) + file_num.to_bytes(FILE_NUM_BYTES) + before
        batch.put(Family.FEED, sequence.to_bytes(SEQUENCE_BYTES), row)
        return sequence

    def write(self, batch: Batch) -> None:
        """Adds the counters to the batch; every commit calls it last."""
        batch.put(Family.META, _NEXT_KEY, self.next.to_bytes(SEQUENCE_BYTES))
        for bucket in self._touched:
            batch.put(Family.META, _COUNTER_KEY + bucket, self._counters[bucket].to_bytes(FILE_NUM_BYTES))
        self._touched.clear()

    def prune(self, batch: Batch) -> None:
        """Deletes the entries that all consumers have covered, apart from consumers that fell behind long ago."""
        followed = [covered for covered in _consumers(self._folder).values() if self.last - covered <= MOST_BEHIND]
        covered = min(followed, default=0)
        if covered >= self._cut:
            batch.delete_range(Family.FEED, self._cut.to_bytes(SEQUENCE_BYTES), (covered + 1).to_bytes(SEQUENCE_BYTES))
            self._cut = covered + 1


def entries_after(state: State, sequence: int) -> Iterator[FeedEntry]:
    """The entries after a sequence, oldest first."""
    for key, row in state.walk(Family.FEED, (sequence + 1).to_bytes(SEQUENCE_BYTES)):
        file_num = int.from_bytes(row[1 : 1 + FILE_NUM_BYTES])
        yield FeedEntry(int.from_bytes(key), FeedEvent(row[0]), file_num, row[1 + FILE_NUM_BYTES :])


def last_sequence(state: State) -> int:
    """The sequence of the newest entry ever written; for several shards the sum, which grows when one of them does."""
    if isinstance(state, JoinedState):
        return sum(map(last_sequence, state.states))
    packed = state.get(Family.META, _NEXT_KEY)
    return int.from_bytes(packed) - 1 if packed else 0


def key_of(state: State, file_num: int) -> bytes | None:
    """The url key of a page by its FileNum."""
    return state.get(Family.FILE, file_num.to_bytes(FILE_NUM_BYTES))


def cut_feed(state: State, collection: Path) -> None:
    """Deletes all entries, since pages are gone whose numbers they name: the link index is made anew, and so is what
    other consumers keep."""
    batch = Batch()
    batch.delete_range(Family.FEED, b"", b"\xff" * (SEQUENCE_BYTES + 1))
    state.write(batch)
    shutil.rmtree(collection / FEED_FOLDER, ignore_errors=True)


# consumers


def covered_by(collection: Path, name: str) -> int:
    """The sequence that a consumer has marked as covered; 0 if it never did."""
    return _consumers(collection / FEED_FOLDER).get(name, 0)


def _consumers(folder: Path) -> dict[str, int]:
    """The last covered sequence of each consumer."""
    found = {}
    with contextlib.suppress(FileNotFoundError):
        for file in folder.iterdir():
            text = "" if file.name.startswith(".") else file.read_text()
            if text.strip().isdigit():
                found[file.name] = int(text)
    return found


def mark_covered(collection: Path, name: str, sequence: int) -> None:
    """Notes that consumer `name` has covered the feed up to `sequence`: older entries may be deleted."""
    folder = collection / FEED_FOLDER
    folder.mkdir(exist_ok=True)
    hidden = folder / f".{name}.{os.getpid()}"
    hidden.write_text(f"{sequence}\n")
    hidden.replace(folder / name)
