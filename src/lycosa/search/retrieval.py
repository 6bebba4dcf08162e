"""Retrieval: the pages that match a query, the best first, by FileNum; titles and texts are the caller's business.

Pages are found by their own words and by the anchor texts of links to them; both lists are read in blocks, the first
`CANDIDATES` by BM25, then up to four times as many, and so on until enough is found. The pages of a block are scored
(`compile.factors`) and ordered, and stand before those of the next block: so the list is the same whatever part of it
is asked for. Pages that say nothing new stand behind others (`folding`). Called by `SearchView`.

Facets, where somebody asks for them, are how the matches spread over hosts, languages, kinds of documents and years.
All matches are counted, each once, copies with equal documents left out: one pass over columns of the index, whatever
is shown of the results. The values are those that `site:`, `lang:`, `filetype:`, `after:` and `before:` take.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import pairwise

import msgspec
import numpy as np
from tantivy import Occur, Query

from lycosa.search.compile import Compiler, Weights, factors
from lycosa.search.documents import KINDS, TOKENS, schema
from lycosa.search.folding import Folding, FoldMarks, PageSource
from lycosa.search.index import IndexReader
from lycosa.search.query import AllOf, Filter, terms

CANDIDATES = 200
GROWTH = 4  # of the candidates with each block
MOST_CANDIDATES = CANDIDATES * GROWTH**4
MOST_SHOWN = 10_000  # nobody looks further
MOST_VALUES = 10  # of each facet; the others are counted together
_MOST_COUNTED = 1_000  # languages and kinds are fewer, hosts may be more
_FIRST_YEAR = 1970

RankLookup = Callable[
    [Sequence[int]], Sequence[float]
]  # FileNums → PageRank in units of the mean, below 0 if not known


class FacetValue(msgspec.Struct, frozen=True):
    """A value and how many of the matches have it."""

    value: str
    pages: int


class Facets(msgspec.Struct, frozen=True):
    """The values with the most matches, years in their order; `other_hosts` counts the matches of all hosts that are
    not listed."""

    hosts: tuple[FacetValue, ...]
    languages: tuple[FacetValue, ...]
    types: tuple[FacetValue, ...]
    years: tuple[FacetValue, ...]
    other_hosts: int = 0


class Hit(msgspec.Struct, frozen=True):
    """A page by its FileNum, its score and the factors of it, and the pages behind it that have the same main text,
    name the same canonical URL, or have nearly the same text."""

    file_num: int
    score: float
    text: float
    anchors: float
    rank: float
    alike: tuple[int, ...] = ()
    variants: tuple[int, ...] = ()
    near: tuple[int, ...] = ()


class Hits(msgspec.Struct, frozen=True):
    """`total` counts all that match, the `folded` ones left out; `is_exact`: it is no estimate. `is_loose`: no
    page has all words, these have most of them. An estimate gets better with what is looked at. `facets` count the
    matches, also those folded under others, where they were asked for."""

    total: int
    hits: tuple[Hit, ...]
    is_exact: bool = True
    is_loose: bool = False
    folded: int = 0
    facets: Facets | None = None


def retrieve(
    reader: IndexReader,
    tree: AllOf,
    ranks: RankLookup,
    source: PageSource | None,
    *,
    weights: Weights,
    most: int,
    offset: int = 0,
    first: int = 0,
    has_facets: bool = False,
) -> Hits:
    """The hits from `offset` on, at most `most`, none after `MOST_SHOWN`. `first` is the page whose URL the query is,
    if there is one: it comes before all others. Without a `source` nothing is folded."""
    end = min(offset + most, MOST_SHOWN) if offset < MOST_SHOWN else 1
    found = _CandidateSearch(reader, tree, weights, first)
    order = _ResultOrder(ranks, weights, first, Folding(source) if source else None)
    while len(order) < end and (block := found.block()):
        order.add(block, found)
    is_exact = found.is_exact and (not order.folded or found.total <= len(found.pages.scores))
    facets = count_facets(reader, found.matches()) if has_facets else None
    total, hits = found.total - order.folded, order.hits(offset, end)
    return Hits(total, hits, is_exact, found.is_loose, order.folded, facets)


class _CandidateSearch:
    """The candidates of a query, block by block; `total` is the number of matches, as far as that is known."""

    def __init__(self, reader: IndexReader, tree: AllOf, weights: Weights, first: int) -> None:
        wanted = [str(part.value) for part in tree.parts if isinstance(part, Filter) and part.kind == "lang"]
        self._tree, self._first, self._compiler = tree, first, Compiler(reader, weights, wanted)
        self._by_text = self._compiler.pages(tree)
        self._by_anchors = self._compiler.anchors(tree) if weights.anchors and terms(tree) else None
        self.pages, self.names = _Candidates(reader, "page"), _Candidates(reader, "name")
        self._looked_at = self._more = self._text_total = self._anchor_total = 0
        self._unmatched: list[int] = []  # pages that are found by what others call them, or by their URL
        self.is_loose = False

    @property
    def total(self) -> int:
        return self._text_total + self._more

    @property
    def is_exact(self) -> bool:
        return self._anchor_total <= self._looked_at

    def block(self) -> list[int]:
        """The pages of the next block, in no order; empty where there are no more."""
        pages, before = self.pages, len(self.pages.scores)
        while len(pages.scores) == before and self._has_more():
            is_first = not self._looked_at
            self._looked_at = self._looked_at * GROWTH or CANDIDATES
            self._text_total = pages.search(self._by_text, self._looked_at)
            self._add_by_anchors()
            if is_first:
                self._add_meant()
            if is_first and not pages.scores and len(terms(self._tree)) > 1:
                self._by_text, self.is_loose = self._compiler.most_words(self._tree), True
                self._text_total = pages.search(self._by_text, self._looked_at)
        return list(pages.scores)[before:]

    def matches(self) -> Query:
        """The query for all that match: by their own words, or by others as far as those were looked at."""
        by_others = self._unmatched
        own = self._by_text if self._by_text is not None else Query.empty_query()
        if not by_others:
            return own
        others = Query.term_set_query(schema(), "page", by_others)
        return Query.boolean_query([(Occur.Should, own), (Occur.Should, others)])

    def _has_more(self) -> bool:
        if not self._looked_at:
            return True
        return self._looked_at < min(max(self._text_total, self._anchor_total), MOST_CANDIDATES)

    def _add_by_anchors(self) -> None:
        """Adds the pages that anchor texts find, with the scores of their own words."""
        before = len(self.names.scores)
        self._anchor_total = self.names.search(self._by_anchors, self._looked_at)
        only = self._unknown(list(self.names.scores)[before:])
        if only and self._text_total > self._looked_at:  # some are found by their own words, too, in a later block
            self.pages.search(_among(self._by_text, only), len(only))
            only = self._unknown(only)
        if only:
            self._add_others(self._compiler.these(self._tree, only), len(only))

    def _add_others(self, query: Query, most: int) -> None:
        """Adds pages that do not have the words themselves."""
        before = len(self.pages.scores)
        self._more += self.pages.search(query, most)
        self._unmatched += list(self.pages.scores)[before:]

    def _add_meant(self) -> None:
        """Adds the page whose URL the query is to the first block."""
        first = self._unknown([self._first] if self._first else [])
        if first:
            self.pages.search(_among(self._by_text, first), 1)
        if first := self._unknown(first):
            self._add_others(Query.term_set_query(schema(), "page", first), 1)

    def _unknown(self, numbers: Sequence[int]) -> list[int]:
        return [number for number in numbers if number not in self.pages.scores]


class _Candidates:
    """The candidates: FileNum → BM25 of their own words, or of their anchor texts; and → what may fold pages."""

    def __init__(self, reader: IndexReader, key: str) -> None:
        self._reader, self._key = reader, key
        self.scores: dict[int, float] = {}
        self.marks: dict[int, FoldMarks] = {}

    def search(self, query: Query | None, most: int) -> int:
        """Adds the matches that are not there yet; returns how many match in all."""
        if query is None:
            return 0
        hits, total = self._reader.search(query, most)
        numbers = self._reader.numbers(self._key, [at for _, at in hits])
        new = [(n, hit) for n, hit in zip(numbers, hits, strict=True) if n and n not in self.scores]
        self.scores |= {number: points for number, (points, _) in new}
        if self._key == "page":
            addresses = [at for _, (_, at) in new]
            marks = map(FoldMarks, *(self._reader.numbers(field, addresses) for field in FoldMarks._fields))
            self.marks |= {number: each for (number, _), each in zip(new, marks, strict=True)}
        return total


def _among(query: Query | None, numbers: Sequence[int]) -> Query | None:
    """The same query, restricted to some pages."""
    if query is None:
        return None
    chosen = Query.const_score_query(Query.term_set_query(schema(), "page", list(numbers)), 0.0)
    return Query.boolean_query([(Occur.Must, chosen), (Occur.Must, query)])


class _ResultOrder:
    """The ordered results so far: the pages of a block by score, then by number, some folded under others."""

    def __init__(self, ranks: RankLookup, weights: Weights, first: int, folding: Folding | None) -> None:
        self._ranks, self._weights, self._first, self._folding = ranks, weights, first, folding
        self._heads: list[tuple[int, tuple[float, ...]]] = []

    def __len__(self) -> int:
        return len(self._heads)

    @property
    def folded(self) -> int:
        return self._folding.folded if self._folding else 0

    def add(self, numbers: Sequence[int], found: _CandidateSearch) -> None:
        mean_ranks = np.array(self._ranks(numbers) if self._weights.rank else [-1.0] * len(numbers))
        anchors = np.array([found.names.scores.get(number, 0.0) for number in numbers])
        text = np.array([found.pages.scores[number] for number in numbers])
        three = factors(text, anchors, mean_ranks, self._weights)
        ids = np.array(numbers, dtype=np.uint64)
        order = np.lexsort((ids, -(three[0] * three[1] * three[2]), ids != np.uint64(self._first)))
        rows = zip(*(factor[order].tolist() for factor in three), strict=True)
        points = dict(zip(ids[order].tolist(), rows, strict=True))
        heads = self._folding.heads(list(points), found.pages.marks) if self._folding else points
        self._heads += [(head, points[head]) for head in heads]

    def hits(self, start: int, end: int) -> tuple[Hit, ...]:
        return tuple(
            Hit(head, text * anchors * rank, text, anchors, rank, *self._folded_under(head))
            for head, (text, anchors, rank) in self._heads[start:end]
        )

    def _folded_under(self, head: int) -> Iterator[tuple[int, ...]]:
        if self._folding:
            for reason in (self._folding.alike, self._folding.variants, self._folding.near):
                yield tuple(reason.get(head, ()))


def count_facets(reader: IndexReader, query: Query) -> Facets:
    """The facets of all documents that match."""
    last_year = time.gmtime().tm_year + 1
    starts = [int(datetime(year, 1, 1, tzinfo=UTC).timestamp()) for year in range(_FIRST_YEAR, last_year + 1)]
    spans = enumerate(pairwise(starts), _FIRST_YEAR)
    years = [{"key": str(year), "from": start, "to": end} for year, (start, end) in spans]
    found = reader.aggregate(
        query,
        {
            "hosts": {"terms": {"field": "host", "size": MOST_VALUES}},
            "languages": {"terms": {"field": "lang", "size": _MOST_COUNTED}},
            "types": {"terms": {"field": "kind", "size": _MOST_COUNTED}},
            "years": {"range": {"field": "date", "ranges": years}},
        },
    )
    counts = {name: [(each["key"], int(each["doc_count"])) for each in part["buckets"]] for name, part in found.items()}
    languages = [(key, count) for key, count in counts["languages"] if not key.startswith(TOKENS)]
    return Facets(
        _values(counts["hosts"]),
        _values(languages),
        _values([(KINDS[int(key)].value, count) for key, count in counts["types"]]),
        tuple(FacetValue(key, count) for key, count in counts["years"] if count and key.isdigit()),
        int(found["hosts"].get("sum_other_doc_count") or 0),
    )


def _values(counts: list[tuple[str, int]]) -> tuple[FacetValue, ...]:
    ordered = sorted(counts, key=lambda each: (-each[1], each[0]))
    return tuple(FacetValue(value, count) for value, count in ordered[:MOST_VALUES])
