"""`log.jsonl`: what happened, one JSON object a line, for people and scripts; the state is the truth.

A crawl writes through an `EventLog`. What is ordered from outside and obeyed by nobody who could log it, such as URLs
that are added, is written by whoever orders it (`log_order`), beside the crawl that may be writing.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import BinaryIO

import msgspec

from lycosa.errors import StoreError
from lycosa.store import LOG_FILE

URLS_NAMED = 20  # of those that are added at once


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


def log_order(path: Path, event: str, *, origin: str, **fields: object) -> None:
    """Writes into the log of a collection what somebody has ordered, beside the crawl that may be writing there."""
    with closing(EventLog(path / LOG_FILE, time.time)) as log:
        log.write(event, origin=origin, **fields)


def log_added(path: Path, urls: Sequence[str], *, origin: str) -> None:
    """Writes into the log that URLs were added, the first of them by name."""
    log_order(path, "added", origin=origin, count=len(urls), urls=urls[:URLS_NAMED])
