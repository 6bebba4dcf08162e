"""Shards that are on other machines, brought here as they were last copied, so that one view has them all.

They are for reading only and lie apart from the shards of this machine (`copies/`), which always go before them.
Imports no Ray.
"""

import shutil
from pathlib import Path

from lycosa.cluster.checkpoints import Manifest, latest, restore
from lycosa.engine.linker import Linker
from lycosa.errors import SettingsError
from lycosa.settings import merge, read_file
from lycosa.store import Collection, is_collection
from lycosa.store.central import CentralStore, open_store, require_there
from lycosa.store.joined import COPIES, SHARDS, is_sharded

_SETTINGS, _NOTE = "lycosa.toml", "copy-of"


def fetch(into: Path) -> dict[str, float]:
    """Brings the last copy of every shard that is not here; returns which, and from when each is (Unix time)."""
    if not is_sharded(into):
        raise SettingsError(f"{into} is not a collection of several shards")
    settings = merge(read_file(into / _SETTINGS))
    if not settings.store:
        raise SettingsError(f"{into} has no central store: its shards are where they were crawled")
    store, found = open_store(settings.store), {}
    require_there(store)
    for name in store.names(SHARDS):
        if not is_collection(into / SHARDS / name) and (copy := latest(store, name)) is not None:
            _bring_here(store, copy, into / COPIES / name)
            found[name] = copy.at_s
    return found


def _bring_here(store: CentralStore, copy: Manifest, folder: Path) -> None:
    if (folder / _NOTE).is_file() and (folder / _NOTE).read_text() == copy.name:
        return  # it is here already
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(exist_ok=True)
    restore(store, copy, folder, numbers=range(0), then=lambda new: _complete(new, copy))


def _complete(folder: Path, copy: Manifest) -> None:
    """The link index is not part of a copy: it is made from the state."""
    with Collection.open(folder) as collection:
        linker = Linker(collection)
        linker.catch_up()
        linker.close()
    (folder / _NOTE).write_text(copy.name)
