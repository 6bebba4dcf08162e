"""Arrays of numbers in as few bytes as they need, without a Python loop over the numbers.

    varints          seven bits a byte, the last byte below 128: small numbers take one byte
    bits             numbers one behind the other, all of one width
    sorted numbers   Elias–Fano: the lower bits as such numbers; the upper bits in unary, two bits and a half each
    frames           varints, compressed by Zstandard group by group, so that a question opens only what it needs

A number of up to 57 bits lies within eight bytes, which NumPy reads at any byte. Bits begin with the lowest. Pure;
used by the segments of the link index.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import zstandard
from numpy.typing import NDArray

U8 = NDArray[np.uint8]
U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]

_BITS = 7
_LOW, _MORE = np.uint8(0x7F), np.uint8(0x80)


def encode_varints(numbers: NDArray[Any]) -> tuple[U8, I64]:
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


def decode_varints(data: U8) -> U64:
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


WIDEST = 57
_PADDING = 8  # bytes behind the last number, so that eight can be read anywhere


class SortedNumbers(NamedTuple):
    """Packed sorted numbers: the width of their lower bits, these bits, and the upper ones."""

    width: int
    lower: U8
    upper: U8


def pack_bits(numbers: U64, width: int) -> U8:
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


def unpack_bits(data: U8, width: int, places: I64) -> U64:
    """The numbers at these places."""
    first = places * width
    words: U64 = np.ndarray((len(data) - _PADDING + 1,), dtype="<u8", buffer=data, strides=(1,))
    found: U64 = (words[first >> 3] >> (first & 7).astype(np.uint64)) & np.uint64((1 << width) - 1)
    return found


def pack_sorted(numbers: U64) -> SortedNumbers:
    """Numbers below 2^57, none less than the one before it."""
    largest = int(numbers[-1]) if len(numbers) else 0
    width = max(0, (largest // max(1, len(numbers))).bit_length() - 1)
    ones = (numbers >> np.uint64(width)).astype(np.int64) + np.arange(len(numbers))
    is_one = np.zeros(int(ones[-1]) + 1 if len(ones) else 0, dtype=np.uint8)
    is_one[ones] = 1
    lower = numbers & np.uint64((1 << width) - 1)
    return SortedNumbers(width, pack_bits(lower, width), np.packbits(is_one, bitorder="little"))


def unpack_sorted(packed: SortedNumbers) -> U64:
    """Unpacks all of the numbers."""
    upper = _upper(packed)
    lower = unpack_bits(packed.lower, packed.width, np.arange(len(upper)))
    return (upper.astype(np.uint64) << np.uint64(packed.width)) | lower


def find_sorted(packed: SortedNumbers, wanted: U64) -> tuple[I64, NDArray[np.bool_]]:
    """The place of each wanted number, and whether it is there."""
    upper, width = _upper(packed), packed.width
    sought = (wanted >> np.uint64(width)).astype(np.int64)
    at = np.searchsorted(upper, sought).astype(np.int64)
    is_known = np.zeros(len(wanted), dtype=bool)
    left = np.flatnonzero(at < len(upper))
    lower = wanted & np.uint64((1 << width) - 1)
    while len(left := left[upper[at[left]] == sought[left]]):  # with the same upper bits there are one or two
        is_known[left] = unpack_bits(packed.lower, width, at[left]) == lower[left]
        left = left[~is_known[left]]
        at[left] += 1
        left = left[at[left] < len(upper)]
    return at, is_known


def _upper(packed: SortedNumbers) -> I64:
    """The upper bits of each number."""
    ones = np.flatnonzero(np.unpackbits(packed.upper, bitorder="little"))
    return ones - np.arange(len(ones))


_LEVEL = 3  # above it takes longer and gains two in a hundred


class Frames(NamedTuple):
    """Frames one behind the other, and where each ends."""

    data: U8
    ends: U64


def pack_frames(numbers: NDArray[Any], edges: I64) -> Frames:
    """One frame for each part of `numbers`; parts end at `edges`."""
    compressor = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=False, write_content_size=True)
    packed, starts = encode_varints(numbers)
    places = np.append(starts, len(packed))[np.append(0, edges)]
    raw, frames = packed.tobytes(), []
    for first, last in zip(places[:-1].tolist(), places[1:].tolist(), strict=True):
        frames.append(compressor.compress(raw[first:last]) if last > first else b"")
    ends = np.cumsum([len(frame) for frame in frames], dtype=np.uint64)
    return Frames(np.frombuffer(b"".join(frames), dtype=np.uint8), ends)


def unpack_frames(frames: Frames, chosen: Iterable[int] | None = None) -> U64:
    """The numbers of the chosen frames one behind the other; of all of them if none is named."""
    decompressor = zstandard.ZstdDecompressor()
    ends = frames.ends.tolist()
    parts = []
    for place in range(len(ends)) if chosen is None else chosen:
        first = ends[place - 1] if place else 0
        if ends[place] > first:
            parts.append(decompressor.decompress(frames.data[first : ends[place]].tobytes()))
    return decode_varints(np.frombuffer(b"".join(parts), dtype=np.uint8))
