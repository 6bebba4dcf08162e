"""Importance: cash is neither made nor lost on the mean, coins spare writes, bands are coarse and steady."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lycosa.frontier.rankings import BANDS, COINS, GIFT, MIDDLE, Importance


def test_page_hands_its_cash_and_gift_on_in_equal_parts() -> None:
    flow = Importance()
    deltas = flow.spread(1.0, ["a", "b"])
    assert deltas["a"] == pytest.approx(deltas["b"], abs=flow.coin)
    assert sum(deltas.values()) == pytest.approx(1.0 + GIFT, abs=2 * flow.coin)


def test_small_cash_is_right_on_the_mean_and_seldom_written() -> None:
    flow = Importance()
    links = list(range(60))
    given_out, writes, before = 0.0, 0, 0.0
    for _ in range(3_000):
        deltas = flow.spread(1.0, links)
        writes += len(deltas)
        given_out += sum(deltas.values())
        before += 1.0 + GIFT
    assert given_out == pytest.approx(before, rel=0.02)
    assert writes < 3_000 * 60 / 2


def test_cash_of_pages_without_links_comes_back_through_the_root() -> None:
    flow = Importance()
    flow.spread(10.0, [])
    held = flow.root
    assert held == pytest.approx(10.0 + GIFT * 10.0)
    assert flow.spread(1.0, ["a"])["a"] > 1.0
    assert flow.root == pytest.approx(held * 0.99)


def test_usual_cash_is_in_the_middle_and_factors_of_two_are_bands() -> None:
    flow = Importance()
    for _ in range(10):
        flow.spread(3.0, ["a"])
    assert flow.usual == pytest.approx(3.0)
    assert [flow.band(3.01 * 2.0**step) for step in range(-MIDDLE, BANDS - MIDDLE)] == list(range(BANDS))
    assert flow.band(0.0) == 0
    assert flow.band(1e9) == BANDS - 1


@given(st.lists(st.tuples(st.floats(0, 100), st.integers(0, 30)), max_size=40), st.floats(0, 100), st.floats(0, 100))
def test_any_crawl_keeps_bands_in_order_and_coins_small(
    pages: list[tuple[float, int]], one: float, other: float
) -> None:
    flow = Importance()
    for cash, links in pages:
        assert all(delta > 0 for delta in flow.spread(cash, range(links)).values())
    low, high = sorted((one, other))
    assert 0 <= flow.band(low) <= flow.band(high) < BANDS
    assert flow.root >= 0
    assert flow.coin <= flow.usual / COINS * (1 + 1e-9)


def test_same_seed_same_deltas() -> None:
    def deltas() -> list[dict[int, float]]:
        flow = Importance(seed=7)
        return [flow.spread(0.5, range(i % 7 * 10)) for i in range(50)]

    assert deltas() == deltas()
