"""The text log: the main texts of pages on their way from a crawl to its search index, so that none is parsed again.

    texts/00000001     versions of frames and texts (2 bytes each), then for each commit: size (4 bytes) · msgpack of a
                       `_Frame`

The crawl writes a frame before the commit that its pages are in; the follower reads along with the feed, whose sequence
stands in every frame, and deletes the files that it has read. The log is a cache: a text that is not in it is read from
the archive. So it is bounded, never synced, deleted when a crawl starts and when it ends, and given up where the disk
refuses. `TextLog` is the crawl's side, `TextLogReader` that of the follower; the pages are confirmed by their digests.
"""

import errno
import os
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import IO

import msgspec

from lycosa.store import Batch, PageRow
from lycosa.web import MAIN_TEXT_VERSION, Readable

IN_USE = 3  # exit code of the follower, which both sides know from here: another process writes the index
FOLDER = "texts"
FILE_BYTES = 32_000_000
FILES_MOST = 32  # that the follower has not read; beyond it no texts are kept, and it reads the archive
FRAME_BYTES = 16_000_000  # of texts in one commit; what comes after is read from the archive
HELD_BYTES = 64_000_000  # the same for what the follower holds
FRAME_VERSION = 1  # counts up with every change of what a frame is made of; 0 had the texts as str
_VERSIONS, _SIZE = struct.Struct(">HH"), struct.Struct(">I")


class _Text(msgspec.Struct, array_like=True):
    file_num: int
    digest: bytes
    text: Readable


class _Frame(msgspec.Struct, array_like=True):
    """The texts of a commit; `sequence` is the last one of the feed in it."""

    sequence: int
    texts: list[_Text]


class TextLog:
    """The crawl's side, a participant in its commits. Close it. `last_sequence` gives the feed's, as soon as the open
    commit has its entries."""

    def __init__(self, collection: Path, last_sequence: Callable[[], int]) -> None:
        self._folder, self._last_sequence = collection / FOLDER, last_sequence
        self._waiting: list[tuple[PageRow, Readable]] = []
        self._waiting_bytes = 0
        self._encoder, self._frame = (
            msgspec.msgpack.Encoder(),
            bytearray(),
        )  # used again: its memory need not be found anew
        self._number = 0
        self._file: IO[bytes] | None = None
        self._is_usable = True
        self.close()

    def __repr__(self) -> str:
        return f"<TextLog {self._folder} file={self._number} waiting={len(self._waiting)}>"

    def add(self, row: PageRow, text: Readable) -> None:
        """Adds the text of a page that is in the open commit; its row gets its FileNum by then."""
        self._waiting_bytes += len(text.text_utf8)
        if self._is_usable and self._waiting_bytes <= FRAME_BYTES:
            self._waiting.append((row, text))

    def before_commit(self, batch: Batch, *, is_last: bool) -> None:
        waiting, self._waiting, self._waiting_bytes = self._waiting, [], 0
        if not waiting:
            return
        texts = [_Text(row.file_num, row.digest, text) for row, text in waiting]
        self._encoder.encode_into(_Frame(self._last_sequence(), texts), self._frame, _SIZE.size)
        _SIZE.pack_into(self._frame, 0, len(self._frame) - _SIZE.size)
        try:
            self._write(self._frame)
        except OSError:  # the disk refuses, and the commit itself will say so
            self._is_usable = False
            self.close()

    def on_committed(self) -> None:
        return

    def _write(self, frame: bytes | bytearray) -> None:
        if self._file is None or self._file.tell() >= FILE_BYTES:
            if self._file is not None:
                self._file.close()
                self._file = None
            self._folder.mkdir(exist_ok=True)
            if len(list(self._folder.iterdir())) >= FILES_MOST:
                return
            self._number += 1
            self._file = (self._folder / f"{self._number:08}").open("wb", buffering=0)
            frame = _VERSIONS.pack(FRAME_VERSION, MAIN_TEXT_VERSION) + frame
        if self._file.write(frame) < len(frame):
            raise OSError(errno.ENOSPC, "the frame was written in part")

    def close(self) -> None:
        """Deletes the log."""
        if self._file is not None:
            self._file.close()
            self._file = None
        shutil.rmtree(self._folder, ignore_errors=True)


class TextLogReader:
    """The follower's side: holds the texts of the pages that it is about to index."""

    def __init__(self, collection: Path) -> None:
        self._folder = collection / FOLDER
        self._file: IO[bytes] | None = None
        self._held: dict[int, tuple[int, _Text]] = {}  # by FileNum, with the sequence of the frame
        self._sizes: dict[int, int] = {}  # of the frames that they are of, by sequence
        self._read_until = 0
        self._decoder = msgspec.msgpack.Decoder(_Frame)

    def __repr__(self) -> str:
        return f"<TextLogReader {self._folder} held={len(self._held)}>"

    def read(self, after: int, until: int) -> None:
        """Reads as far as the texts of the feed's entries `after` one sequence and up to another; forgets others."""
        self._held = {number: each for number, each in self._held.items() if each[0] > after}
        self._sizes = {sequence: size for sequence, size in self._sizes.items() if sequence > after}
        while self._read_until < until and (data := self._next()):
            frame = self._decoder.decode(data)
            self._read_until = frame.sequence
            if frame.sequence > after and sum(self._sizes.values()) <= HELD_BYTES:
                self._sizes[frame.sequence] = len(data)
                self._held |= {each.file_num: (frame.sequence, each) for each in frame.texts}

    def text(self, file_num: int, digest: bytes) -> Readable | None:
        """The text of a page with this document, if the log has it."""
        _, found = self._held.get(file_num, (0, None))
        return found.text if found is not None and found.digest == digest else None

    def _next(self) -> bytes:
        """The next frame; empty if there is none, or not all of it yet."""
        while self._file is not None or self._open(""):
            assert self._file is not None
            start = self._file.tell()
            size = self._file.read(_SIZE.size)
            frame = self._file.read(_SIZE.unpack(size)[0]) if len(size) == _SIZE.size else b""
            if frame and len(frame) == _SIZE.unpack(size)[0]:
                return frame
            self._file.seek(start)
            read = Path(self._file.name)
            if not self._open(read.name):
                return b""
            read.unlink(missing_ok=True)
        return b""

    def _open(self, after: str) -> bool:
        """Opens the oldest file that comes after the one of this name."""
        try:
            path = min((path for path in self._folder.iterdir() if path.name > after), default=None)
            opened = path.open("rb") if path else None
        except OSError:  # the crawl is over and has deleted it
            opened = None
        if opened is None:
            return False
        versions = opened.read(_VERSIONS.size)
        if len(versions) < _VERSIONS.size:  # it is about to be written
            opened.close()
            return False
        if self._file is not None:
            self._file.close()
        self._file = opened
        if versions != _VERSIONS.pack(FRAME_VERSION, MAIN_TEXT_VERSION):
            opened.seek(0, os.SEEK_END)
        return True

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
