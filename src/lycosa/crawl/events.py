"""`log.jsonl`: what happened, one JSON object a line. For people and scripts; the state is the truth."""

from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import msgspec

from lycosa.errors import StoreError


class EventLog:
    """Appends events; lines are buffered until `flush`. A log that cannot be written does not stop a crawl."""

    def __init__(self, path: Path, now_unix: Callable[[], float]) -> None:
        self._now_unix = now_unix
        self._lines: list[bytes] = []
        try:
            self._file: BinaryIO | None = path.open("ab", buffering=0)
        except OSError as error:
            raise StoreError(f"cannot write {path}: {error.strerror}") from error

    def write(self, event: str, **fields: object) -> None:
        self._lines.append(msgspec.json.encode({"time": round(self._now_unix(), 3), "event": event, **fields}) + b"\n")

    def flush(self) -> None:
        if self._file is None or not self._lines:
            return
        lines, self._lines = b"".join(self._lines), []
        try:
            self._file.write(lines)
        except OSError:
            self._lines = []  # no space for the log: the commit will say so

    def close(self) -> None:
        self.flush()
        if self._file is not None:
            self._file.close()
            self._file = None
