"""The spider that Scrapy runs beside Lycosa, as a script, by a Python that has Scrapy and need not have Lycosa.

python scrapy_spider.py START SETTINGS [NAMES]: follows all links and keeps nothing. START is a URL, or several with
spaces between them; SETTINGS are Scrapy's as a JSON object, beside those that hold for every race; NAMES is a JSON file
with the addresses of the hosts. Without NAMES the spider stays on the host of START.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import scrapy  # type: ignore[import-not-found]
from scrapy.crawler import CrawlerProcess  # type: ignore[import-not-found]
from scrapy.resolver import dnscache  # type: ignore[import-not-found]

ALWAYS = {"ROBOTSTXT_OBEY": True, "LOG_LEVEL": "ERROR", "TELNETCONSOLE_ENABLED": False}


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
    start, settings, *names = sys.argv[1:]
    process = CrawlerProcess(ALWAYS | json.loads(settings))
    hosts = {} if names else {"allowed_domains": [urlsplit(start).hostname]}
    process.crawl(LinkSpider, start_urls=start.split(), **hosts)
    for file in names:
        dnscache.update(json.loads(Path(file).read_text()))
    process.start()


if __name__ == "__main__":
    main()
