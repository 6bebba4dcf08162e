"""Keeping it: the collection folder with its state (RocksDB) and its archive (WARC), and the commit that joins them.

The order of writes is the guarantee: WARC append, then the state batch that names its length.
"""

from lycosa.records import Family
from lycosa.store.collection import Collection, JoinedCollection, is_collection, is_written
from lycosa.store.place import Place
from lycosa.store.released import ArchiveAway
from lycosa.store.state import Batch, State
from lycosa.store.warc_file import Recovery, WarcWriter
from lycosa.store.warc_parse import WarcRecord
from lycosa.store.warc_read import WarcReader, read_message, read_record
from lycosa.store.warc_record import (
    Exchange,
    Original,
    RevisitProfile,
    Whole,
    exchange,
    patch_on_read,
    patch_places,
    patched,
    revisit,
)

__all__ = [
    "ArchiveAway",
    "Batch",
    "Collection",
    "Exchange",
    "Family",
    "JoinedCollection",
    "Original",
    "Place",
    "Recovery",
    "RevisitProfile",
    "State",
    "WarcReader",
    "WarcRecord",
    "WarcWriter",
    "Whole",
    "exchange",
    "is_collection",
    "is_written",
    "patch_on_read",
    "patch_places",
    "patched",
    "read_message",
    "read_record",
    "revisit",
]
