"""A crawl for scripts and notebooks: `for page in lycosa.crawl("https://example.org", into="my-crawl"): …`.

The crawl runs on an event loop of its own in a thread, so it works where a loop is running already, as in a notebook.
Pages come in the caller's thread as they are committed; where the caller is slow the crawl waits. The crawl ends with
the loop, however that is left: what is in flight ends, and everything is committed. Whatever ends the crawl is raised
in the caller.
"""

import asyncio
from collections.abc import Coroutine, Iterator
from concurrent.futures import Future
from pathlib import Path
from threading import Thread
from typing import Any, TypeVar, Unpack

from lycosa.api.crawl import Crawl, CrawledPage
from lycosa.crawl import CrawlStats
from lycosa.settings import NamedSettings

AT_ONCE = 64  # pages that come from the crawl's thread together

T = TypeVar("T")


class CrawledPages:
    """A crawl that has yet to run: iterate over its pages, or `run` it without looking at them."""

    def __init__(self, crawl: Crawl) -> None:
        self._crawl = crawl

    def __repr__(self) -> str:
        return f"<CrawledPages into {self._crawl.into}: iterate over them, or call run()>"

    def __iter__(self) -> Iterator[CrawledPage]:
        """Crawls, and gives every page once it is committed."""
        crawl = self._crawl
        with _LoopThread() as loop:
            loop.result_of(crawl.__aenter__())
            try:
                while pages := loop.result_of(crawl.take(AT_ONCE)):
                    yield from pages
            finally:
                loop.finish(crawl)

    def run(self) -> CrawlStats:
        """Crawls to the end; returns its counts."""
        crawl = self._crawl
        with _LoopThread() as loop:
            loop.result_of(crawl.__aenter__())
            try:
                loop.result_of(crawl.finish())
            finally:
                loop.finish(crawl)
        return crawl.stats()


class _LoopThread:
    """An event loop in a thread of its own. It does not keep the program from ending: a collection survives that."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name="lycosa-crawl", daemon=True)

    def __enter__(self) -> "_LoopThread":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def submit(self, work: Coroutine[Any, Any, T]) -> "Future[T]":
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def result_of(self, work: Coroutine[Any, Any, T]) -> T:
        """Waits for the result. Interrupted, it lets the work be and raises."""
        future = self.submit(work)
        try:
            return future.result()
        except KeyboardInterrupt:
            future.cancel()
            raise

    def finish(self, crawl: Crawl) -> None:
        """Stops and closes the crawl; interrupted meanwhile, it stops it at once."""
        ended = self.submit(crawl.__aexit__(None, None, None))
        while True:
            try:
                return ended.result()
            except KeyboardInterrupt:
                self._loop.call_soon_threadsafe(crawl.stop)


def crawl_pages(*urls: str, into: str | Path, **named: Unpack[NamedSettings]) -> CrawledPages:
    """A crawl of these URLs into the folder `into`, with settings by name: `pages=100`. It begins when its pages are
    asked for. A folder that is a collection already is gone on with."""
    return CrawledPages(Crawl(*urls, into=into, **named))
