"""Runs an experiment once and says what came out: its findings, and for each bar whether it held.

The same seed gives the same findings, measured times and memory aside; the cores and versions they depend on are
recorded. Called by the command line, read by `proof.report`.
"""

import os
import platform
import sys
import time
from contextlib import redirect_stdout

import msgspec

from lycosa import __version__
from proof.experiment import Bar, Experiment, Findings, Run
from proof.progress import ProgressView
from proof.wording import quantity

DEFAULT_SEED = 1


class Verdict(msgspec.Struct, frozen=True):
    """A bar beside what was measured. `value` is None where the experiment reported no such figure."""

    bar: Bar
    value: int | float | None
    unit: str
    held: bool

    @property
    def measured(self) -> str:
        return quantity(self.value, self.unit) if self.value is not None else "not measured"

    @property
    def wanted(self) -> str:
        return f"{self.bar.wanted()} {self.unit}".rstrip()


class Result(msgspec.Struct, frozen=True):
    experiment: Experiment
    seed: int
    quick: bool
    seconds: float
    findings: Findings
    verdicts: tuple[Verdict, ...]

    @property
    def held(self) -> bool:
        return all(verdict.held for verdict in self.verdicts)

    @property
    def command(self) -> str:
        """The command line that gives this result again."""
        words = [f"--seed {self.seed}"] * (self.seed != DEFAULT_SEED) + ["--quick"] * self.quick
        return f"make lab NAME={self.experiment.name}" + (f" ARGS='{' '.join(words)}'" if words else "")


def perform(experiment: Experiment, *, seed: int, quick: bool, view: ProgressView) -> Result:
    """Run it. Standard output is the caller's: what the experiment prints goes to standard error."""
    run = Run(seed=seed, quick=quick, view=view)
    started_s = time.perf_counter()
    with redirect_stdout(sys.stderr), view.shown():
        experiment.run(run)
    seconds = time.perf_counter() - started_s
    findings = run.findings()
    verdicts = tuple(_judge(bar, findings) for bar in experiment.bars)
    return Result(experiment, seed, quick, seconds, findings, verdicts)


def _judge(bar: Bar, findings: Findings) -> Verdict:
    figure = findings.figures.get(bar.figure)
    if figure is None:
        return Verdict(bar, None, "", held=False)
    return Verdict(bar, figure.value, figure.unit, bar.holds(figure.value))


def as_json(result: Result) -> bytes:
    """The result as one JSON object on one line; a number that is not finite is null."""
    experiment, findings = result.experiment, result.findings
    return msgspec.json.encode(
        {
            "name": experiment.name,
            "summary": experiment.summary,
            "claim_id": experiment.claim_id,
            "claim": experiment.claim,
            "command": result.command,
            "seed": result.seed,
            "quick": result.quick,
            "seconds": round(result.seconds, 3),
            "settings": findings.settings,
            "figures": findings.figures,
            "remarks": findings.remarks,
            "held": result.held,
            "bars": [
                {
                    **msgspec.structs.asdict(verdict.bar),
                    "value": verdict.value,
                    "unit": verdict.unit,
                    "held": verdict.held,
                }
                for verdict in result.verdicts
            ],
            "table": findings.table,
            "environment": _environment(),
        }
    )


def _environment() -> dict[str, str | int]:
    return {
        "lycosa": __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
    }
