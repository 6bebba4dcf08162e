"""What an experiment is, what one run of it gathers, and what came out: findings, and for each bar whether it held.

An `Experiment` is a record with a function; a benchmark is one, too. The function gets a `Run`: it reads from it the
seed, whether to be quick and how often to repeat, shows its progress through it, and reports settings, figures, tables
and charts to it. The bars are declared beside the function and judged afterwards, so no run can move its own limits.
"""

import math
import os
import platform
import re
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, redirect_stdout
from datetime import UTC, datetime
from numbers import Integral
from typing import Literal

import msgspec

from lycosa import __version__
from lycosa.errors import SettingsError
from proof.charts import Chart
from proof.progress import ProgressSteps, Step

# A name is a file's name and a word on the command line; a dot is kept free for the endings of quick runs' files.
NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
DEFAULT_SEED = 1

Cell = str | int | float


class Bar(msgspec.Struct, frozen=True):
    """A limit one figure must keep: `>=` or `<=` a number, or `within` a low and a high one (both included)."""

    name: str
    figure: str
    relation: Literal[">=", "<=", "within"]
    limit: float | tuple[float, float]

    def __post_init__(self) -> None:
        if self.relation not in (">=", "<=", "within"):
            raise ValueError(f"bar {self.name!r}: the relation is >=, <= or within, not {self.relation!r}")
        if isinstance(self.limit, tuple) != (self.relation == "within"):
            raise ValueError(f"bar {self.name!r}: within takes a (low, high), the others one number")

    def holds(self, value: float | None) -> bool:
        """Whether the value keeps the limit. What was not measured, or is not finite, keeps none."""
        if value is None or not math.isfinite(value):
            return False
        if isinstance(self.limit, tuple):
            low, high = self.limit
            return low <= value <= high
        return value >= self.limit if self.relation == ">=" else value <= self.limit

    def wanted(self) -> str:
        """The limit in words, without the unit: "≥ 15"."""
        if isinstance(self.limit, tuple):
            return f"{number(self.limit[0])} to {number(self.limit[1])}"
        return f"{'≥' if self.relation == '>=' else '≤'} {number(self.limit)}"


class PaperFigure(msgspec.Struct, frozen=True):
    """A claim of a paper, the figure that the paper gives for it, and the name of the figure that is found here.

    The first letter of `claim_id` names the paper. `theirs` is empty where the paper makes a claim without a figure.
    """

    claim_id: str
    claim: str
    theirs: str
    figure: str


class Experiment(msgspec.Struct, frozen=True, kw_only=True):
    """One question and its answer's limits.

    `claim_id` names the claim that it checks, a paper's (P4) or our own; a benchmark may have none. `papers` sets its
    figures beside those of papers, for docs/papers.md. `runs` is how often it repeats what it measures, `minutes` how
    long a campaign takes, and `choices` are the parts of it that can be run alone (`--only`).
    """

    name: str
    summary: str
    run: "Callable[[Run], None]"
    bars: tuple[Bar, ...] = ()
    claim_id: str = ""
    claim: str = ""
    papers: tuple[PaperFigure, ...] = ()
    runs: int = 1
    minutes: float | None = None
    choices: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name):
            raise ValueError(f"experiment {self.name!r}: a name is lower-case letters, digits and single dashes")


class Figure(msgspec.Struct, frozen=True):
    value: int | float
    unit: str


class ResultTable(msgspec.Struct, frozen=True):
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    title: str = ""


class Findings(msgspec.Struct, frozen=True):
    """All that a run reported; at least one figure. `left_out`: figures that were not measured, and why."""

    settings: dict[str, Cell]
    figures: dict[str, Figure]
    tables: tuple[ResultTable, ...]
    charts: tuple[Chart, ...]
    remarks: tuple[str, ...] = ()
    left_out: dict[str, str] = {}


class Run:
    """What the running experiment is given. ValueError where it reports a thing twice, or a table that is none."""

    def __init__(
        self,
        *,
        seed: int,
        quick: bool,
        view: ProgressSteps,
        runs: int = 1,
        chosen: tuple[str, ...] = (),
        minutes: float | None = None,
        former: tuple[ResultTable, ...] = (),
        site: str = "",
    ) -> None:
        self.seed = seed
        self.quick = quick
        self.runs = runs
        self.chosen = chosen
        self.minutes = minutes  # how long each part of a campaign takes; None: as long as it thinks right
        self.former = former  # what the run before it reported, with the same seed, where its results replace that
        self.site = site  # the package of real documentation to serve; empty: the one that it takes by itself
        self._view = view
        self._settings: dict[str, Cell] = {}
        self._figures: dict[str, Figure] = {}
        self._tables: list[ResultTable] = []
        self._charts: list[Chart] = []
        self._remarks: list[str] = []
        self._left_out: dict[str, str] = {}
        self._absent: list[tuple[str, str]] = []
        self.last_calls: list[Callable[[], None]] = []

    def __repr__(self) -> str:
        return f"<Run seed={self.seed} quick={self.quick} figures={list(self._figures)}>"

    def progress(self, total: int, label: str) -> AbstractContextManager[Step]:
        """Show `label` going from 0 to `total`: `with run.progress(100, "crawls") as step: … step.advance()`."""
        return self._view.task(total, label)

    def say(self, words: str) -> None:
        """Show what is being done, where there is nothing to count."""
        self._view.say(words)

    def setting(self, name: str, value: Cell) -> None:
        """A choice the numbers depend on (how many hosts, how long), for the report."""
        self._settings[_new(name, self._settings)] = _plain(value)

    def figure(self, name: str, value: float, unit: str = "") -> None:
        """A number that was found; bars refer to it by its name."""
        found = _plain(value)
        if isinstance(found, str):
            raise ValueError(f"figure {name!r} is a number, not {found!r}")
        self._figures[_new(name, self._figures)] = Figure(found, unit)

    def leave_out(self, figure: str, why: str) -> None:
        """The figure was not measured, for a reason that is no fault: its bar neither holds nor fails."""
        self._left_out[figure] = why

    def absent(self, part: str, why: str) -> None:
        """A part of a comparison could not be had, or was not wanted: a row of the table that says so."""
        self._absent.append((part, why))

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[Cell]], *, title: str = "") -> None:
        whole = tuple(tuple(_plain(value) for value in row) for row in rows)
        for row in whole:
            if len(row) != len(columns):
                raise ValueError(f"the table has {len(columns)} columns and a row of {len(row)}: {row}")
        self._tables.append(ResultTable(tuple(columns), whole, title))

    def plot(self, chart: Chart) -> None:
        """Add a chart; several stand beside each other in one picture."""
        self._charts.append(chart)

    def remark(self, sentence: str) -> None:
        """What the figures say of the claim, where a reader has to be told: that it does not hold, and by how much."""
        self._remarks.append(sentence)

    def after_publishing(self, call: Callable[[], None]) -> None:
        """What a campaign has kept, so that it could go on, is deleted when its results are written: not before."""
        self.last_calls.append(call)

    def findings(self) -> Findings:
        """What was reported, once the experiment has ended; ValueError if there is no figure."""
        if not self._figures:
            raise ValueError("an experiment reports at least one figure")
        tables, charts, remarks = tuple(self._tables), tuple(self._charts), tuple(self._remarks)
        if self._absent:
            tables += (ResultTable(("left out", "why"), tuple(self._absent)),)
        return Findings(self._settings, self._figures, tables, charts, remarks, self._left_out)


def _new(name: str, taken: dict[str, Cell] | dict[str, Figure]) -> str:
    if name in taken:
        raise ValueError(f"{name!r} was reported before")
    return name


def _plain(value: Cell) -> Cell:
    """Python's own number for NumPy's, which JSON would refuse."""
    if isinstance(value, str):
        return value
    return int(value) if isinstance(value, Integral) else float(value)


# running one


class Extent(msgspec.Struct, frozen=True):
    """How much a run measures: how often, how long (None: as it takes), and which of the parts."""

    runs: int
    minutes: float | None
    parts: tuple[str, ...]

    def is_less_than(self, other: "Extent") -> bool:
        is_shorter = self.runs < other.runs or (self.minutes or 0) < (other.minutes or 0)
        return is_shorter or not set(self.parts) >= set(other.parts)


def extent_of(
    experiment: Experiment,
    *,
    quick: bool = False,
    runs: int | None = None,
    minutes: float | None = None,
    only: Sequence[str] = (),
) -> Extent:
    """What these options ask for; SettingsError where it has no such part."""
    wanted = {name.lower() for name in only}
    if unknown := wanted - {name.lower() for name in experiment.choices}:
        known = f"knows {', '.join(experiment.choices)}" if experiment.choices else "is for experiments with choices"
        raise SettingsError(f"--only {known}, not {', '.join(sorted(unknown))}")
    chosen = tuple(name for name in experiment.choices if name.lower() in wanted or not wanted)
    if quick:
        return Extent(runs or 1, minutes, chosen)
    return Extent(runs or experiment.runs, minutes or experiment.minutes, chosen)


class BarVerdict(msgspec.Struct, frozen=True):
    """A bar beside what was measured. `value` is None where no such figure was reported; `left_out` says why."""

    bar: Bar
    value: int | float | None
    unit: str
    held: bool
    left_out: str = ""

    @property
    def measured(self) -> str:
        return quantity(self.value, self.unit) if self.value is not None else "not measured"

    @property
    def wanted(self) -> str:
        return f"{self.bar.wanted()} {self.unit}".rstrip()


class ExperimentResult(msgspec.Struct, frozen=True):
    """One run and its verdicts. The same seed gives the same findings, measured times and memory aside."""

    kind: str
    experiment: Experiment
    seed: int
    quick: bool
    seconds: float
    load: float
    findings: Findings
    verdicts: tuple[BarVerdict, ...]
    options: tuple[str, ...] = ()  # of the command line, beside seed and quick
    last_calls: tuple[Callable[[], None], ...] = ()

    def close(self) -> None:
        """The results are written, or were shown and are to be written nowhere."""
        for call in self.last_calls:
            call()

    @property
    def held(self) -> bool:
        return all(verdict.held or verdict.left_out for verdict in self.verdicts)

    @property
    def command(self) -> str:
        """The command line that gives this result again."""
        words = [f"--seed {self.seed}"] * (self.seed != DEFAULT_SEED) + ["--quick"] * self.quick + [*self.options]
        return f"make {self.kind} NAME={self.experiment.name}" + (f" ARGS='{' '.join(words)}'" if words else "")


def perform(
    experiment: Experiment,
    *,
    view: ProgressSteps,
    seed: int = DEFAULT_SEED,
    quick: bool = False,
    runs: int | None = None,
    only: Sequence[str] = (),
    kind: str = "lab",
    minutes: float | None = None,
    former: tuple[ResultTable, ...] = (),
    site: str = "",
) -> ExperimentResult:
    """Run it. Standard output is the caller's: what the experiment prints goes to standard error."""
    extent = extent_of(experiment, quick=quick, runs=runs, minutes=minutes, only=only)
    run = Run(
        seed=seed,
        quick=quick,
        view=view,
        runs=extent.runs,
        chosen=extent.parts,
        minutes=extent.minutes,
        former=former,
        site=site,
    )
    started_s, load = time.perf_counter(), os.getloadavg()[0]
    with redirect_stdout(sys.stderr):
        experiment.run(run)
    seconds = time.perf_counter() - started_s
    findings = run.findings()
    verdicts = tuple(_judge(bar, findings) for bar in experiment.bars)
    options: list[str] = [] if runs is None else [f"--runs {runs}"]
    if only:
        parts = ",".join(extent.parts)
        options.append(f'--only "{parts}"' if " " in parts else f"--only {parts}")
    if site:
        options.append(f"--site {site}")
    if minutes is not None:
        options.append(f"--minutes {minutes:g}")
    return ExperimentResult(
        kind, experiment, seed, quick, seconds, load, findings, verdicts, tuple(options), tuple(run.last_calls)
    )


def _judge(bar: Bar, findings: Findings) -> BarVerdict:
    figure = findings.figures.get(bar.figure)
    if figure is None:
        return BarVerdict(bar, None, "", held=False, left_out=findings.left_out.get(bar.figure, ""))
    return BarVerdict(bar, figure.value, figure.unit, bar.holds(figure.value))


def as_json(result: ExperimentResult) -> bytes:
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
                    **({"left_out": verdict.left_out} if verdict.left_out else {}),
                }
                for verdict in result.verdicts
            ],
            "tables": findings.tables,
            "environment": {
                "lycosa": __version__,
                "python": platform.python_version(),
                "system": f"{platform.system()} {platform.machine()}",
                "cores": cores(),
                "load": round(result.load, 1),
                "day": datetime.now(UTC).date().isoformat(),
            },
        }
    )


def cores() -> int:
    """The processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


# How a number is written for people, the same in the terminal, in the report and in the plot: four significant digits,
# thousands separated. Files for machines get the number itself.


def number(value: float | None) -> str:
    """`1234567` → "1,234,567", `0.123456` → "0.1235"; nothing measured is "–"."""
    if value is None:
        return "–"
    if isinstance(value, int) or (math.isfinite(value) and abs(value) >= 1000):
        return f"{value:,.0f}"
    return f"{value:.4g}"


def quantity(value: float | None, unit: str) -> str:
    """A number with its unit, the unit left away where nothing was measured."""
    return f"{number(value)} {unit}" if unit and value is not None else number(value)


def cell(value: Cell) -> str:
    return value if isinstance(value, str) else number(value)
