"""Whether two texts are nearly the same, as the index of near texts decides it."""

from lycosa.web import NEAR_BITS, simhash_distance


def are_near(one: bytes, other: bytes) -> bool:
    return bool(one and other) and simhash_distance(one, other) <= NEAR_BITS
