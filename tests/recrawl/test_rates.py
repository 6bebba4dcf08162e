"""Rates from irregular visits: the likelihood's equation, a prior that keeps few visits finite, clocks that jump."""

from math import expm1

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lycosa.recrawl.change.schedule import MOST_SEEN, Prior, VisitIntervals, estimate_rate
from proof.lab.freshness import estimate_rates

FLAT = Prior(1 / 30, 1e6)  # no prior at all, as good as


def test_rate_under_a_flat_prior_solves_the_likelihoods_equation() -> None:
    seen = VisitIntervals((1.0, -5.0, 3.0, 0.5, -20.0, 2.0))
    rate = estimate_rate(seen, FLAT)
    assert sum(days / expm1(rate * days) for days in (1.0, 3.0, 0.5, 2.0)) == pytest.approx(25.0, rel=1e-6)


@pytest.mark.parametrize("true_rate", [0.02, 0.3, 4.0])
def test_rate_of_many_irregular_visits_comes_near_the_true_one(true_rate: float) -> None:
    draw = np.random.default_rng(4)
    rates = []
    for _ in range(50):
        seen = VisitIntervals()
        for _ in range(300):
            days = draw.exponential(1 / true_rate)
            seen = seen.visited(days, changed=draw.random() < 1 - np.exp(-true_rate * days))
        rates.append(estimate_rate(seen))
    assert np.median(rates) == pytest.approx(true_rate, rel=0.15)


def test_rate_of_a_page_that_was_never_seen_twice_is_the_usual_one() -> None:
    assert estimate_rate(VisitIntervals()) == pytest.approx(1 / 30)


def test_rate_after_changes_or_none_at_all_stays_finite_and_moves_the_right_way() -> None:
    usual = estimate_rate(VisitIntervals())
    assert (
        1e-4 < estimate_rate(VisitIntervals((-300.0,))) < usual < estimate_rate(VisitIntervals((0.1, 0.1, 0.1))) < 100
    )


def test_rates_of_many_pages_are_those_of_each() -> None:
    pages = [
        VisitIntervals((1.0, -5.0)),
        VisitIntervals((-100.0,)),
        VisitIntervals((0.01, 0.02, 0.5)),
        VisitIntervals(),
    ]
    changed, unchanged = np.zeros((len(pages), 3)), np.zeros(len(pages))
    for page, seen in enumerate(pages):
        those = [days for days in seen.intervals if days > 0]
        changed[page, : len(those)] = those
        unchanged[page] = -sum(days for days in seen.intervals if days < 0)
    assert estimate_rates(changed, unchanged) == pytest.approx([estimate_rate(seen) for seen in pages], rel=1e-4)


@pytest.mark.parametrize("days", [0.0, -1.0, -1e9])
def test_visit_by_a_clock_that_went_back_tells_nothing(days: float) -> None:
    assert VisitIntervals((1.0,)).visited(days, changed=True) == VisitIntervals((1.0,))


def test_visit_by_a_clock_that_jumped_a_century_counts_as_a_year() -> None:
    assert VisitIntervals().visited(36_500.0, changed=False).intervals == (-400.0,)


@given(st.lists(st.tuples(st.floats(-10, 1e6), st.booleans()), max_size=100))
def test_what_is_kept_of_any_visits_is_bounded_and_gives_a_rate(visits: list[tuple[float, bool]]) -> None:
    seen = VisitIntervals()
    for days, changed in visits:
        seen = seen.visited(days, changed=changed)
    assert len(seen.intervals) <= MOST_SEEN
    assert 1e-5 <= estimate_rate(seen) <= 1e4
