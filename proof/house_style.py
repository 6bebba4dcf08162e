"""How every plot of the lab looks: colours, type, grid, and how a number stands at an axis.

The palette is Okabe and Ito's without its yellow, which white paper swallows; markers differ too, so colour never
carries the meaning alone. Read by `proof.draw`.
"""

from typing import Any

from proof.charts import Axis

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
