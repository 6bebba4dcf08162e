"""Columns of small numbers, compressed group by group: what one question needs is opened, and no more.

A frame is the numbers of one group as bytes of seven bits each (`varint`), compressed by Zstandard. Used by the
segments of the graph.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import zstandard
from numpy.typing import NDArray

from lycosa.graph.varint import I64, U8, U64, decode, encode

_LEVEL = 3  # above it takes longer and gains two in a hundred


class Frames(NamedTuple):
    """Frames one behind the other, and where each ends."""

    data: U8
    ends: U64


def pack(numbers: NDArray[Any], edges: I64) -> Frames:
    """One frame for each part of `numbers`; parts end at `edges`."""
    compressor = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=False, write_content_size=True)
    packed, starts = encode(numbers)
    places = np.append(starts, len(packed))[np.append(0, edges)]
    raw, frames = packed.tobytes(), []
    for first, last in zip(places[:-1].tolist(), places[1:].tolist(), strict=True):
        frames.append(compressor.compress(raw[first:last]) if last > first else b"")
    ends = np.cumsum([len(frame) for frame in frames], dtype=np.uint64)
    return Frames(np.frombuffer(b"".join(frames), dtype=np.uint8), ends)


def unpack(frames: Frames, chosen: Iterable[int] | None = None) -> U64:
    """The numbers of the chosen frames one behind the other; of all of them if none is named."""
    decompressor = zstandard.ZstdDecompressor()
    ends = frames.ends.tolist()
    parts = []
    for place in range(len(ends)) if chosen is None else chosen:
        first = ends[place - 1] if place else 0
        if ends[place] > first:
            parts.append(decompressor.decompress(frames.data[first : ends[place]].tobytes()))
    return decode(np.frombuffer(b"".join(parts), dtype=np.uint8))
