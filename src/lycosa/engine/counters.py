"""The counts of a crawl, over the collection and over this run; written in the same commit as what they count."""

from collections import Counter
from typing import Any, TypeVar

import msgspec

from lycosa.engine.stats import CrawlStats, Totals
from lycosa.frontier.lease import FrontierStats
from lycosa.records import Family
from lycosa.store import State

KEY, MOMENT = b"counters", b"moment"

T = TypeVar("T", bound=Totals)


def load(state: State, kind: type[T]) -> T:
    """The counts that a collection keeps, as totals or as what a crawl tells."""
    packed = state.get(Family.META, KEY)
    return msgspec.json.decode(packed, type=kind, dec_hook=_tally) if packed else kind()


def load_moment(state: State) -> CrawlStats | None:
    """What a crawl said of itself a moment ago; None when the last one came to its end. One that was killed did not."""
    packed = state.get(Family.META, MOMENT)
    return msgspec.json.decode(packed, type=CrawlStats, dec_hook=_tally) if packed else None


def _without_zeros(counts: "Counter[str]") -> "Counter[str]":
    return Counter({name: number for name, number in counts.items() if number})


def _tally(_: type, counts: Any) -> "Counter[str]":
    return Counter(counts)


class Counters:
    """Totals of the collection, and what this run added. `totals` is open: whoever settles a URL counts it there."""

    def __init__(self, totals: Totals) -> None:
        self.totals = totals
        self.run_pages = self.run_requests = self.run_bytes = self.run_lost = 0
        self._statuses_before = totals.statuses.copy()
        self._before = (totals.visits, totals.visits_changed, totals.not_modified, totals.visits_saved_bytes)

    def request(self, size_bytes: int) -> None:
        self.totals.requests += 1
        self.totals.bytes += size_bytes
        self.run_requests += 1
        self.run_bytes += size_bytes

    def page(self) -> None:
        self.totals.pages += 1
        self.run_pages += 1

    @property
    def has_answer(self) -> bool:
        """Has any host ever answered, in this run or before?"""
        return any(status.isdigit() for status in self.totals.statuses)

    def now(self, frontier: FrontierStats, *, seconds: float) -> dict[str, Any]:
        """The counts of this moment by name; a copy. What another shard had counted before a host came here may be
        below zero once it is taken back here: the sum over the shards is right."""
        t = self.totals
        t.known, t.queued, t.hosts, t.seconds = frontier.known, frontier.queued, frontier.hosts, seconds
        t.revisiting = frontier.revisiting
        counts = msgspec.structs.asdict(t)
        return {name: _without_zeros(value) if isinstance(value, Counter) else value for name, value in counts.items()}

    def row(self, frontier: FrontierStats, *, seconds: float) -> tuple[Family, bytes, bytes]:
        """What a commit writes."""
        return Family.META, KEY, msgspec.json.encode(Totals(**self.now(frontier, seconds=seconds)))

    def stats(self, frontier: FrontierStats, *, seconds: float, run_s: float, **moment: Any) -> CrawlStats:
        """What a crawl tells of itself; `moment` holds what is not counted."""
        visits, changed, not_modified, saved = self._before
        t = self.totals
        return CrawlStats(
            **self.now(frontier, seconds=seconds),
            run_visits=t.visits - visits,
            run_changed=t.visits_changed - changed,
            run_not_modified=t.not_modified - not_modified,
            run_saved_bytes=t.visits_saved_bytes - saved,
            run_statuses=t.statuses - self._statuses_before,
            hosts_active=frontier.active,
            hosts_waiting=frontier.waiting,
            hosts_parked=frontier.parked,
            run_seconds=run_s,
            run_pages=self.run_pages,
            run_requests=self.run_requests,
            run_bytes=self.run_bytes,
            run_lost=self.run_lost,
            pages_per_s=self.run_pages / run_s,
            bytes_per_s=self.run_bytes / run_s,
            **moment,
        )
