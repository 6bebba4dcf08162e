"""The soak: a short one that is killed and goes on, and that it sees what does not add up and what grows."""

import io
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import proof
from proof.bench import soak
from proof.bench.soak import SoakSample, judged
from proof.experiment import ExperimentResult, Run, perform
from proof.ground.commands import descendants
from proof.ground.ledger import FOLDER
from proof.progress import ProgressSteps

SMALL = {"HOSTS": 40, "QUICK_EVERY_S": 1.0, "LEAST_SAMPLES": 4}
SECONDS = 8
COMMAND = """
from proof.bench import soak
from tests.proof.test_soak import SMALL, short_soak
vars(soak).update(SMALL)
short_soak()
"""


def short_soak() -> tuple[ExperimentResult, str]:
    said = io.StringIO()
    return perform(soak.EXPERIMENT, view=ProgressSteps(said), quick=True, minutes=SECONDS / 60), said.getvalue()


def killed_after(count: float, number: signal.Signals) -> list[int]:
    """Sends a soak this signal when its ledger has so many parts; the processes below it."""
    paths = [str(Path(proof.__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
    process = subprocess.Popen([sys.executable, "-c", COMMAND], env={**os.environ, "PYTHONPATH": ":".join(paths)})
    while sum(path.read_bytes().count(b"\n") for path in FOLDER.glob("soak-[0-9a-f]*.jsonl")) < count:
        assert process.poll() is None, "it ended by itself"
        time.sleep(0.05)
    below = descendants(process.pid)[1:]
    process.send_signal(number)
    process.wait(120)
    return below


@pytest.mark.slow
def test_killed_soak_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # where its ledger goes
    for name, value in SMALL.items():
        monkeypatch.setattr(soak, name, value)
    below = killed_after(1 + SMALL["LEAST_SAMPLES"], signal.SIGKILL)
    assert below
    deadline = time.monotonic() + 120
    while any(Path(f"/proc/{pid}/cmdline").exists() for pid in below):  # nothing outlives the command
        assert time.monotonic() < deadline
        time.sleep(0.05)
    result, said = short_soak()
    held = {verdict.bar.name: verdict.held for verdict in result.verdicts}
    (length,) = [verdict for verdict in result.verdicts if verdict.bar.name == "long enough"]
    assert length.left_out
    assert held["counts add up"]
    assert held["polite"]
    assert "going on after 0.1 of" in said
    assert result.findings.figures["samples"].value > SMALL["LEAST_SAMPLES"]

    again, said = short_soak()  # as if the results could not have been written
    assert again.findings.figures == result.findings.figures
    assert "seconds" not in said
    again.close()
    assert list(FOLDER.iterdir()) == []


def samples(*memory_mb: float, process: int = 0, uncounted: int = 0) -> list[SoakSample]:
    return [SoakSample(process, n, mb, int(mb), int(mb), 1_000, uncounted) for n, mb in enumerate(memory_mb)]


def figures_of(found: list[SoakSample]) -> dict[str, float]:
    run = Run(seed=1, quick=False, view=ProgressSteps(io.StringIO()))
    soak._report(run, found)
    return {name: figure.value for name, figure in run.findings().figures.items()}


def test_counts_that_do_not_add_up_and_leaks_are_seen() -> None:
    figures = figures_of([*samples(*range(100, 140)), *samples(100, process=1, uncounted=3)])
    assert figures[soak.WRONG] == 1
    assert figures[soak.DESCRIPTORS] == figures[soak.THREADS] == 20
    assert 15 < figures[soak.MEMORY] < 20


def test_leak_is_not_hidden_by_starting_anew() -> None:
    whole = samples(*range(100, 180))
    parts = [each for number in range(4) for each in samples(*range(100, 120), process=number)]
    assert figures_of(parts)[soak.THREADS] == figures_of(whole)[soak.THREADS] == 40


def test_processes_that_hold_more_from_their_beginning_are_seen() -> None:
    parts = [each for number in range(3) for each in samples(*[100.0 + 15 * number] * 10, process=number)]
    assert figures_of(parts)[soak.MEMORY] == 30


def test_minutes_of_a_process_that_cannot_be_judged_do_not_count() -> None:
    short, long = samples(*[100.0] * (soak.LEAST_SAMPLES - 1)), samples(*[100.0] * 20, process=1)
    assert judged([*short, *long]) == [long]
    assert soak._minutes([*short, *long]) == 19 / 60
    assert soak.MEMORY not in figures_of(short)


@pytest.mark.parametrize(
    ("minutes", "is_enough"),
    [([60], True), ([59], False), ([40, 20], True), ([58, 7], False), ([5], False), ([], False)],
)
def test_hour_that_is_none_is_not_long_enough(minutes: list[int], is_enough: bool) -> None:
    (bar,) = [each for each in soak.EXPERIMENT.bars if each.name == "long enough"]
    found = [
        SoakSample(number, 60.0 * n, 100.0, 50, 9, 1_000, 0)
        for number, count in enumerate(minutes)
        for n in range(1, count + 1)
    ]
    assert bar.holds(figures_of(found)[bar.figure]) == is_enough
