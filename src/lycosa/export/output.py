"""Where an export is written: standard output, a file or a folder here, or a place behind an fsspec URL.

Invariant: under the final name there is a whole export or whatever was there before. A file or folder here is written
beside it under a hidden name (`.NAME.partial`), handed to the disk and renamed. Every few seconds a *checkpoint* notes
in `.NAME.partial.json` how far the export has come and how long the file was then: an export that was killed, or for
which the disk was full, is cut back to that length and goes on, if it is the same export (`job`). What is behind a URL
is written under a temporary name and moved; it is not resumed.

Foreign errors become `StoreError` here. Made and called by `run` (`place.open_output`); formats see `write`, `folder`,
`scratch` and `is_resumed`.
"""

import contextlib
import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import zstandard
from isal import isal_zlib

from lycosa.errors import SettingsError, StoreError, storage_error
from lycosa.files import sync_folder

BUFFER_BYTES = 1 << 20
_DOING = "writing the export"
MARKER = ".lycosa-export"  # in a folder that an export has written, and may replace
_ZSTD_LEVEL = 3
_GZIP_LEVEL = 2


class OutputFailed(StoreError):
    """The export cannot be written, whatever page it is at."""


class Checkpoint(msgspec.Struct, frozen=True):
    """How far an export has come: behind the page with this key, or behind so many versions of it. `pages` were
    written, `unread` could not be read, `forbidden` were left out. It was begun at `began_s`, and runs before this one
    took `spent_s`."""

    key: bytes = b""
    versions: int = 0
    pages: int = 0
    unread: int = 0
    began_s: float = 0.0
    spent_s: float = 0.0
    forbidden: int = 0


class _SavedState(msgspec.Struct, frozen=True):
    """The state file of an unfinished export. `length` is that of its file in bytes at the checkpoint."""

    job: str
    length: int
    checkpoint: Checkpoint


class Output:
    """The place of one export. `written` counts bytes as they are stored; `resumed_from` is the last checkpoint of an
    unfinished export that goes on."""

    def __init__(self, shown: str) -> None:
        self.shown = shown  # in messages
        self.written = 0
        self.resumed_from: Checkpoint | None = None
        self._scratch: Path | None = None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.shown}>"

    @property
    def is_resumed(self) -> bool:
        return self.resumed_from is not None

    def write(self, data: bytes) -> int:
        """Writes to the stream of a format of lines or of one file."""
        raise TypeError(f"{self!r} is not a stream")

    @property
    def folder(self) -> Path:
        """The folder, here, in which a format of many files writes them."""
        raise TypeError(f"{self!r} is not a folder")

    @property
    def scratch(self) -> Path:
        """A folder for temporary files, which are deleted at the end."""
        if self._scratch is None:
            place = self._scratch_place()
            if place is None:
                self._scratch = Path(tempfile.mkdtemp(prefix="lycosa-export-"))
            else:
                with reported(place):
                    _remove(place)  # what a kill has left
                    place.mkdir(mode=0o700)
                self._scratch = place
        return self._scratch

    def _scratch_place(self) -> Path | None:
        """The folder for temporary files, where this output alone may have one; None for any."""
        return None

    def save(self, checkpoint: Checkpoint) -> None:
        """Notes how far the export has come, with all that was written up to here on the disk."""

    def commit(self, name: str = "") -> str:
        """Makes the export visible, under its own name or another in the same place; returns where it is."""
        self._tidy()
        return self.shown

    def abandon(self, *, keep: bool) -> None:
        """Leaves the export unfinished; with `keep` up to its last checkpoint, so that it can go on."""
        self._tidy()

    def _tidy(self) -> None:
        place, self._scratch = self._scratch or self._scratch_place(), None
        if place is not None:
            shutil.rmtree(place, ignore_errors=True)


_COMPRESSORS: dict[str, Callable[[], Any]] = {
    ".gz": lambda: isal_zlib.compressobj(_GZIP_LEVEL, isal_zlib.DEFLATED, 31),
    ".zst": lambda: zstandard.ZstdCompressor(level=_ZSTD_LEVEL).compressobj(),
}


class Compressor:
    """A stream of compressed members, by the end of a file's name; without one of the known ends nothing is done."""

    def __init__(self, name: str) -> None:
        self._make = _COMPRESSORS.get(Path(name).suffix.lower())
        self._open: Any = self._make() if self._make else None

    def compress(self, data: bytes) -> bytes:
        if self._open is None:
            return data
        compressed: bytes = self._open.compress(data)
        return compressed

    def end_member(self) -> bytes:
        """The end of what was begun: what follows can be read without it, and what is before can be kept alone."""
        if self._open is None or self._make is None:
            return b""
        rest: bytes = self._open.flush()
        self._open = self._make()
        return rest


class Stream(Output):
    """A stream of bytes into an open file, buffered and compressed."""

    def __init__(self, shown: str, file: BinaryIO, compressor: Compressor | None = None) -> None:
        super().__init__(shown)
        self._file, self._compressor = file, compressor
        self._buffer: list[bytes] = []
        self._buffered = self._taken = self._since_member = 0

    def write(self, data: bytes) -> int:
        self._buffer.append(data)
        self._buffered += len(data)
        if self._buffered >= BUFFER_BYTES:
            self._drain()
        return len(data)

    def tell(self) -> int:
        """How many bytes were written to the stream, before any compression; pages of an earlier run do not count."""
        return self._taken + self._buffered

    def flush(self) -> None:
        """Does nothing; for libraries that write to files."""

    closed = False

    def _drain(self) -> None:
        data = b"".join(self._buffer)
        self._buffer.clear()
        self._taken, self._buffered = self._taken + self._buffered, 0
        if data and self._compressor is not None:
            self._since_member += len(data)
            data = self._compressor.compress(data)
        self._put(data)

    def _end_member(self) -> None:
        self._drain()
        if self._compressor is not None and self._since_member:
            self._since_member = 0
            self._put(self._compressor.end_member())

    def _put(self, data: bytes) -> None:
        try:
            self._file.write(data)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise output_failed(error, self.shown) from error
        self.written += len(data)

    def commit(self, name: str = "") -> str:
        self._end_member()
        self._file.flush()
        return super().commit(name)


class StandardOutput(Stream):
    """Lines to standard output, or to a pipe or device that has a name: there is nothing to rename or to resume."""


class LocalFile(Stream):
    """A file of this machine."""

    def __init__(self, target: Path, job: str, *, compresses: bool, resumes: bool) -> None:
        require_folder(target.parent)
        if target.is_dir():
            raise SettingsError(f"{target} is a folder: name a file in it, such as {target / 'pages'}")
        self._target, self._job, self._resumes = target, job, resumes
        self._partial = target.with_name(f".{target.name}.partial")
        self._state = target.with_name(f".{target.name}.partial.json")
        with reported(target):
            file = open_locked(self._partial, target)
        super().__init__(str(target), file, Compressor(target.name) if compresses else None)
        saved = read_state(self._state, job) if resumes else None
        self._length = saved.length if saved else 0
        with reported(target):
            if saved and os.fstat(file.fileno()).st_size >= saved.length:
                self.resumed_from, self.written = saved.checkpoint, saved.length
            else:
                self._length = 0
            file.truncate(self._length)
            file.seek(self._length)

    def _scratch_place(self) -> Path:
        return self._target.with_name(f".{self._target.name}.scratch")

    def save(self, checkpoint: Checkpoint) -> None:
        if not self._resumes:
            return
        self._end_member()
        with reported(self._target):
            self._sync()
            write_state(self._state, _SavedState(self._job, self.written, checkpoint))
        self._length = self.written

    def _sync(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())

    def commit(self, name: str = "") -> str:
        self._end_member()
        target = self._target.with_name(name) if name else self._target
        with reported(target):
            self._sync()
            self._partial.replace(target)
            sync_folder(target.parent)
            self._state.unlink(missing_ok=True)
        self._file.close()
        self._tidy()
        return str(target)

    def abandon(self, *, keep: bool) -> None:
        self._tidy()
        if keep and self._length:
            with contextlib.suppress(OSError):
                self._file.truncate(self._length)
        else:
            self._state.unlink(missing_ok=True)
            self._partial.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            self._file.close()


class LocalFolder(Output):
    """A folder of this machine. One that is there already is replaced as a whole, if it is empty or an export."""

    def __init__(self, target: Path, job: str, *, resumes: bool) -> None:
        super().__init__(str(target))
        require_folder(target.absolute().parent)
        self._target, self._job, self._resumes = target, job, resumes
        self._partial = target.with_name(f".{target.name}.partial")
        self._old = target.with_name(f".{target.name}.old")
        self._state = target.with_name(f".{target.name}.partial.json")
        with reported(target):
            self._require_replaceable(target)
            self._lock = open_locked(self._state, target)
            self._mend()
            saved = read_state(self._state, job) if resumes else None
            if saved is not None and self._partial.is_dir() and not self._partial.is_symlink():
                self.resumed_from, self.written = saved.checkpoint, saved.length
            else:
                _remove(self._partial)
                self._partial.mkdir()

    def _mend(self) -> None:
        """Puts right what a kill between the two renames of `commit` has left."""
        if self._old.is_dir() and not self._target.exists():
            self._old.rename(self._target)
        _remove(self._old)

    @staticmethod
    def _require_replaceable(target: Path) -> None:
        if not target.exists() and not target.is_symlink():
            return
        if target.is_symlink() or not target.is_dir():
            raise SettingsError(f"{target} is there already and no folder: choose another name")
        if not (target / MARKER).is_file() and any(target.iterdir()):
            raise not_replaceable(target)

    @property
    def folder(self) -> Path:
        return self._partial

    def _scratch_place(self) -> Path:
        return self._target.with_name(f".{self._target.name}.scratch")

    def save(self, checkpoint: Checkpoint) -> None:
        if self._resumes:
            with reported(self._target):
                os.sync()
                write_state_in(self._lock, _SavedState(self._job, self.written, checkpoint))

    def commit(self, name: str = "") -> str:
        target = self._target.with_name(name) if name else self._target
        with reported(target):
            mark_folder(self._partial)
            os.sync()
            if target.exists():
                target.rename(self._old)
            self._partial.rename(target)
            sync_folder(target.absolute().parent)
            _remove(self._old)
            self._state.unlink(missing_ok=True)
        self._lock.close()
        self._tidy()
        return str(target)

    def abandon(self, *, keep: bool) -> None:
        self._tidy()
        if not (keep and self._resumes and read_state(self._state, self._job)):
            _remove(self._partial)
            self._state.unlink(missing_ok=True)
        self._lock.close()


def mark_folder(folder: Path) -> None:
    """Notes that a folder is an export."""
    (folder / MARKER).write_text("made by lycosa export; replaced as a whole by the next one\n")


def not_replaceable(place: str | Path) -> SettingsError:
    """The error for a folder that holds something else than an export."""
    return SettingsError(f"{place} is not empty and no earlier export: choose a new or an empty folder")


def open_locked(path: Path, target: Path) -> BinaryIO:
    """Opens a file beside the export, for whoever writes that export alone."""
    number = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if path.stat().st_ino != os.fstat(number).st_ino:  # it was renamed or deleted meanwhile
            raise BlockingIOError
    except (BlockingIOError, FileNotFoundError) as error:
        os.close(number)
        raise SettingsError(
            f"another export is being written to {target}: wait for it, or choose another name"
        ) from error
    return os.fdopen(number, "r+b", buffering=0)


def read_state(path: Path, job: str) -> _SavedState | None:
    """The state of an unfinished export, if it is the same one."""
    try:
        saved = msgspec.json.decode(path.read_bytes(), type=_SavedState)
    except (OSError, msgspec.DecodeError):
        return None
    return saved if saved.job == job else None


def write_state(path: Path, state: _SavedState) -> None:
    new = path.with_name(path.name + ".new")
    with new.open("wb") as file:
        file.write(msgspec.json.encode(state))
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)


def write_state_in(file: BinaryIO, state: _SavedState) -> None:
    """As `write_state`, in a file that is open and locked. One that is torn by a kill is not read, so that the export
    begins anew."""
    data = msgspec.json.encode(state)
    os.pwrite(file.fileno(), data, 0)
    os.ftruncate(file.fileno(), len(data))
    os.fsync(file.fileno())


def _remove(path: Path) -> None:
    """Deletes a folder of ours, if it is there; a link is deleted as a link."""
    if path.is_symlink() or path.is_file():
        path.unlink()
    elif path.exists():
        shutil.rmtree(path)


def require_folder(path: Path) -> None:
    if not path.is_dir():
        raise SettingsError(f"there is no folder {path}: make it first, or choose another name")


@contextlib.contextmanager
def reported(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise output_failed(error, path) from error


def output_failed(error: OSError, place: str | Path) -> OutputFailed:
    """The sentence for an error of the disk."""
    return OutputFailed(str(storage_error(error, path=Path(place), doing=_DOING)))


def is_device(path: Path) -> bool:
    """Whether this is a pipe or a device, which is written as it is."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))
