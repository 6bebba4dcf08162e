"""Relevance to a topic: of a page when it is there, of a link before the page is fetched.

    topic = Topic.of_words("solar power storage")       or Topic.of_pages([text, …])
    relevance = topic.read(url, title=…, text=…, predicted=…)      every fetched page: judged, and learned from
    predictions = topic.links(anchors, urls, parent=relevance)      its links, in one call
    actual = topic.expected(prediction)                             what pages so predicted turned out to be

A page is judged by the topic's own words only, plus at most `BORROWED` by words that came to stand beside them: what is
learned moves the order of the queue, and cannot drag the topic elsewhere. A link is judged by log-odds: the mean
relevance of its folder, host, parent and siblings (`TrackRecord`), plus the evidence of the words in its anchor and URL
(`words.Lexicon`). `Calibration` turns a raw prediction into what pages so predicted turned out to be: twenty steps of
log-odds, each a running mean, smoothed so that a higher prediction never means less. All numbers are in 0..1.

Pure: no I/O, no clock. Memory is bounded by the constants here and in `words`. Called by the topic policy.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from math import exp, log
from urllib.parse import unquote

import msgspec

from lycosa.web.words import ENOUGH_PAGES, THEN_EVERY, Lexicon, fold_text, split_words, word_forms

STEPS, STEP = 20, 0.5  # of log-odds, from -5 to 5
BELIEF = 8.0  # outcomes: what a step is taken to have seen, as predicted, before it has seen anything
FADE_AT = 4_000  # outcomes of a step; then its past counts half, so that late ones still matter
NEWS = 32  # the means are worked out anew when so small a part of all outcomes has come since
LEAST, MOST = 0.002, 0.998  # no prediction is a certainty, or nothing could move it


class TrackRecord:
    """The sum and number of outcomes by name, kept in two generations of `size` names: the ones not asked about for
    longest go first."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._young: dict[str, tuple[float, int]] = {}
        self._old: dict[str, tuple[float, int]] = {}

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def get(self, name: str) -> tuple[float, int] | None:
        """The sum and number of outcomes of a name, or None."""
        return self._young.get(name) or self._old.get(name)

    def add(self, name: str, value: float) -> None:
        total, count = self.get(name) or (0.0, 0)
        self._young[name] = (total + value, count + 1)
        if len(self._young) >= self._size:
            self._young, self._old = {}, self._young

    def latest(self, most: int) -> dict[str, tuple[float, int]]:
        """The `most` names that had outcomes last."""
        names = [*self._old, *self._young][-most:]
        return {name: found for name in names if (found := self.get(name))}

    def restore(self, records: Mapping[str, tuple[float, int]]) -> None:
        self._young.update(records)


class Calibration:
    """Corrects predictions by their outcomes."""

    def __init__(self) -> None:
        self._expected = [1 / (1 + exp((STEPS / 2 - step - 0.5) * STEP)) for step in range(STEPS)]
        self._sums = [BELIEF * share for share in self._expected]
        self._counts = [BELIEF] * STEPS
        self._means = list(self._expected)
        self._news_left = 0.0  # outcomes that may come before the means are worked out anew
        self.edition = 0  # goes up whenever they were

    def add(self, predicted: float, actual: float) -> None:
        step = _step(predicted)
        self._sums[step] += actual
        self._counts[step] += 1
        if self._counts[step] > FADE_AT:
            self._sums[step], self._counts[step] = self._sums[step] / 2, self._counts[step] / 2
        self._news_left -= 1
        if self._news_left < 0:
            self._renew()

    def sums(self) -> list[tuple[float, float]]:
        """The sum and number of outcomes of each step."""
        return list(zip(self._sums, self._counts, strict=True))

    def restore(self, sums: Sequence[tuple[float, float]]) -> None:
        self._sums, self._counts = [total for total, _ in sums], [count for _, count in sums]
        self._renew()

    def _renew(self) -> None:
        self._means = _rising(self._sums, self._counts)
        self._news_left = (sum(self._counts) - BELIEF * STEPS) / NEWS
        self.edition += 1

    def actual(self, predicted: float) -> float:
        """The mean relevance of pages with this prediction; between two steps it is interpolated."""
        place = _place(predicted) - 0.5
        low = max(0, min(STEPS - 2, int(place)))
        part = max(0.0, min(1.0, place - low))
        return self._means[low] * (1 - part) + self._means[low + 1] * part


def _place(share: float) -> float:
    share = max(LEAST, min(MOST, share))
    return log(share / (1 - share)) / STEP + STEPS / 2


def _step(share: float) -> int:
    return max(0, min(STEPS - 1, int(_place(share))))


def _rising(sums: list[float], counts: list[float]) -> list[float]:
    """The means, neighbours that fall pooled into one: the nearest sequence that never falls."""
    pools: list[tuple[float, float, int]] = []
    for total, count in zip(sums, counts, strict=True):
        pool = (total, count, 1)
        while pools and pools[-1][0] * pool[1] > pool[0] * pools[-1][1]:
            before = pools.pop()
            pool = (before[0] + pool[0], before[1] + pool[1], before[2] + pool[2])
        pools.append(pool)
    return [total / count for total, count, width in pools for _ in range(width)]


HEAD_CHARS, BODY_CHARS = 300, 400  # of a page's text: its beginning, and from a third on, past the navigation
URL_CHARS = 256  # of a URL, an anchor or a folder; traps make them long
SATURATION = 1.5  # occurrences that count as half of very many
TITLE_WORTH = 3  # occurrences in the text that one in the title or a heading is worth
OFTEN = 4  # occurrences of a word on a page that has it often
ENOUGH = 4  # of the topic's words: a page with so many of them is on the topic, however many there are
EXAMPLE_WORDS = 40
BORROWED = 0.3  # the most that learned words add to a page's relevance
FEW_MARKS = 12  # strings that are searched for in a text; with more of them it is split into words at once
JUDGED_WORDS = slice(40, 80)  # the words of a page looked at for that, past most navigation
LEARN_FROM, LEARN_AT_LEAST = 0.5, 0.2  # a page is an example from this relevance on; less where the topic is rare
LOCALITY = 0.5  # how far the page behind a link takes after the page it is on
FOLDERS, HOSTS = 10_000, 5_000  # remembered, in each of two generations
FOLDER_DOUBT, HOST_DOUBT = 2.0, 4.0  # pages: with so many of its own, half of the prior is its own
WORDS_WORTH = 0.5  # of their evidence: the words of a link say the same thing more than once
LARGE = 6.0  # log-odds: beyond it a prediction is as good as certain
NOTHING = (0.0, 0)  # sum and number of outcomes where there are none
RELEVANCE_BANDS, LOWEST = 8, 5  # bands are one wide in log-odds, the lowest begins at minus this
TOPIC_HEAD_BYTES = 4_096
STORED_WORDS, STORED_NAMES = 5_000, 2_000
DOUBTFUL_RELEVANCE = (0.05, 0.75)  # predictions after which a look at the head may tell something
HEAD_DOUBT = 15  # words: with so many read of a page, half of the judgement is its own


class TopicRow(msgspec.Struct, array_like=True):
    """What a topic has learned as it is stored: some 200 KB."""

    read: int
    relevance_sum: float
    words: tuple[int, int, dict[str, tuple[int, int]]]
    hosts: dict[str, tuple[float, int]]
    folders: dict[str, tuple[float, int]]
    calibration: list[tuple[float, float]]


class Topic:
    """One topic and all that was learned about it."""

    def __init__(self, wished: Iterable[str]) -> None:
        self._roots = {form: word for word in wished for form in word_forms(word)}
        self._forms: dict[str, list[str]] = {}
        for form, root in self._roots.items():
            self._forms.setdefault(root, []).append(form)
        shortest = [form for form in self._roots if not any(other in form and other != form for other in self._roots)]
        self._marks = shortest if len(shortest) <= FEW_MARKS else []  # each form has one of them in it
        self.lexicon = Lexicon(self._roots)
        self._folders, self._hosts = TrackRecord(FOLDERS), TrackRecord(HOSTS)
        self._calibration = Calibration()
        self._ranges, self._ranges_edition = list[tuple[float, float]](), -1
        self._read, self._asked, self._relevance_sum = 0, 0, 0.0
        self._rarities: dict[str, float] = {}
        self._enough, self._rarities_at = 1.0, -10

    @classmethod
    def of_words(cls, text: str) -> "Topic":
        """The topic of a few words; raises ValueError if there is none among them."""
        wished = dict.fromkeys(split_words(text))
        if not wished:
            raise ValueError(f"a topic needs at least one word, {text!r} has none")
        return cls(wished)

    @classmethod
    def of_pages(cls, texts: Sequence[str]) -> "Topic":
        """The topic of example pages: their most frequent words, long ones first; stop words show while crawling."""
        found = Counter[str]()
        for text in texts:
            found.update(
                {word: min(count, 20) for word, count in Counter(split_words(text)).items() if not word.isdigit()}
            )
        ranked = sorted(found, key=lambda word: (-found[word] * min(len(word), 8), word))
        topic = cls.of_words(" ".join(ranked[:EXAMPLE_WORDS]))
        for text in texts:
            topic.lexicon.count(set(split_words(text)), is_relevant=True)
        return topic

    def __repr__(self) -> str:
        return f"<Topic {' '.join(self._forms)!r} {self.lexicon!r}>"

    # pages

    def page(self, *, title: str = "", text: str = "") -> float:
        """The relevance of a page, without learning from it."""
        return self._judge(split_words(title), _sample(text))

    def wants(self) -> bool:
        """Whether a page is worth reading just to learn from it. All are at first, later one in `THEN_EVERY`."""
        self._asked += 1
        return self.lexicon.pages < ENOUGH_PAGES or self._asked % THEN_EVERY == 0

    def wants_prediction(self) -> bool:
        """Whether it is worth looking up what was predicted of the page that is read next: at first of all pages."""
        return self._read < ENOUGH_PAGES or self._read % THEN_EVERY == 0

    def read(
        self, url: str, *, title: str = "", headings: str = "", text: str = "", predicted: float | None = None
    ) -> float:
        """The relevance of a fetched page, from which its words, folder, host and prediction are learned.

        `predicted` is what `links` said of it, if anybody remembers.
        """
        names, body = split_words(f"{title} {headings}"), _sample(text)
        relevance = self._judge(names, body)
        self._relevance_sum += relevance
        self._read += 1
        if self.lexicon.wants(self._read):
            usual = self._relevance_sum / self._read
            is_example = relevance >= max(LEARN_AT_LEAST, min(LEARN_FROM, 2 * usual))
            self.lexicon.count({*names, *body.split(), *_url_words(url)}, is_relevant=is_example)
        self._folders.add(_folder(url), relevance)
        self._hosts.add(_host(url), relevance)
        if predicted is not None:
            self._calibration.add(predicted, relevance)
        return relevance

    def _judge(self, names: list[str], body: str) -> float:
        """By the words of its title and its text, folded; that is split only if it may have something to say."""
        roots, found = self._roots, dict[str, float]()
        for word in filter(roots.__contains__, names):
            found[roots[word]] = found.get(roots[word], 0.0) + TITLE_WORTH
        if self._may_have_own(body):
            for word in filter(roots.__contains__, body.split()):
                found[roots[word]] = found.get(roots[word], 0.0) + 1
        own = 0.0
        if found:
            rarities = self._known_rarities()
            own = sum(rarities[root] * count / (count + SATURATION) for root, count in found.items())
            own = min(1.0, own / self._enough)
        if own >= 1.0 or not self.lexicon.relevant:
            return own
        return own + (1 - own) * BORROWED * self._borrowed(set(names), body)

    def _may_have_own(self, body: str) -> bool:
        """Whether any of the topic's words is in a folded text, be it as a part of another word. Searching is cheaper
        than splitting, if there are not many."""
        for mark in self._marks:
            if mark in body:
                return True
        return not self._marks

    def _borrowed(self, found: set[str], body: str) -> float:
        """The mean evidence of a page's words; its title alone is asked where that speaks against it."""
        weight = self.lexicon.__getitem__
        if sum(map(weight, found)) < 0:
            return 0.0
        found.update(body.split(None, JUDGED_WORDS.stop)[JUDGED_WORDS])
        return max(0.0, min(1.0, sum(map(weight, found)) / (len(found) + 1)))

    def _known_rarities(self) -> dict[str, float]:
        """The rarity of each of the topic's words, worked out anew now and then."""
        pages = self.lexicon.pages
        if not self._rarities_at <= pages < self._rarities_at * 1.1 + 4:
            self._rarities = {root: self.lexicon.rarity(alike) for root, alike in self._forms.items()}
            best = sorted(self._rarities.values(), reverse=True)[:ENOUGH]
            self._enough = max(0.02, sum(best)) * OFTEN / (OFTEN + SATURATION)
            self._rarities_at = pages
        return self._rarities

    # links

    def links(self, anchors: Sequence[str], urls: Sequence[str], *, parent: float) -> list[float]:
        """The predicted relevance of the pages behind the links of one page, whose own relevance is `parent`."""
        if not urls:
            return []
        folders, weight, found = [_folder(url) for url in urls], self.lexicon.__getitem__, []
        priors = self._priors(set(folders), parent)
        for folder, anchor, url in zip(folders, anchors, urls, strict=True):
            odds = priors[folder] + WORDS_WORTH * sum(map(weight, _link_words(anchor, url)))
            found.append(1 / (1 + exp(-odds)) if -LARGE < odds < LARGE else LEAST if odds < 0 else MOST)
        return found

    def _priors(self, folders: set[str], parent: float) -> dict[str, float]:
        """Log-odds by folder before the link's words: what its host and the page it is on say, then what it shows."""
        records = {folder: self._folders.get(folder) for folder in folders}
        usual = self.lexicon.share
        near = _log_odds(_expected(parent, usual, [record for record in records.values() if record]))
        at_hosts, priors = dict[str, float](), dict[str, float]()
        for folder, record in records.items():
            host = folder[: folder.find("/", 8)]
            odds = at_hosts.get(host)
            if odds is None:
                total, count = self._hosts.get(host) or NOTHING
                odds = at_hosts[host] = (near + _log_odds((total + HOST_DOUBT * usual) / (count + HOST_DOUBT))) / 2
            if record is not None:
                total, count = record
                odds = _log_odds((total + FOLDER_DOUBT / (1 + exp(-odds))) / (count + FOLDER_DOUBT))
            priors[folder] = odds
        return priors

    def expected(self, predicted: float) -> float:
        """The mean relevance of pages with this prediction: the prediction, corrected by its outcomes."""
        return self._calibration.actual(predicted)

    def expected_in(self, band: int) -> tuple[float, float]:
        """The least and the most that is expected of links in a band."""
        if self._calibration.edition != self._ranges_edition:
            self._ranges_edition = self._calibration.edition
            edges = [LEAST, *(1 / (1 + exp(LOWEST - band)) for band in range(1, RELEVANCE_BANDS)), MOST]
            self._ranges = list(pairwise(map(self.expected, edges)))
        return self._ranges[band]

    def band(self, predicted: float) -> int:
        """The band of a queue for a link, from 0 to the best: steps of log-odds, so that neighbours differ alike.

        Of the prediction as it is: corrected ones run together wherever little came of them, and bands need order only.
        """
        return max(0, min(RELEVANCE_BANDS - 1, int(_log_odds(predicted) + LOWEST)))

    # keeping what was learned

    def dump(self) -> bytes:
        """What was learned, most of it, to go on from after a restart."""
        row = TopicRow(
            self._read,
            self._relevance_sum,
            self.lexicon.counts(STORED_WORDS),
            self._hosts.latest(STORED_NAMES),
            self._folders.latest(STORED_NAMES),
            self._calibration.sums(),
        )
        return msgspec.msgpack.encode(row)

    def load(self, learned: bytes) -> None:
        """Goes on from what `dump` gave."""
        row = msgspec.msgpack.decode(learned, type=TopicRow)
        self._read, self._relevance_sum = row.read, row.relevance_sum
        self.lexicon.restore(*row.words)
        self._hosts.restore(row.hosts)
        self._folders.restore(row.folders)
        self._calibration.restore(row.calibration)
        self._rarities_at = -10

    # the head of a page, read before the page

    def refine(self, predicted: float, *, title: str = "", text: str = "") -> float:
        """The prediction after a look at a page's head: its title and the text that came with it."""
        names, body = split_words(title), fold_text(text)
        judged = self._judge(names, body)
        read = TITLE_WORTH * len(names) + len(body.split())
        return predicted + read / (read + HEAD_DOUBT) * (judged - predicted)


def head_pays(expected: float, *, page_bytes: float | None, request_bytes: float = 1_000) -> bool:
    """Whether it is cheaper to read a page's head first than the page. `page_bytes` is the host's mean page, if known.

    It is so in doubt only: a page that is likely on the topic is fetched whole, one that is hardly so is put off
    unseen. `request_bytes` is what a request costs beside its body: headers, and what the line could carry while a turn
    of the host is used up. With a long delay that is far more than a page, and no head is worth a turn.
    """
    if page_bytes is None or not DOUBTFUL_RELEVANCE[0] <= expected <= DOUBTFUL_RELEVANCE[1]:
        return False
    spared = (1 - expected) * (page_bytes + request_bytes)
    return TOPIC_HEAD_BYTES + request_bytes < spared


def _log_odds(share: float) -> float:
    share = LEAST if share < LEAST else MOST if share > MOST else share
    return log(share / (1 - share))


def _sample(text: str) -> str:
    """The words a page is judged by, folded."""
    if len(text) > HEAD_CHARS + BODY_CHARS:
        start = max(HEAD_CHARS, len(text) // 3)
        text = f"{text[:HEAD_CHARS]} {text[start : start + BODY_CHARS]}"
    return fold_text(text)


def _folder(url: str) -> str:
    path = url.partition("?")[0]
    return path[: path.rfind("/") + 1][:URL_CHARS]


def _host(url: str) -> str:
    return url[: url.find("/", 8)]


def _expected(parent: float, usual: float, siblings: list[tuple[float, int]]) -> float:
    """What a page links to: pages like itself, and like what is known of the places its links lead to."""
    expected = usual + LOCALITY * (parent - usual)
    if not siblings:
        return expected
    mean = sum([total for total, _ in siblings]) / sum([count for _, count in siblings])
    return (expected * FOLDER_DOUBT + mean * len(siblings)) / (FOLDER_DOUBT + len(siblings))


def _url_words(url: str) -> list[str]:
    return split_words(unquote(url[:URL_CHARS]) if "%" in url else url[:URL_CHARS])


def _link_words(anchor: str, url: str) -> set[str]:
    text = f"{anchor}\n{url}"[-2 * URL_CHARS :]
    return set(split_words(unquote(text) if "%" in text else text))
