"""A crawl, on virtual time, of a few pages that a test makes up. Hosts are loopback addresses on port 9."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from lycosa import Crawl
from lycosa.crawl.stats import CrawlStats
from lycosa.records import Request, Response
from lycosa.simweb.memory import run_virtual

FIRST = "http://127.0.0.1:9/"


class Sent(NamedTuple):
    """A body, with header fields beside or in place of the usual ones."""

    body: str
    fields: dict[str, str]
    status: int = 200
    failure: str | None = None  # how the answer broke off


Answer = Callable[[str], str | Sent | int | None]  # of a URL: the page, a status, or None where there is nothing


class SmallSite:
    """Answers every request after a tenth of a second. `asked` has the URLs in order, without robots.txt."""

    def __init__(self, answer: Answer, robots: str = "") -> None:
        self._answer, self._robots = answer, robots
        self._loop = asyncio.get_running_loop()
        self.asked: list[str] = []

    def start(self, request: Request, done: Any) -> None:
        is_robots = request.url.endswith("/robots.txt")
        found = (self._robots or None) if is_robots else self._answer(request.url)
        if not is_robots:
            self.asked.append(request.url)
        page = found if isinstance(found, Sent) else Sent(found, {}) if isinstance(found, str) else None
        fields = {"content-type": "text/html", **(page.fields if page else {})}
        lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        answer = Response(
            request.url,
            status=page.status if page else found or 404,  # type: ignore[arg-type]
            header_block=f"HTTP/1.1 200 OK\r\n{lines}\r\n".encode(),
            headers=fields,
            body=page.body.encode() if page else b"",
            started_s=self._loop.time(),
            ended_s=self._loop.time() + 0.1,
            failure=page.failure if page else None,
        )
        self._loop.call_later(0.1, lambda: done(answer))

    def cancel_all(self) -> None: ...

    async def close(self) -> None: ...


def crawl_site(
    into: Path, answer: Answer, *seeds: str, robots_txt: str = "", **settings: Any
) -> tuple[list[str], CrawlStats]:
    """Crawls to the end; returns the URLs asked for, in order, and the counts. Every host has the same robots.txt."""
    options = {"allow_private": ["127.0.0.0/8"], "mine": "off", "sitemaps": False, "tables": "off", **settings}

    async def main() -> tuple[list[str], CrawlStats]:
        site = SmallSite(answer, robots_txt)
        now = asyncio.get_running_loop().time
        async with Crawl(*(seeds or (FIRST,)), into=into, downloader=site, now=now, **options) as crawl:
            stats = await crawl.finish()
        return site.asked, stats

    return run_virtual(main())


def links(*hrefs: str) -> str:
    return "".join(f"<p><a href='{href}'>{href}</a></p>" for href in hrefs)
