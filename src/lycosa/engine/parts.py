"""The exchangeable parts of a crawl, and how they are made from the settings when none are given.

Each part is a small Protocol: `Resolver`, `Downloader`, `UrlFilter`, `Analyser`, `Statistics`. Built-in parts come
through the same door as a user's.
"""

from collections.abc import Callable, Mapping, Sequence
from ipaddress import ip_network
from typing import Protocol

import msgspec

from lycosa.fetch.curl import CurlDownloader, raise_descriptor_limit
from lycosa.fetch.downloader import Accepts, ByScheme, Downloader, Limits
from lycosa.fetch.headers import media_type
from lycosa.mapping.guard import AddressGuard
from lycosa.mapping.resolver import CaresResolver, Resolver
from lycosa.records import Response
from lycosa.settings import CrawlSettings
from lycosa.web.page import Analyser, Page
from lycosa.web.scope import UrlFilter
from lycosa.web.wildcard import matches, pieces_of


class Statistics(Protocol):
    """Sees every analysed page, in the order of the commits (T7)."""

    def page(self, page: Page, response: Response) -> None: ...


class Parts(msgspec.Struct, kw_only=True):
    """What an engine is made of. `now` replaces the monotonic clock, for virtual time."""

    resolver: Resolver
    downloader: Downloader
    guard: AddressGuard
    filters: Sequence[UrlFilter] = ()
    analysers: Mapping[str, Analyser] | None = None
    statistics: Sequence[Statistics] = ()
    now: Callable[[], float] | None = None


def usual_parts(
    settings: CrawlSettings,
    *,
    resolver: Resolver | None = None,
    downloader: Downloader | None = None,
    filters: Sequence[UrlFilter] = (),
    statistics: Sequence[Statistics] = (),
    now: Callable[[], float] | None = None,
) -> Parts:
    """The parts that the settings ask for, with those given in their place. Needs the running event loop."""
    guard = AddressGuard(ip_network(network) for network in settings.allow_private)
    if downloader is None:
        raise_descriptor_limit()
        curl = CurlDownloader(
            _limits(settings),
            accepts=accepts(settings.types),
            proxy=settings.proxy,
            verify_tls=settings.verify_tls,
            ca_file=settings.ca_file,
            use_http2=settings.http2,
        )
        downloader = ByScheme({"http": curl, "https": curl})
    return Parts(
        resolver=resolver or CaresResolver(settings.dns),
        downloader=downloader,
        guard=guard,
        filters=filters,
        statistics=statistics,
        now=now,
    )


def accepts(types: Sequence[str]) -> Accepts | None:
    """Which bodies are read, judged by their headers: all, or those whose media type matches one of the patterns."""
    if not types:
        return None
    patterns = [pieces_of(pattern.lower()) for pattern in types]

    def wants(status: int, headers: dict[str, str]) -> bool:
        essence = media_type(headers)
        return not 200 <= status < 300 or not essence or any(matches(p, essence, to_end=True) for p in patterns)

    return wants


def _limits(s: CrawlSettings) -> Limits:
    return Limits(
        connect_s=s.connect_s,
        first_byte_s=s.first_byte_s,
        idle_s=s.idle_s,
        total_s=s.total_s,
        body_bytes=s.body_bytes,
        bandwidth_bytes_s=s.bandwidth_bytes_s,
    )
