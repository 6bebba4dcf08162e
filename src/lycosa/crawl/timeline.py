"""What the crawls of a collection counted at some moments, for charts of any crawl, running or over.

There are at most `MOST_SAMPLES`. When a `Timeline` is full, every second sample goes and the next ones come half as
often, so that a crawl of a minute and one of a month both fit into one row of the state. `crawl.progress` writes it
with its commits.
"""

from collections.abc import Sequence

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


def sum_of_timelines(shards: Sequence[Sequence[Sample]]) -> list[Sample]:
    """The samples of several shards as one list: at each time of any of them, the sum of what each had counted by
    then."""
    if len(shards) < 2:
        return list(shards[0]) if shards else []
    latest: list[Sample | None] = [None] * len(shards)
    events = sorted((each.at_unix, number, each) for number, samples in enumerate(shards) for each in samples)
    whole = list[Sample]()
    for at_unix, number, each in events:
        latest[number] = each
        known = [one for one in latest if one is not None]
        counts = {
            name: sum(getattr(one, name) for one in known)
            for name in Sample.__struct_fields__
            if name not in ("at_unix", "begins")
        }
        whole.append(Sample(at_unix=at_unix, begins=each.begins, **counts))
    return whole


def load_timeline(state: State) -> Timeline:
    """The timeline that a collection keeps; an empty one where there is none."""
    packed = state.get(Family.META, TIMELINE)
    return msgspec.msgpack.decode(packed, type=Timeline) if packed else Timeline()
