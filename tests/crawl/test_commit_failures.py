"""A disk that fails under a running crawl: the crawl waits for it, and what it settled meanwhile is not lost."""

import asyncio
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from lycosa.api.crawl import Crawl
from lycosa.errors import StoreError
from lycosa.frontier.rows import UrlRow, UrlState
from lycosa.inspect import open_to_read
from lycosa.records import Family
from lycosa.simweb import SimSettings, SimWeb
from lycosa.simweb.memory import MemoryWeb, run_virtual

WEB = SimWeb(SimSettings(hosts=8, pages=3000, seed=3, rtt_ms=170, rtt_spread=0.6))


class Disk:
    """Stands between a collection and its files; `archive_fails` and `state_fails` count down, a failure each."""

    def __init__(self, crawl: Crawl, memory: MemoryWeb) -> None:
        collection = crawl.engine.collection
        self.archive_fails = self.state_fails = 0
        self.is_due: Callable[[], bool] = lambda: False
        self.failed_at: list[tuple[float, int]] = []
        self._memory = memory
        self._now = asyncio.get_running_loop().time
        collection.warc.append = self._failing("archive_fails", collection.warc.append)  # type: ignore[method-assign]
        collection.state.write = self._failing("state_fails", collection.state.write)  # type: ignore[method-assign]

    def _failing(self, name: str, act: Callable[..., Any]) -> Callable[..., Any]:
        def failing(*arguments: Any, **named: Any) -> Any:
            if self.is_due() and getattr(self, name):
                setattr(self, name, getattr(self, name) - 1)
                self.failed_at.append((self._now(), len(self._memory.entries)))
                raise StoreError("no space left")
            return act(*arguments, **named)

        return failing


def crawl_on(into: Path, prepare: Callable[[Disk, Crawl], None], **settings: Any) -> Disk:
    async def main() -> Disk:
        loop = asyncio.get_running_loop()
        memory = MemoryWeb(WEB)
        options: dict[str, Any] = {"allow_private": ["127.0.0.0/8"], "scope": "any", "delay_s": 0, "per_host": 4}
        async with Crawl(
            "http://h0.sim:8800/", into=into, resolver=memory, downloader=memory, now=loop.time, **options, **settings
        ) as crawl:
            disk = Disk(crawl, memory)
            prepare(disk, crawl)
            await crawl.finish()
        return disk

    return run_virtual(main())


@pytest.mark.slow
def test_crawl_waits_while_the_archive_cannot_be_written(tmp_path: Path) -> None:
    def prepare(disk: Disk, crawl: Crawl) -> None:
        disk.archive_fails = 4
        disk.is_due = lambda: crawl.stats().pages > 50

        asyncio.get_running_loop().call_later(0.0, listen, crawl)

    def listen(crawl: Crawl) -> None:
        said.add(crawl.stats().pace)
        asyncio.get_running_loop().call_later(0.3, listen, crawl)

    said: set[str] = set()
    disk = crawl_on(tmp_path / "c", prepare, store_batch=20)
    assert "paused: no space left; it is tried again every second" in said
    times, requests = zip(*disk.failed_at, strict=True)
    in_flight = 8 * 4
    assert requests[-1] - requests[0] <= in_flight  # those that were under way may end, no other is begun
    assert min(later - sooner for sooner, later in pairwise(times)) >= 0.9


def test_every_page_that_is_done_is_kept_when_state_and_archive_fail_in_turn(tmp_path: Path) -> None:
    def prepare(disk: Disk, crawl: Crawl) -> None:
        disk.state_fails = 1
        disk.is_due = lambda: len(crawl.engine._in_flight) >= 4 and crawl.stats().pages > 5

        def fill_up() -> None:
            if disk.failed_at:
                disk.archive_fails, disk.is_due = 1_000_000, lambda: True

        crawl.engine.on_commit = fill_up

    with pytest.raises(StoreError):
        crawl_on(tmp_path / "c", prepare)
    with open_to_read(tmp_path / "c") as collection:
        rows = collection.state.walk(Family.URL)
        done = {key for key, row in rows if UrlRow.unpack(row).state is UrlState.DONE}
        kept = {key for key, _ in collection.state.walk(Family.PAGE)}
    assert done
    assert done <= kept
