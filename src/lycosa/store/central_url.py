"""A central store at a URL, by fsspec: object stores, sftp, hdfs, whatever has an adapter installed.

Import it only through `store.central.open_central_store`: fsspec is an extra.
"""

import contextlib
import uuid
from collections.abc import Container, Iterator
from pathlib import Path
from typing import Any

import fsspec

from lycosa.errors import MissingExtra, SettingsError, StoreError
from lycosa.store.central import PARTIAL

# Here a put is seen when it is over, and a rename would be a copy.
_PUTS_WHOLE = frozenset({"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "adl", "oss", "r2", "oci"})


class UrlStore:
    """A store at a URL such as s3://bucket/crawl. What it takes to log in, the adapter finds in its own places."""

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        try:
            self._files, root = fsspec.core.url_to_fs(self.url, use_listings_cache=False)
        except ImportError as error:
            raise MissingExtra(f"the store {self.url} needs an adapter: {error}") from error
        except Exception as error:  # whatever an adapter stumbles over, it is one sentence for the user
            raise SettingsError(f"{self.url} is no place for a store: {_words(error)}") from error
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
            raise StoreError(f"{doing} in the store {self.url} failed: {_words(error)}") from error


def _words(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
