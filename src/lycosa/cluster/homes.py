"""Where a shard lives: the folder of one machine, and what makes it the right one to go on with.

When a machine is gone for good the coordinator gives its shards another home; each move has a number, the *generation*,
which is in a small file of the shard's folder too. A folder of an earlier generation, on a machine that has come back,
is void: what was done in it after the last copy was done again elsewhere. Called by agents at their start.
"""

import shutil
from pathlib import Path

from lycosa.cluster.checkpoints import latest, restore
from lycosa.errors import SettingsError
from lycosa.store import is_collection
from lycosa.store.central import CentralStore, is_claimed

_FILE = "generation"


def make_home(folder: Path, shard: str, generation: int, store: CentralStore, numbers: range) -> bool:
    """Sees to it that the folder is the shard's: it is there, or restored from its last copy, or, if there never was
    one, not there. True if it was restored. `numbers` are those of the shard's archive files."""
    if not is_claimed(store):
        raise SettingsError(f"{store.url} is not the crawl's store on this machine: all machines must see the same one")
    if is_collection(folder) and _generation(folder) == generation:
        return False
    copy = latest(store, shard)
    if is_collection(folder) or copy is not None:
        _remove(folder)
    if copy is not None:
        restore(store, copy, folder, numbers=numbers, then=lambda new: note_generation(new, generation))
    return copy is not None


def note_generation(folder: Path, generation: int) -> None:
    """The folder is the shard's home of this generation."""
    if _generation(folder) != generation:
        (folder / _FILE).write_text(f"{generation}\n")


def _generation(folder: Path) -> int:
    try:
        return int((folder / _FILE).read_text())
    except FileNotFoundError:
        return 0
    except (OSError, ValueError):
        return -1


def _remove(folder: Path) -> None:
    """Under another name first: a folder is there whole or not at all."""
    void = folder.with_name(f".{folder.name}.void")
    shutil.rmtree(void, ignore_errors=True)
    if folder.exists():
        folder.replace(void)
        shutil.rmtree(void, ignore_errors=True)
