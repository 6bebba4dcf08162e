"""How a measured number is written for people: the same in the terminal, in the report and in the plot.

Four significant digits, thousands separated; files for machines get the number itself.
"""

import math


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


def cell(value: str | float) -> str:
    return value if isinstance(value, str) else number(value)
