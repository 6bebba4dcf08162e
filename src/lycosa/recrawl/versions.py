"""Old versions of a page, read back from the archive.

A version is a record by its place. Where that is a `revisit`, the body stands with the record it refers to: the version
of that URL, then or now, that has the same payload. A revisit by table has no such record: its document is made here,
from the last one that was sent whole and the table; the digests in the table prove it. What cannot be read any more
(files moved away) is None; who is strict gets `ArchiveAway` where a file is missing or a store cannot be reached.
"""

from base64 import b32decode
from pathlib import Path
from typing import NamedTuple

from lycosa.errors import SettingsError, StoreError
from lycosa.fetch import decode_body
from lycosa.records import Family
from lycosa.recrawl.change.verdict import Version
from lycosa.recrawl.rows import history
from lycosa.settings import merge, settings_of_folder
from lycosa.store import (
    ArchiveUnavailable,
    CollectionStore,
    PatchBase,
    WarcLocation,
    WarcRecord,
    is_sharded,
    patch_locations,
    unpack_page,
)
from lycosa.tables import formats as table
from lycosa.tables import formats as tvi
from lycosa.tables.formats import TableRefusal
from lycosa.web import Analysers, analyse_page, parse_url, url_key

BODY_CAP_BYTES = 64 << 20
MOST_HOPS = 3  # revisits that refer to revisits


def no_bodies(path: Path) -> str:
    """Says that a collection keeps no bodies, and how to get them."""
    shards = f"lycosa crawl --into {path} --keep-fresh --archive full"
    how = shards if is_sharded(path) else f"lycosa recrawl {path} --all --archive full"
    return f"{path} keeps no bodies of pages (archive = none); {how} fetches and keeps them"


def require_bodies(collection: CollectionStore) -> None:
    """Refuses what reads bodies where there are none; those from before `archive` was none can be read."""
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
    document = document_at(collection, place)
    if document is None:
        return None
    head, body = document
    headers = headers_of(head)
    page = analyse_page(
        body,
        url=url,
        content_type=headers.get("content-type"),
        content_language=headers.get("content-language"),
        analysers=analysers,
    )
    return Version(page, body)


def document_at(collection: CollectionStore, place: bytes, *, is_strict: bool = False) -> tuple[bytes, bytes] | None:
    """The header block and the document, content coding undone, of the record at `place`."""
    stored = stored_at(collection, place, is_strict=is_strict)
    return None if stored is None else (stored.head, stored.body)


def stored_at(collection: CollectionStore, place: bytes, *, is_strict: bool = False) -> StoredVersion | None:
    """The same, and where its body comes from."""
    try:
        return _stored_at(collection, place)
    except ArchiveUnavailable:
        if is_strict:
            raise
        return None


def _stored_at(collection: CollectionStore, place: bytes) -> StoredVersion | None:
    for _ in range(MOST_HOPS):
        record = _record(collection, WarcLocation.unpack(place)) if place else None
        if record is None:
            return None
        if record.type != "revisit":
            head, body = _message(record)
            return StoredVersion(head, body, _whole(record, WarcLocation.unpack(place)))
        if (places := patch_locations(record, WarcLocation.unpack(place))) is not None:
            return _patched(collection, record, *places)
        place = _referred(collection, record)
    return None


def headers_of(head: bytes) -> dict[str, str]:
    """The fields of a stored header block, by lower-case name."""
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
    """The document of a revisit by table."""
    base, answer = _record(collection, whole), _record(collection, of_table)
    if base is None or answer is None or base.type == "revisit":
        return None
    head, body = _message(base)
    found = tvi.parse_tvi(_message(answer, table.TABLE_MAX_BYTES + 1)[1])
    if isinstance(found, TableRefusal):
        return None
    patched = tvi.patch_document(body, found, is_xml=tvi.is_xml(body, headers_of(head).get("content-type")))
    if isinstance(patched, TableRefusal):
        return None
    return StoredVersion(record.http()[0], patched, _whole(base, whole))


def _referred(collection: CollectionStore, record: WarcRecord) -> bytes:
    """The place of the record that a revisit refers to; nothing when it is not known."""
    url = parse_url(record.header("WARC-Refers-To-Target-URI") or "")
    named = (record.header("WARC-Payload-Digest") or "").partition(":")[2]
    if url is None or not named:
        return b""
    digest, key = b32decode(named), url_key(url.href)
    packed = collection.state.get(Family.PAGE, key)
    row = unpack_page(packed) if packed else None
    if row is not None and row.payload_sha1 == digest:
        return row.place
    places = [change.place for _, change in history(collection.state, key) if change.payload_sha1 == digest]
    return places[-1] if places else b""
