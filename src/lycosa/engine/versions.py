"""Old versions of a page, read back from the archive.

A version is a record by its place. Where that is a `revisit`, the body stands with the record it refers to: the version
of that URL, then or now, that has the same payload. What cannot be read any more (files moved away) is None.
"""

from base64 import b32decode

from lycosa.change.verdict import Version
from lycosa.engine.pages import unpack_page
from lycosa.engine.read_ahead import BODY_CAP_BYTES
from lycosa.engine.visit_rows import history
from lycosa.errors import StoreError
from lycosa.fetch.decode import decode
from lycosa.records import Family
from lycosa.store import Collection, Place, WarcRecord
from lycosa.web.page import analyse
from lycosa.web.url import parse, url_key

MOST_HOPS = 3  # revisits that refer to revisits


def version_at(collection: Collection, place: bytes, url: str) -> Version | None:
    """The document whose record is at `place`, analysed as that of `url`."""
    document = document_at(collection, place)
    if document is None:
        return None
    head, body = document
    headers = headers_of(head)
    page = analyse(
        body,
        url=url,
        content_type=headers.get("content-type"),
        content_language=headers.get("content-language"),
    )
    return Version(page, body)


def document_at(collection: Collection, place: bytes) -> tuple[bytes, bytes] | None:
    """The header block and the document, content coding undone, of the record at `place`."""
    record = _with_body(collection, place)
    if record is None:
        return None
    head, body = record.http()
    if coding := headers_of(head).get("content-encoding", ""):
        body = decode(body, coding, cap_bytes=BODY_CAP_BYTES).body
    return head, body


def headers_of(head: bytes) -> dict[str, str]:
    """The fields of a stored header block, by lower-case name."""
    lines = head.decode("latin-1").split("\r\n")[1:]
    pairs = (line.partition(":") for line in lines)
    return {name.strip().lower(): value.strip() for name, colon, value in pairs if colon}


def _with_body(collection: Collection, place: bytes) -> WarcRecord | None:
    for _ in range(MOST_HOPS):
        if not place:
            return None
        try:
            record = collection.record(Place.unpack(place))
        except StoreError:
            return None
        if record.type != "revisit":
            return record
        place = _referred(collection, record)
    return None


def _referred(collection: Collection, record: WarcRecord) -> bytes:
    """The place of the record that a revisit refers to; nothing when it is not known."""
    url = parse(record.header("WARC-Refers-To-Target-URI") or "")
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
