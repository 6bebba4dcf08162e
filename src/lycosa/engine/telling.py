"""What a running crawl tells: its counts and pace, the slowest hosts, what is tried again, why it stands still.

Reads what the other parts of the engine hold and changes nothing. Asked by the progress view four times a second and by
every commit.
"""

from collections.abc import Sequence
from heapq import nlargest, nsmallest
from itertools import islice
from operator import itemgetter

import msgspec

from lycosa.engine.counters import MOMENT
from lycosa.engine.limits import Limits
from lycosa.engine.shard import Shard
from lycosa.engine.standing import standing
from lycosa.engine.stats import RETRIES_SHOWN, SLOWEST_SHOWN, CrawlStats, Retry, SlowHost
from lycosa.frontier.hosts import Host
from lycosa.records import Family
from lycosa.store import Batch

MOMENT_EVERY_S = 1.0
HOSTS_LOOKED_AT = 5_000  # for the slowest ones and for retries, four times a second


class Teller:
    """Speaks for one shard; `began` is when this run did."""

    def __init__(self, shard: Shard, limits: Limits, *, began: float) -> None:
        self._shard, self._limits, self._began = shard, limits, began
        self._next_moment = began

    def stats(self, *, in_flight: int, is_over: bool = False) -> CrawlStats:
        """The crawl at this moment, or at its end."""
        shard, now = self._shard, self._shard.now()
        hosts = list(islice(shard.frontier.shelf.hosts.values(), HOSTS_LOOKED_AT))
        retrying, retries = retries_of(hosts, now)
        return shard.counters.stats(
            shard.frontier.stats(),
            seconds=self._limits.seconds(),
            run_s=max(now - self._began, 1e-9),
            is_running=not is_over,
            in_flight=in_flight,
            slowest=slowest(hosts),
            retrying=retrying,
            retries=retries,
            left_s=self._limits.left_s(),
            standing=standing(shard.frontier, now, shard.now_unix(), in_flight=in_flight, is_over=is_over),
        )

    def write_moment(self, batch: Batch, *, in_flight: int, is_over: bool) -> None:
        """Once a second a commit keeps the whole of it, for whoever asks from outside; the last one takes it away."""
        now = self._shard.now()
        if is_over:
            batch.delete(Family.META, MOMENT)
        elif now >= self._next_moment:
            self._next_moment = now + MOMENT_EVERY_S
            batch.put(Family.META, MOMENT, msgspec.json.encode(self.stats(in_flight=in_flight)))

    def row(self) -> tuple[Family, bytes, bytes]:
        """The counts as a commit keeps them."""
        return self._shard.counters.row(self._shard.frontier.stats(), seconds=self._limits.seconds())


def retries_of(hosts: Sequence[Host], now: float) -> tuple[int, tuple[Retry, ...]]:
    """How many URLs wait for another try, and the next of them; of very many hosts, the first ones stand for all."""
    failed = [host for host in hosts if host.row.retries and not host.row.gave_up]
    due = [
        (max(lane.at - now, 0.0), host.origin, entry)
        for host in failed
        if (entry := next(iter((lane := host.retries).ready), lane.next)) is not None
    ]
    first = nsmallest(RETRIES_SHOWN, due, key=itemgetter(0))
    return sum(host.retries_left for host in failed), tuple(
        Retry(origin + entry.path, entry.tries, entry.failed, in_s) for in_s, origin, entry in first
    )


def slowest(hosts: Sequence[Host]) -> tuple[SlowHost, ...]:
    """The slowest of the hosts that still have work; of very many, the first ones stand for all."""
    busy = (h for h in hosts if h.row.requests and h.row.queued and not h.row.gave_up)
    asked = [(h.row.seconds / h.row.requests, h.host, h.row.queued) for h in busy]
    return tuple(SlowHost(name, mean_s, queued) for mean_s, name, queued in nlargest(SLOWEST_SHOWN, asked))
