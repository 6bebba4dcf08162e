"""The document-and-URL buffer (P5): outcomes gather here and become one commit.

Order is the guarantee: append the ready WARC members in one write, then one batch with everything the outcomes changed
and the archive's new length. Only then is the world told. A commit that fails keeps all it has and is tried again.
Filled by the engine with every settled request, emptied by `commit`.
"""

from collections.abc import Callable, Container
from typing import TYPE_CHECKING

from lycosa.records import Family
from lycosa.store import Batch, CollectionStore, PageRow, pack_row

if TYPE_CHECKING:
    from lycosa.recrawl.rows import ChangeRow

SYNC_EVERY_S = 1.0


class Committer:
    """Gathers WARC members, rows and announcements; `batch` is open for the frontier and the engine to write to."""

    def __init__(self, collection: CollectionStore, *, syncs: bool) -> None:
        self._collection, self._syncs = collection, syncs
        self.batch = Batch()
        self._members: list[bytes] = []
        self._pages: list[tuple[bytes, PageRow, int | None]] = []
        self._changes: list[tuple[bytes, ChangeRow, int | None]] = []
        self._announcements: list[Callable[[], None]] = []
        self._is_appended = False
        self.has_failed = False  # a commit is half done: nothing may be added until it has succeeded
        self._synced_at = float("-inf")
        self.waiting = 0
        self.commits = 0

    def __repr__(self) -> str:
        return f"<Committer waiting={self.waiting} commits={self.commits}>"

    def archive(self, members: list[bytes], place_of: int | None = None) -> int | None:
        """Adds WARC members; returns a ticket for the place of member `place_of`."""
        ticket = None if place_of is None else len(self._members) + place_of
        self._members += members
        self.waiting += 1
        return ticket

    def page(self, key: bytes, row: PageRow, ticket: int | None) -> None:
        """Adds a page row; its place is filled in when the archive has the record."""
        self._pages.append((key, row, ticket))

    def pending(self, keys: Container[bytes]) -> dict[bytes, PageRow]:
        """The rows among those of these pages that are not on disk yet; they may still be changed."""
        return {key: row for key, row, _ in self._pages if key in keys}

    def change(self, key: bytes, row: "ChangeRow", ticket: int | None) -> None:
        """Adds a row of the history; its place is filled in likewise."""
        self._changes.append((key, row, ticket))

    def announce(self, tell: Callable[[], None]) -> None:
        """Called once the commit is done."""
        self._announcements.append(tell)

    def commit(self, now: float, write_last: Callable[[Batch], None]) -> None:
        """One commit; raises StoreError with everything kept. `write_last` puts the rows that change until the end."""
        self.has_failed = True  # until it is over
        if not self._is_appended:
            places = self._collection.warc.append(self._members) if self._members else []
            for key, row, ticket in self._pages:
                if ticket is not None:
                    row.place = places[ticket].pack()
                self.batch.put(Family.PAGE, key, pack_row(row))
            for key, change, ticket in self._changes:
                if ticket is not None:
                    change.place = places[ticket].pack()
                self.batch.put(Family.CHANGE, key, change.pack())
            self._members, self._pages, self._changes, self._is_appended = [], [], [], True
            write_last(self.batch)
        sync = self._syncs and now - self._synced_at >= SYNC_EVERY_S
        self._collection.commit(self.batch, sync=sync)
        if sync:
            self._synced_at = now
        self.batch, self._is_appended, self.waiting, self.has_failed = Batch(), False, 0, False
        self.commits += 1

    def announce_all(self) -> None:
        """Tells the world what is committed; the engine calls it after a commit that succeeded."""
        told, self._announcements = self._announcements, []
        for tell in told:
            tell()
