"""A collection that is crawled, and looked at again later: the simulated web and the wall clock both move on."""

import asyncio
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from lycosa.api.crawl import Crawl
from lycosa.crawl.progress import Recrawl
from lycosa.simweb import SimWeb
from lycosa.simweb.documents import EPOCH_S
from lycosa.simweb.memory import MemoryWeb, run_virtual
from tests.crawl.memory_crawl import Result

BEGIN_S = EPOCH_S + 43_200  # the wall clock of the first crawl: half a day after the simulated web began
DAY_S = 86_400.0
OPTIONS = {"allow_private": ["127.0.0.0/8"], "scope": "any", "delay_s": 0.05}


@contextmanager
def wall_clock(unix_s: float) -> Any:
    """The engine reads the wall clock once, when it begins."""
    with patch("lycosa.crawl.assembly.time.time", lambda: unix_s):
        yield


def run(
    web: SimWeb,
    into: Path,
    *seeds: str,
    days: float = 0.0,
    clock_days: float | None = None,
    recrawl: Recrawl | None = None,
    answer: Callable[..., Any] | None = None,
    act: Callable[[Crawl], Any] | None = None,
    time_scale: float = 0.0,
    gzip: bool = False,
    **settings: Any,
) -> Result:
    """Crawls, or looks again, `days` after the web began; `clock_days` is what the wall clock says instead. `answer`
    stands in for what the web says."""

    async def main() -> Result:
        loop = asyncio.get_running_loop()
        memory = MemoryWeb(web, time_scale=time_scale, gzip=gzip)
        memory.clock.set(time_s=days * DAY_S)
        original = web.answer
        options = {**OPTIONS, **settings}
        with wall_clock(BEGIN_S + (days if clock_days is None else clock_days) * DAY_S):
            crawl = Crawl(
                *seeds, into=into, resolver=memory, downloader=memory, now=loop.time, recrawl=recrawl, **options
            )
            if answer is not None:
                web.answer = lambda *asked: answer(original, *asked)  # type: ignore[method-assign]
            try:
                async with crawl as running:
                    if act is not None:
                        running.engine.on_commit = lambda: act(running)
                    stats = await running.finish()
            finally:
                if answer is not None:
                    del web.answer
        return Result(stats, memory.entries, running.engine.stopped_by)

    return run_virtual(main())
