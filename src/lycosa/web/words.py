"""Words: any text as folded words, and what the words of a topic crawl are worth.

    fold_text("Café-Öfen, 太陽光")  →  "cafe ofen 太陽 陽光"

Case and accents are folded, punctuation becomes a space, line ends stay. Chinese, Japanese and Thai write no spaces, so
their runs become overlapping pairs of characters. What is ASCII is folded in C, the rest by a bounded cache.
`Lexicon` counts words over the pages seen, on and off the topic. `rarity` is a word's inverse document frequency, with
pages on the topic counting little: a focused crawl sees mostly those, and the topic's own words would look like stop
words. The lexicon maps a word to its evidence: by how much it shifts the log-odds that a page is on the topic, shrunk
towards nothing for rare words and bounded, so that no one word decides. Beyond `VOCABULARY` words all counts are
halved, so that a long crawl forgets what it saw first. Pure but for the cache; never raises. Called by `relevance`.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import pairwise
from math import log
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
    """A cache from a run of characters beyond ASCII to its folded form. Texts repeat them, so most are found here."""

    def __missing__(self, run: str) -> str:
        if len(self) >= _KEPT_RUNS:
            self.clear()
        text = _MARKS.sub("", normalize("NFKD", run.casefold()))
        found = self[run] = _UNSPACED.sub(_pairs, _BREAKS.sub(" ", normalize("NFC", text)))
        return found


_RUNS = _Runs()


def fold_text(text: str) -> str:
    """The words of `text`, with white space between them; lines stay lines."""
    if not text.isascii():
        text = text.replace(_NO_BREAK, " ")  # often the only one: then all of it is folded in C
        if not text.isascii():
            text = _BEYOND_ASCII.sub(_folded, text)
    return text.encode("utf-8", "replace").translate(_PLAIN).decode()


def split_words(text: str) -> list[str]:
    """The words of `text` in their order, folded."""
    return fold_text(text).split()


def word_forms(word: str) -> set[str]:
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


OWN_DISCOUNT = 0.75  # of a page on the topic, where the rarity of words is counted
VOCABULARY = 40_000  # words with counts; about 5 MB
MOST_WEIGHT = 3.0  # log-odds: a factor of 20
DOUBT = 4.0  # pages: with so many behind a word, half of what was seen of it is believed
REFRESH_PAGES = 100  # weights are worked out when asked for and kept until so many more pages were counted
KEPT_WEIGHTS = 20_000
# Once so many pages, and so many on the topic, were counted, every eighth page says as much as all of them. Of a topic
# that is rare there are never so many: then so many pages in all are enough.
ENOUGH_PAGES, ENOUGH_RELEVANT, ENOUGH_IN_ALL, THEN_EVERY = 500, 60, 1_000, 8
BASE_PAGES, BASE_RELEVANT = 20.0, 1.0  # what the share of pages on the topic starts from
WISHED_PAGES, WISHED_SHARE = 4.0, 0.9  # a word that was asked for: as if seen on so many pages, this share on the topic


def logit(share: float) -> float:
    return log(share / (1 - share))


class Lexicon(dict[str, float]):
    """A map from a word to its evidence, worked out on first use. `wished` are the words that the topic was
    given as."""

    def __init__(self, wished: Iterable[str] = (), *, vocabulary: int = VOCABULARY) -> None:
        super().__init__()
        self._wished, self._vocabulary = frozenset(wished), vocabulary
        self._pages = Counter[str]()
        self._relevant_pages = Counter[str]()
        self.pages = 0
        self.relevant = 0
        self._seen_since = 0
        self._share = self.share
        self._odds = logit(self._share)

    def __repr__(self) -> str:
        return f"<Lexicon {len(self._pages)} words of {self.pages} pages, {self.relevant} on the topic>"

    def __missing__(self, word: str) -> float:
        value = self[word] = self._evidence(word)
        return value

    @property
    def share(self) -> float:
        """The share of pages on the topic, so far."""
        return (self.relevant + BASE_RELEVANT) / (self.pages + BASE_PAGES)

    def wants(self, number: int) -> bool:
        """Whether the words of the page with this number are to be counted: of all pages at first, later of some."""
        if self.pages < ENOUGH_PAGES or (self.relevant < ENOUGH_RELEVANT and self.pages < ENOUGH_IN_ALL):
            return True
        return number % THEN_EVERY == 0

    def count(self, words: set[str], *, is_relevant: bool) -> None:
        """Counts the distinct words of one page."""
        self._pages.update(words)
        self.pages += 1
        if is_relevant:
            self._relevant_pages.update(words)
            self.relevant += 1
        self._seen_since += 1
        if self._seen_since >= min(REFRESH_PAGES, 1 + self.pages // 4) or len(self) > KEPT_WEIGHTS:
            self._refresh()

    def rarity(self, words: Iterable[str]) -> float:
        """How rare the most common of `words` is, mostly off the topic: near 0 for stop words, 1 at the start."""
        pages = self.pages - OWN_DISCOUNT * self.relevant
        counts = [self._pages.get(word, 0) - OWN_DISCOUNT * self._relevant_pages.get(word, 0) for word in words]
        most = max(counts, default=0.0)
        return log(1 + (pages - most + 1) / (most + 1)) / log(2 + pages)

    def counts(self, most: int) -> tuple[int, int, dict[str, tuple[int, int]]]:
        """Pages, pages on the topic, and both counts for the `most` words that were seen most."""
        words = {word: (seen, self._relevant_pages[word]) for word, seen in self._pages.most_common(most)}
        return self.pages, self.relevant, words

    def restore(self, pages: int, relevant: int, words: Mapping[str, tuple[int, int]]) -> None:
        """Goes on from the result of `counts`."""
        self.pages, self.relevant = pages, relevant
        self._pages = Counter({word: seen for word, (seen, _) in words.items()})
        self._relevant_pages = Counter({word: on_topic for word, (_, on_topic) in words.items() if on_topic})
        self._refresh()

    def _evidence(self, word: str) -> float:
        seen: float = self._pages.get(word, 0)
        relevant: float = self._relevant_pages.get(word, 0)
        if word in self._wished:
            seen, relevant = seen + WISHED_PAGES, relevant + WISHED_PAGES * WISHED_SHARE
        elif not seen:
            return 0.0
        found = (relevant + DOUBT * self._share) / (seen + DOUBT)
        weight = log(found / (1 - found)) - self._odds
        return weight if -MOST_WEIGHT < weight < MOST_WEIGHT else MOST_WEIGHT if weight > 0 else -MOST_WEIGHT

    def _refresh(self) -> None:
        self.clear()
        self._seen_since = 0
        while len(self._pages) > self._vocabulary:
            self._pages, self._relevant_pages = _halved(self._pages), _halved(self._relevant_pages)
            self.pages, self.relevant = self.pages // 2, self.relevant // 2
        self._share = self.share
        self._odds = logit(self._share)


def _halved(counts: Counter[str]) -> Counter[str]:
    return Counter({word: count // 2 for word, count in counts.items() if count > 1})
