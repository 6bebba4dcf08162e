"""Several shards crawl like one: the truth, nobody asked by two agents, politely, with limits over the whole."""

import asyncio
import random
from pathlib import Path

import pytest

from lycosa.simweb import SimSettings, SimWeb
from lycosa.simweb.audit import Rules, audit
from lycosa.simweb.truth import truth
from tests.cluster.memory_cluster import START_AGAIN_S, MemoryCluster, crawl
from tests.engine.consistency import problems

WEB = SimWeb(SimSettings(hosts=8, pages=240, seed=5))
SEED = f"{WEB.linker.origin(0)}/"
DELAY_S = 0.05


def assert_whole(cluster: MemoryCluster, into: Path, *, refetched: int = 0) -> None:
    fetched = cluster.fetched()
    assert set(fetched) == truth(WEB, [SEED], scope="any", mine="ancestors").pages
    assert fetched.total() - len(fetched) <= refetched
    assert [url for url, names in cluster.askers().items() if len(names) > 1] == []
    findings = audit(WEB.settings, cluster.entries(), Rules(delay_s=DELAY_S))
    assert findings.is_clean, findings.broken()[:5]
    for name in cluster.coordinator.names:
        assert problems(into / "shards" / name) == []


def test_three_shards_reach_the_truth_and_nobody_is_asked_by_two(tmp_path: Path) -> None:
    cluster = crawl(WEB, tmp_path, SEED, workers=3, delay_s=DELAY_S)
    assert_whole(cluster, tmp_path)
    assert min(agent_pages(cluster)) > 0
    stats = cluster.coordinator.stats()
    assert stats.pages == sum(agent_pages(cluster)) >= len(cluster.fetched())
    assert stats.known == stats.pages + stats.redirects + stats.sitemaps + stats.failed.total() + stats.dropped.total()


def agent_pages(cluster: MemoryCluster) -> list[int]:
    return [report.stats.pages for report in cluster.coordinator.reports()]


@pytest.mark.parametrize("policy", ["pvalue", "leaf-window"])
def test_policies_that_rank_reach_the_truth_too(tmp_path: Path, policy: str) -> None:
    assert_whole(crawl(WEB, tmp_path, SEED, workers=2, delay_s=DELAY_S, policy=policy), tmp_path)


@pytest.mark.parametrize("seed", range(2))
def test_agents_that_die_and_start_again_lose_nothing(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)

    async def kill_often(cluster: MemoryCluster) -> None:
        for _ in range(6):
            await asyncio.sleep(0.5 + chance.random())
            name = chance.choice(cluster.coordinator.names)
            if name in cluster.tasks and not cluster.coordinator.is_over:
                await cluster.kill(name)
                await asyncio.sleep(START_AGAIN_S * chance.random())
                cluster.start(name)

    cluster = crawl(WEB, tmp_path, SEED, workers=3, delay_s=DELAY_S, act=kill_often)
    assert_whole(cluster, tmp_path, refetched=200)


def test_agent_that_nobody_reaches_goes_on_when_the_line_is_back(tmp_path: Path) -> None:
    async def cut(cluster: MemoryCluster) -> None:
        await asyncio.sleep(2)
        cluster.cut.add("s1")
        await asyncio.sleep(60)
        assert cluster.agents["s1"].may_ask(0) is False
        cluster.cut.clear()

    cluster = crawl(WEB, tmp_path, SEED, workers=3, delay_s=DELAY_S, act=cut)
    assert_whole(cluster, tmp_path)


def test_address_of_several_agents_is_asked_by_one_at_a_time(tmp_path: Path) -> None:
    manners = {"delay_s": DELAY_S, "per_ip": 1, "ip_delay_s": 0.02}
    cluster = crawl(WEB, tmp_path, SEED, workers=3, **manners)
    assert_whole(cluster, tmp_path)
    shared = {address for address in {e.address for e in cluster.entries()} if len(askers_of(cluster, address)) > 1}
    assert shared
    rules = Rules(delay_s=DELAY_S, per_ip=1, ip_delay_s=0.02)
    findings = audit(WEB.settings, cluster.entries(), rules)
    assert findings.is_clean, findings.broken()[:5]


def askers_of(cluster: MemoryCluster, address: str) -> set[str]:
    webs = [(name, memory) for name, webs in cluster.webs.items() for memory in webs]
    return {name for name, memory in webs if any(entry.address == address for entry in memory.entries)}


@pytest.mark.parametrize("pages", [1, 50])
def test_limit_of_pages_holds_over_all_agents(tmp_path: Path, pages: int) -> None:
    cluster = crawl(WEB, tmp_path, SEED, workers=3, delay_s=DELAY_S, pages=pages)
    assert cluster.coordinator.stopping == "pages"
    assert cluster.coordinator.stats().pages == pages


def test_stopped_cluster_goes_on_with_the_same_shards(tmp_path: Path) -> None:
    async def stop(cluster: MemoryCluster) -> None:
        await asyncio.sleep(2)
        cluster.coordinator.stop("interrupted")

    first = crawl(WEB, tmp_path, SEED, workers=3, delay_s=DELAY_S, act=stop)
    second = crawl(WEB, tmp_path, SEED, workers=3, delay_s=DELAY_S)
    assert 0 < first.coordinator.stats().pages < second.coordinator.stats().pages
    both = first.fetched() + second.fetched()
    assert set(both) == truth(WEB, [SEED], scope="any", mine="ancestors").pages
    assert max(both.values()) == 1


def test_incarnation_is_never_given_twice(tmp_path: Path) -> None:
    first = crawl(WEB, tmp_path, SEED, workers=2, delay_s=DELAY_S, pages=5)
    second = crawl(WEB, tmp_path, SEED, workers=2, delay_s=DELAY_S, pages=9)
    given = [agent.incarnation for cluster in (first, second) for agent in cluster.agents.values()]
    assert len(set(given)) == len(given)
