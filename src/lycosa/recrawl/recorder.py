"""The recorder writes what a visit leaves behind in the open batch: history, visit row, next time and counts.

Every method writes what one commit holds together; nothing here judges. Bodies that the archive lacks (damaged in the
middle of a file, or never kept) are asked for without conditions, since a 304 would leave them missing for ever, and
stored; what is missing from the end of a file is found when the collection is opened. Called by `recrawl.revisits`.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import msgspec

from lycosa.crawl import Archive, DocumentStore, PreparedPage, Shard
from lycosa.frontier import Host, Lease, Reason, UrlState
from lycosa.records import Family, Request, Response
from lycosa.recrawl.change.content import Masks
from lycosa.recrawl.change.ignored import IgnoreRules
from lycosa.recrawl.change.schedule import estimate_rate
from lycosa.recrawl.change.structure import structure_digest
from lycosa.recrawl.change.verdict import SAME, ChangeKind, ChangeVerdict, Presence, Version
from lycosa.recrawl.plan import DAY_S, VisitPlanner
from lycosa.recrawl.versions import ChangeRow, VisitRow, change_key, due_key, history_rows, stored_at, version_at
from lycosa.store import ArchiveUnavailable, PageRow, WarcLocation
from lycosa.web import Page, url_key


class Visit(NamedTuple):
    """One visit: the request, its response, the rows of the page before it, and the page where it is read already."""

    lease: Lease
    request: Request
    response: Response
    key: bytes
    row: PageRow
    before: VisitRow
    prepared: PreparedPage | None = None


class VisitResult(NamedTuple):
    """What a visit says of a page. `verdict` is None if the host failed; `row` is the page's new row, if any;
    `is_renewed`: it names URLs that are new, which is no change to tell of: a sitemap."""

    verdict: ChangeVerdict | None
    presence: Presence
    masks: Masks
    digest: bytes
    row: PageRow | None = None
    is_renewed: bool = False


class PageChange(NamedTuple):
    """A change that is in the open commit, for whoever tells of it. `texts` reads the pieces of text of the version
    before and of the one after."""

    url: str
    at_s: float
    verdict: ChangeVerdict
    title: str
    status: int
    texts: Callable[[], tuple[Sequence[str], Sequence[str]]]


class VisitRecorder:
    """Records visits. `on_finished` hears of every visit that is over, with the visit row that it left, `on_change` of
    every change."""

    def __init__(self, shard: Shard, planner: VisitPlanner) -> None:
        self._shard, self._planner, self._ignore = shard, planner, IgnoreRules(shard.settings.ignore)
        self.on_finished: Callable[[Visit, VisitResult, VisitRow], None] | None = None
        self.on_change: Callable[[PageChange], None] | None = None

    def add_change(
        self,
        visit: Visit,
        verdict: ChangeVerdict,
        row: PageRow,
        ticket: int | None,
        *,
        at_s: float | None = None,
        after: Version | None = None,
    ) -> None:
        """Adds a row to the history; before the first of them, the version that was stored first. `after` is the new
        version; without one the text is that of before, or nothing if the page is gone."""
        old, now, committer = visit.row, self._shard.now_unix(), self._shard.committer
        if not (visit.before.changes or visit.before.patches) and old.fetched_s:
            opened = change_key(visit.key, min(old.fetched_s, now - 0.001))
            if self._shard.collection.state.get(Family.CHANGE, opened) is None:  # a page that was found new has it
                committer.change(opened, opening(old), None)
        committer.change(change_key(visit.key, at_s or now), _change_row(verdict, row), ticket)
        if self.on_change is not None and verdict.is_change:
            title = row.title or old.title
            status = row.status or visit.response.status
            texts = partial(self._texts, visit, verdict, after)
            self.on_change(PageChange(visit.lease.url, at_s or now, verdict, title, status, texts))

    def _texts(
        self, visit: Visit, verdict: ChangeVerdict, after: Version | None
    ) -> tuple[Sequence[str], Sequence[str]]:
        before = _text_of(self.stored(visit))
        if after is not None:
            return before, _text_of(after)
        return before, () if verdict.kind in (ChangeKind.GONE, ChangeKind.MOVED) else before

    def stored(self, visit: Visit) -> Version | None:
        """The stored version of the page that is visited, to be compared; None if it cannot be read."""
        url, reader = visit.lease.url, self._shard.reader
        found = version_at(self._shard.collection, visit.row.place, url, reader.analysers)
        return None if found is None else self.version(url, found.page, found.body)

    def version(self, url: str, page: Page, body: bytes) -> Version:
        """A version of the page of a URL, without what its rules leave out."""
        return Version(page, body, self._ignore.of(url))

    def finish(self, visit: Visit, found: VisitResult, state: UrlState | None = UrlState.DONE) -> None:
        """Writes what a visit says of its page and when the next is due. `state` None: its URL is finished later."""
        before, verdict, shard = visit.before, found.verdict, self._shard
        now, changed = shard.now_unix(), verdict is not None and verdict.is_change
        seen = before.seen
        if verdict is not None:
            days = (now - (before.checked_s or visit.row.fetched_s)) / DAY_S
            seen = seen.visited(days, changed=changed or found.is_renewed)
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
        self._planner.schedule(shard.committer.batch, visit.key, found.row or visit.row, after)
        if before.hint_s > before.checked_s:  # its host had said that it changed
            visit.lease.host.count(hints=1, hints_true=changed)
        shard.counters.visit(changed=changed)
        if state is not None:
            shard.frontier.outcomes.finish(
                visit.lease, state, Reason.STATUS if state is UrlState.FAILED else Reason.NONE
            )
        if self.on_finished is not None:
            self.on_finished(visit, found, after)

    def amend(self, visit: Visit, row: VisitRow, at_s: float) -> VisitRow:
        """Records that a finished visit found a change after all, at `at_s`. `row` is the visit row that it left; the
        new one is returned."""
        before, batch = visit.before, self._shard.committer.batch
        seen = before.seen.visited((at_s - (before.checked_s or visit.row.fetched_s)) / DAY_S, changed=True)
        if row.changes == before.changes:
            self._shard.counters.visit_changed()
        batch.delete(Family.DUE, due_key(visit.key, row))
        row = msgspec.structs.replace(
            row, checked_s=at_s, seen=seen, rate=estimate_rate(seen), changes=before.changes + 1
        )
        self._planner.schedule(batch, visit.key, visit.row, row)
        return row

    def recount(self, visit: Visit, row: PageRow) -> None:
        """Counts a URL as what its new row says, a page or a failure, and no longer as what it was."""
        self.uncount(visit.lease.host, visit.row)
        if row.status and row.status < 400:
            self._shard.counters.add(row)
            visit.lease.host.count(pages=1)
        else:
            self._shard.counters.failed(str(row.status or "none"))
            visit.lease.host.count(failed=1)

    def uncount(self, host: Host, row: PageRow) -> None:
        """Counts a URL no longer as what its row says."""
        self._shard.counters.remove(row)
        if row.failure or not (row.location or row.is_sitemap or 0 < row.status < 400):
            host.count(failed=-1)
        elif row.is_page:
            host.count(pages=-1)


class MissingBodies:
    """Finds and stores bodies that the archive lacks. `asked` are the URLs in flight whose body is missing."""

    def __init__(self, shard: Shard, archive: Archive, documents: DocumentStore, recorder: VisitRecorder) -> None:
        self._shard, self._archive, self._documents, self._recorder = shard, archive, documents, recorder
        self.asked: set[str] = set()

    def __repr__(self) -> str:
        return f"<MissingBodies asked={len(self.asked)}>"

    def is_missing(self, url: str, row: PageRow) -> bool:
        """Is a body missing that the archive should have?"""
        is_wanted = not self._archive.is_off and self._shard.reader.is_kept(url, row.essence)
        return is_wanted and not self._can_be_read(row)

    def _can_be_read(self, row: PageRow) -> bool:
        """Is the body in the archive, and whole? One in a central store, or in a file that is away, counts as whole."""
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
        """Stores the body of the same document in place of the missing one, also in the history."""
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
            is_followed_only=False,
        )
        shard.counters.remove(old)
        shard.counters.add(row)
        ticket = self._archive.add_records(made)
        self._archive.write_row(lease, row, ticket)
        for key, change in history_rows(shard.collection.state, visit.key):
            if change.is_version and (change.place, change.payload_sha1) == (old.place, old.payload_sha1):
                shard.committer.change(key, msgspec.structs.replace(change, payload_sha1=made.payload_sha1), ticket)
        shard.counters.lost(bool(old.place))
        before = visit.before
        self._recorder.finish(visit, VisitResult(SAME, before.presence, before.masks.unchanged(), before.digest, row))


def _text_of(version: Version | None) -> Sequence[str]:
    """The pieces of text of a version as people read them: where numbers are not compared they are still shown."""
    if version is None:
        return ()
    if version.ignored is not None:
        version = msgspec.structs.replace(version, ignored=msgspec.structs.replace(version.ignored, numbers=False))
    return version.content().pieces


def opening(row: PageRow, *, is_new: bool = False) -> ChangeRow:
    """The first row of a page's history. `is_new`: a recrawl found the page, so that it counts as a change."""
    return _change_row(ChangeVerdict(ChangeKind.NEW, size=int(is_new)), row, row.place)


def _change_row(verdict: ChangeVerdict, row: PageRow, place: bytes = b"") -> ChangeRow:
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
    """The presence of a page that was never visited again, by its row."""
    if row.location:
        return Presence.MOVED
    if not row.status or row.status >= 400:
        return Presence.GONE
    if row.essence.startswith("image/"):
        return Presence.IMAGE
    return Presence.PAGE if row.text_digest or row.original else Presence.FILE
