"""Turns what the disk and RocksDB say into one `StoreError` sentence; the only place that reads their words.

RocksDB's binding raises bare `Exception` with the text of a RocksDB status ("IO error: No space left on device: ...").
Called by every module of the store that touches a file, always as `raise failure(...) from error`.
"""

import errno
from pathlib import Path

from lycosa.errors import StoreError

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
