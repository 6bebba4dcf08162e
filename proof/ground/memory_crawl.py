"""Crawls of the in-memory simulated web by the real crawler on virtual time, watched through its public face.

The same seed gives the same crawl: time is the loop's, and nothing else runs. The collection is left in `into`, for
whoever wants to look at it. `crawl` is one whole crawl; `look` crawls a web as it is on a chosen day, or looks at the
collection again.
"""

import asyncio
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from lycosa import Crawl
from lycosa.crawl import CrawlStats, Recrawl
from lycosa.simweb import AuditRules, LoggedRequest, MemoryWeb, SimWeb, audit, run_virtual
from lycosa.simweb.documents import EPOCH_S
from lycosa.simweb.pages import DAY_S

LOOK_EVERY_PAGES = 50


class Look(NamedTuple):
    """The crawl at one moment: seconds since its start, pages committed, URLs known."""

    time_s: float
    pages: int
    known: int


class MemoryCrawl(NamedTuple):
    """What a crawl did: its pages in the order of their commits, looks at it on the way, and the web's log of it.

    `is_polite`: the log shows that robots.txt and the default delays were kept.
    """

    urls: list[str]
    looks: list[Look]
    entries: list[LoggedRequest]
    is_polite: bool

    @property
    def seconds(self) -> float:
        return self.looks[-1].time_s


def crawl(
    web: SimWeb,
    into: Path,
    *seeds: str,
    advance: Callable[[int], None] = lambda pages: None,
    rules: AuditRules | None = None,
    **settings: Any,
) -> MemoryCrawl:
    """Crawls until nothing is left or a limit of the settings is reached; `advance` hears of pages on the way.

    `rules` are what the log is checked by, where they are not the default ones.
    """
    options = {"allow_private": ["127.0.0.0/8"], "scope": "any", **settings}

    async def main() -> MemoryCrawl:
        loop, memory = asyncio.get_running_loop(), MemoryWeb(web)
        parts: Any = {"resolver": memory, "downloader": memory, "now": loop.time}
        urls: list[str] = []
        looks = [Look(0.0, 0, 0)]
        async with Crawl(*seeds, into=into, **parts, **options) as running:
            async for page in running:
                urls.append(page.url)
                if len(urls) % LOOK_EVERY_PAGES == 0:
                    looks.append(Look(loop.time(), len(urls), running.stats().known))
                    advance(LOOK_EVERY_PAGES)
            stats = running.stats()
        looks.append(Look(stats.run_seconds, len(urls), stats.known))
        return MemoryCrawl(
            urls, looks, memory.entries, audit(web.settings, memory.entries, rules or AuditRules()).is_clean
        )

    return run_virtual(main())


COMMIT_S = 60.0


class LookResult(NamedTuple):
    """What one run did, and the web's log of it, in seconds since the run began."""

    stats: CrawlStats
    entries: list[LoggedRequest]


def wall_s(days: float) -> float:
    """The Unix time of a day of the simulated web."""
    return EPOCH_S + days * DAY_S


def look(
    web: SimWeb, into: Path, *, days: float, recrawl: Recrawl | None = None, moves: bool = True, **settings: Any
) -> LookResult:
    """Crawls the web as it is so many days after it began, or looks at it again; `moves`: it changes meanwhile."""
    seeds = () if recrawl else (f"{web.linker.origin(0)}/",)
    options = {"scope": "any", "allow_private": ["127.0.0.0/8"], "store_interval_s": COMMIT_S, **settings}

    random.seed(f"{web.settings.seed} {days}")

    async def main() -> LookResult:
        memory = MemoryWeb(web, time_scale=1.0 if moves else 0.0)
        memory.clock.set(time_s=days * DAY_S)
        parts: Any = {"resolver": memory, "downloader": memory, "now": asyncio.get_running_loop().time}
        async with Crawl(*seeds, into=into, recrawl=recrawl, wall=lambda: wall_s(days), **parts, **options) as crawl:
            return LookResult(await crawl.finish(), memory.entries)

    return run_virtual(main())
