"""Finds the pages that a query is about, the best first: by numbers only, titles and texts are the caller's business.

Pages are found by what they say and by what others call them; both lists are taken in blocks, the first `CANDIDATES` by
BM25, then all up to four times as many, and so on until enough is found. The pages of a block are scored (`weights`)
and ordered, and stand before those of the next one: so the list is the same whatever part of it is asked for. Of pages
that have the same main text, in other markup or under another title, the first stands for all. Called by the views.
"""

from collections.abc import Callable, Sequence

import msgspec
import numpy as np
from tantivy import Occur, Query

from lycosa.search.compile import Compiler, Weights, factors
from lycosa.search.documents import schema
from lycosa.search.index import IndexReader
from lycosa.search.query import AllOf, Filter, terms

CANDIDATES = 200
GROWTH = 4  # of the candidates with each block
MOST_CANDIDATES = CANDIDATES * GROWTH**4
MOST_SHOWN = 10_000  # behind it nobody looks

RankLookup = Callable[
    [Sequence[int]], Sequence[float]
]  # FileNums → PageRank in units of the mean, below 0 if not known


class Hit(msgspec.Struct, frozen=True):
    """A page by its FileNum, its score and the factors of it, and the pages behind it that have the same main text."""

    file_num: int
    score: float
    text: float
    anchors: float
    rank: float
    alike: tuple[int, ...] = ()


class Hits(msgspec.Struct, frozen=True):
    """`total` counts all that match, those folded under others left out; `is_exact`: it is no estimate. `is_loose`: no
    page has all words, these have most of them. An estimate gets better with what is looked at."""

    total: int
    hits: tuple[Hit, ...]
    is_exact: bool = True
    is_loose: bool = False


def retrieve(
    reader: IndexReader, tree: AllOf, ranks: RankLookup, *, weights: Weights, most: int, offset: int = 0, first: int = 0
) -> Hits:
    """The hits from `offset` on, at most `most`, none behind `MOST_SHOWN`; before all others `first`, the page that is
    meant, if there is one."""
    end = min(offset + most, MOST_SHOWN) if offset < MOST_SHOWN else 1
    found, order = _CandidateSearch(reader, tree, weights, first), _ResultOrder(ranks, weights, first)
    while len(order) < end and (block := found.block()):
        order.add(block, found)
    is_exact = found.is_exact and (not order.folded or found.total <= len(found.pages.scores))
    return Hits(found.total - order.folded, order.hits(offset, end), is_exact, found.is_loose)


class _CandidateSearch:
    """The candidates of a query, block by block; `total` is how many match in all, as far as that is known."""

    def __init__(self, reader: IndexReader, tree: AllOf, weights: Weights, first: int) -> None:
        wanted = [str(part.value) for part in tree.parts if isinstance(part, Filter) and part.kind == "lang"]
        self._tree, self._first, self._compiler = tree, first, Compiler(reader, weights, wanted)
        self._said = self._compiler.pages(tree)
        self._called = self._compiler.names(tree) if weights.anchors and terms(tree) else None
        self.pages, self.names = _Candidates(reader, "page"), _Candidates(reader, "name")
        self._looked_at = self._more = self._said_total = self._called_total = 0
        self.is_loose = False

    @property
    def total(self) -> int:
        return self._said_total + self._more

    @property
    def is_exact(self) -> bool:
        return self._called_total <= self._looked_at

    def block(self) -> list[int]:
        """The pages of the next block, in no order; none where that was all."""
        pages, before = self.pages, len(self.pages.scores)
        while len(pages.scores) == before and self._has_more():
            is_first = not self._looked_at
            self._looked_at = self._looked_at * GROWTH or CANDIDATES
            self._said_total = pages.search(self._said, self._looked_at)
            self._take_called()
            if is_first:
                self._take_first()
            if is_first and not pages.scores and len(terms(self._tree)) > 1:
                self._said, self.is_loose = self._compiler.most_words(self._tree), True
                self._said_total = pages.search(self._said, self._looked_at)
        return list(pages.scores)[before:]

    def _has_more(self) -> bool:
        if not self._looked_at:
            return True
        return self._looked_at < min(max(self._said_total, self._called_total), MOST_CANDIDATES)

    def _take_called(self) -> None:
        """Pages by what others call them, and what their own words count."""
        before = len(self.names.scores)
        self._called_total = self.names.search(self._called, self._looked_at)
        only = self._unknown(list(self.names.scores)[before:])
        if only and self._said_total > self._looked_at:  # some are found by their own words, too, in a later block
            self.pages.search(_among(self._said, only), len(only))
            only = self._unknown(only)
        if only:
            self._more += self.pages.search(self._compiler.these(self._tree, only), len(only))

    def _take_first(self) -> None:
        """The page that is meant is in the first block."""
        first = self._unknown([self._first] if self._first else [])
        if first:
            self.pages.search(_among(self._said, first), 1)
        if first := self._unknown(first):
            self._more += self.pages.search(Query.term_set_query(schema(), "page", first), 1)

    def _unknown(self, numbers: Sequence[int]) -> list[int]:
        return [number for number in numbers if number not in self.pages.scores]


class _Candidates:
    """Pages so far: FileNum → BM25 of their own words, or of what they are called, and → what pages alike share."""

    def __init__(self, reader: IndexReader, key: str) -> None:
        self._reader, self._key = reader, key
        self.scores: dict[int, float] = {}
        self.alike: dict[int, int] = {}

    def search(self, query: Query | None, most: int) -> int:
        """Takes in what matches and is not there yet; returns how many there are in all."""
        if query is None:
            return 0
        hits, total = self._reader.search(query, most)
        numbers = self._reader.numbers(self._key, [at for _, at in hits])
        new = [(n, hit) for n, hit in zip(numbers, hits, strict=True) if n and n not in self.scores]
        self.scores |= {number: points for number, (points, _) in new}
        if self._key == "page":
            alike = self._reader.numbers("alike", [at for _, (_, at) in new])
            self.alike |= {number: each for (number, _), each in zip(new, alike, strict=True)}
        return total


def _among(query: Query | None, numbers: Sequence[int]) -> Query | None:
    """The same query, of some pages only."""
    if query is None:
        return None
    chosen = Query.const_score_query(Query.term_set_query(schema(), "page", list(numbers)), 0.0)
    return Query.boolean_query([(Occur.Must, chosen), (Occur.Must, query)])


class _ResultOrder:
    """The list so far: of a block by score, of equal ones that which has the smaller number, those alike behind one."""

    def __init__(self, ranks: RankLookup, weights: Weights, first: int) -> None:
        self._ranks, self._weights, self._first = ranks, weights, first
        self._heads: list[tuple[int, tuple[float, float, float], list[int]]] = []  # the last: pages alike
        self._alike: dict[int, list[int]] = {}
        self.folded = 0

    def __len__(self) -> int:
        return len(self._heads)

    def add(self, numbers: Sequence[int], found: _CandidateSearch) -> None:
        mean_ranks = np.array(self._ranks(numbers) if self._weights.rank else [-1.0] * len(numbers))
        anchors = np.array([found.names.scores.get(number, 0.0) for number in numbers])
        text = np.array([found.pages.scores[number] for number in numbers])
        three = factors(text, anchors, mean_ranks, self._weights)
        ids = np.array(numbers, dtype=np.uint64)
        order = np.lexsort((ids, -(three[0] * three[1] * three[2]), ids != np.uint64(self._first)))
        rows = zip(ids[order].tolist(), *(factor[order].tolist() for factor in three), strict=True)
        for number, *row in rows:
            alike = found.pages.alike[number]
            if alike and alike in self._alike:
                self._alike[alike].append(number)
                self.folded += 1
                continue
            others: list[int] = []
            if alike:
                self._alike[alike] = others
            self._heads.append((number, (row[0], row[1], row[2]), others))

    def hits(self, start: int, end: int) -> tuple[Hit, ...]:
        return tuple(
            Hit(number, text * anchors * rank, text, anchors, rank, tuple(others))
            for number, (text, anchors, rank), others in self._heads[start:end]
        )
