"""The records of the archive as they are on disk, for formats that copy them: no byte of a record is compressed again.

A response lies between its request and its metadata, in members of their own; both name it, so that they are found
beside it. Where a file is in a central store, which packs records in another way, the response alone is made again. A
copy is a revisit that refers to the record with the body; for exports that may lack that one it becomes a response.
Called by the formats `warc`, `cdxj` and `wacz`.
"""

import os
from collections import OrderedDict
from pathlib import Path

from isal import isal_zlib

from lycosa.errors import StoreError
from lycosa.recrawl import document_at, record_with_body
from lycosa.store import (
    CollectionStore,
    WarcLocation,
    WarcRecord,
    recompress_record,
    record_bytes,
    response_of_revisit,
    warc_path,
)

_BEFORE_BYTES = 16 << 10  # a request is smaller
_AFTER_BYTES = 4 << 10
_HEAD_BYTES = 2 << 10
_MAGIC, _CONCURRENT = b"\x1f\x8b\x08", b"\r\nWARC-Concurrent-To: "
_TRIALS = 16
_OPEN_FILES = 32
_ZlibError: type[Exception] = isal_zlib.error  # type: ignore[assignment]


class ArchiveMembers:
    """Reads gzip members by place. Close it, or use it as a context manager."""

    def __init__(self, collection: CollectionStore) -> None:
        self._collection = collection
        self._files: OrderedDict[int, int] = OrderedDict()

    def __repr__(self) -> str:
        return f"<ArchiveMembers of {self._collection.path}>"

    def path_of(self, number: int) -> Path | None:
        """The archive file of this number, if it is here."""
        paths = (warc_path(folder, number) for folder in self._collection.warc_folders)
        return next((path for path in paths if path.exists()), None)

    def exchange(self, place: WarcLocation, *, wants_whole: bool = False) -> list[bytes]:
        """The members of a capture: request, response (or revisit) and metadata, as far as they are there. With
        `wants_whole` a response in place of a revisit. Raises StoreError where there is no whole record."""
        file = self._file(place.file_number)
        if file is None:
            record = self._collection.record(place)
            return [self._whole(record, place) if wants_whole else recompress_record(record_bytes(record))]
        start = max(0, place.offset - _BEFORE_BYTES)
        data = os.pread(file, place.offset - start + place.length + _AFTER_BYTES, start)
        at = place.offset - start
        own = data[at : at + place.length]
        content = _unpacked(own)
        if not content:
            self._collection.record(place)  # says what is wrong
            raise StoreError(f"no whole record at byte {place.offset} of archive file {place.file_number}")
        name = _record_id(content)
        if wants_whole and _is_revisit(content):
            own = self._whole(self._collection.record(place), place)
        before, after = _concurrent_before(data[:at], name), _concurrent_behind(data[at + place.length :], name)
        return [member for member in (before, own, after) if member]

    def is_revisit(self, place: WarcLocation) -> bool:
        """Whether the record at a place has no body of its own."""
        return self._collection.record(place).type == "revisit"

    def _whole(self, record: WarcRecord, place: WarcLocation) -> bytes:
        """A response with the body that a revisit refers to; where that cannot be read, the record as it is."""
        if record.type == "revisit":
            body = self._body_of(place.pack())
            return recompress_record(record_bytes(record)) if body is None else response_of_revisit(record, body)
        return recompress_record(record_bytes(record))

    def _body_of(self, place: bytes) -> bytes | None:
        """The body that the record at a place refers to; one that a table makes, as it is made."""
        if (whole := record_with_body(self._collection, place)) is not None:
            return whole.http()[1]
        made = document_at(self._collection, place)
        return None if made is None else made[1]

    def _file(self, number: int) -> int | None:
        if number not in self._files:
            path = self.path_of(number)
            if path is None:
                return None
            if len(self._files) >= _OPEN_FILES:
                os.close(self._files.popitem(last=False)[1])
            self._files[number] = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self._files.move_to_end(number)
        return self._files[number]

    def close(self) -> None:
        for file in self._files.values():
            os.close(file)
        self._files.clear()


def _concurrent_before(data: bytes, name: bytes) -> bytes:
    """The member that ends where the response begins, if it belongs to it."""
    at = len(data)
    for _ in range(_TRIALS):
        at = data.rfind(_MAGIC, 0, at)
        if at < 0:
            return b""
        member = data[at:]
        content = _unpacked(member)
        if _CONCURRENT + name in content[:_HEAD_BYTES]:
            return member
    return b""


def _concurrent_behind(data: bytes, name: bytes) -> bytes:
    if not data.startswith(_MAGIC):
        return b""
    stream = isal_zlib.decompressobj(31)
    try:
        content = stream.decompress(data)
    except _ZlibError:
        return b""
    is_its = stream.eof and _CONCURRENT + name in content[:_HEAD_BYTES]
    return data[: len(data) - len(stream.unused_data)] if is_its else b""


def _unpacked(member: bytes) -> bytes:
    """The content of a member; empty if it is not one from its first byte to its last."""
    stream = isal_zlib.decompressobj(31)
    try:
        content = stream.decompress(member)
    except _ZlibError:
        return b""
    return content if stream.eof and not stream.unused_data else b""


def _record_id(content: bytes) -> bytes:
    start = content.find(b"WARC-Record-ID: ", 0, _HEAD_BYTES) + 16
    return content[start : content.find(b"\r\n", start)] if start > 16 else b"none"


def _is_revisit(content: bytes) -> bool:
    return b"\r\nWARC-Type: revisit\r\n" in content[:_HEAD_BYTES]
