"""Interned texts: each distinct anchor text once, found by its number, compressed in blocks.

While tables are made and joined, texts are told apart by a 64-bit hash, so that no text is an object of its own. The
most frequent text has number 0, as the link that uses it is then one byte. Used by the segments of the graph.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import xxhash
import zstandard

from lycosa.graph.varint import I64, U8, U64, decode, encode

BLOCK_TEXTS = 512
_LEVEL = 3
_hash = xxhash.xxh3_64_intdigest


class Texts(NamedTuple):
    """Distinct texts in UTF-8, one behind the other; `ids` are their hashes, `sizes` their lengths in bytes."""

    ids: U64
    sizes: I64
    data: U8

    def take(self, places: I64) -> "Texts":
        """The texts at `places`, in that order."""
        starts = np.cumsum(self.sizes) - self.sizes
        sizes = self.sizes[places]
        ends = np.cumsum(sizes)
        total = int(ends[-1]) if len(ends) else 0
        at = np.arange(total, dtype=np.int64) + np.repeat(starts[places] - (ends - sizes), sizes)
        return Texts(self.ids[places], sizes, self.data[at])


def text_ids(texts: Sequence[str]) -> tuple[U64, list[bytes]]:
    """The hash of each text, and its bytes."""
    try:
        encoded = list(map(str.encode, texts))
    except UnicodeEncodeError:  # half a character, from an analyser of someone's own
        encoded = [text.encode("utf-8", "replace") for text in texts]
    return np.fromiter(map(_hash, encoded), dtype=np.uint64, count=len(encoded)), encoded


def intern(texts: Sequence[str]) -> tuple[Texts, I64]:
    """A table of the distinct texts, and the number of each."""
    ids, encoded = text_ids(texts)
    distinct, first, inverse = np.unique(ids, return_index=True, return_inverse=True)
    chosen = [encoded[place] for place in first.tolist()]
    sizes = np.fromiter(map(len, chosen), dtype=np.int64, count=len(chosen))
    return Texts(distinct, sizes, np.frombuffer(b"".join(chosen), dtype=np.uint8)), inverse.astype(np.int64)


def join(tables: Sequence[Texts]) -> tuple[Texts, list[I64]]:
    """One table of all texts, and for each of the old tables the new numbers of its texts."""
    ids = np.concatenate([table.ids for table in tables])
    _, first, inverse = np.unique(ids, return_index=True, return_inverse=True)
    whole = Texts(
        ids, np.concatenate([table.sizes for table in tables]), np.concatenate([table.data for table in tables])
    )
    ends = np.cumsum([len(table.ids) for table in tables])
    return whole.take(first.astype(np.int64)), np.split(inverse.astype(np.int64), ends[:-1])


def most_used_first(table: Texts, used: I64) -> tuple[Texts, I64]:
    """The table in the order of use, without what nobody uses, and the new numbers of `used`."""
    counts = np.bincount(used, minlength=len(table.ids))
    order = np.argsort(-counts, kind="stable")[: int(np.count_nonzero(counts))]
    number = np.zeros(len(counts), dtype=np.int64)
    number[order] = np.arange(len(order))
    return table.take(order), number[used]


def pack(table: Texts) -> dict[str, U8 | U64]:
    """The sections of a segment that hold the table."""
    compressor = zstandard.ZstdCompressor(level=_LEVEL)
    ends = np.cumsum(table.sizes)
    edges = [0, *ends[BLOCK_TEXTS - 1 :: BLOCK_TEXTS].tolist()]
    if len(ends) % BLOCK_TEXTS:
        edges.append(int(ends[-1]))
    data = table.data.tobytes()
    blocks = [compressor.compress(data[a:b]) for a, b in pairwise(edges)]
    places = np.cumsum([0, *map(len, blocks)]).astype(np.uint64)
    return {
        "text_sizes": encode(table.sizes)[0],
        "text_blocks": places,
        "text_data": np.frombuffer(b"".join(blocks), dtype=np.uint8),
    }


def unpack(sizes: U8, blocks: U64, data: U8) -> Texts:
    """The whole table again."""
    decompressor = zstandard.ZstdDecompressor()
    parts = [decompressor.decompress(data[a:b].tobytes()) for a, b in pairwise(blocks.tolist())]
    raw, lengths = b"".join(parts), decode(sizes).astype(np.int64)
    edges = [0, *np.cumsum(lengths).tolist()]
    ids = np.fromiter((_hash(raw[a:b]) for a, b in pairwise(edges)), dtype=np.uint64, count=len(lengths))
    return Texts(ids, lengths, np.frombuffer(raw, dtype=np.uint8))


def read_block(block: int, sizes: I64, blocks: U64, data: U8) -> list[str]:
    """The texts of one block."""
    raw = zstandard.ZstdDecompressor().decompress(data[int(blocks[block]) : int(blocks[block + 1])].tobytes())
    edges = [0, *np.cumsum(sizes[block * BLOCK_TEXTS : (block + 1) * BLOCK_TEXTS]).tolist()]
    return [raw[a:b].decode("utf-8", "replace") for a, b in pairwise(edges)]
