"""The built-in rankings (`pvalue`, `rank`, `topic`, `internal-first`), the built-in walks, and the policies by name.

A ranking sorts the URLs of a host into bands by the evidence for each: the number of links to it, the importance that
flowed to it, or the relevance that its links promise. A policy's name is a walk (`breadth`, `top-window`, `leaf-
window`), a ranking, or RANKING+WALK, as in `pvalue+leaf-window`. The contract is in `frontier.policy`.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from itertools import cycle, takewhile
from operator import add
from typing import TypeVar

import msgspec

from lycosa.frontier import importance
from lycosa.frontier.importance import Importance
from lycosa.frontier.policy import LinkSource, Policy, Ranking, Walk
from lycosa.frontier.rows import HostRow
from lycosa.web import Topic, relevance

TYPICAL_LINKS = 20.0  # on a page of a host of which nothing is known yet
SAMPLE = 999  # pvalues that the cuts between the lists are taken from
PAGES_ENOUGH = 10  # of a host, to know how large its pages are
REQUEST_BYTES, LINE_BYTES_S = 1_000, 100_000  # what a request costs, and a second of a host's turn
SLACK = 1  # a URL is held back for one that is two bands better (docs/decisions/0008)


_Page = TypeVar("_Page")


def pvalue(forward_links: float, back_links: float, age: float) -> float:
    """Y3: a page that leads to many others and that few point to goes first, the more so as the crawl grows older."""
    return forward_links - age * back_links


def three_lists(ranked: Mapping[_Page, float]) -> tuple[list[_Page], list[_Page], list[_Page]]:
    """Y4: names sorted by their pvalue, cut at round(n/3) and round(2n/3)."""
    names = sorted(ranked, key=lambda name: -ranked[name])
    first, second = round(len(names) / 3), round(2 * len(names) / 3)
    return names[:first], names[first:second], names[second:]


class PValue:
    """Y3 with Y4's three lists. What speaks for a URL is BkLK, the number of links to it; FwdLK is the number of links
    on its page where that is known, 0 if the URL failed, and else its host's mean.

    The age grows from 0 to 1 as the crawl has done more of what it knows. The cuts between the lists are those of the
    last `SAMPLE` pvalues; a URL changes its list when another link to it is found.
    """

    name = "pvalue"
    bands = 3
    takes: tuple[int, ...] = (1, 1, 1, 1, 2, 2, 3)
    slack: int | None = None
    sees_all = True
    reads_words = False
    combine = staticmethod(add)

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
        if self._sample:
            values = sorted(self._sample, reverse=True)
            self._cuts = (values[len(values) // 3], values[2 * len(values) // 3])

    def dump(self) -> bytes:
        return msgspec.msgpack.encode(list(self._sample))

    def load(self, learned: bytes) -> None:
        self._sample.extend(msgspec.msgpack.decode(learned, type=list[float]))


class Rank:
    """Importance while crawling: what speaks for a URL is the cash that has flowed to it along links."""

    name = "rank"
    bands = importance.BANDS
    takes: tuple[int, ...] = ()
    slack: int | None = SLACK
    sees_all = True
    reads_words = False
    combine = staticmethod(add)

    def __init__(self) -> None:
        self._importance: Importance[str] = Importance()

    def __repr__(self) -> str:
        return f"<Rank {self._importance!r}>"

    def fetched(self, source: LinkSource, urls: Sequence[str], anchors: Sequence[str]) -> Sequence[float]:
        cash = source.credit or (importance.SEED_CASH if source.depth == 0 else 0.0)
        self._importance.spread(cash, urls)
        given = self._importance.take()
        return [given.get(url, 0.0) for url in urls]

    def band(self, credit: float, host: HostRow) -> int:
        return self.bands - self._importance.band(credit)

    def matured(self, done: int, known: int) -> None:
        pass

    def dump(self) -> bytes:
        i = self._importance
        return msgspec.msgpack.encode((i.pages, i.usual, i.root, i.coin))

    def load(self, learned: bytes) -> None:
        i = self._importance
        i.pages, i.usual, i.root, i.coin = msgspec.msgpack.decode(learned, type=tuple[int, float, float, float])


class InternalFirst:
    """M2: what a host's own pages link to goes first; a host that is known by links from other hosts alone waits until
    no host has any of these left. Seeds and what sitemaps name are internal."""

    name = "internal-first"
    bands = 2
    takes: tuple[int, ...] = ()
    slack: int | None = 0
    sees_all = True
    reads_words = False
    combine = staticmethod(max)

    def __repr__(self) -> str:
        return "<InternalFirst>"

    def fetched(self, source: LinkSource, urls: Sequence[str], anchors: Sequence[str]) -> Sequence[float]:
        host = source.url.split("/", 3)[2]
        own = f"http://{host}/", f"https://{host}/"
        return [1.0 if url.startswith(own) else -1.0 for url in urls]

    def band(self, credit: float, host: HostRow) -> int:
        return 1 if credit >= 0 else 2

    def matured(self, done: int, known: int) -> None:
        pass

    def dump(self) -> bytes:
        return b""

    def load(self, learned: bytes) -> None:
        pass


class Relevance:
    """Y2: what speaks for a URL is the relevance to a topic that the best link to it promises."""

    name = "topic"
    bands = relevance.BANDS
    takes: tuple[int, ...] = ()
    slack: int | None = SLACK
    sees_all = False
    reads_words = True
    combine = staticmethod(max)

    def __init__(self, topic: Topic) -> None:
        self._topic = topic

    def __repr__(self) -> str:
        return f"<Relevance {self._topic!r}>"

    def fetched(self, source: LinkSource, urls: Sequence[str], anchors: Sequence[str]) -> Sequence[float]:
        if not urls and not self._topic.wants():
            return ()
        predicted = (source.credit or None) if self._topic.wants_prediction() else None
        found = self._topic.read(source.url, title=source.title, text=source.text, predicted=predicted)
        return self._topic.links(anchors, urls, parent=found)

    def may_want_head(self, band: int, host: HostRow, delay_s: float) -> bool:
        if band > self.bands:  # it waits for its time in none of them
            return True
        least, most = self._topic.expected_in(self.bands - band)
        in_doubt = relevance.DOUBTFUL[0]
        return most >= in_doubt and _head_pays(max(least, in_doubt), host, delay_s)

    def wants_head(self, credit: float, host: HostRow, delay_s: float) -> bool:
        return _head_pays(self._topic.expected(credit), host, delay_s)

    def refine(self, credit: float, title: str, text: str) -> float:
        return self._topic.refine(credit, title=title, text=text)

    def band(self, credit: float, host: HostRow) -> int:
        return self.bands - self._topic.band(credit)

    def matured(self, done: int, known: int) -> None:
        pass

    def dump(self) -> bytes:
        return self._topic.dump()

    def load(self, learned: bytes) -> None:
        self._topic.load(learned)


def _head_pays(expected: float, host: HostRow, delay_s: float) -> bool:
    page_bytes = host.bytes / host.requests if host.requests >= PAGES_ENOUGH else None
    return relevance.head_pays(expected, page_bytes=page_bytes, request_bytes=REQUEST_BYTES + LINE_BYTES_S * delay_s)


STEP_HOSTS = 1_000  # hosts in the window of one step, unless it is set

PLAIN = Walk("")
WALKS: Mapping[str, Walk] = {
    walk.name: walk
    for walk in (
        Walk("breadth"),
        Walk("top-window", by_path=True, steps=STEP_HOSTS),
        Walk("leaf-window", by_path=True, swings=True, steps=STEP_HOSTS),
    )
}
BREADTH = Policy(None, WALKS["breadth"])
RANKINGS: Mapping[str, Callable[[], Ranking]] = {"pvalue": PValue, "rank": Rank, "internal-first": InternalFirst}


def policy_of(name: str, rankings: Mapping[str, Callable[[], Ranking]] = RANKINGS) -> Policy:
    """The policy of this name; KeyError names the part that is not known."""
    first, _, second = name.partition("+")
    if first in WALKS:
        if second:
            raise KeyError(second)
        return Policy(None, WALKS[first])
    return Policy(rankings[first](), WALKS[second] if second else PLAIN)
