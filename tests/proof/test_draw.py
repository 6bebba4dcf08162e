"""Pictures: the same from the same data, of data that can be drawn, with nothing on top of something else."""

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lycosa.errors import MissingExtra
from proof import Axis, Column, ColumnChart, Distribution, Line, LineChart, Mark, Sample, draw
from proof.charts import Chart
from proof.draw import MARKERS, PALETTE, shade, tick

X, Y, LOG = Axis("hosts"), Axis("speed", "pages/s"), Axis("size", "bytes", log=True)
CHARTS: dict[str, Chart] = {
    "lines": LineChart(
        "L", X, Y, (Line("up", [1, 2], [3, 4], [2, 3], [4, 5]), Line("down", [1, 2], [4, 3])), (Mark(2, "m"),)
    ),
    "log lines": LineChart("G", LOG, LOG, (Line("alone", [1, 1e4], [1, 1e-6]),)),
    "columns": ColumnChart(
        "C", Y, (Column("with", 5, 4, 7), Column("under", -1)), (Mark(3, "a"), Mark(4, "b"), Mark(5, "c"))
    ),
    "ccdf": Distribution("D", LOG, (Sample("s", [0, 1, 2, 50]), Sample("t", [7]))),
    "ccdf, marked": Distribution("J", LOG, (Sample("s", [3, 3]),), (Mark(3, "m"),)),
}

DRAW_ALL = """
import sys
from tests.proof.test_draw import CHARTS, draw
sys.stdout.buffer.write(b"".join(draw.picture([*CHARTS.values()], name="n")))
"""


@pytest.mark.parametrize("name", CHARTS)
def test_picture_of_each_kind_is_svg_and_png_with_its_words(name: str) -> None:
    svg, png = draw.picture([CHARTS[name]], name="n")
    assert png.startswith(b"\x89PNG")
    assert f">{CHARTS[name].title}</text>" in svg.decode()


@pytest.mark.slow
def test_picture_in_two_processes_is_the_same_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
    pictures = []
    for hash_seed in ("1", "2"):
        monkeypatch.setenv("PYTHONHASHSEED", hash_seed)
        pictures.append(subprocess.run([sys.executable, "-c", DRAW_ALL], capture_output=True, check=True).stdout)
    assert pictures[0] == pictures[1]
    assert b"<dc:date>" not in pictures[0]


def test_picture_with_settings_of_the_user_ignores_them() -> None:
    import matplotlib

    before = draw.picture([CHARTS["lines"]], name="n")
    with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "red"}):
        assert draw.picture([CHARTS["lines"]], name="n") == before


def test_check_can_draw_without_matplotlib_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtra, match=r"pip install 'lycosa\[plot\]'"):
        draw.check_can_draw()


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0.01, 0.1)), min_size=1, max_size=9))
def test_spread_any_labels_keeps_their_order_and_lets_none_touch(labels: list[tuple[float, float]]) -> None:
    labels.sort()
    heights = [height for _, height in labels]
    places = draw.spread([wanted for wanted, _ in labels], heights)
    for i in range(len(places) - 1):
        assert places[i + 1] - places[i] >= (heights[i] + heights[i + 1]) / 2 - 1e-9
    assert places[-1] <= 1


def test_spread_labels_far_apart_stay_where_they_belong() -> None:
    assert draw.spread([0.1, 0.5, 0.9], [0.05, 0.05, 0.05]) == [0.1, 0.5, 0.9]


@given(st.lists(st.integers(0, 50), min_size=1, max_size=2000))
def test_ccdf_each_point_is_the_share_of_values_at_least_as_large(values: list[int]) -> None:
    x, share = draw.ccdf(np.array(values, float))
    assert len(x) <= draw.MOST_POINTS
    assert x[0] == max(values)
    assert share[-1] == 1
    for value, part in zip(x, share, strict=True):
        assert part == pytest.approx(sum(v >= value for v in values) / len(values))


@pytest.mark.parametrize(
    "make",
    [
        lambda: Line("l", [1, 2], [1]),
        lambda: Line("l", [], []),
        lambda: Line("l", [1, 2], [1, 2], low=[1, 2]),
        lambda: Line("l", [1], [float("nan")]),
        lambda: LineChart("t", X, Y, ()),
        lambda: LineChart("t", X, Y, tuple(Line(str(i), [1], [1]) for i in range(8))),
        lambda: LineChart("t", X, LOG, (Line("l", [1], [0]),)),
        lambda: Column("c", 1, low=0),
        lambda: Column("c", 9, low=0, high=1),
        lambda: ColumnChart("t", LOG, (Column("c", 1),)),
        lambda: ColumnChart("t", X, ()),
        lambda: Sample("s", []),
        lambda: Distribution("t", LOG, (Sample("s", [-1, 0]),)),
        lambda: Mark(float("inf"), "m"),
    ],
)
def test_chart_that_could_not_be_drawn_is_refused(make: object) -> None:
    with pytest.raises(ValueError, match=r"."):
        make()  # type: ignore[operator]


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (0.25, "0.25"), (1500, "1,500"), (20_000, "20 k"), (3e6, "3 M"), (1e-5, "10⁻⁵"), (2e-7, "2·10⁻⁷")],
)
def test_tick_any_size_is_short(value: float, text: str) -> None:
    assert tick(value) == text


@pytest.mark.parametrize("colour", PALETTE)
def test_shade_as_text_on_white_has_enough_contrast(colour: str) -> None:
    channels = [int(shade(colour)[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    assert 1.05 / (luminance + 0.05) >= 4.5  # WCAG level AA


def test_palette_and_markers_are_as_many_as_series_may_be() -> None:
    from proof.charts import MOST_SERIES

    assert len(PALETTE) == len(MARKERS) == MOST_SERIES
