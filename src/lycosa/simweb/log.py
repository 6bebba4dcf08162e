"""The request log: one JSON line a request, opened by a line that says which web it was.

Written by the server and the in-memory web, read by the audit. Times are of the monotonic clock; `end` is when the last
byte was handed to the network or the connection was closed; `bytes` are those of head and body. Lines are buffered and
written when `flush` is called; there are only whole ones, also where the disk is full.
"""

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec

from lycosa.errors import SettingsError, StoreError
from lycosa.simweb.settings import SimSettings


class Entry(msgspec.Struct, frozen=True):
    """One request as the server saw it."""

    start: float
    end: float
    host: str
    address: str
    path: str
    status: int
    bytes: int
    agent: str
    method: str = "GET"
    retry_after_s: float = 0.0


class Header(msgspec.Struct, frozen=True):
    """The first line: the settings, from which the audit builds the same web again."""

    simweb: SimSettings
    clock: str = "monotonic"


_encode = msgspec.json.Encoder().encode


class RequestLog:
    """Writes entries to a new file. `path` None keeps nothing. After a failure every flush raises it again."""

    def __init__(self, path: Path | None, settings: SimSettings) -> None:
        self._lines: list[bytes] = []
        self._file: BinaryIO | None = None
        self._failure: StoreError | None = None
        self._size = 0
        self.path, self.requests = path, 0
        if path is not None:
            self._file = _new_file(path)
            self._lines.append(_encode(Header(settings)))
            try:
                self.flush()
            except StoreError:
                self._file.close()
                raise

    def add(self, entry: Entry) -> None:
        self.requests += 1
        if self._file is not None and self._failure is None:
            self._lines.append(_encode(entry))

    def flush(self) -> None:
        if self._failure is not None:
            raise self._failure
        if self._file is None or not self._lines:
            return
        data = b"\n".join(self._lines) + b"\n"
        self._lines, written = [], 0
        try:
            while written < len(data):
                written += self._file.write(data[written:]) or 0
        except OSError as error:
            with contextlib.suppress(OSError):  # not every file can be cut
                os.ftruncate(self._file.fileno(), self._size + data.rfind(b"\n", 0, written) + 1)
            reason = "no space left" if error.errno == errno.ENOSPC else error.strerror
            self._failure = StoreError(f"cannot write the log {self.path}: {reason}")
            raise self._failure from error
        self._size += written

    def close(self) -> None:
        if self._file is None:
            return
        try:
            self.flush()
        finally:
            self._file.close()
            self._file = None


def _new_file(path: Path) -> BinaryIO:
    """The file to log to; one that has something in it is somebody's evidence."""
    try:
        file = path.open("ab", buffering=0)
    except OSError as error:
        raise SettingsError(f"cannot write the log {path}: {error.strerror}") from error
    if os.fstat(file.fileno()).st_size:
        file.close()
        raise SettingsError(f"the log {path} is there already: remove it, or choose another name with --log")
    return file


def read_log(path: Path) -> tuple[SimSettings, Iterator[Entry]]:
    """The settings and the entries of a log. A last line that is cut off is left out."""
    try:
        file = path.open("rb")
    except OSError as error:
        raise SettingsError(f"cannot read the log {path}: {error.strerror}") from error
    try:
        header = msgspec.json.decode(file.readline(), type=Header)
    except (msgspec.DecodeError, SettingsError) as error:
        file.close()
        raise SettingsError(
            f"{path} is not a log of the simulated web: its first line must name the web's settings"
        ) from error
    return header.simweb, _entries(path, file)


def _entries(path: Path, file: BinaryIO) -> Iterator[Entry]:
    decode = msgspec.json.Decoder(Entry).decode
    with file:
        for number, line in enumerate(file, 2):
            if not line.endswith(b"\n"):
                return
            try:
                yield decode(line)
            except msgspec.DecodeError as error:
                raise SettingsError(f"{path}, line {number}: not a request of the simulated web") from error
