"""Faults of the machine: a short form of the campaign."""

import io

import pytest

from proof.bench import machine
from proof.experiment import perform
from proof.progress import ProgressSteps


@pytest.mark.slow
def test_failing_writes_and_a_signal_cost_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "QUICK_PAGES", 300)
    only = ["write-error", "sigterm"]  # the first is left out where there is no strace
    result = perform(machine.EXPERIMENT, view=ProgressSteps(io.StringIO()), quick=True, only=only)
    assert result.held, result.verdicts
    assert result.findings.figures["faults tried"].value
