"""The part of a text that shows why it was found: a window with as many of the query's words as may be.

Words are found by the beginning of their stems, accents aside, and confirmed by the tokeniser: what is highlighted is
what was searched for. Pure; linear in the length of the text. Called by the views with a page's text.
"""

import re
from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

from lycosa.search.compile import tokens
from lycosa.search.language import spaced

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


def snippet(text: str, words: Sequence[str], language: str) -> Snippet:
    """The best piece of `text` for these words and phrases, as they stand in the query."""
    text = " ".join(text[:READ_CHARS].split())
    found = _matches(text, words, language)
    if not found:
        return Snippet(_piece(text, *_trimmed(text, 0)))
    start, end = _trimmed(text, max(0, _best(found) - _LEAD_CHARS))
    shift = start - (1 if start else 0)
    marks = tuple((a - shift, b - shift) for a, b, _ in found if start <= a and b <= end)
    return Snippet(_piece(text, start, end), marks)


def highlighted(piece: Snippet, before: str, after: str) -> str:
    """The text with marks around what is to be highlighted."""
    out, at = [], 0
    for start, end in piece.highlights:
        out += [piece.text[at:start], before, piece.text[start:end], after]
        at = end
    return "".join([*out, piece.text[at:]])


def _matches(text: str, words: Sequence[str], language: str) -> list[tuple[int, int, str]]:
    """(start, end, stem) of every word of the text that was searched for."""
    stems: dict[str, None] = {}
    whole: dict[str, None] = {}
    for word in words:
        for part in word.split():
            if spaced(part).strip() != part and not part.isascii():
                whole[part] = None
            stems.update(dict.fromkeys(tokens(part, language)))
    starts = sorted({_start(stem) for stem in stems}, key=len, reverse=True)
    patterns = [rf"(?<!\w)(?:{'|'.join(starts)})\w*"] if starts else []
    patterns += [re.escape(part) for part in whole]
    if not patterns:
        return []
    found = []
    known: dict[str, str] = {}
    for match in re.finditer("|".join(patterns), text, re.IGNORECASE):
        seen = match[0]
        if seen not in known:
            stem = next(iter(tokens(seen, language)), "")
            known[seen] = seen if seen in whole else stem if stem in stems else ""
        if known[seen]:
            found.append((match.start(), match.end(), known[seen]))
            if len(found) >= MOST_MATCHES:
                break
    return found


def _start(stem: str) -> str:
    """A pattern for words that may have this stem: its beginning, with any accents."""
    kept = stem[:-1] if len(stem) > 4 else stem
    return "".join(f"[{_ALIKE[letter]}]" if letter in _ALIKE else re.escape(letter) for letter in kept)


def _best(found: Sequence[tuple[int, int, str]]) -> int:
    """Where the window should begin: the most different words, then the most words, then the earliest."""
    starts = [start for start, _, _ in found]
    best, best_at = (0, 0), starts[0]
    for place, start in enumerate(starts):
        last = bisect_left(starts, start + WINDOW_CHARS - 2 * _LEAD_CHARS)
        value = (len({stem for _, _, stem in found[place:last]}), last - place)
        if value > best:
            best, best_at = value, start
    return best_at


def _trimmed(text: str, start: int) -> tuple[int, int]:
    """Where about a window's length of whole words begins and ends, from the next word on."""
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
