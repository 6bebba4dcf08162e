"""What everybody who reads answers or writes into the next commit needs of one shard.

Made by the loop. It has no behaviour of its own but for handing a lease back.
"""

import random
from collections.abc import Callable
from typing import NamedTuple

from lycosa.crawl.background import BackgroundWork
from lycosa.crawl.committer import Committer
from lycosa.crawl.events import EventLog
from lycosa.crawl.reading import LinkFilter
from lycosa.crawl.stats import Counters
from lycosa.frontier import Frontier, Lease
from lycosa.graph import LinkIndexer
from lycosa.records import Response
from lycosa.settings import CrawlSettings
from lycosa.store import CollectionStore


class Shard(NamedTuple):
    """One shard, open. `now` is the monotonic clock, `now_unix` the wall clock, `roll` gives the jitter of waits."""

    collection: CollectionStore
    settings: CrawlSettings
    frontier: Frontier
    counters: Counters
    committer: Committer
    events: EventLog
    link_filter: LinkFilter
    linker: LinkIndexer
    background: BackgroundWork
    now: Callable[[], float]
    now_unix: Callable[[], float]
    roll: Callable[[], float] = random.random

    def release(self, lease: Lease, response: Response, *, wait_s: float = 0.0, reason: str = "") -> None:
        """The request of a lease has ended: its slots go back."""
        self.frontier.release(
            lease, response.ended_s, self.now(), wait_s=wait_s, reason=reason, now_unix=self.now_unix()
        )
