"""Finds the pages that a query is about, the best first: by numbers only, titles and texts are the caller's business.

Pages are found by what they say and by what others call them; both lists are joined, scored (`weights`), and ordered.
Of those that have the same main text, in other markup or under another title, the best stands for all.
The first `CANDIDATES` by BM25 are looked at, more where a later part of the list is asked for. Called by the views.
"""

from collections.abc import Callable, Sequence

import msgspec
import numpy as np
from tantivy import Occur, Query

from lycosa.search.compile import Compiler
from lycosa.search.index import Reader
from lycosa.search.query import All, Filter, terms
from lycosa.search.schema import schema
from lycosa.search.weights import Weights, factors

CANDIDATES = 200
MOST_OFFSET = 10_000  # behind it nobody looks

Ranks = Callable[[Sequence[int]], Sequence[float]]  # FileNums → PageRank in units of the mean, below 0 if not known


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
    page has all words, these have most of them."""

    total: int
    hits: tuple[Hit, ...]
    is_exact: bool = True
    is_loose: bool = False


def find(
    reader: Reader, tree: All, ranks: Ranks, *, weights: Weights, most: int, offset: int = 0, first: int = 0
) -> Hits:
    """The hits from `offset` on, at most `most`; before all others `first`, the page that is meant, if there is one."""
    offset = min(offset, MOST_OFFSET)
    wanted = [str(part.value) for part in tree.parts if isinstance(part, Filter) and part.kind == "lang"]
    compiler = Compiler(reader, weights, wanted)
    looked_at, said = max(CANDIDATES, 2 * (offset + most)), compiler.pages(tree)
    found = _Pages(reader)
    total = found.search(said, looked_at)
    names: dict[int, float] = {}
    is_exact, is_loose = True, False
    if weights.anchors and terms(tree):
        names, names_total = _names(reader, compiler.names(tree), looked_at)
        is_exact = names_total <= looked_at
        only = [number for number in names if number not in found.scores]
        if only and total > len(found.scores):  # some are found by their own words, too, behind those looked at
            found.search(_among(said, only), len(only))
            only = [number for number in only if number not in found.scores]
        if only:
            total += found.search(compiler.these(tree, only), len(only))
    if first and first not in found.scores:
        total += found.search(Query.term_set_query(schema(), "page", [first]), 1)
    if not found.scores and len(terms(tree)) > 1:
        total = found.search(compiler.most_words(tree), looked_at)
        is_loose = True
    scored = _Scored(found, names, ranks, weights, first)
    folded = len(found.scores) - len(scored)
    is_exact &= not folded or total <= len(found.scores)
    return Hits(total - folded, scored.hits(offset, most), is_exact, is_loose)


class _Pages:
    """The candidates so far: FileNum → BM25 of their own words, and → the number that pages of the same text share."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self.scores: dict[int, float] = {}
        self.alike: dict[int, int] = {}

    def search(self, query: Query | None, most: int) -> int:
        """Takes in what matches; returns how many there are in all."""
        if query is None:
            return 0
        hits, total = self._reader.search(query, most)
        addresses = [at for _, at in hits]
        numbers, alike = self._reader.numbers("page", addresses), self._reader.numbers("alike", addresses)
        self.scores |= {number: points for number, (points, _) in zip(numbers, hits, strict=True) if number}
        self.alike |= zip(numbers, alike, strict=True)
        return total


def _names(reader: Reader, query: Query | None, most: int) -> tuple[dict[int, float], int]:
    """Pages by what others call them, with scores, and how many there are in all."""
    if query is None:
        return {}, 0
    hits, total = reader.search(query, most)
    numbers = reader.numbers("name", [at for _, at in hits])
    return {number: points for number, (points, _) in zip(numbers, hits, strict=True) if number}, total


def _among(query: Query | None, numbers: Sequence[int]) -> Query | None:
    """The same query, of some pages only."""
    if query is None:
        return None
    chosen = Query.const_score_query(Query.term_set_query(schema(), "page", list(numbers)), 0.0)
    return Query.boolean_query([(Occur.Must, chosen), (Occur.Must, query)])


class _Scored:
    """Candidates by score, of the equal ones that which has the smaller number; of those alike the best for all."""

    def __init__(self, found: _Pages, names: dict[int, float], ranks: Ranks, weights: Weights, first: int) -> None:
        self._numbers = numbers = list(found.scores)
        mean_ranks = np.array(ranks(numbers) if weights.rank else [-1.0] * len(numbers))
        anchors = np.array([names.get(number, 0.0) for number in numbers])
        text = np.fromiter(found.scores.values(), float, len(numbers))
        self._factors = factors(text, anchors, mean_ranks, weights)
        self._scores = self._factors[0] * self._factors[1] * self._factors[2]
        ids = np.array(numbers, dtype=np.uint64)
        order = np.lexsort((ids, -self._scores, ids != np.uint64(first))).tolist()
        heads: dict[int, list[int]] = {}  # by what is alike, and by place where nothing is
        for at in order:
            heads.setdefault(found.alike[numbers[at]] or -1 - at, []).append(at)
        self._heads = list(heads.values())

    def __len__(self) -> int:
        return len(self._heads)

    def hits(self, offset: int, most: int) -> tuple[Hit, ...]:
        return tuple(self._hit(at, others) for at, *others in self._heads[offset : offset + most])

    def _hit(self, at: int, others: Sequence[int]) -> Hit:
        text, anchors, rank = (float(factor[at]) for factor in self._factors)
        alike = tuple(self._numbers[other] for other in others)
        return Hit(self._numbers[at], float(self._scores[at]), text, anchors, rank, alike)
