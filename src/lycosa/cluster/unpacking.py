"""The archive of a central store as `.warc.gz` files again, for tools that read those. Imports no Ray."""

from collections.abc import Callable
from pathlib import Path

from lycosa.engine.selection import COPY
from lycosa.errors import SettingsError, StoreError
from lycosa.store.central import is_claimed, open_store
from lycosa.store.packed import unpack
from lycosa.store.released import FOLDER, open_packed


def unpack_all(where: str, folder: Path, *, tell: Callable[[str], None]) -> int:
    """Writes every archive file of the store at `where` into `folder`, each whole or not at all; returns how many.
    `tell` hears of those whose bytes are not the former ones."""
    store = open_store(where)
    if not is_claimed(store):
        raise SettingsError(f"{where} is no central store of Lycosa")
    names, left_out = store.names(FOLDER), 0
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in names:
            packed = open_packed(store, f"{FOLDER}/{name}")
            if packed is None:
                continue
            target = folder / Path(packed.index.name).name
            part = target.with_name(f"{target.name}.part")
            left_out += sum(pages for reason, (pages, _) in packed.index.left.items() if reason != COPY)
            if not unpack(packed, part) and not packed.index.left:
                tell(f"{target.name} has the same records, compressed to other bytes than before")
            part.replace(target)
    except OSError as error:
        raise StoreError(f"{folder} cannot be written: {error.strerror}") from error
    if left_out:
        tell(f"{left_out:,} {'page' if left_out == 1 else 'pages'} were left out of the store: their shards have them")
    return len(names)
