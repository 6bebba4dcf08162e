"""The archive's part in removals: which records go, and what the rows of the others say when those are moved.

Records that are kept may need the body of one that goes: a copy is a `revisit` record without a body. Such a record is
replaced by a response with the body before anything is removed (`OwnBodies`).
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from lycosa.errors import StoreError
from lycosa.records import Family
from lycosa.recrawl import ChangeRow, history_rows, record_with_body, unpack_change, visit_of
from lycosa.store import (
    MOVED_RECORD,
    Batch,
    CollectionStore,
    MovedRecord,
    PageRow,
    WarcLocation,
    WarcRecord,
    begun_moves,
    blank_records,
    delete_files,
    find_records,
    move_records,
    pack_row,
    page_at,
    response_of_revisit,
    unpack_page,
    warc_path,
)
from lycosa.web import parse_url, url_key

_PLACED = ("response", "revisit", "resource", "conversion")  # types of records that rows name by their place

IsGone = Callable[[str], bool]  # of a URL as a record has it


class EditedArchive(NamedTuple):
    """What was done to the archive: records removed, and files that were rewritten or blanked in."""

    records: int = 0
    files: int = 0


def is_record_gone(record: WarcRecord, is_gone: IsGone) -> bool:
    """Does a record speak of a URL that is gone: as its own, or as that of its body?"""
    targets = (record.url, record.header("WARC-Refers-To-Target-URI"))
    return any(target and is_gone(target) for target in targets)


def forgotten_records(collection: CollectionStore, is_gone: IsGone) -> Iterator[tuple[int, list[WarcLocation]]]:
    """The records that go, by the number of their file; files without any are left out."""
    for number in sorted(collection.finished_files()):
        if not warc_path(collection.warc_folder, number).exists():
            continue
        if places := find_records(collection, number, lambda record, _: is_record_gone(record, is_gone)):
            yield number, places


def blank_gone(collection: CollectionStore, is_gone: IsGone) -> EditedArchive:
    """Blanks the records of what is gone where they are."""
    records = files = 0
    for _, places in forgotten_records(collection, is_gone):
        blank_records(collection, places)
        records, files = records + len(places), files + 1
    return EditedArchive(records, files)


def rewrite_without(collection: CollectionStore, is_gone: IsGone) -> EditedArchive:
    """Moves the other records of every file that has some of what is gone, and deletes the file."""
    found = dict(forgotten_records(collection, is_gone))
    numbers = sorted({*found, *begun_moves(collection)})
    rewrite_files(collection, numbers, lambda record, _: is_record_gone(record, is_gone))
    return EditedArchive(sum(map(len, found.values())), len(numbers))


def rewrite_files(
    collection: CollectionStore, numbers: Sequence[int], is_dropped: Callable[[WarcRecord, WarcLocation], bool]
) -> None:
    """Moves what is kept of these files, and deletes them."""
    for number in numbers:
        move_records(collection, number, is_dropped, lambda moved, batch: _name_places(collection, moved, batch))
    if numbers:
        _clear_places(collection, frozenset(numbers))
        delete_files(collection, numbers)


def _name_places(collection: CollectionStore, moved: Sequence[MovedRecord], batch: Batch) -> None:
    """The rows that name records name their new places."""
    state, pages = collection.state, dict[bytes, PageRow]()
    for record, before, now in moved:
        url = parse_url(record.url or "") if record.type in _PLACED else None
        if url is None:
            continue
        key, place = url_key(url.href), before.pack()
        row = pages.get(key) or page_at(state, key)
        if row is not None and row.place == place:
            row.place = now.pack()
            pages[key] = row
            batch.put(Family.PAGE, key, pack_row(row))
        for found, change in history_rows(state, key):
            if change.place == place:
                batch.put(Family.CHANGE, found, msgspec.structs.replace(change, place=now.pack()).pack())
        if (visit := visit_of(state, key)) is not None and visit.patches:  # versions may be patched into this record
            batch.put(Family.META, MOVED_RECORD + place, now.pack())


def _clear_places(collection: CollectionStore, numbers: frozenset[int]) -> None:
    """Rows that still name a place in files that go, since their record is damaged: a recrawl fetches them again."""
    batch, state = Batch(), collection.state
    for key, packed in state.walk(Family.PAGE):
        row = unpack_page(packed)
        if row.place and WarcLocation.unpack(row.place).file_number in numbers:
            row.place = b""
            batch.put(Family.PAGE, key, pack_row(row))
    for key, packed in state.walk(Family.CHANGE):
        change = unpack_change(packed)
        if change.place and WarcLocation.unpack(change.place).file_number in numbers:
            batch.put(Family.CHANGE, key, msgspec.structs.replace(change, place=b"").pack())
    state.write(batch, sync=True)


class OwnBodies:
    """Gives rows that name a revisit a record with a body of its own, before that of the other record goes."""

    def __init__(self, collection: CollectionStore) -> None:
        self._collection, self._state = collection, collection.state
        self._places: dict[bytes, bytes] = {}  # of revisits, and of what stands for them

    def place_for(self, place: bytes) -> bytes:
        """Appends the record at `place` with its body, if it lacks it; returns its new place, empty if it does not."""
        if place not in self._places:
            member = self._with_body(place)
            self._places[place] = b"" if member is None else self._collection.warc.append([member])[0].pack()
        return self._places[place]

    def give_page(self, key: bytes, row: PageRow, batch: Batch) -> bool:
        """Gives a page its own body, in its row and in the rows of its history; returns whether it needed one. The row
        is changed, and left to the caller to write."""
        before, now = row.place, self.place_for(row.place)
        if not now:
            return False
        row.place = now
        for found, change in history_rows(self._state, key):
            if change.place == before:
                batch.put(Family.CHANGE, found, msgspec.structs.replace(change, place=now).pack())
        return True

    def give_change(self, key: bytes, change: ChangeRow, batch: Batch) -> bool:
        """The same for a row of a history."""
        if now := self.place_for(change.place):
            batch.put(Family.CHANGE, key, msgspec.structs.replace(change, place=now).pack())
        return bool(now)

    def _with_body(self, place: bytes) -> bytes | None:
        try:
            record = self._collection.record(WarcLocation.unpack(place))
            whole = record_with_body(self._collection, place) if record.type == "revisit" else None
        except StoreError:
            return None
        return response_of_revisit(record, whole.http()[1]) if whole is not None else None
