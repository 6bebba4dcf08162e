"""What the parts of one shard's engine share: the state they write to, the clocks they read, the settings they obey.

Made by the engine, handed to everything that settles requests. No behaviour of its own.
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
from lycosa.mapping import Mapper
from lycosa.records import Response
from lycosa.settings import CrawlSettings
from lycosa.store import CollectionStore
from lycosa.web import Url


class Shard(NamedTuple):
    """One shard, open. `scope_seeds` grows when the user adds URLs or a seed redirects."""

    collection: CollectionStore
    settings: CrawlSettings
    frontier: Frontier
    counters: Counters
    committer: Committer
    mapper: Mapper
    events: EventLog
    sifter: LinkFilter
    linker: LinkIndexer
    background: BackgroundWork
    scope_seeds: list[Url]
    now: Callable[[], float]
    now_unix: Callable[[], float]
    roll: Callable[[], float] = random.random  # for jitter

    def release(self, lease: Lease, response: Response, *, wait_s: float = 0.0, reason: str = "") -> None:
        """The request of a lease has ended: its slots go back."""
        self.frontier.release(
            lease, response.ended_s, self.now(), wait_s=wait_s, reason=reason, now_unix=self.now_unix()
        )
