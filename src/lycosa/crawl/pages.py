"""The page handler asks for pages that are fetched for the first time and reads the answers: page, redirect, failure.

Each answer ends with exactly one release of its lease and exactly one of `finish` and `retry` of its URL, all of it in
the open batch. A page is read and kept by `crawl.keeper`; `handle` returns it, the loop has its links admitted by
`admit`. A redirect is a URL of its own: scope, robots.txt and the address guard hold for where it leads. `HeadLooks`
takes the handler's place where a ranking judges a page by its beginning before the rest is asked for.

`FailureHandler` decides what a failed request means for its URL and its host, by the retry table. Failures that concern
a whole host are counted with the host: a host of a thousand URLs that refuses connections is tried three times, not
three thousand. The others are counted with the URL, which waits by itself, behind the others of its host; the host
waits when several URLs in a row fail that are asked for the first time (a second failure of a URL says more of the URL
than of the host). `--wait` never gives a host up.
"""

from collections.abc import Callable

from lycosa.crawl.addresses import HostAddresses
from lycosa.crawl.admission import Admission
from lycosa.crawl.keeper import Archive, PageKeeper
from lycosa.crawl.pipeline import Pipelines, write_drop
from lycosa.crawl.reading import (
    LeaseAnswer,
    PageVerdict,
    PreparedPage,
    decoded_body,
    document_statements,
    read_page,
    redirect_location,
)
from lycosa.crawl.seams import Parts, ReadPage, RequestHook, Shard
from lycosa.fetch import (
    AT_ONCE,
    RESET_WHILE_HELD,
    RETRY_SHARE,
    RetryRule,
    failed_name,
    parse_retry_after,
    request_fields,
    retry_rule,
    retry_wait,
    user_agent,
)
from lycosa.frontier import HeadReader, Host, Lease, Origin, QueueEntry, Reason, RequestKind, UrlState, requisite_hops
from lycosa.graph import redirect_link
from lycosa.learning import TrapGuard, UrlMining
from lycosa.records import Failure, Request, Response, Truncation
from lycosa.settings import CrawlSettings
from lycosa.store import REDIRECTS, SITEMAP, PageRow
from lycosa.web import (
    TOPIC_HEAD_BYTES,
    FollowedLinks,
    MediaKind,
    Purpose,
    identify_media,
    objection,
    parse_url,
    url_key,
)

# With --wait a host that the table would give up is asked again after this.
PATIENT_WAIT_S = 300.0
FORGETS_ADDRESS = frozenset({Failure.CONNECT, Failure.CONNECT_TIMEOUT})


# Called instead of failing the URL where the table has nothing more to try: lease, request, response, reason.
GiveUp = Callable[[Lease, Request | None, Response, str], None]


class FailureHandler:
    """Retries or gives up URLs whose request did not end well. `is_past`: answers are of the past, nobody is asked
    again, and a failure says nothing of how the host is now."""

    def __init__(
        self, shard: Shard, archive: Archive, addresses: HostAddresses, mining: UrlMining, *, is_past: bool = False
    ) -> None:
        self._shard, self._archive, self._addresses, self._mining = shard, archive, addresses, mining
        self._is_past = is_past

    def rule_of(self, response: Response) -> RetryRule | None:
        """What the table says of an answer; None when it was no failure."""
        is_first = not self._shard.counters.has_answer
        return retry_rule(response.failure, response.status, is_first=is_first, was_held=response.was_held)

    def handle(
        self, lease: Lease, request: Request | None, response: Response, *, give_up: GiveUp | None = None
    ) -> bool:
        """Deals with a failure: the URL is retried or given up and its lease released. False: it was none."""
        rule = self.rule_of(response)
        if rule is None:
            if lease.host.row.tries or lease.host.row.failing:
                lease.host.record_answer()
            return False
        shard, host, entry = self._shard, lease.host, lease.entry
        assert entry is not None
        # what we did to a URL takes none of the tries from it that it has by itself
        is_other_kind = bool(entry.failed) and response.was_held != (entry.failed == RESET_WHILE_HELD)
        if is_other_kind:
            entry = entry.of_other_kind()
        name = str(response.failure or response.status)
        is_first = not shard.counters.has_answer
        if not self._is_past and not self._addresses.outage.explains(response.failure, shard.now(), is_first=is_first):
            _count_with_host(host, entry, response, rule)
        if response.failure in FORGETS_ADDRESS:
            self._addresses.forget(host)
        ticket = self._archive.keep_answer(lease, request, response)
        wait_s, host_s = (None, 0.0) if self._is_past else self._waits(host, entry, response, rule)
        if wait_s is None:
            if give_up is not None:
                give_up(lease, request, response, name)
            self._give_up(lease, entry, response, rule, name, ticket, is_revisit=give_up is not None)
            shard.release(lease, response, wait_s=host_s, reason=name)
            return True
        now = shard.now()
        took_s = max(0.0, response.ended_s - response.started_s) + host.delay_s
        host.hold_back_retries(now + took_s / RETRY_SHARE)
        shard.frontier.outcomes.retry(
            lease,
            due_unix=shard.now_unix() + wait_s,
            due=now + wait_s,
            failed=failed_name(response.failure, response.status, was_held=response.was_held),
            counts=not rule.gives_up_on_host,
            is_other_kind=is_other_kind,
        )
        shard.release(lease, response, wait_s=host_s, reason=name)
        return True

    def _waits(self, host: Host, entry: QueueEntry, response: Response, rule: RetryRule) -> tuple[float | None, float]:
        """How long the URL waits for its next try, None when there is none; and how long its host waits."""
        shard, row = self._shard, host.row
        is_hosts = rule.host_after == AT_ONCE
        tried = max(row.tries, 1) if rule.gives_up_on_host else entry.tries + 1  # 0 in an outage
        has_more = tried < rule.tries
        # the longer the host has failed, the longer it is left alone
        rounds = max(tried, row.tries) if is_hosts else row.failing - rule.host_after + 1
        host_s = 0.0
        if rule.host_after and rounds > 0:
            if not has_more and shard.settings.wait:
                return 0.0, PATIENT_WAIT_S
            if has_more or not rule.gives_up_on_host:
                asked_for = parse_retry_after(response.headers.get("retry-after", ""), now_unix_s=shard.now_unix())
                rounds = min(rounds, rule.tries - 1)
                host_s = retry_wait(rule, rounds, random=shard.roll(), retry_after_s=asked_for) or 0.0
        if is_hosts and has_more:
            return 0.0, host_s
        return retry_wait(rule, tried, random=shard.roll()), host_s

    def _give_up(
        self,
        lease: Lease,
        entry: QueueEntry,
        response: Response,
        rule: RetryRule,
        name: str,
        ticket: int | None,
        *,
        is_revisit: bool,
    ) -> None:
        shard, host = self._shard, lease.host
        if rule.gives_up_on_host:
            if not is_revisit:  # the URL fails with its host, and comes back with it
                shard.events.write("failed", url=lease.url, reason=name, detail=response.detail)
                shard.frontier.outcomes.return_to_queue(lease)
            if not host.row.gave_up:
                shard.events.write("host-given-up", host=host.origin, reason=name, queued=host.row.queued)
            shard.frontier.host_control.give_up(host, name, shard.now())
        if is_revisit or rule.gives_up_on_host:
            return
        self._mining.record_outcome(lease, is_hit=False)
        if entry.origin.is_guess:
            shard.frontier.outcomes.finish(lease, UrlState.DROPPED, Reason.GUESS)
            return
        shard.counters.failed(name)
        host.count(failed=1)
        shard.frontier.outcomes.finish(lease, UrlState.FAILED, Reason.FAILURE if response.failure else Reason.STATUS)
        media = identify_media(response.headers.get("content-type"), b"")
        essence = SITEMAP if lease.kind is RequestKind.SITEMAP else media.essence if ticket is not None else ""
        tries = entry.tries + entry.other_tries + 1
        row = PageRow(response.status, shard.now_unix(), entry.depth, essence=essence, failure=name, tries=tries)
        if ticket is not None:
            row.size_bytes = len(response.body)
        if lease.kind is RequestKind.REQUISITE:
            row.requisite, _ = requisite_hops(entry.hops)
        row.is_external = lease.kind is RequestKind.EXTERNAL
        shard.linker.gone(lease.url, url_key(lease.url), row)
        self._archive.write_row(lease, row, ticket)
        shard.events.write("failed", url=lease.url, reason=name, detail=response.detail)


def _count_with_host(host: Host, entry: QueueEntry, response: Response, rule: RetryRule) -> None:
    """Counts with the host what the failure says of it."""
    if rule.host_after == AT_ONCE:
        host.record_failure(tries=1)
    elif rule.host_after:
        host.record_failure(failing=int(entry.tries == 0))
    elif response.failure is None:  # it answers
        host.record_answer()


MAX_HOPS = 20
HEAD_ONLY = frozenset({206, 416})  # a part of the page, or a page that is shorter than its part

Fields = tuple[tuple[str, str], ...]


class RequestBuilder:
    """Makes the request that goes out for a lease. `fields` are the header fields of every request, always the same
    tuple, which is cheap to send again. `hooks` have their say in each request, in this order."""

    def __init__(self, settings: CrawlSettings) -> None:
        self.hooks: list[RequestHook] = []
        self.fields: Fields = request_fields(user_agent(settings.agent, contact=settings.contact or ""))

    def build(
        self,
        lease: Lease,
        *,
        url: str = "",
        fields: Fields | None = None,
        more: Fields = (),
        body_limit_bytes: int = 0,
        takes_any_type: bool = False,
        is_watched: bool = False,
        method: str = "GET",
    ) -> Request:
        """The request of a lease; `url` is asked for in place of the lease's own, `fields` are sent in place of the
        usual ones, `more` after them. `is_watched`: observers may look at the response while it arrives."""
        request = Request(
            url=url or lease.url,
            host=lease.host.host,
            port=lease.host.port,
            address=lease.address,
            headers=(self.fields if fields is None else fields) + more,
            method=method,
            body_limit_bytes=body_limit_bytes,
            takes_any_type=takes_any_type,
            ticket=lease.ticket if is_watched else 0,
        )
        return self.prepared(request, lease.kind) if self.hooks else request

    def prepared(self, request: Request, kind: RequestKind) -> Request:
        """A request with what the hooks add to it; for those that are not made by `build`, too."""
        for hook in self.hooks:
            request = hook.prepare(request, kind)
        return request


class PageHandler:
    """Handles requests for pages, of which it keeps new ones and redirects. `statistics` are the parts that see every
    analysed page."""

    def __init__(
        self,
        shard: Shard,
        parts: Parts,
        keeper: PageKeeper,
        admission: Admission,
        failures: FailureHandler,
        requests: RequestBuilder,
        traps: TrapGuard,
        mining: UrlMining,
        pipelines: Pipelines | None = None,
    ) -> None:
        self._shard, self._frontier, self._counters = shard, shard.frontier, shard.counters
        self.keeper, self.admission, self.failures, self.requests = keeper, admission, failures, requests
        self._traps, self._mining, self.statistics = traps, mining, list(parts.statistics)
        self._pipelines, self._purpose = pipelines, Purpose(shard.settings.purpose)

    def __repr__(self) -> str:
        return f"<PageHandler pages={self._counters.totals.pages}>"

    def request(self, lease: Lease) -> Request:
        return self.requests.build(lease, is_watched=True)

    def handle(self, answer: LeaseAnswer) -> ReadPage | None:
        if self.failures.handle(answer.lease, answer.request, answer.response):
            return None
        return self.answered(answer)

    def answered(self, answer: LeaseAnswer) -> ReadPage | None:
        """Reads an answer that is no failure."""
        lease, response = answer.lease, answer.response
        if response.truncated is Truncation.UNWANTED:
            self._frontier.outcomes.finish(lease, UrlState.DROPPED, Reason.MEDIA_TYPE)
        elif response.status in REDIRECTS:
            self.redirected(lease, answer.request, response)
        elif verdict := self.drop_verdict(answer):
            self._drop(answer, verdict)
        else:
            return self.keeper.read(answer)
        self._shard.release(lease, response)
        return None

    # documents that are dropped: by their publishers' preferences, or by pipelines

    def drop_verdict(self, answer: LeaseAnswer) -> PageVerdict | None:
        """Why a document is not kept; None: it is."""
        if self._pipelines is None and not self._judges_use(answer.response):
            return None
        if answer.prepared is None:
            answer.prepared = self._shard.reader.digests(answer.response)
        return self.version_drop(answer.lease, answer.response, answer.prepared)

    def version_drop(self, lease: Lease, response: Response, prepared: PreparedPage) -> PageVerdict | None:
        """As `drop_verdict`, of a document that is prepared."""
        if self._judges_use(response) and (said := self._objection(lease, response, prepared)):
            return PageVerdict(dropped=said, reason=Reason.PREFERENCES)
        verdict = None if self._pipelines is None else self._pipelines.judge(response, prepared)
        return verdict if verdict is not None and verdict.dropped else None

    def _judges_use(self, response: Response) -> bool:
        """Can a document forbid what the crawl is for? Of an archive only a Content-Signal speaks (`web.preferences`),
        and what the host says was asked before the request."""
        return self._purpose is not Purpose.ARCHIVE or "content-signal" in response.headers

    def _objection(self, lease: Lease, response: Response, prepared: PreparedPage) -> str:
        reader = self._shard.reader
        page = reader.analyse(response, prepared)
        statements = document_statements(lease, response, page, reader.rules.agent)
        is_image, now = page.media.kind is MediaKind.IMAGE, self._shard.now_unix()
        return objection(statements, prepared.directives, self._purpose, is_image=is_image, now=now)

    def can_take_early(self, answer: LeaseAnswer) -> bool:
        """May the links of a document be admitted before it is kept? Not if it is dropped."""
        if not self.admission.can_take_early(answer.lease):
            return False
        return not answer.is_document or (dropped := self.drop_verdict(answer)) is None or dropped.follows

    def _drop(self, answer: LeaseAnswer, verdict: PageVerdict) -> None:
        """The page is not wanted: nothing of it is kept but its URL and the reason."""
        lease, response, prepared = answer.lease, answer.response, answer.prepared
        assert prepared is not None
        if verdict.follows:
            self._shard.reader.analyse(response, prepared)
            row = PageRow(response.status, answer.fetched_s, lease.depth)
            self.admission.follow(ReadPage(lease, response, row, prepared.links, prepared.page))
        write_drop(self._shard.committer.batch, url_key(lease.url), verdict.dropped)
        self._shard.committer.count_outcomes()
        self._frontier.outcomes.finish(lease, UrlState.DROPPED, verdict.reason)

    def admit(self, read: ReadPage) -> None:
        """Admits the links of a page that was read, counts it, and finishes its URL."""
        lease = read.lease
        read.new += self.admission.follow(read)
        if read.page is None:
            assert read.original is not None
            self._traps.copy_fetched(lease, read.original, read.new)
            self._mining.record_outcome(lease, is_hit=False)
        else:
            is_news = self._traps.page_fetched(lease, read.page, read.new)
            self._mining.record_outcome(lease, is_hit=is_news)
            for part in self.statistics:
                part.page(read.page, read.response)
        self._mining.page_fetched(lease)
        lease.host.count(pages=1, links=len(read.links) if read.page is not None else 0)
        self._counters.page(read.row)
        self._frontier.outcomes.finish(lease, UrlState.DONE)
        self.keeper.announce(read)
        self._shard.release(lease, read.response)

    def redirected(self, lease: Lease, request: Request | None, response: Response) -> None:
        """Keeps a redirect and admits where it leads."""
        entry, shard = lease.entry, self._shard
        assert entry is not None
        written = redirect_location(response)
        target = parse_url(written, lease.url) if written else None
        failure = "bad-redirect" if target is None else Reason.REDIRECTS if entry.hops >= MAX_HOPS else ""
        where = target.href if target else written
        row = PageRow(
            response.status,
            shard.now_unix(),
            entry.depth,
            location=where,
            failure=failure,
            took_ms=response.took_ms,
        )
        is_page = lease.kind in (RequestKind.PAGE, RequestKind.REVISIT)
        if is_page:
            links = redirect_link(target.href) if target else FollowedLinks()
            shard.linker.page(lease.url, url_key(lease.url), row, links)
        archive = self.keeper.archive
        archive.write_row(lease, row, archive.keep_answer(lease, request, response, row.fetched_s))
        self._mining.record_outcome(lease, is_hit=False)
        if target is None or failure:
            reason = Reason.REDIRECTS if target else Reason.STATUS
            self._counters.failed(failure)
            lease.host.count(failed=1)
            self._frontier.outcomes.finish(lease, UrlState.FAILED, reason)
            return
        self._counters.redirect()
        if entry.depth == 0 and entry.origin in (Origin.SEED, Origin.REDIRECT) and is_page:
            shard.link_filter.widen([target])  # where a seed leads is part of the crawl
        self.admission.follow_redirect(lease, entry, target, RequestKind.PAGE if is_page else entry.kind)
        self._frontier.outcomes.finish(lease, UrlState.DONE)


class HeadLooks:
    """Handles pages where a ranking looks at the beginning of a page before the rest is asked for."""

    def __init__(self, shard: Shard, pages: PageHandler, reader: HeadReader) -> None:
        self._shard, self._pages, self._reader, self._analysers = shard, pages, reader, shard.reader.analysers
        self._fields = (
            *((name, value) for name, value in pages.requests.fields if name.lower() != "accept-encoding"),
            ("Accept-Encoding", "identity"),
            ("Range", f"bytes=0-{TOPIC_HEAD_BYTES - 1}"),
        )

    def request(self, lease: Lease) -> Request:
        if lease.is_head:
            return self._pages.requests.build(lease, fields=self._fields)
        return self._pages.request(lease)

    def handle(self, answer: LeaseAnswer) -> ReadPage | None:
        lease, response = answer.lease, answer.response
        if not lease.is_head or response.status not in HEAD_ONLY:  # it may send the whole page nevertheless
            return self._pages.handle(answer)
        if not self._pages.failures.handle(lease, answer.request, response):
            self._judge(lease, response)
            self._shard.release(lease, response)
        return None

    def _judge(self, lease: Lease, response: Response) -> None:
        frontier = self._shard.frontier
        credit = frontier.credit(lease.url)
        if response.status == 206:
            page = read_page(response, decoded_body(response, TOPIC_HEAD_BYTES), self._analysers)
            credit = self._reader.refine(credit, page.title or "", page.text)
        frontier.outcomes.rerank(lease, credit)
