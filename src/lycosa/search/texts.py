"""The readable texts of many pages: read in this process, or by workers on all cores where there are enough pages.

A record that is damaged is skipped and counted. A file that is missing, or a store that cannot be reached, is not: it
may come back, and until then nobody knows what those pages say. It raises `ArchiveUnavailable`, unless `skips_missing`.
Workers (`search.workers`) are used while an index is built, or catches up when its crawl is over. Called by the
indexer and by views; nothing is written.
"""

import contextlib
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from lycosa.search.documents import IndexMember
from lycosa.search.text_log import TextLogReader
from lycosa.search.workers import MANY_DOCUMENTS, ArchiveWorkers, serve, stored_message
from lycosa.store import ArchiveUnavailable, CollectionStore
from lycosa.web import Media, Readable, is_built_in, media_kind

if TYPE_CHECKING:
    from lycosa.recrawl import StoredDocuments


class PageTexts:
    """The readable texts of a collection's pages. `unread` counts those of which nothing could be read; with
    `skips_missing` a missing file is no more than that; `for_snippets` leaves out what is not to be shown."""

    def __init__(
        self,
        collection: CollectionStore,
        *,
        skips_missing: bool = False,
        for_snippets: bool = False,
        log: TextLogReader | None = None,
    ) -> None:
        self._skips_missing, self._for_snippets, self._log = skips_missing, for_snippets, log
        self.unread = 0
        self._collection, self._folders = collection, collection.warc_folders
        self._pool: ArchiveWorkers[Readable] | None = None
        self._are_many = False  # pages are asked for: workers pay

    def __repr__(self) -> str:
        return f"<PageTexts {self._pool or 'read here'}>"

    @cached_property
    def _contents(self) -> "StoredDocuments":
        # lazy: 55 ms, which the follower of a crawl need not take, since texts come to it in the log
        from lycosa.recrawl import StoredDocuments

        return StoredDocuments(self._collection)

    @contextlib.contextmanager
    def expected(self, pages: int) -> Iterator[None]:
        """Within this context about so many pages will be asked for: where they are many, workers read them."""
        self._are_many = pages >= MANY_DOCUMENTS
        try:
            yield
        finally:
            self._are_many = False
            pool, self._pool = self._pool, None
            if pool is not None:
                pool.close()

    def of(self, members: Sequence[IndexMember]) -> Iterator[Readable | None]:
        """The readable text of each; None where its record is damaged. Workers begin at once."""
        log = self._log
        logged = {each.number: log.text(each.number, each.row.digest) for each in members} if log is not None else {}
        plain = [
            (member.url, member.row.place)
            for member in members
            if logged.get(member.number) is None and self._is_plain(member)
        ]
        if plain and self._are_many and self._pool is None:
            self._pool = ArchiveWorkers(__name__, read_text, list[Readable | None], self._folders)
        if self._pool is not None:
            return self._completed(members, logged, self._pool.map(plain))
        read = (read_text(self._folders, *each, for_snippets=self._for_snippets) for each in plain)
        return self._completed(members, logged, read)

    def _completed(
        self, members: Sequence[IndexMember], logged: dict[int, Readable | None], plain: Iterator[Readable | None]
    ) -> Iterator[Readable | None]:
        """The texts of all members: those in the log, those in `plain`, and those whose body has to be looked for."""
        for member in members:
            found = logged.get(member.number)
            if found is None and self._is_plain(member):
                found = next(plain)
            if found is None and member.row.place:
                found = self._look_for(member)
                self.unread += found is None
            self.unread += member.row.lacks_body
            yield found

    def _look_for(self, member: IndexMember) -> Readable | None:
        try:
            content = self._contents.read(member.row)
        except ArchiveUnavailable:
            if not self._skips_missing:
                raise
            return None
        if content is None:
            return None
        from lycosa.web import extract_readable  # lazy: 17 ms, as above

        fields, body = content
        return extract_readable(
            body,
            url=member.url,
            content_type=fields.get("content-type"),
            analysers=self._contents.analysers,
            for_snippets=self._for_snippets,
        )

    def _is_plain(self, member: IndexMember) -> bool:
        """Has the page a record with a body of its own, as far as its row says, that the built-in analysers read?"""
        row = member.row
        analysers = self._contents.analysers
        is_usually_read = analysers is None or is_built_in(analysers, Media(media_kind(row.essence), row.essence))
        return bool(row.place) and not row.original and is_usually_read


def read_text(folders: Sequence[Path], url: str, place: bytes, *, for_snippets: bool = False) -> Readable | None:
    """The readable text of a record; None if the archive, in these folders and their stores, no longer has it."""
    from lycosa.web import extract_readable  # lazy: 17 ms, as above

    stored = stored_message(folders, place)
    if stored is None:
        return None
    return extract_readable(stored.body, url=url, content_type=stored.field(b"content-type"), for_snippets=for_snippets)


def main() -> None:
    """The worker process."""
    serve(read_text)
