"""When to look again: how a budget of visits is spread over pages, by how much each matters and how often it changes.

The cost of a page is its importance μ times H(n), the n-th harmonic number, while n changes of it are not seen. Visits
at rate ρ to a page that changes at rate Δ then cost μ · log(1 + Δ/ρ), and for a budget B the least is reached by
ρ = (−Δ + √(Δ² + 4μΔ/λ)) / 2 with the one λ that spends B. No page starves, none is visited more than it is worth.
A host that cannot take its share politely gets what it can take, and the rest goes to others. Rates are per day.
Pure, in arrays: a million pages take about a second.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]

LEAST_RATE = 1e-6  # changes a day: a page that seems never to change is looked at now and then all the same
_STEPS = 64
_ROUNDS = 4  # hosts that are over their limit are found so often

# The adaptive schedule of Nutch: intervals grow and shrink by these shares.
NUTCH_GROWS, NUTCH_SHRINKS = 0.4, 0.2
NUTCH_FIRST_DAYS, NUTCH_LEAST_DAYS, NUTCH_MOST_DAYS = 30.0, 1 / 24, 365.0


def visit_rate(importance: float, rate: float, price: float) -> float:
    """Visits a day of one page at the price λ that `spread` found."""
    rate = max(rate, LEAST_RATE)
    return float((-rate + np.sqrt(rate * rate + 4 * importance * rate / price)) / 2)


def price_of(importance: Floats, rates: Floats, budget: float) -> float:
    """The λ at which the visits of all pages add up to the budget."""
    rates = np.maximum(rates, LEAST_RATE)
    squares, worth = rates * rates, 4 * importance * rates
    total = float(rates.sum())

    def spent(price: float) -> float:
        return (float(np.sqrt(squares + worth / price).sum()) - total) / 2

    return _bisected(spent, budget)


def _bisected(spent: Callable[[float], float], budget: float) -> float:
    low, high = -40.0, 40.0  # of the log: cheap, dear
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if spent(float(np.exp(middle))) > budget else (low, middle)
    return float(np.exp((low + high) / 2))


def spread(importance: Floats, rates: Floats, budget: float) -> Floats:
    """Visits a day for every page, adding up to the budget: the least harmonic cost."""
    return _at_price(importance, np.maximum(rates, LEAST_RATE), price_of(importance, rates, budget))


def _at_price(importance: Floats, rates: Floats, price: float | Floats) -> Floats:
    visits: Floats = (-rates + np.sqrt(rates * rates + 4 * importance * rates / price)) / 2
    return visits


def prices_by_host(importance: Floats, rates: Floats, hosts: Numbers, most: Floats, budget: float) -> Floats:
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
        load = np.bincount(hosts, _at_price(importance, rates, price), len(most))
        over = ~is_capped & (load > most)
        if not over.any():
            break
        is_capped |= over
    for host in np.flatnonzero(is_capped):  # hosts, not pages: few have more to see than they can show
        here = hosts == host
        prices[host] = price_of(importance[here], rates[here], float(most[host]))
    return prices


def uniform(importance: Floats, rates: Floats, budget: float) -> Floats:
    """Every page alike."""
    return np.full(len(rates), budget / len(rates))


def proportional(importance: Floats, rates: Floats, budget: float) -> Floats:
    """As often as it changes, in proportion."""
    rates = np.maximum(rates, LEAST_RATE)
    visits: Floats = rates * (budget / rates.sum())
    return visits


def adapted(intervals: Floats, changed: NDArray[np.bool_]) -> Floats:
    """The next intervals of the adaptive schedule: shorter after a change, longer without one."""
    factors = np.where(changed, 1 - NUTCH_SHRINKS, 1 + NUTCH_GROWS)
    return np.clip(intervals * factors, NUTCH_LEAST_DAYS, NUTCH_MOST_DAYS)
