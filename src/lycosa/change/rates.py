"""How often a page changes: the rate that makes what its visits saw most likely, visits being as irregular as they are.

A visit tells only whether there was a change since the one before. For a Poisson process of rate Δ the likelihood is
highest where Σ_changed τ/(e^{Δτ} − 1) = Σ_unchanged τ; a weak prior (log-normal around a usual page) keeps the answer
finite after few visits, and is all there is to say of a page that was never visited again. Times are in days.
Pure. `Seen` is what is kept of a page; `estimate` is for one page, `estimate_all` for arrays of them.
"""

from math import exp, expm1, log

import msgspec
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

MOST_SEEN = 32  # intervals kept of a page: what was long ago says little of today
LONGEST_DAYS = 400.0  # of an interval, and shortest: a clock that jumped is not believed
SHORTEST_DAYS = 1 / 86_400
SLOWEST, FASTEST = 1e-5, 1e4  # changes a day
_STEPS = 60


class Prior(msgspec.Struct, frozen=True):
    """What is believed of a page before it was seen twice: `median` changes a day, `sigma` the spread of the log."""

    median: float = 1 / 30
    sigma: float = 1.8


USUAL = Prior()


class Seen(msgspec.Struct, array_like=True, frozen=True):
    """What visits saw of a page: the time between two of them in days, negative where nothing had changed. Intervals
    without a change that follow upon each other are one: it is their sum that counts."""

    intervals: tuple[float, ...] = ()

    def visited(self, days: float, *, changed: bool) -> "Seen":
        """After one more visit. A clock that stood still or went back tells nothing."""
        if days < SHORTEST_DAYS:
            return self
        days = min(days, LONGEST_DAYS)
        kept = self.intervals
        if changed:
            return Seen((*kept, days)[-MOST_SEEN:])
        if kept and kept[-1] < 0:
            return Seen((*kept[:-1], max(kept[-1] - days, -LONGEST_DAYS)))
        return Seen((*kept, -days)[-MOST_SEEN:])


def estimate(seen: Seen, prior: Prior = USUAL) -> float:
    """Changes a day of one page."""
    changed = [days for days in seen.intervals if days > 0]
    unchanged = -sum(days for days in seen.intervals if days < 0)
    middle, weight = log(prior.median), 1 / prior.sigma**2
    low, high = log(SLOWEST), log(FASTEST)
    for _ in range(_STEPS):  # the slope of the log-likelihood over log Δ falls all the way
        theta = (low + high) / 2
        rate = exp(theta)
        slope = sum(_likely(rate * days) for days in changed) - rate * unchanged - (theta - middle) * weight
        low, high = (theta, high) if slope > 0 else (low, theta)
    return exp((low + high) / 2)


def _likely(x: float) -> float:
    return x / expm1(x) if 1e-9 < x < 700 else 1.0 if x <= 1e-9 else 0.0


def estimate_all(changed: Floats, unchanged: Floats, prior: Prior = USUAL) -> Floats:
    """Changes a day of many pages: `changed` has a row of intervals a page, filled up with zeros; `unchanged` their
    sums without a change."""
    middle, weight = log(prior.median), 1 / prior.sigma**2
    low, high = np.full(len(unchanged), log(SLOWEST)), np.full(len(unchanged), log(FASTEST))
    is_there = changed > 0
    for _ in range(30):
        theta = (low + high) / 2
        rate = np.exp(theta)
        x = np.minimum(rate[:, None] * changed, 700.0)
        with np.errstate(invalid="ignore", divide="ignore"):
            terms = np.where(is_there, np.where(x > 1e-9, x / np.expm1(x), 1.0), 0.0)
        rises = terms.sum(axis=1) - rate * unchanged - (theta - middle) * weight > 0
        low, high = np.where(rises, theta, low), np.where(rises, high, theta)
    found: Floats = np.exp((low + high) / 2)
    return found
