"""The fuzz campaign: a short run of every target, and what earlier runs found."""

import io
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from pathlib import Path

import pytest

import proof
from proof import report
from proof.__main__ import main
from proof.bench import fuzz
from proof.bench.fuzz import FuzzSlice, fuzzed
from proof.experiment import perform
from proof.ground.commands import cpu_s, descendants
from proof.ground.fuzz_input import FuzzTarget
from proof.ground.fuzz_targets import TARGETS
from proof.ground.ledger import FOLDER
from proof.progress import ProgressSteps
from tests.effort import bounded

# Inputs that ended in an undocumented error, or took seconds, and what it was.
FOUND = {
    "a cookie file with a NUL": ("cookies", b".example.org\tTRUE\t/\tFALSE\t0\tname\t\0\n"),
    "a cookie that is not ASCII": ("cookies", ".example.org\tTRUE\t/\tFALSE\t0\tname\té\n".encode()),
    "a cookie that never expires": ("cookies", b'[{"name": "a", "value": "b", "domain": "x.org", "expires": 1e999}]'),
    "half a character in a body": ("api", b'{"urls": ["ht\\ud800/example.org/"]}'),
    "half a character in a name": ("api", b'{"host": "a.org", "\xed\xa0\x80on": "pause"}'),
    "a word without end": ("challenges", b"DigD" * 3_000 + b"@"),
}


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A campaign that somebody has begun in the project's folder is not gone on with."""
    monkeypatch.chdir(tmp_path)


def try_by(monkeypatch: pytest.MonkeyPatch, tried: Callable[..., FuzzSlice]) -> None:
    """The campaign has its slices from this, one after the other, in this process."""
    monkeypatch.setattr(fuzz, "fuzzed", tried)
    monkeypatch.setattr(fuzz, "workers", lambda: nullcontext((ThreadPoolExecutor(1), 1)))


@pytest.mark.parametrize("what", FOUND)
def test_input_that_was_found_gives_a_result_or_a_documented_error(what: str) -> None:
    name, data = FOUND[what]
    target = TARGETS[name]

    def check() -> None:
        with suppress(*target.errors):
            target.check(data)

    bounded(check, units=200)  # each took some seconds, and a unit is some milliseconds


@pytest.mark.slow
def test_every_target_holds_in_a_short_run() -> None:
    result = perform(
        fuzz.EXPERIMENT, view=ProgressSteps(io.StringIO()), seed=5, quick=True, only=list(TARGETS), minutes=0.004
    )
    # How soon, the campaign judges.
    wrong = [each for each in result.verdicts if not (each.held or each.left_out or each.bar.name == "soon")]
    assert wrong == []


def test_campaign_goes_on_from_its_results(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    begun: dict[str, list[int]] = {"url": [], "robots": []}

    def tried(name: str, _target: FuzzTarget, _seed: int, seconds: float, *, first: int) -> FuzzSlice:
        begun[name].append(first)
        found = ["KeyError"] if name == "url" and not first else []
        return FuzzSlice(name, seconds / 60, inputs=10, refused=1, found=found, slowest_s=0.2, grown_mb=5.0)

    def session(minutes: float) -> dict[str, tuple[float, int, int, int]]:
        stands = report.published(tmp_path, "fuzz", kind="lab", seed=1, quick=False)
        former = stands.tables if stands is not None else ()
        view = ProgressSteps(io.StringIO())
        result = perform(fuzz.EXPERIMENT, view=view, only=["url", "robots"], minutes=minutes, former=former)
        report.publish(result, tmp_path)  # and is killed before it forgets what is in its results now
        return {row[0]: row[1:5] for row in result.findings.tables[0].rows}  # type: ignore[misc]

    try_by(monkeypatch, tried)
    assert session(0.5) == {"url": (0.5, 10, 1, 1), "robots": (0.5, 10, 1, 0)}
    assert session(1.0) == {"url": (1.0, 20, 2, 1), "robots": (1.0, 20, 2, 0)}
    assert begun == {"url": [0, 0, 10], "robots": [0, 10]}  # what something was found of is tried again
    assert report.published(tmp_path, "fuzz", kind="lab", seed=2, quick=False) is None


def test_run_that_is_shorter_than_the_campaign_is_only_shown_and_begins_anew(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    begun: list[int] = []

    def tried(name: str, _target: FuzzTarget, _seed: int, seconds: float, *, first: int) -> FuzzSlice:
        begun.append(first)
        return FuzzSlice(name, seconds / 60, inputs=10)

    def session(minutes: str) -> str:
        monkeypatch.setattr(
            sys, "argv", ["proof", "bench", "fuzz", "--only", "url", "--minutes", minutes, "--out", str(tmp_path / "o")]
        )
        with pytest.raises(SystemExit):
            main()
        return capsys.readouterr().err.splitlines()[-1]

    monkeypatch.chdir(tmp_path)
    try_by(monkeypatch, tried)
    assert session("1").startswith("written: ")
    stood = {path: path.read_bytes() for path in (tmp_path / "o").iterdir()}
    assert session("0.5") == "nothing written"
    assert {path: path.read_bytes() for path in (tmp_path / "o").iterdir()} == stood
    assert session("1.5").startswith("written: ")
    assert begun == [0, 10, 0, 20]


def test_campaign_that_was_killed_goes_on_from_its_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[tuple[str, int]] = []

    def tried(name: str, *_: object, first: int) -> FuzzSlice:
        begun.append((name, first))
        if len(begun) == 3:
            raise MemoryError  # as `kill -9`: nothing is reported
        return FuzzSlice(name, 0.5, inputs=10)

    try_by(monkeypatch, tried)
    words = {"only": ["url", "robots"], "minutes": 1.0, "view": ProgressSteps(io.StringIO())}
    with pytest.raises(MemoryError):
        perform(fuzz.EXPERIMENT, **words)  # type: ignore[arg-type]
    result = perform(fuzz.EXPERIMENT, **words)  # type: ignore[arg-type]
    assert begun == [("url", 0), ("robots", 0), ("url", 10), ("url", 10), ("robots", 10)]
    assert [row[:3] for row in result.findings.tables[0].rows] == [("url", 1.0, 20), ("robots", 1.0, 20)]
    result.close()
    assert list(FOLDER.iterdir()) == []


@pytest.mark.slow
def test_workers_of_a_killed_campaign_end_and_leave_its_output() -> None:
    paths = [str(Path(proof.__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
    command = [sys.executable, "-m", "proof", "bench", "fuzz", "--quick", "--only", "url,robots", "--minutes", "5"]
    with subprocess.Popen(
        command, env={**os.environ, "PYTHONPATH": ":".join(paths)}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as campaign:
        assert campaign.stdout is not None
        below: list[int] = []
        count = min(2, os.cpu_count() or 1)
        while len(workers := below[2:]) < count or min(map(cpu_s, workers)) < 0.5:  # at work, or nearly
            assert campaign.poll() is None, campaign.stdout.read().decode()
            time.sleep(0.05)
            below = descendants(campaign.pid)[1:]  # the resource tracker, the fork server, the workers
        campaign.kill()
        campaign.wait(60)

        deadline = time.monotonic() + 60
        while left := [pid for pid in below if Path(f"/proc/{pid}/cmdline").exists()]:
            if time.monotonic() > deadline:
                for pid in left:
                    os.kill(pid, signal.SIGKILL)
                pytest.fail(f"{len(left)} of {len(below)} processes outlive the campaign")
            time.sleep(0.05)
        campaign.stdout.read()  # returns, as nobody holds it


def test_campaign_that_is_interrupted_reports_what_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    def tried(name: str, *_: object, **__: object) -> FuzzSlice:
        if name == "robots":
            raise KeyboardInterrupt
        return FuzzSlice(name, 0.5, inputs=10)

    try_by(monkeypatch, tried)
    result = perform(fuzz.EXPERIMENT, view=ProgressSteps(io.StringIO()), only=["url", "robots"])
    assert [row[:3] for row in result.findings.tables[0].rows] == [("url", 0.5, 10)]


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
