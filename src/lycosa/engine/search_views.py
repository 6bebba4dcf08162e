"""What the search index of a collection can be asked from outside, and the making of it."""

import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from lycosa.engine.indexer import Indexer
from lycosa.engine.views import open_to_read
from lycosa.search.index import Reader, size_bytes


class MadeIndex(msgspec.Struct, frozen=True):
    """What an index is after it was made or brought up to date, and what that took."""

    documents: int
    size_bytes: int
    pages: int
    renamed: int
    seconds: float


def make_index(path: Path, *, anew: bool = False, progress: Callable[[int, int], None] | None = None) -> MadeIndex:
    """Makes the index of the collection at `path`, or brings it up to date."""
    began = time.monotonic()
    with open_to_read(path) as collection:
        indexer = Indexer(collection, anew=anew, progress=progress)
        try:
            pages = indexer.catch_up()
            renamed = indexer.settle()
        finally:
            indexer.close()
    documents = Reader.open(path).documents
    return MadeIndex(documents, size_bytes(path), pages, renamed, time.monotonic() - began)
