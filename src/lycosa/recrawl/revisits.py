"""Revisits: pages that are due are asked for with conditions, judged, and kept only if they have changed.

A visit ends in one commit: the page's row, its history, its visit row and its next time, beside the records. So a kill
counts no visit twice and loses none: what was not committed is still queued. Unchanged pages keep their links, their
place in the index and their stored version. Errors and odd answers (login forms, empty bodies) never replace a version.
`Revisits` handles all requests of kind REVISIT for the loop; `recrawl.due` decides what is queued.
"""

from functools import partial

import msgspec

from lycosa.crawl import (
    HostRules,
    LeaseAnswer,
    PageHandler,
    PatchedDocument,
    PreparedPage,
    ReadPage,
    RequestHandler,
    Shard,
    redirect_location,
)
from lycosa.frontier import KEY_END, FrontierHook, Host, Lease, QueueEntry, Reason, RequestKind, UrlState
from lycosa.records import Request, Response, Truncation
from lycosa.recrawl.change.content import Masks
from lycosa.recrawl.change.verdict import (
    SAME,
    ChangeKind,
    ChangeVerdict,
    Comparison,
    PageParameters,
    Presence,
    Version,
    change_of_state,
    judge_file,
    judge_page,
    presence_of,
)
from lycosa.recrawl.images import ImageRevisits
from lycosa.recrawl.plan import ChangeHints, VisitPlanner
from lycosa.recrawl.recorder import (
    MissingBodies,
    PageChange,
    Visit,
    VisitRecorder,
    VisitResult,
    opening,
    presence_of_row,
)
from lycosa.recrawl.table_revisits import TableRevisits
from lycosa.recrawl.versions import VisitRow, change_key, visit_of
from lycosa.store import REDIRECTS, HttpExchange, LinkRow, OriginalRecord, PageRow, RevisitProfile, link_row, page_at
from lycosa.tables import TABLE_MAX_BYTES
from lycosa.web import MediaKind, Page, RobotsDirectives, TextCodes, parse_url, url_key

GIVE_UP_AFTER = 3  # visits in a row that brought nothing: then the page is gone
NO_DOCUMENT = frozenset({Presence.EMPTY, Presence.LOGIN})
NO_SUCH_TABLE = frozenset({401, 403, 404, 410})


class Revisits(RequestHandler, FrontierHook):
    """Asks for pages again and reads the answers. As a hook of the frontier it hears of revisits that robots.txt
    forbids by now."""

    def __init__(self, shard: Shard, pages: PageHandler, rules: HostRules) -> None:
        self._shard, self._pages, self._rules = shard, pages, rules
        self._state, self._keeper, self._archive = shard.collection.state, pages.keeper, pages.keeper.archive
        self._documents, self._reader = pages.keeper.documents, shard.reader
        self.planner = VisitPlanner(shard)
        self.hints = ChangeHints(shard)
        self.recorder = VisitRecorder(shard, self.planner)
        self._tables = TableRevisits(shard, self._archive, self._patched)
        self.images = ImageRevisits(shard, self._documents, self.recorder)
        self._bodies = MissingBodies(shard, self._archive, self._documents, self.recorder)
        shard.frontier.add_hook(self)
        rules.on_dates = self.hints.read_dates

    def __repr__(self) -> str:
        return f"<Revisits visits={self._shard.counters.totals.visits} {self.planner!r}>"

    def dropped(self, host: Host, entry: QueueEntry, reason: Reason) -> None:
        """A page that may no longer be asked for counts as a page no more, but what is stored stays."""
        if entry.kind is RequestKind.REVISIT:
            row = page_at(self._state, host.key + KEY_END + entry.path.encode())
            if row is not None:
                self.recorder.uncount(host, row)

    # asking

    def request(self, lease: Lease) -> Request:
        """Asks for a page only if it has changed, or for its table of volatile information in its place."""
        table = self._tables.table_of(lease)
        if table is None:
            return self._pages.requests.build(lease, more=self._conditions(lease))
        return self._pages.requests.build(
            lease,
            url=table,
            more=self._tables.conditions(lease),
            body_limit_bytes=TABLE_MAX_BYTES,
            takes_any_type=True,
        )

    def _conditions(self, lease: Lease) -> tuple[tuple[str, str], ...]:
        self._bodies.asked.discard(lease.url)
        row = page_at(self._state, url_key(lease.url))
        if row is None or row.status != 200 or row.truncated:
            return ()
        visit = visit_of(self._state, url_key(lease.url))
        if visit is not None and visit.presence in NO_DOCUMENT:
            return ()
        if row.is_page and self._bodies.is_missing(lease.url, row):
            self._bodies.asked.add(lease.url)
            return ()
        fields = (("If-None-Match", row.etag), ("If-Modified-Since", row.last_modified))
        return tuple((name, value) for name, value in fields if value and value.isascii() and value.isprintable())

    # the answer

    def handle(self, answer: LeaseAnswer) -> ReadPage | None:
        lease, request, response = answer.lease, answer.request, answer.response
        failures = self._pages.failures
        if request is not None and request.url != lease.url:  # a table in place of the page
            if failures.rule_of(response) is None or response.status in NO_SUCH_TABLE:
                self._tables.handle(lease, request, response)
                self._shard.release(lease, response)
                return None
            self._tables.fetch_whole(lease)
        if failures.handle(lease, request, response, give_up=self._given_up):
            return None
        assert request is not None
        row = page_at(self._state, url_key(lease.url))
        if row is not None and row.has_failed:  # it was never a page: its answer is read as that of a first request
            return self._recovered(answer, request, row)
        self._answered(self._begin(lease, request, response, answer.prepared))
        self._shard.release(lease, response)
        return None

    def _begin(self, lease: Lease, request: Request, response: Response, prepared: PreparedPage | None = None) -> Visit:
        key = url_key(lease.url)
        row = page_at(self._state, key) or PageRow(0, 0.0, lease.depth)
        before = visit_of(self._state, key) or VisitRow()
        if not before.visits:
            before.presence = presence_of_row(row)
        return Visit(lease, request, response, key, row, before, prepared)

    def _answered(self, visit: Visit) -> None:
        """Reads an answer that is no failure."""
        response = visit.response
        visit.before.table_etag = ""  # of the version before this one
        visit.before.by_table = visit.before.same_tables = 0
        if response.status == 304:
            self._same(visit, RevisitProfile.NOT_MODIFIED)
        elif visit.row.is_sitemap:
            self._sitemap(visit)
        elif response.status in REDIRECTS:
            self._moved(visit)
        elif response.truncated is Truncation.UNWANTED:
            essence = response.headers.get("content-type", "another type")
            self._gone(visit, f"now {essence[:60]}, which is not wanted")
        elif response.truncated and not visit.row.truncated:
            self._archive.keep_answer(visit.lease, visit.request, response)
            self._failed(visit, f"cut off: {response.truncated}")
        else:
            self._document(visit)

    # URLs that have failed and were never pages

    def _recovered(self, answer: LeaseAnswer, request: Request, row: PageRow) -> ReadPage | None:
        """Such a URL has an answer now: it is read as that of a first request, and counts as failed no more."""
        lease, response = answer.lease, answer.response
        is_other = response.truncated is Truncation.UNWANTED or response.status in REDIRECTS
        if row.is_sitemap and not is_other:  # it counts when all of it is taken in
            self._rules.sitemap(lease, request, response, partial(self._count_recovered, lease, row))
            self._shard.release(lease, response)
            return None
        is_unwanted = not is_other and self._pages.drop_verdict(answer) is not None
        if is_unwanted or response.truncated is Truncation.UNWANTED:  # it is uncounted when it is dropped
            self._shard.counters.visit()
        else:
            self._count_recovered(lease, row)
        return self._pages.answered(answer)

    def _count_recovered(self, lease: Lease, row: PageRow, _new: int = 0) -> None:
        self.planner.schedule_again(url_key(lease.url), row)
        self._shard.counters.visit()
        self.recorder.uncount(lease.host, row)

    def record_new(self, page: ReadPage) -> None:
        """Opens the history of a page that did not exist when the collection was crawled."""
        url, row = page.lease.url, page.row
        opened = opening(row, is_new=True)
        self._shard.committer.change(change_key(url_key(url), row.fetched_s), opened, page.ticket)
        if self.recorder.on_change is not None:
            text = page.page.text if page.page is not None else ""
            verdict = ChangeVerdict(opened.kind, size=opened.size)
            self.recorder.on_change(
                PageChange(url, row.fetched_s, verdict, row.title, row.status, lambda: ((), (text,)))
            )

    # failures

    def _given_up(self, lease: Lease, request: Request | None, response: Response, name: str) -> None:
        """The retry table has nothing more to try: gone at once if the answer says so, else after some visits."""
        visit = self._begin(lease, request or Request(lease.url, "", 0, ""), response)
        if visit.row.has_failed:
            self._failed_again(visit, name)
        elif visit.row.is_sitemap:
            self.recorder.finish(visit, VisitResult(None, visit.before.presence, Masks(), b""))
        elif response.failure is None and 400 <= response.status < 500:
            self._gone(visit, name)
        else:
            self._failed(visit, name)

    def _failed_again(self, visit: Visit, name: str) -> None:
        """A URL that was never a page has failed once more, maybe for another reason."""
        lease, shard = visit.lease, self._shard
        row = msgspec.structs.replace(
            visit.row, status=visit.response.status, fetched_s=shard.now_unix(), location="", failure=name
        )
        self.recorder.uncount(lease.host, visit.row)
        shard.counters.failed(name)
        shard.counters.visit()
        lease.host.count(failed=1)
        self._archive.write_row(lease, row, None)
        self.planner.schedule_again(visit.key, row)
        shard.frontier.outcomes.finish(
            lease, UrlState.FAILED, Reason.FAILURE if visit.response.failure else Reason.STATUS
        )

    def _failed(self, visit: Visit, why: str) -> None:
        """Nothing came: what is stored stays, until that has happened several times in a row."""
        before = visit.before
        before.fails, before.trouble = before.fails + 1, why
        is_gone = before.presence is Presence.GONE
        if before.fails >= GIVE_UP_AFTER and not is_gone:
            self._gone(visit, why)
            return
        state = UrlState.FAILED if is_gone else UrlState.DONE
        self.recorder.finish(visit, VisitResult(None, before.presence, before.masks, before.digest), state)

    def _gone(self, visit: Visit, why: str) -> None:
        """The page exists no more: it leaves the index, its versions stay in the archive."""
        lease, shard, before = visit.lease, self._shard, visit.before
        if before.presence is Presence.GONE:
            found = VisitResult(SAME, Presence.GONE, before.masks, before.digest)
            self.recorder.finish(visit, found, UrlState.FAILED)
            return
        verdict = ChangeVerdict(ChangeKind.GONE, why, 1)
        status = visit.response.status if visit.response.status >= 400 else 0
        row = PageRow(status, shard.now_unix(), lease.depth)
        self.recorder.add_change(visit, verdict, row, None)
        self._documents.on_replaced(lease.url, visit.key, visit.row)
        shard.linker.gone(lease.url, visit.key, row)
        self._archive.write_row(lease, row, None)
        self.recorder.recount(visit, row)
        found = VisitResult(verdict, Presence.GONE, before.masks, before.digest, row)
        self.recorder.finish(visit, found, UrlState.FAILED)

    # documents

    def _document(self, visit: Visit) -> None:
        """Reads an answer with a body."""
        row, before, response = visit.row, visit.before, visit.response
        prepared = visit.prepared or self._reader.digests(response)
        body = prepared.body
        is_missing = visit.lease.url in self._bodies.asked
        self._bodies.asked.discard(visit.lease.url)
        if row.digest and before.presence is not Presence.GONE and prepared.digest == row.digest:
            self._same_document(visit, prepared, is_missing=is_missing)
            return
        page = self._reader.analyse(response, prepared)
        presence, before.is_feed = presence_of(page, body), page.media.kind is MediaKind.FEED
        verdict = change_of_state(before.presence, presence, page.media.essence)
        compared = Comparison(verdict or SAME, before.masks, b"")
        if presence in NO_DOCUMENT:
            if compared.verdict.is_change:
                self.recorder.add_change(visit, compared.verdict, row, None)
            self.recorder.finish(visit, VisitResult(compared.verdict, presence, before.masks, before.digest))
            return
        if verdict is None:
            compared = self._compare(visit, page, body, presence)
        if compared.verdict.is_change:
            if verdict is None:
                compared = msgspec.structs.replace(compared, verdict=self._with_images(visit, compared.verdict))
            self.hints.read_feed(visit.lease, page, body)
            self._store(visit, prepared, presence, compared)
        elif is_missing:
            self._shard.counters.lost(bool(row.place))
            self._store(visit, prepared, presence, compared)
        else:
            self._keep(visit, prepared, compared)

    def _same_document(self, visit: Visit, prepared: PreparedPage, *, is_missing: bool) -> None:
        """The bytes are those of the stored version; what the headers say to robots may differ."""
        row, response = visit.row, visit.response
        if row.directives != RobotsDirectives() or "x-robots-tag" in response.headers:
            now = msgspec.structs.replace(row)
            self._update_links(visit, prepared, now)
            self._archive.write_row(visit.lease, now, None)
            visit = visit._replace(row=now)
        if is_missing:
            self._bodies.store(visit, prepared.body)
        else:
            self._same(visit, RevisitProfile.SAME_PAYLOAD)

    def _compare(self, visit: Visit, page: Page, body: bytes, presence: Presence) -> Comparison:
        row, before = visit.row, visit.before

        def stored() -> Version | None:
            return self.recorder.stored(visit)

        if presence is Presence.PAGE:
            has_parameters = row.structure[0] or row.codes[3]
            known = PageParameters(row.structure, TextCodes(*row.codes)) if has_parameters else None
            new = self.recorder.version(visit.lease.url, page, body)
            return judge_page(new, before.masks, before.digest or row.content, stored, known)
        return judge_file(presence, body, before.digest or row.content, stored)

    def _with_images(self, visit: Visit, verdict: ChangeVerdict) -> ChangeVerdict:
        """A verdict together with the images of the page that are known to have changed since it was last seen."""
        images = self.images.changed_before(visit)
        if not images:
            return verdict
        is_told = ChangeKind.IMAGE in (verdict.kind, *verdict.also)
        also = verdict.also if is_told else (*verdict.also, ChangeKind.IMAGE)
        return msgspec.structs.replace(verdict, also=also, pictures=images)

    def _store(
        self,
        visit: Visit,
        prepared: PreparedPage,
        presence: Presence,
        compared: Comparison,
        patched: HttpExchange | None = None,
    ) -> None:
        """Stores a new version in place of the old one, which stays in the archive. `patched` are the records of one
        that a table gave."""
        lease, response, keeper = visit.lease, visit.response, self._keeper
        if dropped := self._pages.version_drop(lease, response, prepared):
            by = "its publisher" if dropped.reason is Reason.PREFERENCES else "a pipeline"
            self._gone(visit, f"dropped by {by}: {dropped.dropped}")
            return
        if patched is None:
            read = keeper.store_version(lease, visit.request, response, prepared, before=visit.row)
        else:
            read = keeper.store_records(lease, response, prepared, patched, before=visit.row)
        read.row.volatile |= patched is not None or self._tables.has_parts(lease, visit.row)
        self._pages.admission.follow(read)
        after = self.recorder.version(lease.url, self._reader.analyse(response, prepared), prepared.body)
        self.recorder.add_change(visit, compared.verdict, read.row, read.ticket, after=after)
        visit.before.patches += not compared.verdict.is_change  # a version all the same
        self.recorder.recount(visit, read.row)
        found = VisitResult(compared.verdict, presence, compared.masks, compared.digest, read.row)
        self.recorder.finish(visit, found)
        keeper.announce(read)

    def _keep(self, visit: Visit, prepared: PreparedPage, compared: Comparison) -> None:
        """Other bytes, the same content: the stored version stays; its row has the header fields of the new one."""
        lease, response, old = visit.lease, visit.response, visit.row
        row = msgspec.structs.replace(
            old,
            etag=response.headers.get("etag", ""),
            last_modified=response.headers.get("last-modified", ""),
            volatile=self._reader.analyse(response, prepared).is_volatile or self._tables.has_parts(lease, old),
        )
        self._update_links(visit, prepared, row)
        self._archive.write_row(lease, row, None)
        self._revisit_record(visit, RevisitProfile.SAME_CONTENT)
        found = VisitResult(compared.verdict, visit.before.presence, compared.masks, compared.digest, row)
        self.recorder.finish(visit, found)

    def _update_links(self, visit: Visit, prepared: PreparedPage, row: PageRow) -> None:
        """Puts the links and directives of a page that is otherwise unchanged into its `row` and into the indexes."""
        lease, response = visit.lease, visit.response
        page, links = self._reader.analyse(response, prepared), prepared.links
        row.apply_directives(prepared.directives)
        before = self._documents.links(visit.key) or LinkRow(())
        if row.directives != visit.row.directives or link_row(links) != before:
            read = self._keeper.index_links(lease, response, row, links, page)
            self._pages.admission.follow(read)

    def _same(self, visit: Visit, profile: RevisitProfile) -> None:
        """Nothing has changed: links, index entry and version stay as they are."""
        before = visit.before
        if profile is RevisitProfile.NOT_MODIFIED:
            before.saved += visit.row.size_bytes
            self._shard.counters.visit_saved(visit.row.size_bytes, not_modified=True)
        self._revisit_record(visit, profile)
        self._check_original(visit)
        presence, verdict = before.presence, SAME
        if presence in NO_DOCUMENT:
            presence, verdict = Presence.PAGE, ChangeVerdict(ChangeKind.BACK, f"{presence} → page", 1)
            self.recorder.add_change(visit, verdict, visit.row, None)
        self.recorder.finish(visit, VisitResult(verdict, presence, before.masks.unchanged(), before.digest))

    def _check_original(self, visit: Visit) -> None:
        """A copy of a page that has changed or gone is a copy no more."""
        row, key = visit.row, visit.key
        if not row.original or not row.fingerprint:
            return
        if self._documents.first_with(row.fingerprint) is not None:
            self._documents.verify_copy(visit.lease.url, key, row)
        else:
            own = msgspec.structs.replace(row, original="")
            self._documents.on_stored(visit.lease.url, own)
            self._documents.record_first(key, own, self._documents.links(key) or LinkRow(()))
            self._archive.write_row(visit.lease, own, None)
            self.recorder.recount(visit, own)

    def _revisit_record(self, visit: Visit, profile: RevisitProfile) -> None:
        row = visit.row
        if row.is_followed_only:  # there is no record that it could refer to
            return
        known = OriginalRecord(visit.lease.url, row.fetched_s, row.payload_sha1)
        self._archive.add_records(self._archive.revisit(visit.lease, visit.request, visit.response, known, profile))

    def _patched(self, lease: Lease, request: Request, found: PatchedDocument | None, table_etag: str) -> None:
        """A table gave the document of now; None: it has not changed, nor has the document. Also a document with only
        volatile changes is a version of its own then, and in the history."""
        visit = self._begin(lease, request, found.document if found else Response(lease.url, status=304))
        row, before = visit.row, visit.before
        before.table_etag = table_etag
        before.by_table += 1
        before.same_tables = before.same_tables + 1 if found is None else 0
        before.saved += row.size_bytes
        self._shard.counters.visit_saved(row.size_bytes)
        if found is None:
            self.recorder.finish(visit, VisitResult(SAME, before.presence, before.masks.unchanged(), before.digest))
            return
        prepared = self._reader.digests(found.document)
        page = self._reader.analyse(found.document, prepared)
        compared = self._compare(visit, page, prepared.body, Presence.PAGE)
        if compared.verdict.is_change:  # its publisher calls volatile what the masks do not
            compared = msgspec.structs.replace(compared, verdict=ChangeVerdict(ChangeKind.VOLATILE))
        made = self._archive.patched(lease, request, found)
        self._store(visit, prepared, Presence.PAGE, compared, made)

    # sitemaps and redirects

    def _sitemap(self, visit: Visit) -> None:
        """A sitemap is read again: for URLs that are new, and for its dates."""
        if visit.response.status != 200:
            self.recorder.finish(visit, VisitResult(None, visit.before.presence, Masks(), b""))
            return
        if self._reader.digests(visit.response).digest == visit.row.digest:
            self._same(visit, RevisitProfile.SAME_PAYLOAD)
            return

        def finish(new: int) -> None:  # with the last of its URLs: a visit that is cut off counts for nothing
            found = VisitResult(SAME, visit.before.presence, Masks(), b"", is_renewed=new > 0)
            self.recorder.finish(visit, found, None)
            self._shard.counters.remove(visit.row)  # it was counted when it was first read

        self._rules.sitemap(visit.lease, visit.request, visit.response, finish)

    def _moved(self, visit: Visit) -> None:
        """A redirect is a change if there was none, or if it leads elsewhere; one that leads back here is a failure."""
        location = redirect_location(visit.response)
        target = parse_url(location, visit.lease.url)
        where = target.href if target else location
        if where == visit.row.location:
            self._archive.keep_answer(visit.lease, visit.request, visit.response)
            found = VisitResult(SAME, Presence.MOVED, visit.before.masks, visit.before.digest)
            self.recorder.finish(visit, found, UrlState.FAILED if visit.row.failure else UrlState.DONE)
            return
        if target is not None and url_key(target.href) == visit.key:  # a host that is confused, or wants a cookie
            self._archive.keep_answer(visit.lease, visit.request, visit.response)
            self._failed(visit, "a redirect to itself" if location else "a redirect to nowhere")
            return
        verdict = ChangeVerdict(ChangeKind.MOVED, f"to {where}", 1)
        self.recorder.add_change(visit, verdict, PageRow(visit.response.status, 0.0), None)
        self._documents.on_replaced(visit.lease.url, visit.key, visit.row)
        self.recorder.uncount(visit.lease.host, visit.row)
        row = PageRow(visit.response.status, self._shard.now_unix(), visit.lease.depth, location=where)
        self.recorder.finish(visit, VisitResult(verdict, Presence.MOVED, Masks(), b"", row), None)
        self._pages.redirected(visit.lease, visit.request, visit.response)
