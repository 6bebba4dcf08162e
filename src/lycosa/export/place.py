"""The place that a user names for an export, and what is known of the last export to it (`--since-last`).

A place is a path, `-` for standard output, or an fsspec URL. The record of the last finished export stands beside it,
as `.NAME.last.json`: a collection may be read-only, and the same collection may be exported to many places.

Behind an fsspec URL, such as s3://bucket/pages.jsonl.zst, which needs the extra `store`, a file is sent while it is
written, under a temporary name, and moved when it is whole: an export that ends early leaves what was there, and is not
resumed. The files of a folder are written here first, then sent in the same way one by one. Whatever an adapter raises
is one sentence here.
"""

import contextlib
import shutil
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

import msgspec

from lycosa.errors import MissingExtra, SettingsError, StoreError, first_line
from lycosa.export.output import (
    MARKER,
    Compressor,
    LocalFile,
    LocalFolder,
    Output,
    OutputFailed,
    StandardOutput,
    Stream,
    is_device,
    mark_folder,
    not_replaceable,
    reported,
)
from lycosa.files import replace_file


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
            raise SettingsError(f"{url} is no place for an export: {first_line(error)}") from error
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
            raise OutputFailed(f"{doing} {self.url} failed: {first_line(error)}") from error


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


STANDARD_OUTPUT = "-"


def open_output(
    place: str, job: str, *, is_folder: bool, compresses: bool, resumes: bool, restart: bool = False
) -> Output:
    """The output at a place. With `restart` an unfinished export of before is not continued."""
    if place == STANDARD_OUTPUT:
        return StandardOutput("standard output", sys.stdout.buffer)
    target = _local(place)
    if target is None:
        remote = UrlPlace(place)
        return RemoteFolder(remote) if is_folder else RemoteFile(remote, compresses=compresses)
    if restart:
        with contextlib.suppress(OSError):
            target.with_name(f".{target.name}.partial.json").unlink()
    if is_folder:
        return LocalFolder(target, job, resumes=resumes)
    if is_device(target):
        with reported(target):
            return StandardOutput(str(target), target.open("wb"))
    return LocalFile(target, job, compresses=compresses, resumes=resumes)


def _local(place: str) -> Path | None:
    """The path of a place of this machine; None for another URL."""
    path = local_path(place) if "://" in place else Path(place)
    if path is None:
        return None
    try:
        path.is_dir()
    except (OSError, ValueError):  # too long, or with a null byte
        path = Path()
    if not path.name or path.name == "..":
        raise SettingsError(f"--out is {place[:60]!r}, which is no name for a file or a folder")
    return path


class LastExport(msgspec.Struct, frozen=True):
    """The last finished export to a place: what came or changed before `covered_s` is in it, or in one before. `job`
    says which export it was."""

    job: str
    covered_s: float


def read_last(place: str) -> LastExport | None:
    """The record of the last export to a place, if there is one."""
    path = _local(place)
    if path is None:
        remote = UrlPlace(place)
        data = remote.read(_record_name(remote.path.rpartition("/")[2]))
    else:
        try:
            data = path.with_name(_record_name(path.name)).read_bytes()
        except OSError:
            data = None
    try:
        return msgspec.json.decode(data, type=LastExport) if data else None
    except msgspec.DecodeError as error:
        raise SettingsError(f"the record of the last export beside {place} is damaged: delete it") from error


def write_last(place: str, last: LastExport) -> None:
    """Replaces the record."""
    data, path = msgspec.json.encode(last), _local(place)
    if path is None:
        remote = UrlPlace(place)
        remote.put(_record_name(remote.path.rpartition("/")[2]), data)
        return
    with reported(path):
        replace_file(path.with_name(_record_name(path.name)), data)


def _record_name(name: str) -> str:
    return f".{name}.last.json"


def increment_name(place: str, at_s: float) -> str:
    """The name of an export of what is new: `pages.jsonl.gz` gives `pages-20260131T120000Z.jsonl.gz`."""
    name = place.rstrip("/").rpartition("/")[2]
    stem, dot, suffixes = name.partition(".")
    return f"{stem}-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime(at_s))}{dot}{suffixes}"
