"""Words: any text as lower-case words with spaces between them, for counting and comparing.

    fold("Café-Öfen, 太陽光")  →  "cafe ofen 太陽 陽光"

Case and accents are folded, punctuation becomes a space, line ends stay. Chinese, Japanese and Thai write no spaces, so
their runs become overlapping pairs of characters. Pure but for a bounded cache; linear in the length; never raises.
What is ASCII is folded in C, the rest by the cache. Called by `relevance`.
"""

import re
from itertools import pairwise
from unicodedata import normalize

_PLAIN = bytes(
    10 if code == 10 else ord(chr(code).lower()) if chr(code).isalnum() else 32 for code in range(128)
) + bytes(range(128, 256))
_BEYOND_ASCII = re.compile("[^\x00-\x7f]+")
_NO_BREAK = "\xa0"
_BREAKS = re.compile(r"[^\w]+")
_MARKS = re.compile(
    "[\u0300-\u036f]+"
)  # the accents of Latin, Greek and Cyrillic; elsewhere a mark is part of the word
_UNSPACED = re.compile("[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002ffff]{2,}")
_SHORTEST_PLURAL = 4
_KEPT_RUNS = 20_000


class _Runs(dict[str, str]):
    """Run of characters beyond ASCII → the same folded. Texts repeat them, so most are found here."""

    def __missing__(self, run: str) -> str:
        if len(self) >= _KEPT_RUNS:
            self.clear()
        text = _MARKS.sub("", normalize("NFKD", run.casefold()))
        found = self[run] = _UNSPACED.sub(_pairs, _BREAKS.sub(" ", normalize("NFC", text)))
        return found


_RUNS = _Runs()


def fold(text: str) -> str:
    """The words of `text`, with white space between them; lines stay lines."""
    if not text.isascii():
        text = text.replace(_NO_BREAK, " ")  # often the only one: then all of it is folded in C
        if not text.isascii():
            text = _BEYOND_ASCII.sub(_folded, text)
    return text.encode("utf-8", "replace").translate(_PLAIN).decode()


def words(text: str) -> list[str]:
    """The words of `text` in their order, folded."""
    return fold(text).split()


def forms(word: str) -> set[str]:
    """A folded word and its plain plurals and singular: whoever asks for `battery` wants `batteries` too."""
    if not word.isascii() or len(word) < _SHORTEST_PLURAL:
        return {word}
    if word.endswith("ies"):
        return {word, word[:-3] + "y"}
    if word.endswith("s") and not word.endswith("ss"):
        return {word, word[:-1]}
    return {word, word + "s", word[:-1] + "ies"} if word.endswith("y") else {word, word + "s"}


def _folded(run: re.Match[str]) -> str:
    return _RUNS[run[0]]


def _pairs(run: re.Match[str]) -> str:
    return " " + " ".join([first + second for first, second in pairwise(run[0])]) + " "
