"""Makes a collection that knows a million URLs of 100,000 hosts, all queued, and dies without closing it.

python -m tests.cli.million_urls DIR
"""

import asyncio
import os
import sys

from lycosa.api.crawl import Crawl
from lycosa.records import Resolved

URLS, HOSTS, AT_A_TIME = 1_000_000, 100_000, 1_000


class Silence:
    """A resolver that never answers: nothing is asked for, so everything stays queued."""

    async def resolve(self, name: str) -> Resolved:
        await asyncio.Event().wait()
        raise AssertionError("never reached")

    def flush(self) -> None:
        pass

    async def close(self) -> None:
        pass


def url(number: int) -> str:
    return f"http://h{number % HOSTS}.sim/section/{number // HOSTS // 100}/page-{number}.html"


async def main() -> None:
    async with Crawl(url(0), into=sys.argv[1], scope="any", store_interval_s=0.01, resolver=Silence()) as crawl:
        committed = asyncio.Event()
        crawl.engine.on_commit = committed.set
        for first in range(0, URLS, AT_A_TIME):
            crawl.add(*(url(number) for number in range(first, first + AT_A_TIME)))
            committed.clear()
            await committed.wait()
        assert crawl.stats().queued == URLS
        os._exit(0)  # as `kill -9` would: nothing is closed


if __name__ == "__main__":
    asyncio.run(main())
