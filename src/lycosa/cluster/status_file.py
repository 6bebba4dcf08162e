"""What the coordinator knows of its shards, in a file beside theirs, for whoever looks on: the live page reads it.

Written by the coordinator's process about once a second, replaced as a whole. It decides nothing: a crawl begins
without it, and where it cannot be written the crawl goes on.
"""

import contextlib
import time
from pathlib import Path

import msgspec

from lycosa.cluster.coordinator import Coordinator
from lycosa.files import replace_file

STATUS_FILE = "coordinator.json"
WRITE_EVERY_S = 1.0


class ShardReport(msgspec.Struct, frozen=True, kw_only=True):
    """One shard as the coordinator knows it. `addresses` are those that it holds a lease on, `awaited` those of others
    that it waits for; `move` says what it does while hosts move. What was sent went to other shards since its start."""

    name: str
    machine: str
    heard_unix: float
    addresses: int
    awaited: int
    move: str = ""
    sent_urls: int = 0
    sent_bytes: int = 0
    sent_messages: int = 0
    stored_bytes: int = 0
    unstored: int = 0
    trouble: str = ""


class CoordinatorStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The crawl as the coordinator knows it. `epoch` numbers the table of who owns what; `move` says what moves."""

    epoch: int
    move: str
    shards: list[ShardReport]


def coordinator_status(coordinator: Coordinator, *, now_unix: float) -> CoordinatorStatus:
    """The status at this moment, of the shards that were heard."""
    held, awaited, moves = *coordinator.leases(), coordinator.moves()
    shards = [
        ShardReport(
            name=report.name,
            machine=report.machine or coordinator.address(report.name),
            heard_unix=now_unix - coordinator.silent_s(report.name),
            addresses=held[report.name],
            awaited=awaited[report.name],
            move=moves.get(report.name, ""),
            sent_urls=report.sent_urls,
            sent_bytes=report.sent_bytes,
            sent_messages=report.sent_messages,
            stored_bytes=report.stored_bytes,
            unstored=report.unstored,
            trouble=report.trouble,
        )
        for report in coordinator.reports()
    ]
    if coordinator.next_table is not None:
        move = f"hosts move to the assignment of epoch {coordinator.next_table.epoch}"
    else:
        move = "" if coordinator.is_stable else "shards that have left hand over their last URLs"
    return CoordinatorStatus(epoch=coordinator.table.epoch, move=move, shards=shards)


class StatusFile:
    """The file of one crawl in its folder."""

    def __init__(self, folder: Path) -> None:
        self._path, self._next_s = folder / STATUS_FILE, 0.0

    def write(self, coordinator: Coordinator) -> None:
        """Replaces the file, if it is time."""
        if time.monotonic() < self._next_s:
            return
        self._next_s = time.monotonic() + WRITE_EVERY_S
        with contextlib.suppress(OSError):  # a full disk stops the shards, not who looks on
            replace_file(self._path, msgspec.json.encode(coordinator_status(coordinator, now_unix=time.time())))


def load_coordinator_status(folder: Path) -> CoordinatorStatus | None:
    """The status of the crawl in a folder as it was written last; None where there is none."""
    try:
        return msgspec.json.decode((folder / STATUS_FILE).read_bytes(), type=CoordinatorStatus)
    except (OSError, msgspec.MsgspecError):  # not a crawl of shards, or of another version
        return None
