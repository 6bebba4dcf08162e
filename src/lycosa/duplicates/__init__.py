"""Copies and near-copies of pages: an index of SimHashes on disk, what a crawl knows by it, and the clusters of a
collection. Its modules need NumPy and are imported when a name is first used."""

from typing import TYPE_CHECKING

from lycosa.doors import open_lazily

if TYPE_CHECKING:
    from lycosa.duplicates.clusters import DuplicatePage, NearGroups, Relation, duplicate_pages
    from lycosa.duplicates.index import KnownTexts, SimHashIndex

INDEX_FOLDER = "similar"  # in a collection: the texts that its crawl knows

__getattr__ = open_lazily(
    __name__,
    {
        "clusters": "DuplicatePage NearGroups Relation duplicate_pages",
        "index": "KnownTexts SimHashIndex",
    },
)

__all__ = ["INDEX_FOLDER", "DuplicatePage", "KnownTexts", "NearGroups", "Relation", "SimHashIndex", "duplicate_pages"]
