"""Numbered series of URLs: which members of a series are missing, and which guesses of them pay on a host.

    numbers("/pics1/page09.html") has a neighbour /pics1/page10.html, and /pics2/page09.html

A date counts as one number and goes by the calendar: the day after /2024/02/29/ is /2024/03/01/. A number with leading
zeros keeps its width. Ids and numbers of more than `MOST_DIGITS` digits have no neighbours.

A `Miner` belongs to one host. It is told every URL that becomes known (`learn`) and what became of its guesses
(`record_outcome`), and proposes more (`guesses`). A guess has to pay: a series begins with two tries, every hit earns a
quarter of another, a series without credit is dropped; a kind of guess that seldom hits on a host is not made there any
more. Pure, bounded in memory, never raises. Called by `learning.mining`.
"""

import re
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator
from datetime import date, timedelta
from enum import IntEnum, StrEnum
from itertools import islice, pairwise

import msgspec
import xxhash

from lycosa.learning.traps import WORD, is_id

MOST_DIGITS = 6  # longer ones are ids or times: their neighbours are seldom there
MOST_NUMBERS = 3  # of one path, the last ones
_MONTHS = 12
_LAST_YEAR = 9999

_DAY = re.compile(r"(?<![0-9])((?:19|20)[0-9]{2})([-/_.]?)(0[1-9]|1[0-2])\2(0[1-9]|[12][0-9]|3[01])(?![0-9])")
_MONTH = re.compile(r"(?<![0-9])((?:19|20)[0-9]{2})([-/_])(0[1-9]|1[0-2])(?![0-9])")
_DIGITS = re.compile("[0-9]+")


class Unit(StrEnum):
    """What a number of a path counts: plain numbers, days or months."""

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
        """Return the path without this number: equal for all members of a series."""
        return self.head, self.unit + self.between, self.tail


def format_number(unit: str, value: int, width: int) -> str | None:
    """Return a value as it stands in a path; None if there is no such date. `unit` is `Number.template[1]`."""
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


def numbers(path: str) -> list[Number]:
    """Return the last numbers and dates of a path, in their order."""
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


def _taken(match: re.Match[str]) -> str:
    """Return text without a digit that is as long as the match, so that places stay."""
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
    ANCESTOR = 8  # of an earlier version; its place in the stored odds is kept


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
        """Add a member that is there; return False if that was known, or is a guess in flight."""
        self.width = self.width or width
        if self._is_excluded(value):
            return False
        self.exclude(value)
        self.be_present(value)
        return True

    def be_present(self, value: int) -> None:
        self.present += 1
        self.low, self.high = min(self.low, value), max(self.high, value)

    def exclude(self, value: int) -> None:
        """Never propose this value again."""
        runs = self.runs
        at = bisect_right(runs, (value, value))
        if self._is_excluded(value):
            return
        joins_left, joins_right = at > 0 and runs[at - 1][1] == value - 1, at < len(runs) and runs[at][0] == value + 1
        start, end = runs[at - 1][0] if joins_left else value, runs[at][1] if joins_right else value
        runs[at - joins_left : at + joins_right] = [(start, end)]
        if len(runs) > MOST_RUNS:
            i = min(range(len(runs) - 1), key=lambda i: runs[i + 1][0] - runs[i][1])
            runs[i : i + 2] = [(runs[i][0], runs[i + 1][1])]

    def candidates(self) -> list[tuple[SeriesKind, int]]:
        """Return what could be guessed now, the likeliest first."""
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
        """Return the first value of the smallest hole between two members."""
        runs = self.runs
        holes = [
            (after[0] - before[1], before[1] + 1)
            for before, after in pairwise(runs)
            if before[1] >= self.low and after[0] <= self.high and after[0] - before[1] <= MOST_INSIDE
        ]
        return min(holes)[1] if holes else None

    def _end(self, step: int) -> tuple[SeriesKind, int]:
        """Return the next value beyond one end; −1 where nothing is left to try there."""
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

    def _is_excluded(self, value: int) -> bool:
        at = bisect_right(self.runs, (value, _BEYOND))
        return at > 0 and self.runs[at - 1][0] <= value <= self.runs[at - 1][1]


MOST_SERIES = 256
MOST_MADE = 256
MOST_OPEN = 32  # guesses in flight: each waits for its outcome
STORED_SERIES = 24  # in the row: about 1 KB, 2 KB at most on long paths
STORED_TEXT = 96  # longer templates are not worth their place in the row

# Odds of a kind: (hits + WEIGHT · expected) / (tries + WEIGHT). Below LEAST_ODDS a host gets no such guess.
WEIGHT, LEAST_ODDS, MOST_TRIES = 3, 0.3, 64
EXPECTED = {SeriesKind.INSIDE: 0.9, SeriesKind.NEXT: 0.6, SeriesKind.BEFORE: 0.6}
SELDOM = 0.4  # what is expected of the other kinds

Template = tuple[str, str, str]


class GuessOutcome(StrEnum):
    """What became of a guess."""

    HIT = "hit"  # a document that was not known before
    MISS = "miss"  # nothing there, an error page, a duplicate, a redirect to a known page
    KNOWN = "known"  # not asked for: the URL was known already
    BARRED = "barred"  # not asked for: out of scope, forbidden by robots.txt


class MinerRow(msgspec.Struct, array_like=True, omit_defaults=True):
    """A miner as it is stored with its host. The last two fields were of an earlier version; their places are kept."""

    odds: list[tuple[int, int]] = []
    series: list[tuple[Template, Series]] = []
    folders: list[tuple[str, str]] = []
    parents: list[tuple[int, int]] = []


class Miner:
    """The series of one host, and how well guesses of each kind have done there."""

    def __init__(self, row: MinerRow | None = None) -> None:
        self._series: dict[Template, Series] = {}
        self._ready: dict[Template, None] = {}  # series that may have a candidate
        self._odds = dict.fromkeys(SeriesKind, (0, 0))  # kind → hits, tries
        self._made: OrderedDict[int, None] = OrderedDict()  # hashes of the latest guesses
        self._open: dict[str, tuple[SeriesKind, Template, int]] = {}  # path → what the guess rests on
        if row is not None:
            self._odds.update(zip(SeriesKind, row.odds, strict=False))
            for template, series in row.series:
                series.open_guesses = 0  # those that were in flight are not made again
                self._series[template] = series
                self._ready[template] = None

    def __repr__(self) -> str:
        return f"<Miner series={len(self._series)} open={len(self._open)}>"

    def learn(self, path: str) -> None:
        """Learn of a path of this host that is there."""
        self._learn(path, None)

    def _learn(self, path: str, but: Template | None) -> None:
        found = numbers(path)
        for number in found:
            template = number.template
            if template == but:
                continue
            known = self._series.get(template)
            if known is None:
                self._make_room()
                self._series[template] = Series.of(number.value, width=number.width, is_outer=number is not found[-1])
            elif not known.add(number.value, number.width):
                continue
            self._ready[template] = None

    def _make_room(self) -> None:
        if len(self._series) >= MOST_SERIES:
            for template in sorted(self._series, key=self._usefulness)[: MOST_SERIES // 8]:
                del self._series[template]
                self._ready.pop(template, None)

    def _usefulness(self, template: Template) -> tuple[bool, int, int]:
        """Return a sort key: series that are spent or complete are forgotten first, then those with little to show."""
        members = self._series[template]
        return bool(members.open_guesses) or template in self._ready, members.hits, members.present

    def guesses(self, most: int) -> list[str]:
        """Return up to `most` paths worth a try now. Each counts as in flight until its outcome is recorded."""
        return list(islice(self._guesses(), max(0, min(most, MOST_OPEN - len(self._open)))))

    def _guesses(self) -> Iterator[str]:
        while self._ready:
            template = next(iter(self._ready))
            path = self._next_member(template)
            if path is None:
                del self._ready[template]
            else:
                yield path

    def _next_member(self, template: Template) -> str | None:
        members = self._series[template]
        for kind, value in self._worthwhile(members):
            text = format_number(template[1], value, members.width)
            path = f"{template[0]}{text}{template[2]}"
            members.exclude(value)
            if text is None or not self._is_first(path):
                continue
            members.open_guesses += 1
            self._open[path] = kind, template, value
            return path
        return None

    def _worthwhile(self, members: Series) -> Iterator[tuple[SeriesKind, int]]:
        """Yield candidates that are likely enough; the caller excludes each before it takes the next."""
        while True:
            for kind, value in members.candidates():
                if (members.hits and kind < SeriesKind.ZERO) or self._pays(kind):  # own hits speak for a series
                    yield kind, value
                    break
            else:
                return

    def _is_first(self, path: str) -> bool:
        """Return whether this guess was not made lately: two series may meet in one path."""
        key = _hash(path)
        if key in self._made:
            return False
        self._made[key] = None
        if len(self._made) > MOST_MADE:
            self._made.popitem(last=False)
        return True

    def _pays(self, kind: SeriesKind) -> bool:
        hits, tries = self._odds[kind]
        return (hits + WEIGHT * EXPECTED.get(kind, SELDOM)) / (tries + WEIGHT) >= LEAST_ODDS

    def record_outcome(self, path: str, outcome: GuessOutcome) -> None:
        """Record what became of a guess. One from before a restart counts as a known path if it was there."""
        kind, template, value = self._open.pop(path, (None, None, 0))
        is_there = outcome in (GuessOutcome.HIT, GuessOutcome.KNOWN)
        if is_there:
            self._learn(path, template)
        if kind is None or template is None:
            return
        if outcome in (GuessOutcome.HIT, GuessOutcome.MISS):
            hits, tries = self._odds[kind]
            scale = 2 if tries >= MOST_TRIES else 1
            self._odds[kind] = (hits + (outcome is GuessOutcome.HIT)) // scale, (tries + 1) // scale
        series = self._series.get(template)
        if series is None:  # forgotten meanwhile
            return
        series.open_guesses = max(0, series.open_guesses - 1)
        if is_there:
            series.be_present(value)
        if outcome is GuessOutcome.HIT:
            series.hits += 1
            series.credit = min(MOST_CREDIT, series.credit + HIT)
        elif outcome is GuessOutcome.MISS:
            series.credit -= MISS
        self._ready[template] = None

    def pack(self) -> MinerRow:
        """Return the part worth keeping: the odds and the most useful series."""
        alive = sorted(((self._usefulness(template), template) for template in self._series), reverse=True)
        useful = [
            (template, self._series[template])
            for (is_useful, *_), template in alive
            if is_useful and len(template[0]) + len(template[2]) <= STORED_TEXT
        ]
        return MinerRow([self._odds[kind] for kind in SeriesKind], useful[:STORED_SERIES])


def _hash(text: str) -> int:
    return xxhash.xxh3_64_intdigest(text.encode("utf-8", "surrogatepass"))
