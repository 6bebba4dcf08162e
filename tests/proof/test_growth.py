"""The fit of the benchmark `growth`."""

import math

import pytest

from proof.bench.growth import STEEPEST, GrowthPoint, fitted

SIZES = (10_000, 100_000, 1_000_000, 10_000_000)


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0, 2.0])
def test_power_behind_the_points_is_found(power: float) -> None:
    found = fitted([GrowthPoint(n, 3e-6 * n**power) for n in SIZES])
    assert found.exponent == pytest.approx(power)
    assert found.of(30_000) == pytest.approx(3e-6 * 30_000**power)


def test_limit_lets_n_log_n_pass_and_stops_what_is_steeper() -> None:
    assert fitted([GrowthPoint(n, 1e-6 * n * math.log(n)) for n in SIZES]).exponent <= STEEPEST
    assert fitted([GrowthPoint(n, 1e-6 * n**1.25) for n in SIZES]).exponent > STEEPEST
