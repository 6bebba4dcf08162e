"""Links that leave the scope are checked, and not followed (`--external`).

`ExternalLinks` observes every fetch: the links of a page that are out of scope are queued as requests of kind EXTERNAL,
in the same commit as the page. Such a URL is asked for by HEAD, and where a server refuses that or answers with an
error, by GET of its first byte. It is a request like others: robots.txt, delays, the address guard and the retry table
hold for it. What came back is kept as a row, which is no page: nothing is archived, read or followed. Only where a
redirect leads is checked in turn.
"""

from lycosa.crawl.pages import MAX_HOPS, PageHandler
from lycosa.crawl.reading import LeaseAnswer, redirect_location
from lycosa.crawl.seams import FetchObserver, ReadPage, RequestHandler, Shard
from lycosa.fetch import response_media_type
from lycosa.frontier import Lease, Origin, Reason, RecentUrls, RequestKind, UrlState
from lycosa.records import Request, Response
from lycosa.store import REDIRECTS, PageRow
from lycosa.web import DropReason, Url, filter_urls, parse_url, split_url

# Answers to HEAD that say something of the host rather than of the URL: GET would be one request too many.
NO_SECOND_TRY = frozenset({429, 503})
ONE_BYTE = ("Range", "bytes=0-0")
_HEAD_REFUSED = "head-"  # beside the status, the name of what failed in the queue


class ExternalLinks(FetchObserver, RequestHandler):
    """Queues the links that leave the scope, asks for them and keeps what came of it."""

    def __init__(self, shard: Shard, pages: PageHandler) -> None:
        self._shard, self._pages, self._archive = shard, pages, pages.keeper.archive
        self._unseen = RecentUrls().unseen

    def __repr__(self) -> str:
        return f"<ExternalLinks {self._shard.counters.totals.external}>"

    def ended(self, lease: Lease, response: Response, page: ReadPage | None) -> None:
        """A page has come: its links that leave the scope are queued."""
        if page is None or not (fresh := self._unseen(page.links.urls)):
            return
        _, dropped = filter_urls(fresh, self._shard.link_filter.filters)
        self._admit([split_url(href) for href, reason in dropped if reason is DropReason.OUT_OF_SCOPE], lease.depth + 1)

    def _admit(self, urls: list[Url], depth: int, hops: int = 0, origin: Origin = Origin.LINK) -> None:
        shard = self._shard
        if urls:
            shard.frontier.admit(
                urls, depth=depth, kind=RequestKind.EXTERNAL, hops=hops, now=shard.now(), origin=origin
            )

    def request(self, lease: Lease) -> Request:
        assert lease.entry is not None
        requests = self._pages.requests
        if lease.entry.failed.startswith(_HEAD_REFUSED):
            return requests.build(lease, more=(ONE_BYTE,), body_limit_bytes=1, takes_any_type=True)
        return requests.build(lease, method="HEAD", takes_any_type=True)

    def handle(self, answer: LeaseAnswer) -> None:
        lease, response = answer.lease, answer.response
        is_head = answer.request is not None and answer.request.method == "HEAD"
        if is_head and response.failure is None and response.status >= 400 and response.status not in NO_SECOND_TRY:
            self._ask_for_a_byte(lease, response)
        elif self._pages.failures.handle(lease, None, response):
            return
        elif response.status in REDIRECTS:
            self._redirected(answer)
        else:
            self._finish(answer)
        self._shard.release(lease, response)

    def _ask_for_a_byte(self, lease: Lease, response: Response) -> None:
        shard, failed = self._shard, f"{_HEAD_REFUSED}{response.status}"
        lease.host.record_answer()
        shard.frontier.outcomes.retry(lease, due_unix=shard.now_unix(), due=shard.now(), failed=failed, counts=False)

    def _finish(self, answer: LeaseAnswer, location: str = "") -> None:
        lease, response, shard = answer.lease, answer.response, self._shard
        row = PageRow(
            response.status,
            answer.fetched_s,
            lease.depth,
            essence=response_media_type(response.headers),
            location=location,
            took_ms=response.took_ms,
            is_external=True,
        )
        self._archive.write_row(lease, row, None)
        shard.committer.count_outcomes()
        if location:
            shard.counters.redirect()
        else:
            shard.counters.external()
        shard.frontier.outcomes.finish(lease, UrlState.DONE)

    def _redirected(self, answer: LeaseAnswer) -> None:
        lease, entry, shard = answer.lease, answer.lease.entry, self._shard
        assert entry is not None
        written = redirect_location(answer.response)
        target = parse_url(written, lease.url) if written else None
        if target is None or entry.hops >= MAX_HOPS:
            name = "bad-redirect" if target is None else Reason.REDIRECTS
            row = PageRow(answer.response.status, answer.fetched_s, lease.depth, failure=name, is_external=True)
            self._archive.write_row(lease, row, None)
            shard.counters.failed(name)
            lease.host.count(failed=1)
            shard.frontier.outcomes.finish(
                lease, UrlState.FAILED, Reason.STATUS if target is None else Reason.REDIRECTS
            )
            return
        self._finish(answer, target.href)
        inside, outside = filter_urls([target.href], shard.link_filter.filters)
        shard.frontier.admit(inside, depth=lease.depth, now=shard.now(), origin=Origin.REDIRECT)
        if any(reason is DropReason.OUT_OF_SCOPE for _, reason in outside):
            self._admit([target], lease.depth, entry.hops + 1, Origin.REDIRECT)
