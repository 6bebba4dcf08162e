"""The place that a user names for an export, and what is known of the last export to it (`--since-last`).

A place is a path, `-` for standard output, or an fsspec URL. The record of the last finished export stands beside it,
as `.NAME.last.json`: a collection may be read-only, and the same collection may be exported to many places.
"""

import contextlib
import sys
import time
from pathlib import Path

import msgspec

from lycosa.errors import SettingsError
from lycosa.export.output import LocalFile, LocalFolder, Output, StandardOutput, is_device, reported
from lycosa.export.remote import RemoteFile, RemoteFolder, UrlPlace, local_path

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
    new = path.with_name(_record_name(path.name) + ".new")
    with reported(path):
        new.write_bytes(data)
        new.replace(path.with_name(_record_name(path.name)))


def _record_name(name: str) -> str:
    return f".{name}.last.json"


def increment_name(place: str, at_s: float) -> str:
    """The name of an export of what is new: `pages.jsonl.gz` gives `pages-20260131T120000Z.jsonl.gz`."""
    name = place.rstrip("/").rpartition("/")[2]
    stem, dot, suffixes = name.partition(".")
    return f"{stem}-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime(at_s))}{dot}{suffixes}"
