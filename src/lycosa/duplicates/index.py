"""The index of SimHashes: all known ones that are near a given one, at once for many.

Two SimHashes are near if at most three of the bits that are sure in both differ (`web.similarity`). Then at least one
of their four blocks of 16 bits has no such bit. So each entry stands in four tables, one a block, under its 16 bits
with both values of its two unsure bits; who looks up asks under both values of its own: 16 entries and 16 questions
each, and every near entry is among what is found.

The entries are in segments, files that are never changed and mapped into memory; the newest are in memory, where they
are compared one by one, and in a file of their own between two runs. Four segments of one size become one, up to
`MOST_IN_SEGMENT`. Of a part of a table, the newest `MOST_IN_PART` are looked at: pages made from one template can fill
it, and the time of a look-up stays bounded. What a kill takes is the newest entries; an index that cannot be read
begins anew. `KnownTexts` asks it for a crawl; `clusters` calls it, too.

    segment   b"lycosaNT" · entries (8 bytes) · their bits and unsure bits (16 bytes each) · where each part of the
              tables begins (4 bytes each) · numbers of entries in the order of the tables (64 bytes an entry)
"""

import mmap
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lycosa.errors import StoreError, storage_errors
from lycosa.files import replacing
from lycosa.web import BLOCK_BITS, NEAR_BITS, native

MOST_NEWEST = 256
MERGED_AT_ONCE = 4
MOST_IN_SEGMENT = 524_288  # 43 MB; to merge them takes a fifth of a second
MOST_IN_PART = 1_024
MOST_COMPARED = 65_536  # entries at a time, some 5 MB
MOST_RESIDENT_BYTES = 32 << 20  # of segments; where there are more, what a look-up has read does not stay in memory
_MAGIC = b"lycosaNT"
_HEADER_BYTES = 16
_BLOCKS = 64 // BLOCK_BITS
_LEAST_PART_BITS = 6
_FORMS = 4  # of a block: each of its two unsure bits is 0 or 1
_ENDING, _NEWEST = ".texts", "newest.hashes"

Hashes = npt.NDArray[np.uint64]  # a row each: bits, unsure bits
Numbers = npt.NDArray[np.int64]
Values = npt.NDArray[np.uint16]  # of blocks


class NearPairs(NamedTuple):
    """What was found, in columns: the place of the one that was asked for, the number of the entry that is near it, and
    the number of sure bits in which they differ; in the order of the places."""

    asked: Numbers
    entry: Numbers
    distance: Numbers


def unpacked(packed: bytes | bytearray) -> Hashes:
    """SimHashes that are packed one after the other."""
    return np.frombuffer(packed, ">u8").astype(np.uint64).reshape(-1, 2)


def distances(hashes: Hashes, others: Hashes) -> npt.NDArray[np.uint8]:
    """How many sure bits differ, one for one."""
    sure = hashes[..., 1] | others[..., 1]
    np.invert(sure, out=sure)
    sure &= hashes[..., 0] ^ others[..., 0]
    counts: npt.NDArray[np.uint8] = np.bitwise_count(sure)
    return counts


def near_among(hashes: Hashes, others: Hashes) -> NearPairs:
    """All near pairs, each compared with each: for a few hundred."""
    if (kernel := native()) is not None:
        return _pairs(kernel.near_hashes(_packed(hashes), [], _packed(others), 0, (NEAR_BITS, MOST_IN_PART)))
    found = distances(hashes[:, None], others[None, :])
    asked, entry = np.nonzero(found <= NEAR_BITS)
    return NearPairs(asked, entry, found[asked, entry].astype(np.int64))


def _packed(hashes: Hashes) -> bytes:
    return hashes.astype("<u8", copy=False).tobytes()


def _pairs(columns: tuple[bytes, bytes, bytes]) -> NearPairs:
    """The pairs that the kernel has found."""
    return NearPairs(*(np.frombuffer(column, "<i8") for column in columns))


def _part_bits(count: int) -> int:
    """By how many bits the tables of so many entries are parted: those of a small segment have fewer parts."""
    return min(BLOCK_BITS, max(_LEAST_PART_BITS, count.bit_length()))


def _parts(hashes: Hashes) -> Iterator[Values]:
    """Under which values of each block SimHashes stand: four numbers each."""
    for block in range(_BLOCKS):
        values = (hashes >> np.uint64(block * BLOCK_BITS)).astype(np.uint16)
        value, mask = values[:, 0] & ~values[:, 1], values[:, 1]
        low = mask & (~mask + np.uint16(1))
        yield np.stack((value, value | low, value | (mask ^ low), value | mask), axis=1)


class _Segment:
    """One file of entries, mapped into memory. `first` is the number of its first entry."""

    def __init__(self, path: Path, first: int) -> None:
        self.path, self.first = path, first
        with path.open("rb") as file:
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        data = np.frombuffer(self._map, np.uint8)
        self.count = int(data[8:_HEADER_BYTES].view("<u8")[0]) if len(data) > _HEADER_BYTES else -1
        self._bits = _part_bits(self.count)
        starts_bytes = 4 * ((_BLOCKS << self._bits) + 1)
        ends = np.cumsum([_HEADER_BYTES, 16 * self.count, starts_bytes, 64 * self.count]).tolist()
        if bytes(data[:8]) != _MAGIC or len(data) != ends[-1]:
            raise ValueError(f"{path} is no segment")
        hashes, starts, entries = (data[start:end] for start, end in pairwise(ends))
        self.hashes = hashes.view("<u8").reshape(-1, 2)
        self._starts, self._entries = starts.view("<u4"), entries.view("<u4")

    @property
    def size_bytes(self) -> int:
        return len(self._map)

    @property
    def for_kernel(self) -> tuple[mmap.mmap, int, int]:
        """Its file, the number of its first entry, and the bits of its parts."""
        return self._map, self.first, self._bits

    def release(self) -> None:
        """Has what was read of the file leave the memory of the process; the system may keep it."""
        if hasattr(mmap, "MADV_DONTNEED"):
            self._map.madvise(mmap.MADV_DONTNEED)

    def near(self, hashes: Hashes, values: Values) -> NearPairs:
        """The entries that are near each of these, which stand under 16 `values` each, four a block."""
        tables = np.repeat(np.arange(_BLOCKS) << self._bits, _FORMS)
        parts = (values >> np.uint16(BLOCK_BITS - self._bits)) + tables
        starts, ends = self._starts[parts].astype(np.int64), self._starts[parts + 1].astype(np.int64)
        counts = np.minimum(ends - starts, MOST_IN_PART)
        starts = ends - counts  # the newest
        totals = np.cumsum(counts.sum(axis=1))
        found, at = [], 0
        while at < len(hashes):
            before = int(totals[at - 1]) if at else 0
            end = max(at + 1, int(np.searchsorted(totals, before + MOST_COMPARED, "right")))
            asked, entry, distance = self._compare(hashes[at:end], starts[at:end], counts[at:end])
            found.append(NearPairs(asked + at, entry, distance))
            at = end
        return _joined(found)

    def _compare(self, hashes: Hashes, starts: Numbers, counts: Numbers) -> NearPairs:
        each, asked = counts.ravel(), np.arange(len(hashes))
        ends = np.cumsum(each)
        places = np.arange(ends[-1])
        places += np.repeat(starts.ravel() - ends + each, each)
        entries, per_hash = self._entries[places], counts.sum(axis=1)
        differ = distances(np.take(self.hashes, entries, axis=0), np.repeat(hashes, per_hash, axis=0))
        near = np.flatnonzero(differ <= NEAR_BITS)
        asked = np.searchsorted(np.cumsum(per_hash), near, "right")
        return NearPairs(asked, entries[near].astype(np.int64) + self.first, differ[near].astype(np.int64))


def _joined(parts: list[NearPairs]) -> NearPairs:
    """The pairs of all parts, each once and in order."""
    asked, entry, distance = (np.concatenate(column) for column in zip(*parts, strict=True))
    if len(asked) > 1:
        order = np.lexsort((entry, asked))
        asked, entry, distance = asked[order], entry[order], distance[order]
        is_first = np.append(True, (asked[1:] != asked[:-1]) | (entry[1:] != entry[:-1]))
        asked, entry, distance = asked[is_first], entry[is_first], distance[is_first]
    return NearPairs(asked, entry, distance)


class SimHashIndex:
    """The index in a folder, which is made when there is something to write. Entries have numbers, in the order in
    which they were added."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._segments: list[_Segment] = []
        self._newest, self._newest_count = np.empty((MOST_NEWEST, 2), np.uint64), 0
        self._next_file = 0
        self._open()

    def __repr__(self) -> str:
        return f"<SimHashIndex entries={len(self)} segments={len(self._segments)}>"

    def __len__(self) -> int:
        return self._written + self._newest_count

    @property
    def _written(self) -> int:
        return sum(segment.count for segment in self._segments)

    def _open(self) -> None:
        paths, newest = sorted(self._folder.glob(f"*{_ENDING}")), self._folder / _NEWEST
        try:
            for path in paths:
                self._segments.append(_Segment(path, self._written))
                self._next_file = int(path.stem) + 1
            if newest.exists():
                hashes = unpacked(newest.read_bytes())
                self._newest_count = len(hashes)
                self._newest[: self._newest_count] = hashes
        except (OSError, ValueError):  # it only saves a crawl some work
            self._segments.clear()
            self._newest_count = 0
            for path in (*paths, newest):
                path.unlink(missing_ok=True)

    def near(self, hashes: Hashes) -> NearPairs:
        """The entries that are near each of these, which may be none."""
        if not len(hashes):
            return near_among(hashes, hashes)
        newest = self._newest[: self._newest_count]
        if (kernel := native()) is not None:
            segments, bounds = [segment.for_kernel for segment in self._segments], (NEAR_BITS, MOST_IN_PART)
            pairs = _pairs(kernel.near_hashes(_packed(hashes), segments, _packed(newest), self._written, bounds))
            self._release()
            return pairs
        values = np.concatenate(list(_parts(hashes)), axis=1)
        found = [segment.near(hashes, values) for segment in self._segments]
        self._release()
        among = near_among(hashes, newest)
        found.append(among._replace(entry=among.entry + self._written))
        return _joined(found)

    def _release(self) -> None:
        if sum(segment.size_bytes for segment in self._segments) > MOST_RESIDENT_BYTES:
            for segment in self._segments:
                segment.release()

    def entries(self, numbers: Numbers) -> Hashes:
        """The entries with these numbers."""
        found = np.empty((len(numbers), 2), np.uint64)
        newest = (self._written, self._newest[: self._newest_count])
        for first, hashes in [*((segment.first, segment.hashes) for segment in self._segments), newest]:
            here = (numbers >= first) & (numbers < first + len(hashes))
            found[here] = hashes[numbers[here] - first]
        return found

    def add(self, hashes: Hashes) -> None:
        """Adds entries."""
        at = 0
        while at < len(hashes):
            room = min(len(hashes) - at, MOST_NEWEST - self._newest_count)
            self._newest[self._newest_count : self._newest_count + room] = hashes[at : at + room]
            self._newest_count, at = self._newest_count + room, at + room
            if self._newest_count == MOST_NEWEST:
                self._end_segment()

    def flush(self) -> None:
        """Writes the newest entries to disk."""
        if self._newest_count:
            self._write_file(self._folder / _NEWEST, self._newest[: self._newest_count].astype(">u8").tobytes())

    def _end_segment(self) -> None:
        """Makes a segment of the newest entries, and one of many where that is due."""
        self._write(self._newest[: self._newest_count])
        self._newest_count = 0
        (self._folder / _NEWEST).unlink(missing_ok=True)
        while self._is_merge_due():
            old = self._segments[-MERGED_AT_ONCE:]
            hashes = np.concatenate([segment.hashes for segment in old])
            del self._segments[-MERGED_AT_ONCE:]
            self._write(hashes)
            for segment in old:
                segment.path.unlink(missing_ok=True)

    def _is_merge_due(self) -> bool:
        counts = [segment.count for segment in self._segments[-MERGED_AT_ONCE:]]
        is_even = len(counts) == MERGED_AT_ONCE and counts[0] <= MERGED_AT_ONCE * counts[-1] // 2
        return is_even and sum(counts) <= MOST_IN_SEGMENT

    def _write(self, hashes: Hashes) -> None:
        bits, counts, entries = _part_bits(len(hashes)), list[Numbers](), list[npt.NDArray[np.uint32]]()
        for values in _parts(hashes):
            keys = (values >> np.uint16(BLOCK_BITS - bits)).ravel()  # which are sorted in linear time
            counts.append(np.bincount(keys, minlength=1 << bits))
            entries.append((np.argsort(keys, kind="stable") // _FORMS).astype("<u4"))  # the newest are last
        starts = np.concatenate(([0], *counts)).cumsum()
        path = self._folder / f"{self._next_file:08d}{_ENDING}"
        columns = (column.tobytes() for column in (hashes.astype("<u8"), starts.astype("<u4"), *entries))
        self._write_file(path, _MAGIC + len(hashes).to_bytes(8, "little"), *columns)
        self._segments.append(_Segment(path, self._written))
        self._next_file += 1

    @staticmethod
    def _write_file(path: Path, *parts: bytes) -> None:
        with storage_errors(path, doing="writing the index of texts"):
            path.parent.mkdir(parents=True, exist_ok=True)
            with replacing(path) as file:
                file.writelines(parts)


class KnownTexts:
    """The texts that a crawl knows, whose index is in a folder: of which of them is the text of a page nearly a copy?

    The first page with a text stands for all that are near it, and only it is kept. Asked by the trap guard for many
    pages at once. It only saves a crawl some work: where its disk fails, nothing is known any more, and the crawl goes
    on.
    """

    def __init__(self, folder: Path) -> None:
        self._index: SimHashIndex | None = SimHashIndex(folder)

    def __repr__(self) -> str:
        return f"<KnownTexts {self._index!r}>"

    def originals(self, hashes: Sequence[bytes]) -> list[int]:
        """For each SimHash the bits of the known one that it is nearest to; 0 where its text is new, which is known
        from now on."""
        found = [0] * len(hashes)
        if self._index is None:
            return found
        try:
            return self._find(self._index, hashes, found)
        except (OSError, StoreError):
            self._index = None
            return found

    @staticmethod
    def _find(index: SimHashIndex, hashes: Sequence[bytes], found: list[int]) -> list[int]:
        asked = unpacked(b"".join(hashes))
        pairs = index.near(asked)
        order = np.lexsort((pairs.entry, pairs.distance, pairs.asked))[::-1]  # the nearest is last, and so it stays
        known = index.entries(pairs.entry[order])[:, 0]
        for place, original in zip(pairs.asked[order].tolist(), known.tolist(), strict=True):
            found[place] = original
        fresh = np.flatnonzero(np.array(found, np.uint64) == 0)
        firsts = dict.fromkeys(range(len(fresh)))
        own = near_among(asked[fresh], asked[fresh])
        for place, first in zip(own.asked.tolist(), own.entry.tolist(), strict=True):
            if first < place and first in firsts and place in firsts:
                del firsts[place]
                found[fresh[place]] = int(asked[fresh[first], 0])
        index.add(asked[fresh[list(firsts)]])
        return found

    def flush(self) -> None:
        """Writes to disk what is known."""
        if self._index is not None:
            with suppress(StoreError):
                self._index.flush()
