"""Appends records to numbered WARC files, rotates them, and puts them right after a crash.

Invariant: a file holds whole gzip members only, but for what a crash left behind its committed length. `append` hands
all members to the kernel in one write before it returns, so they survive the death of the process; `sync` makes them
survive a power loss. An append that fails leaves the file as it was. The order that makes a commit safe is: `append`,
then (`sync`), then the state batch with `lengths` in it. Used by `lycosa.store.collection`.
"""

import contextlib
import os
import re
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import accumulate
from pathlib import Path

import msgspec
from isal import isal_zlib

from lycosa.errors import StoreError, storage_error
from lycosa.files import sync_folder
from lycosa.store.warc_read import MAX_FILE_BYTES, WarcLocation, intact_length
from lycosa.store.warc_record import warcinfo

# The size archives rotate at: large enough to be few, small enough to copy.
DEFAULT_FILE_BYTES = 1 << 30
JOINED_BYTES = 1 << 20  # members that are written in one piece
_NAME = re.compile(r"lycosa-(\d{6,})\.warc\.gz")
_GZIP_TRAILER_BYTES, _GZIP_MAGIC = 8, b"\x1f\x8b"
# So much of the last file is read again at a start: what a failing disk did to what was written last is told then.
TAIL_BYTES = 256 * 1024


class WarcRecovery(msgspec.Struct, frozen=True):
    """What a start found: bytes cut behind the committed length, up to where files are whole that hold less than was
    committed, and from where to where the last part of a file is damaged."""

    cut_bytes: dict[int, int] = {}
    short: dict[int, int] = {}
    damaged: dict[int, list[tuple[int, int]]] = {}

    @property
    def has_losses(self) -> bool:
        return bool(self.short or self.damaged)

    def is_lost(self, place: WarcLocation) -> bool:
        """Whether the record at `place` is not whole: its page has to be fetched again."""
        end = place.offset + place.length
        if end > self.short.get(place.file_number, end):
            return True
        return any(place.offset < until and begin < end for begin, until in self.damaged.get(place.file_number, ()))


class WarcWriter:
    """The one writer of a folder of WARC files. `recover` comes before the first `append`."""

    def __init__(
        self,
        folder: Path,
        *,
        info: Mapping[str, str],
        max_bytes: int = DEFAULT_FILE_BYTES,
        first_number: int = 0,
    ) -> None:
        if not 0 < max_bytes <= MAX_FILE_BYTES:
            raise ValueError(f"a WARC file is rotated at 1 to {MAX_FILE_BYTES} bytes, not {max_bytes}")
        self.folder = folder
        self.max_bytes = max_bytes
        # Lengths of the files that grew since `on_committed` was last called: what the next state batch has to name.
        self.lengths: dict[int, int] = {}
        self._info = dict(info)
        self._number = self._first_number = first_number
        self._length = 0
        self._file = -1
        self._is_new_name = False
        self._has_torn_end = False
        self._is_synced_on_rotation = False

    def path(self, number: int) -> Path:
        return warc_path(self.folder, number)

    def recover(self, committed: Mapping[int, int], released: Collection[int] = ()) -> WarcRecovery:
        """Makes the files agree with the committed lengths, and goes on behind the last of them. Files that were
        released are elsewhere, and their numbers are taken."""
        self.close()
        recovery = WarcRecovery()
        try:
            for number in self._numbers() & set(released):
                self.path(number).unlink(missing_ok=True)
            last = max(committed, default=0)
            for number in sorted(self._numbers() | committed.keys()):
                self._recover_file(number, committed.get(number, 0), recovery, is_last=number == last)
        except OSError as error:
            raise storage_error(error, path=self.folder, doing="recovering the archive") from error
        self._number = max([*committed, *released], default=self._first_number)
        if self._number in recovery.short or self._number in recovery.damaged or self._number in released:
            # Places in the lost part, or in what is elsewhere, must never come to point into new records; and a disk
            # that damaged a file gets another one.
            self._number += 1
        self._length = committed.get(self._number, 0)
        self.lengths = {}
        return recovery

    def _numbers(self) -> set[int]:
        found = (_NAME.fullmatch(entry.name) for entry in self.folder.iterdir())
        return {int(match[1]) for match in found if match}

    def _recover_file(self, number: int, committed_bytes: int, recovery: WarcRecovery, *, is_last: bool) -> None:
        path = self.path(number)
        size = path.stat().st_size if path.exists() else 0
        if size < committed_bytes or not _has_written_end(path, committed_bytes):
            recovery.short[number] = min(intact_length(path), committed_bytes) if size else 0
            return
        if is_last and committed_bytes and (damaged := _damage_in_tail(path, committed_bytes)):
            recovery.damaged[number] = damaged
        if size > committed_bytes:
            recovery.cut_bytes[number] = size - committed_bytes
            os.truncate(path, committed_bytes)
        if not committed_bytes:
            path.unlink(missing_ok=True)

    def append(self, members: Sequence[bytes]) -> list[WarcLocation]:
        """Writes all members behind each other into one file; returns where each one is."""
        try:
            self._ready()
            start = self._length
            self._write(members)
        except OSError as error:
            raise storage_error(error, path=self.path(self._number), doing="writing the archive") from error
        offsets = accumulate((len(member) for member in members), initial=start)
        return [
            WarcLocation(self._number, offset, len(member)) for offset, member in zip(offsets, members, strict=False)
        ]

    def _ready(self) -> None:
        """Prepares a file to write to, whole to its end and not yet full."""
        if self._has_torn_end:
            os.ftruncate(self._file, self._length)
            self._has_torn_end = False
        if self._length >= self.max_bytes:
            self._rotate()
        if self._file < 0:
            self._open(max(self._number, 1))
        if not self._length:
            name = self.path(self._number).name
            self._write([warcinfo(self._info, filename=name, created_s=time.time())])

    def finish_file(self) -> None:
        """Finishes the open file, however short it is; the next append begins another."""
        if self._length:
            self._rotate()

    @property
    def number(self) -> int:
        """The number of the file that is appended to next; those before it are finished."""
        return self._number

    def _rotate(self) -> None:
        if self._file >= 0 and self._is_synced_on_rotation:
            os.fsync(self._file)
        self.close()
        self._number += 1
        self._length = 0

    def _open(self, number: int) -> None:
        path = self.path(number)
        self._is_new_name = not path.exists()
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        self._number = number
        size = os.fstat(self._file).st_size
        if size != self._length:
            self.close()
            raise StoreError(f"the archive {path} has {size} bytes where {self._length} were committed")

    def _write(self, members: Sequence[bytes]) -> None:
        at = self._length
        try:
            for data in _joined(members):
                rest = memoryview(data)
                while rest:
                    written = os.pwrite(self._file, rest, at)
                    rest, at = rest[written:], at + written
        except OSError:
            self._has_torn_end = True
            with contextlib.suppress(OSError):  # tried again before the next append
                os.ftruncate(self._file, self._length)
                self._has_torn_end = False
            raise
        self._length = at
        self.lengths[self._number] = at

    def on_committed(self) -> None:
        """Hears that the state names `lengths` now."""
        self.lengths.clear()

    def sync(self) -> None:
        """Everything appended so far is on the disk when this returns."""
        self._is_synced_on_rotation = True
        if self._file < 0:
            return
        try:
            os.fsync(self._file)
            if self._is_new_name:
                sync_folder(self.folder)
                self._is_new_name = False
        except OSError as error:
            raise storage_error(error, path=self.path(self._number), doing="writing the archive") from error

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def __repr__(self) -> str:
        return f"WarcWriter({str(self.folder)!r}, file {self._number}, {self._length} bytes)"


def _joined(members: Sequence[bytes]) -> Iterator[bytes]:
    """The members as they are written: small ones together, and large ones alone, which would be held twice."""
    small: list[bytes] = []
    size_bytes = 0
    for member in members:
        size_bytes += len(member)
        small.append(member)
        if size_bytes > JOINED_BYTES:
            yield b"".join(small[:-1])
            yield member
            small, size_bytes = [], 0
    yield b"".join(small)


def warc_path(folder: Path, number: int) -> Path:
    """The path of the file of this number. Nothing that a page says gets into a file name."""
    return folder / f"lycosa-{number:06d}.warc.gz"


def warc_number(name: str) -> int:
    """The number of the file that has this name, here or in a store."""
    return int(name.partition(".")[0].rpartition("-")[2])


def _has_written_end(path: Path, end: int) -> bool:
    """Whether the member that ends at `end` was written: after a power loss its blocks may read as zeros."""
    if not end:
        return True
    with path.open("rb") as file:
        file.seek(max(0, end - _GZIP_TRAILER_BYTES))
        return any(file.read(_GZIP_TRAILER_BYTES))


def _damage_in_tail(path: Path, end: int) -> list[tuple[int, int]]:
    """From where to where the last part of a file before `end` is damaged; the members around it are whole."""
    start = max(0, end - TAIL_BYTES)
    with path.open("rb") as file:
        file.seek(start)
        tail = file.read(end - start)
    at = _next_member(tail, 0) if start else 0  # the part may begin within a member
    damaged = []
    while at < len(tail):
        if length := _member_length(tail, at):
            at += length
        else:
            begin, at = at, _next_member(tail, at + 1)
            damaged.append((start + begin, start + at))
    return damaged


def _next_member(data: bytes, at: int) -> int:
    """Where the first whole gzip member at or behind `at` begins; the end of `data` if there is none."""
    at = data.find(_GZIP_MAGIC, at)
    while at >= 0 and not _member_length(data, at):
        at = data.find(_GZIP_MAGIC, at + 1)
    return at if at >= 0 else len(data)


def _member_length(data: bytes, at: int) -> int:
    """The length of the whole gzip member that begins at `at`; 0 if there is none."""
    stream = isal_zlib.decompressobj(31)
    try:
        stream.decompress(data[at:])
    except isal_zlib.error:  # type: ignore[misc]  # its stub says instance
        return 0
    return len(data) - at - len(stream.unused_data) if stream.eof else 0
