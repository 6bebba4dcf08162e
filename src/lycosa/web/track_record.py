"""What came of predictions: mean relevance by host and by folder, and how often a prediction came true.

A `Ledger` keeps a sum and a count for a bounded number of names, the ones not asked about for longest going first. A
`Calibration` turns a raw prediction into what pages so predicted turned out to be: twenty steps of log-odds, each a
running mean, smoothed so that a higher prediction never means less. Pure. Used by `relevance.Topic`.
"""

from collections.abc import Mapping, Sequence
from math import exp, log

STEPS, STEP = 20, 0.5  # of log-odds, from -5 to 5
BELIEF = 8.0  # outcomes: what a step is taken to have seen, as predicted, before it has seen anything
FADE_AT = 4_000  # outcomes of a step; then its past counts half, so that late ones still matter
NEWS = 32  # the means are worked out anew when so small a part of all outcomes has come since
LEAST, MOST = 0.002, 0.998  # no prediction is a certainty, or nothing could move it


class Ledger:
    """Sum and number of outcomes by name, in two generations of `size` names."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._young: dict[str, tuple[float, int]] = {}
        self._old: dict[str, tuple[float, int]] = {}

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def get(self, name: str) -> tuple[float, int] | None:
        """(sum, number) of a name, or None."""
        return self._young.get(name) or self._old.get(name)

    def add(self, name: str, value: float) -> None:
        total, count = self.get(name) or (0.0, 0)
        self._young[name] = (total + value, count + 1)
        if len(self._young) >= self._size:
            self._young, self._old = {}, self._young

    def latest(self, most: int) -> dict[str, tuple[float, int]]:
        """The names with outcomes last, at most so many."""
        names = [*self._old, *self._young][-most:]
        return {name: found for name in names if (found := self.get(name))}

    def restore(self, records: Mapping[str, tuple[float, int]]) -> None:
        self._young.update(records)


class Calibration:
    """Predicted → actual."""

    def __init__(self) -> None:
        self._expected = [1 / (1 + exp((STEPS / 2 - step - 0.5) * STEP)) for step in range(STEPS)]
        self._sums = [BELIEF * share for share in self._expected]
        self._counts = [BELIEF] * STEPS
        self._means = list(self._expected)
        self._news_left = 0.0  # outcomes that may come before the means are worked out anew
        self.edition = 0  # goes up whenever they were

    def add(self, predicted: float, actual: float) -> None:
        step = _step(predicted)
        self._sums[step] += actual
        self._counts[step] += 1
        if self._counts[step] > FADE_AT:
            self._sums[step], self._counts[step] = self._sums[step] / 2, self._counts[step] / 2
        self._news_left -= 1
        if self._news_left < 0:
            self._renew()

    def sums(self) -> list[tuple[float, float]]:
        """Sum and number of outcomes of each step."""
        return list(zip(self._sums, self._counts, strict=True))

    def restore(self, sums: Sequence[tuple[float, float]]) -> None:
        self._sums, self._counts = [total for total, _ in sums], [count for _, count in sums]
        self._renew()

    def _renew(self) -> None:
        self._means = _rising(self._sums, self._counts)
        self._news_left = (sum(self._counts) - BELIEF * STEPS) / NEWS
        self.edition += 1

    def actual(self, predicted: float) -> float:
        """What pages with this prediction turned out to be, on the mean; between steps along a line."""
        place = _place(predicted) - 0.5
        low = max(0, min(STEPS - 2, int(place)))
        part = max(0.0, min(1.0, place - low))
        return self._means[low] * (1 - part) + self._means[low + 1] * part


def _place(share: float) -> float:
    share = max(LEAST, min(MOST, share))
    return log(share / (1 - share)) / STEP + STEPS / 2


def _step(share: float) -> int:
    return max(0, min(STEPS - 1, int(_place(share))))


def _rising(sums: list[float], counts: list[float]) -> list[float]:
    """The means, neighbours that fall pooled into one: the nearest sequence that never falls."""
    pools: list[tuple[float, float, int]] = []
    for total, count in zip(sums, counts, strict=True):
        pool = (total, count, 1)
        while pools and pools[-1][0] * pool[1] > pool[0] * pools[-1][1]:
            before = pools.pop()
            pool = (before[0] + pool[0], before[1] + pool[1], before[2] + pool[2])
        pools.append(pool)
    return [total / count for total, count, width in pools for _ in range(width)]
