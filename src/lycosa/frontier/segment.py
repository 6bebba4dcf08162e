"""A run of sorted keys in a few bytes each: compressed blocks under an index of their first keys.

Sorted URLs share their beginnings with their neighbours, so a block of them compresses as a trie would store it:
what repeats is one reference. A block is its keys between separators, `⏎key⏎key⏎`, under zstd; the separator is a byte
that none of its keys has. Search is by native calls: one bisection of the index, one block decompressed, one `find`;
a sieve saves most unknown keys from it.

Invariants: keys are distinct and ascend within and across blocks, and never change. Removing marks a key as gone;
a block whose last key goes is released. `rank` counts without a walk. Used by `lycosa.frontier.trie` only.
"""

import sys
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import zstandard

from lycosa.frontier.sieve import Marks, Sieve

# 128 keys are about 10 KB: a key costs 6.5 bytes and a look 11 µs. 64 keys cost a byte more and 9 µs, 256 half a byte
# less and 16 µs (2 M documentation URLs).
BLOCK_KEYS = 128
# Levels above 6 take longer and save a hundredth.
_LEVEL = 6
_SEPARATOR = b"\n"

_compress = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=False, write_dict_id=False).compress
_decompress = zstandard.ZstdDecompressor().decompress


class Spot(NamedTuple):
    """Where a key lies: its block, and its number there."""

    block: int
    number: int


class Segment:
    """Sorted distinct keys. Made by `Segment.of`."""

    __slots__ = ("_blocks", "_firsts", "_gone", "_live", "_opened", "_raw", "_sieve", "live", "size")

    def __init__(self, firsts: list[bytes], blocks: list[bytes], counts: list[int], sieve: Sieve) -> None:
        self._firsts, self._blocks, self._sieve = firsts, blocks, sieve
        self._live = np.array(counts, dtype=np.uint32)  # keys of each block that are not gone
        self._gone: dict[int, int] = {}  # block → a bit for every key that is gone
        self._opened, self._raw = -1, b""  # the block that was read last: neighbours are asked for together
        self.size = self.live = sum(counts)

    @classmethod
    def of(cls, runs: Iterable[list[bytes]]) -> "Segment":
        """The keys of the runs, which ascend within and across them."""
        firsts: list[bytes] = []
        blocks: list[bytes] = []
        counts: list[int] = []
        marks = Marks()
        for keys in _regrouped(runs):
            marks.add(keys)
            for part, raw in _joined(keys):
                firsts.append(part[0])
                # Copied: what zstd returns was cut down from a buffer for the worst case, and leaves a hole behind it.
                blocks.append(bytes(memoryview(_compress(raw))))
                counts.append(len(part))
        return cls(firsts, blocks, counts, Sieve(marks))

    def find(self, key: bytes) -> Spot | None:
        """Where the key lies, also if it is gone; None if it is not here."""
        if not self._sieve.may_have(key):
            return None
        block = bisect_right(self._firsts, key) - 1
        if block < 0 or not self._blocks[block]:
            return None
        raw = self._open(block)
        if not raw:
            return Spot(block, 0) if key == self._firsts[block] else None
        separator = raw[:1]
        at = -1 if separator in key else raw.find(separator + key + separator)
        return None if at < 0 else Spot(block, raw.count(separator, 0, at))

    def is_gone(self, spot: Spot) -> bool:
        return bool(self._gone and self._gone.get(spot.block, 0) >> spot.number & 1)

    def take(self, spot: Spot) -> bool:
        """Marks a key as gone; False if it was gone already."""
        if self.is_gone(spot):
            return False
        block = spot.block
        self.live -= 1
        self._live[block] -= 1
        if self._live[block]:
            self._gone[block] = self._gone.get(block, 0) | 1 << spot.number
        else:
            self._gone.pop(block, None)
            self._blocks[block] = self._raw = b""
            self._opened = -1
        return True

    def bring_back(self, spot: Spot) -> bool:
        """Undoes `take`; False if the key was not gone."""
        if not self.is_gone(spot):
            return False
        self._gone[spot.block] ^= 1 << spot.number
        self._live[spot.block] += 1
        self.live += 1
        return True

    def rank(self, key: bytes) -> int:
        """How many live keys lie before `key`."""
        block = bisect_right(self._firsts, key) - 1
        if block < 0:
            return 0
        return int(self._live[:block].sum()) + bisect_left(self.keys_of(block), key)

    def forwards(self, start: bytes) -> Iterator[list[bytes]]:
        """The live keys from `start` on, block by block, ascending; no list is empty."""
        block = max(bisect_right(self._firsts, start) - 1, 0)
        while (block := self._next_live(block)) < len(self._blocks):
            keys = self.keys_of(block)
            if keys[0] < start:
                keys = keys[bisect_left(keys, start) :]
            if keys:
                yield keys
            block += 1

    def backwards(self, end: bytes | None) -> Iterator[list[bytes]]:
        """The live keys below `end` (None: all), last block first, each block ascending; no list is empty."""
        block = len(self._firsts) if end is None else bisect_left(self._firsts, end)
        while (block := self._last_live(block)) >= 0:
            keys = self.keys_of(block)
            if end is not None and keys[-1] >= end:
                keys = keys[: bisect_left(keys, end)]
            if keys:
                yield keys

    def keys_of(self, block: int) -> list[bytes]:
        """The live keys of a block."""
        if not self._blocks[block]:
            return []
        raw = self._open(block)
        keys = raw.split(raw[:1])[1:-1] if raw else [self._firsts[block]]
        if gone := self._gone.get(block, 0):
            return [key for number, key in enumerate(keys) if not gone >> number & 1]
        return keys

    def size_bytes(self) -> int:
        """The memory that the segment takes, by Python's own account, the block that is open not counted."""
        lists = sys.getsizeof(self._firsts) + sys.getsizeof(self._blocks) + sys.getsizeof(self._gone)
        texts = sum(map(sys.getsizeof, self._firsts)) + sum(map(sys.getsizeof, self._blocks))
        return (
            lists + texts + sum(map(sys.getsizeof, self._gone.values())) + self._live.nbytes + self._sieve.size_bytes()
        )

    def __repr__(self) -> str:
        return f"<Segment {self.live:,} of {self.size:,} keys in {len(self._blocks):,} blocks>"

    def _open(self, block: int) -> bytes:
        if block != self._opened:
            self._opened, self._raw = block, _decompress(self._blocks[block])
        return self._raw

    def _next_live(self, block: int) -> int:
        """The first block from `block` on that has a live key; the number of blocks if there is none."""
        if block < len(self._blocks) and self._live[block]:
            return block
        found = np.flatnonzero(self._live[block:])
        return block + int(found[0]) if len(found) else len(self._blocks)

    def _last_live(self, block: int) -> int:
        """The last block before `block` that has a live key; -1 if there is none."""
        if block and self._live[block - 1]:
            return block - 1
        found = np.flatnonzero(self._live[:block])
        return int(found[-1]) if len(found) else -1


def _regrouped(runs: Iterable[list[bytes]]) -> Iterator[list[bytes]]:
    """The same keys in lists of a block's size."""
    held: list[bytes] = []
    for run in runs:
        held += run
        whole = len(held) - len(held) % BLOCK_KEYS
        for start in range(0, whole, BLOCK_KEYS):
            yield held[start : start + BLOCK_KEYS]
        del held[:whole]
    if held:
        yield held


def _joined(keys: list[bytes]) -> Iterator[tuple[list[bytes], bytes]]:
    """The keys in one piece, or in as many as it takes until every one has a byte to separate its keys by.

    A key that has every byte itself ends up alone and gets no text at all: it stands in the index.
    """
    joined = _SEPARATOR.join(keys)
    separator = _SEPARATOR
    if joined.count(separator) != len(keys) - 1:
        unused = set(range(256)).difference(*keys)
        if not unused:
            half = len(keys) // 2
            yield from [*_joined(keys[:half]), *_joined(keys[half:])] if half else [(keys, b"")]
            return
        separator = bytes((min(unused),))
        joined = separator.join(keys)
    yield keys, separator + joined + separator
