"""From a response to what it says: content decoded, document known or new, page analysed, links joined and sifted.

No I/O of its own: the state is read through the engine. One call a page; the dearest part of the crawl.
"""

import tomllib
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from lycosa.frontier import RecentUrls
from lycosa.records import Response
from lycosa.settings import CrawlSettings, merge, read_file
from lycosa.store import LinkRow
from lycosa.web import (
    FOLLOWED_RELS,
    MAX_URL_BYTES,
    Analysers,
    DropReason,
    LinkKind,
    Links,
    Page,
    RobotsDirectives,
    Scope,
    ScopeKind,
    ShapeFilter,
    Url,
    UrlFilter,
    UrlLimits,
    analyse_page,
    base_url,
    filter_urls,
    follow_links,
    join_map,
    named_analysers,
    parse_link_header,
    parse_url,
    robots_directives,
)


def filters_of(s: CrawlSettings, seeds: Sequence[Url]) -> list[UrlFilter]:
    """The filters that the settings ask for: scope first, then shape."""
    limits = UrlLimits(
        include=tuple(s.include),
        exclude=tuple(s.exclude),
        skip_extensions=frozenset(s.skip_extensions),
    )
    return [Scope(ScopeKind(s.scope), seeds), ShapeFilter(limits)]


class LinkRules(msgspec.Struct, frozen=True, kw_only=True):
    """Which links are followed."""

    agent: str
    images: bool = False
    obeys_nofollow: bool = True


def redirect_location(response: Response) -> str:
    """Where a redirect leads, as written: header bytes are UTF-8 if they can be, Latin-1 else."""
    text = response.headers.get("location", "")
    try:
        return text.encode("latin-1").decode()
    except UnicodeError:
        return text


def decoded_body(response: Response, cap_bytes: int) -> bytes:
    """The body with its content coding undone."""
    coding = response.headers.get("content-encoding", "")
    if not coding:
        return response.body
    from lycosa.fetch import decode_body  # lazy: its libraries need not be there before the first request is out

    return decode_body(response.body, coding, cap_bytes=cap_bytes).body


def read_page(
    response: Response,
    body: bytes,
    analysers: Analysers | None = None,
    *,
    fingerprint: int | None = None,
    digest: bytes | None = None,
) -> Page:
    """The analysed page; `fingerprint` and `digest` are of the body, where they are known."""
    headers = response.headers
    return analyse_page(
        body,
        url=response.url,
        content_type=headers.get("content-type"),
        content_language=headers.get("content-language"),
        analysers=analysers,
        fingerprint=fingerprint,
        digest=digest,
    )


def analysers_of(collection: Path) -> Analysers | None:
    """The analysers of the collection at a path, as its settings name them; None: the usual ones."""
    try:
        with (collection / "lycosa.toml").open("rb") as file:
            has_some = bool(tomllib.load(file).get("analysers"))
    except (OSError, ValueError):  # a shard, or settings for the next crawl to complain of
        return None
    return named_analysers(merge(read_file(collection / "lycosa.toml"))) if has_some else None


def page_directives(robots: tuple[str, ...], response: Response, agent: str) -> RobotsDirectives:
    """What a page (the contents of its `<meta name=robots>`) and its headers say to robots."""
    tag = response.headers.get("x-robots-tag")
    values = (*robots, tag) if tag else robots
    return robots_directives(values, agent) if values else RobotsDirectives()


class HasLinks(Protocol):
    """A page, or as much of one as its links."""

    @property
    def links(self) -> Links: ...

    @property
    def base_href(self) -> str | None: ...


def header_hrefs(response: Response) -> list[str]:
    """The URLs that the headers of a response, or the hints before it, link to with a relation that is followed."""
    values = [value for value in (response.headers.get("link"), response.hints) if value]
    links = [link for value in values for link in parse_link_header(value) if not FOLLOWED_RELS.isdisjoint(link.rels)]
    return list(dict.fromkeys(url.href for link in links if (url := parse_url(link.href, response.url))))


def with_headers(row: LinkRow, response: Response) -> LinkRow:
    """The links of a document and of its headers."""
    known = set(row.hrefs)
    hrefs = [href for href in header_hrefs(response) if href not in known]
    if not hrefs:
        return row
    kinds = row.kinds + bytes((LinkKind.LINK,)) * len(hrefs)
    return LinkRow((*row.hrefs, *hrefs), row.base_href, kinds, (*row.anchors, *([""] * len(hrefs))))


def followed_links(page: HasLinks, rules: LinkRules, url: str) -> tuple[LinkRow, dict[str, str]]:
    """The links of the page at `url` that are followed, and where they lead: href → URL."""
    base = base_url(url, page.base_href)
    found = follow_links(page.links, base, images=rules.images, obeys_nofollow=rules.obeys_nofollow)
    return LinkRow(found.hrefs, page.base_href or "", found.kinds, found.anchors), found.joined


class LinkFilter:
    """Joins hrefs and keeps the URLs that are wanted and were not seen a moment ago. `ignored` counts the others by
    reason; `scope_seeds` are the URLs whose hosts, folders or domains are the scope, which only grows."""

    def __init__(
        self,
        settings: CrawlSettings,
        seeds: Sequence[Url],
        more: Sequence[UrlFilter] = (),
        ignored: "Counter[str] | None" = None,
    ) -> None:
        self.scope_seeds, self.filters = list(seeds), [*filters_of(settings, seeds), *more]
        self._recent = RecentUrls()
        self.ignored = Counter[str]() if ignored is None else ignored

    def widen(self, urls: Iterable[Url]) -> None:
        """Makes the hosts (or folders, or domains) of these URLs part of the scope."""
        for i, url_filter in enumerate(self.filters):
            if isinstance(url_filter, Scope):
                wider = [url for url in urls if url_filter.reason(url) is DropReason.OUT_OF_SCOPE]
                if wider:
                    self.scope_seeds.extend(wider)
                    self.filters[i] = Scope(url_filter.kind, self.scope_seeds)

    def joined(self, links: LinkRow, url: str) -> dict[str, str]:
        """Where a document's hrefs lead: href → URL."""
        return join_map(base_url(url, links.base_href), links.hrefs)

    def unseen(self, urls: Iterable[str]) -> list[str]:
        """Those that were not seen a moment ago and are not too long; they are noted."""
        return [url for url in self._recent.unseen(dict.fromkeys(urls)) if len(url) <= MAX_URL_BYTES]

    def wanted(self, urls: Iterable[str], *, counts: bool = True) -> list[Url]:
        """Those of a document's URLs that may be new. `counts`: what is left out is counted as ignored."""
        fresh = self.unseen(urls)
        return self.sift(fresh, counts=counts) if fresh else []

    def sift(self, hrefs: Sequence[str], *, counts: bool = True) -> list[Url]:
        """Those of the URLs that pass the filters."""
        kept, dropped = filter_urls(hrefs, self.filters)
        if counts:
            for _, reason in dropped:
                self.ignored[reason] += 1
        return kept
