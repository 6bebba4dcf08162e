"""The request log: one JSON line for each request that went out, whatever it was for and however it ended.

Off unless `--request-log FILE` asks for it; then it observes every fetch. Lines are written with the commits, so the
file holds what the collection holds; a kill may cost the lines of the last moment, a full disk those that find no room.
A file that is there is continued.
"""

from datetime import UTC, datetime
from pathlib import Path

import msgspec

from lycosa.crawl.committer import CommitParticipant
from lycosa.crawl.seams import FetchObserver, ReadPage, Shard
from lycosa.errors import StoreError
from lycosa.frontier import Lease
from lycosa.records import Failure, Response
from lycosa.store import SHARDS_FOLDER


class RequestLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """A line of the log. `time` is when the request began, `bytes` the size of the body as sent; times of answers are
    in milliseconds from there. `attempt` is 1 for the first one; `shard` is the folder of the shard that asked."""

    time: str
    url: str
    kind: str
    status: int = 0
    failure: str = ""
    bytes: int = 0
    first_byte_ms: int | None = None
    total_ms: int | None = None
    attempt: int = 1
    address: str = ""
    shard: str = ""


class RequestWriter(FetchObserver, CommitParticipant):
    """Writes the log of one shard to `path`."""

    def __init__(self, path: Path, shard: Shard) -> None:
        folder = shard.collection.path
        self._shard, self._name = shard, folder.name if folder.parent.name == SHARDS_FOLDER else ""
        self._lines: list[bytes] = []
        try:
            self._file = path.open("ab", buffering=0)
        except OSError as error:
            raise StoreError(f"cannot write the request log {path}: {error.strerror}") from error

    def ended(self, lease: Lease, response: Response, page: ReadPage | None) -> None:
        if lease.is_claimed or response.failure is Failure.CANCELLED:
            return
        began = self._shard.now_unix() - (self._shard.now() - response.started_s)
        first_s = response.first_byte_s - response.started_s if response.first_byte_s else None
        line = RequestLine(
            time=datetime.fromtimestamp(began, UTC).isoformat(timespec="milliseconds"),
            url=lease.url,
            kind=lease.kind.name.lower(),
            status=response.status,
            failure=response.failure or "",
            bytes=response.size_bytes,
            first_byte_ms=None if first_s is None else round(1_000 * first_s),
            total_ms=round(1_000 * (response.ended_s - response.started_s)),
            attempt=1 + (lease.entry.tries + lease.entry.other_tries if lease.entry else 0),
            address=response.address,
            shard=self._name,
        )
        self._lines.append(msgspec.json.encode(line) + b"\n")

    def on_committed(self) -> None:
        lines, self._lines = b"".join(self._lines), []
        try:
            self._file.write(lines)
        except OSError as error:  # a log never ends a crawl
            self._shard.events.write("request-log-failed", error=str(error), lines=lines.count(b"\n"))
