"""Neighbours of a path: the folders above it (T2) and the numbers beside it (T3).

    ancestors("/video/clips/x")  →  /video/clips/, /video/, /
    series("/pics1/page09.html") →  /pics1/page10.html, /pics1/page08.html, /pics2/page09.html, /pics0/page09.html

A date counts as one number and goes by the calendar: the day after /2024/02/29/ is /2024/03/01/. A number with leading
zeros keeps its width. Ids (`pattern.is_id`) and numbers of more than `MOST_DIGITS` digits have no neighbours.
Pure, linear, never raises. Called by `mining`.
"""

import re
from collections.abc import Iterator
from datetime import date, timedelta
from enum import StrEnum

import msgspec

from lycosa.frontier.pattern import WORD, is_id

MOST_DIGITS = 6  # longer ones are ids or times: their neighbours are seldom there
MOST_NUMBERS = 3  # of one path, the last ones
MOST_ANCESTORS = 16
_MONTHS = 12
_LAST_YEAR = 9999

_DAY = re.compile(r"(?<![0-9])((?:19|20)[0-9]{2})([-/_.]?)(0[1-9]|1[0-2])\2(0[1-9]|[12][0-9]|3[01])(?![0-9])")
_MONTH = re.compile(r"(?<![0-9])((?:19|20)[0-9]{2})([-/_])(0[1-9]|1[0-2])(?![0-9])")
_DIGITS = re.compile("[0-9]+")


class Unit(StrEnum):
    """What the next one of a number is: the next number, day or month."""

    NUMBER = "n"
    DAY = "d"
    MONTH = "m"


class Number(msgspec.Struct, frozen=True):
    """One number of a path. `between` separates the parts of a date, `width` is that of a number with leading zeros."""

    head: str
    tail: str
    unit: Unit
    between: str
    value: int
    width: int = 0

    @property
    def template(self) -> tuple[str, str, str]:
        """The path without this number: equal for all members of a series."""
        return self.head, self.unit + self.between, self.tail


def written(unit: str, value: int, width: int) -> str | None:
    """A value as it stands in a path; None where there is none. `unit` is `Number.template[1]`."""
    kind, between = unit[0], unit[1:]
    if kind == Unit.NUMBER:
        return f"{value:0{width}d}" if 0 <= value < 10**MOST_DIGITS else None
    if kind == Unit.MONTH:
        year, month = divmod(value, _MONTHS)
        return f"{year:04d}{between}{month + 1:02d}" if 0 < year <= _LAST_YEAR else None
    if not 0 < value <= date.max.toordinal():
        return None
    day = date.min + timedelta(days=value - 1)
    return f"{day.year:04d}{between}{day.month:02d}{between}{day.day:02d}"


def ancestors(path: str) -> Iterator[str]:
    """The folders that a path lies in, the nearest first, at most `MOST_ANCESTORS`. A query makes no difference."""
    folder = path.partition("?")[0].rstrip("/").rpartition("/")[0]
    for _ in range(MOST_ANCESTORS - 1):
        if not folder:
            break
        yield folder + "/"
        folder = folder.rpartition("/")[0].rstrip("/")
    if path != "/":
        yield "/"


def numbers(path: str) -> list[Number]:
    """The last numbers and dates of a path, in their order."""
    if not _DIGITS.search(path):
        return []
    found: list[tuple[int, int, Unit, str, int, int]] = []  # start, end, and what `Number` has

    def take_date(match: re.Match[str]) -> str:
        year, between, month, *day = match.groups()
        unit, value = (Unit.DAY, _ordinal(year, month, day[0])) if day else (Unit.MONTH, _month(year, month))
        if value is None:
            return match[0]
        found.append((*match.span(), unit, between, value, 0))
        return _taken(match)

    rest = WORD.sub(_without_ids, path)
    for date_form in (_DAY, _MONTH):
        rest = date_form.sub(take_date, rest)
    for match in _DIGITS.finditer(rest):
        digits = match[0]
        if len(digits) <= MOST_DIGITS:
            width = len(digits) if digits[0] == "0" and len(digits) > 1 else 0
            found.append((*match.span(), Unit.NUMBER, "", int(digits), width))
    last = sorted(found)[-MOST_NUMBERS:]
    return [Number(path[:a], path[b:], unit, between, value, width) for a, b, unit, between, value, width in last]


def series(path: str) -> list[str]:
    """The neighbours of a path: one number at a time, the last one first, upwards before downwards."""
    found = []
    for number in reversed(numbers(path)):
        for value in (number.value + 1, number.value - 1):
            text = written(number.unit + number.between, value, number.width)
            if text is not None:
                found.append(number.head + text + number.tail)
    return found


def _taken(match: re.Match[str]) -> str:
    """As long as what it stands for, so that places stay, and without a digit."""
    return "\0" * len(match[0])


def _without_ids(match: re.Match[str]) -> str:
    return _taken(match) if match[0][0] == "%" or is_id(match[0]) else match[0]


def _ordinal(year: str, month: str, day: str) -> int | None:
    try:
        return date(int(year), int(month), int(day)).toordinal()
    except ValueError:  # the 31st of February
        return None


def _month(year: str, month: str) -> int:
    return int(year) * _MONTHS + int(month) - 1
