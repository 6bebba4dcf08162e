"""A central store: where shards bring what has to outlive their machines. A folder, or any URL that fsspec knows.

An object has a name with slashes, is put whole and is never changed. Invariant: under its name it is there whole or not
at all, whoever dies: it is written under another name, handed to the disk and renamed; stores of objects, in which
a put is one step, take it as it is. Whoever puts something can have it read back and compared (`put_checked`).
A folder needs nothing; URLs need the extra `store`. Foreign errors become `StoreError` here and nowhere else.
"""

import contextlib
import os
import uuid
from collections.abc import Container, Iterator
from pathlib import Path
from typing import Any, Protocol

import msgspec
import xxhash

from lycosa.errors import MissingExtra, SettingsError, StoreError, first_line, storage_error, storage_errors
from lycosa.files import sync_folder

CHUNK_BYTES = 4 << 20
PARTIAL = ".new-"  # in the name of what is not whole yet
_MARKER = "lycosa.store"
FORMAT = 1
# Here a put is seen when it is over, and a rename would be a copy.
_PUTS_WHOLE = frozenset({"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "adl", "oss", "r2", "oci"})


class CentralStore(Protocol):
    """A store of objects by name. `url` is how it is found again, from any machine that sees it."""

    url: str

    def put(self, name: str, file: Path) -> None:
        """Uploads the file; afterwards the object is whole, under this name, on the disk."""
        ...

    def size(self, name: str) -> int | None:
        """The size of an object in bytes; None if there is none of this name."""
        ...

    def read(self, name: str, offset: int, length: int) -> bytes:
        """Reads a part of an object, within its size."""
        ...

    def names(self, folder: str) -> list[str]:
        """The names, without the folder, of the whole objects directly in it, in order."""
        ...

    def delete(self, name: str) -> None:
        """Deletes the object of this name, if there is one."""
        ...

    def sweep(self, folder: str, names: Container[str]) -> None:
        """Removes unfinished uploads under these names, directly in the folder."""
        ...


def can_be_store(where: str) -> bool:
    """May a store be there? Not at a web server, which takes no files: a collection from elsewhere names its store
    itself, and whoever opens it must not be made to ask addresses inside their network. Nor inside another file."""
    return "::" not in where and not where.lower().startswith(("http:", "https:"))


def open_central_store(where: str) -> CentralStore:
    """Opens the store at a folder or a URL."""
    if not can_be_store(where):
        raise SettingsError(f"{where} is no place for a store: name a folder, or a URL such as s3://bucket/crawl")
    if "://" not in where:
        return FolderStore(Path(where))
    return UrlStore(where)


def require_shareable_store(where: str) -> None:
    """Raises SettingsError unless several processes can see the store, and all is installed that it needs."""
    if "memory://" in where:
        raise SettingsError(f"{where} is in the memory of one process: choose a store that all processes see")
    open_central_store(where)


def claim_store(store: CentralStore, identity: str, scratch: Path) -> None:
    """Makes the store that of the collection `identity`; refuses one that belongs to another."""
    size = store.size(_MARKER)
    if size is None:
        if store.names(""):
            raise SettingsError(f"{store.url} is not empty and no store: choose another place for --store")
        put_bytes(store, _MARKER, msgspec.json.encode({"format": FORMAT, "collection": identity}), scratch)
        return
    try:
        found = msgspec.json.decode(store.read(_MARKER, 0, size), type=dict[str, int | str])
    except msgspec.DecodeError as error:
        raise SettingsError(f"{store.url} is no store of Lycosa: choose another place for --store") from error
    if found.get("format") != FORMAT:
        raise SettingsError(f"{store.url} was made by another version of Lycosa (format {found.get('format')})")
    if found.get("collection") != identity:
        raise SettingsError(f"{store.url} is the store of another collection: choose another place for --store")


def is_claimed_store(store: CentralStore) -> bool:
    """Whether a collection has made this store its own."""
    return store.size(_MARKER) is not None


def require_store(store: CentralStore) -> None:
    """Raises StoreError unless the store is there: a folder that is not mounted looks like an empty one, and takes what
    is put there."""
    if not is_claimed_store(store):
        raise StoreError(f"the store {store.url} is away: there is nothing of it at its place")


def put_verified(store: CentralStore, name: str, file: Path) -> str:
    """Uploads a file and reads it back; returns its digest, or raises if the store holds something else."""
    wanted = file_digest(file)
    store.put(name, file)
    if object_digest(store, name) != wanted:
        store.delete(name)
        raise StoreError(f"what {store.url} holds as {name} is not what was put there")
    return wanted


def put_bytes(store: CentralStore, name: str, data: bytes, scratch: Path) -> None:
    """Uploads a few bytes in the same way, through a file in the folder `scratch`."""
    file = scratch / f"{uuid.uuid4().hex}.put"
    try:
        file.write_bytes(data)
        put_verified(store, name, file)
    except OSError as error:
        raise storage_error(error, path=file, doing="writing to the store") from error
    finally:
        file.unlink(missing_ok=True)


def read_chunks(store: CentralStore, name: str) -> Iterator[bytes]:
    """Reads all of an object, piece by piece."""
    size = store.size(name)
    if size is None:
        raise StoreError(f"{store.url} has no {name}")
    for at in range(0, size, CHUNK_BYTES):
        yield store.read(name, at, min(CHUNK_BYTES, size - at))


def object_digest(store: CentralStore, name: str) -> str:
    """The digest of an object as the store holds it."""
    digest = xxhash.xxh3_128()
    for chunk in read_chunks(store, name):
        digest.update(chunk)
    return digest.hexdigest()


def file_digest(file: Path) -> str:
    """The digest of a local file, made in the same way."""
    digest = xxhash.xxh3_128()
    with file.open("rb") as opened:
        while chunk := opened.read(CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


class FolderStore:
    """A store in a folder that all machines see."""

    def __init__(self, path: Path) -> None:
        self._path = path.absolute()
        self.url = str(self._path)

    def __repr__(self) -> str:
        return f"FolderStore({self.url!r})"

    def put(self, name: str, file: Path) -> None:
        target = self._path / name
        new = target.with_name(f"{target.name}{PARTIAL}{uuid.uuid4().hex}")
        with storage_errors(self._path, doing=f"writing {name} to the store"):
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                with file.open("rb") as source, new.open("xb") as copy:
                    while chunk := source.read(CHUNK_BYTES):
                        copy.write(chunk)
                    copy.flush()
                    os.fsync(copy.fileno())
                new.replace(target)
            finally:
                new.unlink(missing_ok=True)
            sync_folder(target.parent)

    def size(self, name: str) -> int | None:
        with storage_errors(self._path, doing="reading the store"):
            try:
                return (self._path / name).stat().st_size
            except FileNotFoundError:
                return None

    def read(self, name: str, offset: int, length: int) -> bytes:
        with storage_errors(self._path, doing="reading the store"), (self._path / name).open("rb") as file:
            file.seek(offset)
            return file.read(length)

    def names(self, folder: str) -> list[str]:
        with storage_errors(self._path, doing="reading the store"):
            return sorted(name for name in self._entries(folder) if PARTIAL not in name)

    def _entries(self, folder: str) -> list[str]:
        try:
            return [entry.name for entry in os.scandir(self._path / folder)]
        except FileNotFoundError:
            return []

    def delete(self, name: str) -> None:
        with storage_errors(self._path, doing="tidying the store"):
            (self._path / name).unlink(missing_ok=True)

    def sweep(self, folder: str, names: Container[str]) -> None:
        with storage_errors(self._path, doing="tidying the store"):
            for name in self._entries(folder):
                if PARTIAL in name and name.partition(PARTIAL)[0] in names:
                    (self._path / folder / name).unlink(missing_ok=True)


class UrlStore:
    """A store at a URL such as s3://bucket/crawl. The adapter finds the credentials in its own places."""

    def __init__(self, url: str) -> None:
        try:
            import fsspec
        except ImportError as error:
            raise MissingExtra.of("store", what=f"the store {url}") from error
        self.url = url.rstrip("/")
        try:
            self._files, root = fsspec.core.url_to_fs(self.url, use_listings_cache=False)
        except ImportError as error:
            raise MissingExtra(f"the store {self.url} needs an adapter: {error}") from error
        except Exception as error:  # whatever an adapter stumbles over, it is one sentence for the user
            raise SettingsError(f"{self.url} is no place for a store: {first_line(error)}") from error
        self._root = root.rstrip("/")
        protocols = self._files.protocol if isinstance(self._files.protocol, tuple) else (self._files.protocol,)
        self._puts_whole = not _PUTS_WHOLE.isdisjoint(protocols)

    def __repr__(self) -> str:
        return f"UrlStore({self.url!r})"

    def put(self, name: str, file: Path) -> None:
        with self._reported(f"writing {name}"):
            target = self._at(name)
            if self._puts_whole:
                self._files.put_file(str(file), target)
                return
            self._files.makedirs(target.rpartition("/")[0], exist_ok=True)
            new = f"{target}{PARTIAL}{uuid.uuid4().hex}"
            self._files.put_file(str(file), new)
            self._files.mv(new, target)

    def size(self, name: str) -> int | None:
        with self._reported(f"looking at {name}"):
            try:
                return int(self._files.info(self._at(name))["size"])
            except FileNotFoundError:
                return None

    def read(self, name: str, offset: int, length: int) -> bytes:
        with self._reported(f"reading {name}"):
            data: bytes = self._files.cat_file(self._at(name), start=offset, end=offset + length)
            return data

    def names(self, folder: str) -> list[str]:
        return sorted(name for name in self._entries(folder) if PARTIAL not in name)

    def _entries(self, folder: str) -> list[str]:
        with self._reported("looking around"):
            try:
                found: list[Any] = self._files.ls(self._at(folder).rstrip("/"), detail=False)
            except FileNotFoundError:
                return []
            return [str(path).rstrip("/").rpartition("/")[2] for path in found]

    def delete(self, name: str) -> None:
        with self._reported(f"removing {name}"), contextlib.suppress(FileNotFoundError):
            self._files.rm_file(self._at(name))

    def sweep(self, folder: str, names: Container[str]) -> None:
        for name in self._entries(folder):
            if PARTIAL in name and name.partition(PARTIAL)[0] in names:
                self.delete(f"{folder}/{name}")

    def _at(self, name: str) -> str:
        return f"{self._root}/{name}" if name else self._root

    @contextlib.contextmanager
    def _reported(self, doing: str) -> Iterator[None]:
        try:
            yield
        except StoreError:
            raise
        except Exception as error:  # adapters raise what their clients raise
            raise StoreError(f"{doing} in the store {self.url} failed: {first_line(error)}") from error
