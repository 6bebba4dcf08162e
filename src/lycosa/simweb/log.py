"""The request log: one JSON line a request, opened by a line that says which web it was.

Written by the server and the in-memory web, read by the audit. Times are of the monotonic clock; `end` is when the last
byte was handed to the network or the connection was closed. Lines are buffered and written a few times a second.
"""

import errno
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec

from lycosa.errors import SettingsError, StoreError
from lycosa.simweb.settings import SimSettings

FLUSH_BYTES = 1 << 16


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
    """Appends entries to a file. `path` None keeps nothing."""

    def __init__(self, path: Path | None, settings: SimSettings) -> None:
        self._buffer: list[bytes] = []
        self._size = 0
        self._file: BinaryIO | None = None
        self.path, self.requests = path, 0
        if path is not None:
            try:
                self._file = path.open("wb", buffering=0)
            except OSError as error:
                raise SettingsError(f"cannot write the log {path}: {error.strerror}") from error
            self._put(_encode(Header(settings)))

    def add(self, entry: Entry) -> None:
        self.requests += 1
        if self._file is not None:
            self._put(_encode(entry))

    def _put(self, line: bytes) -> None:
        self._buffer.append(line)
        self._size += len(line)
        if self._size > FLUSH_BYTES:
            self.flush()

    def flush(self) -> None:
        if self._file is None or not self._buffer:
            return
        data = b"\n".join(self._buffer) + b"\n"
        self._buffer, self._size = [], 0
        try:
            while data:
                data = data[self._file.write(data) or 0 :]
        except OSError as error:
            reason = "no space left" if error.errno == errno.ENOSPC else error.strerror
            raise StoreError(f"cannot write the log {self.path}: {reason}") from error

    def close(self) -> None:
        self.flush()
        if self._file is not None:
            self._file.close()
            self._file = None


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
