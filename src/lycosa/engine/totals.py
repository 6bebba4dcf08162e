"""Many shards' counts as one: sums, and what is true of the whole at this moment. Pure."""

from collections import Counter
from collections.abc import Sequence
from heapq import nlargest, nsmallest
from typing import Any

from lycosa.engine.stats import RETRIES_SHOWN, SLOWEST_SHOWN, CrawlStats

# Counted by every shard from its own start, so that the longest stands for all.
_LONGEST = frozenset({"seconds", "run_seconds"})


def joined(parts: Sequence[CrawlStats], *, seconds: float | None = None) -> CrawlStats:
    """The crawl as a whole. It stands still only if every shard with something queued does."""
    whole: dict[str, Any] = {}
    for name in CrawlStats.__struct_fields__:
        values = [getattr(part, name) for part in parts]
        if not values or name in ("slowest", "retries", "left_s", "standing"):
            continue
        if name == "is_running":
            whole[name] = any(values)
        elif isinstance(values[0], Counter):
            whole[name] = Counter[str]()
            for value in values:
                whole[name].update(value)  # `+` would leave out what is below zero in one of them
            whole[name] = +whole[name]
        else:
            whole[name] = max(values) if name in _LONGEST else sum(values)
    if seconds is not None:
        whole["seconds"] = seconds
    slow = nlargest(SLOWEST_SHOWN, (host for part in parts for host in part.slowest), key=lambda host: host.mean_s)
    retries = nsmallest(RETRIES_SHOWN, (one for part in parts for one in part.retries), key=lambda one: one.in_s)
    queued = [part for part in parts if part.queued or part.in_flight]
    standing = queued[0].standing if queued and all(part.standing for part in queued) else ""
    return CrawlStats(**whole, slowest=tuple(slow), retries=tuple(retries), standing=standing)
