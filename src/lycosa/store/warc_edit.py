"""Archive files that are changed after the fact: records blanked where they are, or moved to files without them.

A record is blanked by a gzip member of the same length, so that everything else stays where it is. A file is rewritten
by moving what is kept to the end of the archive, in steps: each step appends records and commits them together with the
rows that name their new places and how far the file is moved; when all of it is, the file goes. Killed at any moment,
each row names a record that is there, and to do it again goes on from the last step. Used by `lycosa.removal`, and for
revisit records by exports.
"""

import os
import struct
import time
import uuid
import zlib
from collections.abc import Callable, Sequence
from typing import NamedTuple

from lycosa.errors import StoreError, storage_error, storage_errors
from lycosa.files import sync_folder
from lycosa.records import Family
from lycosa.store.collection import CollectionStore, length_key
from lycosa.store.state import Batch
from lycosa.store.warc_file import warc_path
from lycosa.store.warc_read import WarcLocation, WarcReader, WarcRecord
from lycosa.store.warc_record import recompress_record
from lycosa.web import format_timestamp

MOVED_KEY = b"moving:"  # + file number (4 bytes) -> the offset (8 bytes) up to which the file is moved
STEP_BYTES = 8 << 20
STEP_RECORDS = 2_000

# A gzip member with a comment in its header, which ends with a NUL.
_COMMENTED = b"\x1f\x8b\x08\x10\0\0\0\0\0\xff"
_EMPTY_RECORD = (
    "WARC/1.1\r\nWARC-Type: metadata\r\nWARC-Record-ID: <{}>\r\nWARC-Date: {}\r\n"
    "Content-Type: application/warc-fields\r\nContent-Length: 0\r\n\r\n\r\n\r\n"
)


class MovedRecord(NamedTuple):
    """A record with its place before and now."""

    record: WarcRecord
    before: WarcLocation
    now: WarcLocation


IsDropped = Callable[[WarcRecord, WarcLocation], bool]
OnMoved = Callable[[Sequence[MovedRecord], Batch], None]


def response_of_revisit(record: WarcRecord, payload: bytes) -> bytes:
    """The response that takes the place of a revisit whose payload would be lost: the same record, with its body."""
    replaced = ("warc-type", "warc-profile", "warc-refers-to", "content-length", "warc-block-digest", "lycosa-")
    kept = [(name, value) for name, value in record.headers if not name.lower().startswith(replaced)]
    block = record.http()[0] + payload
    fields = [("WARC-Type", "response"), *kept, ("Content-Length", str(len(block)))]
    head = "WARC/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in fields)
    return recompress_record(b"%b\r\n%b\r\n\r\n" % (head.encode(), block))


def blank_member(length: int) -> bytes:
    """A gzip member of exactly this length that says nothing: an empty metadata record, and blanks as a comment of the
    member's header. Raises ValueError where there is no room for that."""
    record = _EMPTY_RECORD.format(uuid.uuid4().urn, format_timestamp(time.time())).encode()
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = packer.compress(record) + packer.flush() + struct.pack("<II", zlib.crc32(record), len(record))
    room = length - len(_COMMENTED) - 1 - len(packed)
    if room < 0:
        raise ValueError(length)
    return _COMMENTED + b" " * room + b"\0" + packed


def find_records(collection: CollectionStore, number: int, is_dropped: IsDropped) -> list[WarcLocation]:
    """The places of the records of an archive file that are to go."""
    with WarcReader(warc_path(collection.warc_folder, number)) as reader:
        return [
            place
            for record in reader
            if is_dropped(record, place := WarcLocation(number, record.offset, record.length))
        ]


def blank_records(collection: CollectionStore, places: Sequence[WarcLocation]) -> None:
    """Overwrites records of one file where they are; it is on the disk then."""
    path = warc_path(collection.warc_folder, places[0].file_number)
    try:
        with path.open("r+b", buffering=0) as file:
            for place in places:
                os.pwrite(file.fileno(), blank_member(place.length), place.offset)
            os.fsync(file.fileno())
    except ValueError as error:
        raise StoreError(
            f"a record of {error} bytes in {path} is too short to be blanked: choose --archive rewrite"
        ) from error
    except OSError as error:
        raise storage_error(error, path=path, doing="blanking records") from error


def move_records(collection: CollectionStore, number: int, is_dropped: IsDropped, on_moved: OnMoved) -> None:
    """Moves what is kept of an archive file behind all others; `on_moved` puts the rows into the batch that commits it.
    The file itself stays until `delete_files`."""
    path, key = warc_path(collection.warc_folder, number), MOVED_KEY + struct.pack(">I", number)
    start = int.from_bytes(collection.state.get(Family.META, key) or b"")
    step, step_bytes, end = list[tuple[WarcRecord, bytes]](), 0, start
    if start >= path.stat().st_size:
        return
    with WarcReader(path, start=start) as reader, path.open("rb") as file:
        for record in reader:
            # A revisit by table follows its table: the two are not parted.
            if record.type != "revisit" and (step_bytes >= STEP_BYTES or len(step) >= STEP_RECORDS):
                _commit_step(collection, step, key, end, number, on_moved)
                step, step_bytes = [], 0
            end = record.offset + record.length
            place = WarcLocation(number, record.offset, record.length)
            if record.type == "warcinfo" or is_dropped(record, place):
                continue
            member = os.pread(file.fileno(), record.length, record.offset)
            step.append((record, member))
            step_bytes += len(member)
    _commit_step(collection, step, key, path.stat().st_size, number, on_moved)


def _commit_step(
    collection: CollectionStore,
    step: Sequence[tuple[WarcRecord, bytes]],
    key: bytes,
    end: int,
    number: int,
    on_moved: OnMoved,
) -> None:
    batch = Batch()
    places = collection.warc.append([member for _, member in step]) if step else []
    moved = [
        MovedRecord(record, WarcLocation(number, record.offset, record.length), place)
        for (record, _), place in zip(step, places, strict=True)
    ]
    on_moved(moved, batch)
    batch.put(Family.META, key, end.to_bytes(8))
    collection.commit(batch, sync=True)


def delete_files(collection: CollectionStore, numbers: Sequence[int]) -> None:
    """Deletes archive files of which nothing is needed any more: first from the state, then from the disk. A file that
    is there all the same, since the process died in between, goes when the collection is opened."""
    batch = Batch()
    for number in numbers:
        batch.delete(Family.META, length_key(number))
        batch.delete(Family.META, MOVED_KEY + struct.pack(">I", number))
    collection.state.write(batch, sync=True)
    for number in numbers:
        path = warc_path(collection.warc_folder, number)
        with storage_errors(path, doing="deleting an archive file"):
            path.unlink(missing_ok=True)
    sync_folder(collection.warc_folder)


def begun_moves(collection: CollectionStore) -> list[int]:
    """The files that were being moved when a process died."""
    rows = collection.state.walk(Family.META, MOVED_KEY, MOVED_KEY[:-1] + b";")
    return [struct.unpack(">I", key[len(MOVED_KEY) :])[0] for key, _ in rows]
