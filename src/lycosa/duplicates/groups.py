"""Groups of near texts among some thousand that come one after the other, in memory: how a search folds its results.

The rule is that of `clusters`: a text joins the group of one that it is near, unless it is far from the first text of
that group. As in the index on disk, each stands under 16 values of its blocks and is looked up under as many.
"""

from typing import NamedTuple

from lycosa.duplicates.clusters import MOST_FROM_FIRST
from lycosa.web import BLOCK_BITS, NEAR_BITS

MOST_COMPARED = 64  # texts under one value, the first ones: pages made from one template share it
_BLOCKS = 64 // BLOCK_BITS


class _GroupedText(NamedTuple):
    bits: int
    unsure: int
    group: int

    def distance(self, other: "_GroupedText") -> int:
        return ((self.bits ^ other.bits) & ~(self.unsure | other.unsure)).bit_count()


class NearGroups:
    """The groups so far. Whoever adds a text names the group that it begins."""

    def __init__(self) -> None:
        self._by_value: dict[int, list[_GroupedText]] = {}
        self._firsts: dict[int, _GroupedText] = {}

    def __repr__(self) -> str:
        return f"<NearGroups groups={len(self._firsts)}>"

    def add(self, bits: int, unsure: int, name: int) -> int:
        """The group that a text has joined: one of before, or its own, which has this name."""
        text, values = _GroupedText(bits, unsure, name), _values(bits, unsure)
        for value in values:
            for other in self._by_value.get(value, ()):
                if text.distance(other) <= NEAR_BITS and self._is_near_first(text, other.group):
                    return self._keep(text._replace(group=other.group), values)
        self._firsts[name] = text
        return self._keep(text, values)

    def _is_near_first(self, text: _GroupedText, group: int) -> bool:
        return text.distance(self._firsts[group]) <= MOST_FROM_FIRST

    def _keep(self, text: _GroupedText, values: list[int]) -> int:
        for value in values:
            there = self._by_value.setdefault(value, [])
            if len(there) < MOST_COMPARED:
                there.append(text)
        return text.group


def _values(bits: int, unsure: int) -> list[int]:
    """What a SimHash stands under: each block with both values of each of its two unsure bits."""
    found = []
    for block in range(_BLOCKS):
        mask = unsure >> (block * BLOCK_BITS) & 0xFFFF
        sure = (bits >> (block * BLOCK_BITS) & 0xFFFF & ~mask) | block << BLOCK_BITS
        low = mask & -mask
        found += [sure, sure | low, sure | (mask ^ low), sure | mask]
    return found
