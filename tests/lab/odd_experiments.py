"""Experiments that misbehave, each in one way."""

import time

from lycosa.lab import Axis, Bar, Column, Columns, Experiment, Run


def report(run: Run, value: float) -> None:
    run.figure("speed", value, "pages/s")
    run.table(["what", "speed"], [("a | b", value)])
    run.plot(Columns("Speed", Axis("speed", "pages/s"), (Column("one", 1.0),)))


def run_too_slow(run: Run) -> None:
    print("a word on standard output")  # noqa: T201 -- it is what this one does wrong
    report(run, 3.5)


def run_endless(run: Run) -> None:
    with run.progress(1_000_000, "steps") as step:
        for _ in range(1_000_000):
            time.sleep(0.01)
            step.advance()


def run_silent(run: Run) -> None:
    report(run, float("nan"))


TOO_SLOW = Experiment(
    name="too-slow",
    summary="misses one of its limits",
    claim_id="T8",
    claim="Faster than 4 pages/s.",
    bars=(
        Bar("fast", "speed", ">=", 4),
        Bar("finite", "speed", "<=", 100),
        Bar("forgotten", "no such figure", "<=", 1),
    ),
    run=run_too_slow,
)
ENDLESS = Experiment(name="endless", summary="goes on", claim_id="T8", claim="None.", bars=(), run=run_endless)
SILENT = Experiment(
    name="silent",
    summary="measures nothing",
    claim_id="T8",
    claim="None.",
    bars=(Bar("any", "speed", ">=", 0),),
    run=run_silent,
)
NOT_ONE = "a string"
