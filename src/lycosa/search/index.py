"""The index of a collection on disk: one folder of tantivy's at a time, one writer, any number of readers.

    index/current         the version and the name of the current folder
    index/NAME/           tantivy
    index/NAME/settled    up to which entry of the feed anchors and ranks are updated
    index/lock            held by the one process that writes

A commit is atomic and carries the sequence of the feed that it covers: after a crash the next writer goes on from
there. An index that is made anew grows beside the old one, which answers meanwhile, and replaces it at once. Folders
that are not current are deleted by the next writer. Every failure of tantivy's becomes one sentence here.

What links call a page stands in an anchor document of its own. Anchor texts change with every link that is found, so
`AnchorUpdater` brings them up to date at the end of a crawl, when the number of links has doubled, or when one page in
twenty has come or changed since; only pages whose words differ are indexed again. Called by the indexer.
"""

import contextlib
import fcntl
import os
import secrets
import shutil
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import tantivy
from tantivy import DocAddress, Query

from lycosa.errors import StoreError, storage_error
from lycosa.graph import Anchors, AnchorTexts
from lycosa.search.documents import (
    LANGUAGES,
    VERSION,
    anchor_document,
    indexed_page,
    mark_document,
    register,
    schema,
    searchable_pages,
    summarise_anchors,
)
from lycosa.store import State

FOLDER = "index"
HEAP_BYTES = 64_000_000  # of documents that wait for a segment, in each thread
BUILD_THREADS = 2  # while an index is made, when no crawl needs the cores
PAGES_AT_ONCE = 2_000
UPDATE_SHARE = 20  # anchors are updated when more than one page in so many has come
_UPDATED_FILE = "settled"
_CURRENT, _LOCK = "current", "lock"
_META_LOCK = ".tantivy-meta.lock"  # held by tantivy while it opens segments or deletes their files
_OWNER_ONLY = ("meta.json", ".managed.json")  # what tantivy writes with mode 0600
_MARKS_MOST = 100  # there is one, unless a deletion was lost
_PANIC = "PanicException"  # tantivy's way to say that a file is not what it was


class NoIndex(StoreError):
    """There is no index, or one of another version: it has to be made."""


class OtherVersion(NoIndex):
    """The index was made by another version of Lycosa."""


class DamagedIndex(StoreError):
    """The index is not what was written: it has to be made anew."""


class _Current(msgspec.Struct, frozen=True):
    version: int
    name: str


@contextlib.contextmanager
def reported(path: Path, *, opening: bool = False) -> Iterator[None]:
    """Turns whatever tantivy says about its files into one sentence that helps. What is noticed on opening is noticed
    by `lycosa index`, too, which then rebuilds the index; later damage needs --rebuild."""
    try:
        yield
    except (StoreError, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except OSError as error:
        raise _not_usable(path, error) from error
    except BaseException as error:
        if not isinstance(error, ValueError | RuntimeError) and type(error).__name__ != _PANIC:
            raise
        said = str(error)
        if "No space left" in said or "os error 28" in said:
            raise StoreError(f"no space left on the disk of {path}") from error
        if "Permission denied" in said or "Read-only file system" in said:
            raise storage_error(RuntimeError(said), path=path, doing="using the search index") from error
        raise damaged(path, opening=opening) from error


def _not_usable(path: Path, error: OSError) -> StoreError:
    if path.is_file():
        return StoreError(f"{path} is a file, where the folder of the search index would be: move it away")
    return storage_error(error, path=path, doing="using the search index")


def damaged(path: Path, *, opening: bool = False) -> DamagedIndex:
    if path.name != FOLDER:
        return DamagedIndex(f"the search index {path} is damaged: delete it, and the next search makes it anew")
    words = "" if opening else " --rebuild"
    return DamagedIndex(f"the search index {path} is damaged: lycosa index {path.parent}{words} makes it anew")


def current(collection: Path, folder: str = FOLDER) -> Path:
    """The folder of the current index; raises NoIndex."""
    path = collection / folder
    try:
        found = msgspec.json.decode((path / _CURRENT).read_bytes(), type=_Current)
    except FileNotFoundError:
        raise NoIndex(f"{collection} has no search index: lycosa index {collection} makes one") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise damaged(path, opening=True) from error
    except OSError as error:
        raise _not_usable(path, error) from error
    if found.version != VERSION:
        raise OtherVersion(f"{path} was made by another version of Lycosa: lycosa index {collection} makes it anew")
    return path / found.name


@contextlib.contextmanager
def _readable(folder: Path) -> Iterator[Path]:
    """The folder itself; or where its lock file may not be written, which tantivy demands of readers, too, a folder of
    links to its files: they are opened within this context, stay mapped after it, and the lock is held meanwhile."""
    lock = folder / _META_LOCK
    if os.access(lock if lock.exists() else folder, os.W_OK):
        yield folder
        return
    with TemporaryDirectory(prefix="lycosa-index-") as linked, contextlib.ExitStack() as held:
        with contextlib.suppress(OSError):  # not there, or of a network disk that locks only what may be written
            file = held.enter_context(lock.open("rb"))
            fcntl.flock(file, fcntl.LOCK_EX)
        for file_path in folder.iterdir():
            if file_path != lock:
                (Path(linked) / file_path.name).symlink_to(file_path.absolute())
        yield Path(linked)


class IndexReader:
    """The index as it was when it was opened, or last refreshed."""

    def __init__(self, path: Path, folder: Path, index: tantivy.Index) -> None:
        self.path, self.folder, self._index = path, folder, index
        self.refresh()

    @classmethod
    def open(cls, collection: Path, of: str = FOLDER) -> "IndexReader":
        path, folder = collection / of, current(collection, of)
        with reported(path, opening=True), _readable(folder) as opened:
            index = tantivy.Index.open(str(opened))
            register(index)
            index.config_reader("manual")
            return cls(path, folder, index)

    def __repr__(self) -> str:
        return f"<Reader {self.folder} documents={self.searcher.num_docs}>"

    def refresh(self) -> None:
        with reported(self.path, opening=True):
            self._index.reload()
            self.searcher = self._index.searcher()
        self._counts: dict[tuple[str, str], int] = {}
        self._covered = -1

    @property
    def documents(self) -> int:
        """The number of pages that can be found: one a cluster."""
        return self.search(Query.exists_query("page"), 1)[1]

    def all(self, kind: str, field: str) -> list[int]:
        """The numbers `field` of all documents of a kind, repeated where a document is there twice."""
        query = Query.exists_query(kind)
        return self.matching(query, field, self.search(query, 1)[1])

    @property
    def covered(self) -> int:
        """The sequence of the feed up to which the index has the pages of the collection."""
        if self._covered >= 0:
            return self._covered
        with reported(self.path, opening=True):
            hits = self.searcher.search(Query.term_query(schema(), "mark", 1), _MARKS_MOST).hits
            found = [
                each for each in self.searcher.fast_field_values("covered", [at for _, at in hits]) if each is not None
            ]
        if not found:
            raise damaged(self.path, opening=True)
        self._covered = max(map(int, found))
        return self._covered

    def count(self, field: str, value: str) -> int:
        """The number of documents that have this term; remembered, for terms that are asked for again and again."""
        if (field, value) not in self._counts:
            self._counts[field, value] = self.frequencies(field, [value])[0]
        return self._counts[field, value]

    def frequencies(self, field: str, values: Sequence[str]) -> list[int]:
        """The number of documents that have each of these terms."""
        with reported(self.path):
            return [self.searcher.doc_freq(field, value) for value in values]

    def numbers(self, field: str, addresses: list[DocAddress]) -> list[int]:
        """The number `field` of each document; 0 where it has none."""
        with reported(self.path):
            return [int(value or 0) for value in self.searcher.fast_field_values(field, addresses)]

    def search(self, query: Query, most: int) -> tuple[list[tuple[float, DocAddress]], int]:
        """The best documents with their scores, and how many match in all."""
        with reported(self.path):
            found = self.searcher.search(query, max(1, most))
        return found.hits, int(getattr(found, "count", 0))  # the binding's stub forgets the count

    def aggregate(self, query: Query, wanted: dict[str, Any]) -> dict[str, Any]:
        """Counts over columns of all documents that match, as tantivy's aggregations have them."""
        with reported(self.path):
            return dict(self.searcher.aggregate(query, wanted))

    def terms(self, field: str, beginning: str, most: int) -> list[tuple[str, int]]:
        """The most frequent terms that begin so, each with the number of documents that have it."""
        with reported(self.path):
            return list(self.searcher.terms_with_prefix(field, beginning, limit=most))

    def matching(self, query: Query, key: str, most: int = 10_000) -> list[int]:
        """The numbers `key` of the documents that match."""
        return [number for number in self.numbers(key, [at for _, at in self.search(query, most)[0]]) if number]

    def rows(self, key: str, values: Sequence[int], *fields: str) -> list[tuple[int, ...]]:
        """The documents whose number `key` is one of `values`: that number and those of `fields`."""
        if not values:
            return []
        query = Query.term_set_query(schema(), key, list(values))
        hits, total = self.search(query, 2 * len(values))
        if len(hits) < total:  # many with the same number; a search with much room is dear
            hits, _ = self.search(query, total)
        addresses = [at for _, at in hits]
        columns = [self.numbers(field, addresses) for field in (key, *fields)]
        return list(zip(*columns, strict=True))

    def copies_by_cluster(self, clusters: Sequence[int]) -> dict[int, list[int]]:
        """The copies of each of these clusters that has some."""
        copies: dict[int, list[int]] = {}
        for cluster, copy in self.rows("cluster", clusters, "copy"):
            if copy:
                copies.setdefault(cluster, []).append(copy)
        return copies

    def column(self, key: str, values: Sequence[int], field: str) -> dict[int, int]:
        """Like `rows`, for one field: number → number."""
        return {row[0]: row[1] for row in self.rows(key, values, field)}


class IndexWriter:
    """The one writer of an index. `anew` begins an empty index, which counts from its first commit on."""

    def __init__(self, collection: Path, *, anew: bool = False, of: str = FOLDER) -> None:
        self._collection, self.path, self._of = collection, collection / of, of
        with reported(self.path):
            self.path.mkdir(exist_ok=True, parents=True)
            self._lock = os.open(self.path / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise IndexInUse(f"the search index of {collection} is being written by another process") from error
            self._open(anew)
        except BaseException:
            os.close(self._lock)
            raise

    def _open(self, anew: bool) -> None:
        kept = None
        with contextlib.suppress(StoreError):  # a damaged list names nothing
            kept = current(self._collection, self._of)
        self.is_new = anew or kept is None
        with reported(self.path, opening=True):
            self.folder = self.path / secrets.token_hex(8) if kept is None or anew else kept
            for left in self.path.iterdir():
                if left.is_dir() and left not in (kept, self.folder):
                    shutil.rmtree(left)
            if self.is_new:
                self.folder.mkdir()
                self._index = tantivy.Index(schema(), str(self.folder), reuse=False)
            else:
                self._index = tantivy.Index.open(str(self.folder))
            register(self._index)
            threads = BUILD_THREADS if anew else 1
            self._writer = self._index.writer(threads * HEAP_BYTES, threads)
            if not self.is_new:  # segments of an earlier process that are joined after a deletion lose it: first of all
                self._writer.commit()
                self._writer.wait_merging_threads()
                self._writer = self._index.writer(HEAP_BYTES, 1)
            self._writer.garbage_collect_files()

    def __repr__(self) -> str:
        return f"<Writer {self.folder}>"

    def add(self, document: str) -> None:
        """Adds a document, see `documents`."""
        try:
            self._writer.add_json(document)
        except BaseException:  # a `with` around every document would cost as much as the call
            with reported(self.path):
                raise

    def add_all(self, documents: Iterable[str]) -> None:
        """Adds documents."""
        with reported(self.path):
            for document in documents:
                self._writer.add_json(document)

    def delete(self, key: str, values: Collection[int]) -> None:
        """Deletes the documents whose number `key` is one of `values`."""
        if values:  # by a query: the binding's deletion by term takes numbers for signed ones, and finds nothing
            with reported(self.path):
                self._writer.delete_documents_by_query(Query.term_set_query(schema(), key, list(values)))

    def commit(self, covered: int, *, is_whole: bool = True) -> None:
        """Commits what was added and deleted, with the sequence of the feed that it covers. A new index that is not
        whole yet does not count."""
        with reported(self.path):
            self._writer.delete_documents_by_query(Query.term_query(schema(), "mark", 1))
            self._writer.add_json(mark_document(covered))
            self._writer.commit()
            self._open_to_others()
            if self.is_new and is_whole:
                self._install()

    def _open_to_others(self) -> None:
        """Gives tantivy's lists the mode of other files: it writes them for their owner alone, and whoever else may
        read the folder could not read the index."""
        mode = self.folder.stat().st_mode & 0o666
        for name in _OWNER_ONLY:
            with contextlib.suppress(FileNotFoundError, PermissionError):  # merged just now; or of another user
                (self.folder / name).chmod(mode)

    def reader(self) -> IndexReader:
        """A reader of what is committed, for the writer itself."""
        return IndexReader(self.path, self.folder, self._index)

    def _install(self) -> None:
        hidden = self.path / f".{_CURRENT}.new"
        hidden.write_bytes(msgspec.json.encode(_Current(VERSION, self.folder.name)))
        hidden.replace(self.path / _CURRENT)
        self.is_new = False
        for left in self.path.iterdir():
            if left.is_dir() and left != self.folder:
                shutil.rmtree(left, ignore_errors=True)

    def close(self) -> None:
        """Waits for segments that are being merged; what is not committed is forgotten."""
        try:
            with reported(self.path):
                self._writer.wait_merging_threads()
                self._open_to_others()
        finally:
            os.close(self._lock)


class IndexInUse(StoreError):
    """Another process writes the index."""


def is_index_written(collection: Path) -> bool:
    """Does a process write the index now?"""
    try:
        lock = os.open(collection / FOLDER / _LOCK, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False


def size_bytes(collection: Path) -> int:
    """The size of the index on disk."""
    folder = collection / FOLDER
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) if folder.is_dir() else 0


def is_anchor_update_due(reader: IndexReader) -> bool:
    """Has much come since anchors and ranks were updated last, or were they never?"""
    updated = -1
    with contextlib.suppress(OSError, ValueError):  # not there, or not what was written
        updated = int((reader.folder / _UPDATED_FILE).read_text())
    since = reader.covered - updated
    return since > 0 and since * UPDATE_SHARE > reader.documents


def note_updated(reader: IndexReader) -> None:
    """Remembers that anchors and ranks are those of what the index covers."""
    hidden = reader.folder / f".{_UPDATED_FILE}.new"
    with reported(reader.path):
        hidden.write_text(f"{reader.covered}\n")
        hidden.replace(reader.folder / _UPDATED_FILE)


class AnchorUpdater:
    """Brings the anchor documents of an index in line with the anchor texts of the link index."""

    def __init__(self, state: State, reader: IndexReader, writer: IndexWriter, anchors: AnchorTexts) -> None:
        self._state, self._reader, self._writer, self._anchors = state, reader, writer, anchors
        self._copied: frozenset[int] = frozenset()  # clusters that have copies

    def __repr__(self) -> str:
        return f"<AnchorUpdater {self._reader!r}>"

    def pages_with_copies(self) -> list[int]:
        """The pages that represent others as well."""
        clusters = sorted(set(self._reader.all("copy", "cluster")))
        return [page for _, page in self._reader.rows("cluster", clusters, "page") if page]

    def update(self, numbers: Iterable[int]) -> tuple[int, list[int]]:
        """Indexes changed anchor texts again, without a commit; returns of how many pages, and the pages of the index
        that are no more."""
        updated, gone, rest = 0, list[int](), iter(numbers)
        self._copied = frozenset(self._reader.all("copy", "cluster"))
        while some := list(islice(rest, PAGES_AT_ONCE)):
            updated += self._update(some, gone)
        return updated, gone

    def _update(self, numbers: Sequence[int], gone: list[int]) -> int:
        pages = {number: rest for number, *rest in self._reader.rows("page", numbers, "cluster", "speaks")}
        words = self._reader.column("name", list(pages), "words")
        copies = self._reader.copies_by_cluster([cluster for cluster, _ in pages.values() if cluster in self._copied])
        members = searchable_pages(self._state, [*pages, *(copy for some in copies.values() for copy in some)])
        gone += [number for number in pages if number not in members]
        texts = dict(zip(members, self._anchors.of([member.url for member in members.values()]), strict=True))
        changed, named = [], []
        for number, (cluster, speaks) in pages.items():
            if number in members:
                anchors, now = _summary_of(
                    [texts[each] for each in (number, *copies.get(cluster, ())) if each in texts]
                )
                if now != words.get(number, 0):
                    changed.append(number)
                    if anchors:
                        page = indexed_page(number, cluster, members[number].url, members[number].row)
                        named.append(anchor_document(page, LANGUAGES[speaks], anchors, now))
        self._writer.delete("name", [number for number in changed if number in words])
        self._writer.add_all(named)
        return len(changed)


def _summary_of(lists: Sequence[Anchors]) -> tuple[str, int]:
    if len(lists) == 1:
        return summarise_anchors(lists[0])
    counts: dict[str, int] = {}
    for text, count in (each for some in lists for each in some):
        counts[text] = counts.get(text, 0) + count
    return summarise_anchors(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
