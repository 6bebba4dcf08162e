"""Reads WARC files, ours and others', in sequence or one record by its location.

A `WarcLocation` is file number, offset and length, twelve bytes in the state; a `WarcRecord` is what the bytes there
say. Damage is no error: what is whole before and behind it is read, and where it is stands in `problems`. A file in
which no WARC record is found, or that is compressed as a whole, is refused with `StoreError`. Reading beside the writer
is safe: a record that is still being written looks like a damaged end. Called by exports, the import and the index, and
by recovery.
"""

import os
import re
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import cast

import msgspec
from isal import isal_zlib

from lycosa.errors import StoreError, storage_error

_LOCATION = struct.Struct(">III")

# Offsets are packed in 32 bits; a file may grow past the size it is rotated at by one append.
MAX_FILE_BYTES = 2 << 30


class WarcLocation(msgspec.Struct, frozen=True, order=True):
    """Where a record lies in the archive."""

    file_number: int
    offset: int
    length: int

    def pack(self) -> bytes:
        return _LOCATION.pack(self.file_number, self.offset, self.length)

    @classmethod
    def unpack(cls, packed: bytes) -> "WarcLocation":
        return cls(*_LOCATION.unpack(packed))


Headers = tuple[tuple[str, str], ...]

_HEAD_END = re.compile(rb"\r?\n\r?\n")
RENDERED_FIELD = "Lycosa-Rendered-Bytes"  # of a response: what a browser made of it stands before it, that long
_RENDERED = RENDERED_FIELD.encode()
_FOLD = re.compile(r"\r?\n[ \t]+")
_CHUNKED = re.compile(rb"^transfer-encoding[ \t]*:[^\r\n]*chunked", re.I | re.M)
_CHUNK_SIZE = re.compile(rb"[ \t]*([0-9A-Fa-f]{1,15})[^\r\n]*\r?\n")


class WarcRecord(msgspec.Struct, frozen=True):
    """One record; `offset` and `length` say where it lies in its file."""

    type: str
    headers: Headers
    block: bytes
    offset: int
    length: int

    def header(self, name: str) -> str | None:
        """The first field of this name, whatever its case."""
        size, lower = len(name), name.lower()
        for key, value in self.headers:
            if len(key) == size and key.lower() == lower:
                return value
        return None

    @property
    def url(self) -> str | None:
        """The target, without the angle brackets and with the spaces encoded that some tools write."""
        target = self.header("WARC-Target-URI")
        return None if target is None else target.removeprefix("<").removesuffix(">").replace(" ", "%20")

    def http(self) -> tuple[bytes, bytes]:
        """The header block and the body of the HTTP message; a chunked body is joined, content coding is kept."""
        found = _HEAD_END.search(self.block)
        end = found.end() if found else len(self.block)
        head, body = self.block[:end], self.block[end:]
        return head, unchunk(body) if _CHUNKED.search(head) else body


def parse_head(data: bytes) -> tuple[str, Headers, int, int] | None:
    """(type, fields, bytes of the header, bytes of the block), or None when no record begins here."""
    end = _HEAD_END.search(data)
    if not data.startswith(b"WARC/") or end is None:
        return None
    text = data[: end.start()].decode("utf-8", "replace")
    if "\n " in text or "\n\t" in text:
        text = _FOLD.sub(" ", text)
    fields = [line.partition(":") for line in text.split("\n")[1:]]
    headers = tuple([(name.strip(), value.strip()) for name, colon, value in fields if colon])
    length = _first(headers, "content-length")
    if not (length.isascii() and length.isdigit()):
        return None
    return _first(headers, "warc-type"), headers, end.end(), int(length)


def _first(headers: Headers, lower_name: str) -> str:
    """The first field of a name; empty if there is none."""
    size = len(lower_name)
    for name, value in headers:
        if len(name) == size and name.lower() == lower_name:
            return value
    return ""


def unchunk(body: bytes) -> bytes:
    """The body without its chunk sizes; the rest is taken as it is from where it is not chunked."""
    parts: list[bytes] = []
    at = 0
    while found := _CHUNK_SIZE.match(body, at):
        size = int(found[1], 16)
        if not size:
            return b"".join(parts)
        parts.append(body[found.end() : found.end() + size])
        at = found.end() + size
        at += 2 if body[at : at + 2] == b"\r\n" else 0
    return b"".join([*parts, body[at:]])


# Read at a time: some records of ours, and few enough bytes that none expands to more than 70 MB at once.
_WINDOW_BYTES = 64 << 10
# No record of ours comes near it; a foreign one that large is refused rather than held in memory.
MAX_RECORD_BYTES = 1 << 30
_HEAD_BYTES, _MAX_HEAD_BYTES = 4 << 10, 1 << 20  # of a record that are looked at first, and at most
# Its type stub calls this an instance.
_RECORD_ID, _ID_WITHIN_BYTES = re.compile(rb"\r\nWARC-Record-ID: (<[!-;=?-~]+>)\r\n"), 512
_GZIP_ERROR: type[Exception] = cast(type[Exception], isal_zlib.error)
_GZIP_MAGIC = b"\x1f\x8b"
_NEXT_RECORD = re.compile(rb"\r\n\r\n(?=WARC/\d)")
# What a member (deflate, no reserved flag) or a plain record begins with; and how many bytes in front of the next
# window are looked at again, since a beginning may stand on both sides of the cut.
_MEMBER_START, _RECORD_START = re.compile(rb"\x1f\x8b\x08[\x00-\x1f]"), re.compile(rb"WARC/[01]\.\d\r?\n")
_START_BYTES = 12
# Where another record begins in what should be a header: no line of one is without a colon, but one that continues
# the line before it, which begins with white space.
_ANOTHER_RECORD = re.compile(rb"\n(?![ \t])[^:\n]*WARC/[01]\.\d\r?\n")
_TRIAL_BYTES = 1 << 10  # of what looks like a member are unpacked to see whether a record begins in it
_TRIALS_MOST = 100_000  # in a file: one that is made to look like members everywhere costs seconds, not hours
_VAIN_BYTES_MOST = 4 << 20  # and as many as the file has are looked at as headers that are none, likewise
_PROBLEMS_MOST = 1_000  # kept in words
_GIVEN_UP = "the rest of the file is not read, since too much of it looks like records and is none"
_NO_RECORD = "no WARC record begins here"


class _Damage(Exception):
    """Says what is wrong from here on. `end`: where the next record begins, if that is known."""

    def __init__(self, words: str, end: int | None = None) -> None:
        super().__init__(words)
        self.end = end


class WarcReader:
    """The records of one file in order. Iterate once; afterwards `problems` tells what could not be read, by its
    offset, and first of all where it gave up. Behind damage it goes on at the next gzip member, or plain record, that
    can be found.

    It may begin at the record at `start`, and read a part of a larger file (`inside`: the part's offset and size, such
    as a stored member of a ZIP file); offsets are those in the part. Records of more than `record_bytes` are passed
    over and told.
    """

    def __init__(
        self,
        path: Path,
        *,
        start: int = 0,
        inside: tuple[int, int] | None = None,
        record_bytes: int = MAX_RECORD_BYTES,
    ) -> None:
        self.path, self._start, self._record_bytes = path, start, record_bytes
        self.problems: list[str] = []
        self._trials = self._vain_bytes = 0
        self._has_given_up = False
        self._source = _Source(path, inside=inside)

    @property
    def size(self) -> int:
        """The bytes of the file, or of the part of it that is read."""
        return self._source.size

    def __iter__(self) -> Iterator[WarcRecord]:
        is_compressed = self._is_compressed()
        read = self._compressed if is_compressed else self._plain
        at, has_found = self._start, bool(self._start)
        while at < self._source.size:
            try:
                record, at = read(at)
            except _Damage as damage:
                end = damage.end or self._next(at + 1, is_compressed=is_compressed)
                if end is None and self._has_given_up:  # told first, and however many problems there are
                    self.problems.insert(0, f"byte {at}: {damage}; {_GIVEN_UP}")
                else:
                    self._tell(at, str(damage), end)
                at = self._source.size if end is None else end
            else:
                has_found = True
                yield record
        if self.problems and not has_found:
            raise StoreError(f"{self.path} is not a WARC file that can be read: {self.problems[0]}")

    def _is_compressed(self) -> bool:
        """By its beginning, or, where that is damaged, by what is found first."""
        start = self._source.read(0, 5)
        if start.startswith(_GZIP_MAGIC) or start == b"WARC/":
            return start != b"WARC/"
        plain, member = self._next(0, is_compressed=False), self._next(0, is_compressed=True)
        return member is not None and (plain is None or member < plain)

    def _tell(self, at: int, words: str, end: int | None = None) -> None:
        if len(self.problems) < _PROBLEMS_MOST:
            behind = f"; {end - at} bytes passed over" if end is not None else ""
            self.problems.append(f"byte {at}: {words}{behind}")

    def _next(self, at: int, *, is_compressed: bool) -> int | None:
        """Where the next record begins, from `at` on; None if none can be found, or too much was tried."""
        pattern = _MEMBER_START if is_compressed else _RECORD_START
        self._has_given_up = self._vain_bytes > _VAIN_BYTES_MOST + self._source.size
        if self._has_given_up:
            return None
        while at < self._source.size:
            window = self._source.read(at, _WINDOW_BYTES)
            for found in pattern.finditer(window):
                if not is_compressed or self._begins_record(at + found.start()):
                    return at + found.start()
                if self._trials >= _TRIALS_MOST:
                    self._has_given_up = True
                    return None
            at += max(len(window) - _START_BYTES, 1)
        return None

    def _begins_record(self, at: int) -> bool:
        self._trials += 1
        try:
            content = isal_zlib.decompressobj(31).decompress(self._source.read(at, _TRIAL_BYTES), 16)
        except _GZIP_ERROR:
            return False
        return content.startswith(b"WARC/")

    def _compressed(self, at: int) -> tuple[WarcRecord, int]:
        data, end = _member(self._source, at, record_bytes=self._record_bytes)
        return _only_record(data, at, end - at), end

    def _plain(self, at: int) -> tuple[WarcRecord, int]:
        head = parse_head(start := self._source.head(at))
        if head is None:
            self._vain_bytes += len(start)
            raise _Damage(_NO_RECORD)
        kind, headers, head_bytes, block_bytes = head
        end = at + head_bytes + block_bytes
        if end > self._source.size:
            self._vain_bytes += len(start)
            raise _Damage("the record ends behind the end of the file")
        if block_bytes > self._record_bytes:
            raise _Damage(f"a record of more than {self._record_bytes} bytes", end + 4)
        block = self._source.read(at + head_bytes, block_bytes)
        record = WarcRecord(type=kind, headers=headers, block=block, offset=at, length=end - at)
        if self._source.read(end, 4) == b"\r\n\r\n":
            return record, end + 4
        self._tell(at, "the record is longer than its Content-Length")
        found = _NEXT_RECORD.search(self._source.read(end, _MAX_HEAD_BYTES))
        return record, end + found.end() if found else self._source.size

    def record_at(self, offset: int) -> WarcRecord:
        """The record that begins at an offset; raises StoreError where none does."""
        try:
            return self._plain(offset)[0] if self._source.read(offset, 5) == b"WARC/" else self._compressed(offset)[0]
        except _Damage as damage:
            raise StoreError(f"no whole record at byte {offset} of {self.path}: {damage}") from damage

    def close(self) -> None:
        self._source.close()

    def __enter__(self) -> "WarcReader":
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        self.close()


def read_record(path: Path, place: WarcLocation) -> WarcRecord:
    """Reads the record at `place` of the file at `path`; raises `StoreError` when it is not whole."""
    source = _Source(path, place.length)
    try:
        data, end = _member(source, place.offset, min(place.length, _WINDOW_BYTES))
        if end - place.offset != place.length:
            raise _Damage(f"{end - place.offset} bytes long where {place.length} were written")
        return _only_record(data, place.offset, place.length)
    except _Damage as damage:
        raise StoreError(f"no whole record at byte {place.offset} of {path}: {damage}") from damage
    finally:
        source.close()


def read_message(path: Path, place: WarcLocation) -> tuple[bytes, bytes, str] | None:
    """Reads header block, body and WARC-Record-ID of a response of ours, as `WarcRecord` gives them, and checks nothing
    else: for whoever reads all of them. None where there is no such record, or it needs a closer look."""
    stream = isal_zlib.decompressobj(31)
    try:
        packed = _read_bytes(path, place.offset, place.length)
        data = stream.decompress(packed)
    except (OSError, _GZIP_ERROR):
        return None
    start = data.find(b"\r\n\r\n") + 4
    if data.find(_RENDERED, 0, start) >= 0:
        return None
    end = data.find(b"\r\n\r\n", start) + 4
    is_whole = stream.eof and not stream.unused_data and len(packed) == place.length and 4 <= start < end
    if not is_whole or b"\r\nWARC-Type: response\r\n" not in data[:start] or not data.endswith(b"\r\n\r\n"):
        return None
    head, found = data[start:end], _RECORD_ID.search(data, 0, start)
    return None if b"hunked" in head or found is None else (head, data[end:-4], found[1].decode())


def read_record_id(path: Path, place: WarcLocation) -> str | None:
    """Reads the WARC-Record-ID of the record at `place`, and no more of it; None where that takes a closer look."""
    try:
        packed = _read_bytes(path, place.offset, min(place.length, _ID_WITHIN_BYTES))
        data = isal_zlib.decompressobj(31).decompress(packed, _ID_WITHIN_BYTES)
    except (OSError, _GZIP_ERROR):
        return None
    found = _RECORD_ID.search(data)
    return found[1].decode() if found else None


def _read_bytes(path: Path, offset: int, length: int) -> bytes:
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.pread(file, length, offset)
    finally:
        os.close(file)


def iter_members(path: Path) -> Iterator[tuple[bytes, bytes]]:
    """Every gzip member of the file as it is, and unpacked; raises `StoreError` where one is not whole."""
    source, at = _Source(path), 0
    try:
        while at < source.size:
            content, end = _member(source, at)
            yield source.read(at, end - at), content
            at = end
    except _Damage as damage:
        raise StoreError(f"{path} is damaged at byte {at}: {damage}") from damage
    finally:
        source.close()


def read_members_at(path: Path, places: Iterable[tuple[int, int]]) -> Iterator[bytes]:
    """The unpacked members at these (offset, length), in their order."""
    source = _Source(path, 0)
    try:
        for offset, length in places:
            content, end = _member(source, offset, min(length, _WINDOW_BYTES))
            if end != offset + length:
                raise _Damage(f"the member at byte {offset} is not as long as it was")
            yield content
    except _Damage as damage:
        raise StoreError(f"{path} is damaged: {damage}") from damage
    finally:
        source.close()


def parse_member(content: bytes, offset: int, length: int, *, path: Path) -> WarcRecord:
    """The record that the unpacked member at `offset` of `path` holds."""
    try:
        return _only_record(content, offset, length)
    except _Damage as damage:
        raise StoreError(f"no whole record at byte {offset} of {path}: {damage}") from damage


def intact_length(path: Path) -> int:
    """Where the last whole gzip member of the file ends."""
    source, at = _Source(path), 0
    try:
        while at < source.size:
            _, at = _member(source, at)
    except _Damage:
        pass
    finally:
        source.close()
    return at


class _Source:
    """Bytes of a file by position, read ahead a little. Not mapped: a file that is cut back would kill the process."""

    def __init__(self, path: Path, least_bytes: int = _WINDOW_BYTES, *, inside: tuple[int, int] | None = None) -> None:
        self._path, self._least_bytes = path, least_bytes
        try:
            self._file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise storage_error(error, path=path, doing="reading the archive") from error
        self._base, self.size = inside or (0, os.fstat(self._file).st_size)
        self._window, self._window_at = b"", 0

    def read(self, at: int, size: int) -> bytes:
        """Up to `size` bytes from `at`; fewer only at the end of the file."""
        if not self._window_at <= at <= at + size <= self._window_at + len(self._window):
            try:
                most = max(self.size - at, 0)
                self._window = os.pread(self._file, min(max(size, self._least_bytes), most), self._base + at)
            except OSError as error:
                raise storage_error(error, path=self._path, doing="reading the archive") from error
            self._window_at = at
        start = at - self._window_at
        return self._window[start : start + size]

    def head(self, at: int) -> bytes:
        """The bytes from `at` on that can be a record's header: up to an empty line, or where another record begins."""
        size = _HEAD_BYTES
        while True:
            data = self.read(at, size)
            end = data.find(b"\r\n\r\n")
            if another := _ANOTHER_RECORD.search(data, 0, end if end >= 0 else len(data)):
                return data[: another.start()]
            if end >= 0:
                return data[: end + 4]
            if len(data) < size or size >= _MAX_HEAD_BYTES:
                return data
            size *= 2

    def close(self) -> None:
        os.close(self._file)


def _member(
    source: _Source, at: int, window_bytes: int = _WINDOW_BYTES, *, record_bytes: int = MAX_RECORD_BYTES
) -> tuple[bytes, int]:
    """The content of the gzip member that starts at `at`, and where it ends."""
    stream, parts, size = isal_zlib.decompressobj(31), list[bytes](), 0
    while not stream.eof:
        data = source.read(at, window_bytes)
        if not data:
            raise _Damage("the file ends in the middle of a record")
        try:
            part = stream.decompress(data)
        except _GZIP_ERROR as error:
            raise _Damage("not gzip, or damaged") from error
        size, at = size + len(part), at + len(data)
        if size > record_bytes:
            parts.clear()  # it is unpacked to its end, to know where that is, but not kept
        else:
            parts.append(part)
    if size > record_bytes:
        raise _Damage(f"a record of more than {record_bytes} bytes", at - len(stream.unused_data))
    return b"".join(parts), at - len(stream.unused_data)


def _only_record(data: bytes, offset: int, length: int) -> WarcRecord:
    head = parse_head(data)
    if head is None:
        raise _Damage(_NO_RECORD, offset + length)
    kind, headers, head_bytes, block_bytes = head
    if head_bytes + block_bytes > len(data):
        raise _Damage("the record is shorter than its Content-Length", offset + length)
    if data[head_bytes + block_bytes :].strip(b"\r\n"):
        words = "it is compressed as a whole, not record by record: recompress it to read it here"
        raise _Damage(words, offset + length)
    block = data[head_bytes : head_bytes + block_bytes]
    return WarcRecord(type=kind, headers=headers, block=block, offset=offset, length=length)
