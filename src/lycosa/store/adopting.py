"""A collection whose state came from a copy: its archive files are all in a central store, and none is here."""

from pathlib import Path

from lycosa.errors import StoreError
from lycosa.records import Family
from lycosa.store.central import CentralStore
from lycosa.store.collection import committed_lengths, length_key, mark_whole
from lycosa.store.released import (
    FOLDER,
    Stored,
    open_packed,
    packed_name,
    remember_store,
    stored,
    stored_row,
)
from lycosa.store.state import Batch, State
from lycosa.store.warc_file import number_of


def adopt(folder: Path, store: CentralStore, *, numbers: range) -> None:
    """Makes a collection of a folder that has nothing but a state. The store must have every archive file that the
    state names. Of `numbers`, all that the store has are taken: the archive goes on behind them, also where the state
    does not know them."""
    there = {number_of(name) for name in store.names(FOLDER)}
    with State.open(folder / "state", may_make=False) as state:
        named, batch = committed_lengths(state), Batch()
        for number in sorted((named.keys() | there.intersection(numbers)) - stored(state).keys()):
            what = _held(store, number)
            if number in named and (what is None or what.gzip_bytes < named[number]):
                raise StoreError(f"{store.url} does not have all of archive file {number}, which the state names")
            if what is not None:
                batch.put(Family.META, *stored_row(number, what))
                batch.delete(Family.META, length_key(number))
        state.write(batch, sync=True)
    (folder / "warc").mkdir()
    remember_store(folder / "warc", store.url)
    mark_whole(folder)


def _held(store: CentralStore, number: int) -> Stored | None:
    packed = open_packed(store, packed_name(number))
    if packed is None:
        return None
    index = packed.index
    return Stored(store.size(packed_name(number)) or 0, index.gzip_bytes, index.digest, index.left)
