"""What became of a request: page, redirect, robots.txt, sitemap, failure. Every outcome settles its URL and its host.

Each ends with exactly one `frontier.release` (the slots are free again) and, for a queued URL, exactly one of `finish`
and `retry`. Everything is written into the open batch; nothing here waits.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from lycosa.engine.documents import DocumentStore
from lycosa.engine.pages import LinkRow, PageRow, pack, unpack_page
from lycosa.engine.parts import Parts
from lycosa.engine.reading import Following, Sifter, content, followed_hrefs, page_directives, read
from lycosa.fetch.retry import decide, parse_retry_after, rule_for
from lycosa.frontier.frontier import Lease
from lycosa.frontier.rows import Kind, Reason, UrlState
from lycosa.records import Failure, Family, Request, Response
from lycosa.store import Exchange, Original, Place, Recovery, RevisitProfile, exchange, revisit
from lycosa.web import robots as robots_rules
from lycosa.web import sitemap
from lycosa.web.page import Page
from lycosa.web.scope import DropReason, Scope, UrlFilter
from lycosa.web.text import document_digest, document_fingerprint
from lycosa.web.url import Url, from_key, parse, url_key

if TYPE_CHECKING:
    from lycosa.engine.engine import Engine

Listener = Callable[[str, PageRow, Page | None], None]
REDIRECTS = frozenset({301, 302, 303, 307, 308})
MOST_HOPS = 20
MOST_ROBOTS_HOPS = 5
ROBOTS_FOR_S = 24 * 3600.0
SITEMAP_DEPTH = 3  # an index of indexes of sitemaps
DECODED_FACTOR = 4  # a decoded body may be this many times the body limit


class Outcomes:
    """Settles responses. Holds the rules of what is followed, and the documents seen."""

    def __init__(self, engine: "Engine", documents: DocumentStore, parts: Parts, filters: Sequence[UrlFilter]) -> None:
        self._engine, self._documents = engine, documents
        self._frontier, self._counters = engine.frontier, engine.counters
        self._committer, self._settings = engine.committer, engine.settings
        self._statistics, self._analysers = parts.statistics, parts.analysers
        s = engine.settings
        self._following = Following(
            agent=s.agent, images=s.images, obeys_nofollow=s.nofollow, max_url_bytes=s.max_url_bytes
        )
        self.sifter = Sifter(filters, s.max_url_bytes, engine.counters.dropped)
        self._decoded_cap = s.body_bytes * DECODED_FACTOR
        self.listeners: list[Listener] = []

    # the ways a request can end

    def settle(self, lease: Lease, request: Request | None, response: Response) -> None:
        """One response, whatever it is."""
        row = lease.host.row
        row.requests += 1
        row.bytes += len(response.body)
        row.seconds += max(0.0, response.ended_s - response.started_s)
        self._counters.request(len(response.body))
        self._counters.statuses[str(response.status or response.failure or "none")] += 1
        if lease.kind is Kind.ROBOTS:
            self._robots(lease, request, response)
        elif rule_for(response.failure, response.status) is not None:
            self._failed(lease, request, response)
        else:
            row.tries = 0
            if response.status in REDIRECTS:
                self._redirected(lease, request, response)
            elif lease.kind is Kind.SITEMAP:
                self._sitemap(lease, request, response)
            else:
                self._page(lease, request, response)
            self._release(lease, response)

    def _release(self, lease: Lease, response: Response, *, wait_s: float = 0.0, reason: str = "") -> None:
        engine = self._engine
        self._frontier.release(
            lease, response.ended_s, engine.now(), wait_s=wait_s, reason=reason, now_unix=engine.now_unix()
        )

    # failures

    def _failed(self, lease: Lease, request: Request | None, response: Response) -> None:
        engine, host, entry = self._engine, lease.host, lease.entry
        assert entry is not None
        rule = rule_for(response.failure, response.status)
        assert rule is not None
        name = str(response.failure or response.status)
        if rule.waits_host:
            host.row.tries += 1
        concerns_host = rule.gives_up_on_host
        tried = host.row.tries if concerns_host else entry.tries + 1
        retry_after = parse_retry_after(response.headers.get("retry-after", ""), now_unix_s=engine.now_unix())
        verdict = decide(
            response.failure, response.status, tried=tried, random=engine.roll(), retry_after_s=retry_after
        )
        assert verdict is not None
        wait_s = verdict.wait_s
        if wait_s is not None and rule.waits_host:
            again = decide(
                response.failure,
                response.status,
                tried=min(host.row.tries, rule.tries - 1),
                random=engine.roll(),
                retry_after_s=retry_after,
            )
            wait_s = max(wait_s, (again and again.wait_s) or 0.0)
        if wait_s is None and rule.waits_host and engine.settings.wait:
            wait_s = rule.first_wait_s * rule.factor ** (rule.tries - 1) or 60.0
        if response.failure in (Failure.CONNECT, Failure.CONNECT_TIMEOUT):
            engine.mapper.forget(host.host)
            host.row.address_until = 0.0
        self._archive(lease, request, response)
        if wait_s is not None:
            due_in = 0.0 if rule.waits_host else wait_s
            counts = not concerns_host
            now = engine.now()
            self._frontier.retry(lease, due_unix=engine.now_unix() + due_in, due=now + due_in, counts=counts)
            self._release(lease, response, wait_s=wait_s if rule.waits_host else 0.0, reason=name)
            return
        reason = Reason.FAILURE if response.failure else Reason.STATUS
        self._counters.failed[name] += 1
        host.row.failed += 1
        self._frontier.finish(lease, UrlState.FAILED, reason)
        self._put_page(lease, response, PageRow(response.status, engine.now_unix(), entry.depth), None)
        engine.events.write("failed", url=lease.url, reason=name, detail=response.detail)
        if concerns_host:
            engine.events.write("host-given-up", host=host.origin, reason=name, queued=host.row.queued)
            self._frontier.give_up(host, name)
        self._release(lease, response)

    # redirects

    def _redirected(self, lease: Lease, request: Request | None, response: Response) -> None:
        entry = lease.entry
        assert entry is not None
        self._counters.totals.redirects += 1
        location = response.headers.get("location", "")
        target = parse(location, lease.url)
        row = PageRow(
            response.status, self._engine.now_unix(), entry.depth, location=target.href if target else location
        )
        self._put_page(lease, response, row, self._archive(lease, request, response))
        if target is None:
            self._frontier.finish(lease, UrlState.FAILED, Reason.STATUS)
            self._counters.failed["bad-redirect"] += 1
            return
        if entry.hops >= MOST_HOPS:
            self._frontier.finish(lease, UrlState.FAILED, Reason.REDIRECTS)
            self._counters.failed[Reason.REDIRECTS] += 1
            return
        if entry.depth == 0 and lease.kind is Kind.PAGE:
            self.widen([target])  # where a seed leads is part of the crawl
        for url in self.sifter.sift([target.href]):
            self._frontier.admit([url], depth=entry.depth, kind=entry.kind, hops=entry.hops + 1, now=self._engine.now())
        self._frontier.finish(lease, UrlState.DONE)

    def widen(self, urls: Sequence[Url]) -> None:
        """Makes the hosts (or folders, or domains) of these URLs part of the scope."""
        for i, url_filter in enumerate(self.sifter.filters):
            if isinstance(url_filter, Scope):
                seeds = self._engine.scope_seeds
                wider = [url for url in urls if url_filter.reason(url) is DropReason.OUT_OF_SCOPE]
                if wider:
                    seeds += wider
                    self.sifter.filters[i] = Scope(url_filter.kind, seeds)

    # robots.txt

    def _robots(self, lease: Lease, request: Request | None, response: Response) -> None:
        engine, now = self._engine, self._engine.now()
        self._archive(lease, request, response)
        wanted_by = lease.job.wanted_by if lease.job else lease.host.key
        hops = lease.job.hops if lease.job else 0
        host = self._frontier.shelf.hosts.get(wanted_by)
        if host is None:
            self._release(lease, response)
            return
        if response.status in REDIRECTS and response.failure is None and hops < MOST_ROBOTS_HOPS:
            target = parse(response.headers.get("location", ""), lease.url)
            if target is not None:
                self._release(lease, response)
                self._frontier.want_robots(wanted_by, target, hops + 1, now)
                return
        status = 0 if response.failure is not None else response.status
        body = content(response, self._decoded_cap)
        rules = robots_rules.from_response(status, body, agent=self._settings.agent)
        if not rules.is_unreachable:
            self._frontier.set_robots(host, rules, until_unix=engine.now_unix() + ROBOTS_FOR_S, now=now)
            host.row.tries = 0
            if self._settings.sitemaps:
                self._admit_sitemaps(rules.sitemaps, host.host, depth=0)
            self._release(lease, response)
            return
        self._robots_unreachable(lease, response)

    def _robots_unreachable(self, lease: Lease, response: Response) -> None:
        """P3: nothing is asked of the host, its address is forgotten, and robots.txt is tried again later."""
        engine = self._engine
        wanted_by = lease.job.wanted_by if lease.job else lease.host.key
        host = self._frontier.shelf.hosts[wanted_by]
        engine.mapper.forget(lease.host.host)
        host.row.address_until = 0.0
        self._frontier.robots_failed(host, engine.now())
        name = str(response.failure or response.status)
        verdict = decide(response.failure, response.status, tried=host.row.robots_tries, random=engine.roll())
        wait_s = verdict.wait_s if verdict else None
        if wait_s is None and engine.settings.wait:
            wait_s = 60.0
        if wait_s is None:
            reason = name if response.failure else Reason.ROBOTS_UNREACHABLE
            engine.events.write("host-given-up", host=host.origin, reason=reason, detail=response.detail)
            self._counters.failed[reason] += 1
            host.row.failed += 1
            self._frontier.give_up(host, reason)
            self._release(lease, response)
            return
        if lease.host is host:
            self._release(lease, response, wait_s=wait_s, reason=f"robots.txt: {name}")
        else:
            self._release(lease, response)
            self._frontier.park(
                host, engine.now(), wait_s=wait_s, reason=f"robots.txt: {name}", now_unix=engine.now_unix()
            )

    # sitemaps

    def _admit_sitemaps(self, urls: Sequence[str], host: str, *, depth: int) -> None:
        """A host's own sitemaps are asked for even where the scope is a folder of it; others must be in scope."""
        found = [url for text in urls if (url := parse(text))]
        kept = [url for url in found if url.host == host]
        kept += self.sifter.sift([url.href for url in found if url.host != host])
        if kept:
            self._frontier.admit(kept, depth=depth, kind=Kind.SITEMAP, now=self._engine.now())

    def _sitemap(self, lease: Lease, request: Request | None, response: Response) -> None:
        entry = lease.entry
        assert entry is not None
        self._put_page(
            lease,
            response,
            PageRow(response.status, self._engine.now_unix(), entry.depth, essence="sitemap"),
            self._archive(lease, request, response),
        )
        found = sitemap.read(content(response, self._decoded_cap), lease.url)
        urls = [each.url for each in found.entries]
        if found.is_index:
            if entry.depth < SITEMAP_DEPTH:
                self._admit_sitemaps(urls, lease.host.host, depth=entry.depth + 1)
        elif self._settings.depth is None or self._settings.depth >= 1:
            parsed = [url.href for text in urls if (url := parse(text))]
            self._frontier.admit(self.sifter.sift(parsed), depth=1, now=self._engine.now())
        self._frontier.finish(lease, UrlState.DONE)

    # pages

    def _page(self, lease: Lease, request: Request | None, response: Response) -> None:
        entry = lease.entry
        assert entry is not None
        assert request is not None
        key = url_key(lease.url)
        body = content(response, self._decoded_cap)
        fingerprint = document_fingerprint(body)
        first = self._documents.first_with(fingerprint)
        if first is not None and body and first[0] == document_digest(body):
            self._duplicate(lease, request, response, first[1])
            return
        page = read(response, body, self._analysers)
        said = page_directives(page, response, self._settings.agent)
        hrefs = () if said.nofollow and self._settings.nofollow else followed_hrefs(page, self._following)
        links = LinkRow(hrefs, page.base_href or "")
        made = self._exchange(lease, request, response)
        row = self._page_row(lease, response, page, made, noindex=said.noindex)
        ticket = self._committer.archive(made.members, made.RESPONSE)
        self._put_page(lease, response, row, ticket)
        if first is None:
            self._documents.note(self._committer.batch, key, row, links)
        if hrefs:
            self._committer.batch.put(Family.LINK, key, pack(links))
        self._follow(links, lease.url, entry.depth)
        self._count_page(lease, row)
        for part in self._statistics:
            part.page(page, response)
        self._frontier.finish(lease, UrlState.DONE)
        self._tell(row, lease.url, page)

    def _duplicate(self, lease: Lease, request: Request, response: Response, original_key: bytes) -> None:
        """The document is known under another URL: a revisit record, no second parse, but its links from here."""
        entry, engine = lease.entry, self._engine
        assert entry is not None
        original = self._documents.page(original_key)
        original_url = from_key(original_key)
        made = self._exchange(lease, request, response)
        if original is not None and original.payload_sha1 == made.payload_sha1 and original_url != lease.url:
            made = revisit(
                request,
                response,
                fetched_s=engine.now_unix(),
                original=Original(original_url, original.fetched_s, original.payload_sha1),
                profile=RevisitProfile.SAME_PAYLOAD,
                metadata=self._metadata(lease),
            )
        row = PageRow(
            response.status,
            engine.now_unix(),
            entry.depth,
            essence=original.essence if original else "",
            size_bytes=len(response.body),
            payload_sha1=made.payload_sha1,
            original=original_url,
            title=original.title if original else "",
            language=original.language if original else "",
            etag=response.headers.get("etag", ""),
            last_modified=response.headers.get("last-modified", ""),
            fingerprint=original.fingerprint if original else 0,
            digest=original.digest if original else b"",
        )
        self._put_page(lease, response, row, self._committer.archive(made.members, made.RESPONSE))
        self._counters.totals.duplicates += 1
        links = self._documents.links(original_key)
        if links is not None:
            self._follow(links, lease.url, entry.depth)
        self._count_page(lease, row)
        self._frontier.finish(lease, UrlState.DONE)
        self._tell(row, lease.url, None)

    def _follow(self, links: LinkRow, url: str, depth: int) -> None:
        limit = self._settings.depth
        if limit is not None and depth >= limit:
            self.sifter.dropped[Reason.DEPTH] += len(links.hrefs)
            return
        wanted = self.sifter.wanted(links, url)
        if wanted:
            self._frontier.admit(wanted, depth=depth + 1, now=self._engine.now())

    def _count_page(self, lease: Lease, row: PageRow) -> None:
        lease.host.row.pages += 1
        self._counters.page(row.essence, row.language)

    def _page_row(self, lease: Lease, response: Response, page: Page, made: Exchange, *, noindex: bool) -> PageRow:
        codes = page.codes
        return PageRow(
            response.status,
            self._engine.now_unix(),
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
            noindex=noindex,
            structure=(page.structure_first, page.structure_last),
            codes=(codes.total, codes.squares, codes.distinct, codes.length),
        )

    # keeping

    def _metadata(self, lease: Lease) -> dict[str, str]:
        return {"depth": str(lease.depth)}

    def _exchange(self, lease: Lease, request: Request, response: Response) -> Exchange:
        return exchange(request, response, fetched_s=self._engine.now_unix(), metadata=self._metadata(lease))

    def _archive(self, lease: Lease, request: Request | None, response: Response) -> int | None:
        """Keeps an answer that is no page; nothing where there was no answer."""
        if request is None or not response.header_block:
            self._committer.waiting += 1
            return None
        made = self._exchange(lease, request, response)
        return self._committer.archive(made.members, made.RESPONSE)

    def _put_page(self, lease: Lease, response: Response, row: PageRow, ticket: int | None) -> None:
        self._committer.page(url_key(lease.url), row, ticket)

    def _tell(self, row: PageRow, url: str, page: Page | None) -> None:
        for listener in self.listeners:
            self._committer.announce(partial(listener, url, row, page))

    def committed(self) -> None:
        self._documents.committed()

    # recovery

    def lost_pages(self, recovery: Recovery) -> list[tuple[str, int]]:
        """(URL, depth) of the pages whose record is no longer whole."""
        if not recovery.short:
            return []
        state = self._engine.collection.state
        lost = []
        for key, packed in state.walk(Family.PAGE):
            row = unpack_page(packed)
            if row.place and recovery.is_lost(Place.unpack(row.place)):
                lost.append((from_key(key), row.depth))
        return lost
