"""Whole arrays of numbers as bytes of seven bits each, the last one below 128: small numbers take one byte.

No loop over the numbers: one pass of NumPy for each byte that the largest one has. Used by the segments of the graph.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

U8 = NDArray[np.uint8]
U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]

_BITS = 7
_LOW, _MORE = np.uint8(0x7F), np.uint8(0x80)


def encode(numbers: NDArray[Any]) -> tuple[U8, I64]:
    """The bytes, and where each number begins in them."""
    values = numbers.astype(np.uint64, copy=False)
    sizes = np.ones(len(values), dtype=np.int64)
    largest = int(values.max()) if len(values) else 0
    for bits in range(_BITS, largest.bit_length(), _BITS):
        sizes += values >= np.uint64(1 << bits)
    ends = np.cumsum(sizes)
    starts = ends - sizes
    out = np.empty(int(ends[-1]) if len(ends) else 0, dtype=np.uint8)
    left, at, remaining = values, starts, sizes
    while len(left):
        goes_on = remaining > 1
        out[at] = (left & np.uint64(_LOW)).astype(np.uint8) | (goes_on * _MORE)
        left, at, remaining = left[goes_on] >> np.uint64(_BITS), at[goes_on] + 1, remaining[goes_on] - 1
    return out, starts


def decode(data: U8) -> U64:
    """The numbers in `data`, which ends where a number ends."""
    ends = np.flatnonzero(data <= _LOW)
    starts = np.empty_like(ends)
    if len(starts):
        starts[0], starts[1:] = 0, ends[:-1] + 1
    out = (data[starts] & _LOW).astype(np.uint64)
    places = np.flatnonzero(ends > starts)
    shift = _BITS
    while len(places):
        at = starts[places] + shift // _BITS
        out[places] |= (data[at] & _LOW).astype(np.uint64) << np.uint64(shift)
        places = places[ends[places] > at]
        shift += _BITS
    return out


def deltas(sorted_numbers: NDArray[Any]) -> NDArray[Any]:
    """Each number less the one before it; the first as it is."""
    out = sorted_numbers.copy()
    out[1:] -= sorted_numbers[:-1]
    return out
