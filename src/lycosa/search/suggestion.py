"""Suggestions: the query that was probably meant, where one finds little or nothing.

    suggest(…, "vacum ful", …)  →  "vacuum full"

A word that the index does not have, or hardly has beside one that looks nearly the same, is replaced by the most
frequent one that is a letter away, put in another order or typed once too often; by one that is two letters away if
there is none, and it begins alike. The index has stems, which are no words: how a word is written is read from a page
that has it. A query that finds no more than the old one is never suggested. Bounded: some thousand look-ups of terms,
whatever the size of the index. Called by `SearchView` only where there are few results.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from tantivy import Query

from lycosa.search.compile import tokens
from lycosa.search.documents import LANGUAGES, OTHER, PARTS_LANGUAGE, TOKENS, analyser, schema
from lycosa.search.index import IndexReader
from lycosa.search.query import Term

FEW_RESULTS = 2  # a query that finds no more may have been meant otherwise
MOST_WORDS = 5  # of a query that are looked at
MOST_LANGUAGES = 3  # of the index, those with the most pages
PLAINLY = 20  # times as frequent is a word that replaces one that the index has
SHORTEST = 3  # letters: a shorter word is near to far too many
SHORTEST_FOR_TWO = 6  # letters of a word that two letters may be wrong in
_ALIKE_START = 3  # letters that a word has in common with one that two letters are wrong in
_MOST_TERMS = 5_000
_SCRIPTS = ("abcdefghijklmnopqrstuvwxyz0123456789", "абвгдежзийклмнопрстуфхцчшщъыьэюя")
_FIELDS = ("text", "title")
_ONE_LANGUAGE = {"url": OTHER, "parts": PARTS_LANGUAGE}


class Suggester(NamedTuple):
    """What a suggestion is made with: an index, how many pages a query finds, and the texts of the best pages with a
    term."""

    reader: IndexReader
    total: Callable[[str], int]
    texts: Callable[[Query], Sequence[str]]


def suggest(tools: Suggester, query: str, asked: Iterable[Term], *, total: int) -> str:
    """The query to suggest in place of one that finds `total` pages; empty where there is none."""
    words = dict.fromkeys(word for term in asked if not term.is_prefix for word in re.findall(r"[^\W_]+", term.text))
    speller, changed = _Speller(tools.reader), dict[str, str]()
    for word in list(words)[:MOST_WORDS]:
        if len(word) >= SHORTEST and (better := speller.better(word)):
            stem, language = better
            texts = tools.texts(Query.term_query(schema(), f"text_{language}", stem))
            changed[word] = _as_written(stem, language, texts, word.lower())
    suggested = _replaced(query, changed) if changed else query
    return suggested if suggested.lower() != query.lower() and tools.total(suggested) > total else ""


def _replaced(query: str, words: dict[str, str]) -> str:
    pattern = "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))
    return re.sub(rf"(?<![^\W_])(?:{pattern})(?![^\W_])", lambda match: words[match[0]], query)


def _as_written(stem: str, language: str, texts: Iterable[str], typed: str) -> str:
    """The word with this stem in some texts, in lower case, that is nearest to what was typed; the stem where they have
    none."""
    pattern = re.compile(rf"\b{re.escape(stem[:_ALIKE_START])}[^\W_]*")
    words = dict.fromkeys(word for text in texts for word in pattern.findall(text.lower()))
    written = (word for word in words if tokens(word, language) == [stem])
    return min(written, key=lambda word: (_distance(word, typed), len(word)), default=stem)


class _Speller:
    """Finds better words for one index."""

    def __init__(self, reader: IndexReader) -> None:
        self._reader = reader
        pages = {language: reader.count("lang", f"{TOKENS}{language}") for language in LANGUAGES}
        used = sorted((language for language in LANGUAGES if pages[language]), key=lambda each: -pages[each])
        self._languages = used[:MOST_LANGUAGES]

    def better(self, word: str) -> tuple[str, str] | None:
        """The stem of the word that was probably meant, and its language."""
        plain = next(iter(tokens(word, OTHER)), "")
        script = next((script for script in _SCRIPTS if plain and plain[0] in script), "")
        if not script:
            return None
        known = max(self._known(plain), default=0)
        if known > FEW_RESULTS:
            return None
        for near in (self._one_away, self._two_away):
            best = max(
                (
                    (count, stem, language)
                    for language in self._languages
                    for stem, count in near(plain, script, language)
                ),
                default=(0, "", ""),
            )
            if best[0] > PLAINLY * known:
                return best[1], best[2]
        return None

    def _known(self, word: str) -> Iterator[int]:
        """The number of pages that have a word, by field and language."""
        fields = [*_ONE_LANGUAGE.items(), *((f"{field}_{each}", each) for each in self._languages for field in _FIELDS)]
        for field, language in fields:
            yield from self._reader.frequencies(field, tokens(word, language))

    def _one_away(self, word: str, script: str, language: str) -> Iterator[tuple[str, int]]:
        near = set(analyser(language).analyze(" ".join(_edits(word, script))))
        stems = sorted(near.difference(tokens(word, language)))
        for field in _FIELDS:
            counts = self._reader.frequencies(f"{field}_{language}", stems)
            yield from ((stem, count) for stem, count in zip(stems, counts, strict=True) if count)

    def _two_away(self, word: str, script: str, language: str) -> Iterator[tuple[str, int]]:
        if len(word) < SHORTEST_FOR_TWO:
            return
        stem = next(iter(tokens(word, language)), word)
        for term, count in self._reader.terms(f"text_{language}", word[:_ALIKE_START], _MOST_TERMS):
            if term != stem and (_distance(word, term) <= 2 or _distance(stem, term) <= 1):
                yield term, count


def _edits(word: str, script: str) -> set[str]:
    """The words that are one letter more, less or other, or two letters in another order."""
    halves = [(word[:at], word[at:]) for at in range(len(word) + 1)]
    fewer = {start + end[1:] for start, end in halves if end}
    swapped = {start + end[1] + end[0] + end[2:] for start, end in halves if len(end) > 1}
    other = {start + letter + end[1:] for start, end in halves if end for letter in script}
    more = {start + letter + end for start, end in halves for letter in script}
    return (fewer | swapped | other | more) - {word, ""}


def _distance(one: str, other: str, most: int = 2) -> int:
    """The number of letters to add, drop, change or swap between two words; `most` + 1 for all that is more."""
    if abs(len(one) - len(other)) > most:
        return most + 1
    before, row = list[int](), list(range(len(other) + 1))
    for at, letter in enumerate(one, 1):
        earlier, before = before, row
        row = [at]
        for place, each in enumerate(other, 1):
            cost = min(before[place] + 1, row[-1] + 1, before[place - 1] + (letter != each))
            if at > 1 and place > 1 and letter == other[place - 2] and one[at - 2] == each:
                cost = min(cost, earlier[place - 2] + 1)
            row.append(cost)
        if min(row) > most:
            return most + 1
    return row[-1]
