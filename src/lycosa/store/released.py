"""Archive files that a central store holds and the folder of a collection no longer: which ones, and how they are read.

The folder `warc/` has a small file with the URLs of its stores, the latest first, so that whoever has a location can
read its record, here or there. That a file is released is a row of the state, `stored:` and its number, in place of the
one that told its length; it is written when the store's copy has been read back, and only then the file goes. A file
that is there all the same, since the process died in between, goes at the next start. What was left out of the store is
packed in the same way, in a file beside. `adopt_collection` makes a collection of a state alone, whose archive files
are all in a central store.
"""

import contextlib
import os
import struct
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache, partial
from pathlib import Path

import msgspec

from lycosa.errors import StoreError, storage_error, storage_errors
from lycosa.files import replace_file, sync_folder
from lycosa.records import Family
from lycosa.store.central import CentralStore, can_be_store, is_claimed_store, open_central_store
from lycosa.store.packed import SUFFIX, Capture, ChooseLeftOut, LeftOutPage, PackedWarc, pack_warc
from lycosa.store.page_rows import PageRow, pages_at
from lycosa.store.state import Batch, State
from lycosa.store.warc_file import warc_number, warc_path
from lycosa.store.warc_read import WarcLocation, WarcReader, WarcRecord, read_record
from lycosa.web import matches_pattern, pattern_pieces, url_key

STORE_WARC_FOLDER = "warc"  # of the store
MEDIA_TYPE, RELEVANCE, COPY = "media-type", "relevance", "copy"  # why a page does not travel
_STORES = "central-store"
_KEY, _KEYS_END = b"stored:", b"stored;"
_FOLDERS_TOLD = 3
_OPEN_FILES = 8  # packed files whose indexes are kept in memory


class ReleasedFile(msgspec.Struct, frozen=True):
    """What a store holds of an archive file: its bytes there, its bytes before, and the digest of its records. `left`:
    pages and bytes of bodies that were left out, by reason."""

    bytes: int
    gzip_bytes: int
    digest: str
    left: dict[str, tuple[int, int]] = {}


class ArchiveUnavailable(StoreError):
    """A file of the archive is missing, or its store cannot be reached, so nothing is known of its records now. (A
    damaged record in a file that is there is another `StoreError`.)"""


# what the state knows


def released_files(state: State) -> dict[int, ReleasedFile]:
    """The files that were released, by number."""
    rows = state.walk(Family.META, _KEY, _KEYS_END)
    return {number_in(key): msgspec.msgpack.decode(row, type=ReleasedFile) for key, row in rows}


def released_row(number: int, what: ReleasedFile) -> tuple[bytes, bytes]:
    return _KEY + struct.pack(">I", number), msgspec.msgpack.encode(what)


def left_out_counts(state: State) -> tuple[Counter[str], Counter[str]]:
    """The pages, and the bytes of their bodies, that were left out of the store, by reason."""
    pages, size = Counter[str](), Counter[str]()
    for what in released_files(state).values():
        pages.update({reason: count for reason, (count, _) in what.left.items()})
        size.update({reason: count for reason, (_, count) in what.left.items()})
    return pages, size


def number_in(key: bytes) -> int:
    """The file number at the end of a key."""
    number: int = struct.unpack(">I", key[-4:])[0]
    return number


# where stores are


def remember_store(folder: Path, url: str) -> None:
    """Records in the archive's folder that files of it are, or will be, in the store at `url`."""
    known = store_urls(folder)
    if known[:1] == [url]:
        return
    path = folder / _STORES
    with storage_errors(path, doing="writing down the store"):
        replace_file(path, "".join(f"{one}\n" for one in dict.fromkeys([url, *known])).encode())


def store_urls(folder: Path) -> list[str]:
    """The stores of the archive in this folder, the latest first."""
    try:
        return list(filter(can_be_store, (folder / _STORES).read_text().split("\n")[:-1]))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise storage_error(error, path=folder, doing="reading the archive") from error


def packed_name(number: int) -> str:
    """The name of a packed file in a store."""
    return f"{STORE_WARC_FOLDER}/{warc_path(Path(), number).name.removesuffix('.warc.gz')}{SUFFIX}"


# reading


def read_record_at(folders: Sequence[Path], place: WarcLocation) -> WarcRecord:
    """Reads the record at `place`, from the one of these archive folders that has its file, or from their stores.

    Raises `ArchiveUnavailable` where there is no such file, and another `StoreError` where the record is not whole.
    """
    for folder in folders:
        path = warc_path(folder, place.file_number)
        if path.exists():
            try:
                return read_record(path, place)
            except StoreError as error:
                if path.exists():  # else it was released just now
                    if isinstance(error.__cause__, OSError):
                        raise ArchiveUnavailable(str(error)) from error
                    raise
        if (rest := _rest(folder, place.file_number)) is not None and rest.has(place):
            return rest.record(place)
    stores = list(dict.fromkeys(url for folder in folders for url in store_urls(folder)))
    for url in stores:
        found = _packed(url, place.file_number)
        if found is not None:
            return found.record(place)
    raise ArchiveUnavailable(_missing(folders, stores, place.file_number))


def _missing(folders: Sequence[Path], stores: Sequence[str], number: int) -> str:
    """The sentence that says where an archive file should be."""
    away = [url for url in stores if not is_claimed_store(_store(url))]
    if away:
        return f"the store {away[0]} cannot be reached: there is nothing of it at its place"
    path = warc_path(folders[0], number)
    where = str(path) if len(folders) == 1 else f"{path.name} of {', '.join(map(str, folders[:_FOLDERS_TOLD]))}"
    return f"the archive file {where} is missing" + (f", and it is not in the store {stores[0]}" if stores else "")


def records_in(
    folder: Path, numbers: Iterable[int], tell: Callable[[str], None] | None = None
) -> Iterator[tuple[int, WarcRecord]]:
    """Reads all files of the archive in a folder as (file number, record); `numbers` are those that were released.
    `tell` hears which bytes of which file are damaged."""
    here = {warc_number(path.name): path for path in folder.glob("*.warc.gz")}
    for number in sorted({*here, *numbers}):
        if number in here:
            with WarcReader(here[number]) as reader:
                yield from ((number, record) for record in reader)
            if tell is not None:
                for problem in reader.problems:
                    tell(f"{here[number]}, {problem}")
            continue
        stores = store_urls(folder)
        found = next((found for url in stores if (found := _packed(url, number)) is not None), None)
        if found is None:
            raise ArchiveUnavailable(_missing([folder], stores, number))
        rest = _rest(folder, number)
        yield from ((number, record) for record in (rest.records() if rest else ()))
        for record in found.records():
            if rest is None or not rest.has(WarcLocation(number, record.offset, record.length)):
                yield number, record


def open_packed(store: CentralStore, name: str) -> PackedWarc | None:
    """Opens the packed file of this name in a store; None if there is none."""
    with _reached(store):
        size = store.size(name)
    if size is None:
        return None

    def read(offset: int, length: int) -> bytes:
        with _reached(store):
            return store.read(name, offset, length)

    return PackedWarc(read, size, name=f"{store.url}/{name}")


def _rest(folder: Path, number: int) -> PackedWarc | None:
    """Opens what was left out of the store of a file, if there is anything, and it is here."""
    try:
        path = folder / _rest_name(number)
        found = path.stat()
        return _open_rest(path, found.st_size, found.st_mtime_ns)
    except OSError:
        return None


def _rest_name(number: int) -> str:
    return f"{Path(packed_name(number)).name.removesuffix(SUFFIX)}.rest{SUFFIX}"


@lru_cache(_OPEN_FILES)
def _open_rest(path: Path, size: int, _: int) -> PackedWarc:
    def read(offset: int, length: int) -> bytes:
        with storage_errors(path, doing="reading the archive"), path.open("rb") as file:
            file.seek(offset)
            return file.read(length)

    return PackedWarc(read, size, name=str(path))


@contextlib.contextmanager
def _reached(store: CentralStore) -> Iterator[None]:
    try:
        yield
    except StoreError as error:
        raise ArchiveUnavailable(f"the store {store.url} cannot be reached: {error}") from error


_store = lru_cache(4)(open_central_store)


@lru_cache(_OPEN_FILES)
def _found(url: str, number: int) -> PackedWarc:
    found = open_packed(_store(url), packed_name(number))
    if found is None:
        raise FileNotFoundError(number)
    return found


def _packed(url: str, number: int) -> PackedWarc | None:
    """As `open_packed`, but cached; that there is none is not cached."""
    try:
        return _found(url, number)
    except FileNotFoundError:
        return None


# releasing


def upload_warc(
    source: Path,
    length: int,
    store: CentralStore,
    scratch: Path,
    may_go_on: Callable[[], bool] = lambda: True,
    choose: ChooseLeftOut | None = None,
) -> ReleasedFile:
    """Uploads a finished archive file of `length` bytes, reads it back, and says what the store holds. What `choose`
    leaves out is kept beside the file.

    To do it again after a kill is harmless: what is whole in the store already is only read back. `may_go_on` is asked
    right before anything becomes visible in the store: a shard that may have been replaced must not write there.
    """
    number = warc_number(source.name)
    name = packed_name(number)
    packed, rest = scratch / Path(name).name, scratch / _rest_name(number)
    try:
        scratch.mkdir(exist_ok=True)
        rest.unlink(missing_ok=True)
        index = pack_warc(source, packed, choose, rest)
        if index.gzip_bytes != length:
            raise StoreError(f"{source} has {index.gzip_bytes} bytes where {length} were committed")
        size = packed.stat().st_size
        _keep_rest(rest, source.with_name(rest.name))
        if not may_go_on():
            raise StoreError(f"{source.name} was not brought to the store: this shard may have been taken over")
        if not _is_there(store, name, size, index.digest):
            store.put(name, packed)
            if not _is_there(store, name, size, index.digest):
                raise StoreError(f"what {store.url} holds as {name} is not what was put there")
    except OSError as error:
        raise storage_error(error, path=packed, doing="packing the archive") from error
    finally:
        packed.unlink(missing_ok=True)
    return ReleasedFile(size, index.gzip_bytes, index.digest, index.left)


def _keep_rest(rest: Path, kept: Path) -> None:
    """Puts what was left out under its own name, on the disk and read back; or removes an old one, if there
    is nothing."""
    if not rest.exists():
        kept.unlink(missing_ok=True)
        return
    with rest.open("rb") as file:
        os.fsync(file.fileno())
    rest.replace(kept)
    sync_folder(kept.parent)
    found = _open_rest(kept, kept.stat().st_size, kept.stat().st_mtime_ns)
    if found.digest() != found.index.digest:
        raise StoreError(f"{kept} is not what was written")


def _is_there(store: CentralStore, name: str, size: int, digest: str) -> bool:
    """Whether the store holds all records of a packed file. Every byte of it is read."""
    if store.size(name) != size:
        return False
    try:
        found = open_packed(store, name)
        return found is not None and found.index.digest == digest == found.digest()
    except StoreError:
        return False


def release_warc(state: State, folder: Path, number: int, what: ReleasedFile, length_key: bytes) -> None:
    """Writes to the state that the store holds the file, then deletes the file here."""
    batch = Batch()
    batch.put(Family.META, *released_row(number, what))
    batch.delete(Family.META, length_key)
    state.write(batch, sync=True)
    with storage_errors(folder, doing="releasing an archive file"):
        warc_path(folder, number).unlink(missing_ok=True)


# choosing


class StoreSelection:
    """Chooses what of a shard's archive travels to the central store: by media type, by relevance, each document once.

    A page whose media type is none of `types` (patterns) or whose relevance is less than `least_relevance` stays with
    its shard. Of a document that another shard has under another URL, a revisit record travels in place of the
    response. The state keeps all it knows of both. A page is judged by its row as it is when its archive file travels;
    an older version of a page travels.
    """

    def __init__(self, types: Sequence[str], least_relevance: float) -> None:
        self._least, self._types = least_relevance, types
        self._wanted = [
            partial(matches_pattern, pattern_pieces(pattern.lower()), to_end=True) for pattern in self._types
        ]

    def __repr__(self) -> str:
        return f"<Selection types={self._types} relevance={self._least}>"

    def choose(self, state: State, captures: Sequence[Capture]) -> dict[int, LeftOutPage]:
        """The records that stay here, or are copies, by their number."""
        rows = pages_at(state, [url_key(capture.url) for capture in captures])
        found: dict[int, LeftOutPage] = {}
        for capture, row in zip(captures, rows, strict=True):
            if row is None or row.place != capture.place.pack() or not (reason := self.reason(row)):
                continue
            if reason != COPY:
                found[capture.number] = LeftOutPage(reason, row.size_bytes)
            elif row.is_elsewhere or capture.is_revisit:
                found[capture.number] = LeftOutPage(reason, row.size_bytes, row.original)
        return found

    def reason(self, row: PageRow) -> str:
        """Why a page does not travel; empty if it does."""
        if not row.is_page or not 200 <= row.status < 300:
            return ""
        if self._wanted and row.essence and not any(is_wanted(row.essence) for is_wanted in self._wanted):
            return MEDIA_TYPE
        if row.relevance is not None and row.relevance < self._least:
            return RELEVANCE
        return COPY if row.original else ""

    def words(self, row: PageRow) -> list[str]:
        """What `why` tells a user about it."""
        lines = [] if row.relevance is None else [f"relevance to the topic: {row.relevance:.2f}"]
        reason, stays = self.reason(row), "not for the central store, its body is in the archive of its shard"
        if reason == MEDIA_TYPE:
            lines.append(f"{stays}: {row.essence} is none of --store-type {','.join(self._types)}")
        elif reason == RELEVANCE:
            lines.append(f"{stays}: less relevant than --store-relevance {self._least:g}")
        elif reason == COPY and row.is_elsewhere:
            lines.append(f"{stays}: the store has the document as that of {row.original}")
        return lines
