"""Groups of near texts among those that come one after the other, in memory: how a search folds its results.

The rule is that of `clusters`: a text joins the group of one that it is near, unless it is far from the first text of
that group. Each is compared with the first `MOST_COMPARED`, so that the time grows with their number alone.
"""

from collections.abc import Sequence

import numpy as np

from lycosa.duplicates.clusters import MOST_FROM_FIRST
from lycosa.duplicates.index import Hashes, distances, near_among

MOST_COMPARED = 4_096
AT_ONCE = 256


class NearGroups:
    """The groups so far; a group has the name of its first text."""

    def __init__(self) -> None:
        self._hashes = np.empty((0, 2), np.uint64)  # of the first texts
        self._names: list[int] = []
        self._firsts: dict[int, int] = {}  # of each of them: where the first text of its group stands

    def __repr__(self) -> str:
        return f"<NearGroups groups={len(set(self._firsts.values()))}>"

    def join(self, names: Sequence[int], hashes: Hashes) -> dict[int, int]:
        """Takes in the next texts; gives those that join a group of before, each with the name of the group."""
        joined: dict[int, int] = {}
        for start in range(0, len(names), AT_ONCE):
            joined |= self._join(names[start : start + AT_ONCE], hashes[start : start + AT_ONCE])
        return joined

    def _join(self, names: Sequence[int], hashes: Hashes) -> dict[int, int]:
        before, room = len(self._names), max(0, MOST_COMPARED - len(self._names))
        self._hashes = np.concatenate((self._hashes, hashes[:room]))
        self._names += names[:room]
        pairs = near_among(hashes, self._hashes)
        groups: dict[int, int] = {}
        for place, other in zip(pairs.asked.tolist(), pairs.entry.tolist(), strict=True):
            if place not in groups and other < before + place:
                first = self._firsts.get(other, other)
                if distances(hashes[place : place + 1], self._hashes[first])[0] <= MOST_FROM_FIRST:
                    groups[place] = self._firsts[before + place] = first
        return {names[place]: self._names[first] for place, first in groups.items()}
