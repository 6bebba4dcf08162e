"""The crawler that Crawlee runs beside Lycosa, as a script, by a Python that has Crawlee and need not have Lycosa.

python crawlee_spider.py START CONNECTIONS: follows all links of the host of START and keeps nothing.
"""

import asyncio
import logging
import sys

from crawlee import ConcurrencySettings  # type: ignore[import-not-found]
from crawlee.crawlers import ParselCrawler, ParselCrawlingContext  # type: ignore[import-not-found]
from crawlee.http_clients import ImpitHttpClient  # type: ignore[import-not-found]
from crawlee.storage_clients import MemoryStorageClient  # type: ignore[import-not-found]


async def main() -> None:
    start, connections = sys.argv[1], int(sys.argv[2])
    crawler = ParselCrawler(
        # All from the start: left to itself Crawlee begins with ten, and with fewer on a busy machine.
        concurrency_settings=ConcurrencySettings(
            min_concurrency=connections, max_concurrency=connections, desired_concurrency=connections
        ),
        http_client=ImpitHttpClient(verify=False),  # its usual one, with the benchmark's own certificate authority
        storage_client=MemoryStorageClient(),
        respect_robots_txt_file=True,
        configure_logging=False,
        max_request_retries=0,
    )

    @crawler.router.default_handler  # type: ignore[untyped-decorator]
    async def handle(context: ParselCrawlingContext) -> None:
        await context.enqueue_links(strategy="same-hostname")

    logging.disable(logging.ERROR)
    await crawler.run([start])


if __name__ == "__main__":
    asyncio.run(main())
