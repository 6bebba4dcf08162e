"""A simulated year in small: the learned schedule is near the best there is, and far from equal visits."""

import pytest

from proof.lab.freshness import KNOWN, OURS, PLANS, UNIFORM, World, Year


@pytest.mark.slow
def test_year_of_learned_visits_costs_little_more_than_one_of_known_rates() -> None:
    world = World.of(2, 1_000, 0.8)
    cost = {}
    for name in (OURS, KNOWN, UNIFORM):
        year = Year(world, PLANS[name])
        year.run(lambda: None)
        assert sum(map(len, year.visits)) == 36_500
        cost[name] = year.costs()[0].mean()
    assert cost[OURS] <= 0.75 * cost[UNIFORM]
    assert cost[OURS] <= 1.15 * cost[KNOWN]
