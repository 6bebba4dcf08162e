"""Neighbours of a path: the folders above it and the numbers beside it; and the members of one numbered series.

    ancestors("/video/clips/x")  →  /video/clips/, /video/, /
    series("/pics1/page09.html") →  /pics1/page10.html, /pics1/page08.html, /pics2/page09.html, /pics0/page09.html

A date counts as one number and goes by the calendar: the day after /2024/02/29/ is /2024/03/01/. A number with leading
zeros keeps its width. Ids and numbers of more than `MOST_DIGITS` digits have no neighbours.

A `Series` knows which members need not be asked any more, which one to guess next, and what it may still spend. Its
`runs` are closed ranges in order, at most `MOST_RUNS`; then the two nearest become one and what lies between is given
up. So a value is proposed once, whatever happens, in bounded memory. Credit is in quarters of a request. Pure, linear,
never raises. Called by `learning.mining`.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from datetime import date, timedelta
from enum import IntEnum, StrEnum
from itertools import pairwise

import msgspec

from lycosa.learning.traps import WORD, is_id

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


def format_number(unit: str, value: int, width: int) -> str | None:
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
            text = format_number(number.unit + number.between, value, number.width)
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


MOST_RUNS = 16
MOST_GAP = 2  # missing members in a row that an end of a series may have
MOST_INSIDE = 64  # a wider hole between two members is not filled
SPARSE = 0.15  # share of known members between the first and the last, below which they are ids rather than a series
_BEYOND = 1 << 62
START, MISS, HIT, MOST_CREDIT = 8, 4, 1, 16  # quarters: two misses to begin with, one more for every four hits


class SeriesKind(IntEnum):
    """What a guess rests on. The odds of each are kept per host. Values are stored: never renumber."""

    INSIDE = 0  # between two members
    NEXT = 1  # after the last
    BEFORE = 2  # before the first
    ZERO = 3  # number 0 before number 1
    GAP = 4  # behind a missing one
    LONE = 5  # beside the only member that is known
    SPARSE = 6  # between members far apart
    OUTER = 7  # a number that is not the last one of its path
    ANCESTOR = 8


class Series(msgspec.Struct, array_like=True):
    """The members of one template. `low` and `high` are the outermost that are there, `present` how many are."""

    low: int
    high: int
    runs: list[tuple[int, int]]
    width: int = 0
    is_outer: bool = False
    present: int = 1
    hits: int = 0
    credit: int = START
    open_guesses: int = 0

    @classmethod
    def of(cls, value: int, *, width: int, is_outer: bool) -> "Series":
        return cls(value, value, [(value, value)], width, is_outer)

    def add(self, value: int, width: int) -> bool:
        """A member that is there. False if that was known, or is a guess under way."""
        self.width = self.width or width
        if self._is_settled(value):
            return False
        self.settle(value)
        self.be_present(value)
        return True

    def be_present(self, value: int) -> None:
        self.present += 1
        self.low, self.high = min(self.low, value), max(self.high, value)

    def settle(self, value: int) -> None:
        """Never propose this value again."""
        runs = self.runs
        at = bisect_right(runs, (value, value))
        if self._is_settled(value):
            return
        joins_left, joins_right = at > 0 and runs[at - 1][1] == value - 1, at < len(runs) and runs[at][0] == value + 1
        start, end = runs[at - 1][0] if joins_left else value, runs[at][1] if joins_right else value
        runs[at - joins_left : at + joins_right] = [(start, end)]
        if len(runs) > MOST_RUNS:
            i = min(range(len(runs) - 1), key=lambda i: runs[i + 1][0] - runs[i][1])
            runs[i : i + 2] = [(runs[i][0], runs[i + 1][1])]

    def candidates(self) -> list[tuple[SeriesKind, int]]:
        """What could be guessed now, the likeliest first."""
        if self.credit < MISS * (1 + self.open_guesses):
            return []
        found = []
        inside = self._inside()
        if inside is not None:
            is_sparse = self.present < SPARSE * (self.high - self.low + 1)
            found.append((SeriesKind.SPARSE if is_sparse else SeriesKind.INSIDE, inside))
        if self.open_guesses == 0 or self.hits:
            found += [self._end(+1), self._end(-1)]
        named = [(SeriesKind.OUTER if self.is_outer else kind, value) for kind, value in found if value >= 0]
        return sorted(named, key=lambda candidate: candidate[0])

    def _inside(self) -> int | None:
        """The first value of the smallest hole."""
        runs = self.runs
        holes = [
            (after[0] - before[1], before[1] + 1)
            for before, after in pairwise(runs)
            if before[1] >= self.low and after[0] <= self.high and after[0] - before[1] <= MOST_INSIDE
        ]
        return min(holes)[1] if holes else None

    def _end(self, step: int) -> tuple[SeriesKind, int]:
        """The next value beyond one end; −1 where nothing is left to try there."""
        end = self.high if step > 0 else self.low
        start, stop = self.runs[bisect_right(self.runs, (end, _BEYOND)) - 1]
        value = stop + 1 if step > 0 else start - 1
        missing = abs(value - end) - 1
        if missing > MOST_GAP:
            return SeriesKind.GAP, -1
        if missing:
            return SeriesKind.GAP, value if self.credit >= START and not self.open_guesses else -1
        if value == 0:
            return SeriesKind.ZERO, value
        if self.present == 1:
            return SeriesKind.LONE, value
        return (SeriesKind.NEXT if step > 0 else SeriesKind.BEFORE), value

    def _is_settled(self, value: int) -> bool:
        at = bisect_right(self.runs, (value, _BEYOND))
        return at > 0 and self.runs[at - 1][0] <= value <= self.runs[at - 1][1]
