"""Files that are replaced as a whole: a reader, and the next run after a kill, finds what was there before or what is
new, never half of it."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO


@contextlib.contextmanager
def replacing(path: Path, *, syncs: bool = False) -> Iterator[BinaryIO]:
    """Opens a hidden file beside `path`, `.NAME.new`, which takes its place when the context ends; with `syncs` it is
    on the disk then. Where the context fails, what was there stays as it is. For one writer at a time."""
    new = path.with_name(f".{path.name}.new")
    try:
        with new.open("wb") as file:
            yield file
            if syncs:
                file.flush()
                os.fsync(file.fileno())
        new.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            new.unlink()
        raise
    if syncs:
        sync_folder(path.parent)


def replace_file(path: Path, data: bytes, *, syncs: bool = False) -> None:
    """Puts `data` at `path`, as a whole or not at all; with `syncs` it is on the disk when this returns."""
    with replacing(path, syncs=syncs) as file:
        file.write(data)


def sync_folder(path: Path) -> None:
    """Has the names in a folder on the disk when this returns."""
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
