"""What a running crawl tells: its counts and pace, the slowest hosts, why it stands still.

Reads what the other parts of the engine hold and changes nothing. Asked by the progress view four times a second and by
every commit.
"""

from heapq import nlargest
from itertools import islice

from lycosa.engine.limits import Limits
from lycosa.engine.shard import Shard
from lycosa.engine.standing import standing
from lycosa.engine.stats import CrawlStats, SlowHost
from lycosa.frontier.hosts import Host
from lycosa.records import Family

SLOWEST_SHOWN = 3
HOSTS_LOOKED_AT = 5_000  # for the slowest ones, four times a second


class Teller:
    """Speaks for one shard; `began` is when this run did."""

    def __init__(self, shard: Shard, limits: Limits, *, began: float) -> None:
        self._shard, self._limits, self._began = shard, limits, began

    def stats(self, *, in_flight: int, is_over: bool = False) -> CrawlStats:
        """The crawl at this moment, or at its end."""
        shard, now = self._shard, self._shard.now()
        return shard.counters.stats(
            shard.frontier.stats(),
            seconds=self._limits.seconds(),
            run_s=max(now - self._began, 1e-9),
            in_flight=in_flight,
            slowest=slowest(islice(shard.frontier.shelf.hosts.values(), HOSTS_LOOKED_AT)),
            left_s=self._limits.left_s(),
            standing=standing(shard.frontier, now, shard.now_unix(), in_flight=in_flight, is_over=is_over),
        )

    def row(self) -> tuple[Family, bytes, bytes]:
        """The counts as a commit keeps them."""
        return self._shard.counters.row(self._shard.frontier.stats(), seconds=self._limits.seconds())


def slowest(hosts: "islice[Host]") -> tuple[SlowHost, ...]:
    """The slowest of the hosts that still have work; of very many, the first ones stand for all."""
    busy = (h for h in hosts if h.row.requests and h.row.queued and not h.row.gave_up)
    asked = [(h.row.seconds / h.row.requests, h.host, h.row.queued) for h in busy]
    return tuple(SlowHost(name, mean_s, queued) for mean_s, name, queued in nlargest(SLOWEST_SHOWN, asked))
