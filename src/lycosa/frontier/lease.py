"""The records that pass between the frontier and the crawl: leases, statistics, and URLs of other shards.

A `Lease` is a URL in flight; `Frontier.next` makes it and the crawl hands it back when its request has ended. A
`ForwardedUrl` tells another shard what `Frontier.admit` or `Frontier.vouch` would have been told, had the URL been this
shard's own; a crawl of one shard never makes one. Records and pure functions only.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat
from typing import Protocol

import msgspec

from lycosa.frontier.hosts import Host, RobotsJob
from lycosa.frontier.politeness import HostGroup, Share
from lycosa.frontier.rows import Origin, QueueEntry, Reason, RequestKind
from lycosa.records import Failure
from lycosa.web import Url, split_url


class ForwardedUrl(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One URL on its way to its owner. `kind` and `origin` are those of `frontier.rows`; `source` is the host of the
    page that links to it. `is_vouch`: it is not to be taken in, but if it is known, `credit` speaks for it."""

    href: str
    depth: int = 0
    kind: int = 0
    hops: int = 0
    origin: int = 0
    credit: float = 0.0
    source: str = ""
    is_vouch: bool = False


class UrlForwarder(Protocol):
    """The rest of the crawl, as a frontier sees it."""

    def owns(self, host: str) -> bool:
        """Does the host belong to this shard?"""
        ...

    def send(self, crossings: Sequence[ForwardedUrl]) -> list[ForwardedUrl]:
        """Takes URLs of others, to leave with the next commit; returns those that were not sent a moment ago."""
        ...


def forward_foreign(
    elsewhere: UrlForwarder,
    urls: Iterable[Url],
    credits: Iterable[float] | None,
    *,
    depth: int,
    kind: RequestKind,
    hops: int,
    origin: Origin,
    source: str,
) -> tuple[list[Url], list[float] | None, list[Url]]:
    """Sends away what belongs to others: the URLs that stay, their credits, and those that left for the first time."""
    own: list[Url] = []
    worth: list[float] = []
    leaving: list[ForwardedUrl] = []
    away: dict[str, Url] = {}
    for url, credit in zip(urls, repeat(0.0) if credits is None else credits, strict=False):
        if elsewhere.owns(url.host):
            own.append(url)
            worth.append(credit)
        else:
            leaving.append(ForwardedUrl(url.href, depth, kind, hops, origin, credit, source))
            away[url.href] = url
    sent = elsewhere.send(leaving) if leaving else []
    return own, None if credits is None else worth, [away[crossing.href] for crossing in sent]


def forward_evidence(elsewhere: UrlForwarder, evidence: Mapping[str, float]) -> dict[str, float]:
    """Sends away what speaks for URLs of others; returns the rest."""
    own: dict[str, float] = {}
    leaving: list[ForwardedUrl] = []
    for href, credit in evidence.items():
        if elsewhere.owns(split_url(href).host):
            own[href] = credit
        else:
            leaving.append(ForwardedUrl(href, credit=credit, is_vouch=True))
    if leaving:
        elsewhere.send(leaving)
    return own


class Lease(msgspec.Struct, frozen=True):
    """A URL given out, with the address to ask. `failure` says that the host has none."""

    host: Host
    kind: RequestKind
    url: str
    address: str
    entry: QueueEntry | None = None
    job: RobotsJob | None = None
    failure: Failure | None = None
    detail: str = ""
    shares: tuple[Share, ...] = ()
    is_head: bool = False  # only the beginning is asked for
    credit: float | None = None  # what spoke for it, where that was looked up

    @property
    def depth(self) -> int:
        return self.entry.depth if self.entry else 0


class Politeness(msgspec.Struct, frozen=True, kw_only=True):
    """The politeness that is asked for."""

    delay_s: float = 1.0
    per_host: int = 1
    ip_delay_s: float = 0.0
    per_ip: int = 4
    groups: tuple[HostGroup, ...] = ()
    pages_per_host: int | None = None
    host_depth: int | None = None
    robots: bool = True


class FrontierStats(msgspec.Struct, frozen=True):
    known: int
    queued: int
    hosts: int
    active: int
    waiting: int
    parked: int
    revisiting: int = 0


class Watcher(Protocol):
    """Whoever wants to hear of URLs that are new, and has a say in which are asked for."""

    def queued(self, host: Host, entry: QueueEntry) -> None: ...

    def judge(self, host: Host, entry: QueueEntry, now_unix: float) -> Reason | float | None:
        """Why a URL whose turn has come is not asked for after all, or for how many seconds it waits; None: it goes."""
        ...

    def dropped(self, host: Host, entry: QueueEntry, reason: Reason) -> None: ...

    def puts_last(self, host: Host) -> bool:
        """Has this host had its share, so that others go first?"""
        ...
