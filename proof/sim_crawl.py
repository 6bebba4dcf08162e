"""A whole crawl of the in-memory simulated web, by the real engine on virtual time, watched through its public face.

The same seed gives the same crawl: time is the loop's, and nothing else runs. The collection is left in `into`, for
whoever wants to look at it. Used by experiments.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from lycosa import Crawl
from lycosa.simweb import SimWeb
from lycosa.simweb.log import AuditRules, LoggedRequest, audit
from lycosa.simweb.memory import MemoryWeb, run_virtual

LOOK_EVERY_PAGES = 50


class Look(NamedTuple):
    """The crawl at one moment: seconds since its start, pages committed, URLs known."""

    time_s: float
    pages: int
    known: int


class Crawled(NamedTuple):
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
) -> Crawled:
    """Crawls until nothing is left or a limit of the settings is reached; `advance` hears of pages on the way.

    `rules` are what the log is checked by, where they are not the default ones.
    """
    options = {"allow_private": ["127.0.0.0/8"], "scope": "any", **settings}

    async def main() -> Crawled:
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
        return Crawled(urls, looks, memory.entries, audit(web.settings, memory.entries, rules or AuditRules()).is_clean)

    return run_virtual(main())
