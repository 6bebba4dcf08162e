"""From a page's row to what the archive holds of it: header fields and the body with its content coding undone.

A page whose document was known already has a record without a body: the body is that of the record it refers to, which
a page's row or history knows; else of whichever has the same payload, for which the archive is read through once.
"""

from base64 import b32encode
from collections import OrderedDict
from functools import cached_property

from lycosa.errors import StoreError
from lycosa.recrawl.versions import document_at, headers_of
from lycosa.store import CollectionStore, LeftOut, PageRow, WarcLocation
from lycosa.web import Analysers, analysers_of

_KEPT_PLACES = 10_000

Fields = dict[str, str]


class StoredDocuments:
    """Reads documents back. Remembers where it had to look for some."""

    def __init__(self, collection: CollectionStore) -> None:
        self._collection, self.path = collection, collection.path
        self._found: OrderedDict[bytes, bytes] = OrderedDict()

    def __repr__(self) -> str:
        return f"<Contents of {self.path}>"

    @cached_property
    def analysers(self) -> Analysers | None:
        """Those that the settings of the collection name; None: the usual ones."""
        return analysers_of(self.path)

    def read(self, row: PageRow) -> tuple[Fields, bytes] | None:
        """Header fields and body; None if the record is damaged, as after a power loss. Raises `ArchiveAway` where its
        file is missing, or in a store that cannot be reached."""
        document = document_at(self._collection, row.place, is_strict=True)
        if document is None and row.original and row.payload_sha1 and not self.is_left_out(row):
            document = document_at(self._collection, self._elsewhere(row.payload_sha1), is_strict=True)
        if document is None:
            return None
        head, body = document
        return headers_of(head), body

    def is_left_out(self, row: PageRow) -> bool:
        """Is a page that cannot be read on the machine of its shard, and not to be had from here?"""
        try:
            if row.place:
                self._collection.record(WarcLocation.unpack(row.place))
        except StoreError as error:
            return isinstance(error, LeftOut)
        return False

    def _elsewhere(self, payload_sha1: bytes) -> bytes:
        """The place of a record with this payload; nothing if there is none."""
        if payload_sha1 not in self._found:
            self._found[payload_sha1] = self._look_for(f"sha1:{b32encode(payload_sha1).decode()}")
            if len(self._found) > _KEPT_PLACES:
                self._found.popitem(last=False)
        return self._found[payload_sha1]

    def _look_for(self, digest: str) -> bytes:
        for number, record in self._collection.records():
            if record.type == "response" and record.header("WARC-Payload-Digest") == digest:
                return WarcLocation(number, record.offset, record.length).pack()
        return b""
