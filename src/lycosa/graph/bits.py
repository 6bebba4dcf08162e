"""Sorted numbers and small numbers in as few bits as they need, found again without unpacking what lies before.

    numbers          one behind the other, all of one width
    sorted numbers   Elias and Fano's way: the lower bits as such numbers; of the upper bits as many zeros as they grow
                     by from one number to the next, then a one: two bits and a half, whatever the numbers

No loop over the numbers: a number of up to 57 bits lies within eight bytes, which NumPy reads at any byte. Bits begin
with the lowest. Used by the segments of the graph.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lycosa.graph.varint import I64, U8, U64

WIDEST = 57
_PADDING = 8  # bytes behind the last number, so that eight can be read anywhere


class Sorted(NamedTuple):
    """Sorted numbers: how many lower bits they have, those, and the upper ones."""

    width: int
    lower: U8
    upper: U8


def pack(numbers: U64, width: int) -> U8:
    """The numbers, which have `width` bits at most. Every eighth begins at the same bit, `width` bytes further on:
    those are put there together, byte by byte."""
    out = np.zeros((len(numbers) * width + 7) // 8 + _PADDING, dtype=np.uint8)
    for place in range(min(8, len(numbers)) if width else 0):
        first, shift = divmod(place * width, 8)
        some = numbers[place::8] << np.uint64(shift)
        for byte in range((shift + width + 7) // 8):
            end = first + byte + width * (len(some) - 1) + 1
            out[first + byte : end : width] |= (some >> np.uint64(8 * byte)).astype(np.uint8)
    return out


def unpack(data: U8, width: int, places: I64) -> U64:
    """The numbers at these places."""
    first = places * width
    words: U64 = np.ndarray((len(data) - _PADDING + 1,), dtype="<u8", buffer=data, strides=(1,))
    found: U64 = (words[first >> 3] >> (first & 7).astype(np.uint64)) & np.uint64((1 << width) - 1)
    return found


def pack_sorted(numbers: U64) -> Sorted:
    """Numbers below 2^57, none less than the one before it."""
    largest = int(numbers[-1]) if len(numbers) else 0
    width = max(0, (largest // max(1, len(numbers))).bit_length() - 1)
    ones = (numbers >> np.uint64(width)).astype(np.int64) + np.arange(len(numbers))
    is_one = np.zeros(int(ones[-1]) + 1 if len(ones) else 0, dtype=np.uint8)
    is_one[ones] = 1
    lower = numbers & np.uint64((1 << width) - 1)
    return Sorted(width, pack(lower, width), np.packbits(is_one, bitorder="little"))


def unpack_sorted(packed: Sorted) -> U64:
    """All of the numbers."""
    upper = _upper(packed)
    lower = unpack(packed.lower, packed.width, np.arange(len(upper)))
    return (upper.astype(np.uint64) << np.uint64(packed.width)) | lower


def find(packed: Sorted, wanted: U64) -> tuple[I64, NDArray[np.bool_]]:
    """Where numbers stand, and whether they do."""
    upper, width = _upper(packed), packed.width
    sought = (wanted >> np.uint64(width)).astype(np.int64)
    at = np.searchsorted(upper, sought).astype(np.int64)
    is_known = np.zeros(len(wanted), dtype=bool)
    left = np.flatnonzero(at < len(upper))
    lower = wanted & np.uint64((1 << width) - 1)
    while len(left := left[upper[at[left]] == sought[left]]):  # with the same upper bits there are one or two
        is_known[left] = unpack(packed.lower, width, at[left]) == lower[left]
        left = left[~is_known[left]]
        at[left] += 1
        left = left[at[left] < len(upper)]
    return at, is_known


def _upper(packed: Sorted) -> I64:
    """The upper bits of each number."""
    ones = np.flatnonzero(np.unpackbits(packed.upper, bitorder="little"))
    return ones - np.arange(len(ones))
