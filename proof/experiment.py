"""What an experiment is, and what one run of it gathers.

An `Experiment` is a record with a function. The function gets a `Run`: it reads the seed and whether to be quick from
it, shows its progress through it, and reports settings, figures, one table and charts to it. The bars are declared
beside the function and judged by the frame afterwards, so no run can move its own limits.
Called by `proof.result.perform`.
"""

import math
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from numbers import Integral
from typing import Literal

import msgspec

from proof.charts import Chart
from proof.progress import ProgressView, Step
from proof.wording import number

# A name is a file's name and a word on the command line; a dot is kept free for the endings of quick runs' files.
NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")

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


class Experiment(msgspec.Struct, frozen=True, kw_only=True):
    """One question and its answer's limits. `claim_id` names the claim, a paper's (P4) or a promise of our own."""

    name: str
    summary: str
    claim_id: str
    claim: str
    bars: tuple[Bar, ...]
    run: "Callable[[Run], None]"

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name):
            raise ValueError(f"experiment {self.name!r}: a name is lower-case letters, digits and single dashes")


class Figure(msgspec.Struct, frozen=True):
    value: int | float
    unit: str


class Table(msgspec.Struct, frozen=True):
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


class Findings(msgspec.Struct, frozen=True):
    """All that a run reported, whole: at least one figure, a table and at least one chart."""

    settings: dict[str, Cell]
    figures: dict[str, Figure]
    table: Table
    charts: tuple[Chart, ...]
    remarks: tuple[str, ...] = ()


class Run:
    """What the running experiment is given. ValueError where it reports a thing twice, or a table that is none."""

    def __init__(self, *, seed: int, quick: bool, view: ProgressView) -> None:
        self.seed = seed
        self.quick = quick
        self._view = view
        self._settings: dict[str, Cell] = {}
        self._figures: dict[str, Figure] = {}
        self._table: Table | None = None
        self._charts: list[Chart] = []
        self._remarks: list[str] = []

    def __repr__(self) -> str:
        return f"<Run seed={self.seed} quick={self.quick} figures={list(self._figures)}>"

    def progress(self, total: int, label: str) -> AbstractContextManager[Step]:
        """Show `label` going from 0 to `total`: `with run.progress(100, "crawls") as step: … step.advance()`."""
        return self._view.task(total, label)

    def setting(self, name: str, value: Cell) -> None:
        """A choice the numbers depend on (how many hosts, how long), for the report."""
        self._settings[_new(name, self._settings)] = _plain(value)

    def figure(self, name: str, value: float, unit: str = "") -> None:
        """A number that was found; bars refer to it by its name."""
        found = _plain(value)
        if isinstance(found, str):
            raise ValueError(f"figure {name!r} is a number, not {found!r}")
        self._figures[_new(name, self._figures)] = Figure(found, unit)

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> None:
        if self._table is not None:
            raise ValueError("an experiment has one table")
        whole = tuple(tuple(_plain(value) for value in row) for row in rows)
        for row in whole:
            if len(row) != len(columns):
                raise ValueError(f"the table has {len(columns)} columns and a row of {len(row)}: {row}")
        self._table = Table(tuple(columns), whole)

    def plot(self, chart: Chart) -> None:
        """Add a chart; several stand beside each other in one picture."""
        self._charts.append(chart)

    def remark(self, sentence: str) -> None:
        """What the figures say of the claim, where a reader has to be told: that it does not hold, and by how much."""
        self._remarks.append(sentence)

    def findings(self) -> Findings:
        """What was reported, once the experiment has ended; ValueError if a part of it is missing."""
        if not self._figures or self._table is None or not self._charts:
            raise ValueError("an experiment reports at least one figure, a table and at least one chart")
        return Findings(self._settings, self._figures, self._table, tuple(self._charts), tuple(self._remarks))


def _new(name: str, taken: dict[str, Cell] | dict[str, Figure]) -> str:
    if name in taken:
        raise ValueError(f"{name!r} was reported before")
    return name


def _plain(value: Cell) -> Cell:
    """Python's own number for NumPy's, which JSON would refuse."""
    if isinstance(value, str):
        return value
    return int(value) if isinstance(value, Integral) else float(value)
