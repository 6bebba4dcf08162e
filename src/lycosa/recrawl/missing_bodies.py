"""Bodies that the archive lacks: damaged in the middle of a file, or never kept (`archive = none`, by now another).

A page without its body is asked for without conditions when it is looked at: a 304 would leave it so for ever. What
came is stored, and if it is the same document it takes the place of the lost one in the history. What is missing from
the end of a file is found when the collection is opened. Called by `recrawl.revisits`.
"""

import msgspec

from lycosa.crawl.archive import Archive, DocumentStore
from lycosa.crawl.shard import Shard
from lycosa.recrawl.change.verdict import SAME
from lycosa.recrawl.recorder import Visit, VisitRecorder, VisitResult
from lycosa.recrawl.rows import history_rows
from lycosa.recrawl.versions import stored_at
from lycosa.store import ArchiveUnavailable, PageRow, WarcLocation
from lycosa.web import url_key


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
