"""From a response to what it says: content decoded, digests, page analysed, links joined; and which links are wanted.

`PageReader` does all that an answer allows by itself, without the state of the crawl and without a clock, so that it
can run on any thread; it is the dearest part of a crawl. What is known already, and so what becomes of the page, is
decided afterwards by `crawl.keeper`. `LinkFilter` belongs to the state: it remembers what was seen a moment ago.
"""

import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol

import msgspec

from lycosa.frontier import Lease, RecentUrls
from lycosa.records import Request, Response
from lycosa.settings import CrawlSettings, merge, read_file
from lycosa.store import HttpExchange, LinkRow, response_exchange
from lycosa.web import (
    DIGEST_BYTES,
    FOLLOWED_RELS,
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
    document_digest,
    document_fingerprint,
    filter_urls,
    follow_links,
    join_map,
    named_analysers,
    parse_link_header,
    parse_url,
    payload_sha1,
    robots_directives,
)

DECODED_FACTOR = 4  # a decoded body may be this many times the body limit


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


def joined_links(links: LinkRow, url: str) -> dict[str, str]:
    """Where the links of the document at `url` lead: href → URL."""
    return join_map(base_url(url, links.base_href), links.hrefs)


class PreparedPage(msgspec.Struct):
    """What an answer says by itself. `page` is None until the document is analysed, and what follows it is empty;
    `joined` says where the hrefs of `links` lead; `content` digests the main content, where no body is kept that it
    could be made from; `records` are those of the exchange, where they are made already."""

    body: bytes
    fingerprint: int
    payload_sha1: bytes
    digest: bytes
    page: Page | None = None
    directives: RobotsDirectives = RobotsDirectives()
    links: LinkRow = msgspec.field(default_factory=partial(LinkRow, ()))
    joined: Mapping[str, str] = {}
    content: bytes = b""
    records: HttpExchange | None = None


class PageReader:
    """Reads answers. It holds nothing but the rules by which it reads."""

    def __init__(
        self,
        settings: CrawlSettings,
        analysers: Analysers | None = None,
        content_digest: Callable[[Page, bytes], bytes] | None = None,
    ) -> None:
        self.analysers, self._content_digest = analysers, content_digest
        self.rules = LinkRules(agent=settings.agent, images=settings.images, obeys_nofollow=settings.nofollow)
        self.max_decoded_bytes = settings.body_bytes * DECODED_FACTOR

    def digests(self, response: Response) -> PreparedPage:
        """The document of an answer with its digests, not analysed yet."""
        body, sha1 = decoded_body(response, self.max_decoded_bytes), payload_sha1(response.body)
        digest = sha1[:DIGEST_BYTES] if body is response.body else document_digest(body)
        return PreparedPage(body, document_fingerprint(body), sha1, digest)

    def analyse(self, response: Response, prepared: PreparedPage) -> Page:
        """Analyses the document, unless that is done; adds what it says to robots, and its links and those of the
        header fields that are followed."""
        if prepared.page is not None:
            return prepared.page
        page = prepared.page = read_page(
            response, prepared.body, self.analysers, fingerprint=prepared.fingerprint, digest=prepared.digest
        )
        prepared.directives = page_directives(page.robots, response, self.rules.agent)
        if not (prepared.directives.nofollow and self.rules.obeys_nofollow):
            prepared.links, prepared.joined = followed_links(page, self.rules, response.url)
            if response.hints or "link" in response.headers:
                prepared.links = with_headers(prepared.links, response)
                prepared.joined = joined_links(prepared.links, response.url)
        if self._content_digest is not None:
            prepared.content = self._content_digest(page, prepared.body)
        return page


def records_of(
    lease: Lease, request: Request, response: Response, *, fetched_s: float, sha1: bytes | None = None
) -> HttpExchange:
    """The records of an answer; `sha1` is the digest of its body, where it is known."""
    metadata = record_metadata(lease)
    return response_exchange(request, response, fetched_s=fetched_s, metadata=metadata, payload_sha1=sha1)


def record_metadata(lease: Lease) -> dict[str, str]:
    """What a metadata record says of a page."""
    return {"depth": str(lease.depth)}


class LinkFilter:
    """Keeps the URLs that are wanted and were not seen a moment ago. `ignored` counts the others by reason;
    `scope_seeds` are the URLs whose hosts, folders or domains are the scope, which only grows."""

    def __init__(
        self,
        settings: CrawlSettings,
        seeds: Sequence[Url],
        more: Sequence[UrlFilter] = (),
        ignored: "Counter[str] | None" = None,
    ) -> None:
        self.scope_seeds, self.filters = list(seeds), [*filters_of(settings, seeds), *more]
        self.unseen = RecentUrls().unseen  # notes URLs and returns those that were not seen a moment ago
        self.ignored = Counter[str]() if ignored is None else ignored

    def widen(self, urls: Iterable[Url]) -> None:
        """Makes the hosts (or folders, or domains) of these URLs part of the scope."""
        for i, url_filter in enumerate(self.filters):
            if isinstance(url_filter, Scope):
                wider = [url for url in urls if url_filter.reason(url) is DropReason.OUT_OF_SCOPE]
                if wider:
                    self.scope_seeds.extend(wider)
                    self.filters[i] = Scope(url_filter.kind, self.scope_seeds)

    def wanted(self, urls: Iterable[str], *, counts: bool = True) -> list[Url]:
        """Those of a document's URLs that may be new. `counts`: what is left out is counted as ignored."""
        fresh = self.unseen(list(urls))
        return self.sift(fresh, counts=counts) if fresh else []

    def sift(self, hrefs: Sequence[str], *, counts: bool = True) -> list[Url]:
        """Those of the URLs that pass the filters."""
        kept, dropped = filter_urls(hrefs, self.filters)
        if counts:
            for _, reason in dropped:
                self.ignored[reason] += 1
        return kept
