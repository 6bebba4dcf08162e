"""Experiments and benchmarks are found by the names of their modules."""

import sys
from pathlib import Path

import pytest

import proof.lab
from lycosa.errors import SettingsError
from proof.registry import SCENARIOS, find, names


def test_find_unknown_name_says_the_known_ones(samples: None) -> None:
    with pytest.raises(SettingsError, match=r"'hash-shore'; known: .*hash-share"):
        find("lab", "hash-shore")


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("X = 1", "has no EXPERIMENT"),
        ("EXPERIMENT = 'a string'", "has no EXPERIMENT"),
        ("from tests.proof.samples.too_slow import EXPERIMENT", "calls itself 'too-slow'"),
    ],
)
def test_find_bad_module_says_what_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, reason: str
) -> None:
    (tmp_path / "my_own.py").write_text(source + "\n")
    monkeypatch.setattr(proof.lab, "__path__", [str(tmp_path)])
    monkeypatch.delitem(sys.modules, "proof.lab.my_own", raising=False)
    with pytest.raises(SettingsError, match=reason):
        find("lab", "my-own")


@pytest.mark.parametrize("name", names("lab"))
def test_find_each_experiment_has_its_modules_name(name: str) -> None:
    assert find("lab", name).name == name


@pytest.mark.parametrize(("scenario", "benchmark"), SCENARIOS.items())
def test_find_scenario_is_the_benchmark_that_measures_it(scenario: str, benchmark: str) -> None:
    assert find("bench", scenario).name == benchmark
