"""The built-in rankings: `pvalue`, `rank`, `topic` and `internal-first`.

A ranking sorts the URLs of a host into bands by the evidence for each: the number of links to it, the importance that
flowed to it, or the relevance that its links promise. The contract, and how to add one, is in `frontier.policy`; the
arithmetic of relevance is in `web.relevance`, that of importance is here.
"""

from collections import deque
from collections.abc import Hashable, Mapping, Sequence
from itertools import cycle, takewhile
from math import floor, frexp, log2
from random import Random
from typing import TypeVar

import msgspec

from lycosa.frontier.policy import LinkSource, Ranking
from lycosa.frontier.rows import HostRow
from lycosa.web import DOUBTFUL_RELEVANCE, RELEVANCE_BANDS, Topic, head_pays

TYPICAL_LINKS = 20.0  # on a page of a host of which nothing is known yet
SAMPLE = 999  # pvalues that the cuts between the lists are taken from
PAGES_ENOUGH = 10  # of a host, to know how large its pages are
REQUEST_BYTES, LINE_BYTES_S = 1_000, 100_000  # what a request costs, and a second of a host's turn

BANDS = 8  # of importance
MIDDLE = 4  # the band of a URL with the usual cash
SEED_CASH = 1.0
GIFT = 0.1  # of the usual cash: what a page hands on beside its own; much more drowns what it received
COINS = 16  # at least so many make the usual cash
ROOT_SHARE = 0.01  # of the root's cash, paid out with a page
LEAST_USUAL = 1e-250  # nothing is divided by zero, even if no page ever has cash
HORIZON = 20_000  # pages: how far back the usual cash is looked for

_Page = TypeVar("_Page")
_Key = TypeVar("_Key", bound=Hashable)


def pvalue(forward_links: float, back_links: float, age: float) -> float:
    """Return the pvalue: a page with many links on it and few to it goes first, the more so as the crawl grows
    older."""
    return forward_links - age * back_links


def three_lists(ranked: Mapping[_Page, float]) -> tuple[list[_Page], list[_Page], list[_Page]]:
    """Return the pages sorted by their pvalue, cut at round(n/3) and round(2n/3)."""
    names = sorted(ranked, key=lambda name: -ranked[name])
    first, second = round(len(names) / 3), round(2 * len(names) / 3)
    return names[:first], names[first:second], names[second:]


class PValue(Ranking):
    """Three lists by pvalue. The credit of a URL is the number of links to it (back links); its forward links are those
    on its page where that is known, 0 if the URL failed, and else its host's mean.

    The age grows from 0 to 1 as the crawl has done more of what it knows. The cuts between the lists are those of the
    last `SAMPLE` pvalues; a URL changes its list when another link to it is found.
    """

    name = "pvalue"
    bands = 3
    takes = (1, 1, 1, 1, 2, 2, 3)
    slack = None

    def __init__(self) -> None:
        self._age = 0.0
        self._sample: deque[float] = deque(maxlen=SAMPLE)
        self._cuts = (0.0, 0.0)

    def __repr__(self) -> str:
        return f"<PValue age={self._age:.2f} cuts={self._cuts}>"

    def fetched(self, source: LinkSource, urls: Sequence[str], anchors: Sequence[str]) -> Sequence[float]:
        return [1.0] * len(urls)

    def band(self, credit: float, host: HostRow) -> int:
        return self._list_of(host.links / host.pages if host.pages else TYPICAL_LINKS, credit)

    def band_with(self, links: int, credit: float, host: HostRow) -> int:
        return self._list_of(links, credit)

    def _list_of(self, forward_links: float, back_links: float) -> int:
        value = pvalue(forward_links, back_links, self._age)
        self._sample.append(value)
        upper, lower = self._cuts
        return 1 if value >= upper else 2 if value >= lower else 3

    def deal(self, pages: Mapping[_Page, tuple[int, int]]) -> list[_Page]:
        ranked = {page: pvalue(forward, back, self._age) for page, (forward, back) in pages.items()}
        lists = [deque(names) for names in three_lists(ranked)]
        turns = (lists[band - 1] for band in cycle(self.takes))
        return [names.popleft() for names in takewhile(lambda _: any(lists), turns) if names]

    def matured(self, done: int, known: int) -> None:
        self._age = done / known if known else 0.0
        # Of a sample, because the lists shall be of equal size and nobody sorts all queued URLs; once a commit.
        if self._sample:
            values = sorted(self._sample, reverse=True)
            self._cuts = (values[len(values) // 3], values[2 * len(values) // 3])

    def dump(self) -> bytes:
        return msgspec.msgpack.encode(list(self._sample))

    def load(self, learned: bytes) -> None:
        self._sample.extend(msgspec.msgpack.decode(learned, type=list[float]))


class Importance:
    """The flow of importance in one crawl (OPIC): cash flows along links, and a queued URL is worth what it received.

    A fetched page hands all its cash on in equal parts, plus a gift of its own, without which late pages would hand on
    next to nothing. A page without links pays into a root that belongs to all; the root pays out with every page
    fetched after. Nothing is kept of any URL here: its cash lies with it in the state. Pure: the chance has a seed.
    """

    # Cash for a page that is fetched already stays there and is worth nothing, so the usual cash sinks as a crawl goes
    # on: it is kept as 64 bits. (Handing it out again through the root levels all pages and makes the order worse.)

    def __init__(self, *, seed: int = 0) -> None:
        self._chance = Random(seed).random
        self.pages = 0
        self.usual = SEED_CASH
        self.root = 0.0
        self.coin = _coin(SEED_CASH)

    def __repr__(self) -> str:
        return f"<Importance pages={self.pages} usual={self.usual:.3g} root={self.root:.3g}>"

    def spread(self, cash: float, targets: Sequence[_Key]) -> dict[_Key, float]:
        """Spread the `cash` of a fetched page over the `targets` of its links, each named once; return what each of
        them gets, without those that get nothing."""
        self._note(cash)
        paid = self.root * ROOT_SHARE
        self.root -= paid
        whole = cash + paid + GIFT * self.usual
        if not targets:
            self.root += whole
            return {}
        # Most links carry little, and a write for each of a page's sixty would cost more than the page. So cash is
        # handed out in coins; a part of a coin becomes a whole one by chance, in proportion, which is right on the mean
        # and leaves most links without a write.
        coin, chance = self.coin, self._chance
        number, part = divmod(whole / len(targets) / coin, 1.0)
        if sure := number * coin:
            return {target: sure + coin if chance() < part else sure for target in targets}
        return {target: coin for target in targets if chance() < part}

    def band(self, cash: float) -> int:
        """Return the band of a waiting URL with so much cash, `BANDS` - 1 the best. Bands are a factor of two apart, so
        that a URL changes its band when much comes together, not with every link."""
        share = cash / self.usual
        if share <= 0:  # nothing, or less than a float can say
            return 0
        return max(0, min(BANDS - 1, MIDDLE + floor(log2(share))))

    def _note(self, cash: float) -> None:
        self.pages += 1
        self.usual = max(LEAST_USUAL, self.usual + (cash - self.usual) / min(self.pages, HORIZON))
        if not self.coin <= self.usual / COINS < 4 * self.coin:  # seldom: a coin stays what it is
            self.coin = _coin(self.usual)


def _coin(usual: float) -> float:
    """The largest power of two that is no more than a `COINS`-th of the usual cash."""
    return 2.0 ** (frexp(usual / COINS)[1] - 1)


class Rank(Ranking):
    """Importance while crawling: the credit of a URL is the cash that has flowed to it along links."""

    name = "rank"
    bands = BANDS

    def __init__(self) -> None:
        self._importance = Importance()

    def __repr__(self) -> str:
        return f"<Rank {self._importance!r}>"

    def fetched(self, source: LinkSource, urls: Sequence[str], anchors: Sequence[str]) -> Sequence[float]:
        cash = source.credit or (SEED_CASH if source.depth == 0 else 0.0)
        given = self._importance.spread(cash, urls)
        return [given.get(url, 0.0) for url in urls]

    def band(self, credit: float, host: HostRow) -> int:
        return self.bands - self._importance.band(credit)

    def dump(self) -> bytes:
        i = self._importance
        return msgspec.msgpack.encode((i.pages, i.usual, i.root, i.coin))

    def load(self, learned: bytes) -> None:
        i = self._importance
        i.pages, i.usual, i.root, i.coin = msgspec.msgpack.decode(learned, type=tuple[int, float, float, float])


class InternalFirst(Ranking):
    """What a host's own pages link to goes first; a host that is known by links from other hosts alone waits until no
    host has any of these left. Seeds and what sitemaps name are internal."""

    # No slack: one link into a host's own pages, anywhere, goes before all hosts that nobody has entered yet.
    name = "internal-first"
    bands = 2
    slack = 0

    def __repr__(self) -> str:
        return "<InternalFirst>"

    def fetched(self, source: LinkSource, urls: Sequence[str], anchors: Sequence[str]) -> Sequence[float]:
        host = source.url.split("/", 3)[2]
        own = f"http://{host}/", f"https://{host}/"
        return [1.0 if url.startswith(own) else -1.0 for url in urls]

    def combine(self, credit: float, more: float) -> float:
        return max(credit, more)

    def band(self, credit: float, host: HostRow) -> int:
        return 1 if credit >= 0 else 2


class Relevance(Ranking):
    """The credit of a URL is the relevance to a topic that the best link to it promises."""

    name = "topic"
    bands = RELEVANCE_BANDS
    sees_all = False
    reads_words = True

    def __init__(self, topic: Topic) -> None:
        self._topic = topic

    def __repr__(self) -> str:
        return f"<Relevance {self._topic!r}>"

    def fetched(self, source: LinkSource, urls: Sequence[str], anchors: Sequence[str]) -> Sequence[float]:
        # Reading words costs time: a page without new links is read only while there is something to learn from it.
        if not urls and not self._topic.wants():
            return ()
        predicted = (source.credit or None) if self._topic.wants_prediction() else None
        found = self._topic.read(source.url, title=source.title, text=source.text, predicted=predicted)
        return self._topic.links(anchors, urls, parent=found)

    def combine(self, credit: float, more: float) -> float:
        return max(credit, more)

    def may_want_head(self, band: int, host: HostRow, delay_s: float) -> bool:
        if band > self.bands:  # it waits for its time in none of them
            return True
        least, most = self._topic.expected_in(self.bands - band)
        in_doubt = DOUBTFUL_RELEVANCE[0]
        return most >= in_doubt and _head_pays(max(least, in_doubt), host, delay_s)

    def wants_head(self, credit: float, host: HostRow, delay_s: float) -> bool:
        return _head_pays(self._topic.expected(credit), host, delay_s)

    def refine(self, credit: float, title: str, text: str) -> float:
        return self._topic.refine(credit, title=title, text=text)

    def band(self, credit: float, host: HostRow) -> int:
        return self.bands - self._topic.band(credit)

    def dump(self) -> bytes:
        return self._topic.dump()

    def load(self, learned: bytes) -> None:
        self._topic.load(learned)


def _head_pays(expected: float, host: HostRow, delay_s: float) -> bool:
    page_bytes = host.bytes / host.requests if host.requests >= PAGES_ENOUGH else None
    return head_pays(expected, page_bytes=page_bytes, request_bytes=REQUEST_BYTES + LINE_BYTES_S * delay_s)
