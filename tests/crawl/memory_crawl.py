"""A whole crawl of the in-memory simulated web on virtual time."""

import asyncio
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from lycosa.api.crawl import Crawl
from lycosa.crawl.stats import CrawlStats
from lycosa.simweb import SimWeb
from lycosa.simweb.log import LoggedRequest
from lycosa.simweb.memory import MemoryWeb, run_virtual

NOT_PAGES = ("robots.txt", ".xml", ".gz", ".tol", ".tvi", ".png")


class Result(NamedTuple):
    stats: CrawlStats
    entries: list[LoggedRequest]
    ended_by: str

    def fetched(self, *statuses: int) -> Counter[str]:
        """How often each page was fetched with one of the statuses."""
        wanted = statuses or (200,)
        return Counter(
            f"http://{e.host}:8800{e.path}"
            for e in self.entries
            if e.status in wanted and not e.path.endswith(NOT_PAGES)
        )


def crawl(
    web: SimWeb,
    into: Path,
    *seeds: str,
    begin: Callable[[Crawl], Any] | None = None,
    act: Callable[[Crawl], Any] | None = None,
    after: int = 0,
    **settings: Any,
) -> Result:
    """Crawls to the end; `begin` is called with the crawl before it runs, `act` once `after` requests are made."""
    options = {"allow_private": ["127.0.0.0/8"], "scope": "any", **settings}

    async def main() -> Result:
        loop = asyncio.get_running_loop()
        memory = MemoryWeb(web)
        has_acted = False
        async with Crawl(*seeds, into=into, resolver=memory, downloader=memory, now=loop.time, **options) as running:

            def watch() -> None:
                nonlocal has_acted
                if act is not None and not has_acted and len(memory.entries) >= after:
                    has_acted = True
                    act(running)

            running.engine.on_commit = watch
            if begin is not None:
                begin(running)
            stats = await running.finish()
        return Result(stats, memory.entries, running.engine.stopped_by)

    return run_virtual(main())


def front(web: SimWeb, host: int = 0) -> str:
    return f"{web.linker.origin(host)}/"
