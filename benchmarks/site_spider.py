"""The spider that Scrapy runs in the `site` scenario, in an environment that has Scrapy and not Lycosa.

python site_spider.py START CONNECTIONS: follows the links of one host and keeps nothing.
"""

import sys
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import scrapy  # type: ignore[import-not-found]
from scrapy.crawler import CrawlerProcess  # type: ignore[import-not-found]


class SiteSpider(scrapy.Spider):  # type: ignore[misc]
    """Every page that links lead to."""

    name = "site"

    def parse(self, response: Any, **_: Any) -> Iterator[Any]:
        if not isinstance(response, scrapy.http.TextResponse):
            return
        for href in response.css("a::attr(href)").getall():
            url = response.urljoin(href)
            if url.startswith("http"):
                yield scrapy.Request(url)


def main() -> None:
    start, connections = sys.argv[1], int(sys.argv[2])
    process = CrawlerProcess(
        {
            "CONCURRENT_REQUESTS": connections,
            "CONCURRENT_REQUESTS_PER_DOMAIN": connections,
            "DOWNLOAD_DELAY": 0,
            "ROBOTSTXT_OBEY": True,
            "LOG_LEVEL": "ERROR",
            "TELNETCONSOLE_ENABLED": False,
        }
    )
    process.crawl(SiteSpider, start_urls=[start], allowed_domains=[urlsplit(start).hostname])
    process.start()


if __name__ == "__main__":
    main()
