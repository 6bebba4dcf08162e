"""Bars judge, and a run takes only reports that make sense."""

import io
import json
import math
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lycosa.errors import SettingsError
from proof import Axis, Bar, Column, ColumnChart, Experiment, Run
from proof.experiment import as_json, perform
from proof.progress import ProgressSteps
from tests.proof.samples.too_slow import EXPERIMENT as TOO_SLOW
from tests.proof.samples.too_slow import SILENT

CHART = ColumnChart("t", Axis("a"), (Column("c", 1),))
finite = st.floats(allow_nan=False, allow_infinity=False)


def new_run() -> Run:
    return Run(seed=1, quick=True, view=ProgressSteps(io.StringIO()))


@given(finite, finite)
def test_bar_with_one_limit_holds_on_its_side_and_at_the_limit(value: float, limit: float) -> None:
    assert Bar("b", "f", ">=", limit).holds(value) == (value >= limit)
    assert Bar("b", "f", "<=", limit).holds(value) == (value <= limit)
    assert Bar("b", "f", ">=", limit).holds(limit)


@given(finite, finite, finite)
def test_bar_within_is_both_single_bars_together(value: float, low: float, high: float) -> None:
    both = Bar("b", "f", ">=", low).holds(value) and Bar("b", "f", "<=", high).holds(value)
    assert Bar("b", "f", "within", (low, high)).holds(value) == both


@pytest.mark.parametrize("value", [None, math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("bar", [Bar("b", "f", ">=", 0), Bar("b", "f", "<=", 0), Bar("b", "f", "within", (-1, 1))])
def test_bar_without_a_finite_value_never_holds(bar: Bar, value: float | None) -> None:
    assert not bar.holds(value)


@pytest.mark.parametrize(("relation", "limit"), [("within", 1.0), (">=", (1.0, 2.0)), ("==", 1.0)])
def test_bar_with_a_limit_that_does_not_fit_is_refused(relation: str, limit: object) -> None:
    with pytest.raises(ValueError, match="bar 'b'"):
        Bar("b", "f", relation, limit)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["", "Upper", "a.quick", "../up", "a--b", "a b"])
def test_experiment_with_a_name_no_file_should_have_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="name is lower-case"):
        Experiment(name=name, summary="", claim_id="", claim="", bars=(), run=lambda run: None)


def test_run_same_figure_twice_is_refused() -> None:
    run = new_run()
    run.figure("speed", 1)
    with pytest.raises(ValueError, match="'speed' was reported before"):
        run.figure("speed", 2)


def test_run_row_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match="2 columns and a row of 1"):
        new_run().table(["a", "b"], [(1, 2), (1,)])


def test_run_without_a_figure_has_no_findings() -> None:
    run = new_run()
    run.table(["a"], [(1,)])
    with pytest.raises(ValueError, match="at least one figure"):
        run.findings()


def test_perform_a_figure_that_was_left_out_neither_holds_nor_fails() -> None:
    def measure(run: Run) -> None:
        run.figure("ours", 2.0)
        run.leave_out("theirs", "it cannot be had")

    bars = (Bar("ours", "ours", ">=", 1), Bar("theirs", "theirs", ">=", 1))
    result = perform(Experiment(name="beside", summary="s", run=measure, bars=bars), view=ProgressSteps(io.StringIO()))
    assert result.held
    assert [verdict.left_out for verdict in result.verdicts] == ["", "it cannot be had"]


def test_perform_runs_what_was_chosen_so_often_as_told() -> None:
    def measure(run: Run) -> None:
        run.figure(" ".join(run.chosen), run.runs)

    experiment = Experiment(name="some", summary="s", run=measure, runs=5, choices=("a", "b", "c"))

    def figures(**options: Any) -> dict[str, float]:
        found = perform(experiment, view=ProgressSteps(io.StringIO()), **options).findings.figures
        return {name: figure.value for name, figure in found.items()}

    assert figures() == {"a b c": 5}
    assert figures(quick=True) == {"a b c": 1}
    assert figures(only=["c", "a"], runs=2) == {"a c": 2}
    with pytest.raises(SettingsError, match="--only knows a, b, c, not d"):
        figures(only=["d"])


def test_run_with_numbers_of_numpy_gives_plain_ones() -> None:
    run = new_run()
    run.figure("count", np.int64(3))
    run.figure("mean", np.float32(0.5))
    run.table(["a"], [(np.int32(4),)])
    run.plot(CHART)
    found = run.findings()
    assert [type(figure.value) for figure in found.figures.values()] == [int, float]
    assert type(found.tables[0].rows[0][0]) is int


def test_perform_judges_each_bar_and_a_missing_figure_does_not_hold(capsys: pytest.CaptureFixture[str]) -> None:
    result = perform(TOO_SLOW, seed=1, quick=False, view=ProgressSteps(sys.stderr))
    assert [verdict.held for verdict in result.verdicts] == [False, True, False]
    assert result.verdicts[2].measured == "not measured"
    assert not result.held
    assert capsys.readouterr().out == ""  # what an experiment prints is not the answer


def test_as_json_of_a_number_that_is_not_finite_is_null() -> None:
    result = perform(SILENT, seed=1, quick=False, view=ProgressSteps(io.StringIO()))
    told = json.loads(as_json(result), parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))
    assert told["figures"]["speed"] == {"value": None, "unit": "pages/s"}
    assert told["held"] is False
