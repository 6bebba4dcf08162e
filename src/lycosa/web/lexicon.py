"""What the words of a topic crawl are worth: counted over the pages seen, on and off the topic.

Two numbers come out of the counts. `rarity` of a word is its inverse document frequency, pages on the topic counting
little: a focused crawl sees mostly those, and the topic's own words would look like stop words. The lexicon itself maps
a word to its evidence: by how much it shifts the log-odds that a page is on the topic, shrunk towards nothing for rare
words and bounded, so that no one word decides.

Memory is bounded: beyond `VOCABULARY` words all counts are halved and words left with none forgotten, which also lets
a long crawl forget what it saw first. Pure. Filled and read by `relevance.Topic`.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from math import log

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
    """Word → evidence, worked out on first use. `wished` are the words the topic was given as."""

    def __init__(self, wished: Iterable[str] = ()) -> None:
        super().__init__()
        self._wished = frozenset(wished)
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

    def best(self, count: int) -> list[tuple[str, float]]:
        """The words with the most evidence for the topic, to show what was learned."""
        found = sorted(((self[word], word) for word in list(self._relevant_pages)), reverse=True)
        return [(word, weight) for weight, word in found[:count] if weight > 0]

    def counts(self, most: int) -> tuple[int, int, dict[str, tuple[int, int]]]:
        """Pages, pages on the topic, and both counts for the `most` words that were seen most."""
        words = {word: (seen, self._relevant_pages[word]) for word, seen in self._pages.most_common(most)}
        return self.pages, self.relevant, words

    def restore(self, pages: int, relevant: int, words: Mapping[str, tuple[int, int]]) -> None:
        """Goes on from what `counts` gave."""
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
        while len(self._pages) > VOCABULARY:
            self._pages, self._relevant_pages = _halved(self._pages), _halved(self._relevant_pages)
            self.pages, self.relevant = self.pages // 2, self.relevant // 2
        self._share = self.share
        self._odds = logit(self._share)


def _halved(counts: Counter[str]) -> Counter[str]:
    return Counter({word: count // 2 for word, count in counts.items() if count > 1})
