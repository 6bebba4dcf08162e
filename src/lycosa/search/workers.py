"""A pool of processes that read records of the archive, one a core, and answer with what they found.

A worker takes lists of (URL, location) and answers in the same order; at most a few lists a worker are under way, so
memory is bounded by them. A worker that dies leaves its list to the caller's own process. A pool is for work that has
the machine to itself: beside a crawl it would take its cores. Who wants one says in which module the reading function
is: its `main` calls `serve`. Used by the indexer for texts and, by `reading_archive`, by the site report for markup.
"""

import contextlib
import os
import re
import struct
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import islice
from pathlib import Path
from queue import SimpleQueue
from subprocess import Popen
from typing import IO, TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import msgspec

from lycosa.errors import StoreError
from lycosa.processes import start_helper
from lycosa.store import WarcLocation, read_message, read_record_at, rendered_message, warc_path

if TYPE_CHECKING:
    from concurrent.futures import Future

MANY_DOCUMENTS = 2_000  # from here on it pays to start workers
LIST_PAGES = 32
LISTS_AHEAD = 3  # for each worker
_SIZE = struct.Struct(">I")

Found = TypeVar("Found")
Job = tuple[str, bytes]  # URL, packed location
Read = Callable[[Sequence[Path], str, bytes], Found | None]  # of archive folders, URL, packed location


class StoredMessage(NamedTuple):
    """A response as the archive has it: its header block, and its body with the content coding undone."""

    head: bytes
    body: bytes

    def field(self, name: bytes) -> str | None:
        """The last header field of this name, which counts, as it does everywhere else."""
        found = _field(name).search(self.head)
        return found[1].decode("latin-1").strip() if found else None


@lru_cache
def _field(name: bytes) -> re.Pattern[bytes]:
    return re.compile(rb"(?ims)^%b[ \t]*:([^\r\n]*)(?!.*^%b[ \t]*:)" % (name, name))


def stored_message(folders: Sequence[Path], place: bytes) -> StoredMessage | None:
    """The response whose record is at `place`; None if the archive, in these folders and their stores, no longer has
    it, or its body is with another record, which is found by the state."""
    found = WarcLocation.unpack(place)
    message = read_message(_file(tuple(folders), found.file_number), found)
    read = message[:2] if message else _read_slowly(folders, found)
    if read is None:
        return None
    stored = StoredMessage(*read)
    if coding := stored.field(b"content-encoding"):
        # lazy: 80 ms, which the follower of a crawl need not take
        from lycosa.fetch import decode_body
        from lycosa.recrawl import BODY_CAP_BYTES  # lazy: likewise

        return StoredMessage(stored.head, decode_body(stored.body, coding, cap_bytes=BODY_CAP_BYTES).body)
    return stored


@lru_cache(1_000)
def _file(folders: tuple[Path, ...], number: int) -> Path:
    """The file of this number, in whichever of the folders it is."""
    files = [warc_path(folder, number) for folder in folders]
    return files[0] if len(files) == 1 else next(filter(Path.exists, files), files[0])


def _read_slowly(folders: Sequence[Path], place: WarcLocation) -> tuple[bytes, bytes] | None:
    """The header block and body of any record; None where its body is elsewhere: it is found by the state."""
    try:
        record = read_record_at(folders, place)
    except StoreError:
        return None
    if record.type == "revisit":
        return None
    return rendered_message(record, place, partial(read_record_at, folders)) or record.http()


class ArchiveWorkers(Generic[Found]):
    """The pool; close it. `module` is where `read` and the workers' `main` are, `answers` the type of a list of what
    `read` finds."""

    def __init__(
        self, module: str, read: Read[Found], answers: Any, folders: Sequence[Path], workers: int | None = None
    ) -> None:
        self._folders, self._read, self._answers = folders, read, answers
        count = workers or min(8, os.cpu_count() or 1)
        self._workers = [start_helper(module, *folders) for _ in range(count)]
        self._free: SimpleQueue[Popen[bytes]] = SimpleQueue()
        for worker in self._workers:
            self._free.put(worker)
        from concurrent.futures import ThreadPoolExecutor  # lazy: 5 ms, which the follower of a crawl need not take

        self._threads = ThreadPoolExecutor(count, "archive")

    def __repr__(self) -> str:
        return f"<ArchiveWorkers workers={len(self._workers)}>"

    def map(self, jobs: Iterable[Job]) -> Iterator[Found | None]:
        """What is found for each, in the order of the jobs. The first ones are begun at once."""
        rest = iter(jobs)
        under_way: deque[Future[list[Found | None]]] = deque()
        self._begin(rest, under_way)
        return self._results(rest, under_way)

    def _begin(self, rest: Iterator[Job], under_way: "deque[Future[list[Found | None]]]") -> None:
        while len(under_way) < LISTS_AHEAD * len(self._workers) and (some := list(islice(rest, LIST_PAGES))):
            under_way.append(self._threads.submit(self._ask, some))

    def _results(self, rest: Iterator[Job], under_way: "deque[Future[list[Found | None]]]") -> Iterator[Found | None]:
        while under_way:
            found = under_way.popleft().result()
            self._begin(rest, under_way)
            yield from found

    def _ask(self, jobs: Sequence[Job]) -> list[Found | None]:
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
            return [self._read(self._folders, url, place) for url, place in jobs]
        return msgspec.msgpack.decode(answer, type=self._answers)  # type: ignore[no-any-return]

    def close(self) -> None:
        self._threads.shutdown()
        for worker in self._workers:
            for stream in (worker.stdin, worker.stdout):
                if stream is not None:
                    stream.close()
            worker.wait()


@contextlib.contextmanager
def reading_archive(
    module: str, read: Read[Found], answers: Any, folders: Sequence[Path], documents: int
) -> Iterator[Callable[[Iterable[Job]], Iterator[Found | None]]]:
    """The way to read so many documents: in this process, or where there are enough of them by a pool. The arguments
    are those of `ArchiveWorkers`."""
    if documents < MANY_DOCUMENTS:
        yield lambda jobs: (read(folders, url, place) for url, place in jobs)
        return
    pool: ArchiveWorkers[Found] = ArchiveWorkers(module, read, answers, folders)
    try:
        yield pool.map
    finally:
        pool.close()


def serve(read: Read[Any]) -> None:
    """The worker process: answers until its input ends. Its arguments are the archive folders."""
    folders = [Path(word) for word in sys.argv[1:]]
    while (asked := _receive(sys.stdin.buffer)) is not None:
        jobs = msgspec.msgpack.decode(asked, type=list[Job])
        _send(sys.stdout.buffer, msgspec.msgpack.encode([read(folders, url, place) for url, place in jobs]))


def _send(stream: IO[bytes], data: bytes) -> None:
    stream.write(_SIZE.pack(len(data)) + data)
    stream.flush()


def _receive(stream: IO[bytes]) -> bytes | None:
    head = stream.read(_SIZE.size)
    return stream.read(_SIZE.unpack(head)[0]) if len(head) == _SIZE.size else None
