"""The schedule: spends its budget exactly, costs least, starves nobody, and keeps to what a host can take."""

import numpy as np
import pytest

from lycosa.recrawl.change.schedule import price_of, prices_by_host, visit_rate
from proof.lab.freshness import adaptive, proportional, spread


def world(pages: int) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(5)
    return 1 / np.arange(1, pages + 1) ** 0.8, np.exp(1.5 * draw.standard_normal(pages)) / 30


def cost(importance: np.ndarray, rates: np.ndarray, visits: np.ndarray) -> float:
    return float((importance * np.log1p(rates / visits)).sum())


@pytest.mark.parametrize("way", [spread, proportional])
@pytest.mark.parametrize("budget", [0.5, 100.0, 1e6])
def test_every_way_spends_its_budget_exactly(way, budget: float) -> None:
    assert way(*world(1_000), budget).sum() == pytest.approx(budget, rel=1e-9)


def test_spread_costs_less_than_any_other_way_and_than_its_neighbours() -> None:
    importance, rates = world(1_000)
    best = spread(importance, rates, 100.0)
    least = cost(importance, rates, best)
    assert least < 0.8 * cost(importance, rates, np.full(len(rates), 100.0 / len(rates)))
    assert least < cost(importance, rates, proportional(importance, rates, 100.0))
    draw = np.random.default_rng(1)
    for _ in range(20):  # move some visits from one page to another
        other = best * np.exp(0.1 * draw.standard_normal(len(best)))
        assert cost(importance, rates, other * (100.0 / other.sum())) > least


def test_spread_starves_nobody_however_fast_or_slow_it_changes() -> None:
    rates = np.array([0.0, 1e-9, 1e-3, 1.0, 1e4])
    visits = spread(np.ones(5), rates, 1.0)
    assert (visits > 0).all()
    assert visits[4] < 1.0


def test_rate_of_one_page_at_the_price_is_that_of_the_spread() -> None:
    importance, rates = world(50)
    price = price_of(importance, rates, 5.0)
    one_by_one = [visit_rate(m, r, price) for m, r in zip(importance, rates, strict=True)]
    assert one_by_one == pytest.approx(spread(importance, rates, 5.0))


def test_host_that_cannot_take_its_share_gets_what_it_can_and_others_the_rest() -> None:
    importance, rates = world(300)
    hosts = np.arange(300) % 3
    most = np.array([2.0, 1e9, 1e9])
    prices = prices_by_host(importance, rates, hosts, most, 60.0)
    visits = (-rates + np.sqrt(rates**2 + 4 * importance * rates / prices[hosts])) / 2
    load = np.bincount(hosts, visits)
    assert load[0] == pytest.approx(2.0)
    assert load.sum() == pytest.approx(60.0)
    assert prices[1] == prices[2] < prices[0]


def test_adaptive_intervals_shrink_after_a_change_and_grow_without_within_bounds() -> None:
    found = adaptive(np.array([10.0, 10.0, 0.05, 300.0]), np.array([True, False, True, False]))
    assert found == pytest.approx([8.0, 14.0, 1 / 24, 365.0])


def test_visits_of_many_pages_spend_the_budget_and_no_more() -> None:
    """That a million pages take less than two seconds is a bar of `make lab NAME=freshness`."""
    importance, rates = world(100_000)
    assert spread(importance, rates, 10_000.0).sum() == pytest.approx(10_000.0)
