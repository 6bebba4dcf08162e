"""The recorder writes what a visit leaves behind in the open batch: history, visit row, next time and counts.

Every method writes what one commit holds together; nothing here judges. Bodies that the archive lacks (damaged in the
middle of a file, or never kept) are asked for without conditions, since a 304 would leave them missing for ever, and
stored. Called by `recrawl.revisits`.
"""

from collections.abc import Callable
from typing import NamedTuple

import msgspec

from lycosa.crawl.archive import Archive, DocumentStore
from lycosa.crawl.shard import Shard
from lycosa.crawl.stats import count_document
from lycosa.frontier import Host, Lease, Reason, UrlState
from lycosa.records import Family, Request, Response
from lycosa.recrawl.change.content import Masks
from lycosa.recrawl.change.schedule import estimate_rate
from lycosa.recrawl.change.structure import structure_digest
from lycosa.recrawl.change.verdict import SAME, ChangeKind, ChangeVerdict, Presence
from lycosa.recrawl.due import ChangeHints
from lycosa.recrawl.plan import DAY_S, VisitPlanner
from lycosa.recrawl.rows import ChangeRow, VisitRow, change_key, due_key, history_rows
from lycosa.recrawl.versions import stored_at
from lycosa.store import ArchiveUnavailable, PageRow, WarcLocation
from lycosa.web import url_key


class Visit(NamedTuple):
    """One visit under way: the request, and what is known of the page from before."""

    lease: Lease
    request: Request
    response: Response
    key: bytes
    row: PageRow
    before: VisitRow


class VisitResult(NamedTuple):
    """What a visit says of a page. `verdict` None: nothing, the host failed. `row` is the page's new row, if any."""

    verdict: ChangeVerdict | None
    presence: Presence
    masks: Masks
    digest: bytes
    row: PageRow | None = None


class VisitRecorder:
    """Keeps the books of visits."""

    def __init__(self, shard: Shard, documents: DocumentStore, plan: VisitPlanner) -> None:
        self._shard, self._documents, self._plan = shard, documents, plan
        self.on_settled: Callable[[Visit, VisitResult, VisitRow], None] | None = None

    def note(
        self, visit: Visit, verdict: ChangeVerdict, row: PageRow, ticket: int | None, *, at_s: float | None = None
    ) -> None:
        """One line of the history; before the first of them, the version that was there first."""
        old, now, committer = visit.row, self._shard.now_unix(), self._shard.committer
        if not (visit.before.changes or visit.before.patches) and old.fetched_s:
            opened = change_key(visit.key, min(old.fetched_s, now - 0.001))
            if (
                self._shard.collection.state.get(Family.CHANGE, opened) is None
            ):  # of a page that was found new it is there
                committer.change(opened, opening(old), None)
        committer.change(change_key(visit.key, at_s or now), _line(verdict, row), ticket)

    def settled(self, visit: Visit, found: VisitResult, state: UrlState | None = UrlState.DONE) -> None:
        """The visit is over: what it says of the page, and when the next is due. `state` None: settled elsewhere."""
        before, verdict, shard = visit.before, found.verdict, self._shard
        now, changed = shard.now_unix(), verdict is not None and verdict.is_change
        seen = before.seen
        if verdict is not None:
            seen = seen.visited((now - (before.checked_s or visit.row.fetched_s)) / DAY_S, changed=changed)
        after = msgspec.structs.replace(
            before,
            checked_s=now,
            seen=seen,
            rate=estimate_rate(seen),
            presence=found.presence,
            masks=found.masks,
            digest=found.digest,
            visits=before.visits + 1,
            changes=before.changes + changed,
            fails=before.fails if verdict is None else 0,
            trouble=before.trouble if verdict is None else "",
        )
        self._plan.schedule(shard.committer.batch, visit.key, found.row or visit.row, after, changed=changed)
        ChangeHints.proved(visit.lease.host, before, changed=changed)
        shard.counters.totals.visits += 1
        shard.counters.totals.visits_changed += changed
        if state is not None:
            shard.frontier.finish(visit.lease, state, Reason.STATUS if state is UrlState.FAILED else Reason.NONE)
        if self.on_settled is not None:
            self.on_settled(visit, found, after)

    def amended(self, visit: Visit, row: VisitRow, at_s: float) -> VisitRow:
        """A visit that was settled without a change found one after all, at `at_s`; `row` is what it left, what is left
        now is returned."""
        before, batch = visit.before, self._shard.committer.batch
        seen = before.seen.visited((at_s - (before.checked_s or visit.row.fetched_s)) / DAY_S, changed=True)
        self._shard.counters.totals.visits_changed += row.changes == before.changes
        batch.delete(Family.DUE, due_key(visit.key, row.due_s))
        row = msgspec.structs.replace(
            row, checked_s=at_s, seen=seen, rate=estimate_rate(seen), changes=before.changes + 1
        )
        self._plan.schedule(batch, visit.key, visit.row, row, changed=True)
        return row

    def forget_document(self, visit: Visit) -> None:
        """The old document is no longer to be had here: others that have it are no copies of this page."""
        self._documents.gone(self._shard.committer.batch, visit.lease.url, visit.key, visit.row)

    # counts: a URL is a page, a redirect or a failure, and after a visit it may be another one

    def recount(self, visit: Visit, row: PageRow) -> None:
        self.uncount(visit.lease.host, visit.row)
        totals, host = self._shard.counters.totals, visit.lease.host
        if row.status and row.status < 400:
            totals.pages += 1
            totals.duplicates += bool(row.original)
            count_document(totals, row)
            host.count(pages=1)
        else:
            totals.failed[str(row.status or "none")] += 1
            host.count(failed=1)

    def uncount(self, host: Host, row: PageRow) -> None:
        totals = self._shard.counters.totals
        if row.failure:
            totals.failed[row.failure] -= 1
            host.count(failed=-1)
        elif row.location:
            totals.redirects -= 1
        elif row.is_sitemap:
            totals.sitemaps -= 1
        elif row.status and row.status < 400:
            totals.pages -= 1
            totals.duplicates -= bool(row.original)
            count_document(totals, row, -1)
            host.count(pages=-1)
        else:
            totals.failed[str(row.status or "none")] -= 1
            host.count(failed=-1)


class MissingBodies:
    """See the module. `asked` are the URLs under way that have no body."""

    def __init__(self, shard: Shard, archive: Archive, documents: DocumentStore, books: VisitRecorder) -> None:
        self._shard, self._archive, self._documents, self._books = shard, archive, documents, books
        self.asked: set[str] = set()

    def __repr__(self) -> str:
        return f"<MissingBodies asked={len(self.asked)}>"

    def is_missing(self, row: PageRow) -> bool:
        """Should the archive have the body of a page, and has not?"""
        return not self._archive.is_off and not self._can_be_read(row)

    def _can_be_read(self, row: PageRow) -> bool:
        """Is the body in the archive, and whole? One in a central store or in a file that is away is not looked at."""
        if not row.place:
            return False
        first = self._documents.page(url_key(row.original)) if row.original else None
        if first is not None and first.payload_sha1 == row.payload_sha1:  # its body is fetched with its original
            return True
        if not self._shard.collection.warc.path(WarcLocation.unpack(row.place).file_number).exists():
            return True
        try:
            return stored_at(self._shard.collection, row.place, is_strict=True) is not None
        except ArchiveUnavailable:
            return True

    def store(self, visit: Visit, body: bytes) -> None:
        """The same document, whose body the archive had lost or never had: now it has, also for the history."""
        lease, response, shard, old = visit.lease, visit.response, self._shard, visit.row
        made = self._archive.exchange(lease, visit.request, response)
        row = msgspec.structs.replace(
            old,
            fetched_s=made.fetched_s,
            payload_sha1=made.payload_sha1,
            size_bytes=len(response.body),
            document_bytes=len(body),
            etag=response.headers.get("etag", ""),
            last_modified=response.headers.get("last-modified", ""),
        )
        ticket = self._archive.keep(made)
        self._archive.put(lease, row, ticket)
        for key, change in history_rows(shard.collection.state, visit.key):
            if change.is_version and (change.place, change.payload_sha1) == (old.place, old.payload_sha1):
                shard.committer.change(key, msgspec.structs.replace(change, payload_sha1=made.payload_sha1), ticket)
        shard.counters.run_lost += bool(old.place)
        before = visit.before
        self._books.settled(visit, VisitResult(SAME, before.presence, before.masks.unchanged(), before.digest, row))


def opening(row: PageRow, *, is_new: bool = False) -> ChangeRow:
    """The first line of a page's history: `is_new` where a recrawl found the page, so that it counts as a change."""
    return _line(ChangeVerdict(ChangeKind.NEW, size=int(is_new)), row, row.place)


def _line(verdict: ChangeVerdict, row: PageRow, place: bytes = b"") -> ChangeRow:
    return ChangeRow(
        verdict.kind,
        verdict.where,
        verdict.size,
        verdict.also,
        row.status,
        row.essence,
        row.size_bytes,
        place,
        row.payload_sha1,
        row.document_bytes,
        row.codes,
        structure_digest(row.structure),
        verdict.pictures,
    )


def presence_of_row(row: PageRow) -> Presence:
    """What stood at a URL when it was stored; for pages that were never looked at again."""
    if row.location:
        return Presence.MOVED
    if not row.status or row.status >= 400:
        return Presence.GONE
    if row.essence.startswith("image/"):
        return Presence.IMAGE
    return Presence.PAGE if row.text_digest or row.original else Presence.FILE
