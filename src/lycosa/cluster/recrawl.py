"""A recrawl of a collection with shards: each visits what is due there, and what counts over all is divided.

A budget is divided by the pages that the shards have. The number of visits and the time are watched by the coordinator,
and URLs are visited by the shard that knows them. Called by `cluster.run`.
"""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from lycosa.crawl import Recrawl
from lycosa.inspect import open_to_read, stats_of
from lycosa.settings import CrawlSettings
from lycosa.store import shard_paths


class ShardedRecrawl(msgspec.Struct, frozen=True):
    """A recrawl of a collection with shards: the whole order, and the part of each shard by its name. `last_visit` is
    the number of the last visit, counted from the first that the collection ever made; None where there is no limit."""

    order: Recrawl
    parts: Mapping[str, Recrawl]
    last_visit: int | None = None


def divide_recrawl(folder: Path, order: Recrawl, settings: CrawlSettings) -> ShardedRecrawl:
    """The parts of the shards in `folder`. Without a budget in the order that of the settings is divided."""
    budget = order.budget or settings.visits_per_day
    stats = {}
    for path in shard_paths(folder):
        with open_to_read(path) as shard:
            stats[path.name] = stats_of(shard)
    pages = max(1, sum(each.pages for each in stats.values()))
    has_queued = any(each.queued for each in stats.values())
    parts = {
        name: msgspec.structs.replace(
            order,
            budget=None if budget is None else budget * each.pages / pages,
            time_s=None,
            only_due=order.only_due or has_queued,
        )
        for name, each in stats.items()
    }
    before = sum(each.visits for each in stats.values())
    return ShardedRecrawl(order, parts, None if order.most is None else before + order.most)
