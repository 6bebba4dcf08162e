"""A collection: the folder a crawl leaves behind, and the one commit that keeps its parts in agreement.

    lycosa.format   which kind of folder this is: written last, so that a folder without it is an unfinished creation
    lycosa.lock     held by the one process that writes; its number is inside
    lycosa.toml     the settings in force
    log.jsonl       events, one a line
    state/          RocksDB
    warc/           *.warc.gz

Guarantee: `commit` appends nothing itself but names in the state only WARC bytes that were handed to the disk before,
so after a crash the archive holds at least what the state speaks of, and opening cuts what it does not speak of.
Opened by the crawl for writing and by every command that only looks, beside it, for reading.


A collection whose state came from a copy: its archive files are all in a central store, and none is here.
"""

import contextlib
import errno
import fcntl
import os
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from lycosa.errors import SettingsError, StoreError, require_utf8, storage_errors
from lycosa.files import replace_file
from lycosa.records import Family
from lycosa.store.central import CentralStore
from lycosa.store.joined import JoinedState, is_sharded, shard_paths
from lycosa.store.released import (
    STORE_WARC_FOLDER,
    ArchiveUnavailable,
    ReleasedFile,
    open_packed,
    packed_name,
    read_record_at,
    records_in,
    release_warc,
    released_files,
    released_row,
    remember_store,
)
from lycosa.store.state import Batch, State
from lycosa.store.warc_file import DEFAULT_FILE_BYTES, WarcRecovery, WarcWriter, warc_number, warc_path
from lycosa.store.warc_read import WarcLocation, WarcRecord, read_record_id

# Raised when an older Lycosa could no longer read what this one writes.
FORMAT = 2

_MARKER, _LOCK, _SETTINGS = "lycosa.format", "lycosa.lock", "lycosa.toml"
LOG_FILE = "log.jsonl"
_STATE, _WARC = "state", "warc"
# What an unfinished creation can have left; anything else in a folder without a marker is not ours to touch.
_OURS = {_LOCK, _STATE, _WARC, _SETTINGS, LOG_FILE, f".{_MARKER}.new", f".{_SETTINGS}.new"}
_OURS |= {f"{_MARKER}.new", f"{_SETTINGS}.new"}  # as earlier versions called them
_MARKER_WORDS = "lycosa collection, format "

_FORMAT_KEY = b"format"
_WARC_KEY = b"warc:"  # + file number (4 bytes) -> committed length (8 bytes)
_WARC_KEYS_END = b"warc;"
MOVED_RECORD = b"moved:"  # + a place -> the place to which the record was moved


class CollectionStore:
    """An open collection. Made by `create` or `open`; close it, or use it as a context manager."""

    def __init__(
        self, path: Path, *, state: State, warc: WarcWriter | None, recovery: WarcRecovery, lock: int | None
    ) -> None:
        self.path = path
        self.state = state
        # What opening found and put right; the crawl requeues the pages whose place `recovery.is_lost`.
        self.recovery = recovery
        self._warc = warc
        self._lock = lock

    @classmethod
    def create(
        cls,
        path: Path,
        *,
        warc_info: Mapping[str, str] | None = None,
        warc_bytes: int = DEFAULT_FILE_BYTES,
        warc_first: int = 0,
    ) -> "CollectionStore":
        """Makes a collection at `path`, or finishes one whose making was interrupted, or opens the one that
        is there."""
        if is_collection(path):
            return cls.open(path, warc_info=warc_info, warc_bytes=warc_bytes, warc_first=warc_first)
        _require_room_for_one(path)
        with storage_errors(path, doing="making the collection"):
            path.mkdir(parents=True, exist_ok=True)
            lock = _lock(path)
            try:
                (path / _WARC).mkdir(exist_ok=True)
                state = None if (path / _MARKER).exists() else _finish_creation(path)
            except BaseException:
                os.close(lock)
                raise
        return cls._open_locked(path, lock, warc_info or {}, warc_bytes, warc_first, state)

    @classmethod
    def open(
        cls,
        path: Path,
        *,
        read_only: bool = False,
        warc_info: Mapping[str, str] | None = None,
        warc_bytes: int = DEFAULT_FILE_BYTES,
        warc_first: int = 0,
    ) -> "CollectionStore":
        """Opens the collection at `path`.

        With `read_only` it is opened beside whoever writes it, as it is now, and all its shards as one if it has
        several. The archive's files are numbered from `warc_first` on.
        """
        if read_only and is_sharded(path):
            return JoinedCollection(path, open_shards(path))
        _require_collection(path)
        if not read_only:
            with storage_errors(path, doing="opening the collection"):
                lock = _lock(path)
            return cls._open_locked(path, lock, warc_info or {}, warc_bytes, warc_first)
        state = State.open_reader(path / _STATE)
        _require_same_format(path, state)
        return cls(path, state=state, warc=None, recovery=WarcRecovery(), lock=None)

    @classmethod
    def _open_locked(
        cls,
        path: Path,
        lock: int,
        warc_info: Mapping[str, str],
        warc_bytes: int,
        warc_first: int,
        state: State | None = None,
    ) -> "CollectionStore":
        """Opens for writing, with the lock held. `state` comes open from the making of a collection: to open it a
        second time takes 50 ms."""
        with contextlib.ExitStack() as undo:
            undo.callback(os.close, lock)
            if state is not None:
                undo.enter_context(state)
            _require_collection(path)
            if state is None:
                state = undo.enter_context(State.open(path / _STATE, may_make=False))
            _require_same_format(path, state)
            warc = WarcWriter(path / _WARC, info=warc_info, max_bytes=warc_bytes, first_number=warc_first)
            recovery = warc.recover(committed_lengths(state), released_files(state))
            undo.pop_all()
        return cls(path, state=state, warc=warc, recovery=recovery, lock=lock)

    @property
    def warc(self) -> WarcWriter:
        if self._warc is None:
            raise StoreError(f"{self.path} was opened for reading only")
        return self._warc

    @property
    def warc_folder(self) -> Path:
        return self.path / _WARC

    @property
    def settings_path(self) -> Path:
        return self.path / _SETTINGS

    @property
    def log_path(self) -> Path:
        return self.path / LOG_FILE

    def save_settings(self, text: str) -> None:
        """Replaces the settings file; a crash leaves the old one or the new one."""
        with storage_errors(self.settings_path, doing="saving the settings"):
            replace_file(self.settings_path, text.encode(), syncs=True)

    def commit(self, batch: Batch, *, sync: bool = False) -> None:
        """Commits `batch`, and with it everything that was appended to the WARC before.

        With `sync` both survive a power loss. When it fails nothing is acknowledged: commit the same batch again, after
        `state.reopen()`, when the cause is gone.
        """
        if sync:
            self.warc.sync()
        named = Batch()
        named.extend(batch)
        for number, length in self.warc.lengths.items():
            named.put(Family.META, *_committed_row(number, length))
        self.state.write(named, sync=sync)
        self.warc.on_committed()

    @property
    def warc_folders(self) -> list[Path]:
        """The folders that hold archive files, those of all shards."""
        return [self.warc_folder]

    def record(self, place: WarcLocation) -> WarcRecord:
        """Reads the record at `place`, here or in the central store. Other records may name one by its place: where it
        was moved since, the state says where to."""
        try:
            return read_record_at(self.warc_folders, place)
        except ArchiveUnavailable:
            moved = self.state.get(Family.META, MOVED_RECORD + place.pack())
            if moved is None:
                raise
            return self.record(WarcLocation.unpack(moved))

    def record_id(self, place: WarcLocation) -> str:
        """The WARC-Record-ID of the record at `place`; of one that is here only its beginning is read."""
        for folder in self.warc_folders:
            if found := read_record_id(warc_path(folder, place.file_number), place):
                return found
        return self.record(place).header("WARC-Record-ID") or ""

    def records(self, tell: Callable[[str], None] | None = None) -> Iterator[tuple[int, WarcRecord]]:
        """Reads the whole archive, here and in the central store, as (file number, record). `tell` hears which bytes of
        which file are damaged; reading goes on behind them."""
        return records_in(self.warc_folder, released_files(self.state), tell)

    def finished_files(self) -> dict[int, int]:
        """The lengths of the archive files that are complete and here, by number."""
        return {number: length for number, length in committed_lengths(self.state).items() if number < self.warc.number}

    def release(self, number: int, what: ReleasedFile) -> None:
        """Deletes the file of this number here, since a central store holds it, as `what` says."""
        release_warc(self.state, self.warc_folder, number, what, length_key(number))

    def acknowledge_losses(self, batch: Batch) -> None:
        """Adds to `batch`, the one that requeues the last lost page, that the losses in `recovery` are dealt with."""
        for number, kept_bytes in self.recovery.short.items():
            batch.put(Family.META, *_committed_row(number, kept_bytes))

    def close(self) -> None:
        if self._warc is not None:
            self._warc.close()
        self.state.close()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def __enter__(self) -> "CollectionStore":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Collection({str(self.path)!r}, {'reader' if self.state.is_reader else 'writer'})"


class JoinedCollection(CollectionStore):
    """All shards of a crawl, read as one collection."""

    def __init__(self, path: Path, shards: Sequence[CollectionStore]) -> None:
        states = [shard.state for shard in shards]
        super().__init__(path, state=JoinedState(path, states), warc=None, recovery=WarcRecovery(), lock=None)
        self.shards = list(shards)

    @property
    def paths(self) -> list[Path]:
        """The folders of the shards."""
        return [shard.path for shard in self.shards]

    @property
    def warc_folders(self) -> list[Path]:
        return [shard.warc_folder for shard in self.shards]  # they number their files apart

    def records(self, tell: Callable[[str], None] | None = None) -> Iterator[tuple[int, WarcRecord]]:
        return (found for shard in self.shards for found in shard.records(tell))


def open_shards(path: Path) -> list[CollectionStore]:
    """Opens all shards of the collection at `path`, for reading."""
    folders = shard_paths(path)
    if not folders:
        raise SettingsError(f"{path} has no shards yet: its crawl has not begun")
    with contextlib.ExitStack() as undo:
        shards = [undo.enter_context(CollectionStore.open(folder, read_only=True)) for folder in folders]
        undo.pop_all()
    return shards


def is_collection(path: Path) -> bool:
    """Whether a collection, of whatever version, was made at `path`."""
    return os.path.isfile(path / _MARKER)  # noqa: PTH113 -- False where Path.is_file would raise: a name too long


def length_key(number: int) -> bytes:
    """The key of the row that holds the length of an archive file."""
    return _WARC_KEY + struct.pack(">I", number)


def _committed_row(number: int, length: int) -> tuple[bytes, bytes]:
    return length_key(number), struct.pack(">Q", length)


def committed_lengths(state: State) -> dict[int, int]:
    """The committed lengths of the archive files that are here, by number."""
    rows = state.walk(Family.META, _WARC_KEY, _WARC_KEYS_END)
    return {struct.unpack(">I", key[len(_WARC_KEY) :])[0]: struct.unpack(">Q", value)[0] for key, value in rows}


def mark_whole(path: Path) -> None:
    """Makes the folder a collection: everything that belongs to one is there."""
    replace_file(path / _MARKER, f"{_MARKER_WORDS}{FORMAT}\n".encode(), syncs=True)


def _finish_creation(path: Path) -> State:
    """Writes the state first and the marker last: after a kill in between, the next start goes on at the same point."""
    with contextlib.ExitStack() as undo:
        state = undo.enter_context(State.open(path / _STATE))
        batch = Batch()
        batch.put(Family.META, _FORMAT_KEY, b"%d" % FORMAT)
        state.write(batch, sync=True)
        mark_whole(path)
        undo.pop_all()
    return state


def _require_room_for_one(path: Path) -> None:
    _require_name(path)
    if not path.exists():
        above = next((parent for parent in path.parents if parent.exists()), None)
        if above is not None:
            _require_folder(above)
        return
    _require_folder(path)
    with storage_errors(path, doing="opening the collection"):
        names = {entry.name for entry in path.iterdir()}
    if names and _MARKER not in names and not (_LOCK in names and names <= _OURS):
        raise SettingsError(f"{path} is not a collection and not empty: choose a new or an empty folder")


def _require_name(path: Path) -> None:
    require_utf8(path)
    try:
        path.stat()
    except (OSError, ValueError) as error:  # ValueError: a null byte
        if not isinstance(error, OSError) or error.errno == errno.ENAMETOOLONG:
            raise SettingsError(f"{str(path)[:60]!r}… is no name for a folder: choose a shorter one") from error


def _require_folder(path: Path) -> None:
    if not path.is_dir():
        raise SettingsError(f"{path} is a file: a collection is a folder")


def _require_collection(path: Path) -> None:
    _require_name(path)
    if not path.exists():
        raise SettingsError(f"there is no collection at {path}: lycosa crawl URL --into {path} makes one")
    _require_folder(path)
    if not is_collection(path):
        raise SettingsError(f"{path} is not a collection: name the folder that a crawl was given with --into")
    with storage_errors(path, doing="opening the collection"):
        words = (path / _MARKER).read_text(errors="replace").strip()
    _require_format(path, words.removeprefix(_MARKER_WORDS))


def _require_same_format(path: Path, state: State) -> None:
    try:
        _require_format(path, (state.get(Family.META, _FORMAT_KEY) or b"none").decode(errors="replace"))
    except BaseException:
        state.close()
        raise


def _require_format(path: Path, found: str) -> None:
    if found != str(FORMAT):
        raise SettingsError(
            f"{path} was made by another version of Lycosa (format {found[:20]!r}, this one uses {FORMAT})"
        )


@contextlib.contextmanager
def hold_lock(path: Path) -> Iterator[None]:
    """Holds the writer's lock of a collection while something beside the state is mended; raises SettingsError if
    another process has it."""
    with storage_errors(path, doing="opening the collection"):
        lock = _lock(path)
    try:
        yield
    finally:
        os.close(lock)


def is_written(path: Path) -> bool:
    """Whether any process holds the writer's lock of a collection."""
    try:
        with (path / _LOCK).open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        pass  # there is none
    return False


def _lock(path: Path) -> int:
    """Takes the writer's lock, or says who has it. It is released with the process, however that ends."""
    lock = os.open(path / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        holder = os.pread(lock, 20, 0).decode(errors="replace").strip()
        os.close(lock)
        if holder == str(os.getpid()):
            raise SettingsError(
                f"a crawl in this process still has {path} open, or is closing it: await its end, which is that of the"
                " block `async with Crawl(...)`"
            ) from error
        raise SettingsError(
            f"{path} is in use by {f'process {holder}' if holder.isdigit() else 'another process'}:"
            " wait for it to end or choose another folder"
        ) from error
    os.ftruncate(lock, 0)
    os.pwrite(lock, b"%d\n" % os.getpid(), 0)
    return lock


def adopt_collection(folder: Path, store: CentralStore, *, numbers: range) -> None:
    """Makes a collection of a folder that holds nothing but a state.

    The store must have every archive file that the state names. Of `numbers`, all that the store has are taken, also
    where the state does not know them, and the archive goes on behind them.
    """
    there = {warc_number(name) for name in store.names(STORE_WARC_FOLDER)}
    with State.open(folder / "state", may_make=False) as state:
        named, batch = committed_lengths(state), Batch()
        for number in sorted((named.keys() | there.intersection(numbers)) - released_files(state).keys()):
            what = _held(store, number)
            if number in named and (what is None or what.gzip_bytes < named[number]):
                raise StoreError(f"{store.url} does not have all of archive file {number}, which the state names")
            if what is not None:
                batch.put(Family.META, *released_row(number, what))
                batch.delete(Family.META, length_key(number))
        state.write(batch, sync=True)
    (folder / "warc").mkdir()
    remember_store(folder / "warc", store.url)
    mark_whole(folder)


def _held(store: CentralStore, number: int) -> ReleasedFile | None:
    packed = open_packed(store, packed_name(number))
    if packed is None:
        return None
    index = packed.index
    return ReleasedFile(store.size(packed_name(number)) or 0, index.gzip_bytes, index.digest, index.left)
