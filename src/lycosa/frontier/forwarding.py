"""URLs of other shards on their way there. A crawl of one shard never makes one.

A `ForwardedUrl` tells another shard what `Frontier.admit` or `Frontier.add_evidence` would have been told, had the URL
been this shard's own. Records and pure functions only; the way there is a `UrlForwarder`. Called by `Frontier` only.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat
from typing import Protocol

import msgspec

from lycosa.frontier.rows import Origin, RequestKind
from lycosa.web import Url, split_url


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
