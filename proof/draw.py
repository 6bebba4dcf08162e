"""Draws charts in the house style, as SVG and PNG.

The same charts give the same bytes in any process: no dates, no random ids, no settings of the user's.
matplotlib is an optional package and is imported on the first call only. Called by `proof.report`.
"""

import importlib.util
import itertools
import textwrap
from collections.abc import Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from lycosa.errors import MissingExtra
from proof.charts import Axis, Chart, ColumnChart, Distribution, LineChart, Mark
from proof.experiment import quantity

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Annotation

Numbers = np.ndarray[Any, np.dtype[np.float64]]

# The house style. The palette is Okabe and Ito's without its yellow, which white paper swallows; markers differ, too,
# so colour never carries the meaning alone.
INK = "#222222"
FAINT = "#6b6b6b"
GRID = "#e4e4e4"
PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000")
COLUMN = "#7fb8d8"  # light enough for a spread to be seen on it
MARKERS = ("o", "s", "^", "D", "v", "P", "X")

PANEL_WIDTH_INCHES = 6.8
PANEL_HEIGHT_INCHES = 4.2
COLUMNS_FRAME_INCHES = 1.35  # title and axis of a chart of columns, which grows with their number
COLUMN_INCHES = 0.42
PNG_DOTS_PER_INCH = 160
TITLE_CHARACTERS = 60  # what fits over a panel at the title's size
LABEL_CHARACTERS = 26  # a longer name beside a panel goes on in a second line

SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")

SETTINGS: dict[str, Any] = {
    "font.family": "sans-serif",
    # The first one comes with matplotlib and is the widest: text laid out in it fits in the others, too.
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Helvetica", "Arial", "sans-serif"],
    "font.size": 9.5,
    "text.color": INK,
    "axes.titlesize": 11.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.minor.visible": False,
    "ytick.minor.visible": False,
    "lines.linewidth": 1.8,
    "lines.markersize": 5,
    "legend.frameon": False,
    "figure.facecolor": "white",
    "figure.constrained_layout.use": True,
    "figure.constrained_layout.w_pad": 0.12,
    "figure.constrained_layout.h_pad": 0.12,
    "svg.fonttype": "none",  # text stays text: searchable, and a tenth of the size
}

PANELS_IN_A_ROW = 2  # what a page's width keeps readable
MOST_POINTS = 400  # of one curve: more cannot be seen and only make the file large
MOST_MARKERS = 30  # on one line: more run into each other
LABEL_STEP_POINTS = 13  # a line of text: labels nearer than that are moved apart
LEADER = {"arrowstyle": "-", "linewidth": 0.6, "alpha": 0.6, "shrinkA": 1, "shrinkB": 0}  # from a label to its thing
LABEL_X = 1.025  # where labels at the right stand, in widths of the panel


def check_can_draw() -> None:
    """`MissingExtra` if matplotlib is not installed."""
    if importlib.util.find_spec("matplotlib") is None:
        raise MissingExtra.of("plot", what="an experiment's plot")


def picture(charts: Sequence[Chart], *, name: str) -> tuple[bytes, bytes]:
    """The charts beside each other as one picture: (SVG, PNG). `name` keeps the ids of two pictures in a page apart."""
    from matplotlib import style
    from matplotlib.figure import Figure

    across = min(len(charts), PANELS_IN_A_ROW)
    heights = [max(map(_height_inches, charts[i : i + across])) for i in range(0, len(charts), across)]
    with style.context(["default", {**SETTINGS, "svg.hashsalt": name}]):
        figure = Figure(figsize=(PANEL_WIDTH_INCHES * across, sum(heights)))
        grid = figure.add_gridspec(len(heights), across, height_ratios=heights)
        panels = [figure.add_subplot(grid[divmod(i, across)]) for i in range(len(charts))]
        labels = [_draw(panel, chart) for panel, chart in zip(panels, charts, strict=True)]
        figure.draw_without_rendering()  # settles where the panels stand, on which the labels' places depend
        figure.set_layout_engine("none")
        for panel, chart, names in zip(panels, charts, labels, strict=True):
            _move_apart(panel, names, dpi=figure.dpi)
            if isinstance(chart, ColumnChart):
                _keep_slim(panel, len(chart.columns), dpi=figure.dpi)
        return _saved(figure, "svg", Creator=None, Date=None), _saved(figure, "png", Software=None)


def _saved(figure: "Figure", form: str, **metadata: None) -> bytes:
    out = BytesIO()
    figure.savefig(out, format=form, dpi=PNG_DOTS_PER_INCH, metadata=metadata)
    return out.getvalue()


def _height_inches(chart: Chart) -> float:
    if isinstance(chart, ColumnChart):
        return COLUMNS_FRAME_INCHES + COLUMN_INCHES * len(chart.columns)
    return PANEL_HEIGHT_INCHES


def _draw(panel: "Axes", chart: Chart) -> "list[Annotation]":
    """Draw one chart; gives the labels that stand to its right."""
    rows_above = 0 if isinstance(chart, LineChart) else (len(chart.marks) + 1) // 2
    title = textwrap.fill(chart.title, TITLE_CHARACTERS)
    panel.set_title(title, pad=9 + LABEL_STEP_POINTS * rows_above)
    if isinstance(chart, LineChart):
        return _lines(panel, chart)
    if isinstance(chart, ColumnChart):
        _columns(panel, chart)
    else:
        _distribution(panel, chart)
    _marks_above(panel, chart.marks)
    return []


# Lines over x


def _lines(panel: "Axes", chart: LineChart) -> "list[Annotation]":
    _set_axis(panel, "x", chart.x)
    _set_axis(panel, "y", chart.y)
    for i, line in enumerate(chart.lines):
        marker = MARKERS[i] if len(line.x) <= MOST_MARKERS else ""
        width = 1.8 if len(line.x) <= MOST_POINTS else 0.9
        panel.plot(line.x, line.y, color=PALETTE[i], marker=marker, linewidth=width, zorder=3)
        if len(line.low):
            panel.fill_between(line.x, line.low, line.high, color=PALETTE[i], alpha=0.1, linewidth=0)
            for edge in (line.low, line.high):  # where bands overlap, their edges still tell them apart
                panel.plot(line.x, edge, color=PALETTE[i], alpha=0.45, linewidth=0.7)
    for mark in chart.marks:
        panel.axhline(mark.value, color=INK, linewidth=1, linestyle=(0, (4, 3)), zorder=2)
    bottom, top = panel.get_ylim()
    if not chart.y.log and 0 < bottom < top / 2:  # near enough to zero to show it
        panel.set_ylim(bottom=0)
    _set_ticks(panel, "x", chart.x, whole=all(_are_whole(np.asarray(line.x, float)) for line in chart.lines))
    _set_ticks(panel, "y", chart.y)
    labels = [_label(panel, mark.label, (1.0, mark.value), "axes fraction", INK) for mark in chart.marks]
    if len(chart.lines) > 1:
        for i, line in enumerate(chart.lines):
            labels.append(_label(panel, line.label, (line.x[-1], line.y[-1]), "data", shade(PALETTE[i])))
    return labels


def _label(panel: "Axes", text: str, end: tuple[float, float], across: str, colour: str) -> "Annotation":
    """A name beside the panel, tied to the end of what it names."""
    return panel.annotate(
        textwrap.fill(text, LABEL_CHARACTERS),
        xy=end,
        xycoords=(across, "data"),
        xytext=(LABEL_X, 0.5),
        textcoords="axes fraction",
        color=colour,
        verticalalignment="center",
        annotation_clip=False,
        arrowprops={**LEADER, "color": colour, "relpos": (0, 0.5), "shrinkB": 3},
    )


def _move_apart(panel: "Axes", labels: "list[Annotation]", *, dpi: float) -> None:
    """Put each label as high as the end it names, and those that would touch one under the other."""
    if not labels:
        return
    frame = panel.get_window_extent()
    ends = [(panel.transData.transform((1, label.xy[1]))[1] - frame.y0) / frame.height for label in labels]
    line = LABEL_STEP_POINTS * dpi / 72 / frame.height
    order = sorted(range(len(labels)), key=lambda i: ends[i])
    heights = [line * (1 + labels[i].get_text().count("\n")) for i in order]
    for i, place in zip(order, spread([ends[i] for i in order], heights), strict=True):
        labels[i].set_position((LABEL_X, place))


def spread(wanted: Sequence[float], heights: Sequence[float]) -> list[float]:
    """Places near the wanted ones (ascending), between 0 and 1 if they fit, none nearer than the heights allow."""
    gaps = [(below + above) / 2 for below, above in itertools.pairwise(heights)]
    places = list(wanted)
    for i, gap in enumerate(gaps, start=1):
        places[i] = max(places[i], places[i - 1] + gap)
    places[-1] = min(places[-1], max(1.0, wanted[-1]))
    for i in range(len(gaps) - 1, -1, -1):
        places[i] = min(places[i], places[i + 1] - gaps[i])
    return places


# Columns with their spread


def _columns(panel: "Axes", chart: ColumnChart) -> None:
    """Lying down, so that names of any length can be read."""
    places = range(len(chart.columns))
    panel.barh(places, [column.value for column in chart.columns], height=0.62, color=COLUMN, zorder=2)
    for place, column in zip(places, chart.columns, strict=True):
        reach = max(column.value, 0)
        if column.low is not None and column.high is not None:
            ends = [[column.value - column.low], [column.high - column.value]]
            panel.errorbar(column.value, place, xerr=ends, color=INK, linewidth=1.2, capsize=3.5, zorder=3)
            reach = max(column.high, 0)
        panel.annotate(
            quantity(column.value, chart.value.unit),
            xy=(reach, place),
            xytext=(6, 0),
            textcoords="offset points",
            verticalalignment="center",
        )
    panel.set_yticks(places, [textwrap.fill(column.label, LABEL_CHARACTERS) for column in chart.columns])
    panel.tick_params(axis="y", length=0)
    panel.invert_yaxis()
    panel.grid(visible=False, axis="y")
    panel.axvline(0, color=FAINT, linewidth=0.8)
    _set_axis(panel, "x", chart.value)
    _set_ticks(panel, "x", chart.value)


def _keep_slim(panel: "Axes", count: int, *, dpi: float) -> None:
    """A few columns in a high panel stand together in its middle."""
    slots = panel.get_window_extent().height / dpi / (1.5 * COLUMN_INCHES)
    air = max(0.0, slots - count) / 2
    panel.set_ylim(count - 0.5 + air, -0.5 - air)


def _marks_above(panel: "Axes", marks: Sequence[Mark]) -> None:
    """Dashed lines with their names over the panel: the lower half's end at their line, the upper half's begin there,
    and inner ones stand higher, so no name stands on another's line.
    """
    ascending = sorted(marks, key=lambda mark: mark.value)
    for i, mark in enumerate(ascending):
        row = min(i, len(ascending) - 1 - i)
        side = "center" if len(ascending) == 1 else "right" if i < len(ascending) / 2 else "left"
        panel.axvline(mark.value, color=INK, linewidth=1, linestyle=(0, (4, 3)), zorder=4)
        panel.annotate(
            mark.label,
            xy=(mark.value, 1),
            xycoords=("data", "axes fraction"),
            xytext=(0, 3 + LABEL_STEP_POINTS * row),
            textcoords="offset points",
            horizontalalignment=side,
            arrowprops={**LEADER, "relpos": (0.5 if side == "center" else float(side == "right"), 0)},
        )


# Distributions


def _distribution(panel: "Axes", chart: Distribution) -> None:
    _set_axis(panel, "x", chart.x)
    values = np.concatenate([np.asarray(sample.values, float) for sample in chart.samples])
    shares = Axis("share of values ≥ x", log=True)
    _set_axis(panel, "y", shares)
    for i, sample in enumerate(chart.samples):
        x, y = ccdf(np.asarray(sample.values, float))
        panel.plot(x, y, color=PALETTE[i], label=sample.label)
    _set_ticks(panel, "x", chart.x, whole=_are_whole(values))
    _set_ticks(panel, "y", shares)
    if len(chart.samples) > 1:
        panel.legend(loc="upper right", labelcolor="linecolor")


def ccdf(values: Numbers) -> tuple[Numbers, Numbers]:
    """(x, share of the values ≥ x), at most `MOST_POINTS` of them, dense where the tail is thin."""
    descending = np.sort(values)[::-1]
    ranks = np.unique(np.geomspace(1, len(values), min(MOST_POINTS, len(values))).round().astype(int))
    x = descending[ranks - 1]
    at_least = len(values) - np.searchsorted(descending[::-1], x, side="left")
    return x, at_least / len(values)


# Axes


def _are_whole(values: Numbers) -> bool:
    return bool((values == values.round()).all())


def _set_axis(panel: "Axes", side: Literal["x", "y"], axis: Axis) -> None:
    panel.set(**{f"{side}label": axis_label(axis), f"{side}scale": "log" if axis.log else "linear"})


def _set_ticks(panel: "Axes", side: Literal["x", "y"], axis: Axis, *, whole: bool = False) -> None:
    """Ticks people count in, once the axis has its range."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator

    ticks = panel.xaxis if side == "x" else panel.yaxis
    if axis.log:
        low, high = panel.get_xlim() if side == "x" else panel.get_ylim()
        ticks.set_major_locator(LogLocator(subs=(1, 2, 5) if high / low < 1e3 else (1,), numticks=12))
        ticks.set_minor_locator(NullLocator())
    else:
        ticks.set_major_locator(MaxNLocator(nbins=7, steps=[1, 2, 2.5, 5, 10], integer=whole))
    ticks.set_major_formatter(FuncFormatter(tick))
    ticks.set_minor_formatter(NullFormatter())


def axis_label(axis: Axis) -> str:
    return f"{axis.label} ({axis.unit})" if axis.unit else axis.label


def tick(value: float, _position: int | None = None) -> str:
    """A number at an axis, as short as can be read: 10⁻⁵, 0.01, 250, 1,500, 20 k, 3 M."""
    for least, unit, letter in ((1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e4, 1e3, "k")):
        if abs(value) >= least:
            return f"{value / unit:,g} {letter}"
    if 0 < abs(value) < 1e-4:
        factor, exponent = f"{value:.0e}".split("e")
        power = "10" + str(int(exponent)).translate(SUPERSCRIPT)
        return power if factor == "1" else f"{factor}·{power}"
    return f"{round(value, 6):,g}"


def shade(colour: str) -> str:
    """The colour a third darker: bright ones are too pale for text."""
    channels = (int(colour[i : i + 2], 16) * 2 // 3 for i in (1, 3, 5))
    return "#" + "".join(f"{channel:02x}" for channel in channels)
