"""Reads documents for the search index on all cores: processes that open records of the archive and read them.

    python -m lycosa.engine.read_ahead DIR…     a worker: takes lists of (URL, place), answers with what is for reading

Used while an index is made anew, or catches up when its crawl is over: then reading is all there is to do. Beside a
crawl they would take its cores. Order is kept, and at most a few lists a worker are under way. A worker that dies
leaves its list to the caller's own process.
"""

import os
import re
import struct
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache
from itertools import islice
from pathlib import Path
from queue import SimpleQueue
from typing import IO, TYPE_CHECKING

import msgspec

from lycosa.engine.processes import start
from lycosa.errors import StoreError
from lycosa.fetch.decode import decode
from lycosa.store import Place, read_message
from lycosa.store.released import record_at
from lycosa.store.warc_file import warc_path
from lycosa.web.readable import Readable, readable

if TYPE_CHECKING:
    import subprocess

BODY_CAP_BYTES = 64 << 20
LIST_PAGES = 32
AHEAD = 3  # lists a worker
_SIZE = struct.Struct(">I")
# The last of a name counts, as it does everywhere else.
_CODING, _TYPE = (
    re.compile(rb"(?ims)^%b[ \t]*:([^\r\n]*)(?!.*^%b[ \t]*:)" % (name, name))
    for name in (b"content-encoding", b"content-type")
)

Job = tuple[str, bytes]  # URL, place


def read_one(folders: Sequence[Path], url: str, place: bytes, *, for_snippets: bool = False) -> Readable | None:
    """What is for reading in a record; None if the archive, in these folders and their stores, no longer has it."""
    found = Place.unpack(place)
    file = _file(tuple(folders), found.file_number)
    message = read_message(file, found) or _read_slowly(folders, found)
    if message is None:
        return None
    head, body = message
    coding, content_type = _CODING.search(head), _TYPE.search(head)
    if coding:
        body = decode(body, coding[1].decode("latin-1").strip(), cap_bytes=BODY_CAP_BYTES).body
    said = content_type[1].decode("latin-1").strip() if content_type else None
    return readable(body, url=url, content_type=said, for_snippets=for_snippets)


@lru_cache(1_000)
def _file(folders: tuple[Path, ...], number: int) -> Path:
    """The file of this number, in whichever of the folders it is."""
    files = [warc_path(folder, number) for folder in folders]
    return files[0] if len(files) == 1 else next(filter(Path.exists, files), files[0])


def _read_slowly(folders: Sequence[Path], place: Place) -> tuple[bytes, bytes] | None:
    """The same of any record; of one whose body is elsewhere nothing: whoever has the state finds it."""
    try:
        record = record_at(folders, place)
    except StoreError:
        return None
    return None if record.type == "revisit" else record.http()


class ReadAhead:
    """As many workers as there are cores. Close it."""

    def __init__(self, folders: Sequence[Path], workers: int | None = None) -> None:
        self._folders = folders
        count = workers or min(8, os.cpu_count() or 1)
        self._workers = [start("lycosa.engine.read_ahead", *folders) for _ in range(count)]
        self._free: SimpleQueue[subprocess.Popen[bytes]] = SimpleQueue()
        for worker in self._workers:
            self._free.put(worker)
        self._threads = ThreadPoolExecutor(count, "read-ahead")

    def __repr__(self) -> str:
        return f"<ReadAhead workers={len(self._workers)}>"

    def map(self, jobs: Iterable[Job]) -> Iterator[Readable | None]:
        """What is for reading in each, in the order of the jobs. The first ones are begun at once."""
        rest = iter(jobs)
        under_way: deque[Future[list[Readable | None]]] = deque()
        self._begin(rest, under_way)
        return self._results(rest, under_way)

    def _begin(self, rest: Iterator[Job], under_way: "deque[Future[list[Readable | None]]]") -> None:
        while len(under_way) < AHEAD * len(self._workers) and (some := list(islice(rest, LIST_PAGES))):
            under_way.append(self._threads.submit(self._ask, some))

    def _results(
        self, rest: Iterator[Job], under_way: "deque[Future[list[Readable | None]]]"
    ) -> Iterator[Readable | None]:
        while under_way:
            found = under_way.popleft().result()
            self._begin(rest, under_way)
            yield from found

    def _ask(self, jobs: Sequence[Job]) -> list[Readable | None]:
        """In a thread of its own, which waits for a worker and then for its answer."""
        worker = self._free.get()
        try:
            assert worker.stdin is not None
            assert worker.stdout is not None
            _send(worker.stdin, msgspec.msgpack.encode(jobs))
            answer = _receive(worker.stdout)
        except OSError:
            answer = None
        finally:
            self._free.put(worker)
        if answer is None:
            return [read_one(self._folders, url, place) for url, place in jobs]
        return msgspec.msgpack.decode(answer, type=list[Readable | None])

    def close(self) -> None:
        self._threads.shutdown()
        for worker in self._workers:
            for stream in (worker.stdin, worker.stdout):
                if stream is not None:
                    stream.close()
            worker.wait()


def _send(stream: IO[bytes], data: bytes) -> None:
    stream.write(_SIZE.pack(len(data)) + data)
    stream.flush()


def _receive(stream: IO[bytes]) -> bytes | None:
    head = stream.read(_SIZE.size)
    return stream.read(_SIZE.unpack(head)[0]) if len(head) == _SIZE.size else None


def main() -> None:
    """A worker's life: until its input ends."""
    folders = [Path(word) for word in sys.argv[1:]]
    while (asked := _receive(sys.stdin.buffer)) is not None:
        jobs = msgspec.msgpack.decode(asked, type=list[Job])
        _send(sys.stdout.buffer, msgspec.msgpack.encode([read_one(folders, url, place) for url, place in jobs]))


if __name__ == "__main__":
    main()
