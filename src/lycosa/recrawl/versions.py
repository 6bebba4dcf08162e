"""What a collection keeps of visits and versions: the rows of a page that is visited again, and its stored documents.

    visit   url key                          → VisitRow
    change  url key · NUL · time (ms)        → ChangeRow: one a change; the first version is written with the first one
    due     time (ms) · url key              → nothing; the time is that of the visit row. Those of URLs that the user
                                               watches have the first bit set: they are apart, and wait for no others

A page that was never visited again has none of these rows: a first crawl writes nothing here. `recrawl.recorder` writes
them in the commit that ends a visit, `recrawl.plan` when a page gets its first time.

A version, current or old, is a record of the archive by its place. If that is a `revisit` record, the body stands with
the record it refers to: the version of that URL, old or current, with the same payload. A revisit by table has no such
record: its document is made here from the last one that was sent whole and the table; the digests in the table prove
it. What cannot be read any more (files moved away) is None; strict readers get `ArchiveUnavailable` if a file is
missing or a store cannot be reached.
"""

from base64 import b32decode, b32encode
from collections import OrderedDict
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from lycosa.crawl import analysers_of, extractor_of
from lycosa.errors import SettingsError, StoreError
from lycosa.fetch import decode_body
from lycosa.records import Family
from lycosa.recrawl.change.content import Masks
from lycosa.recrawl.change.schedule import USUAL, VisitIntervals
from lycosa.recrawl.change.verdict import WORD_OF, ChangedImage, ChangeKind, ChangeWord, Presence, Version
from lycosa.settings import merge, settings_of_folder
from lycosa.store import (
    ArchiveUnavailable,
    CollectionStore,
    PageRow,
    PatchBase,
    RecordLeftOut,
    State,
    WarcLocation,
    WarcRecord,
    is_sharded,
    page_at,
    patch_locations,
    read_message,
    rendered_message,
    warc_path,
)
from lycosa.tables import TABLE_MAX_BYTES, TableRefusal, has_xml_parts, parse_tvi, patch_document
from lycosa.web import Analysers, analyse_page, parse_url, url_key

if TYPE_CHECKING:
    from lycosa.web import FieldExtractor

KEY_END = b"\0"
_VERSIONS = frozenset({ChangeKind.NEW, ChangeKind.TEXT, ChangeKind.STRUCTURE, ChangeKind.IMAGE})
TIME_BYTES = 8
WATCHED = 1 << 63
NEVER_S = 1e15
BODY_CAP_BYTES = 64 << 20  # of a body with its content coding undone
_HOPS_MOST = 3  # revisit records that refer to revisit records
_LOCATIONS_MOST = 10_000  # remembered by `StoredDocuments`

Fields = dict[str, str]  # header fields by lower-case name


class VisitRow(msgspec.Struct, array_like=True, omit_defaults=True):
    """A page that is visited again. Intervals and rates are in days.

    `digest` is that of the stored content under `masks`. `fails` counts visits in a row that brought nothing, `trouble`
    says why the last one did. `saved` are the bytes that did not have to be sent again. `hint_s` is when its host last
    said that it had changed. `patches` are versions in the history that are no changes: volatile parts from a table,
    whose ETag is `table_etag`; `by_table` counts visits in a row that fetched nothing but that table, `same_tables`
    those among them that found it unchanged. `every_s` is how often the user wants it visited, 0 if nothing was said;
    `is_feed`: it was a feed when it was last read.
    """

    checked_s: float = 0.0
    due_s: float = 0.0
    interval: float = 0.0
    rate: float = USUAL.median
    seen: VisitIntervals = VisitIntervals()
    presence: Presence = Presence.PAGE
    digest: bytes = b""
    masks: Masks = Masks()
    visits: int = 0
    changes: int = 0
    fails: int = 0
    saved: int = 0
    hint_s: float = 0.0
    patches: int = 0
    table_etag: str = ""
    by_table: int = 0
    trouble: str = ""
    same_tables: int = 0
    every_s: float = 0.0
    is_feed: bool = False

    def pack(self) -> bytes:
        return _encode(self)


class ChangeRow(msgspec.Struct, array_like=True, omit_defaults=True):
    """One change. `place` is where the version that it brought is archived, if it brought one. Its sizes and text codes
    are those of its page row, `structure` is the `structure_digest` of its strings. `pictures` are the images of the
    page that have changed; their versions are in their own histories."""

    kind: ChangeKind
    where: str = ""
    size: int = 0
    also: tuple[ChangeKind, ...] = ()
    status: int = 0
    essence: str = ""
    size_bytes: int = 0
    place: bytes = b""
    payload_sha1: bytes = b""
    document_bytes: int = 0
    codes: tuple[int, int, int, int] = (0, 0, 0, 0)
    structure: tuple[int, int, int] = (0, 0, 0)
    pictures: tuple[ChangedImage, ...] = ()

    def pack(self) -> bytes:
        return _encode(self)

    @property
    def is_version(self) -> bool:
        """Did the change bring another document? One that is kept has a place; without an archive the kind tells."""
        return bool(self.place) or (self.kind in _VERSIONS and bool(self.payload_sha1))

    @property
    def word(self) -> ChangeWord:
        return WORD_OF[self.kind]


_encode = msgspec.msgpack.Encoder().encode
_decode_visit = msgspec.msgpack.Decoder(VisitRow).decode
_decode_change = msgspec.msgpack.Decoder(ChangeRow).decode


def unpack_visit(row: bytes) -> VisitRow:
    return _decode_visit(row)


def unpack_change(row: bytes) -> ChangeRow:
    return _decode_change(row)


def visit_of(state: State, key: bytes) -> VisitRow | None:
    row = state.get(Family.VISIT, key)
    return unpack_visit(row) if row else None


def _milliseconds(time_s: float) -> bytes:
    return max(0, int(time_s * 1000)).to_bytes(TIME_BYTES)


def due_key(key: bytes, visit: VisitRow) -> bytes:
    """The key in `due` of a page with this visit row."""
    return _due_time(visit.due_s, is_watched=bool(visit.every_s)) + key


def _due_time(due_s: float, *, is_watched: bool) -> bytes:
    time_ms = int.from_bytes(_milliseconds(due_s))
    return (time_ms | WATCHED if is_watched else time_ms).to_bytes(TIME_BYTES)


def due_range(now_s: float, *, is_watched: bool = False) -> tuple[bytes, bytes]:
    """The range of keys that are due now: of URLs that the user watches, or of all others."""
    return _due_time(0.0, is_watched=is_watched), _due_time(now_s + 0.001, is_watched=is_watched)


def next_due(state: State) -> float | None:
    """When the next page is due, or was; None if nothing is planned."""
    found = [state.scan(Family.DUE, *due_range(NEVER_S, is_watched=watched), limit=1) for watched in (False, True)]
    times = [int.from_bytes(rows[0][0][:TIME_BYTES]) & ~WATCHED for rows in found if rows]
    return min(times) / 1000 if times else None


def key_of_due(due: bytes) -> bytes:
    return due[TIME_BYTES:]


def change_key(key: bytes, time_s: float) -> bytes:
    return key + KEY_END + _milliseconds(time_s)


def history(state: State, key: bytes) -> Iterator[tuple[float, ChangeRow]]:
    """The changes of one URL with their times, the oldest first."""
    for found, row in history_rows(state, key):
        yield split_change_key(found)[1], row


def history_rows(state: State, key: bytes) -> Iterator[tuple[bytes, ChangeRow]]:
    """The changes of one URL with the keys of their rows, the oldest first."""
    for found, row in state.walk(Family.CHANGE, key + KEY_END, key + b"\1"):
        yield found, unpack_change(row)


def version_row(at_s: float, change: ChangeRow) -> PageRow:
    """The version that a change brought, as a page row: what the history knows of it."""
    return PageRow(
        change.status,
        at_s,
        essence=change.essence,
        size_bytes=change.size_bytes,
        document_bytes=change.document_bytes,
        place=change.place,
        payload_sha1=change.payload_sha1,
    )


def split_change_key(found: bytes) -> tuple[bytes, float]:
    """The URL key and the time of a key in `change`."""
    at = len(found) - TIME_BYTES
    return found[: at - 1], int.from_bytes(found[at:]) / 1000


def no_bodies(path: Path) -> str:
    """The sentence that says that a collection keeps no bodies, and how to get them."""
    shards = f"lycosa crawl --into {path} --keep-fresh --archive full"
    how = shards if is_sharded(path) else f"lycosa recrawl {path} --all --archive full"
    return f"{path} keeps no bodies of pages (archive = none); {how} fetches and keeps them"


def require_bodies(collection: CollectionStore) -> None:
    """Raises SettingsError for a collection without bodies; those from before `archive` was none can be read."""
    kept = settings_of_folder(collection.path)
    has_none = kept is not None and merge(kept).archive == "none"
    if has_none and not any(any(folder.glob("*.warc.gz")) for folder in collection.warc_folders):
        raise SettingsError(f"there is no text to search: {no_bodies(collection.path)}")


class StoredVersion(NamedTuple):
    """A document of the archive: its header block, and its body with the content coding undone. `whole` is the record
    that has the body, or that a table is patched into."""

    head: bytes
    body: bytes
    whole: PatchBase


def version_at(
    collection: CollectionStore, place: bytes, url: str, analysers: Analysers | None = None
) -> Version | None:
    """The document whose record is at `place`, analysed as that of `url`."""
    stored = stored_at(collection, place)
    if stored is None:
        return None
    headers = headers_of(stored.head)
    page = analyse_page(
        stored.body,
        url=url,
        content_type=headers.get("content-type"),
        content_language=headers.get("content-language"),
        analysers=analysers,
    )
    return Version(page, stored.body)


def document_at(collection: CollectionStore, place: bytes, *, is_strict: bool = False) -> tuple[bytes, bytes] | None:
    """The header block and the document, content coding undone, of the record at `place`."""
    stored = stored_at(collection, place, is_strict=is_strict)
    return None if stored is None else (stored.head, stored.body)


def stored_at(collection: CollectionStore, place: bytes, *, is_strict: bool = False) -> StoredVersion | None:
    """The document of the record at `place`, and the record that its body comes from."""
    try:
        return _stored_at(collection, place)
    except ArchiveUnavailable:
        if is_strict:
            raise
        return None


def _stored_at(collection: CollectionStore, place: bytes) -> StoredVersion | None:
    for _ in range(_HOPS_MOST):
        record = _record(collection, WarcLocation.unpack(place)) if place else None
        if record is None:
            return None
        if record.type != "revisit":
            head, body = rendered_message(record, WarcLocation.unpack(place), collection.record) or _message(record)
            return StoredVersion(head, body, _whole(record, WarcLocation.unpack(place)))
        if (places := patch_locations(record, WarcLocation.unpack(place))) is not None:
            return _patched(collection, record, *places)
        place = _referred(collection, record)
    return None


def headers_of(head: bytes) -> Fields:
    """The fields of a stored header block."""
    lines = head.decode("latin-1").split("\r\n")[1:]
    pairs = (line.partition(":") for line in lines)
    return {name.strip().lower(): value.strip() for name, colon, value in pairs if colon}


def _record(collection: CollectionStore, place: WarcLocation) -> WarcRecord | None:
    try:
        return collection.record(place)
    except ArchiveUnavailable:
        raise
    except StoreError:
        return None


def _message(record: WarcRecord, cap_bytes: int = BODY_CAP_BYTES) -> tuple[bytes, bytes]:
    head, body = record.http()
    if coding := headers_of(head).get("content-encoding", ""):
        body = decode_body(body, coding, cap_bytes=cap_bytes).body
    return head, body


def _whole(record: WarcRecord, place: WarcLocation) -> PatchBase:
    return PatchBase(place, record.url or "", record.header("WARC-Date") or "")


def _patched(
    collection: CollectionStore, record: WarcRecord, whole: WarcLocation, of_table: WarcLocation
) -> StoredVersion | None:
    """Makes the document of a revisit by table."""
    base, answer = _record(collection, whole), _record(collection, of_table)
    if base is None or answer is None or base.type == "revisit":
        return None
    head, body = _message(base)
    found = parse_tvi(_message(answer, TABLE_MAX_BYTES + 1)[1])
    if isinstance(found, TableRefusal):
        return None
    patched = patch_document(body, found, is_xml=has_xml_parts(body, headers_of(head).get("content-type")))
    if isinstance(patched, TableRefusal):
        return None
    return StoredVersion(record.http()[0], patched, _whole(base, whole))


def record_with_body(collection: CollectionStore, place: bytes) -> WarcRecord | None:
    """The record whose body is that of the record at `place`: itself, or the one that it refers to. None where it is
    made from a table, or cannot be read."""
    for _ in range(_HOPS_MOST):
        record = _record(collection, WarcLocation.unpack(place)) if place else None
        if record is None or record.type != "revisit":
            return record
        if patch_locations(record, WarcLocation.unpack(place)) is not None:
            return None
        place = _referred(collection, record)
    return None


def _referred(collection: CollectionStore, record: WarcRecord) -> bytes:
    """The place of the record that a `revisit` record refers to; empty if it is not known."""
    url = parse_url(record.header("WARC-Refers-To-Target-URI") or "")
    named = (record.header("WARC-Payload-Digest") or "").partition(":")[2]
    if url is None or not named:
        return b""
    digest, key = b32decode(named), url_key(url.href)
    row = page_at(collection.state, key)
    if row is not None and row.payload_sha1 == digest:
        return row.place
    places = [change.place for _, change in history(collection.state, key) if change.payload_sha1 == digest]
    return places[-1] if places else b""


class StoredDocuments:
    """Reads the documents of page rows.

    A copy has a record without a body. Where the record that it refers to is unknown, the archive is read through once
    for any record with the same payload, and the location remembered.
    """

    def __init__(self, collection: CollectionStore) -> None:
        self.collection, self.path = collection, collection.path
        self._locations: OrderedDict[bytes, bytes] = OrderedDict()
        self._files: dict[int, Path] = {}  # where archive files of a number were found last
        self._last_id = b"", ""  # the place of the record that was read last, and its id

    def __repr__(self) -> str:
        return f"<StoredDocuments of {self.path}>"

    @cached_property
    def analysers(self) -> Analysers | None:
        """The analysers that the settings of the collection name; None for the built-in ones."""
        return analysers_of(self.path)

    @cached_property
    def extractor(self) -> "FieldExtractor":
        """The extractor of the fields that the settings of the collection name; whoever wants others sets another."""
        return extractor_of(self.path)

    def read(self, row: PageRow) -> tuple[Fields, bytes] | None:
        """Header fields and body; None if the record is damaged, as after a power loss.

        Raises `ArchiveUnavailable` if its file is missing, or in a store that cannot be reached.
        """
        if row.place and not row.original and (found := self._read_plain(WarcLocation.unpack(row.place))) is not None:
            return found
        document = document_at(self.collection, row.place, is_strict=True)
        if document is None and (row.original or row.is_elsewhere) and row.payload_sha1 and not self.is_left_out(row):
            document = document_at(self.collection, self._location_of(row.payload_sha1), is_strict=True)
        if document is None:
            return None
        head, body = document
        return headers_of(head), body

    def _read_plain(self, place: WarcLocation) -> tuple[Fields, bytes] | None:
        """As `read`, for a response of ours in a file that is here, which takes half the time; None for all others."""
        number = place.file_number
        if number not in self._files:
            files = [warc_path(folder, number) for folder in self.collection.warc_folders]
            self._files[number] = next(filter(Path.exists, files), files[0])
        message = read_message(self._files[number], place)
        if message is None:
            return None
        head, body, record_id = message
        self._last_id = place.pack(), record_id
        fields = headers_of(head)
        if coding := fields.get("content-encoding", ""):
            body = decode_body(body, coding, cap_bytes=BODY_CAP_BYTES).body
        return fields, body

    def record_id(self, row: PageRow) -> str:
        """The WARC-Record-ID of the record of a row; of the one that was read last it is known."""
        place, known = self._last_id
        return known if place == row.place else self.collection.record_id(WarcLocation.unpack(row.place))

    def is_left_out(self, row: PageRow) -> bool:
        """Is the body of a page only on the machine of its shard, out of reach from here?"""
        try:
            if row.place:
                self.collection.record(WarcLocation.unpack(row.place))
        except StoreError as error:
            return isinstance(error, RecordLeftOut)
        return False

    def _location_of(self, payload_sha1: bytes) -> bytes:
        """The place of a record with this payload; empty if there is none."""
        if payload_sha1 not in self._locations:
            self._locations[payload_sha1] = self._search(f"sha1:{b32encode(payload_sha1).decode()}")
            if len(self._locations) > _LOCATIONS_MOST:
                self._locations.popitem(last=False)
        return self._locations[payload_sha1]

    def _search(self, digest: str) -> bytes:
        for number, record in self.collection.records():
            if record.type == "response" and record.header("WARC-Payload-Digest") == digest:
                return WarcLocation(number, record.offset, record.length).pack()
        return b""
