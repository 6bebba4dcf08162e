"""One numbered series: which members are settled, which one to guess next, and what the series may still spend.

`runs` are the values that need not be asked any more (known, guessed or refused), as closed ranges in order; at most
`MOST_RUNS`, then the two nearest become one and what lies between is given up. So a value is proposed once, whatever
happens, in bounded memory. Credit is in quarters of a request: a miss costs four, a hit earns one.
Filled and asked by `mining.Miner`.
"""

from bisect import bisect_right
from enum import IntEnum
from itertools import pairwise

import msgspec

MOST_RUNS = 16
MOST_GAP = 2  # missing members in a row that an end of a series may have
MOST_INSIDE = 64  # a wider hole between two members is not filled
SPARSE = 0.15  # share of known members between the first and the last, below which they are ids rather than a series
_BEYOND = 1 << 62
START, MISS, HIT, MOST_CREDIT = 8, 4, 1, 16  # quarters: two misses to begin with, one more for every four hits


class Kind(IntEnum):
    """What a guess rests on. The odds of each are kept per host. Values are stored: never renumber."""

    INSIDE = 0  # between two members
    NEXT = 1  # after the last
    BEFORE = 2  # before the first
    ZERO = 3  # number 0 before number 1
    GAP = 4  # behind a missing one
    LONE = 5  # beside the only member that is known
    SPARSE = 6  # between members far apart
    OUTER = 7  # a number that is not the last one of its path
    ANCESTOR = 8


class Series(msgspec.Struct, array_like=True):
    """The members of one template. `low` and `high` are the outermost that are there, `present` how many are."""

    low: int
    high: int
    runs: list[tuple[int, int]]
    width: int = 0
    is_outer: bool = False
    present: int = 1
    hits: int = 0
    credit: int = START
    open_guesses: int = 0

    @classmethod
    def of(cls, value: int, *, width: int, is_outer: bool) -> "Series":
        return cls(value, value, [(value, value)], width, is_outer)

    def add(self, value: int, width: int) -> bool:
        """A member that is there. False if that was known, or is a guess under way."""
        self.width = self.width or width
        if self._is_settled(value):
            return False
        self.settle(value)
        self.be_present(value)
        return True

    def be_present(self, value: int) -> None:
        self.present += 1
        self.low, self.high = min(self.low, value), max(self.high, value)

    def settle(self, value: int) -> None:
        """Never propose this value again."""
        runs = self.runs
        at = bisect_right(runs, (value, value))
        if self._is_settled(value):
            return
        joins_left, joins_right = at > 0 and runs[at - 1][1] == value - 1, at < len(runs) and runs[at][0] == value + 1
        start, end = runs[at - 1][0] if joins_left else value, runs[at][1] if joins_right else value
        runs[at - joins_left : at + joins_right] = [(start, end)]
        if len(runs) > MOST_RUNS:
            i = min(range(len(runs) - 1), key=lambda i: runs[i + 1][0] - runs[i][1])
            runs[i : i + 2] = [(runs[i][0], runs[i + 1][1])]

    def candidates(self) -> list[tuple[Kind, int]]:
        """What could be guessed now, the likeliest first."""
        if self.credit < MISS * (1 + self.open_guesses):
            return []
        found = []
        inside = self._inside()
        if inside is not None:
            is_sparse = self.present < SPARSE * (self.high - self.low + 1)
            found.append((Kind.SPARSE if is_sparse else Kind.INSIDE, inside))
        if self.open_guesses == 0 or self.hits:
            found += [self._end(+1), self._end(-1)]
        named = [(Kind.OUTER if self.is_outer else kind, value) for kind, value in found if value >= 0]
        return sorted(named, key=lambda candidate: candidate[0])

    def _inside(self) -> int | None:
        """The first value of the smallest hole."""
        runs = self.runs
        holes = [
            (after[0] - before[1], before[1] + 1)
            for before, after in pairwise(runs)
            if before[1] >= self.low and after[0] <= self.high and after[0] - before[1] <= MOST_INSIDE
        ]
        return min(holes)[1] if holes else None

    def _end(self, step: int) -> tuple[Kind, int]:
        """The next value beyond one end; −1 where nothing is left to try there."""
        end = self.high if step > 0 else self.low
        start, stop = self.runs[bisect_right(self.runs, (end, _BEYOND)) - 1]
        value = stop + 1 if step > 0 else start - 1
        missing = abs(value - end) - 1
        if missing > MOST_GAP:
            return Kind.GAP, -1
        if missing:
            return Kind.GAP, value if self.credit >= START and not self.open_guesses else -1
        if value == 0:
            return Kind.ZERO, value
        if self.present == 1:
            return Kind.LONE, value
        return (Kind.NEXT if step > 0 else Kind.BEFORE), value

    def _is_settled(self, value: int) -> bool:
        at = bisect_right(self.runs, (value, _BEYOND))
        return at > 0 and self.runs[at - 1][0] <= value <= self.runs[at - 1][1]
