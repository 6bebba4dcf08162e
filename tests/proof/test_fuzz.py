"""The fuzz campaign: a short run of every target, and what earlier runs found."""

import io
import time
from contextlib import suppress
from pathlib import Path

import pytest

from proof.bench import fuzz
from proof.bench.fuzz import fuzzed
from proof.experiment import perform
from proof.ground.fuzz_input import FuzzTarget
from proof.ground.fuzz_targets import TARGETS
from proof.progress import ProgressSteps

# Inputs that ended in an undocumented error, or took seconds, and what it was.
FOUND = {
    "a cookie file with a NUL": ("cookies", b".example.org\tTRUE\t/\tFALSE\t0\tname\t\0\n"),
    "a cookie that is not ASCII": ("cookies", ".example.org\tTRUE\t/\tFALSE\t0\tname\té\n".encode()),
    "a cookie that never expires": ("cookies", b'[{"name": "a", "value": "b", "domain": "x.org", "expires": 1e999}]'),
    "half a character in a body": ("api", b'{"urls": ["ht\\ud800/example.org/"]}'),
    "half a character in a name": ("api", b'{"host": "a.org", "\xed\xa0\x80on": "pause"}'),
    "a word without end": ("challenges", b"DigD" * 3_000 + b"@"),
}


@pytest.mark.parametrize("what", FOUND)
def test_input_that_was_found_gives_a_result_or_a_documented_error(what: str) -> None:
    name, data = FOUND[what]
    target = TARGETS[name]
    started = time.thread_time()
    with suppress(*target.errors):
        target.check(data)
    assert time.thread_time() - started < fuzz.SLOW_S  # of the processor, not of the clock


@pytest.mark.slow
def test_every_target_holds_in_a_short_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # where its ledger goes
    result = perform(
        fuzz.EXPERIMENT, view=ProgressSteps(io.StringIO()), seed=5, quick=True, only=list(TARGETS), minutes=0.004
    )
    assert result.held, result.verdicts


def test_campaign_sees_errors_and_slow_inputs(monkeypatch: pytest.MonkeyPatch) -> None:
    def check(data: bytes) -> None:
        if b"x" in data:
            raise KeyError("undocumented")
        if b"y" in data:
            raise ValueError("documented")

    monkeypatch.setattr(fuzz, "SLOW_S", -1.0)
    result = fuzzed("made up", FuzzTarget(check, (b"abc",), (b"x", b"y"), (ValueError,)), seed=1, seconds=0.05)
    assert result.found
    assert all("KeyError" in sentence for sentence in result.found)
    assert result.refused
    assert len(result.slow) == result.inputs
