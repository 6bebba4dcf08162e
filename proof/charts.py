"""What a plot shows, as data: three kinds of chart, each with a title that says what is to be seen.

No drawing here, so an experiment needs no plotting library; `proof.draw` turns these into pictures.
Invariant: a chart that could be made can be drawn. Made by experiments.
"""

import math
from collections.abc import Sequence

import msgspec

# As many as the palette has colours that colour-blind readers tell apart; more lines than that say nothing anyway.
MOST_SERIES = 7


class Axis(msgspec.Struct, frozen=True):
    """What is measured along an axis, in which unit, and whether equal steps are factors (`log`)."""

    label: str
    unit: str = ""
    log: bool = False


class Mark(msgspec.Struct, frozen=True):
    """A value to compare with, drawn as a dashed line: a limit, or what a paper reports."""

    value: float
    label: str

    def __post_init__(self) -> None:
        _check_finite(self.label, [self.value])


class Line(msgspec.Struct, frozen=True):
    """One series over x. `low` and `high`, where given, are the edges of its spread at each x."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] = ()
    high: Sequence[float] = ()

    def __post_init__(self) -> None:
        if not len(self.x) or len(self.x) != len(self.y):
            raise ValueError(f"line {self.label!r}: x and y are as long as each other and not empty")
        if len(self.low) != len(self.high) or len(self.low) not in (0, len(self.x)):
            raise ValueError(f"line {self.label!r}: low and high are both given, one for each x, or neither")
        _check_finite(self.label, [*self.x, *self.y, *self.low, *self.high])


class LineChart(msgspec.Struct, frozen=True):
    """Several series over x. Marks stand at a value of y."""

    title: str
    x: Axis
    y: Axis
    lines: tuple[Line, ...]
    marks: tuple[Mark, ...] = ()

    def __post_init__(self) -> None:
        _check_count(self.title, len(self.lines))
        for line in self.lines:
            _check_log(self.x, line.x)
            _check_log(self.y, [*line.y, *line.low, *line.high])
        _check_log(self.y, [mark.value for mark in self.marks])


class Column(msgspec.Struct, frozen=True):
    """One value, with the ends of its spread where it has one."""

    label: str
    value: float
    low: float | None = None
    high: float | None = None

    def __post_init__(self) -> None:
        if (self.low is None) != (self.high is None):
            raise ValueError(f"column {self.label!r}: low and high are both given, or neither")
        if self.low is not None and self.high is not None and not self.low <= self.value <= self.high:
            raise ValueError(f"column {self.label!r}: {self.value} is outside its spread {self.low} to {self.high}")
        _check_finite(self.label, [v for v in (self.value, self.low, self.high) if v is not None])


class ColumnChart(msgspec.Struct, frozen=True):
    """Values side by side from a common zero, each with its spread. Marks stand at a value."""

    title: str
    value: Axis
    columns: tuple[Column, ...]
    marks: tuple[Mark, ...] = ()

    def __post_init__(self) -> None:
        if not self.columns:
            raise ValueError(f"chart {self.title!r} has no columns")
        if self.value.log:
            raise ValueError(f"chart {self.title!r}: a length from zero means nothing on a log axis")


class Sample(msgspec.Struct, frozen=True):
    """Observed values, in any order."""

    label: str
    values: Sequence[float]

    def __post_init__(self) -> None:
        if not len(self.values):
            raise ValueError(f"sample {self.label!r} is empty")
        _check_finite(self.label, self.values)


class Distribution(msgspec.Struct, frozen=True):
    """How values are spread: the share of values ≥ x on a log axis, for heavy tails. Marks stand at a value of x. On a
    log axis values ≤ 0 count in the shares but are not seen.
    """

    title: str
    x: Axis
    samples: tuple[Sample, ...]
    marks: tuple[Mark, ...] = ()

    def __post_init__(self) -> None:
        _check_count(self.title, len(self.samples))
        if self.x.log and any(max(sample.values) <= 0 for sample in self.samples):
            raise ValueError(f"chart {self.title!r}: a sample has nothing above zero to show on a log axis")


Chart = LineChart | ColumnChart | Distribution


def _check_count(title: str, count: int) -> None:
    if not 1 <= count <= MOST_SERIES:
        raise ValueError(f"chart {title!r} has {count} series; between 1 and {MOST_SERIES} can be told apart")


def _check_finite(label: str, values: Sequence[float]) -> None:
    if not all(math.isfinite(value) for value in values):
        raise ValueError(f"{label!r} has a value that is not finite: leave it out")


def _check_log(axis: Axis, values: Sequence[float]) -> None:
    if axis.log and any(value <= 0 for value in values):
        raise ValueError(f"axis {axis.label!r} is logarithmic and has a value ≤ 0")
