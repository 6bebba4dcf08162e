"""The soak: a short one, and that it sees what does not add up."""

import io

import pytest

from proof.bench import soak
from proof.bench.soak import SoakSample
from proof.experiment import Run, perform
from proof.progress import ProgressSteps


@pytest.mark.slow
def test_short_soak_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(soak, "HOSTS", 40)
    monkeypatch.setattr(soak, "QUICK_EVERY_S", 1.0)
    result = perform(soak.EXPERIMENT, view=ProgressSteps(io.StringIO()), quick=True, minutes=5 / 60)
    assert result.held, result.verdicts
    assert result.findings.figures["samples"].value


def test_counts_that_do_not_add_up_and_leaks_are_seen() -> None:
    run = Run(seed=1, quick=False, view=ProgressSteps(io.StringIO()))
    samples = [SoakSample(n, 100.0 + n, 50 + n, 10 + n, 1_000, int(n == 3)) for n in range(40)]
    soak._report(run, samples)
    figures = {name: figure.value for name, figure in run.findings().figures.items()}
    assert figures[soak.WRONG] == 1
    assert figures[soak.DESCRIPTORS] == figures[soak.THREADS] == 20
    assert 15 < figures[soak.MEMORY] < 20
