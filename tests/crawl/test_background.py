"""Large sitemaps, robots.txt files and lists of URLs are taken in without holding up the event loop.

What is measured is the processor time of this thread between two turns of the loop, as a share of all that it took:
other processes and the speed of the machine do not count. How many milliseconds a turn takes, `make bench NAME=hostile`
tells.
"""

import asyncio
import gc
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from time import thread_time
from typing import Any
from unittest.mock import Mock

import pytest

from lycosa.api.crawl import Crawl
from lycosa.crawl.host_rules import SITEMAPS_MOST
from lycosa.crawl.progress import Recrawl
from lycosa.crawl.seams import AT_ONCE, STEPS_PER_TURN, BackgroundWork
from lycosa.crawl.stats import CrawlStats
from lycosa.simweb import SimSettings, SimWeb
from lycosa.simweb.memory import run_virtual
from lycosa.simweb.web import Answer
from lycosa.web import LinkRules
from tests.crawl.consistency import problems
from tests.crawl.memory_crawl import front
from tests.crawl.small_site import FIRST, SmallSite, links
from tests.recrawl.recrawl_world import run as recrawl

URLS = 20_000
LARGEST_SHARE = 0.2  # without steps one turn has nearly all of it


@contextmanager
def site(files: dict[str, bytes]) -> Iterator[str]:
    """A server on loopback with these files; everything else is an empty page."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            body = files.get(self.path, b"")
            self.send_response(200)
            self.send_header("Content-Type", "text/html" if body == b"" else "text/plain")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Nothing: the test tells what is wrong."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


async def longest_turn(crawl: Crawl, *, known: int) -> tuple[float, CrawlStats]:
    """The longest turn of the loop until the crawl knows so many URLs, as a share of the whole."""
    longest = 0.0
    start = before = thread_time()
    while crawl.stats().known < known:
        await asyncio.sleep(0)
        now = thread_time()
        longest, before = max(longest, now - before), now
    return longest / (thread_time() - start), crawl.stats()


def run(into: Path, *seeds: str, known: int) -> tuple[float, CrawlStats]:
    async def main() -> tuple[float, CrawlStats]:
        async with Crawl(*seeds, into=into, delay_s=0) as crawl, asyncio.timeout(120):
            gc.freeze()  # as the command does
            return await longest_turn(crawl, known=known)

    try:
        return asyncio.run(main())
    finally:
        gc.unfreeze()


@pytest.mark.slow
def test_large_sitemap_and_rules_hold_the_loop_for_a_moment_only(tmp_path: Path) -> None:
    with site(files := {}) as origin:
        entries = "".join(
            f"<url><loc>{origin}/{number % 40}/page-{number}.html</loc><lastmod>2026-01-02</lastmod></url>"
            for number in range(URLS)
        )
        rules = "".join(f"Disallow: /no/{number}/*.php?é={number}\n" for number in range(14_000))
        files["/s.xml"] = f"<urlset>{entries}</urlset>".encode()
        files["/robots.txt"] = f"Sitemap: {origin}/s.xml\nUser-agent: *\n{rules}".encode()

        longest, stats = run(tmp_path / "c", f"{origin}/", known=URLS)

    assert stats.known >= URLS
    assert longest < LARGEST_SHARE


@pytest.mark.slow
def test_long_list_of_urls_holds_the_loop_for_a_moment_only(tmp_path: Path) -> None:
    inbox = tmp_path / "c" / "inbox"
    with site({}) as origin:
        run(tmp_path / "c", f"{origin}/", known=1)
        inbox.mkdir(exist_ok=True)
        (inbox / "many.urls").write_text("".join(f"{origin}/{number}\n" for number in range(URLS)))

        longest, stats = run(tmp_path / "c", known=URLS)

    assert stats.known >= URLS
    assert longest < LARGEST_SHARE


@pytest.mark.slow
@pytest.mark.parametrize("is_gone_first", [False, True])
def test_recrawl_stopped_while_it_takes_in_a_sitemap_counts_nothing_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_gone_first: bool
) -> None:
    web = SimWeb(SimSettings(seed=1, hosts=4, pages=160, tables=0.0, robots={"sitemap": 1.0, "missing": 0.0}))
    into = tmp_path / "c"

    def without_sitemaps(answer: Callable[..., Answer], *asked: Any) -> Answer:
        return Answer(404) if "sitemap" in str(asked) else answer(*asked)

    def stop(crawl: Crawl) -> None:
        if crawl.engine._background:
            crawl.stop()

    recrawl(web, into, front(web), answer=without_sitemaps if is_gone_first else None)
    monkeypatch.setattr("lycosa.crawl.seams.STEPS_PER_TURN", 1)
    monkeypatch.setattr("lycosa.crawl.host_rules.URLS_PER_STEP", 5)
    for _ in range(2):
        stopped = recrawl(web, into, days=40, recrawl=Recrawl(everything=True), act=stop, store_batch=1)
        assert stopped.ended_by == "stopped"
        assert problems(into) == []

    recrawl(web, into, days=40, recrawl=Recrawl(everything=True))
    assert problems(into) == []


def test_sitemaps_of_many_hosts_are_fetched_and_read_a_few_at_a_time(tmp_path: Path) -> None:
    hosts = [f"http://127.0.0.{number}:9" for number in range(1, 31)]
    unread = []

    async def main() -> CrawlStats:
        def answer(url: str) -> str:
            if not url.endswith("/sitemap.xml"):
                return "<p>words"
            asked = sum(each.endswith("/sitemap.xml") for each in site.asked)
            unread.append(1 + asked - crawl.stats().sitemaps)  # this one is not among those asked yet
            return f"<urlset><url><loc>{url.replace('sitemap.xml', 'listed')}</loc></url></urlset>"

        site = SmallSite(answer, "\n".join(f"Sitemap: {host}/sitemap.xml" for host in hosts))
        now = asyncio.get_running_loop().time
        seeds = [f"{host}/" for host in hosts]
        options: dict[str, Any] = {"allow_private": ["127.0.0.0/8"], "mine": "off", "scope": "any"}
        async with Crawl(*seeds, into=tmp_path / "c", downloader=site, now=now, **options) as crawl:
            return await crawl.finish()

    stats = run_virtual(main())

    assert stats.sitemaps == len(hosts)
    assert stats.pages == 2 * len(hosts)
    assert max(unread) == SITEMAPS_MOST


def test_long_work_takes_turns_a_few_at_a_time_and_all_of_it_ends() -> None:
    turns: list[int] = []

    def steps(number: int) -> Iterator[None]:
        for _ in range(4 * STEPS_PER_TURN):
            turns.append(number)
            yield

    async def main() -> None:
        background, is_over = BackgroundWork(Mock(has_failed=False)), asyncio.Event()
        background.on_turn_done = lambda _: None if background else is_over.set()
        for number in range(3 * AT_ONCE):
            background.start(steps(number), f"{number}.example")
        begun = len(turns)
        await is_over.wait()
        unfinished = set[int]()
        for at, number in enumerate(turns[begun:], begun):
            unfinished.add(number)
            assert len(unfinished) <= AT_ONCE
            if number not in turns[at + 1 :]:
                unfinished.remove(number)

    asyncio.run(main())

    assert len(turns) == 3 * AT_ONCE * 4 * STEPS_PER_TURN
    assert turns[-1] == 3 * AT_ONCE - 1


MANY = links(*(f"{number}.html" for number in range(3_000)))


def crawl_many(into: Path, act: Callable[[Crawl], None] = lambda _: None, **settings: Any) -> CrawlStats:
    """Crawls a page with very many links, and no other; `act` is called after every commit."""

    async def main() -> CrawlStats:
        site = SmallSite(lambda url: MANY if url == FIRST else None)
        options: dict[str, Any] = {"allow_private": ["127.0.0.0/8"], "mine": "off", "sitemaps": False, "delay_s": 0}
        now = asyncio.get_running_loop().time
        async with Crawl(
            FIRST, into=into, downloader=site, now=now, pages=1, store_batch=100, **options, **settings
        ) as crawl:
            crawl.engine.on_commit = lambda: act(crawl)
            return await crawl.finish()

    return run_virtual(main())


@pytest.mark.parametrize("threads", [0, 1])
def test_links_of_a_page_that_has_very_many_are_committed_before_it_is_done(tmp_path: Path, threads: int) -> None:
    known_before = []

    def note(crawl: Crawl) -> None:
        if not crawl.stats().pages:
            known_before.append(crawl.stats().known)

    stats = crawl_many(tmp_path / "c", note, threads=threads)

    assert known_before == [1_001, 1_501, 2_001, 2_501, 3_001]
    assert (stats.pages, stats.known) == (1, 3_001)
    assert problems(tmp_path / "c") == []


def test_page_whose_links_were_taken_in_by_half_when_the_crawl_broke_off_is_fetched_again(tmp_path: Path) -> None:
    def break_off(crawl: Crawl) -> None:
        if not crawl.stats().pages and crawl.stats().known > 1_000:
            crawl.engine.fail(ZeroDivisionError("a mistake of ours"))

    with pytest.raises(ZeroDivisionError):
        crawl_many(tmp_path / "c", break_off)
    assert problems(tmp_path / "c") == []

    stats = crawl_many(tmp_path / "c")

    assert (stats.pages, stats.known) == (1, 3_001)
    assert problems(tmp_path / "c") == []


def test_links_beyond_the_most_of_a_page_are_cut_off_and_the_log_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lycosa.crawl.reading.LinkRules", partial(LinkRules, most=100))

    stats = crawl_many(tmp_path / "c")

    assert stats.known == 101
    assert '"event":"page-cut"' in (tmp_path / "c" / "log.jsonl").read_text()
