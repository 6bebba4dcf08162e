"""The policy decides which URLs of the frontier go first: a ranking of URLs, and a walk through what it ranks equal.

A `Ranking` sorts the URLs of a host into bands, by the evidence for each of them; a `Walk` says in which order a band
is gone through, and whether hosts go in steps. Any ranking goes with any walk: a policy's name is WALK, RANKING or
RANKING+WALK. Neither ever sees a clock, a slot or a delay, so that no policy can break politeness.

How to add a policy: derive a class from `Ranking`, give it `name`, `bands`, `fetched` and `band`, and write a function
that makes it from the settings. Name that function as `--policy module:function`, or as the entry point `policy.NAME`
of the group `lycosa.parts`. `lycosa.testing` has the contract test. A walk is a line in `WALKS`.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Protocol, TypeVar, runtime_checkable

import msgspec
import xxhash

from lycosa.errors import PartError
from lycosa.frontier.hosts import NO_OFFER, Host
from lycosa.frontier.rows import DUE_LANE, HostRow

_Page = TypeVar("_Page")


class LinkSource:
    """What a ranking hears of a fetched page. `credit` is what spoke for it when it was asked for; as a function it is
    looked up by those who ask, since it is a read of the state."""

    __slots__ = ("_credit", "depth", "text", "title", "url")

    def __init__(
        self, url: str, depth: int, credit: float | Callable[[], float] = 0.0, title: str = "", text: str = ""
    ) -> None:
        self.url, self.depth, self.title, self.text = url, depth, title, text
        self._credit = credit

    def __repr__(self) -> str:
        return f"<LinkSource {self.url} depth={self.depth}>"

    @property
    def credit(self) -> float:
        credit = self._credit
        return credit() if callable(credit) else credit


class Ranking(Protocol):
    """Sorts URLs into bands, 1 (the best) to `bands`; at most 16.

    `takes` are the bands that a host's turns go to, again and again; without any the best one always goes first.
    `slack`: a URL waits while any host that can be asked soon has one that is more than so many bands better; None:
    nobody is held back.
    `sees_all`: it wants to hear of links to URLs that are known already, too.
    `reads_words`: it wants to hear the words of a page and of its links; without it title, text and anchors are empty.
    """

    name: str
    bands: int
    takes: tuple[int, ...] = ()
    # One queue over all hosts would break politeness and live in memory. Bands are lanes on disk; without holding hosts
    # back a crawl of many hosts would fetch the worst of each as soon as the best of others (decision 8).
    slack: int | None = 1
    sees_all: bool = True
    reads_words: bool = False

    def fetched(self, source: LinkSource, urls: Sequence[str], anchors: Sequence[str]) -> Sequence[float]:
        """Return the credit that a fetched page gives to each URL that it links to."""
        ...

    def band(self, credit: float, host: HostRow) -> int:
        """Return the band of a URL with this credit."""
        ...

    def combine(self, credit: float, more: float) -> float:
        """Return the credit of a URL after one more link to it."""
        return credit + more

    def matured(self, done: int, known: int) -> None:
        """Hear how far the crawl is, at every commit."""
        return

    def dump(self) -> bytes:
        """Return what was learned, to go on from after a restart."""
        return b""

    def load(self, learned: bytes) -> None:
        """Go on from what `dump` returned."""
        return


@runtime_checkable
class HeadReader(Protocol):
    """A ranking that would rather look at a page's head before it asks for the page, where that is cheaper."""

    def may_want_head(self, band: int, host: HostRow, delay_s: float) -> bool:
        """Return whether a head could be wanted for any URL of this band; asked first, because a credit is a read."""
        ...

    def wants_head(self, credit: float, host: HostRow, delay_s: float) -> bool:
        """Return whether it is worth a request to this host to know more of a URL."""
        ...

    def refine(self, credit: float, title: str, text: str) -> float:
        """Return the credit of a URL whose page begins so."""
        ...


@runtime_checkable
class LinkCounter(Protocol):
    """A ranking that takes a page's own number of links into account, where it is known: from an earlier visit or from
    its table of links. A URL that failed has none."""

    def band_with(self, links: int, credit: float, host: HostRow) -> int:
        """Return the band of a URL whose page has so many links."""
        ...

    def deal(self, pages: Mapping[_Page, tuple[int, int]]) -> list[_Page]:
        """Return pages of an earlier visit, given with the links on them and to them, in the order of their next
        visit."""
        ...


class Walk(msgspec.Struct, frozen=True):
    """How a band is gone through: in the order of discovery, or `by_path`, leftmost leaf first or to and fro
    (`alternates_direction`). `steps`: no host gives a second URL before all that can have given one, or this many have;
    0: no steps. `leaves` is the most entries in the window of one host; 0: as many as a window holds. `children` is the
    order of the children in a node of the trie: the characters that come before all others.
    """

    name: str
    by_path: bool = False
    alternates_direction: bool = False
    steps: int = 0
    leaves: int = 0
    children: str = ""

    def order(self, path: str) -> bytes:
        """Return what a path is sorted by."""
        if not self.children:
            return path.encode()
        # An order of its own ends in a mark that no path has: the queue of a host may hold entries from before the
        # setting was changed, and no two may have the same key.
        table, mark = _child_order(self.children)
        return path.encode().translate(table) + mark


@cache
def _child_order(first: str) -> tuple[bytes, bytes]:
    """Return a table that gives the bytes of paths their places, and the mark of this order."""
    named = dict.fromkeys(first.encode())
    places = {byte: place for place, byte in enumerate((*named, *(byte for byte in range(256) if byte not in named)))}
    return bytes(places[byte] for byte in range(256)), b"\0" + xxhash.xxh3_64_digest(bytes(named))


class Policy(msgspec.Struct, frozen=True):
    """A ranking (None: everything is in one band) and a walk."""

    ranking: Ranking | None
    walk: Walk

    @property
    def name(self) -> str:
        return "+".join(part.name for part in (self.ranking, self.walk) if part and part.name)

    @property
    def head_reader(self) -> HeadReader | None:
        return self.ranking if isinstance(self.ranking, HeadReader) else None

    @property
    def link_counter(self) -> LinkCounter | None:
        return self.ranking if isinstance(self.ranking, LinkCounter) else None

    @property
    def slack(self) -> int:
        return (self.ranking.slack or 0) if self.ranking else 0

    def next_band(self, host: Host) -> int | None:
        """Return the band of a host that the next entry is taken from."""
        if not host.available:
            return None
        # By turns, not by chance, so that each band gets exactly its share.
        takes = self.ranking.takes if self.ranking else ()
        for _ in takes:
            band = takes[host.spin % len(takes)]
            host.spin += 1
            if host.windows.get(band):  # there is one, and it is not empty
                return band
        return best_band(host)

    def offer(self, host: Host) -> int:
        """Return the band of the best URL that a host has, where URLs are held back for better ones; else 0."""
        if self.ranking is None or self.ranking.slack is None:
            return 0
        # What is due, and what other hosts wait for, is held back for nothing.
        if host.due.ready or host.jobs:
            return 0
        if host.next_entries:
            return host.next_entries[0].lane if host.next_entries[0].lane < DUE_LANE else 0
        if host.available:
            return best_band(host)
        lane = len(host.key) + 1  # without slack the best that is in flight counts, too: it may lead to more of it
        return 1 if self.ranking.slack == 0 and any(key[lane] == 1 for key in host.leased) else NO_OFFER


def best_band(host: Host) -> int:
    """Return the first band of a host that is not empty; called several times for every URL, for hosts that have
    one."""
    for band, window in host.windows.items():
        if window.entries or window.unread:
            return band
    raise LookupError(f"{host!r} has no entry in any window")


STEP_HOSTS = 1_000  # hosts in the window of one step, unless it is set
PLAIN = Walk("")
WALKS: Mapping[str, Walk] = {
    walk.name: walk
    for walk in (
        Walk("breadth"),
        Walk("top-window", by_path=True, steps=STEP_HOSTS),
        Walk("leaf-window", by_path=True, alternates_direction=True, steps=STEP_HOSTS),
    )
}
BREADTH = Policy(None, WALKS["breadth"])


def parse_policy(name: str, make_ranking: Callable[[str], Ranking], walks: Mapping[str, Walk] = WALKS) -> Policy:
    """Return the policy of a name: WALK, RANKING or RANKING+WALK. `make_ranking` makes a ranking of its name; PartError
    says which part of the name is not known."""
    first, _, second = name.partition("+")
    if first in walks:
        if second:
            raise PartError(f"{first!r} does not rank, so it cannot be combined with {second!r}; write RANKING+WALK")
        return Policy(None, walks[first])
    if second and second not in walks:
        raise PartError(f"there is no walk called {second!r}; there is {', '.join(walks)}")
    return Policy(make_ranking(first), walks[second] if second else PLAIN)
