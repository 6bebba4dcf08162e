"""The latest events of a collection, as its crawls wrote them into `log.jsonl`: of shards, those of all together."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from lycosa.store import LOG_FILE, shard_paths

LOOKED_THROUGH_BYTES = 256 << 10  # of the end of each log


def latest_events(path: Path, *, most: int) -> list[dict[str, Any]]:
    """The last events, the newest first; those of shards say which one wrote them."""
    found = list[dict[str, Any]]()
    for folder in (path, *shard_paths(path)):  # beside the shards stands what was ordered of all of them
        for line in _last_lines(folder / LOG_FILE):
            try:
                event = msgspec.json.decode(line)
            except msgspec.DecodeError:  # the first line may be cut, the last on its way
                continue
            if isinstance(event, dict):
                found.append(event if folder == path else {**event, "shard": folder.name})
    return sorted(found, key=lambda event: event.get("time", 0.0), reverse=True)[:most]


def _last_lines(path: Path) -> Sequence[bytes]:
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, 2) - LOOKED_THROUGH_BYTES))
            return file.read().splitlines()
    except OSError:  # a collection may be without a log
        return ()
