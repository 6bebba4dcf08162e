"""Compiles a query's tree to tantivy's queries, one for pages and one for anchor texts, with the weights of fields.

A word is sought in every field, and in every language of the index: it is tokenised as pages of that language were. The
beginning of a word (`vacu*`) stands for all terms of the index that begin so, and for its own stem.

    score     text × anchors × rank
    text      the sum over the query's words of BM25 × weight, in title, headings, text, URL, and within identifiers
    anchors   (1 + BM25 of the words in the links to the page) ^ weight; 1 where links do not have all of them
    rank      (1 + PageRank × pages) ^ weight; 1 where ranks were never computed

A weight of 0 takes a part out. `Weights.read("title=2,rank=0")` changes some of them. Pure but for the look at the
index's languages.
"""

import math
from collections.abc import Iterable, Sequence
from itertools import chain

import msgspec
import numpy as np
from numpy.typing import NDArray
from tantivy import FieldType, Occur, Query

from lycosa.errors import SettingsError
from lycosa.search.documents import (
    LANGUAGES,
    OTHER,
    PARTS_LANGUAGE,
    TOKENS,
    WITH_POSITIONS,
    analyser,
    schema,
    spaced,
    url_words,
)
from lycosa.search.index import IndexReader
from lycosa.search.query import AllOf, AnyOf, Excluded, Filter, QueryNode, Term
from lycosa.web import parse_url as parse_url

LEAST_TEXT = 0.01  # a page that has none of the words, and is called so by others
Floats = NDArray[np.float64]


class Weights(msgspec.Struct, frozen=True):
    """The weights of the parts of a score; chosen by `make bench NAME=search`."""

    title: float = 3.0
    headings: float = 1.0
    text: float = 1.0
    url: float = 1.0
    anchors: float = 0.3
    rank: float = 0.1
    identifiers: float = 0.3

    @classmethod
    def read(cls, text: str) -> "Weights":
        """Parses `title=2,rank=0`; raises SettingsError if that is not possible."""
        changed: dict[str, float] = {}
        for pair in filter(None, (part.strip() for part in text.split(","))):
            name, _, value = pair.partition("=")
            try:
                number = float(value)
            except ValueError:
                number = math.nan
            if name.strip() not in cls.__struct_fields__ or not 0 <= number <= 100:
                allowed = ", ".join(cls.__struct_fields__)
                raise SettingsError(f"weights are NAME=NUMBER from 0 to 100, not {pair[:40]!r}; names are {allowed}")
            changed[name.strip()] = number
        return msgspec.structs.replace(cls(), **changed)


BM25_ALONE = Weights(title=1.0, headings=0.0, text=1.0, url=0.0, anchors=0.0, rank=0.0, identifiers=0.0)


def factors(text: Floats, anchors: Floats, mean_ranks: Floats, weights: Weights) -> tuple[Floats, Floats, Floats]:
    """The three factors; `mean_ranks` are PageRanks in units of the mean, below 0 where they are not known."""
    called = (1.0 + np.maximum(anchors, 0.0)) ** weights.anchors
    ranked = (1.0 + np.maximum(mean_ranks, 0.0)) ** weights.rank
    return np.maximum(text, LEAST_TEXT), called, ranked


_ENOUGH = 0.6  # of the words, where no page has all of them
MOST_EXPANDED = 50  # terms that begin as asked and are scored each by itself; more of them count alike
# Fields that are tokenised in one language, whatever the page is written in.
_ONE_LANGUAGE = {"url": OTHER, "parts": PARTS_LANGUAGE}
_FIELD = {"title": "title", "heading": "heads", "text": "text", "url": "url", "anchor": "calls"}


class Compiler:
    """Compiles queries for one open index."""

    def __init__(self, reader: IndexReader, weights: Weights, wanted: Sequence[str] = ()) -> None:
        self._reader = reader
        self._weights = weights
        present = [language for language in LANGUAGES if reader.count("lang", f"{TOKENS}{language}")]
        self._languages = [language for language in present if not wanted or language in (*wanted, OTHER)] or present

    def pages(self, node: QueryNode) -> Query | None:
        """The query over the pages' own words; None where nothing can match."""
        return self._own_words().compile(node)

    def anchors(self, node: QueryNode) -> Query | None:
        """The query over anchor texts; words in the title help to match, but do not count."""
        return _Target(self._reader, self._languages, {"calls": 1.0, "given": 0.0}, "name").compile(node)

    def most_words(self, node: AllOf) -> Query | None:
        """Like `pages`, but most of the words are enough."""
        return self._own_words().loosely(node)

    def these(self, node: AllOf, numbers: Sequence[int]) -> Query:
        """The query over some pages by number: filters and exclusions apply, and their own words are scored."""
        return self._own_words().chosen(node, Query.term_set_query(schema(), "page", list(numbers)))

    def _own_words(self) -> "_Target":
        weights = self._weights
        fields = {"title": weights.title, "heads": weights.headings, "text": weights.text, "url": weights.url}
        fields["parts"] = weights.identifiers
        return _Target(self._reader, self._languages, fields, "page")


class _Target:
    """Compiles for one kind of document and its fields with their weights."""

    def __init__(self, reader: IndexReader, languages: Sequence[str], fields: dict[str, float], kind: str) -> None:
        self._reader, self._languages, self._fields, self._kind = reader, languages, fields, kind

    def compile(self, node: QueryNode) -> Query | None:
        query = self._any_node(node)
        return None if query is None else self._of_kind(node, query)

    def loosely(self, node: AllOf) -> Query | None:
        """Filters and exclusions as they are, but most of the words are enough."""
        words, rules = self._words_and_rules(node)
        if not words:
            return None
        least = max(1, round(_ENOUGH * len(words)))
        most = Query.boolean_query([(Occur.Should, word) for word in words], minimum_number_should_match=least)
        return Query.boolean_query([(Occur.Must, most), *rules])

    def chosen(self, node: AllOf, choice: Query) -> Query:
        """The chosen pages that filters and exclusions let through, with the score of their words."""
        words, rules = self._words_and_rules(node)
        clauses = [(Occur.Must, Query.const_score_query(choice, 0.0)), *rules]
        return Query.boolean_query([*clauses, *((Occur.Should, word) for word in words)])

    def _words_and_rules(self, node: AllOf) -> tuple[list[Query], list[tuple[Occur, Query]]]:
        words: list[Query] = []
        rules: list[tuple[Occur, Query]] = []
        for part in node.parts:
            query = self._rule(part)
            if query is None:
                continue
            if isinstance(part, Filter | Excluded):
                rules.append((self._occur(part), query))
            else:
                words.append(query)
        return words, rules

    def _of_kind(self, node: QueryNode, query: Query) -> Query:
        """Restricts a query to this kind of document: filters and exclusions alone match other kinds, too."""
        if _has_words(node):
            return query
        exists = Query.const_score_query(Query.exists_query(self._kind), 1.0)
        return Query.boolean_query([(Occur.Must, exists), (Occur.Must, query)])

    @staticmethod
    def _occur(part: QueryNode) -> Occur:
        return Occur.MustNot if isinstance(part, Excluded) else Occur.Must

    def _rule(self, part: QueryNode) -> Query | None:
        return self._any_node(part.part if isinstance(part, Excluded) else part)

    def _any_node(self, node: QueryNode) -> Query | None:
        if isinstance(node, Term):
            return self._term(node)
        if isinstance(node, Filter):
            return _filter(node)
        if isinstance(node, AnyOf):
            found = [query for part in node.parts if (query := self._any_node(part)) is not None]
            return _should(found)
        if isinstance(node, Excluded):
            part = self._any_node(node.part)
            everything = Query.const_score_query(Query.exists_query(self._kind), 0.0)
            return (
                everything if part is None else Query.boolean_query([(Occur.Must, everything), (Occur.MustNot, part)])
            )
        return self._all(node)

    def _all(self, node: AllOf) -> Query | None:
        clauses: list[tuple[Occur, Query]] = []
        for part in node.parts:
            query = self._rule(part)
            if query is not None:
                clauses.append((self._occur(part), query))
            elif not isinstance(part, Excluded) and not (isinstance(part, Term) and not tokens(part.text, OTHER)):
                return None  # what can stand nowhere; punctuation alone is not asked for
        if clauses and all(occur == Occur.MustNot for occur, _ in clauses):
            clauses.append((Occur.Must, Query.const_score_query(Query.exists_query(self._kind), 0.0)))
        return Query.boolean_query(clauses) if clauses else None

    def _term(self, term: Term) -> Query | None:
        if term.field == "anchor" and self._kind == "page":
            return self._with_anchor(term)
        if term.field:
            field = "given" if (term.field, self._kind) == ("title", "name") else _FIELD[term.field]
            fields = {field: 1.0} if field in self._fields else {}
        else:
            fields = self._fields
        return _should(chain.from_iterable(self._in_field(term, field, weight) for field, weight in fields.items()))

    def _in_field(self, term: Term, field: str, weight: float) -> Iterable[Query]:
        only = _ONE_LANGUAGE.get(field)
        for language in (only,) if only else self._languages:
            sought = _without_scheme(term.text) if field == "url" else term.text
            words, name = tokens(sought, language), field if only else f"{field}_{language}"
            if field == "parts" and len(words) != 1:
                continue  # within an identifier there are no phrases
            has_positions = field in WITH_POSITIONS
            query: Query | None
            if term.is_prefix and words and not _is_unspaced(words[-1]):
                query = self._prefix(name, words, tokens(sought, OTHER)[-1], has_positions=has_positions)
            else:
                query = _words(name, words, has_positions=has_positions)
            if query is not None:
                yield query if weight == 1.0 else Query.boost_query(query, weight)

    def _prefix(self, field: str, words: list[str], beginning: str, *, has_positions: bool) -> Query:
        """What `words` finds where the last of them is the beginning of a word, written so."""
        before = words[:-1]
        if before and has_positions:
            return Query.regex_phrase_query(schema(), field, [*before, f"{beginning}.*"])
        found = self._reader.terms(field, beginning, MOST_EXPANDED + 1)
        if len(found) <= MOST_EXPANDED:
            known = dict.fromkeys([words[-1], *(term for term, _ in found)])
            last = Query.boolean_query([(Occur.Should, Query.term_query(schema(), field, term)) for term in known])
        else:
            last = Query.regex_query(schema(), field, f"{beginning}.*")
        others = [(Occur.Must, Query.term_query(schema(), field, word)) for word in before]
        return Query.boolean_query([*others, (Occur.Must, last)]) if others else last

    def _with_anchor(self, term: Term) -> Query | None:
        """The pages that links call so: their numbers are looked up among the anchor documents."""
        names = _Target(self._reader, self._languages, {"calls": 1.0}, "name").compile(term._replace(field=""))
        if names is None:
            return None
        numbers = self._reader.matching(names, "name")
        if not numbers:
            return Query.empty_query()
        return Query.const_score_query(Query.term_set_query(schema(), "page", numbers), 1.0)


def _without_scheme(text: str) -> str:
    """A word as it would stand among the words of a URL: a whole URL as pages of that URL have it."""
    url = parse_url(text) if "://" in text else None
    return url_words(url.href) if url is not None else text


def tokens(text: str, language: str) -> list[str]:
    """The tokens of a word or phrase, as pages in this language have them."""
    return list(analyser(language).analyze(spaced(text)))


def _words(field: str, words: list[str], *, has_positions: bool) -> Query | None:
    if not words:
        return None
    if len(words) == 1:
        word = words[0]
        if len(word) == 1 and ord(word) > 0xE00 and _is_unspaced(word):
            return Query.regex_query(schema(), field, f".?{word}.?")
        return Query.term_query(schema(), field, word)
    if has_positions:
        return Query.phrase_query(schema(), field, list(words))
    return Query.boolean_query([(Occur.Must, Query.term_query(schema(), field, word)) for word in dict.fromkeys(words)])


def _is_unspaced(character: str) -> bool:
    return spaced(character) != character


def _should(queries: Iterable[Query]) -> Query | None:
    found = list(queries)
    if len(found) < 2:
        return found[0] if found else None
    return Query.boolean_query([(Occur.Should, query) for query in found])


def _filter(node: Filter) -> Query:
    if node.kind in ("after", "before"):
        value = int(node.value)
        lower, upper = (value, None) if node.kind == "after" else (None, value - 1)
        query = Query.range_query(schema(), "date", FieldType.Integer, lower_bound=lower, upper_bound=upper)
    else:
        field = "type" if node.kind == "filetype" else node.kind
        query = Query.term_query(schema(), field, str(node.value), "basic")
    return Query.const_score_query(query, 0.0)


def _has_words(node: QueryNode) -> bool:
    """Does every match have a word that only this kind of document holds?"""
    if isinstance(node, Term):
        return True
    if isinstance(node, AllOf):
        return any(_has_words(part) for part in node.parts)
    return isinstance(node, AnyOf) and all(_has_words(part) for part in node.parts)
