"""The records that pass between the frontier and the crawl: leases, statistics, and URLs of other shards.

A `Lease` is a URL in flight; `Frontier.next` makes it and the crawl hands it back when its request has ended. A
`ForwardedUrl` tells another shard what `Frontier.admit` or `Frontier.add_evidence` would have been told, had the URL
been this shard's own; a crawl of one shard never makes one. Records and pure functions only.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import count, repeat
from typing import Protocol

import msgspec

from lycosa.frontier.hosts import Host, HostJob
from lycosa.frontier.politeness import Share
from lycosa.frontier.rows import HostRow, Origin, QueueEntry, RequestKind
from lycosa.records import Failure
from lycosa.web import Url, split_url


class Lease(msgspec.Struct, frozen=True):
    """A URL in flight, with the address to fetch it from; `failure` says why the host has none, `ticket` names the
    lease."""

    host: Host
    kind: RequestKind
    url: str
    address: str
    entry: QueueEntry | None = None
    job: HostJob | None = None
    failure: Failure | None = None
    detail: str = ""
    shares: tuple[Share, ...] = ()
    is_head: bool = False  # only the beginning is asked for
    is_claimed: bool = False  # nobody is asked: its answer was there before it, and it takes no slot
    credit: float | None = None  # what spoke for it, where that was looked up
    ticket: int = msgspec.field(default_factory=count(1).__next__)

    @property
    def depth(self) -> int:
        return self.entry.depth if self.entry else 0


class FrontierStats(msgspec.Struct, frozen=True):
    known: int
    queued: int
    hosts: int
    active: int
    waiting: int
    parked: int
    revisiting: int = 0
    requisites: int = 0


class UrlCounts(msgspec.Struct):
    """How many URLs a collection knows, and what became of them."""

    known: int = 0
    queued: int = 0
    revisiting: int = 0  # queued to be looked at again; they are not among `queued`
    hosts: int = 0
    failed: Counter[str] = msgspec.field(default_factory=Counter)  # of hosts given up, by the host's reason
    dropped: Counter[str] = msgspec.field(default_factory=Counter)
    requisites: int = 0  # among `queued`: what pages need to be shown

    def move_host(self, row: HostRow, sign: int) -> None:
        """A host comes from another shard (+1), or goes there (-1): what waits is counted where it is, what is done
        where it was done, so that each known URL counts once over all shards."""
        waiting = sign * (row.queued - row.revisits)
        self.hosts += sign
        self.known += waiting
        if row.gave_up:
            self.failed[row.gave_up] += waiting
        else:
            self.queued += waiting
            self.requisites += sign * row.requisites
            self.revisiting += sign * row.revisits


class MemoryLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What a frontier holds in memory at most, however many URLs and hosts there are."""

    hosts: int = 50_000  # with work; less than 1 KB each without its windows
    idle_hosts: int = 10_000  # without work, remembered so that their rows are not read again
    windows: int = 100_000  # entries in the windows of all hosts together, shared evenly
    window: int = 512  # entries in one window
    # A look at the rows of hosts on disk ends after so many, a tenth of a second: the next commit looks further.
    rows_per_look: int = 20_000
    hosts_per_look: int = 5_000
    rows_per_read: int = 1_000


MEMORY_LIMITS = MemoryLimits()


class ForwardedUrl(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One URL on its way to the shard that owns its host. `kind` and `origin` are those of `frontier.rows`; `source` is
    the host of the page that links to it. `is_evidence_only`: it is not to be taken in, but if it is known, `credit` is
    added to its own."""

    href: str
    depth: int = 0
    kind: int = 0
    hops: int = 0
    origin: int = 0
    credit: float = 0.0
    source: str = ""
    is_evidence_only: bool = False


class UrlForwarder(Protocol):
    """The way to the other shards of the crawl."""

    def owns(self, host: str) -> bool:
        """Return whether the host belongs to this shard."""
        ...

    def send(self, urls: Sequence[ForwardedUrl]) -> list[ForwardedUrl]:
        """Send URLs to their shards with the next commit; return those that were not sent a moment ago."""
        ...


def forward_foreign(
    forwarder: UrlForwarder,
    urls: Iterable[Url],
    credits: Iterable[float] | None,
    *,
    depth: int,
    kind: RequestKind,
    hops: int,
    origin: Origin,
    source: str,
) -> tuple[list[Url], list[float] | None, list[Url]]:
    """Send URLs to the shards that own them; return the URLs that stay, their credits, and those sent for the first
    time."""
    own: list[Url] = []
    worth: list[float] = []
    leaving: list[ForwardedUrl] = []
    away: dict[str, Url] = {}
    for url, credit in zip(urls, repeat(0.0) if credits is None else credits, strict=False):
        if forwarder.owns(url.host):
            own.append(url)
            worth.append(credit)
        else:
            leaving.append(ForwardedUrl(url.href, depth, kind, hops, origin, credit, source))
            away[url.href] = url
    # Returned as if they were new here: the page that names them has led somewhere.
    sent = forwarder.send(leaving) if leaving else []
    return own, None if credits is None else worth, [away[url.href] for url in sent]


def forward_evidence(forwarder: UrlForwarder, evidence: Mapping[str, float]) -> dict[str, float]:
    """Send evidence for URLs of other shards there; return the rest."""
    own: dict[str, float] = {}
    leaving: list[ForwardedUrl] = []
    for href, credit in evidence.items():
        if forwarder.owns(split_url(href).host):
            own[href] = credit
        else:
            leaving.append(ForwardedUrl(href, credit=credit, is_evidence_only=True))
    if leaving:
        forwarder.send(leaving)
    return own
