"""Guessing URLs that nobody links to: the folders above known ones, and the members missing in a numbered series.

A `Miner` belongs to one host. It is told every URL that becomes known (`learn`) and what became of its guesses
(`settle`), and proposes more (`guesses`). A guess has to pay: a series begins with two tries, every hit earns a quarter
of another, a series without credit is dropped; a kind of guess that seldom hits on a host is not made there any more.
`Miner` is pure and bounded in memory. `learning.guesses` queues what it proposes.
"""

from collections import OrderedDict
from collections.abc import Iterator
from enum import StrEnum
from itertools import islice

import msgspec
import xxhash

from lycosa.learning.series import (
    HIT,
    MISS,
    MOST_CREDIT,
    START,
    Series,
    SeriesKind,
    ancestors,
    format_number,
    numbers,
    series,
)
from lycosa.learning.traps import fold

__all__ = ["Guess", "GuessOutcome", "Miner", "MiningLevel", "ancestors", "series"]

MOST_SERIES = 256
MOST_FOLDERS = 256
MOST_MADE = 256
MOST_OPEN = 32  # guesses under way: each must be settled
STORED_SERIES, STORED_FOLDERS, STORED_PARENTS = 24, 16, 16  # in the row: about 1 KB, 2 KB at most on long paths
STORED_TEXT = 96  # longer templates are not worth their place in the row

# Odds of a kind: (hits + WEIGHT · expected) / (tries + WEIGHT). Below LEAST_ODDS a host gets no such guess.
WEIGHT, LEAST_ODDS, MOST_TRIES = 3, 0.3, 64
EXPECTED = {SeriesKind.INSIDE: 0.9, SeriesKind.NEXT: 0.6, SeriesKind.BEFORE: 0.6, SeriesKind.ANCESTOR: 0.6}
SELDOM = 0.4  # what is expected of the other kinds
FOLDER_HIT = 2  # quarters that a folder earns for its siblings

Template = tuple[str, str, str]


class MiningLevel(StrEnum):
    """`--mine`: which guesses a crawl makes."""

    OFF = "off"
    ANCESTORS = "ancestors"
    ALL = "all"


class MiningOrigin(StrEnum):
    ANCESTOR = "ancestor"
    SERIES = "series"


class GuessOutcome(StrEnum):
    """What became of a guess."""

    HIT = "hit"  # a document that was not known before
    MISS = "miss"  # nothing there, an error page, a duplicate, a redirect to a known page
    KNOWN = "known"  # not asked for: the URL was known already
    BARRED = "barred"  # not asked for: out of scope, forbidden by robots.txt


class Guess(msgspec.Struct, frozen=True):
    """A path to try. `source` is the known path that it was guessed from."""

    path: str
    origin: MiningOrigin
    pattern: str
    source: str


class MinerRow(msgspec.Struct, array_like=True, omit_defaults=True):
    """A miner as it is stored with its host."""

    odds: list[tuple[int, int]] = []
    series: list[tuple[Template, Series]] = []
    folders: list[tuple[str, str]] = []
    parents: list[tuple[int, int]] = []


class Miner:
    """See the module."""

    def __init__(self, level: MiningLevel = MiningLevel.ANCESTORS) -> None:
        self.level = level
        self._series: dict[Template, Series] = {}
        self._ready: dict[Template, None] = {}  # series that may have a candidate
        self._odds = dict.fromkeys(SeriesKind, (0, 0))  # kind → hits, tries
        self._folders: OrderedDict[int, None] = OrderedDict()  # hashes of folders that are known or were proposed
        self._waiting: OrderedDict[str, str] = OrderedDict()  # folder to propose → from which path
        self._parents: OrderedDict[int, int] = OrderedDict()  # hash of a parent folder → credit of its subfolders
        self._made: OrderedDict[int, None] = OrderedDict()  # hashes of the latest guesses
        self._open: dict[str, tuple[SeriesKind, Template | None, int]] = {}  # path → what the guess rests on

    def __repr__(self) -> str:
        return f"<Miner {self.level} series={len(self._series)} folders={len(self._waiting)} open={len(self._open)}>"

    def stats(self) -> dict[str, tuple[int, int]]:
        """Kind of guess → (hits, tries), the older ones weighing less."""
        return {kind.name.lower(): odds for kind, odds in self._odds.items() if odds[1]}

    # what is known

    def learn(self, path: str) -> None:
        """A path of this host that became known: linked, redirected to, named by a sitemap, or a seed."""
        self._learn(path, None)

    def _learn(self, path: str, but: Template | None) -> None:
        if self.level is MiningLevel.OFF:
            return
        self._learn_folders(path)
        if self.level is MiningLevel.ALL:
            self._learn_numbers(path, but)

    def _learn_folders(self, path: str) -> None:
        if path.endswith("/"):
            self._waiting.pop(path, None)
            self._note_folder(path)
        for folder in ancestors(path):
            if self._note_folder(folder):
                break  # those above it were learned with it
            self._waiting[folder] = path
            if len(self._waiting) > MOST_FOLDERS:
                self._waiting.popitem(last=False)

    def _note_folder(self, folder: str) -> bool:
        """Whether the folder was noted lately."""
        key = _hash(folder)
        was_there = key in self._folders
        self._folders[key] = None
        self._folders.move_to_end(key)
        if len(self._folders) > MOST_FOLDERS:
            self._folders.popitem(last=False)
        return was_there

    def _learn_numbers(self, path: str, but: Template | None = None) -> None:
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
        """What is forgotten first: series that are spent or complete, then those with little to show."""
        members = self._series[template]
        return bool(members.open_guesses) or template in self._ready, members.hits, members.present

    # guessing

    def guesses(self, most: int) -> list[Guess]:
        """Up to `most` paths worth a try now. Each counts as under way until it is settled."""
        return list(islice(self._guesses(), max(0, min(most, MOST_OPEN - len(self._open)))))

    def _guesses(self) -> Iterator[Guess]:
        while self._waiting:
            folder, source = self._waiting.popitem(last=False)
            parent = _parent(folder)
            has_credit = self._parents.get(_hash(parent), START) >= MISS
            if has_credit and self._pays(SeriesKind.ANCESTOR) and self._is_first(folder):
                self._open[folder] = SeriesKind.ANCESTOR, None, 0
                yield Guess(folder, MiningOrigin.ANCESTOR, fold(parent) + "*/" if folder != "/" else "/", source)
        while self._ready:
            template = next(iter(self._ready))
            guess = self._next_member(template)
            if guess is None:
                self._ready.pop(template, None)
            else:
                yield guess

    def _next_member(self, template: Template) -> Guess | None:
        members = self._series[template]
        for kind, value in self._worthwhile(members):
            text = format_number(template[1], value, members.width)
            path = f"{template[0]}{text}{template[2]}"
            members.settle(value)
            if text is None or not self._is_first(path):
                continue
            members.open_guesses += 1
            self._open[path] = kind, template, value
            near = members.high if abs(members.high - value) <= abs(members.low - value) else members.low
            source = f"{template[0]}{format_number(template[1], near, members.width)}{template[2]}"
            return Guess(path, MiningOrigin.SERIES, fold(path), source)
        return None

    def _worthwhile(self, members: Series) -> Iterator[tuple[SeriesKind, int]]:
        """The candidates that are likely enough, until there are none; each is settled before the next is asked for."""
        while True:
            for kind, value in members.candidates():
                if (members.hits and kind < SeriesKind.ZERO) or self._pays(kind):  # own hits speak for a series
                    yield kind, value
                    break
            else:
                return

    def _is_first(self, path: str) -> bool:
        """Whether this guess was not made lately: two series may meet in one path."""
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

    def settle(self, path: str, found: GuessOutcome) -> None:
        """What became of a guess. One from before a restart counts as a known path if it was there."""
        kind, template, value = self._open.pop(path, (None, None, 0))
        if found in (GuessOutcome.HIT, GuessOutcome.KNOWN):
            self._learn(path, template)
        if kind is None:
            return
        if found in (GuessOutcome.HIT, GuessOutcome.MISS):
            hits, tries = self._odds[kind]
            scale = 2 if tries >= MOST_TRIES else 1
            self._odds[kind] = (hits + (found is GuessOutcome.HIT)) // scale, (tries + 1) // scale
        if template is None:
            self._settle_folder(path, found)
        elif template in self._series:
            self._settle_member(template, value, found)

    def _settle_folder(self, folder: str, found: GuessOutcome) -> None:
        parent = _hash(_parent(folder))
        credit = self._parents.pop(parent, START) + {GuessOutcome.HIT: FOLDER_HIT, GuessOutcome.MISS: -MISS}.get(
            found, 0
        )
        self._parents[parent] = min(credit, MOST_CREDIT)
        if len(self._parents) > MOST_FOLDERS:
            self._parents.popitem(last=False)

    def _settle_member(self, template: Template, value: int, found: GuessOutcome) -> None:
        members = self._series[template]
        members.open_guesses = max(0, members.open_guesses - 1)
        if found in (GuessOutcome.HIT, GuessOutcome.KNOWN):
            members.be_present(value)
        if found is GuessOutcome.HIT:
            members.hits += 1
            members.credit = min(MOST_CREDIT, members.credit + HIT)
        elif found is GuessOutcome.MISS:
            members.credit -= MISS
        self._ready[template] = None

    # keeping

    def pack(self) -> MinerRow:
        """The part worth keeping: odds, the most useful series, the folders that wait."""
        alive = [(self._usefulness(template), template) for template in self._series]
        useful = [
            (template, self._series[template])
            for (is_useful, *_), template in sorted(alive, reverse=True)
            if is_useful and len(template[0]) + len(template[2]) <= STORED_TEXT
        ]
        waiting = [item for item in self._waiting.items() if len(item[0]) <= STORED_TEXT]
        return MinerRow(
            [self._odds[kind] for kind in SeriesKind],
            useful[:STORED_SERIES],
            [(folder, "") for folder, _ in waiting[:STORED_FOLDERS]],
            list(self._parents.items())[-STORED_PARENTS:],
        )

    @classmethod
    def unpack(cls, row: MinerRow, level: MiningLevel = MiningLevel.ANCESTORS) -> "Miner":
        """A miner that goes on; guesses that were under way are not made again."""
        miner = cls(level)
        if level is MiningLevel.OFF:
            return miner
        miner._odds.update(zip(SeriesKind, row.odds, strict=False))
        for folder, source in row.folders:
            miner._note_folder(folder)
            miner._waiting[folder] = source
        miner._parents.update(row.parents)
        for template, members in row.series if level is MiningLevel.ALL else ():
            members.open_guesses = 0
            miner._series[template] = members
            miner._ready[template] = None
        return miner


def _parent(folder: str) -> str:
    return folder.rstrip("/").rpartition("/")[0] + "/"


def _hash(text: str) -> int:
    return xxhash.xxh3_64_intdigest(text.encode("utf-8", "surrogatepass"))
