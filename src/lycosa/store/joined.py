"""Several collections read as one: the shards of a crawl, each with its part of the web.

A key is in one shard at most, so a look-up asks one after the other and a walk merges. Counts are each shard's own:
whoever wants those of the whole adds them up over `shards`. For reading only.
"""

import heapq
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from lycosa.records import Family
from lycosa.store.state import State

SHARDED_FILE = "cluster.json"  # in the folder of a collection of several shards
SHARDS_FOLDER = "shards"
COPIES_FOLDER = "copies"  # of shards that are on other machines


def is_sharded(path: Path) -> bool:
    """Whether this is the folder of a collection of several shards."""
    try:
        return (path / SHARDED_FILE).is_file()
    except OSError:  # a name that cannot be one; whoever opens it says so
        return False


def sharded_parent(path: Path) -> Path | None:
    """The collection of which this folder is a shard, or None."""
    shards = path.absolute().parent
    if shards.name != SHARDS_FOLDER or not is_sharded(shards.parent):
        return None
    return path.parent.parent if path.parent.parent.absolute() == shards.parent else shards.parent


def shard_paths(path: Path) -> list[Path]:
    """The folders of the shards that are here, and of local copies of others."""
    found: dict[str, Path] = {}
    for where in (path / COPIES_FOLDER, path / SHARDS_FOLDER):
        for folder in where.iterdir() if where.is_dir() else ():
            if folder.name[0] != "." and (folder / "lycosa.format").is_file():
                found[folder.name] = folder
    return [found[name] for name in sorted(found)]


class JoinedState(State):
    """The states of all shards, read as one."""

    def __init__(self, path: Path, states: Sequence[State]) -> None:
        super().__init__(path, is_reader=True)
        self.states = list(states)

    def refresh(self) -> bool:
        moved = [state.refresh() for state in self.states]
        return any(moved)

    def get(self, family: Family, key: bytes) -> bytes | None:
        for state in self.states:
            value = state.get(family, key)
            if value is not None:
                return value
        return None

    def get_many(self, family: Family, keys: Sequence[bytes]) -> list[bytes | None]:
        found: list[bytes | None] = [None] * len(keys)
        for state in self.states:
            for place, value in enumerate(state.get_many(family, keys)):
                if value is not None:
                    found[place] = value
        return found

    def scan(
        self, family: Family, start: bytes = b"", end: bytes | None = None, *, limit: int
    ) -> list[tuple[bytes, bytes]]:
        parts = [state.scan(family, start, end, limit=limit) for state in self.states]
        return list(islice(heapq.merge(*parts), limit))

    def scan_back(self, family: Family, start: bytes, end: bytes, *, limit: int) -> list[tuple[bytes, bytes]]:
        parts = [state.scan_back(family, start, end, limit=limit) for state in self.states]
        return list(islice(heapq.merge(*parts, reverse=True), limit))

    def count(self, family: Family, start: bytes, end: bytes, *, most: int | None = None) -> int:
        found = sum(state.count(family, start, end, most=most) for state in self.states)
        return found if most is None else min(found, most)

    def walk(self, family: Family, start: bytes = b"", end: bytes | None = None) -> Iterator[tuple[bytes, bytes]]:
        return heapq.merge(*(state.walk(family, start, end) for state in self.states))

    def close(self) -> None:
        for state in getattr(self, "states", ()):
            state.close()

    def __repr__(self) -> str:
        return f"JoinedState({str(self.path)!r}, {len(self.states)} shards)"
