"""From a page's row to what the archive holds of it: header fields and the body with its content coding undone.

A page whose document was known already has a record without a body: the body is that of the page it names, or, where
that page has changed since, of whichever record has the same payload, for which the archive is read through once.
"""

from base64 import b32encode
from collections import OrderedDict

from lycosa.engine.pages import PageRow, unpack_page
from lycosa.errors import StoreError
from lycosa.fetch.decode import decode
from lycosa.fetch.headers import parse_fields
from lycosa.records import Family
from lycosa.store import Collection, Place, WarcReader, WarcRecord
from lycosa.web.url import url_key

_REVISIT = "revisit"
_KEPT_PLACES = 10_000
DECODED_BYTES = 64 << 20  # at most of one body

Fields = dict[str, str]


class Contents:
    """Reads documents back. Remembers where it had to look for some."""

    def __init__(self, collection: Collection) -> None:
        self._collection = collection
        self._found: OrderedDict[bytes, Place | None] = OrderedDict()

    def __repr__(self) -> str:
        return f"<Contents of {self._collection.path}>"

    def read(self, row: PageRow) -> tuple[Fields, bytes] | None:
        """Header fields and body; None if the archive no longer has them."""
        if not row.place:
            return None
        try:
            record = self._collection.record(Place.unpack(row.place))
            if record.type == _REVISIT:
                place = self._elsewhere(row)
                if place is None:
                    return None
                record = self._collection.record(place)
        except StoreError:
            return None  # after a power loss: the page is queued again
        return opened(record)

    def _elsewhere(self, row: PageRow) -> Place | None:
        if row.original and (packed := self._collection.state.get(Family.PAGE, url_key(row.original))):
            original = unpack_page(packed)
            if original.place and not original.original and original.payload_sha1 == row.payload_sha1:
                return Place.unpack(original.place)
        if row.payload_sha1 not in self._found:
            self._look_for(row.payload_sha1)
        return self._found.get(row.payload_sha1)

    def _look_for(self, payload_sha1: bytes) -> None:
        digest = f"sha1:{b32encode(payload_sha1).decode()}"
        self._found[payload_sha1] = None
        if len(self._found) > _KEPT_PLACES:
            self._found.popitem(last=False)
        for number, path in enumerate(sorted(self._collection.warc_folder.glob("*.warc.gz")), 1):
            with WarcReader(path) as records:
                for record in records:
                    if record.type == "response" and record.header("WARC-Payload-Digest") == digest:
                        self._found[payload_sha1] = Place(_number_of(path.name, number), record.offset, record.length)
                        return


def _number_of(name: str, fallback: int) -> int:
    """`lycosa-00001.warc.gz` → 1."""
    digits = name.removesuffix(".warc.gz").rpartition("-")[2]
    return int(digits) if digits.isdigit() else fallback


def opened(record: WarcRecord) -> tuple[Fields, bytes]:
    """Header fields and body of a response."""
    head, body = record.http()
    fields = parse_fields(head)
    coding = fields.get("content-encoding", "")
    return fields, decode(body, coding, cap_bytes=DECODED_BYTES).body if coding else body
