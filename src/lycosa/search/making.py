"""Making the search index of a collection, or bringing it up to date, from the feed of its commits.

Where an index cannot be written or the archive cannot be read, one that is there answers as it is. Called by the
commands, by `lycosa.Collection` and by whoever asks the index.
"""

import os
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from lycosa.errors import StoreError
from lycosa.graph import last_sequence
from lycosa.recrawl import require_bodies
from lycosa.search.index import (
    DamagedIndex,
    IndexInUse,
    IndexReader,
    NoIndex,
    OtherVersion,
    is_anchor_update_due,
    is_index_written,
    size_bytes,
)
from lycosa.search.indexer import Indexer
from lycosa.store import ArchiveUnavailable, CollectionStore

Progress = Callable[[int, int], None]


class MadeIndex(msgspec.Struct, frozen=True):
    """An index after it was made or brought up to date, and what that took. `unread` pages were taken in by
    title and URL alone, since their records cannot be read."""

    documents: int
    size_bytes: int
    pages: int
    renamed: int
    seconds: float
    unread: int = 0


def make_index(
    path: Path, *, anew: bool = False, skips_missing: bool = False, progress: Progress | None = None
) -> MadeIndex:
    """Makes the index of the collection at `path`, or brings it up to date. Where an archive file is missing, or its
    store cannot be reached, it raises `ArchiveUnavailable` and the index stays as it was; with `skips_missing` the
    pages in it are indexed by title and URL. A damaged index is made anew."""
    try:
        return _make_index(path, anew=anew, skips_missing=skips_missing, progress=progress)
    except DamagedIndex:
        if anew:
            raise
        return _make_index(path, anew=True, skips_missing=skips_missing, progress=progress)


def _make_index(path: Path, *, anew: bool, skips_missing: bool, progress: Progress | None) -> MadeIndex:
    began = time.monotonic()
    with CollectionStore.open(path, read_only=True) as collection:
        require_bodies(collection)
        indexer = Indexer(collection, anew=anew, skips_missing=skips_missing, progress=progress)
        try:
            pages = indexer.catch_up()
            renamed = indexer.update_anchors_and_ranks()
        except ArchiveUnavailable as error:
            words = "--rebuild --skip-missing" if anew else "--skip-missing"
            hint = f"lycosa index {path} {words} takes in the pages in it by title and URL"
            raise ArchiveUnavailable(f"{error}; bring it back and try again, or {hint}") from error
        finally:
            indexer.close()
    documents, seconds = IndexReader.open(path).documents, time.monotonic() - began
    return MadeIndex(documents, size_bytes(path), pages, renamed, seconds, indexer.unread)


def update_index(
    path: Path, *, progress: Progress | None = None, note: Callable[[str], None] = lambda text: None
) -> None:
    """Brings an index up to date before it is asked, unless another process is at it. Where that cannot be written, or
    the archive cannot be read, an index that is there answers as it is, and where the whole collection may only be read
    the view makes one of its own; `note` is called with what could not be read."""
    if is_index_written(path):
        return
    with CollectionStore.open(path, read_only=True) as collection:
        is_there = True
        try:
            reader = IndexReader.open(path)
            if reader.covered == last_sequence(collection.state) and not is_anchor_update_due(reader):
                return
        except NoIndex as error:
            is_there = False
            require_bodies(collection)
            if isinstance(error, OtherVersion):
                note(f"the search index of {path} was made by another version of Lycosa: it is made anew")
        except StoreError:
            if may_write(path):
                raise
            return
        try:
            indexer = Indexer(collection, progress=progress)
        except StoreError as error:
            if is_there or isinstance(error, IndexInUse) or not may_write(path):
                return
            raise
        try:
            is_new = indexer.covered < 0
            indexer.catch_up()
            if is_new or is_anchor_update_due(indexer.reader):
                indexer.update_anchors_and_ranks()
            if indexer.unread:
                note(unread_words(indexer.unread))
        except StoreError as error:
            if not is_there or isinstance(error, DamagedIndex):
                raise
            note(f"{error}; the index answers as it is")
        finally:
            indexer.close()


def may_write(path: Path) -> bool:
    """May this user write into the folder of a collection, and can its disk be written?"""
    return os.access(path, os.W_OK)


def is_index_behind(path: Path) -> bool:
    """Would the next search have to update the index before it answers?"""
    with CollectionStore.open(path, read_only=True) as collection:
        try:
            reader = IndexReader.open(path)
            return reader.covered != last_sequence(collection.state) or is_anchor_update_due(reader)
        except StoreError:
            return True


def unread_words(pages: int) -> str:
    """A sentence that says how many records could not be read."""
    records = "1 record" if pages == 1 else f"{pages:,} records"
    return f"{records} cannot be read, found by title and URL only until lycosa index --rebuild can read more"
