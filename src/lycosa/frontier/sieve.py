"""A Bloom filter over the keys of a segment: says at once of most unknown keys that they are not there.

Never wrong when it says no; wrong for about one unknown key in forty when it says maybe. A byte a key. Filled once.
Used by `lycosa.frontier.segment`, whose blocks are dear to open.
"""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
from xxhash import xxh3_64_intdigest

_BITS_A_KEY = 8
_PROBES = 4  # with 8 bits a key 2.4 % are let through in vain; 5 or 6 would make it 2.2 and cost more
_LOW = 0xFFFFFFFF

Hashes = npt.NDArray[np.uint64]


def hashes(keys: list[bytes]) -> Hashes:
    return np.fromiter(map(xxh3_64_intdigest, keys), np.uint64, len(keys))


class Sieve:
    """Made from the hashes of all keys it has to let through."""

    __slots__ = ("_bits", "_size")

    def __init__(self, parts: Iterable[Hashes]) -> None:
        every = np.concatenate([np.empty(0, np.uint64), *parts])
        self._size = max(len(every), 1) * _BITS_A_KEY
        is_set = np.zeros(self._size, np.bool_)
        step, place = every >> np.uint64(32), every & np.uint64(_LOW)
        for _ in range(_PROBES):
            is_set[place % np.uint64(self._size)] = True
            place += step
        self._bits = np.packbits(is_set, bitorder="little").tobytes()

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
