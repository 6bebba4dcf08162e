"""What became of a request: page, redirect, robots.txt, sitemap, failure. Every outcome settles its URL and its host.

Each ends with exactly one release (the slots are free again) and, for a queued URL, exactly one of `finish` and
`retry`. Everything is written into the open batch; nothing here waits.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING

from lycosa.crawl.admission import Admission
from lycosa.crawl.archive import Archive, DocumentStore
from lycosa.crawl.copies import Copies
from lycosa.crawl.early_links import EarlyLinks, TakenEarly
from lycosa.crawl.failures import FailureHandler
from lycosa.crawl.host_rules import HostRules
from lycosa.crawl.parts import Parts, topic_of
from lycosa.crawl.reading import (
    LinkRules,
    decoded_body,
    followed,
    page_directives,
    read_page,
    redirect_location,
    with_headers,
)
from lycosa.crawl.shard import Shard
from lycosa.crawl.stats import count_document
from lycosa.frontier import Lease, Origin, Reason, RequestKind, UrlRow, UrlState
from lycosa.graph import redirect_row
from lycosa.learning import HostProfiles, MiningLevel, TrapGuard, UrlMining
from lycosa.records import Family, Request, Response, Truncation
from lycosa.store import (
    REDIRECTS,
    Batch,
    HttpExchange,
    LinkRow,
    OriginalRecord,
    PageRow,
    WarcLocation,
    WarcRecovery,
    unpack_page,
)
from lycosa.tables.links import LinkTables
from lycosa.web import (
    DIGEST_BYTES,
    DropReason,
    Page,
    RobotsDirectives,
    Scope,
    Url,
    document_digest,
    document_fingerprint,
    parse_url,
    payload_sha1,
    url_from_key,
    url_key,
)

if TYPE_CHECKING:
    from lycosa.recrawl.revisits import Revisits

Listener = Callable[[str, PageRow, Page, str], None]  # the text beside the page is that which is for reading
MOST_HOPS = 20
HEAD_ONLY = frozenset({206, 416})  # a part of the page, or a page that is shorter than its part
FINAL = frozenset({401, 403, 404, 410})  # of a table: there is none
DECODED_FACTOR = 4  # a decoded body may be this many times the body limit


class ResponseHandler:
    """Settles responses. Holds the rules of what is followed, and the documents seen."""

    def __init__(self, shard: Shard, parts: Parts) -> None:
        self._shard, self._frontier, self._counters = shard, shard.frontier, shard.counters
        self.copies = Copies(shard, parts.outside) if parts.outside is not None else None
        self._documents = DocumentStore(shard.collection.state, self.copies)
        profiles = HostProfiles(shard.collection.state)
        self.mining = UrlMining(
            shard.frontier,
            profiles,
            MiningLevel(shard.settings.mine),
            sift=shard.sifter.sift,
            most_depth=shard.settings.depth,
            now=shard.now,
        )
        self.traps = TrapGuard(
            shard.frontier,
            shard.collection.state,
            profiles,
            limits_domains=shard.settings.scope == "any",
            log=shard.events.write,
            now_unix=shard.now_unix,
        )
        self._archive, self.admission = Archive(shard), Admission(shard, self.traps, parts.analysers)
        self._failures, self._rules = (
            FailureHandler(shard, self._archive, self.mining),
            HostRules(shard, self._archive, parts.outside),
        )
        self.statistics, self._analysers = list(parts.statistics), parts.analysers
        self._settings = s = shard.settings
        self._following = LinkRules(agent=s.agent, images=s.images, obeys_nofollow=s.nofollow)
        self._topic = topic_of(s) if s.store_relevance else None
        self._decoded_cap = s.body_bytes * DECODED_FACTOR
        self.early = EarlyLinks(shard, self.admission, self._following)
        self.tables = LinkTables(shard, self._archive, self.early, self._following, cap_bytes=self._decoded_cap)
        self.listeners: list[Listener] = []
        self.sees_new = False  # the collection was whole and is looked at again: a page that comes now is news
        self._failures.on_revisit = self._revisit_given_up

    def _revisit_given_up(self, lease: Lease, request: Request | None, response: Response, name: str) -> None:
        self.revisits.given_up(lease, request, response, name)

    @cached_property
    def revisits(self) -> "Revisits":
        """Made when the first page is looked at again: a first crawl does not wait for its libraries."""
        from lycosa.recrawl.plan import VisitPlanner
        from lycosa.recrawl.revisits import RevisitReader, Revisits

        reader = RevisitReader(
            read=lambda response, body: read_page(response, body, self._analysers),
            links=self._links_of,
            row=self._page_row,
            follow=self._follow,
            tell=self._tell,
            redirected=self._redirected,
            sitemap=self._rules.sitemap,
            decoded_cap=self._decoded_cap,
            analysers=self._analysers,
        )
        revisits = Revisits(self._shard, self._archive, self._documents, VisitPlanner(self._shard), reader)
        self._rules.on_dates = revisits.hints.heard
        return revisits

    def settle(self, lease: Lease, request: Request | None, response: Response) -> None:
        """One response, whatever it is."""
        taken = self.early.ended(lease) if self.early.taken else None
        seconds = max(0.0, response.ended_s - response.started_s)
        lease.host.record_request(len(response.body), seconds, self._shard.now_unix())
        self._counters.request(len(response.body))
        self._counters.totals.statuses[str(response.status or response.failure or "none")] += 1
        if lease.kind is RequestKind.ROBOTS:
            self._rules.robots(lease, request, response)
            return
        if lease.kind is RequestKind.TABLE:
            self.tables.settle(lease, request, response)
            return
        taken = self.tables.ended(lease, taken)
        rule = self._failures.rule_of(response)
        if (
            lease.kind is RequestKind.REVISIT and request is not None and request.url != lease.url
        ):  # a table in its place
            if rule is None or response.status in FINAL:
                self.revisits.tables.settle(lease, request, response)
                self._shard.release(lease, response)
                return
            self.revisits.tables.failed(lease)
        if rule is not None:
            self._failures.settle(lease, request, response, rule)
            return
        lease.host.record_answer()
        failed = self.revisits.had_failed(lease) if lease.kind is RequestKind.REVISIT else None
        if lease.kind is RequestKind.REVISIT and request is not None and failed is None:
            self.revisits.settle(lease, request, response)
            self._shard.release(lease, response)
            return
        if lease.is_head and response.status in HEAD_ONLY:
            self.admission.read_head(lease, response)
            self._shard.release(lease, response)
            return
        recount = partial(self.revisits.recovered, lease, failed, response) if failed is not None else None
        is_other = response.truncated is Truncation.UNWANTED or response.status in REDIRECTS
        if not is_other and (lease.kind is RequestKind.SITEMAP or (failed is not None and failed.is_sitemap)):
            self._rules.sitemap(lease, request, response, recount)  # it counts when all of it is taken in
            self._shard.release(lease, response)
            return
        if recount is not None:
            recount()
        if response.truncated is Truncation.UNWANTED:
            self._frontier.finish(lease, UrlState.DROPPED, Reason.MEDIA_TYPE)
        elif response.status in REDIRECTS:
            self._redirected(lease, request, response)
        else:
            assert request is not None
            self._page(lease, request, response, taken)
        self._shard.release(lease, response)

    # redirects

    def _redirected(self, lease: Lease, request: Request | None, response: Response) -> None:
        """A redirect is a URL of its own: scope, robots and guard hold for where it leads, as for any link."""
        entry, shard = lease.entry, self._shard
        assert entry is not None
        written = redirect_location(response)
        target = parse_url(written, lease.url) if written else None
        failure = "bad-redirect" if target is None else Reason.REDIRECTS if entry.hops >= MOST_HOPS else ""
        where = target.href if target else written
        row = PageRow(response.status, shard.now_unix(), entry.depth, location=where, failure=failure)
        is_page = lease.kind in (RequestKind.PAGE, RequestKind.REVISIT)
        if is_page:
            links = redirect_row(target.href) if target else LinkRow(())
            joined = {target.href: target.href} if target else {}
            shard.linker.page(lease.url, url_key(lease.url), row, links, joined)
        self._archive.put(lease, row, self._archive.keep_answer(lease, request, response, row.fetched_s))
        self.mining.record_outcome(lease, is_hit=False)
        if target is None or failure:
            reason = Reason.REDIRECTS if target else Reason.STATUS
            self._counters.totals.failed[failure] += 1
            lease.host.count(failed=1)
            self._frontier.finish(lease, UrlState.FAILED, reason)
            return
        self._counters.totals.redirects += 1
        if entry.depth == 0 and entry.origin in (Origin.SEED, Origin.REDIRECT) and is_page:
            self.widen([target])  # where a seed leads is part of the crawl
        kept = shard.sifter.sift([target.href])
        self._frontier.admit(
            kept,
            depth=entry.depth,
            kind=RequestKind.PAGE if is_page else entry.kind,
            hops=entry.hops + 1,
            now=shard.now(),
            origin=Origin.REDIRECT,
            credits=[self._frontier.credit(lease.url)] * len(kept),
        )
        self._frontier.finish(lease, UrlState.DONE)

    def widen(self, urls: Sequence[Url]) -> None:
        """Makes the hosts (or folders, or domains) of these URLs part of the scope."""
        filters = self._shard.sifter.filters
        for i, url_filter in enumerate(filters):
            if isinstance(url_filter, Scope):
                wider = [url for url in urls if url_filter.reason(url) is DropReason.OUT_OF_SCOPE]
                if wider:
                    self._shard.scope_seeds.extend(wider)
                    filters[i] = Scope(url_filter.kind, self._shard.scope_seeds)

    # pages

    def _page(self, lease: Lease, request: Request, response: Response, taken: TakenEarly | None) -> None:
        key = url_key(lease.url)
        body = decoded_body(response, self._decoded_cap)
        fingerprint, sha1 = document_fingerprint(body), payload_sha1(response.body)
        digest = sha1[:DIGEST_BYTES] if body is response.body else document_digest(body)
        first = self._documents.first_with(fingerprint)
        if first is not None and body and first[1] != key and first[0] == digest:
            if (original := self._documents.page(first[1])) is not None:
                self._duplicate(lease, request, response, first[1], original, sha1, taken)
                return
            first = None  # its host belongs to another shard by now
        page = read_page(response, body, self._analysers, fingerprint=fingerprint, digest=digest)
        if page.is_cut:
            self._shard.events.write("page-cut", url=lease.url, size_bytes=len(body))
        links, said = self._links_of(page, response)
        made = self._archive.exchange(lease, request, response, sha1)
        row = self._page_row(lease, response, page, made, said, body)
        row.volatile |= taken is not None and taken.claim is not None and taken.claim.has_parts
        self._keep_page(lease, row, made)
        if first is None:
            self._documents.note(self._shard.committer.batch, key, row, links)
        self._documents.stored(lease.url, row)
        lease.host.count(links=len(links.hrefs))
        new = self._follow(links, lease, key, row, page, response, taken)
        is_news = self.traps.page_fetched(lease, page, new)
        self._count_page(lease)
        count_document(self._counters.totals, row)
        for part in self.statistics:
            part.page(page, response)
        self.mining.record_outcome(lease, is_hit=is_news)
        self._frontier.finish(lease, UrlState.DONE)
        self._tell(row, lease.url, page, response)

    def _links_of(self, page: Page, response: Response) -> tuple[LinkRow, RobotsDirectives]:
        """The links of a page and of its headers that are followed, and what it says to robots."""
        said = page_directives(page.robots, response, self._settings.agent)
        if said.nofollow and self._settings.nofollow:
            return LinkRow(()), said
        links = followed(page, self._following)
        if response.hints or "link" in response.headers:
            links = with_headers(links, response)
        return links, said

    def _duplicate(
        self,
        lease: Lease,
        request: Request,
        response: Response,
        original_key: bytes,
        original: PageRow,
        sha1: bytes,
        taken: TakenEarly | None,
    ) -> None:
        """The document is known under another URL: a revisit record, no second parse, but its links from here."""
        original_url = url_from_key(original_key)
        if original.payload_sha1 == sha1:
            known = OriginalRecord(original_url, original.fetched_s, sha1)
            made = self._archive.revisit(lease, request, response, known)
        else:
            made = self._archive.exchange(lease, request, response, sha1)
        row = PageRow(
            response.status,
            made.fetched_s,
            lease.depth,
            essence=original.essence,
            size_bytes=len(response.body),
            payload_sha1=sha1,
            original=original.original or original_url,
            title=original.title,
            language=original.language,
            etag=response.headers.get("etag", ""),
            last_modified=response.headers.get("last-modified", ""),
            fingerprint=original.fingerprint,
            digest=original.digest,
            links=original.links,
            text_digest=original.text_digest,
            structure=original.structure,
            codes=original.codes,
            document_bytes=original.document_bytes,
            content=original.content,
            relevance=original.relevance,
        )
        row.obey(original.said | page_directives((), response, self._settings.agent))
        self._keep_page(lease, row, made)
        self._counters.totals.duplicates += 1
        self.mining.record_outcome(lease, is_hit=False)
        links = with_headers(self._documents.links(original_key) or LinkRow(()), response)
        new = self._follow(links, lease, url_key(lease.url), row, None, response, taken)
        self.traps.copy_fetched(lease, original, new)
        self._count_page(lease)
        self._frontier.finish(lease, UrlState.DONE)
        self._tell(row, lease.url, None, response)

    def _keep_page(self, lease: Lease, row: PageRow, made: HttpExchange) -> None:
        ticket = self._archive.keep(made)
        self._archive.put(lease, row, ticket)
        if self.sees_new and (lease.entry is None or lease.entry.origin is not Origin.LOST):
            self.revisits.found_new(url_key(lease.url), row, ticket)

    def _follow(
        self,
        links: LinkRow,
        lease: Lease,
        key: bytes,
        row: PageRow,
        page: Page | None,
        response: Response | None = None,
        taken: TakenEarly | None = None,
    ) -> list[Url]:
        """Takes the links of a page into the link index and into the frontier; returns the URLs that were new."""
        joined = self._shard.sifter.joined(links, lease.url)
        self._shard.linker.page(lease.url, key, row, links, joined)
        claimed = taken.claim.urls if taken is not None and taken.claim is not None else None
        new = self.admission.follow(lease, links, joined, page, claimed or frozenset())
        if response is not None and "link" in response.headers:
            self.tables.hear(lease.host, response)
        if response is None or taken is None:
            return new
        self.early.compare(lease, taken, joined)
        if taken.claim is not None:
            self.tables.compare(lease, taken.claim, joined.values(), response)
        return [*taken.new, *new]

    def _count_page(self, lease: Lease) -> None:
        self.mining.page_fetched(lease)
        lease.host.count(pages=1)
        self._counters.page()

    def _page_row(
        self, lease: Lease, response: Response, page: Page, made: HttpExchange, said: RobotsDirectives, body: bytes
    ) -> PageRow:
        codes = page.codes
        row = PageRow(
            response.status,
            made.fetched_s,
            lease.depth,
            essence=page.media.essence,
            size_bytes=len(response.body),
            payload_sha1=made.payload_sha1,
            fingerprint=page.fingerprint,
            digest=page.digest,
            text_digest=page.text_digest,
            etag=response.headers.get("etag", ""),
            last_modified=response.headers.get("last-modified", ""),
            title=page.title or "",
            language=page.language or "",
            charset=page.charset or "",
            links=len(page.links),
            truncated=response.truncated or "",
            structure=(page.structure_first, page.structure_last),
            codes=(codes.total, codes.squares, codes.distinct, codes.length),
            volatile=page.is_volatile,
            document_bytes=len(body),
            content=self._content_digest(page, body) if self._archive.is_off else b"",
            relevance=self._topic.page(title=page.title or "", text=page.text) if self._topic else None,
        )
        row.obey(said)
        return row

    @staticmethod
    def _content_digest(page: Page, body: bytes) -> bytes:
        from lycosa.recrawl.change.verdict import digest_of_content

        return digest_of_content(page, body)

    def _tell(self, row: PageRow, url: str, page: Page | None, response: Response) -> None:
        """Tells those who listen of a page that is committed, read anew where it was known under another URL."""
        if not self.listeners:
            return
        from lycosa.web import extract_text  # its libraries need not be there before the first request is out

        body = decoded_body(response, self._decoded_cap)
        page = page or read_page(response, body, self._analysers)
        text = extract_text(body, url=url, content_type=response.headers.get("content-type"), analysers=self._analysers)
        for listener in self.listeners:
            self._shard.committer.announce(partial(listener, url, row, page, text))

    def before_commit(self, batch: Batch, *, is_last: bool) -> None:
        self.mining.before_commit()
        self.traps.before_commit(batch)
        self.admission.before_commit(batch, is_last=is_last)

    def committed(self) -> None:
        self._documents.committed()
        self.traps.on_committed()

    def ask_again(self, urls: Iterable[Url]) -> int:
        """Queues those of the URLs that have failed: whoever asks for them may know better. Returns how many."""
        again, own = 0, {url_key(url.href): url for url in urls if self._frontier.owns(url.host)}
        rows = self._frontier.rows_of(list(own)) if own else []
        for (key, url), row in zip(own.items(), rows, strict=True):
            if row is None or row.state is not UrlState.FAILED:
                continue
            packed = self._shard.collection.state.get(Family.PAGE, key)
            page = unpack_page(packed) if packed else PageRow(0, 0.0)
            name = page.failure or (str(page.status) if page.status >= 400 else "")
            if not name or page.file_num:  # a page that is gone is looked at again when its time comes
                continue
            self._counters.totals.failed[name] -= 1
            self._shard.committer.batch.delete(Family.PAGE, key)
            self._frontier.requeue(
                url.href, row.depth, kind=RequestKind.PAGE, failed=1, links=0, origin=Origin.SEED, now=self._shard.now()
            )
            again += 1
        return again

    # recovery

    def take_back(self, recovery: WarcRecovery) -> int:
        """Queues the URLs again whose record is no longer whole, and counts them no more; returns how many."""
        if not recovery.short:
            return 0
        state, totals, lost = self._shard.collection.state, self._counters.totals, 0
        for key, packed in state.walk(Family.PAGE):
            row = unpack_page(packed)
            if not row.place or not recovery.is_lost(WarcLocation.unpack(row.place)) or not self._is_done(key):
                continue
            lost += 1
            totals.pages -= row.is_page
            count_document(totals, row, -1)
            totals.redirects -= bool(row.location)
            totals.sitemaps -= row.is_sitemap
            totals.duplicates -= bool(row.original)
            kind = RequestKind.SITEMAP if row.is_sitemap else RequestKind.PAGE
            pages, links = int(row.is_page), row.links if row.is_page else None
            self._frontier.requeue(
                url_from_key(key), row.depth, kind=kind, pages=pages, links=links, now=self._shard.now()
            )
        return lost

    def _is_done(self, key: bytes) -> bool:
        """A redirect that led nowhere has a record too, but it has failed: there is nothing to fetch again."""
        packed = self._shard.collection.state.get(Family.URL, key)
        return packed is not None and UrlRow.unpack(packed).state is UrlState.DONE
