"""What a comparison leaves out because the user says so: elements by CSS selector, texts by pattern, all numbers.

Rules count for the URLs that their pattern matches. They apply to both versions when they are compared, so that a rule
which is new needs no new version. Matching takes time linear in the text. Pure. Made by `recrawl.recorder` from the
setting `ignore`, applied by `recrawl.change.content`.
"""

import re
from collections.abc import Sequence

import msgspec

from lycosa.settings import WatchRule, read_rule
from lycosa.web import UrlPatterns, matches_pattern, parse_url, pattern_pieces

_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_SOME_NUMBER = "0"


class IgnoredParts(msgspec.Struct, frozen=True):
    """The parts of one page that are left out. `texts` are patterns in their pieces, lower case."""

    selector: str = ""
    texts: tuple[tuple[str, ...], ...] = ()
    numbers: bool = False

    def pieces(self, pieces: Sequence[str]) -> tuple[str, ...]:
        """Pieces of text without those that are left out."""
        if self.texts:
            pieces = [piece for piece in pieces if not self._has_pattern(piece.lower())]
        return self.words(pieces)

    def words(self, words: Sequence[str]) -> tuple[str, ...]:
        """Texts or addresses, with all numbers alike if numbers are left out."""
        return tuple(_NUMBER.sub(_SOME_NUMBER, word) for word in words) if self.numbers else tuple(words)

    def _has_pattern(self, piece: str) -> bool:
        return any(matches_pattern(pattern, piece, to_end=True) for pattern in self.texts)


class IgnoreRules:
    """The rules of a collection."""

    def __init__(self, entries: Sequence[str]) -> None:
        rules = [read_rule(entry) for entry in entries]
        self._rules = [(rule, UrlPatterns((rule.where,)) if rule.where else None) for rule in rules]

    def __repr__(self) -> str:
        return f"<IgnoreRules {len(self._rules)}>"

    def of(self, href: str) -> IgnoredParts | None:
        """What is left out on the page of a URL; None if nothing is."""
        if not self._rules or (url := parse_url(href)) is None:
            return None
        chosen = [rule for rule, urls in self._rules if urls is None or urls.match(url)]
        return _parts(chosen) if chosen else None


def _parts(rules: Sequence[WatchRule]) -> IgnoredParts:
    return IgnoredParts(
        selector=", ".join(rule.value for rule in rules if rule.kind == "css"),
        texts=tuple(pattern_pieces(f"*{rule.value.lower()}*") for rule in rules if rule.kind == "text"),
        numbers=any(rule.kind == "numbers" for rule in rules),
    )
