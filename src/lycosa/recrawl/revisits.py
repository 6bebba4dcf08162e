"""Looking at pages again: what is due is queued, asked for with conditions, judged, and kept only if it changed.

A visit ends in one commit: the page's row, its history, its visit row and its next time, beside the records. So a kill
counts no visit twice and loses none: what was not committed is still queued. Unchanged pages keep their links, their
place in the index and their stored version. Errors and odd answers (login forms, empty bodies) never replace a version.
Called by the outcomes with every answer to a revisit, by the engine for what is due.
"""

from collections.abc import Callable
from typing import NamedTuple

import msgspec

from lycosa.crawl.archive import Archive, DocumentStore, PatchedDocument
from lycosa.crawl.reading import decoded_body, redirect_location
from lycosa.crawl.shard import Shard
from lycosa.frontier import KEY_END, FrontierHook, Host, Lease, QueueEntry, Reason, UrlState
from lycosa.frontier import RequestKind as EntryKind
from lycosa.records import Family, Request, Response, Truncation
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
from lycosa.recrawl.due import ChangeHints
from lycosa.recrawl.images import ImageRevisits
from lycosa.recrawl.plan import VisitPlanner
from lycosa.recrawl.recorder import MissingBodies, Visit, VisitRecorder, VisitResult, opening, presence_of_row
from lycosa.recrawl.rows import VisitRow, change_key, visit_of
from lycosa.recrawl.table_revisits import TableRevisits
from lycosa.recrawl.versions import version_at
from lycosa.store import HttpExchange, LinkRow, OriginalRecord, PageRow, RevisitProfile, unpack_page
from lycosa.web import Analysers, Page, RobotsDirectives, TextCodes, document_digest, parse_url, url_key

GIVE_UP_AFTER = 3  # visits in a row that brought nothing: then the page is gone
NO_DOCUMENT = frozenset({Presence.EMPTY, Presence.LOGIN})


class RevisitReader(NamedTuple):
    """What the outcomes lend for a page that has to be read: how it is analysed, followed, kept and told of."""

    read: Callable[[Response, bytes], Page]
    links: Callable[[Page, Response], tuple[LinkRow, RobotsDirectives]]  # what is followed, what it says to robots
    row: Callable[[Lease, Response, Page, HttpExchange, RobotsDirectives, bytes], PageRow]
    follow: Callable[[LinkRow, Lease, bytes, PageRow, Page | None], object]
    tell: Callable[[PageRow, str, Page | None, Response], None]
    redirected: Callable[[Lease, Request | None, Response], None]
    sitemap: Callable[[Lease, Request | None, Response, Callable[[], None] | None], None]
    decoded_cap: int
    analysers: Analysers | None


class Revisits(FrontierHook):
    """Settles revisits. Watches the frontier for those that robots.txt forbids by now."""

    def __init__(
        self, shard: Shard, archive: Archive, documents: DocumentStore, plan: VisitPlanner, reader: RevisitReader
    ) -> None:
        self._shard, self._archive, self._documents, self.plan, self._reader = shard, archive, documents, plan, reader
        self.hints = ChangeHints(shard)
        self._state, self._books = shard.collection.state, VisitRecorder(shard, documents, plan)
        self.tables, self.pictures = (
            TableRevisits(shard, archive, self.patched),
            ImageRevisits(shard, documents, self._books),
        )
        self._bodies = MissingBodies(shard, archive, documents, self._books)
        shard.frontier.add_hook(self)

    # what the frontier tells

    def dropped(self, host: Host, entry: QueueEntry, reason: Reason) -> None:
        """A page may no longer be asked for: it is not a page any more, but what is stored stays."""
        if entry.kind is EntryKind.REVISIT:
            packed = self._state.get(Family.PAGE, host.key + KEY_END + entry.path.encode())
            if packed:
                self._books.uncount(host, unpack_page(packed))

    # asking

    def conditions(self, lease: Lease) -> tuple[tuple[str, str], ...]:
        """The header fields that ask for a page only if it changed."""
        self._bodies.asked.discard(lease.url)
        packed = self._state.get(Family.PAGE, url_key(lease.url))
        row = unpack_page(packed) if packed else None
        if row is None or row.status != 200 or row.truncated:
            return ()
        visit = visit_of(self._state, url_key(lease.url))
        if visit is not None and visit.presence in NO_DOCUMENT:
            return ()
        if row.is_page and self._bodies.is_missing(row):
            self._bodies.asked.add(lease.url)
            return ()
        fields = (("If-None-Match", row.etag), ("If-Modified-Since", row.last_modified))
        return tuple((name, value) for name, value in fields if value and value.isascii() and value.isprintable())

    # settling

    def settle(self, lease: Lease, request: Request, response: Response) -> None:
        """An answer that is no failure."""
        visit = self._begun(lease, request, response)
        visit.before.table_etag = ""  # of the version before this one
        visit.before.by_table = visit.before.same_tables = 0
        if response.status == 304:
            self._same(visit, RevisitProfile.NOT_MODIFIED)
        elif visit.row.is_sitemap:
            self._sitemap(visit)
        elif response.status in (301, 302, 303, 307, 308):
            self._moved(visit)
        elif response.truncated is Truncation.UNWANTED:
            essence = response.headers.get("content-type", "another type")
            self._gone(visit, f"now {essence[:60]}, which is not wanted")
        elif response.truncated and not visit.row.truncated:
            self._archive.keep_answer(lease, request, response)
            self._failed(visit, f"cut off: {response.truncated}")
        else:
            self._document(visit)

    def patched(self, lease: Lease, request: Request, found: PatchedDocument | None, table_etag: str) -> None:
        """A table gave the document of now: also what is only volatile is a version of its own, and in the history.

        None: the table has not changed, nor has the document.
        """
        visit = self._begun(lease, request, found.document if found else Response(lease.url, status=304))
        row, before = visit.row, visit.before
        before.table_etag = table_etag
        before.by_table += 1
        before.same_tables = before.same_tables + 1 if found is None else 0
        self._shard.counters.totals.visits_saved_bytes += row.size_bytes
        before.saved += row.size_bytes
        if found is None:
            self._books.settled(visit, VisitResult(SAME, before.presence, before.masks.unchanged(), before.digest))
            return
        page = self._reader.read(found.document, found.document.body)
        compared = self._compared(visit, page, found.document.body, Presence.PAGE)
        if compared.verdict.is_change:  # its publisher calls volatile what our own eye would not
            compared = msgspec.structs.replace(compared, verdict=ChangeVerdict(ChangeKind.VOLATILE))
        made = self._archive.patched(lease, request, found)
        self._store(visit, page, Presence.PAGE, compared, found.document.body, made)

    def given_up(self, lease: Lease, request: Request | None, response: Response, name: str) -> None:
        """The retry table has nothing more to try: gone at once where the answer says so, else after some visits."""
        visit = self._begun(lease, request or Request(lease.url, "", 0, ""), response)
        if visit.row.has_failed:
            self._failed_again(visit, name)
        elif visit.row.is_sitemap:
            self._books.settled(visit, VisitResult(None, visit.before.presence, Masks(), b""))
        elif response.failure is None and 400 <= response.status < 500:
            self._gone(visit, name)
        else:
            self._failed(visit, name)

    # pages that were none before

    def had_failed(self, lease: Lease) -> PageRow | None:
        """The row of a URL that has failed and was never a page: its answer is settled as that of a first request."""
        packed = self._state.get(Family.PAGE, url_key(lease.url))
        row = unpack_page(packed) if packed else None
        return row if row is not None and row.has_failed else None

    def recovered(self, lease: Lease, row: PageRow, response: Response) -> None:
        """Such a URL counts as failed no more, unless its media type is not wanted: then it is counted when it is
        dropped."""
        self._shard.counters.totals.visits += 1
        if response.truncated is not Truncation.UNWANTED:
            self._books.uncount(lease.host, row)

    def found_new(self, key: bytes, row: PageRow, ticket: int | None) -> None:
        """Opens the history of a page that was not there when the collection was crawled."""
        self._shard.committer.change(change_key(key, row.fetched_s), opening(row, is_new=True), ticket)

    def _failed_again(self, visit: Visit, name: str) -> None:
        """A URL that was never a page has failed once more, maybe for another reason."""
        lease, shard, totals = visit.lease, self._shard, self._shard.counters.totals
        row = msgspec.structs.replace(
            visit.row, status=visit.response.status, fetched_s=shard.now_unix(), location="", failure=name
        )
        self._books.uncount(lease.host, visit.row)
        totals.failed[name] += 1
        totals.visits += 1
        lease.host.count(failed=1)
        self._archive.put(lease, row, None)
        shard.frontier.finish(lease, UrlState.FAILED, Reason.FAILURE if visit.response.failure else Reason.STATUS)

    def _begun(self, lease: Lease, request: Request, response: Response) -> Visit:
        key = url_key(lease.url)
        packed = self._state.get(Family.PAGE, key)
        row = unpack_page(packed) if packed else PageRow(0, 0.0, lease.depth)
        before = visit_of(self._state, key) or VisitRow()
        if not before.visits:
            before.presence = presence_of_row(row)
        return Visit(lease, request, response, key, row, before)

    def _document(self, visit: Visit) -> None:
        """An answer with a body."""
        row, before, response = visit.row, visit.before, visit.response
        body = decoded_body(response, self._reader.decoded_cap)
        is_missing = visit.lease.url in self._bodies.asked
        self._bodies.asked.discard(visit.lease.url)
        if row.digest and before.presence is not Presence.GONE and document_digest(body) == row.digest:
            if row.said != RobotsDirectives() or "x-robots-tag" in response.headers:  # that is no part of the payload
                now = msgspec.structs.replace(row)
                self._heed(visit, self._reader.read(response, body), now)
                self._archive.put(visit.lease, now, None)
                visit = visit._replace(row=now)
            if is_missing:
                self._bodies.store(visit, body)
            else:
                self._same(visit, RevisitProfile.SAME_PAYLOAD)
            return
        page = self._reader.read(response, body)
        presence = presence_of(page, body)
        verdict = change_of_state(before.presence, presence, page.media.essence)
        compared = Comparison(verdict or SAME, before.masks, b"")
        if presence in NO_DOCUMENT:
            if compared.verdict.is_change:
                self._books.note(visit, compared.verdict, row, None)
            self._books.settled(visit, VisitResult(compared.verdict, presence, before.masks, before.digest))
            return
        if verdict is None:
            compared = self._compared(visit, page, body, presence)
        if compared.verdict.is_change:
            if verdict is None and (pictures := self.pictures.changed_before(visit)):
                said = compared.verdict
                also = said.also if ChangeKind.IMAGE in (said.kind, *said.also) else (*said.also, ChangeKind.IMAGE)
                verdict = msgspec.structs.replace(compared.verdict, also=also, pictures=pictures)
                compared = msgspec.structs.replace(compared, verdict=verdict)
            self.hints.heard_feed(visit.lease, page, body)
            self._store(visit, page, presence, compared, body)
        elif is_missing:
            self._shard.counters.run_lost += bool(row.place)
            self._store(visit, page, presence, compared, body)
        else:
            self._keep(visit, page, compared)

    def _compared(self, visit: Visit, page: Page, body: bytes, presence: Presence) -> Comparison:
        row, before = visit.row, visit.before

        def stored() -> Version | None:
            return version_at(self._shard.collection, row.place, visit.lease.url, self._reader.analysers)

        if presence is Presence.PAGE:
            known = PageParameters(row.structure, TextCodes(*row.codes)) if row.structure[0] or row.codes[3] else None
            return judge_page(Version(page, body), before.masks, before.digest or row.content, stored, known)
        return judge_file(presence, body, before.digest or row.content, stored)

    def _store(
        self,
        visit: Visit,
        page: Page,
        presence: Presence,
        compared: Comparison,
        body: bytes,
        patched: HttpExchange | None = None,
    ) -> None:
        """A new version: it takes the place of the stored one, which stays in the archive."""
        lease, response, key = visit.lease, visit.response, visit.key
        links, said = self._reader.links(page, response)
        if patched is not None:
            made, original = patched, ""
        else:
            made, original = self._archive.version(lease, visit.request, response, page, self._documents)
        row = self._reader.row(lease, response, page, made, said, body)
        row.original = original
        row.volatile |= patched is not None or self.tables.has_parts(lease, visit.row)
        ticket = self._archive.keep(made)
        self._archive.put(lease, row, ticket)
        self._books.forget_document(visit)
        if self._documents.first_with(row.fingerprint) is None:
            self._documents.note(self._shard.committer.batch, key, row, links)
        self._documents.stored(lease.url, row)
        self._reader.follow(links, lease, key, row, page)
        self._books.note(visit, compared.verdict, row, ticket)
        visit.before.patches += not compared.verdict.is_change  # a version all the same
        self._books.recount(visit, row)
        self._books.settled(visit, VisitResult(compared.verdict, presence, compared.masks, compared.digest, row))
        self._reader.tell(row, lease.url, page, response)

    def _keep(self, visit: Visit, page: Page, compared: Comparison) -> None:
        """Other bytes, the same content: what is stored stays, and says by which fields it was seen last."""
        lease, response, old = visit.lease, visit.response, visit.row
        row = msgspec.structs.replace(
            old,
            etag=response.headers.get("etag", ""),
            last_modified=response.headers.get("last-modified", ""),
            volatile=page.is_volatile or self.tables.has_parts(lease, old),
        )
        self._heed(visit, page, row)
        self._archive.put(lease, row, None)
        self._revisit_record(visit, RevisitProfile.SAME_CONTENT)
        found = VisitResult(compared.verdict, visit.before.presence, compared.masks, compared.digest, row)
        self._books.settled(visit, found)

    def _heed(self, visit: Visit, page: Page, row: PageRow) -> None:
        """Links and directives of a page that is otherwise as it was: `row` has them then, and those who index hear."""
        links, said = self._reader.links(page, visit.response)
        row.obey(said)
        if row.said != visit.row.said or links != (self._documents.links(visit.key) or LinkRow(())):
            self._reader.follow(links, visit.lease, visit.key, row, page)

    def _same(self, visit: Visit, profile: RevisitProfile) -> None:
        """The very same: links, index entry and version stay as they are."""
        before, totals = visit.before, self._shard.counters.totals
        if profile is RevisitProfile.NOT_MODIFIED:
            totals.not_modified += 1
            before.saved += visit.row.size_bytes
            totals.visits_saved_bytes += visit.row.size_bytes
        self._revisit_record(visit, profile)
        self._without_original(visit)
        presence, verdict = before.presence, SAME
        if presence in NO_DOCUMENT:
            presence, verdict = Presence.PAGE, ChangeVerdict(ChangeKind.BACK, f"{presence} → page", 1)
            self._books.note(visit, verdict, visit.row, None)
        self._books.settled(visit, VisitResult(verdict, presence, before.masks.unchanged(), before.digest))

    def _without_original(self, visit: Visit) -> None:
        """A copy of a page that has changed or gone is a copy no more."""
        row, key = visit.row, visit.key
        if row.original and row.fingerprint and self._documents.first_with(row.fingerprint) is None:
            own = msgspec.structs.replace(row, original="")
            self._documents.stored(visit.lease.url, own)
            self._documents.note(self._shard.committer.batch, key, own, self._documents.links(key) or LinkRow(()))
            self._archive.put(visit.lease, own, None)
            self._books.recount(visit, own)

    def _revisit_record(self, visit: Visit, profile: RevisitProfile) -> None:
        row = visit.row
        known = OriginalRecord(visit.lease.url, row.fetched_s, row.payload_sha1)
        self._archive.keep(self._archive.revisit(visit.lease, visit.request, visit.response, known, profile))

    def _sitemap(self, visit: Visit) -> None:
        """A sitemap is read again: for URLs that are new, and for what it says of changes."""
        if visit.response.status != 200:
            self._books.settled(visit, VisitResult(None, visit.before.presence, Masks(), b""))
            return
        if document_digest(decoded_body(visit.response, self._reader.decoded_cap)) == visit.row.digest:
            self._same(visit, RevisitProfile.SAME_PAYLOAD)
            return

        def settle() -> None:  # with the last of its URLs: a visit that is cut off counts for nothing
            self._books.settled(visit, VisitResult(SAME, visit.before.presence, Masks(), b""), None)
            self._shard.counters.totals.sitemaps -= 1  # it was counted when it was first read

        self._reader.sitemap(visit.lease, visit.request, visit.response, settle)

    def _moved(self, visit: Visit) -> None:
        """A redirect: news if there was none, or if it leads elsewhere; one that leads back here is a failure."""
        target = parse_url(redirect_location(visit.response), visit.lease.url)
        where = target.href if target else redirect_location(visit.response)
        if where == visit.row.location:
            self._archive.keep_answer(visit.lease, visit.request, visit.response)
            found = VisitResult(SAME, Presence.MOVED, visit.before.masks, visit.before.digest)
            self._books.settled(visit, found, UrlState.FAILED if visit.row.failure else UrlState.DONE)
            return
        if target is not None and url_key(target.href) == visit.key:  # a host that is confused, or wants a cookie
            self._archive.keep_answer(visit.lease, visit.request, visit.response)
            self._failed(
                visit, "a redirect to itself" if redirect_location(visit.response) else "a redirect to nowhere"
            )
            return
        verdict = ChangeVerdict(ChangeKind.MOVED, f"to {where}", 1)
        self._books.note(visit, verdict, PageRow(visit.response.status, 0.0), None)
        self._books.forget_document(visit)
        self._books.uncount(visit.lease.host, visit.row)
        row = PageRow(visit.response.status, self._shard.now_unix(), visit.lease.depth, location=where)
        self._books.settled(visit, VisitResult(verdict, Presence.MOVED, Masks(), b"", row), None)
        self._reader.redirected(visit.lease, visit.request, visit.response)

    def _gone(self, visit: Visit, why: str) -> None:
        """What was here is not any more: it leaves the index, its versions stay in the archive."""
        lease, shard, before = visit.lease, self._shard, visit.before
        if before.presence is Presence.GONE:
            self._books.settled(visit, VisitResult(SAME, Presence.GONE, before.masks, before.digest), UrlState.FAILED)
            return
        verdict = ChangeVerdict(ChangeKind.GONE, why, 1)
        status = visit.response.status if visit.response.status >= 400 else 0
        row = PageRow(status, shard.now_unix(), lease.depth)
        self._books.note(visit, verdict, row, None)
        self._books.forget_document(visit)
        shard.linker.gone(lease.url, visit.key, row)
        self._archive.put(lease, row, None)
        self._books.recount(visit, row)
        found = VisitResult(verdict, Presence.GONE, before.masks, before.digest, row)
        self._books.settled(visit, found, UrlState.FAILED)

    def _failed(self, visit: Visit, why: str) -> None:
        """Nothing came: what is stored stays, until that has happened several times in a row."""
        before = visit.before
        before.fails, before.trouble = before.fails + 1, why
        is_gone = before.presence is Presence.GONE
        if before.fails >= GIVE_UP_AFTER and not is_gone:
            self._gone(visit, why)
            return
        state = UrlState.FAILED if is_gone else UrlState.DONE
        self._books.settled(visit, VisitResult(None, before.presence, before.masks, before.digest), state)
