"""Exports behind an fsspec URL, such as s3://bucket/pages.jsonl.zst; needs the extra `store`.

A file is sent while it is written, under a temporary name, and moved when it is whole: an export that ends early leaves
what was there, and is not resumed. The files of a folder are written here first, then sent in the same way one by one.
Whatever an adapter raises is one sentence here.
"""

import contextlib
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

from lycosa.errors import MissingExtra, SettingsError, StoreError
from lycosa.export.output import MARKER, Compressor, Output, OutputFailed, Stream, mark_folder, not_replaceable


def local_path(url: str) -> Path | None:
    """The path of a URL of this machine's own files."""
    scheme, _, rest = url.partition("://")
    return Path(rest) if scheme in ("file", "local") else None


class UrlPlace:
    """A place in a file system of fsspec."""

    def __init__(self, url: str) -> None:
        try:
            import fsspec
        except ImportError as error:
            raise MissingExtra.of("store", what=f"an export to {url}") from error
        self.url = url
        try:
            self.files, path = fsspec.core.url_to_fs(url, use_listings_cache=False)
        except ImportError as error:
            raise MissingExtra(f"an export to {url} needs an adapter: {error}") from error
        except Exception as error:  # whatever an adapter stumbles over, it is one sentence for the user
            raise SettingsError(f"{url} is no place for an export: {_words(error)}") from error
        self.path: str = path.rstrip("/")

    def beside(self, name: str) -> str:
        """The path of another name in the same folder."""
        return f"{self.path.rpartition('/')[0]}/{name}"

    def temporary(self) -> str:
        return self.beside(f".{self.path.rpartition('/')[2]}.partial-{uuid.uuid4().hex[:8]}")

    def named(self, name: str) -> str:
        return self.beside(name) if name else self.path

    def shown(self, path: str) -> str:
        """The URL of a path, as the user would write it."""
        return f"{self.url.rpartition('/')[0]}/{path.rpartition('/')[2]}"

    def read(self, name: str) -> bytes | None:
        """A small file beside the export, if it is there."""
        with self.reported("reading"):
            try:
                data: bytes = self.files.cat_file(self.beside(name))
            except FileNotFoundError:
                return None
            return data

    def put(self, name: str, data: bytes) -> None:
        """Writes a small file beside the export."""
        with self.reported("writing"):
            self.files.pipe_file(self.beside(name), data)

    @contextlib.contextmanager
    def reported(self, doing: str) -> Iterator[None]:
        try:
            yield
        except (StoreError, MissingExtra):
            raise
        except Exception as error:  # adapters raise what their clients raise
            raise OutputFailed(f"{doing} {self.url} failed: {_words(error)}") from error


class RemoteFile(Stream):
    """A file behind a URL."""

    def __init__(self, place: UrlPlace, *, compresses: bool) -> None:
        self._place, self._temporary = place, place.temporary()
        with place.reported("writing"):
            place.files.makedirs(place.path.rpartition("/")[0] or "/", exist_ok=True)
            file = cast(BinaryIO, place.files.open(self._temporary, "wb"))
        super().__init__(place.url, file, Compressor(place.path) if compresses else None)

    def _put(self, data: bytes) -> None:
        with self._place.reported("writing"):
            self._file.write(data)
        self.written += len(data)

    def commit(self, name: str = "") -> str:
        target = self._place.named(name)
        self._end_member()
        with self._place.reported("writing"):
            self._file.close()
            self._place.files.mv(self._temporary, target)
        self._tidy()
        return self._place.shown(target)

    def abandon(self, *, keep: bool) -> None:
        self._tidy()
        with contextlib.suppress(Exception):
            self._file.close()
        with contextlib.suppress(Exception):
            self._place.files.rm(self._temporary)


class RemoteFolder(Output):
    """A folder behind a URL; one that is there is replaced, if it is empty or an export."""

    def __init__(self, place: UrlPlace) -> None:
        super().__init__(place.url)
        self._place = place
        if not self._is_replaceable(place.path):
            raise not_replaceable(place.url)
        self._folder = self.scratch / "folder"
        self._folder.mkdir()

    def _is_replaceable(self, target: str) -> bool:
        files = self._place.files
        with self._place.reported("reading"):
            return not files.exists(target) or files.exists(f"{target}/{MARKER}") or not files.find(target)

    @property
    def folder(self) -> Path:
        return self._folder

    def commit(self, name: str = "") -> str:
        target, files = self._place.named(name), self._place.files
        temporary = self._place.temporary()
        mark_folder(self._folder)
        sent = sorted(path for path in self._folder.rglob("*") if path.is_file())
        with self._place.reported("writing"):
            for path in sent:
                where = f"{temporary}/{path.relative_to(self._folder).as_posix()}"
                files.makedirs(where.rpartition("/")[0], exist_ok=True)
                files.put_file(str(path), where)
            if files.exists(target):
                files.rm(target, recursive=True)
            files.mv(temporary, target, recursive=True)
        self._tidy()
        return self._place.shown(target)

    def abandon(self, *, keep: bool) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)
        self._tidy()


def _words(error: Any) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
