"""Finds the pages that a query is about, the best first: by numbers only, titles and texts are the caller's business.

Pages are found by what they say and by what others call them; both lists are joined, scored (`weights`), and ordered.
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
from lycosa.search.weights import Floats, Weights, factors

CANDIDATES = 200
MOST_OFFSET = 10_000  # behind it nobody looks

Ranks = Callable[[Sequence[int]], Sequence[float]]  # FileNums → PageRank in units of the mean, below 0 if not known


class Hit(msgspec.Struct, frozen=True):
    """A page by its FileNum, its score and the factors of it."""

    file_num: int
    score: float
    text: float
    anchors: float
    rank: float


class Hits(msgspec.Struct, frozen=True):
    """`total` counts all that match; `is_exact`: it is no estimate. `is_loose`: no page has all words, these have
    most of them."""

    total: int
    hits: tuple[Hit, ...]
    is_exact: bool = True
    is_loose: bool = False


def find(reader: Reader, tree: All, ranks: Ranks, *, weights: Weights, most: int, offset: int = 0) -> Hits:
    """The hits from `offset` on, at most `most`."""
    offset = min(offset, MOST_OFFSET)
    wanted = [str(part.value) for part in tree.parts if isinstance(part, Filter) and part.kind == "lang"]
    compiler = Compiler(reader, weights, wanted)
    looked_at, said = max(CANDIDATES, 2 * (offset + most)), compiler.pages(tree)
    pages, total = _search(reader, said, "page", looked_at)
    names: dict[int, float] = {}
    is_exact, is_loose = True, False
    if weights.anchors and terms(tree):
        names, names_total = _search(reader, compiler.names(tree), "name", looked_at)
        is_exact = names_total <= looked_at
        only = [number for number in names if number not in pages]
        if only and total > len(pages):  # some are found by their own words, too, behind those that were looked at
            pages |= _search(reader, _among(said, only), "page", len(only))[0]
            only = [number for number in only if number not in pages]
        if only:
            confirmed, more = _search(reader, compiler.these(tree, only), "page", len(only))
            pages |= confirmed
            total += more
    if not pages and len(terms(tree)) > 1:
        pages, total = _search(reader, compiler.most_words(tree), "page", looked_at)
        is_loose = True
    return Hits(total, tuple(_scored(pages, names, ranks, weights)[offset : offset + most]), is_exact, is_loose)


def _search(reader: Reader, query: Query | None, key: str, most: int) -> tuple[dict[int, float], int]:
    """Numbers with their scores, and how many there are in all."""
    if query is None:
        return {}, 0
    hits, total = reader.search(query, most)
    numbers = reader.numbers(key, [at for _, at in hits])
    return {number: points for number, (points, _) in zip(numbers, hits, strict=True) if number}, total


def _among(query: Query | None, numbers: Sequence[int]) -> Query | None:
    """The same query, of some pages only."""
    if query is None:
        return None
    chosen = Query.const_score_query(Query.term_set_query(schema(), "page", list(numbers)), 0.0)
    return Query.boolean_query([(Occur.Must, chosen), (Occur.Must, query)])


def _scored(pages: dict[int, float], names: dict[int, float], ranks: Ranks, weights: Weights) -> "_Ordered":
    numbers = list(pages)
    mean_ranks = np.array(ranks(numbers) if weights.rank else [-1.0] * len(numbers))
    anchors = np.array([names.get(number, 0.0) for number in numbers])
    return _Ordered(numbers, *factors(np.fromiter(pages.values(), float, len(pages)), anchors, mean_ranks, weights))


class _Ordered:
    """Candidates by score; of the equal ones that which has the smaller number."""

    def __init__(self, numbers: list[int], text: Floats, anchors: Floats, rank: Floats) -> None:
        self._numbers, self._factors = numbers, (text, anchors, rank)
        self._scores = text * anchors * rank
        self._order = np.lexsort((np.array(numbers, dtype=np.uint64), -self._scores))

    def __getitem__(self, part: slice) -> list[Hit]:
        return [
            Hit(self._numbers[at], float(self._scores[at]), *(float(factor[at]) for factor in self._factors))
            for at in self._order[part].tolist()
        ]
