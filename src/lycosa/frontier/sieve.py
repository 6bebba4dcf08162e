"""A Bloom filter over the keys of a segment: says at once of most unknown keys that they are not there.

Never wrong when it says no; wrong for about one unknown key in forty when it says maybe. A byte a key. Filled once.
Used by `lycosa.frontier.segment`, whose blocks are dear to open.
"""

from array import array
from collections.abc import Iterable

import numpy as np
from xxhash import xxh3_64_intdigest

_BITS_A_KEY = 8
_PROBES = 4  # with 8 bits a key 2.4 % are let through in vain; 5 or 6 would make it 2.2 and cost more
_LOW = 0xFFFFFFFF
_AT_ONCE = 16_384  # keys: what is needed while it is filled stays small


class Marks:
    """The hashes of keys, gathered while their number is not known yet."""

    __slots__ = ("numbers",)

    def __init__(self) -> None:
        self.numbers = array("Q")

    def add(self, keys: Iterable[bytes]) -> None:
        self.numbers.extend(map(xxh3_64_intdigest, keys))


class Sieve:
    """Made from the marks of all keys it has to let through."""

    __slots__ = ("_bits", "_size")

    def __init__(self, marks: Marks) -> None:
        numbers = np.frombuffer(marks.numbers, np.uint64)
        bits = np.zeros(max(len(numbers), 1) * _BITS_A_KEY // 8, np.uint8)
        self._size = len(bits) * 8
        for start in range(0, len(numbers), _AT_ONCE):
            some = numbers[start : start + _AT_ONCE]
            step, place = some >> np.uint64(32), some & np.uint64(_LOW)
            for _ in range(_PROBES):
                at = place % np.uint64(self._size)
                np.bitwise_or.at(bits, at >> np.uint64(3), np.uint8(1) << (at & np.uint64(7)).astype(np.uint8))
                place += step
        self._bits = bits.tobytes()

    def may_have(self, key: bytes) -> bool:
        number = xxh3_64_intdigest(key)
        bits, size, step, place = self._bits, self._size, number >> 32, number & _LOW
        for _ in range(_PROBES):
            at = place % size
            if not bits[at >> 3] >> (at & 7) & 1:
                return False
            place += step
        return True

    def size_bytes(self) -> int:
        return len(self._bits)
