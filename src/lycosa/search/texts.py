"""The readable texts of many pages: read in this process, or by workers on all cores where there are enough pages.

A record that is damaged is skipped and counted. A file that is missing, or a store that cannot be reached, is not: it
may come back, and until then nobody knows what those pages say. It raises `ArchiveUnavailable`, unless `skips_missing`.
Workers are used while an index is built, or catches up when its crawl is over; beside a crawl they would take its
cores. A worker takes lists of (URL, location) and answers with the readable texts; order is kept, and at most a few
lists a worker are under way. A worker that dies leaves its list to the caller's own process. Called by the indexer and
by views; nothing is written.
"""

import contextlib
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
from subprocess import Popen
from typing import IO

import msgspec

from lycosa.errors import StoreError
from lycosa.fetch import decode_body
from lycosa.graph import start_helper
from lycosa.recrawl import BODY_CAP_BYTES, StoredDocuments
from lycosa.search.documents import IndexMember
from lycosa.search.text_log import TextLogReader
from lycosa.store import ArchiveUnavailable, CollectionStore, WarcLocation, read_message, read_record_at, warc_path
from lycosa.web import Media, Readable, extract_readable, is_built_in, media_kind

MANY_PAGES = 2_000  # from here on it pays to start workers
LIST_PAGES = 32
LISTS_AHEAD = 3  # for each worker
_SIZE = struct.Struct(">I")
# The last of a name counts, as it does everywhere else.
_CODING, _TYPE = (
    re.compile(rb"(?ims)^%b[ \t]*:([^\r\n]*)(?!.*^%b[ \t]*:)" % (name, name))
    for name in (b"content-encoding", b"content-type")
)

Job = tuple[str, bytes]  # URL, packed location


class PageTexts:
    """The readable texts of a collection's pages. `unread` counts those of which nothing could be read; with
    `skips_missing` a missing file is no more than that; `for_snippets` leaves out what is not to be shown."""

    def __init__(
        self,
        collection: CollectionStore,
        *,
        skips_missing: bool = False,
        for_snippets: bool = False,
        log: TextLogReader | None = None,
    ) -> None:
        self._skips_missing, self._for_snippets, self._log = skips_missing, for_snippets, log
        self.unread = 0
        self._contents, self._folders = StoredDocuments(collection), collection.warc_folders
        self._analysers = self._contents.analysers
        self._pool: TextWorkers | None = None
        self._are_many = False  # pages are asked for: workers pay

    def __repr__(self) -> str:
        return f"<PageTexts {self._pool or 'read here'}>"

    @contextlib.contextmanager
    def expected(self, pages: int) -> Iterator[None]:
        """Within this context about so many pages will be asked for: where they are many, workers read them."""
        self._are_many = pages >= MANY_PAGES
        try:
            yield
        finally:
            self._are_many = False
            pool, self._pool = self._pool, None
            if pool is not None:
                pool.close()

    def of(self, members: Sequence[IndexMember]) -> Iterator[Readable | None]:
        """The readable text of each; None where its record is damaged. Workers begin at once."""
        log = self._log
        logged = {each.number: log.text(each.number, each.row.digest) for each in members} if log is not None else {}
        plain = [
            (member.url, member.row.place)
            for member in members
            if logged.get(member.number) is None and self._is_plain(member)
        ]
        if plain and self._are_many and self._pool is None:
            self._pool = TextWorkers(self._folders)
        if self._pool is not None:
            return self._completed(members, logged, self._pool.map(plain))
        read = (read_text(self._folders, *each, for_snippets=self._for_snippets) for each in plain)
        return self._completed(members, logged, read)

    def _completed(
        self, members: Sequence[IndexMember], logged: dict[int, Readable | None], plain: Iterator[Readable | None]
    ) -> Iterator[Readable | None]:
        """The texts of all members: those in the log, those in `plain`, and those whose body has to be looked for."""
        for member in members:
            found = logged.get(member.number)
            if found is None and self._is_plain(member):
                found = next(plain)
            if found is None and member.row.place:
                found = self._look_for(member)
                self.unread += found is None
            self.unread += member.row.lacks_body
            yield found

    def _look_for(self, member: IndexMember) -> Readable | None:
        try:
            content = self._contents.read(member.row)
        except ArchiveUnavailable:
            if not self._skips_missing:
                raise
            return None
        if content is None:
            return None
        fields, body = content
        return extract_readable(
            body,
            url=member.url,
            content_type=fields.get("content-type"),
            analysers=self._analysers,
            for_snippets=self._for_snippets,
        )

    def _is_plain(self, member: IndexMember) -> bool:
        """Has the page a record with a body of its own, as far as its row says, that the built-in analysers read?"""
        row = member.row
        is_usually_read = self._analysers is None or is_built_in(
            self._analysers, Media(media_kind(row.essence), row.essence)
        )
        return bool(row.place) and not row.original and is_usually_read


def read_text(folders: Sequence[Path], url: str, place: bytes, *, for_snippets: bool = False) -> Readable | None:
    """The readable text of a record; None if the archive, in these folders and their stores, no longer has it."""
    found = WarcLocation.unpack(place)
    file = _file(tuple(folders), found.file_number)
    message = read_message(file, found) or _read_slowly(folders, found)
    if message is None:
        return None
    head, body = message
    coding, content_type = _CODING.search(head), _TYPE.search(head)
    if coding:
        body = decode_body(body, coding[1].decode("latin-1").strip(), cap_bytes=BODY_CAP_BYTES).body
    said = content_type[1].decode("latin-1").strip() if content_type else None
    return extract_readable(body, url=url, content_type=said, for_snippets=for_snippets)


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
    return None if record.type == "revisit" else record.http()


class TextWorkers:
    """A pool of worker processes, one a core. Close it."""

    def __init__(self, folders: Sequence[Path], workers: int | None = None) -> None:
        self._folders = folders
        count = workers or min(8, os.cpu_count() or 1)
        self._workers = [start_helper("lycosa.search.texts", *folders) for _ in range(count)]
        self._free: SimpleQueue[Popen[bytes]] = SimpleQueue()
        for worker in self._workers:
            self._free.put(worker)
        self._threads = ThreadPoolExecutor(count, "texts")

    def __repr__(self) -> str:
        return f"<TextWorkers workers={len(self._workers)}>"

    def map(self, jobs: Iterable[Job]) -> Iterator[Readable | None]:
        """The readable text of each, in the order of the jobs. The first ones are begun at once."""
        rest = iter(jobs)
        under_way: deque[Future[list[Readable | None]]] = deque()
        self._begin(rest, under_way)
        return self._results(rest, under_way)

    def _begin(self, rest: Iterator[Job], under_way: "deque[Future[list[Readable | None]]]") -> None:
        while len(under_way) < LISTS_AHEAD * len(self._workers) and (some := list(islice(rest, LIST_PAGES))):
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
            return [read_text(self._folders, url, place) for url, place in jobs]
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
    """The worker process: answers until its input ends."""
    folders = [Path(word) for word in sys.argv[1:]]
    while (asked := _receive(sys.stdin.buffer)) is not None:
        jobs = msgspec.msgpack.decode(asked, type=list[Job])
        _send(sys.stdout.buffer, msgspec.msgpack.encode([read_text(folders, url, place) for url, place in jobs]))
