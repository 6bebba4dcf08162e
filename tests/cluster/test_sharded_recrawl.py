"""A recrawl of a collection with shards: each visits what it has, and what counts over all holds over all."""

import asyncio
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from lycosa.cluster.recrawl import divide_recrawl
from lycosa.crawl import Recrawl
from lycosa.inspect import open_to_read, stats_of
from lycosa.simweb import SimSettings, SimWeb
from proof.ground.memory_cluster import NOT_PAGES, MemoryCluster, crawl

WEB = SimWeb(SimSettings(hosts=6, pages=80, seed=5))
SEED = f"{WEB.linker.origin(0)}/"
DELAY_S = 0.05


def recrawl(into: Path, order: Recrawl) -> MemoryCluster:
    return crawl(WEB, into, SEED, workers=3, delay_s=DELAY_S, tables="off", recrawl=order)


def visited(cluster: MemoryCluster, name: str) -> Counter[str]:
    """The pages that a shard asked for, whatever the answer."""
    entries = [entry for memory in cluster.webs[name] for entry in memory.entries]
    return Counter(f"http://{e.host}:8800{e.path}" for e in entries if not e.path.endswith(NOT_PAGES))


def pages_of(shard: Path) -> int:
    with open_to_read(shard) as collection:
        return stats_of(collection).pages


@pytest.fixture(scope="module")
def crawled_once(tmp_path_factory: pytest.TempPathFactory) -> MemoryCluster:
    return crawl(WEB, tmp_path_factory.mktemp("crawled"), SEED, workers=3, delay_s=DELAY_S, tables="off")


@pytest.fixture
def crawled(crawled_once: MemoryCluster, tmp_path: Path) -> Iterator[MemoryCluster]:
    """A crawl that is over, in a folder of the test's own."""
    into, crawled_once.into = crawled_once.into, tmp_path / "c"
    shutil.copytree(into, tmp_path / "c")
    yield crawled_once
    crawled_once.into = into


def test_everything_is_visited_once_by_the_shard_that_has_it(crawled: MemoryCluster) -> None:
    again = recrawl(crawled.into, Recrawl(everything=True))
    before = crawled.coordinator.stats()
    assert again.coordinator.stats().run_visits == before.pages + before.redirects + before.sitemaps
    for name in crawled.agents:
        assert crawled.fetched(name).keys() <= visited(again, name).keys()
        assert set(visited(again, name).values()) <= {1}
    assert again.coordinator.is_over


@pytest.mark.parametrize("visits", [1, 10])
def test_number_of_visits_holds_over_all_shards(crawled: MemoryCluster, visits: int) -> None:
    again = recrawl(crawled.into, Recrawl(everything=True, most=visits))
    assert again.coordinator.stats().run_visits == visits


def test_visits_that_an_interrupted_recrawl_left_count_too(crawled: MemoryCluster) -> None:
    async def stop(cluster: MemoryCluster) -> None:
        await asyncio.sleep(2)
        assert cluster.coordinator.stats().run_visits
        cluster.coordinator.stop("interrupted")

    everything = Recrawl(everything=True)
    crawl(WEB, crawled.into, SEED, workers=3, delay_s=DELAY_S, recrawl=everything, act=stop)
    again = recrawl(crawled.into, Recrawl(everything=True, most=7))
    assert again.coordinator.stats().run_visits == 7
    assert again.coordinator.stopping == "visits"


def test_urls_are_visited_where_they_are_known(crawled: MemoryCluster) -> None:
    urls = tuple(sorted(crawled.fetched()))[:5]
    again = recrawl(crawled.into, Recrawl(urls=urls))
    assert sum((visited(again, name) for name in again.agents), Counter[str]()) == Counter(urls)


def test_nothing_is_due_and_nothing_is_asked(crawled: MemoryCluster) -> None:
    again = recrawl(crawled.into, Recrawl())
    assert again.coordinator.stats().run_visits == 0
    assert again.coordinator.is_over


def test_budget_is_divided_by_pages(crawled: MemoryCluster) -> None:
    parts = divide_recrawl(crawled.into, Recrawl(budget=100), crawled.settings).parts
    assert sum(part.budget or 0 for part in parts.values()) == pytest.approx(100)
    shares = {name: (part.budget or 0) / 100 for name, part in parts.items()}
    pages = {name: pages_of(crawled.into / "shards" / name) for name in parts}
    assert shares == {name: pytest.approx(pages[name] / sum(pages.values())) for name in parts}


def test_shares_of_a_running_crawl_go_by_pages_and_make_up_the_whole(tmp_path: Path) -> None:
    shares = dict[str, float]()

    async def look(cluster: MemoryCluster) -> None:
        await asyncio.sleep(2)
        shares.update((name, agent.share()) for name, agent in cluster.agents.items())

    cluster = crawl(WEB, tmp_path, SEED, workers=3, delay_s=DELAY_S, act=look)
    assert sum(shares.values()) == pytest.approx(1, abs=0.2)
    pages = {name: len(cluster.fetched(name)) for name in shares}
    assert max(pages, key=lambda name: pages[name]) == max(shares, key=lambda name: shares[name])
