"""A collection of the in-memory simulated web that is looked at again: crawls and recrawls on chosen days.

Each run has a virtual clock of its own; the web's time and the wall clock are set to its day, and the jitter of due
times follows from the web's seed. Used by experiments.
"""

import asyncio
import random
from pathlib import Path
from typing import Any, NamedTuple

from lycosa.api.crawl import Crawl
from lycosa.crawl.limits import Recrawl
from lycosa.crawl.stats import CrawlStats
from lycosa.simweb import SimWeb
from lycosa.simweb.documents import EPOCH_S
from lycosa.simweb.log import LoggedRequest
from lycosa.simweb.memory import MemoryWeb, run_virtual
from lycosa.simweb.pages import DAY_S

COMMIT_S = 60.0


class Looked(NamedTuple):
    """What one run did, and the web's log of it, in seconds since the run began."""

    stats: CrawlStats
    entries: list[LoggedRequest]


def wall_s(days: float) -> float:
    """The Unix time of a day of the simulated web."""
    return EPOCH_S + days * DAY_S


def look(
    web: SimWeb, into: Path, *, days: float, recrawl: Recrawl | None = None, moves: bool = True, **settings: Any
) -> Looked:
    """Crawls the web as it is so many days after it began, or looks at it again; `moves`: it changes meanwhile."""
    seeds = () if recrawl else (f"{web.linker.origin(0)}/",)
    options = {"scope": "any", "allow_private": ["127.0.0.0/8"], "store_interval_s": COMMIT_S, **settings}

    random.seed(f"{web.settings.seed} {days}")

    async def main() -> Looked:
        memory = MemoryWeb(web, time_scale=1.0 if moves else 0.0)
        memory.clock.set(time_s=days * DAY_S)
        parts: Any = {"resolver": memory, "downloader": memory, "now": asyncio.get_running_loop().time}
        async with Crawl(*seeds, into=into, recrawl=recrawl, wall=lambda: wall_s(days), **parts, **options) as crawl:
            return Looked(await crawl.finish(), memory.entries)

    return run_virtual(main())
