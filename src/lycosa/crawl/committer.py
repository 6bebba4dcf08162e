"""The committer gathers the outcomes of many requests and makes them one commit.

Order is the guarantee: the participants write what they hold into the open batch; the WARC members are appended in one
write; then one batch with everything that the outcomes changed and the archive's new length goes to the state. Only
then do participants and listeners hear of it. A commit that fails keeps all it has and is tried again; until it has
succeeded nothing may be added (`has_failed`). Filled by whoever reads an answer, emptied by the loop.
"""

from collections.abc import Callable, Container
from typing import Protocol

from lycosa.errors import StoreError, is_about_room
from lycosa.records import Family
from lycosa.store import Batch, CollectionStore, PageRow, pack_row
from lycosa.web import Readable

SYNC_EVERY_S = 1.0
COMMIT_AGAIN_S = 1.0
COMMIT_TRIES = 10  # a second apart; then the crawl ends with what is committed


class CommitParticipant(Protocol):
    """Whoever has rows to write into a commit, or something to do when it is on disk."""

    def before_commit(self, batch: Batch, *, is_last: bool) -> None:
        """Puts into the batch what this commit has to hold; called again, with more, if a row could not be read."""
        return  # not abstract: who only wants to hear of commits need not write it

    def on_committed(self) -> None:
        """The commit is on disk."""
        return


class TextTaker(CommitParticipant, Protocol):
    """Takes the main texts of pages that are in the open commit."""

    def add(self, row: PageRow, text: Readable) -> None: ...


class HistoryRow(Protocol):
    """A row of a page's history; `place` is where its version stands in the archive."""

    place: bytes

    def pack(self) -> bytes: ...


class Committer:
    """Gathers WARC members, rows and announcements. `batch` is the open batch, the same object for as long as the shard
    is open: whoever changes something that has to last writes it there. `on_failure` hears of tries that failed."""

    def __init__(
        self, collection: CollectionStore, *, syncs: bool, on_failure: Callable[[StoreError, int], None]
    ) -> None:
        self._collection, self._syncs, self._on_failure = collection, syncs, on_failure
        self.batch = Batch()
        self._participants: list[CommitParticipant] = []
        self._members: list[bytes] = []
        self._pages: list[tuple[bytes, PageRow, int | None]] = []
        self._changes: list[tuple[bytes, HistoryRow, int | None]] = []
        self._announcements: list[Callable[[], None]] = []
        self._is_appended = False
        self.has_failed = False  # a commit is half done: nothing may be added until it has succeeded
        self.failure = ""  # why the last try of the open commit failed
        self._tries, self._next_try = 0, 0.0
        self._synced_at = float("-inf")
        self.waiting = 0  # outcomes that are not committed yet
        self.commits = 0

    def __repr__(self) -> str:
        return f"<Committer waiting={self.waiting} commits={self.commits}>"

    def join(self, *participants: CommitParticipant) -> None:
        """From now on they take part in every commit, in the order in which they joined: whoever adds to what another
        one writes has to come before it."""
        self._participants += participants

    # what a commit will hold

    def archive(self, members: list[bytes], place_of: int | None = None) -> int | None:
        """Adds WARC members; returns a ticket for the place of member `place_of`."""
        ticket = None if place_of is None else len(self._members) + place_of
        self._members += members
        self.waiting += 1
        return ticket

    def count_outcomes(self, outcomes: int = 1) -> None:
        """Something without a record has come of a request, or of a part of a sitemap."""
        self.waiting += outcomes

    def page(self, key: bytes, row: PageRow, ticket: int | None) -> None:
        """Adds a page row; its place is filled in when the archive has the record."""
        self._pages.append((key, row, ticket))

    def pending(self, keys: Container[bytes]) -> dict[bytes, PageRow]:
        """The rows among those of these pages that are not on disk yet; they may still be changed."""
        return {key: row for key, row, _ in self._pages if key in keys}

    def change(self, key: bytes, row: HistoryRow, ticket: int | None) -> None:
        """Adds a row of a page's history; its place is filled in likewise."""
        self._changes.append((key, row, ticket))

    def announce(self, tell: Callable[[], None]) -> None:
        """Has `tell` called once the commit is done."""
        self._announcements.append(tell)

    # the commit

    def commit(self, now: float, *, is_last: bool = False) -> bool:
        """Makes one commit. False: the disk refuses, everything is kept, and there is another try in a second. Raises
        StoreError when `COMMIT_TRIES` have failed in a row."""
        if now < self._next_try:
            return False
        is_closed = self._tries > 0
        try:
            if is_closed:
                self._collection.state.reopen()
                is_closed = False
            self._write(now, is_last=is_last)
        except StoreError as error:
            # On a full disk the state cannot even be opened again: what the commit was refused for says more.
            self._tries, self.failure = self._tries + 1, self.failure if is_closed else str(error)
            self._next_try = now + COMMIT_AGAIN_S
            self._on_failure(error, self._tries)
            if self._tries >= COMMIT_TRIES:
                advice = "; make room: the same command continues" if is_about_room(self.failure) else ""
                raise StoreError(f"{self.failure}{advice}") from error
            return False
        self._tries, self._next_try, self.failure = 0, 0.0, ""
        self.commits += 1
        for participant in self._participants:
            participant.on_committed()
        told, self._announcements = self._announcements, []
        for tell in told:
            tell()
        return True

    def _write(self, now: float, *, is_last: bool) -> None:
        if not self.has_failed:
            for participant in self._participants:
                participant.before_commit(self.batch, is_last=is_last)
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
        sync = self._syncs and now - self._synced_at >= SYNC_EVERY_S
        self._collection.commit(self.batch, sync=sync)
        if sync:
            self._synced_at = now
        self.batch.clear()
        self._is_appended, self.waiting, self.has_failed = False, 0, False
