"""The files of a static site: which of them are documents, where the table of each is, and whose that file is.

Nothing is written here. Hidden files and folders are not published, links to folders lead elsewhere; pipes, sockets and
devices are no files. Called by `augment.site`.
"""

import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from lycosa.web import tol, tvi
from lycosa.web.table import beside

# What a server will say of a file, by its ending; the first of two that share a name has the table.
TYPES = {
    ".html": "text/html",
    ".htm": "text/html",
    ".xhtml": "application/xhtml+xml",
    ".xml": "application/xml",
}
_ORDER = {ending: place for place, ending in enumerate(TYPES)}
_WORDS = (tol.WORD, tvi.WORD)
_UNFINISHED = re.compile(r"\..+\.(?:tol|tvi)\.([1-9][0-9]{0,9})\Z")
_FIRST_LINE = re.compile(rb"(?:\xef\xbb\xbf)?# (tol|tvi) [0-9]+\r?\n")


class File(NamedTuple):
    """A document and the tables beside it."""

    path: Path
    size: int
    beside: dict[str, Path]  # the word of a table → where it is, or would be
    there: frozenset[str]  # the words of those that are there

    def before(self, word: str) -> bytes | None:
        """What is in a table now."""
        return bytes_of(self.beside[word]) if word in self.there else None

    def is_foreign(self, word: str, before: bytes | None) -> bool:
        """Is what has a table's name the publisher's own?"""
        first = _FIRST_LINE.match(before or b"")
        return word in self.there and (first is None or first[1] != word.encode())


def folders(root: Path) -> Iterator[tuple[Path, list[str], list[Path]]]:
    """Every folder with the names of its files, and with what runs that were killed have left in it."""
    for name, folders, files in os.walk(root):
        folders[:] = sorted(folder for folder in folders if not folder.startswith("."))
        left = [path for file in files if file.startswith(".") and _is_left(path := Path(name) / file)]
        yield Path(name), sorted(file for file in files if not file.startswith(".")), left


def unfinished(path: Path) -> Path:
    """The name of a table until it is whole: it says who writes it."""
    return path.with_name(f".{path.name}.{os.getpid()}")


def _is_left(path: Path) -> bool:
    """Is it an unfinished table whose writer is no more?"""
    writer = _UNFINISHED.match(path.name)
    if writer is None or _is_alive(int(writer[1])):
        return False
    content = bytes_of(path)
    return content is not None and (not content or _FIRST_LINE.match(content) is not None)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass  # somebody else's
    return True


def documents(folder: Path, names: list[str], taken: list[Path]) -> Iterator[File]:
    """The documents of a folder; into `taken` go those whose table has a name that is another's."""
    table_names: set[str] = set()
    there = set(names)
    sizes = {name: size for name in names if _ending(name) in TYPES and (size := size_of(folder / name)) is not None}
    for name in sorted(sizes, key=lambda name: _ORDER[_ending(name)]):
        table_name = beside(name, tol.WORD) or ""
        if table_name in table_names:
            taken.append(folder / name)
            continue
        table_names.add(table_name)
        paths = {word: folder / (beside(name, word) or "") for word in _WORDS}
        yield File(
            folder / name, sizes[name], paths, frozenset(word for word, path in paths.items() if path.name in there)
        )


def _ending(name: str) -> str:
    return os.path.splitext(name)[1].lower()  # noqa: PTH122 -- of every file of a site; a Path takes ten times as long


def bytes_of(path: Path) -> bytes | None:
    try:
        return None if size_of(path) is None else path.read_bytes()
    except OSError:
        return None


def size_of(path: Path) -> int | None:
    """How long a file is; None for a pipe, a socket or a device: to read one may take for ever."""
    try:
        found = path.stat()
    except OSError:
        return 0  # reading it says what is wrong
    return found.st_size if stat.S_ISREG(found.st_mode) else None
