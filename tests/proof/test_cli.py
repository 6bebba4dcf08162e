"""`make lab` as a user sees it: words, files, exit codes."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from proof.__main__ import main
from tests.proof.conftest import SAMPLES

PROJECT = Path(__file__).parents[2]

Lab = Callable[..., tuple[int, str, str]]

# The command in a process of its own, with the experiments made for the tests.
COMMAND = f"import proof.lab; proof.lab.__path__.append({str(SAMPLES)!r}); import proof.__main__ as m; m.main()"


@pytest.fixture
def lab(samples: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Lab:
    """Runs the command in an empty folder: (exit code, standard output, standard error)."""
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(PROJECT), str(PROJECT / "src")]))

    def run(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["proof", "lab", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        assert isinstance(ended.value.code, int)
        out, err = capsys.readouterr()
        return ended.value.code, out, err

    return run


@pytest.mark.parametrize("words", [(), ("list",)])
def test_lab_list_has_names_and_summaries(lab: Lab, words: tuple[str, ...]) -> None:
    code, out, _ = lab(*words)
    assert code == 0
    assert "hash-share  how even the parts are when hosts are assigned by hash" in out.splitlines()


def test_lab_list_as_json_is_one_object(lab: Lab) -> None:
    _, out, _ = lab("--json")
    listed = {row["name"]: row for row in json.loads(out)["experiments"]}
    assert listed["too-slow"]["claim_id"] == "T8"


def test_lab_unknown_name_is_one_sentence_and_exit_2(lab: Lab) -> None:
    code, out, err = lab("hash-shore")
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert "hash-share" in err


@pytest.mark.slow
def test_lab_full_run_shows_bars_and_writes_its_files(lab: Lab) -> None:
    code, out, err = lab("hash-share", "--seed", "3")
    assert code == 0
    assert "✓ even among 8: largest part of 8 1." in out
    assert sorted(p.name for p in Path("results").iterdir()) == [
        f"hash-share.seed-3.{end}" for end in ("json", "md", "png", "svg")
    ]
    assert "make lab NAME=hash-share ARGS='--seed 3'" in Path("results/hash-share.seed-3.md").read_text()
    assert "written: " in err


def test_lab_quick_run_writes_nothing(lab: Lab) -> None:
    code, _, err = lab("hash-share", "--quick")
    assert code == 0
    assert list(Path.cwd().iterdir()) == []
    assert "nothing written" in err


def test_lab_quick_run_with_out_writes_files_that_say_so(lab: Lab) -> None:
    lab("hash-share", "--quick", "--out", "kept")
    assert "make lab NAME=hash-share ARGS='--quick'" in Path("kept/hash-share.quick.md").read_text()


def test_lab_json_is_one_object_with_figures_and_bars(lab: Lab) -> None:
    code, out, err = lab("hash-share", "--quick", "--json", "--seed", "4")
    told = json.loads(out)
    assert code == 0
    assert (told["name"], told["seed"], told["quick"], told["held"]) == ("hash-share", 4, True, True)
    assert told["figures"]["hosts"] == {"value": 300, "unit": ""}
    assert [bar["held"] for bar in told["bars"]] == [True, True, True]
    assert "tries: 0 of 3" in err


def test_lab_json_same_seed_same_figures_another_seed_others(lab: Lab) -> None:
    figures = [json.loads(lab("hash-share", "--quick", "--json", "--seed", s)[1])["figures"] for s in ("1", "1", "2")]
    assert figures[0] == figures[1] != figures[2]


def test_lab_run_that_measures_less_does_not_replace_what_stands_there(lab: Lab) -> None:
    lab("too-slow", "--runs", "3", "--out", "kept")
    stood = {path: path.read_bytes() for path in Path("kept").iterdir()}

    code, out, err = lab("too-slow", "--runs", "2", "--out", "kept")

    assert code == 3
    assert "speed 3.5 pages/s" in out
    assert err.startswith("kept keeps what make lab NAME=too-slow ARGS='--runs 3' found, which measured more")
    assert err.endswith("nothing written\n")
    assert {path: path.read_bytes() for path in Path("kept").iterdir()} == stood
    _, _, err = lab("too-slow", "--runs", "4", "--out", "kept")
    assert "written: " in err
    assert "--runs 4" in Path("kept/too-slow.md").read_text()


def test_lab_bar_not_held_is_exit_3_and_a_cross(lab: Lab) -> None:
    code, out, err = lab("too-slow", "--quick")
    assert code == 3
    assert "✗ fast: speed 3.5 pages/s, wanted ≥ 4 pages/s" in out
    assert "✗ forgotten: no such figure not measured, wanted ≤ 1" in out
    assert "a word on standard output" not in out
    assert "a word on standard output" in err


def test_lab_bar_not_held_as_json_is_exit_3_and_says_which(lab: Lab) -> None:
    code, out, _ = lab("too-slow", "--quick", "--json")
    assert code == 3
    assert {bar["name"]: bar["held"] for bar in json.loads(out)["bars"]} == {
        "fast": False,
        "finite": True,
        "forgotten": False,
    }


def test_lab_without_matplotlib_says_so_before_it_runs(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    code, out, err = lab("too-slow")
    assert (code, out) == (2, "")
    assert "pip install 'lycosa[plot]'" in err
    assert "a word on standard output" not in err  # which the experiment prints when it runs


def test_lab_quick_run_needs_no_matplotlib(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert lab("hash-share", "--quick")[0] == 0


def test_lab_out_that_is_a_file_is_refused_before_it_runs(lab: Lab) -> None:
    Path("taken").touch()
    code, _, err = lab("endless", "--out", "taken")
    assert code == 2
    assert "taken is not a folder" in err


def test_lab_results_that_cannot_be_written_are_still_shown(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    from lycosa.errors import StoreError
    from proof import report

    def refuse(*_: object) -> None:
        raise StoreError("results could not be written: disk full")

    monkeypatch.setattr(report, "publish", refuse)
    code, out, err = lab("hash-share", "--quick", "--out", "kept", "--json")
    assert code == 4
    assert json.loads(out)["held"] is True
    assert "disk full" in err


def test_lab_on_a_terminal_without_unicode_shows_words(lab: Lab) -> None:
    command = [sys.executable, "-c", COMMAND, "lab", "too-slow", "--quick"]
    ended = subprocess.run(command, capture_output=True, env={**os.environ, "PYTHONIOENCODING": "ascii"}, check=False)
    assert ended.returncode == 3
    assert b"FAIL fast: speed 3.5 pages/s" in ended.stdout
    assert b"ok finite" in ended.stdout


def test_lab_interrupted_ends_at_once_with_130_and_no_files(lab: Lab) -> None:
    command = [sys.executable, "-c", COMMAND, "lab", "endless", "--out", "kept"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stderr is not None
        assert running.stderr.readline() == "steps: 0 of 1,000,000\n"
        running.send_signal(signal.SIGINT)
        code = running.wait(timeout=120)
        assert running.stderr.read() == ""
    assert code == 130
    assert list(Path.cwd().iterdir()) == []
