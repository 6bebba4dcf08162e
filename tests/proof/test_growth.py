"""The fit of the benchmark `growth`."""

import math

import pytest

from proof.bench.growth import STEEPEST, GrowthPoint, exponent

SIZES = (10_000, 100_000, 1_000_000)


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0, 2.0])
def test_exponent_of_a_power_is_found(power: float) -> None:
    assert exponent([GrowthPoint(n, 3e-6 * n**power) for n in SIZES]) == pytest.approx(power)


def test_limit_lets_n_log_n_pass_and_stops_what_is_steeper() -> None:
    assert exponent([GrowthPoint(n, 1e-6 * n * math.log(n)) for n in SIZES]) <= STEEPEST
    assert exponent([GrowthPoint(n, 1e-6 * n**1.25) for n in SIZES]) > STEEPEST
