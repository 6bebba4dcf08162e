"""Reads many records of the archive for a report: in this process, or where there are enough of them by workers on all
cores. Used by `report.survey` and `report.requisites`."""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from lycosa.search import ArchiveWorkers

MANY_DOCUMENTS = 2_000  # from here on it pays to start workers

Found = TypeVar("Found")
Job = tuple[str, bytes]  # URL, packed location


@contextlib.contextmanager
def reading_archive(
    module: str,
    read: Callable[[Sequence[Path], str, bytes], Found | None],
    answers: Any,
    folders: Sequence[Path],
    documents: int,
) -> Iterator[Callable[[Iterable[Job]], Iterator[Found | None]]]:
    """The way to read so many documents with `read`, which is in `module`; `answers` is the type of a list of what it
    finds."""
    if documents < MANY_DOCUMENTS:
        yield lambda jobs: (read(folders, url, place) for url, place in jobs)
        return
    pool: ArchiveWorkers[Found] = ArchiveWorkers(module, read, answers, folders)
    try:
        yield pool.map
    finally:
        pool.close()
