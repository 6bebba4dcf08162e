"""The timeline of a collection: what its crawls counted at some moments, for charts of any crawl, running or over.

A timeline has at most `MOST_SAMPLES`: when it is full, every second sample goes and the next ones come half as often,
so that a crawl of a minute and one of a month both fit into one row of the state. Counts are totals of the collection;
whoever wants a rate takes the difference of two samples. Written by `crawl.progress` with its commits.
"""

import os
from pathlib import Path

import msgspec

from lycosa.records import Family
from lycosa.store import State

TIMELINE = b"timeline"
MOST_SAMPLES = 600
FIRST_INTERVAL_S = 1.0


class Sample(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """A crawl at one moment. `begins` marks the first sample of a run: nothing was counted between it and the one
    before. New fields are added at the end: samples are stored."""

    at_unix: float
    begins: bool = False
    pages: int = 0
    bytes: int = 0
    requests: int = 0
    failed: int = 0
    known: int = 0
    queued: int = 0
    hosts: int = 0
    hosts_active: int = 0
    in_flight: int = 0
    memory_bytes: int = 0
    archive_bytes: int = 0


class Timeline(msgspec.Struct, array_like=True):
    """The samples of one shard, the oldest first."""

    interval_s: float = FIRST_INTERVAL_S
    samples: list[Sample] = []

    def add(self, sample: Sample) -> None:
        self.samples.append(sample)
        if len(self.samples) > MOST_SAMPLES:
            # A sample that begins a run stays: the gap before it must not be drawn as a slow crawl.
            self.samples = [each for place, each in enumerate(self.samples) if place % 2 == 0 or each.begins]
            self.interval_s *= 2

    def pack(self) -> bytes:
        return msgspec.msgpack.encode(self)


def load_timeline(state: State) -> Timeline:
    """The timeline that a collection keeps; an empty one where there is none."""
    packed = state.get(Family.META, TIMELINE)
    return msgspec.msgpack.decode(packed, type=Timeline) if packed else Timeline()


def memory_bytes() -> int:
    """The resident memory of this process."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):  # another system than Linux
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def folder_bytes(folder: Path) -> int:
    """The bytes of the files in a folder."""
    try:
        return sum(entry.stat().st_size for entry in os.scandir(folder) if entry.is_file())
    except OSError:  # it is gone, or a file of it is, at this moment
        return 0
