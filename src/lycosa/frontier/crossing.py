"""URLs that belong to another shard: what its owner has to be told, and the door through which they leave.

A `Crossing` is what `Frontier.admit` or `vouch` would have been told had the URL been this shard's own. Where there is
only one shard there is no door, and nothing here is called. Pure.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat
from typing import Protocol

import msgspec

from lycosa.frontier.rows import Kind, Origin
from lycosa.web.url import Url, split


class Crossing(msgspec.Struct, frozen=True, array_like=True, gc=False):
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


class Elsewhere(Protocol):
    """The rest of the crawl, as a frontier sees it."""

    def owns(self, host: str) -> bool:
        """Does the host belong to this shard?"""
        ...

    def send(self, crossings: Sequence[Crossing]) -> list[Crossing]:
        """Takes URLs of others, to leave with the next commit; returns those that were not sent a moment ago."""
        ...


def keep_own(
    elsewhere: Elsewhere,
    urls: Iterable[Url],
    credits: Iterable[float] | None,
    *,
    depth: int,
    kind: Kind,
    hops: int,
    origin: Origin,
    source: str,
) -> tuple[list[Url], list[float] | None, list[Url]]:
    """Sends away what belongs to others: the URLs that stay, their credits, and those that left for the first time."""
    own: list[Url] = []
    worth: list[float] = []
    leaving: list[Crossing] = []
    away: dict[str, Url] = {}
    for url, credit in zip(urls, repeat(0.0) if credits is None else credits, strict=False):
        if elsewhere.owns(url.host):
            own.append(url)
            worth.append(credit)
        else:
            leaving.append(Crossing(url.href, depth, kind, hops, origin, credit, source))
            away[url.href] = url
    sent = elsewhere.send(leaving) if leaving else []
    return own, None if credits is None else worth, [away[crossing.href] for crossing in sent]


def vouch_own(elsewhere: Elsewhere, evidence: Mapping[str, float]) -> dict[str, float]:
    """Sends away what speaks for URLs of others; returns the rest."""
    own: dict[str, float] = {}
    leaving: list[Crossing] = []
    for href, credit in evidence.items():
        if elsewhere.owns(split(href).host):
            own[href] = credit
        else:
            leaving.append(Crossing(href, credit=credit, is_vouch=True))
    if leaving:
        elsewhere.send(leaving)
    return own
