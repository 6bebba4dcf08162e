"""An experiment that misses one of its limits, and prints where it should not."""

from proof import Axis, Bar, Column, ColumnChart, Experiment, Run


def report(run: Run, value: float) -> None:
    run.figure("speed", value, "pages/s")
    run.table(["what", "speed"], [("a | b", value)])
    run.plot(ColumnChart("Speed", Axis("speed", "pages/s"), (Column("one", 1.0),)))


def measure(run: Run) -> None:
    print("a word on standard output")  # noqa: T201 -- it is what this one does wrong
    report(run, 3.5)


EXPERIMENT = Experiment(
    name="too-slow",
    summary="misses one of its limits",
    claim_id="T8",
    claim="Faster than 4 pages/s.",
    bars=(
        Bar("fast", "speed", ">=", 4),
        Bar("finite", "speed", "<=", 100),
        Bar("forgotten", "no such figure", "<=", 1),
    ),
    run=measure,
)
SILENT = Experiment(
    name="silent",
    summary="measures nothing",
    claim_id="T8",
    claim="None.",
    bars=(Bar("any", "speed", ">=", 0),),
    run=lambda run: report(run, float("nan")),
)
