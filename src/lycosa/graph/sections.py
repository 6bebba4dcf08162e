"""The sections of a segment's file: arrays one behind the other, found by a table, read through a memory map."""

import mmap
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from lycosa.graph.varint import I64

FORMAT = b"lycosa links "
MAGIC = FORMAT + b"2\n\0"
ALIGN = 8


def mapped(data: mmap.mmap) -> dict[str, NDArray[Any]]:
    """The sections of an open file."""
    at = len(MAGIC)
    size = int.from_bytes(data[at : at + 8], "little")
    table: dict[str, tuple[str, int]] = msgspec.msgpack.decode(data[at + 8 : at + 8 + size])
    at += 8 + size
    sections = {}
    for name, (kind, size_bytes) in table.items():
        at += -at % ALIGN
        dtype = np.dtype(kind)
        sections[name] = np.frombuffer(data, dtype=dtype, count=size_bytes // dtype.itemsize, offset=at)
        at += size_bytes
    return sections


def unfolded(steps: I64, sizes: I64) -> I64:
    """From differences that begin anew with every target to the numbers themselves."""
    sums = np.cumsum(steps)
    starts = np.cumsum(sizes) - sizes
    before = np.append(0, sums)[starts]
    return sums - np.repeat(before, sizes)  # type: ignore[no-any-return]
