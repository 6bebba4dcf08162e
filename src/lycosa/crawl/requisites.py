"""Requisites: what pages need to be shown is fetched with them, from wherever it is (`--requisites`).

`Requisites` observes every fetch: when a page has come, the addresses that `web.requisites` finds in it are queued as
requests of kind REQUISITE, in the same commit as the page. They go before the next pages of their host. A requisite is
a request like others: robots.txt, delays, the address guard, limits of time and size and `--exclude` hold for it; the
scope, `--include`, the depth and the limits of pages do not. It may name others in turn (a style sheet its fonts), up
to `MOST_EMBEDS` steps from the page. It is kept in the archive and as a row of its own, with the page that it was first
needed by (`via:` in META), but is no page: it is not followed, indexed, ranked or visited again. Whoever answers with a
document that is in scope all the same has a page: an `<img>` must not keep a page from being one.
"""

from hashlib import sha1

from lycosa.crawl.committer import CommitParticipant
from lycosa.crawl.pages import MAX_HOPS, PageHandler
from lycosa.crawl.reading import LeaseAnswer, answer_statements, decoded_body, redirect_location
from lycosa.crawl.requeue import page_of_requisite, write_via
from lycosa.crawl.seams import FetchObserver, ReadPage, RequestHandler, Shard
from lycosa.frontier import Lease, Reason, RequestKind, UrlState, pack_requisite_hops, requisite_hops
from lycosa.records import Request, Response
from lycosa.store import REDIRECTS, PageRow
from lycosa.web import (
    SNIFF_BYTES,
    MediaKind,
    ShapeFilter,
    UrlLimits,
    document_digest,
    document_requisites,
    filter_urls,
    identify_media,
    pack_statements,
    parse_url,
    url_key,
)

MOST_EMBEDS = 2
_PAGES = frozenset((MediaKind.HTML, MediaKind.XHTML))


class Requisites(FetchObserver, RequestHandler, CommitParticipant):
    """Queues what pages need, asks for it and keeps it."""

    def __init__(self, shard: Shard, pages: PageHandler) -> None:
        self._shard, self._pages, self._archive = shard, pages, pages.keeper.archive
        self._via: dict[bytes, str] = {}  # what `via:` rows of the open batch say
        s = shard.settings
        self._filters = [ShapeFilter(UrlLimits(exclude=s.exclude, skip_extensions=frozenset(s.skip_extensions)))]

    def __repr__(self) -> str:
        return f"<Requisites {self._shard.counters.totals.requisites}>"

    # what pages need

    def ended(self, lease: Lease, response: Response, page: ReadPage | None) -> None:
        """A page has come, for the first time or again: what it needs is queued."""
        is_page = page is not None or (lease.kind is RequestKind.REVISIT and response.url == lease.url)
        if is_page and response.failure is None and response.status == 200:
            self._queue(lease, response, lease.url)

    def _queue(self, lease: Lease, response: Response, page: str, *, embeds: int = 0, redirects: int = 0) -> None:
        """Queues what a document needs that is so many `embeds` away from the page. A style sheet that it imports is as
        far away as itself, as if a redirect led there."""
        body = decoded_body(response, self._shard.reader.max_decoded_bytes)
        found = document_requisites(body, url=response.url, content_type=response.headers.get("content-type"))
        depth = lease.depth + (embeds == 0)
        if embeds < MOST_EMBEDS:
            self._admit(found.needed, page, depth=depth, hops=pack_requisite_hops(embeds + 1, 0))
        if redirects < MAX_HOPS:
            self._admit(found.imported, page, depth=depth, hops=pack_requisite_hops(embeds, redirects + 1))

    def need(self, url: str, page: str, *, depth: int) -> None:
        """Queues a URL that the page needs, of which nothing more is needed."""
        self._admit([url], page, depth=depth, hops=pack_requisite_hops(MOST_EMBEDS, 0))

    def _admit(self, found: list[str], page: str, *, depth: int, hops: int) -> None:
        shard = self._shard
        urls, dropped = filter_urls(found, self._filters)
        for _, reason in dropped:
            shard.counters.ignored(reason)
        if not urls:
            return
        new = shard.frontier.admit(
            urls,
            depth=depth,
            kind=RequestKind.REQUISITE,
            hops=hops,
            now=shard.now(),
            now_unix=shard.now_unix(),
            source=page,
        )
        own = [url for url in new if shard.frontier.owns(url.host)]
        write_via(shard.committer.batch, own, page)
        self._via |= {url_key(url.href): page for url in own}
        shard.committer.count_outcomes(len(new))

    def on_committed(self) -> None:
        self._via.clear()

    def _page_of(self, url: str) -> str:
        return self._via.get(url_key(url)) or page_of_requisite(self._shard.collection.state, url)

    # asking for it

    def request(self, lease: Lease) -> Request:
        return self._pages.requests.build(lease, takes_any_type=True)

    def handle(self, answer: LeaseAnswer) -> ReadPage | None:
        lease, response = answer.lease, answer.response
        if self._pages.failures.handle(lease, answer.request, response):
            return None
        if response.status in REDIRECTS:
            self._redirected(answer)
        elif self._is_page(lease, response):
            return self._pages.answered(answer)
        else:
            self._keep(answer)
        self._shard.release(lease, response)
        return None

    def _is_page(self, lease: Lease, response: Response) -> bool:
        """Is it a document that the crawl would have followed a link to?"""
        shard, body = self._shard, response.body
        if response.headers.get("content-encoding"):
            body = decoded_body(response, SNIFF_BYTES)
        media = identify_media(response.headers.get("content-type"), body[:SNIFF_BYTES])
        if media.kind not in _PAGES and not (shard.settings.images and media.kind is MediaKind.IMAGE):
            return False
        most = shard.settings.depth
        is_deep = most is not None and lease.depth > most
        url = parse_url(lease.url)
        kept, _ = filter_urls([url.href] if url else [], shard.link_filter.filters)
        return bool(kept) and not is_deep and not shard.frontier.holds_pages

    def _keep(self, answer: LeaseAnswer) -> None:
        lease, response, shard = answer.lease, answer.response, self._shard
        embeds, redirects = self._hops(lease)
        page = self._page_of(lease.url)
        body = decoded_body(response, shard.reader.max_decoded_bytes)
        media = identify_media(response.headers.get("content-type"), body[:SNIFF_BYTES])
        row = PageRow(
            response.status,
            answer.fetched_s,
            lease.depth,
            essence=media.essence,
            size_bytes=len(response.body),
            payload_sha1=sha1(response.body, usedforsecurity=False).digest(),
            digest=document_digest(body),
            etag=response.headers.get("etag", ""),
            last_modified=response.headers.get("last-modified", ""),
            truncated=response.truncated or "",
            document_bytes=len(body),
            took_ms=response.took_ms,
            requisite=embeds,
            preferences=pack_statements(answer_statements(lease, response, shard.settings.agent)),
        )
        self._write(answer, row, page)
        if response.status == 200:
            self._queue(lease, response, page or lease.url, embeds=embeds, redirects=redirects)
        shard.counters.requisite()
        shard.frontier.outcomes.finish(lease, UrlState.DONE)

    def _redirected(self, answer: LeaseAnswer) -> None:
        """What a redirect leads to is needed in its place: a URL of its own, which the guard and robots.txt judge."""
        lease, response, shard = answer.lease, answer.response, self._shard
        embeds, redirects = self._hops(lease)
        written = redirect_location(response)
        target = parse_url(written, lease.url) if written else None
        failure = "bad-redirect" if target is None else Reason.REDIRECTS if redirects >= MAX_HOPS else ""
        row = PageRow(
            response.status,
            answer.fetched_s,
            lease.depth,
            location=target.href if target else written,
            failure=failure,
            took_ms=response.took_ms,
            requisite=embeds,
        )
        page = self._page_of(lease.url)
        self._write(answer, row, page)
        if target is None or failure:
            shard.counters.failed(failure)
            lease.host.count(failed=1)
            shard.frontier.outcomes.finish(lease, UrlState.FAILED, Reason.REDIRECTS if target else Reason.STATUS)
            return
        self._admit([target.href], page, depth=lease.depth, hops=pack_requisite_hops(embeds, redirects + 1))
        shard.counters.redirect()
        shard.frontier.outcomes.finish(lease, UrlState.DONE)

    @staticmethod
    def _hops(lease: Lease) -> tuple[int, int]:
        assert lease.entry is not None
        return requisite_hops(lease.entry.hops)

    def _write(self, answer: LeaseAnswer, row: PageRow, page: str) -> None:
        archive, lease = self._archive, answer.lease
        assert answer.request is not None
        about = {"requisite-of": page} if page else {}
        made = archive.exchange(
            lease, answer.request, answer.response, row.payload_sha1 or None, answer.fetched_s, about=about
        )
        archive.write_row(lease, row, archive.add_records(made))
