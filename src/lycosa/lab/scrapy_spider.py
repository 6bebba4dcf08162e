"""The spider that Scrapy runs beside Lycosa, as a script, by a Python that has Scrapy and need not have Lycosa.

python scrapy_spider.py START SECONDS TRANSFERS DELAY NAMES: follows all links, breadth first as Scrapy's manual advises
for broad crawls, and keeps nothing. NAMES is a JSON file with the addresses of the hosts.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import scrapy  # type: ignore[import-not-found]
from scrapy.crawler import CrawlerProcess  # type: ignore[import-not-found]
from scrapy.resolver import dnscache  # type: ignore[import-not-found]


class LinkSpider(scrapy.Spider):  # type: ignore[misc]
    """Every page that links lead to."""

    name = "links"

    def parse(self, response: Any, **_: Any) -> Iterator[Any]:
        if not isinstance(response, scrapy.http.TextResponse):
            return
        for href in response.css("a::attr(href)").getall():
            url = response.urljoin(href)
            if url.startswith("http"):
                yield scrapy.Request(url)


def main() -> None:
    start, seconds, transfers, delay, names = sys.argv[1:]
    settings = {
        "CONCURRENT_REQUESTS": int(transfers),
        "CONCURRENT_REQUESTS_PER_DOMAIN": 1,
        "DOWNLOAD_DELAY": float(delay),
        "RANDOMIZE_DOWNLOAD_DELAY": False,
        "ROBOTSTXT_OBEY": True,
        "CLOSESPIDER_TIMEOUT": float(seconds),
        "DEPTH_PRIORITY": 1,
        "SCHEDULER_DISK_QUEUE": "scrapy.squeues.PickleFifoDiskQueue",
        "SCHEDULER_MEMORY_QUEUE": "scrapy.squeues.FifoMemoryQueue",
        "LOG_LEVEL": "ERROR",
        "TELNETCONSOLE_ENABLED": False,
    }
    process = CrawlerProcess(settings)
    process.crawl(LinkSpider, start_urls=[start])
    dnscache.update(json.loads(Path(names).read_text()))
    process.start()


if __name__ == "__main__":
    main()
