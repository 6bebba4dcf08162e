"""How often a page changes, and how a budget of visits is spread over pages.

The rate: a visit tells only whether there was a change since the one before. For a Poisson process of rate Δ the
likelihood is highest where Σ_changed τ/(e^{Δτ} − 1) = Σ_unchanged τ; a weak log-normal prior keeps the answer finite
after few visits.

The schedule: the cost of a page is its importance μ times H(n), the n-th harmonic number, while n of its changes are
unseen. Visits at rate ρ to a page that changes at rate Δ then cost μ · log(1 + Δ/ρ), and for a budget B the least is
reached by ρ = (−Δ + √(Δ² + 4μΔ/λ)) / 2 with the one λ, the price, that spends B. No page starves, and none is visited
more than it is worth. A host that cannot take its share politely gets what it can take; the rest goes to others. Rates
are per day, times are in days. Pure; a million pages take about a second.
"""

from collections.abc import Callable
from math import exp, expm1, log

import msgspec
import numpy as np
from numpy.typing import NDArray

MOST_SEEN = 32  # intervals kept of a page: what was long ago says little of today
LONGEST_INTERVAL_DAYS = 400.0  # of an interval, and shortest: a clock that jumped is not believed
SHORTEST_INTERVAL_DAYS = 1 / 86_400
SLOWEST, FASTEST = 1e-5, 1e4  # changes a day
_RATE_STEPS = 60


class Prior(msgspec.Struct, frozen=True):
    """The log-normal prior of a page's rate: `median` in changes a day, `sigma` the spread of the logarithm."""

    median: float = 1 / 30
    sigma: float = 1.8


USUAL = Prior()


class VisitIntervals(msgspec.Struct, array_like=True, frozen=True):
    """The days between a page's visits, negative if nothing had changed. Successive intervals without a change are
    added up: only their sum counts."""

    intervals: tuple[float, ...] = ()

    def visited(self, days: float, *, changed: bool) -> "VisitIntervals":
        """The intervals after one more visit; one that a clock which went back has made is ignored."""
        if days < SHORTEST_INTERVAL_DAYS:
            return self
        days = min(days, LONGEST_INTERVAL_DAYS)
        kept = self.intervals
        if changed:
            return VisitIntervals((*kept, days)[-MOST_SEEN:])
        if kept and kept[-1] < 0:
            return VisitIntervals((*kept[:-1], max(kept[-1] - days, -LONGEST_INTERVAL_DAYS)))
        return VisitIntervals((*kept, -days)[-MOST_SEEN:])


def estimate_rate(seen: VisitIntervals, prior: Prior = USUAL) -> float:
    """The rate of one page, in changes a day."""
    changed = [days for days in seen.intervals if days > 0]
    unchanged = -sum(days for days in seen.intervals if days < 0)
    middle, weight = log(prior.median), 1 / prior.sigma**2
    low, high = log(SLOWEST), log(FASTEST)
    for _ in range(_RATE_STEPS):  # the slope of the log-likelihood over log Δ falls all the way
        theta = (low + high) / 2
        rate = exp(theta)
        slope = sum(_likely(rate * days) for days in changed) - rate * unchanged - (theta - middle) * weight
        low, high = (theta, high) if slope > 0 else (low, theta)
    return exp((low + high) / 2)


def _likely(x: float) -> float:
    return x / expm1(x) if 1e-9 < x < 700 else 1.0 if x <= 1e-9 else 0.0


FloatArray = NDArray[np.float64]
Numbers = NDArray[np.int64]

LEAST_RATE = 1e-6  # changes a day: a page that seems never to change is looked at now and then all the same
_PRICE_STEPS = 64
_ROUNDS = 4  # hosts that are over their limit are found so often


def visit_rate(importance: float, rate: float, price: float) -> float:
    """Visits a day of one page at the price λ."""
    rate = max(rate, LEAST_RATE)
    return float((-rate + np.sqrt(rate * rate + 4 * importance * rate / price)) / 2)


def price_of(importance: FloatArray, rates: FloatArray, budget: float) -> float:
    """The λ at which the visits of all pages add up to the budget."""
    rates = np.maximum(rates, LEAST_RATE)
    squares, worth = rates * rates, 4 * importance * rates
    total = float(rates.sum())

    def spent(price: float) -> float:
        return (float(np.sqrt(squares + worth / price).sum()) - total) / 2

    return _bisected(spent, budget)


def _bisected(spent: Callable[[float], float], budget: float) -> float:
    low, high = -40.0, 40.0  # of the log: cheap, dear
    for _ in range(_PRICE_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if spent(float(np.exp(middle))) > budget else (low, middle)
    return float(np.exp((low + high) / 2))


def visit_rates(importance: FloatArray, rates: FloatArray, price: float) -> FloatArray:
    """Visits a day of many pages at the price λ; no rate is below `LEAST_RATE`."""
    visits: FloatArray = (-rates + np.sqrt(rates * rates + 4 * importance * rates / price)) / 2
    return visits


def prices_by_host(
    importance: FloatArray, rates: FloatArray, hosts: Numbers, most: FloatArray, budget: float
) -> FloatArray:
    """The λ of every host: one for all that are within `most` visits a day, a dearer one for each that is not."""
    rates = np.maximum(rates, LEAST_RATE)
    prices = np.zeros(len(most))
    is_capped = np.zeros(len(most), dtype=bool)
    for _ in range(_ROUNDS):
        is_free = ~is_capped[hosts]
        left = max(budget - float(most[is_capped].sum()), 0.0)
        if not is_free.any() or not left:
            break
        price = price_of(importance[is_free], rates[is_free], left)
        prices[~is_capped] = price
        load = np.bincount(hosts, visit_rates(importance, rates, price), len(most))
        over = ~is_capped & (load > most)
        if not over.any():
            break
        is_capped |= over
    for host in np.flatnonzero(is_capped):  # hosts, not pages: few have more to see than they can show
        here = hosts == host
        prices[host] = price_of(importance[here], rates[here], float(most[host]))
    return prices
