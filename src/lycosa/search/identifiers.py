"""Identifiers: words that are several words written as one, and the words in them.

    identifiers("see getElementById and XMLHttpRequest")     →  {"getElementById", "XMLHttpRequest"}
    parts_of("XMLHttpRequest")                               →  ("xml", "http", "request")

A new word begins at a capital letter behind a small one or a digit, and at the last capital of a run of them that a
small letter follows. What is joined by punctuation (`snake_case`, `java.util.List`) is split by
every tokeniser anyway. Letters beyond ASCII belong to words and begin none. Linear in the length of any text. Pure.
Called for the documents of the index, and to show where an identifier was found.
"""

import re
from functools import lru_cache

import numpy as np

from lycosa.web import native

LONGEST = 50  # bytes; longer ones are data, not identifiers
SHORTEST_PART = 2  # characters: the X of getX says nothing
_NO_WORD, _OTHER, _SMALL, _CAPITAL = range(4)


def _kind(code: int) -> int:
    letter = chr(code)
    if code >= 128:
        return _OTHER
    return _CAPITAL if letter.isupper() else _SMALL if letter.isalnum() else _NO_WORD


_KINDS = bytes(map(_kind, range(256)))
_BEGINS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def identifiers(text: str) -> set[str]:
    """The identifiers of a text, each once."""
    kernel = native()
    return set(kernel.identifiers(text)) if kernel is not None else _identifiers(text)


def _identifiers(text: str) -> set[str]:
    """The twin of the kernel's function."""
    data = text.encode("utf-8", "replace")
    kinds = np.frombuffer(data.translate(_KINDS), np.uint8)
    is_capital, is_small = kinds == _CAPITAL, kinds == _SMALL
    is_begin = is_capital[1:] & is_small[:-1]
    is_begin[:-1] |= is_capital[:-2] & is_capital[1:-1] & is_small[2:]
    begins = np.flatnonzero(is_begin)
    if not begins.size:
        return set()
    edges = np.concatenate(([-1], np.flatnonzero(kinds == _NO_WORD), [len(data)]))
    places = np.unique(np.searchsorted(edges, begins + 1))
    starts, ends = edges[places - 1] + 1, edges[places]
    is_short = ends - starts < LONGEST
    found = {data[start:end] for start, end in zip(starts[is_short].tolist(), ends[is_short].tolist(), strict=True)}
    return {each.decode("utf-8", "replace") for each in found}


@lru_cache(50_000)
def parts_of(identifier: str) -> tuple[str, ...]:
    """The words in an identifier in lower case, without those of one character."""
    return tuple(part.lower() for part in _BEGINS.split(identifier) if len(part) >= SHORTEST_PART)


def parts_in(*texts: str) -> str:
    """The words in the identifiers of some texts, each once, with spaces between them."""
    found = set[str]().union(*map(identifiers, texts))
    return " ".join(sorted({part for each in found for part in parts_of(each)}))
