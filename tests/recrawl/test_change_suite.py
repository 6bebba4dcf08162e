"""The verdict suite over the simulated web, a smaller one of what `make lab NAME=change` runs."""

import io

import pytest

from proof.experiment import perform
from proof.lab.change import EXPERIMENT
from proof.progress import ProgressSteps


@pytest.mark.slow
def test_verdicts_on_a_thousand_simulated_pairs_miss_nothing_and_cry_no_wolf() -> None:
    result = perform(EXPERIMENT, seed=3, quick=True, view=ProgressSteps(io.StringIO()))
    found = {name: figure.value for name, figure in result.findings.figures.items()}
    assert found["changes missed"] == 0
    assert found["false alarms"] <= 0.5
    assert min(found["volatile parts recognised, marked"], found["volatile parts recognised, not marked"]) >= 95
    assert found["changes missed by the codes"] > 0
