"""Chance without state: every draw of the simulated web is a hash of what it is drawn for.

Two sources. `mix` turns a few integers into 64 well-spread bits and is cheap enough for one call a link;
`Draws.words` stretches a key into as many 32-bit words as a page needs with one call of SHAKE-128.
Same seed and key, same draw, in any process and any order; nothing here keeps or reads a clock.
"""

import hashlib
import math
import struct
from statistics import NormalDist

MASK = 0xFFFFFFFFFFFFFFFF


def mix(a: int, b: int, salt: int) -> int:
    """64 bits out of three integers: two multiply-xorshift rounds, as in SplitMix64."""
    x = (a * 0x9E3779B97F4A7C15 + b * 0xBF58476D1CE4E5B9 + salt * 0xD6E8FEB86659FD93) & MASK
    x = ((x ^ (x >> 31)) * 0x94D049BB133111EB) & MASK
    x = ((x ^ (x >> 29)) * 0xBF58476D1CE4E5B9) & MASK
    return x ^ (x >> 32)


def unit(x: int) -> float:
    """64 bits as a number in [0, 1)."""
    return (x >> 11) / 9007199254740992.0


class Draws:
    """The draws of one seed."""

    def __init__(self, seed: int) -> None:
        self._base = hashlib.shake_128(b"lycosa simweb %d\0" % seed)
        self.salt = int.from_bytes(self._base.digest(8), "little")

    def mix(self, a: int, b: int, purpose: int) -> int:
        return mix(a, b, self.salt ^ purpose)

    def text_hash(self, text: str, purpose: int) -> int:
        h = self._base.copy()
        h.update(b"%d\0%s" % (purpose, text.encode("utf-8", "surrogateescape")))
        return int.from_bytes(h.digest(8), "little")

    def words(self, key: bytes, count: int) -> tuple[int, ...]:
        """`count` independent 32-bit words for `key`."""
        h = self._base.copy()
        h.update(key)
        return struct.unpack(f"<{count}I", h.digest(4 * count))


def lognormal_table(median: float, sigma: float, steps: int = 1024) -> list[float]:
    """A log-normal distribution as `steps` equally likely values: one draw is one look-up."""
    normal = NormalDist()
    return [median * math.exp(sigma * normal.inv_cdf((i + 0.5) / steps)) for i in range(steps)]


def poisson_table(mean: float, steps: int = 1024) -> list[int]:
    """A Poisson distribution as `steps` equally likely counts."""
    table: list[int] = []
    count, term = 0, math.exp(-mean)
    total = term
    for i in range(steps):
        while (i + 0.5) / steps > total and count < 64:
            count += 1
            term *= mean / count
            total += term
        table.append(count)
    return table
