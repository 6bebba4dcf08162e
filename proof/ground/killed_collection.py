"""Makes a collection that knows many URLs, ten of each host, all queued, and dies without closing it.

python -m proof.ground.killed_collection DIR URLS: run by the benchmark `start`, and by a test with fewer URLs.
"""

import asyncio
import os
import sys

from lycosa.api import Crawl
from lycosa.records import Resolved

AT_A_TIME = 1_000


class SilentResolver:
    """A resolver that never answers: nothing is asked for, so everything stays queued."""

    async def resolve(self, name: str) -> Resolved:
        await asyncio.Event().wait()
        raise AssertionError("never reached")

    def flush(self) -> None:
        pass

    async def close(self) -> None:
        pass


def url(number: int) -> str:
    return f"http://h{number // 10}.sim/section/{number % 3}/page-{number}.html"


async def main(into: str, urls: int) -> None:
    async with Crawl(url(0), into=into, scope="any", store_interval_s=0.01, resolver=SilentResolver()) as crawl:
        committed = asyncio.Event()
        crawl.engine.on_commit = committed.set
        for first in range(0, urls, AT_A_TIME):
            crawl.add(*(url(number) for number in range(first, first + AT_A_TIME)))
            committed.clear()
            await committed.wait()
        assert crawl.stats().queued == urls
        os._exit(0)  # as `kill -9` would: nothing is closed


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
