"""What is for reading in many pages: read in this process, or by others on all cores where there are enough of them.

A record that is damaged is skipped and counted. A file that is missing, or a store that cannot be reached, is not: it
may come back, and until then nobody knows what those pages say. It raises `ArchiveAway`, unless told otherwise.
Called by the indexer; the archive is read, nothing is written.
"""

import contextlib
from collections.abc import Iterator, Sequence

from lycosa.engine.contents import Contents
from lycosa.engine.findable import Member
from lycosa.engine.read_ahead import ReadAhead, read_one
from lycosa.store import ArchiveAway, Collection
from lycosa.web.media import Media, kind_of
from lycosa.web.page import is_usual
from lycosa.web.readable import Readable, readable

MANY_PAGES = 2_000  # from here on it pays to start processes


class Texts:
    """The readable texts of a collection's pages. `unread` counts those of which nothing could be read; with
    `skips_missing` a missing file is no more than that; `for_snippets` leaves out what is not to be shown."""

    def __init__(self, collection: Collection, *, skips_missing: bool = False, for_snippets: bool = False) -> None:
        self._skips_missing, self._for_snippets = skips_missing, for_snippets
        self.unread = 0
        self._contents, self._folders = Contents(collection), collection.warc_folders
        self._analysers = self._contents.analysers
        self._ahead: ReadAhead | None = None

    def __repr__(self) -> str:
        return f"<Texts {self._ahead or 'read here'}>"

    @contextlib.contextmanager
    def expected(self, pages: int) -> Iterator[None]:
        """So many pages will be asked for until the end of it."""
        if pages >= MANY_PAGES:
            self._ahead = ReadAhead(self._folders)
        try:
            yield
        finally:
            ahead, self._ahead = self._ahead, None
            if ahead is not None:
                ahead.close()

    def of(self, members: Sequence[Member]) -> Iterator[Readable | None]:
        """What is for reading in each; None where its record is damaged. Other processes begin at once."""
        plain = ((member.url, member.row.place) for member in members if self._is_plain(member))
        if self._ahead is None:
            for_snippets = self._for_snippets
            found = (read_one(self._folders, *each, for_snippets=for_snippets) for each in plain)
            return self._closer(members, found)
        return self._closer(members, self._ahead.map(plain))

    def _closer(self, members: Sequence[Member], plain: Iterator[Readable | None]) -> Iterator[Readable | None]:
        """The same, with a closer look where a body is elsewhere."""
        for member in members:
            found = next(plain) if self._is_plain(member) else None
            if found is None and member.row.place:
                found = self._looked_for(member)
                self.unread += found is None
            self.unread += member.row.lacks_body
            yield found

    def _looked_for(self, member: Member) -> Readable | None:
        try:
            content = self._contents.read(member.row)
        except ArchiveAway:
            if not self._skips_missing:
                raise
            return None
        if content is None:
            return None
        fields, body = content
        return readable(
            body,
            url=member.url,
            content_type=fields.get("content-type"),
            analysers=self._analysers,
            for_snippets=self._for_snippets,
        )

    def _is_plain(self, member: Member) -> bool:
        """Has it a record with a body of its own, as far as its row knows, that the usual analysers read?"""
        row = member.row
        is_usually_read = self._analysers is None or is_usual(self._analysers, Media(kind_of(row.essence), row.essence))
        return bool(row.place) and not row.original and is_usually_read
