"""The state of a collection: sorted byte keys in families, changed by atomic batches.

Guarantees: a batch is applied as a whole or not at all, across families; a batch that `write` returned from survives
the death of the process, one written with `sync=True` a power loss too. A batch whose write *failed* may be there
after `reopen`, whole: writing the same batch again is always right.

After a failed write (disk full) RocksDB may refuse every later one even when space is back: reading goes on, writing
goes on after `reopen`, which needs about as much free space as the write-ahead log holds.

One process writes; others read beside it through `State.open_reader`. An open state does not survive a fork.
Used by `lycosa.store.collection`, and through it by the rooms above, which own what keys and values mean.
"""

import contextlib
import os
import random
import secrets
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import cast

from rocksdict import (
    AccessType,
    Cache,
    Checkpoint,
    ColumnFamily,
    DbClosedError,
    DBPath,
    Rdict,
    ReadOptions,
    WriteBatch,
    WriteOptions,
)

from lycosa.errors import StoreError, is_damage, lacks_family, storage_error
from lycosa.records import Family
from lycosa.store.options import CACHE_LEAST_BYTES, cache_bytes, database_options, family_options

# Keys a `walk` reads at a time: enough to make the seek cheap, little enough to hold.
_WALK_KEYS = 2000
# Writes after which the cache is fitted to the number of URLs: about a minute of crawling.
_FIT_CACHE_WRITES = 256
# A reader tries again when the writer flushed or compacted meanwhile, which it does every few seconds at most: so long
# it tries, with pauses in which a writer that keeps a processor busy gets on.
_PATIENCE_S = 30.0
_PAUSE_S = 0.002
# The files that say which tables a state has; all others are found by their names.
_NAMING = ("CURRENT", "MANIFEST-", "OPTIONS-", "IDENTITY")
_CURRENT = "CURRENT"  # names the manifest of a state: where it is missing, RocksDB sees none and makes an empty one


class Batch:
    """Changes that belong together, in order. Plain data: it can be built without a state and written again."""

    __slots__ = ("_changes",)

    def __init__(self) -> None:
        self._changes: list[tuple[Family, bytes, bytes | None, bytes | None]] = []

    def put(self, family: Family, key: bytes, value: bytes) -> None:
        self._changes.append((family, key, value, None))

    def delete(self, family: Family, key: bytes) -> None:
        self._changes.append((family, key, None, None))

    def delete_range(self, family: Family, start: bytes, end: bytes) -> None:
        """Deletes every key from `start` up to, not including, `end`."""
        self._changes.append((family, start, None, end))

    def clear(self) -> None:
        """Begins anew: what it held is written."""
        self._changes.clear()

    def extend(self, other: "Batch") -> None:
        self._changes += other._changes

    def __len__(self) -> int:
        return len(self._changes)

    def __iter__(self) -> Iterator[tuple[Family, bytes, bytes | None, bytes | None]]:
        """The changes as (family, key, value or None, end or None)."""
        return iter(self._changes)

    def __repr__(self) -> str:
        return f"Batch({len(self._changes)} changes)"


class State:
    """An open state. Made by `State.open` (one per folder) or `State.open_reader` (any number beside it)."""

    def __init__(self, path: Path, *, is_reader: bool, may_make: bool = False) -> None:
        self.path = path
        self.is_reader = is_reader
        self._may_make = may_make
        # Why the end of the write-ahead log was left out ("" when it was whole); the crawl logs it.
        self.repaired = ""
        self._cache = Cache(CACHE_LEAST_BYTES)
        self.cache_most_bytes = CACHE_LEAST_BYTES
        self._writes = 0
        self._seen: list[tuple[str, int]] = []
        self._own = Path()  # a reader's, see `_stand_in`
        self._database: Rdict | None = None
        self._families: dict[Family, Rdict] = {}
        self._handles: dict[Family, ColumnFamily] = {}

    @classmethod
    def open(cls, path: Path, *, may_make: bool = True) -> "State":
        """Opens for writing. With `may_make` a missing state is made, also after a creation that was interrupted; but
        never where files of one are left: RocksDB would delete them."""
        state = cls(path, is_reader=False, may_make=may_make)
        state.reopen()
        return state

    @classmethod
    def open_reader(cls, path: Path) -> "State":
        """Opens beside a writer, as the state is now; `refresh` sees what was written since. It leaves
        nothing behind."""
        state = cls(path, is_reader=True)
        try:
            state.reopen()
        except StoreError as error:
            if not lacks_family(error):
                raise
            _complete(path)
            state.reopen()
        return state

    def reopen(self) -> None:
        """Closes, if open, and opens again. When it fails the state stays closed and may be reopened later."""
        self.close()
        self.repaired = ""
        try:
            if not (self.path / _CURRENT).is_file() and not (self._may_make and _is_vacant(self.path)):
                raise StoreError(f"{self.path} holds no state")  # the binding would make the folder, and an empty state
            self._take(self._open_reader() if self.is_reader else self._open_writer())
            self._fit_cache()
            self._may_make = False
        except Exception as error:  # the binding raises bare Exceptions
            self.close()
            if isinstance(error, StoreError):
                raise
            raise storage_error(error, path=self.path, doing="opening the state") from error

    def _take(self, database: Rdict) -> None:
        self._database = database
        self._families = {family: database.get_column_family(family) for family in Family}
        self._handles = {family: database.get_column_family_handle(family) for family in Family}

    def _open_writer(self) -> Rdict:
        try:
            return self._rocksdb(AccessType.read_write(), accept_torn_log=False)
        except Exception as error:  # the binding raises bare Exceptions
            if not is_damage(error):
                raise
            # A kill in the middle of a write leaves half a record at the log's end; anything worse is cut off too.
            database = self._rocksdb(AccessType.read_write(), accept_torn_log=True)
            self.repaired = " ".join(str(error).split())
            return database

    def _open_reader(self) -> Rdict:
        # A secondary instance: unlike a read-only one it can catch up, and is consistent when it has.
        self._own = Path(tempfile.gettempdir()) / f"lycosa-reader-{secrets.token_hex(8)}"
        for is_last in _tries():
            before = self._version()
            try:
                with self._stand_in():
                    database = self._rocksdb(AccessType.secondary(str(self._own)), accept_torn_log=True)
            except Exception:  # the binding raises bare Exceptions
                if before == self._version() or is_last:  # not for a file that the writer just replaced
                    raise
                continue
            if self._catch_up(database, before):
                return database
            database.close()
        raise StoreError(f"the state {self.path} changes faster than it can be read: try again")

    def _catch_up(self, database: Rdict, opened: tuple[str, int]) -> bool:
        """Reads what was logged since it was opened at this version. False: the logs were flushed meanwhile. What was
        written to one since the last look stands in a table alone then, and what a secondary remembers of the log hides
        it from `get`: it has to be opened anew."""
        self._seen = self._written()
        try:
            with self._stand_in():
                database.try_catch_up_with_primary()
        except Exception:
            if opened == self._version():
                raise
        return opened == self._version()

    def _written(self) -> list[tuple[str, int]]:
        """What every write changes: the logs and their sizes, and the version."""
        logs = sorted(name for name in self._names() if name.endswith(".log"))
        return [*((log, _size_bytes(self.path / log)) for log in logs), self._version()]

    def _names(self) -> list[str]:
        with os.scandir(self.path) as entries:
            return [entry.name for entry in entries]

    @contextlib.contextmanager
    def _stand_in(self) -> Iterator[None]:
        """Makes a folder that a reader opens in place of the state, where it may not write although the binding insists
        on writing a file.

        It links to the manifest; tables and logs are read where they are. It is there for moments only, so that hardly
        a kill leaves it behind.
        """
        self._own.mkdir(mode=0o700)
        try:
            for name in self._names():
                if name.startswith(_NAMING):
                    (self._own / name).symlink_to(self.path.absolute() / name)
            yield
        finally:
            shutil.rmtree(self._own, ignore_errors=True)

    def _version(self) -> tuple[str, int]:
        """What every flush and compaction changes: the manifest's name and size."""
        manifest = (self.path / _CURRENT).read_text().strip()
        return manifest, _size_bytes(self.path / manifest)

    def _rocksdb(self, access: AccessType, *, accept_torn_log: bool) -> Rdict:
        options = database_options(is_reader=self.is_reader, accept_torn_log=accept_torn_log)
        families = {str(family): family_options(family, self._cache) for family in Family}
        if not self.is_reader:
            return Rdict(str(self.path), options, families, access)
        options.set_wal_dir(str(self.path.absolute()))
        options.set_db_paths([DBPath(str(self.path.absolute()), 0)])
        return Rdict(str(self._own), options, families, access)

    def refresh(self) -> bool:
        """Catches up with the writer: afterwards a reader sees all of every batch up to some moment. Returns whether
        anything was written since the last time."""
        try:
            database = self._opened()
            if self._written() == self._seen:
                return False
            if not self._catch_up(database, self._seen[-1]):
                self._open_anew()
        except StoreError:
            raise
        except Exception as error:
            raise self._failed(error, "reading the state") from error
        return True

    def _open_anew(self) -> None:
        """Reads from another instance from now on; where there is none to be had, the one before stays."""
        before, own, seen = self._handles_open(), self._own, self._seen
        try:
            self._take(self._open_reader())
        except BaseException:
            self._own, self._seen = own, seen
            raise
        _close_all(before)

    def _handles_open(self) -> list[Rdict]:
        return [*self._families.values(), *([self._database] if self._database is not None else [])]

    def get(self, family: Family, key: bytes) -> bytes | None:
        try:
            value: bytes | None = self._families[family].get(key)
        except Exception as error:
            raise self._failed(error, "reading the state") from error
        return value

    def get_many(self, family: Family, keys: Sequence[bytes]) -> list[bytes | None]:
        try:
            values = cast(list[bytes | None], self._families[family].get(list(keys)))
        except Exception as error:
            raise self._failed(error, "reading the state") from error
        return values

    def scan(
        self, family: Family, start: bytes = b"", end: bytes | None = None, *, limit: int
    ) -> list[tuple[bytes, bytes]]:
        """The first `limit` pairs from `start` up to, not including, `end`, in key order."""
        bounds = ReadOptions()
        if end is not None:
            if end <= start:
                return []
            bounds.set_iterate_upper_bound(end)
        try:
            # Only `from_key` bounds below: the binding's lower bound sets the upper one.
            pairs = self._families[family].items(from_key=start, read_opt=bounds)
            return list(islice(cast(Iterator[tuple[bytes, bytes]], pairs), limit))
        except Exception as error:
            raise self._failed(error, "reading the state") from error

    def scan_back(self, family: Family, start: bytes, end: bytes, *, limit: int) -> list[tuple[bytes, bytes]]:
        """The last `limit` pairs from `start` up to, not including, `end`, the last one first."""
        found: list[tuple[bytes, bytes]] = []
        try:
            # A key that is not there seeks to the one before it; a bound below is not to be had from the binding.
            for pair in self._families[family].items(backwards=True, from_key=end):
                key, value = cast(tuple[bytes, bytes], pair)
                if key < start or len(found) == limit:
                    break
                if key < end:
                    found.append((key, value))
        except Exception as error:
            raise self._failed(error, "reading the state") from error
        return found

    def count(self, family: Family, start: bytes, end: bytes, *, most: int | None = None) -> int:
        """The number of keys from `start` up to, not including, `end`, counted up to `most`: it takes a fifth of a
        second for a million."""
        bounds = ReadOptions()
        bounds.set_iterate_upper_bound(end)
        try:
            return sum(1 for _ in islice(self._families[family].keys(from_key=start, read_opt=bounds), most))
        except Exception as error:
            raise self._failed(error, "reading the state") from error

    def walk(self, family: Family, start: bytes = b"", end: bytes | None = None) -> Iterator[tuple[bytes, bytes]]:
        """Every pair of a range in key order, read piece by piece; changes made meanwhile may be seen or not."""
        while pairs := self.scan(family, start, end, limit=_WALK_KEYS):
            yield from pairs
            start = pairs[-1][0] + b"\0"

    def write(self, batch: Batch, *, sync: bool = False) -> None:
        """Applies the whole batch; with `sync` it is on the disk, with everything written before, when this returns."""
        options = WriteOptions()
        options.sync = sync
        try:
            self._opened().write(self._encode(batch), options)
        except Exception as error:
            raise self._failed(error, "writing the state") from error
        self._writes += 1
        if self._writes % _FIT_CACHE_WRITES == 0:
            self._fit_cache()

    def _fit_cache(self) -> None:
        """Sizes the cache by the number of URLs that are looked up."""
        urls = self._families[Family.URL].property_int_value("rocksdb.estimate-num-keys") or 0
        self.cache_most_bytes = cache_bytes(urls)
        self._cache.set_capacity(self.cache_most_bytes)

    def _encode(self, batch: Batch) -> WriteBatch:
        encoded = WriteBatch(raw_mode=True)
        handles, put = self._handles, encoded.put
        for family, key, value, end in batch:
            if value is not None:
                put(key, value, handles[family])
            elif end is not None:
                encoded.delete_range(key, end, handles[family])
            else:
                encoded.delete(key, handles[family])
        return encoded

    def checkpoint(self, path: Path) -> None:
        """A copy at `path` as of now, by hard links on the same disk; `path` must not exist."""
        try:
            Checkpoint(self._opened()).create_checkpoint(str(path))
        except Exception as error:
            raise storage_error(error, path=path, doing="copying the state") from error

    def compact(self) -> None:
        """Writes every family anew without what was deleted or replaced; takes seconds per million keys."""
        try:
            for family in self._families.values():
                family.flush()
                family.compact_range(None, None)
        except Exception as error:
            raise self._failed(error, "compacting the state") from error

    def close(self) -> None:
        """Closes; what was written stays. Closing twice does nothing."""
        opened = self._handles_open()
        # RocksDB gives its lock back only when every handle is gone.
        self._families, self._handles, self._database = {}, {}, None
        _close_all(opened)

    def _opened(self) -> Rdict:
        if self._database is None:
            raise StoreError(f"the state {self.path} is closed")
        return self._database

    def _failed(self, error: Exception, doing: str) -> StoreError:
        if self._database is None or isinstance(error, DbClosedError):
            return StoreError(f"the state {self.path} is closed")
        if type(error) is not Exception and not isinstance(error, OSError):
            raise error  # a mistake of the caller, such as a key that is not bytes
        return storage_error(error, path=self.path, doing=doing)

    def __enter__(self) -> "State":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        kind = "closed" if self._database is None else "reader" if self.is_reader else "writer"
        return f"State({str(self.path)!r}, {kind})"


def _close_all(parts: Iterable[Rdict]) -> None:
    for part in parts:
        with contextlib.suppress(Exception):  # after a failed write closing repeats that failure; it closes anyway
            part.close()


def _tries() -> Iterator[bool]:
    """Yields until the patience is over, with short pauses, each time whether it is the last try."""
    end_s = time.monotonic() + _PATIENCE_S
    yield False
    while time.monotonic() < end_s:
        time.sleep(_PAUSE_S * random.random())
        yield False
    yield True


def _size_bytes(path: Path) -> int:
    """The size of a file; −1 if it was deleted just now."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return -1


def _is_vacant(path: Path) -> bool:
    """Whether neither a table nor a log of writes is in the folder, which need not exist."""
    return not any(path.glob("*.sst")) and not any(path.glob("*.log"))


def _complete(path: Path) -> None:
    """Makes the families that an earlier version did not know; only a writer can, and there may be only one."""
    try:
        State.open(path, may_make=False).close()
    except StoreError as error:
        raise StoreError(
            f"{path} is of an earlier version that is still running: read it when that has ended"
        ) from error
