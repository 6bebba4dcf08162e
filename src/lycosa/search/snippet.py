"""Snippets: the part of a text that shows why it was found, with as many of the query's words as possible.

Words are found by the beginning of their stems, accents aside, and confirmed by the tokeniser: what is highlighted is
what was searched for: every word that begins so where a prefix was, and an identifier such as getElementById where no
word of the text is one but a word within it. Pure; linear in the length of the text. Called by the views with a page's
text.
"""

import re
import unicodedata
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import islice
from typing import NamedTuple

from lycosa.search.compile import tokens
from lycosa.search.documents import OTHER, spaced
from lycosa.search.identifiers import identifiers, parts_of

WINDOW_CHARS = 240
READ_CHARS = 200_000  # of a text; matches behind are not shown
MOST_MATCHES = 2_000
_LEAD_CHARS = 40  # of the window, before the first match
_ALIKE = {
    "a": "aàáâãäåā",
    "c": "cçčć",
    "e": "eèéêëē",
    "i": "iìíîïī",
    "n": "nñń",
    "o": "oòóôõöøō",
    "s": "sßšś",
    "u": "uùúûüū",
    "y": "yýÿi",
}
_EDGE = re.compile(r"\s")


class Snippet(NamedTuple):
    """A piece of text, and the places in it to be highlighted, as (start, end)."""

    text: str
    highlights: tuple[tuple[int, int], ...] = ()


class Highlighter:
    """Finds snippets for the words and phrases of one query, in texts of one language. `prefixes` are those of them
    that stand for all words that begin so."""

    def __init__(self, words: Sequence[str], language: str, prefixes: Sequence[str] = ()) -> None:
        self._language = language
        self._prefixes = tuple(found[-1] for found in (tokens(word, OTHER) for word in prefixes) if found)
        parts = [part for word in words for part in word.split()]
        self._whole = {part for part in parts if not part.isascii() and spaced(part).strip() != part}
        self._stems = {stem for part in parts for stem in tokens(part, language)}
        self._known: dict[str, str] = {}  # word of a text → the stem or prefix that was searched for, if one was

    @cached_property
    def _plain(self) -> re.Pattern[str] | None:
        return self._pattern(re.escape, re.ASCII)

    @cached_property
    def _accented(self) -> re.Pattern[str] | None:
        return self._pattern(_accented, re.IGNORECASE)

    def _pattern(self, spelled: Callable[[str], str], flags: int) -> re.Pattern[str] | None:
        sought = {stem[:-1] if len(stem) > 4 else stem for stem in self._stems} | set(self._prefixes)
        starts = sorted(map(spelled, sought), key=len, reverse=True)
        patterns = [rf"\b(?:{'|'.join(starts)})\w*"] if starts else []
        patterns += [re.escape(part) for part in sorted(self._whole)]
        return re.compile("|".join(patterns), flags) if patterns else None

    def snippet(self, text: str) -> Snippet:
        text = " ".join(text[:READ_CHARS].split())
        if not text.isascii():
            text = unicodedata.normalize("NFC", text)
        found = self._matches(text) or self._identifiers(text)
        if not found:
            return Snippet(_piece(text, *_trimmed(text, 0)))
        start, end = _trimmed(text, max(0, _best(found) - _LEAD_CHARS))
        shift = start - (1 if start else 0)
        marks = tuple((a - shift, b - shift) for a, b, _ in found if start <= a and b <= end)
        return Snippet(_piece(text, start, end), marks)

    def _matches(self, text: str) -> list[tuple[int, int, str]]:
        """(start, end, stem) of every word of the text that was searched for."""
        pattern = self._plain if text.isascii() else self._accented
        if pattern is None:
            return []
        found = []
        for match in pattern.finditer(text.lower() if text.isascii() else text):
            seen = match[0]
            if seen not in self._known:
                self._known[seen] = seen if seen in self._whole else self._sought(seen)
            if self._known[seen]:
                found.append((match.start(), match.end(), self._known[seen]))
                if len(found) >= MOST_MATCHES:
                    break
        return found

    def _sought(self, word: str) -> str:
        """The stem or prefix that was searched for and that this word has; empty if there is none."""
        stem = next(iter(tokens(word, self._language)), "")
        if stem in self._stems:
            return stem
        plain = next(iter(tokens(word, OTHER)), "") if self._prefixes else ""
        return next((prefix for prefix in self._prefixes if plain.startswith(prefix)), "")

    def _identifiers(self, text: str) -> list[tuple[int, int, str]]:
        """(start, end, stem) of every identifier of the text with a word in it that was searched for."""
        sought = {
            each: next(filter(None, (self._sought(part) for part in parts_of(each))), "") for each in identifiers(text)
        }
        named = sorted((re.escape(each) for each, stem in sought.items() if stem), key=len, reverse=True)
        places = re.finditer(rf"(?<!\w)(?:{'|'.join(named)})(?!\w)", text) if named else ()
        return [(match.start(), match.end(), sought[match[0]]) for match in islice(places, MOST_MATCHES)]


def highlighted(piece: Snippet, before: str, after: str) -> str:
    """The text of a snippet with marks around its highlights."""
    out, at = [], 0
    for start, end in piece.highlights:
        out += [piece.text[at:start], before, piece.text[start:end], after]
        at = end
    return "".join([*out, piece.text[at:]])


def _accented(start: str) -> str:
    """A pattern for the beginning of words, with any accents."""
    return "".join(f"[{_ALIKE[letter]}]" if letter in _ALIKE else re.escape(letter) for letter in start)


def _best(found: Sequence[tuple[int, int, str]]) -> int:
    """The start of the best window: the most different words, then the most words, then the earliest."""
    best, best_at, last = (0, 0), found[0][0], 0
    inside: dict[str, int] = {}  # the window's words, each as often as it has it
    for place, (start, _, stem) in enumerate(found):
        while last < len(found) and found[last][0] < start + WINDOW_CHARS - 2 * _LEAD_CHARS:
            inside[found[last][2]] = inside.get(found[last][2], 0) + 1
            last += 1
        value = (len(inside), last - place)
        if value > best:
            best, best_at = value, start
        inside[stem] -= 1
        if not inside[stem]:
            del inside[stem]
    return best_at


def _trimmed(text: str, start: int) -> tuple[int, int]:
    """The start and end of about a window's length of whole words, from the next word on."""
    if start > 0:
        edge = _EDGE.search(text, start, start + _LEAD_CHARS)
        start = edge.end() if edge else start
    end = min(len(text), start + WINDOW_CHARS)
    if end < len(text):
        edge_at = text.rfind(" ", start, end)
        end = edge_at if edge_at > start + WINDOW_CHARS // 2 else end
    return start, end


def _piece(text: str, start: int, end: int) -> str:
    return ("…" if start > 0 else "") + text[start:end] + ("…" if end < len(text) else "")
