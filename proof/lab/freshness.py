"""How fresh a collection is kept by the same budget of visits, spread in five ways over one simulated year.

Pages matter by Zipf's law and change as Poisson processes with log-normal rates. Every schedule gets exactly the same
number of visits, sees of a page only whether it changed since the visit before, and starts with no more than that the
page is there; only `known rates` is told the truth. The same changes happen to all of them. The harmonic cost of a page
is its importance times H(n) while n changes of it have not been seen, averaged over pages and the year.
"""

import time
from collections.abc import Callable
from math import log

import msgspec
import numpy as np
from numpy.typing import NDArray

from lycosa.recrawl.change.schedule import (
    FASTEST,
    LEAST_RATE,
    MOST_SEEN,
    SLOWEST,
    USUAL,
    FloatArray,
    Numbers,
    Prior,
    price_of,
    visit_rates,
)
from proof import Axis, Bar, Column, ColumnChart, Experiment, Line, LineChart, Run

DAYS = 365.0
STEP_DAYS = 0.25
VISITS_A_PAGE = 0.1  # a day
ZIPF, SIGMA, MEDIAN = 0.8, 1.5, 1 / 30
REPLAN_STEPS = 4
BINS = 12
SPAN = DAYS + 1  # a page's stretch on the common time line

# The adaptive schedule of Nutch: intervals grow and shrink by these shares.
NUTCH_GROWS, NUTCH_SHRINKS = 0.4, 0.2
NUTCH_FIRST_DAYS, NUTCH_LEAST_DAYS, NUTCH_MOST_DAYS = 30.0, 1 / 24, 365.0
OURS, KNOWN, UNIFORM, PROPORTIONAL, NUTCH = "Lycosa", "known rates", "uniform", "proportional", "Nutch-like"


def estimate_rates(changed: FloatArray, unchanged: FloatArray, prior: Prior = USUAL) -> FloatArray:
    """The rates of many pages. `changed` has a row of intervals a page, filled up with zeros; `unchanged` has the sums
    of the intervals without a change."""
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
    found: FloatArray = np.exp((low + high) / 2)
    return found


def spread(importance: FloatArray, rates: FloatArray, budget: float) -> FloatArray:
    """Visits a day for every page, adding up to the budget, at the least harmonic cost."""
    return visit_rates(importance, np.maximum(rates, LEAST_RATE), price_of(importance, rates, budget))


def proportional(importance: FloatArray, rates: FloatArray, budget: float) -> FloatArray:
    """Visits in proportion to the rate of change."""
    rates = np.maximum(rates, LEAST_RATE)
    visits: FloatArray = rates * (budget / rates.sum())
    return visits


def adaptive(intervals: FloatArray, changed: NDArray[np.bool_]) -> FloatArray:
    """The next intervals of the adaptive schedule: shorter after a change, longer without one."""
    factors = np.where(changed, 1 - NUTCH_SHRINKS, 1 + NUTCH_GROWS)
    return np.clip(intervals * factors, NUTCH_LEAST_DAYS, NUTCH_MOST_DAYS)


class World(msgspec.Struct, frozen=True):
    """`events` are the changes of all pages on one line: page × SPAN + day, sorted; `first` is where a page begins."""

    importance: FloatArray
    rates: FloatArray
    events: FloatArray
    first: Numbers

    @classmethod
    def of(cls, seed: int, pages: int, zipf: float) -> "World":
        draw = np.random.default_rng(seed)
        importance = 1 / np.arange(1, pages + 1) ** zipf
        importance /= importance.mean()
        draw.shuffle(importance)
        rates = MEDIAN * np.exp(SIGMA * draw.standard_normal(pages))
        counts = draw.poisson(rates * DAYS)
        days = draw.random(int(counts.sum())) * DAYS
        events = np.sort(np.repeat(np.arange(pages), counts) * SPAN + days)
        return cls(importance, rates, events, np.concatenate([[0], np.cumsum(counts)]))


class Year:
    """One schedule's year: what it knows of the pages, and what it visited."""

    def __init__(self, world: World, plan: Callable[["Year"], FloatArray]) -> None:
        pages = len(world.rates)
        self.world, self.plan, self.budget = world, plan, VISITS_A_PAGE * pages
        self.last, self.seen_events = np.zeros(pages), world.first[:-1].copy()
        self.changed, self.changes = np.zeros((pages, MOST_SEEN)), np.zeros(pages, dtype=np.int64)
        self.unchanged, self.estimates = np.zeros(pages), np.full(pages, USUAL.median)
        self.intervals = np.full(pages, NUTCH_FIRST_DAYS)
        self.visits: list[FloatArray] = []

    def run(self, advance: Callable[[], None]) -> None:
        count, rates = int(self.budget * STEP_DAYS), np.ones(len(self.last))
        for step in range(int(DAYS / STEP_DAYS)):
            if step % REPLAN_STEPS == 0:
                rates = self.plan(self)
                advance()
            now = (step + 1) * STEP_DAYS
            overdue = (now - self.last) * rates
            self._visit(np.argpartition(overdue, -count)[-count:], now)

    def _visit(self, pages: Numbers, now: float) -> None:
        events = np.searchsorted(self.world.events, pages * SPAN + now, side="right")
        has_changed = events > self.seen_events[pages]
        days = now - self.last[pages]
        self.seen_events[pages], self.last[pages] = events, now
        self.intervals[pages] = adaptive(self.intervals[pages], has_changed)
        self.unchanged[pages[~has_changed]] += days[~has_changed]
        those = pages[has_changed]
        self.changed[those, self.changes[those] % MOST_SEEN] = days[has_changed]
        self.changes[those] += 1
        self.estimates[pages] = estimate_rates(self.changed[pages], self.unchanged[pages])
        self.visits.append((pages * SPAN + now).astype(np.float64))

    def costs(self) -> tuple[FloatArray, float]:
        """The harmonic cost of each twelfth of the year, and the share of the importance that is fresh, over all."""
        world, pages = self.world, len(self.last)
        ends = np.sort(np.concatenate([*self.visits, np.arange(pages) * SPAN + DAYS]))
        end = np.searchsorted(ends, world.events, side="left")  # the visit that sees an event
        upto = np.searchsorted(world.events, ends, side="right")
        page = (world.events // SPAN).astype(np.int64)
        start = np.maximum(np.concatenate([[0], upto[:-1]])[end], world.first[page])
        rank = np.arange(len(world.events)) - start + 1  # the n-th change since the visit before
        happened, seen = world.events - page * SPAN, ends[end] - page * SPAN
        weight = world.importance[page] / rank / world.importance.sum()
        costs = np.array([_within(happened, seen, weight, bin_) for bin_ in range(BINS)]) / (DAYS / BINS)
        stale = float((weight * (seen - happened))[rank == 1].sum() / DAYS)
        return costs, 1 - stale


def _within(start: FloatArray, end: FloatArray, weight: FloatArray, bin_: int) -> float:
    low, high = bin_ * DAYS / BINS, (bin_ + 1) * DAYS / BINS
    return float((weight * np.maximum(np.minimum(end, high) - np.maximum(start, low), 0.0)).sum())


PLANS: dict[str, Callable[[Year], FloatArray]] = {
    OURS: lambda year: spread(year.world.importance, year.estimates, year.budget),
    KNOWN: lambda year: spread(year.world.importance, year.world.rates, year.budget),
    UNIFORM: lambda year: np.ones(len(year.last)),
    PROPORTIONAL: lambda year: proportional(year.world.importance, year.estimates, year.budget),
    NUTCH: lambda year: 1 / year.intervals,
}


def measure(run: Run) -> None:
    pages = 2_000 if run.quick else 10_000
    for name, value in (("pages", pages), ("days", DAYS), ("visits a page and day", VISITS_A_PAGE), ("sigma", SIGMA)):
        run.setting(name, value)
    run.setting("median changes a day", f"1/{1 / MEDIAN:.0f}")
    worlds = {"Zipf(0.8)": World.of(run.seed, pages, ZIPF), "equal": World.of(run.seed, pages, 0.0)}
    found: dict[tuple[str, str], tuple[FloatArray, float]] = {}
    with run.progress(len(worlds) * len(PLANS) * int(DAYS), "days") as step:
        for importance, world in worlds.items():
            for name, plan in PLANS.items():
                year = Year(world, plan)
                year.run(step.advance)
                found[importance, name] = year.costs()
    _report(run, found)


def _report(run: Run, found: dict[tuple[str, str], tuple[NDArray[np.float64], float]]) -> None:
    cost = {key: float(costs.mean()) for key, (costs, _) in found.items()}
    zipf = "Zipf(0.8)"
    run.figure("cost below uniform", 100 * (1 - cost[zipf, OURS] / cost[zipf, UNIFORM]), "%")
    run.figure("cost below the Nutch-like schedule", 100 * (1 - cost[zipf, OURS] / cost[zipf, NUTCH]), "%")
    run.figure("cost above known rates", 100 * (cost[zipf, OURS] / cost[zipf, KNOWN] - 1), "%")
    run.figure("cost below uniform, equal importance", 100 * (1 - cost["equal", OURS] / cost["equal", UNIFORM]), "%")
    run.figure("CPU to schedule a million pages", _million(run.seed), "s")
    run.table(
        ["importance", "schedule", "harmonic cost", "fresh %"],
        [(who, name, round(cost[who, name], 4), round(100 * found[who, name][1], 2)) for who, name in found],
    )
    for who in ("Zipf(0.8)", "equal"):
        columns = tuple(Column(name, cost[who, name]) for name in PLANS)
        run.plot(ColumnChart(f"Importance {who}", Axis("harmonic cost"), columns))
    months = [(bin_ + 0.5) * DAYS / BINS for bin_ in range(BINS)]
    lines = tuple(Line(name, months, list(found[zipf, name][0])) for name in PLANS)
    run.plot(LineChart("Rates are learned within weeks", Axis("time", "days"), Axis("harmonic cost"), lines))


def _million(seed: int) -> float:
    draw = np.random.default_rng(seed)
    importance = 1 / np.arange(1, 1_000_001) ** ZIPF
    rates = MEDIAN * np.exp(SIGMA * draw.standard_normal(1_000_000))
    began = time.process_time()
    spread(importance, rates, 100_000.0)
    return time.process_time() - began


EXPERIMENT = Experiment(
    name="freshness",
    summary="how fresh the same budget keeps a collection, spread in five ways",
    claim_id="own",
    claim="Visits spread by importance and learned rates of change keep pages fresher than equal or adaptive ones.",
    bars=(
        Bar("better than uniform", "cost below uniform", ">=", 25.0),
        Bar("better than Nutch-like", "cost below the Nutch-like schedule", ">=", 25.0),
        Bar("near the optimum", "cost above known rates", "<=", 10.0),
        Bar("quick", "CPU to schedule a million pages", "<=", 2.0),
    ),
    run=measure,
)
