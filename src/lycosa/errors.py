"""The errors Lycosa raises, and the exit code each one means.

    LycosaError
    ├── SettingsError    a setting is wrong: says which, its value, and what is allowed
    ├── MissingExtra     an optional dependency is not installed: says how to install it
    ├── PartError        a part that the settings name cannot be had: names it, chained from the original
    ├── NoPage           a collection has no such page; it is a LookupError too
    ├── StoreError       a file of ours cannot be read or written
    └── ClusterError     another node, agent or the coordinator cannot be reached, or has refused us

Every message is one sentence a user can act on; the command line prints it and nothing else.
All of them survive pickling: each takes exactly the message it shows.

`storage_error` turns what the disk and RocksDB say into one such sentence, and is the only place that reads their
words: RocksDB's binding raises bare `Exception` with the text of a status ("IO error: No space left on device: ...").
"""

import contextlib
import errno
from collections.abc import Iterator
from pathlib import Path


class LycosaError(Exception):
    """The root of the tree. `exit_code` is what the command line ends with."""

    exit_code = 1


class SettingsError(LycosaError):
    """What the user asked for cannot be; the message names the setting and what is allowed."""

    exit_code = 2


class MissingExtra(LycosaError):
    """An optional part is not installed; the message is the command that installs it."""

    exit_code = 2

    @classmethod
    def of(cls, extra: str, *, what: str) -> "MissingExtra":
        return cls(f"{what} needs an optional package: pip install 'lycosa[{extra}]'")


class PartError(LycosaError):
    """A part named in the settings cannot be found or made."""

    exit_code = 2


class NoPage(LycosaError, LookupError):
    """The collection that was asked for a page does not have it."""

    exit_code = 2


class StoreError(LycosaError):
    """A file of ours failed: unreadable, not ours, or no space left."""

    exit_code = 4


class ClusterError(LycosaError):
    """A node, an agent or the coordinator is gone, or refuses this one."""


# errno -> how a user says it; anything else is passed on in the system's words.
_SAID = {
    errno.ENOSPC: "no space left on the disk of {path}",
    errno.EDQUOT: "the disk quota of {path} is used up",
    errno.EFBIG: "{path} has reached the largest file size allowed here",
    errno.EROFS: "{path} is on a read-only file system",
    errno.EACCES: "no permission to use {path}",
    errno.EIO: "the disk of {path} reports an input/output error",
}
# The same in the words RocksDB passes on, which are strerror's.
_ROCKSDB_WORDS = {
    "No space left on device": errno.ENOSPC,
    "Disk quota exceeded": errno.EDQUOT,
    "File too large": errno.EFBIG,
    "Read-only file system": errno.EROFS,
    "Permission denied": errno.EACCES,
    "Input/output error": errno.EIO,
}


def storage_error(error: Exception, *, path: Path, doing: str) -> StoreError:
    """The one sentence for `error`, met while `doing` something ("writing the state") to `path`."""
    return StoreError(f"{doing} failed: {_reason(error, path)}")


@contextlib.contextmanager
def storage_errors(path: Path, *, doing: str) -> Iterator[None]:
    """Makes such a sentence of whatever the disk refuses within the context."""
    try:
        yield
    except OSError as error:
        raise storage_error(error, path=path, doing=doing) from error


def require_utf8(path: Path) -> None:
    """Raises SettingsError for names that the state's own library, settings and logs cannot hold."""
    try:
        str(path).encode()
    except UnicodeEncodeError as error:
        raise SettingsError(f"{str(path)[:60]!r} is no name for a folder here: the path must be UTF-8") from error


def is_about_room(sentence: str) -> bool:
    """Does the sentence of a StoreError say that a disk or a quota is full?"""
    return "no space left" in sentence or "disk quota" in sentence


def first_line(error: Exception) -> str:
    """What a foreign library says of an error, up to the end of the first line; its name where it says nothing."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def is_damage(error: Exception) -> bool:
    """True when RocksDB says that what it read is not what was written."""
    return type(error) is Exception and str(error).startswith("Corruption")


def lacks_family(error: Exception) -> bool:
    """True when RocksDB was asked for a family that this state does not have: an earlier version made it."""
    return "Column family not found" in str(error)


def _reason(error: Exception, path: Path) -> str:
    if isinstance(error, OSError) and error.errno is not None:
        return _SAID.get(error.errno, "{path}: " + (error.strerror or "input/output error").lower()).format(path=path)
    text = " ".join(str(error).split())
    for words, number in _ROCKSDB_WORDS.items():
        if words in text:
            return _SAID[number].format(path=path)
    if is_damage(error):
        return f"{path} is damaged ({text.removeprefix('Corruption: ')})"
    return f"{path}: {text}"
