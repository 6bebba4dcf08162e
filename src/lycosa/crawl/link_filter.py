"""Which links are wanted: those in scope, of the right shape, that were not seen a moment ago.

Called by whoever takes in links: pages, sitemaps, tables of links, redirects.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from lycosa.frontier import RecentUrls
from lycosa.settings import CrawlSettings
from lycosa.web import DropReason, Scope, ScopeKind, ShapeFilter, Url, UrlFilter, UrlLimits, filter_urls


def filters_of(s: CrawlSettings, seeds: Sequence[Url]) -> list[UrlFilter]:
    """The filters that the settings ask for: scope first, then shape."""
    limits = UrlLimits(
        include=tuple(s.include),
        exclude=tuple(s.exclude),
        skip_extensions=frozenset(s.skip_extensions),
    )
    return [Scope(ScopeKind(s.scope), seeds), ShapeFilter(limits)]


class LinkFilter:
    """Keeps the URLs that are wanted and were not seen a moment ago. `count_ignored` is told the reason for each of the
    others; `scope_seeds` are the URLs whose hosts, folders or domains are the scope, which only grows."""

    def __init__(
        self,
        settings: CrawlSettings,
        seeds: Sequence[Url],
        more: Sequence[UrlFilter],
        count_ignored: Callable[[str], None],
    ) -> None:
        self.scope_seeds, self.filters = list(seeds), [*filters_of(settings, seeds), *more]
        self.unseen = RecentUrls().unseen  # notes URLs and returns those that were not seen a moment ago
        self._count_ignored = count_ignored

    def widen(self, urls: Iterable[Url]) -> None:
        """Makes the hosts (or folders, or domains) of these URLs part of the scope."""
        for i, url_filter in enumerate(self.filters):
            if isinstance(url_filter, Scope):
                wider = [url for url in urls if url_filter.reason(url) is DropReason.OUT_OF_SCOPE]
                if wider:
                    self.scope_seeds.extend(wider)
                    self.filters[i] = Scope(url_filter.kind, self.scope_seeds)

    def has_host(self, host: str, port: int) -> bool:
        """Can pages of this host be in scope? Others are asked for what pages need, or to check links."""
        return all(one.has_host(host, port) for one in self.filters if isinstance(one, Scope))

    def wanted(self, urls: Iterable[str], *, counts: bool = True) -> list[Url]:
        """Those of a document's URLs that may be new. `counts`: what is left out is counted as ignored."""
        return self.wanted_of(list(urls), counts=counts)

    def wanted_of(self, urls: Any, *, counts: bool) -> list[Url]:
        """The same of `FollowedLinks.urls`."""
        fresh = self.unseen(urls)
        return self.sift(fresh, counts=counts) if fresh else []

    def sift(self, hrefs: Sequence[str], *, counts: bool = True) -> list[Url]:
        """Those of the URLs that pass the filters."""
        kept, dropped = filter_urls(hrefs, self.filters)
        if counts:
            for _, reason in dropped:
                self._count_ignored(reason)
        return kept
