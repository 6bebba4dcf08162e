"""Several shards crawl like one: the truth, nobody asked by two agents, politely, with limits over the whole."""

import asyncio
import random
from collections import Counter
from pathlib import Path

import pytest

from lycosa.cli.collection import status
from lycosa.cluster.coordinator import Coordinator
from lycosa.crawl import CrawlStats, RunCompanion
from lycosa.errors import ClusterError, SettingsError
from lycosa.frontier.rows import UrlRow, UrlState
from lycosa.inspect import open_to_read, stats_of
from lycosa.records import Family
from lycosa.settings import CrawlSettings
from lycosa.settings.sources import to_toml
from lycosa.simweb import SimSettings, SimWeb
from lycosa.simweb.log import AuditRules, audit
from lycosa.simweb.truth import truth_of
from lycosa.store import CollectionStore
from proof.ground.memory_cluster import START_AGAIN_S, MemoryCluster, crawl
from tests.crawl.consistency import problems

WEB = SimWeb(SimSettings(hosts=8, pages=240, seed=5))
SEED = f"{WEB.linker.origin(0)}/"
DELAY_S = 0.05


def assert_whole(cluster: MemoryCluster, into: Path, *, refetched: int = 0) -> None:
    fetched = cluster.fetched()
    assert set(fetched) == truth_of(WEB, [SEED], scope="any", mine="ancestors").pages
    assert fetched.total() - len(fetched) <= refetched
    assert [url for url, names in cluster.askers().items() if len(names) > 1] == []
    findings = audit(WEB.settings, cluster.entries(), AuditRules(delay_s=DELAY_S))
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


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["pvalue"])
def test_policies_that_rank_reach_the_truth_too(tmp_path: Path, policy: str) -> None:
    assert_whole(crawl(WEB, tmp_path, SEED, workers=2, delay_s=DELAY_S, policy=policy), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
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


@pytest.mark.slow
def test_agent_that_nobody_reaches_goes_on_when_the_line_is_back(tmp_path: Path) -> None:
    async def cut(cluster: MemoryCluster) -> None:
        await asyncio.sleep(2)
        cluster.cut.add("s1")
        await asyncio.sleep(20)
        assert cluster.agents["s1"].may_ask(0) is False
        cluster.cut.clear()

    cluster = crawl(WEB, tmp_path, SEED, workers=3, delay_s=DELAY_S, act=cut)
    assert_whole(cluster, tmp_path)


@pytest.mark.slow
def test_address_of_several_agents_is_asked_by_one_at_a_time(tmp_path: Path) -> None:
    manners = {"delay_s": DELAY_S, "per_ip": 1, "ip_delay_s": 0.02}
    cluster = crawl(WEB, tmp_path, SEED, workers=3, **manners)
    assert_whole(cluster, tmp_path)
    shared = {address for address in {e.address for e in cluster.entries()} if len(askers_of(cluster, address)) > 1}
    assert shared
    rules = AuditRules(delay_s=DELAY_S, per_ip=1, ip_delay_s=0.02)
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


def test_use_of_the_limits_is_told_over_all_agents(tmp_path: Path) -> None:
    told: list[CrawlStats] = []

    async def look(cluster: MemoryCluster) -> None:
        while cluster.coordinator.stats().pages < 100:  # noqa: ASYNC110 -- no event tells
            await asyncio.sleep(0.1)
        await asyncio.sleep(2)  # a moment is written every second
        with open_to_read(tmp_path) as collection:
            told.extend((cluster.coordinator.stats(), stats_of(collection)))

    crawl(WEB, tmp_path, SEED, workers=3, delay_s=DELAY_S, pages=200, act=look)
    for stats in told:
        assert stats.limit_share is not None
        assert 100 / 200 <= stats.limit_share <= stats.pages / 200 + 0.1
        assert stats.left_s is not None
        assert 0 < stats.left_s < stats.run_seconds


def test_what_pages_need_does_not_count_towards_their_limit(tmp_path: Path) -> None:
    web = SimWeb(SimSettings(hosts=8, pages=240, seed=5, rtt_ms=800))
    cluster = crawl(web, tmp_path, SEED, workers=3, delay_s=DELAY_S, pages=50, requisites=True)
    assert cluster.coordinator.stats().requisites > 0
    assert cluster.coordinator.stats().pages == 50


class _Unfinished(RunCompanion):
    """A companion that does nothing and has something left to do."""

    def begin(self) -> None: ...

    async def finish(self, *, is_hurried: bool) -> None: ...

    def hurry(self) -> None: ...

    def close(self) -> None: ...

    def leftover(self) -> str:
        return "1 change is not told yet"


def test_what_a_shard_has_left_to_do_is_said_at_the_end(tmp_path: Path) -> None:
    async def leave_something(cluster: MemoryCluster) -> None:
        await asyncio.sleep(1)
        engine = cluster.agents["s1"].engine
        assert engine is not None
        engine.features.accompany(_Unfinished())

    cluster = crawl(WEB, tmp_path, SEED, workers=2, delay_s=DELAY_S, pages=20, act=leave_something)
    assert cluster.coordinator.take_warnings() == ["s1: 1 change is not told yet"]


def test_status_says_that_the_time_of_all_agents_is_used_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async def start_late(cluster: MemoryCluster) -> None:
        await asyncio.sleep(0.5)
        for name in cluster.coordinator.names:
            await cluster.kill(name)
        await asyncio.sleep(START_AGAIN_S)  # counts, though no agent is there to count it
        for name in cluster.coordinator.names:
            cluster.start(name)

    cluster = crawl(WEB, tmp_path, SEED, workers=2, delay_s=DELAY_S, time_s=2.5, act=start_late)
    assert cluster.coordinator.stopping == "time"
    (tmp_path / "lycosa.toml").write_text(to_toml(cluster.settings))
    status(tmp_path)
    assert " still queued; its time of 2.5 s is used up: a larger --time continues\n" in capsys.readouterr().out


@pytest.mark.slow
def test_stopped_cluster_goes_on_with_the_same_shards(tmp_path: Path) -> None:
    async def stop(cluster: MemoryCluster) -> None:
        await asyncio.sleep(2)
        cluster.coordinator.stop("interrupted")

    first = crawl(WEB, tmp_path, SEED, workers=3, delay_s=DELAY_S, act=stop)
    second = crawl(WEB, tmp_path, SEED, workers=3, delay_s=DELAY_S)
    assert 0 < first.coordinator.stats().pages < second.coordinator.stats().pages
    both = first.fetched() + second.fetched()
    assert set(both) == truth_of(WEB, [SEED], scope="any", mine="ancestors").pages
    assert max(both.values()) == 1


def test_incarnation_is_never_given_twice(tmp_path: Path) -> None:
    first = crawl(WEB, tmp_path, SEED, workers=2, delay_s=DELAY_S, pages=5)
    second = crawl(WEB, tmp_path, SEED, workers=2, delay_s=DELAY_S, pages=9)
    given = [agent.incarnation for cluster in (first, second) for agent in cluster.agents.values()]
    assert len(set(given)) == len(given)


def by_shard(into: Path) -> dict[str, set[bytes]]:
    """The hosts that every shard has, by their key."""
    found = {}
    for folder in sorted((into / "shards").iterdir()):
        with CollectionStore.open(folder, read_only=True) as shard:
            found[folder.name] = {key for key, _ in shard.state.walk(Family.HOST)}
    return found


def assert_one_view(cluster: MemoryCluster, into: Path) -> None:
    """Every known URL is counted once over all shards, and every host is where the table says."""
    with open_to_read(into) as whole:
        stats = stats_of(whole)
        states = Counter(UrlRow.unpack(row).state for _, row in whole.state.walk(Family.URL))
    assert stats.known == states.total()
    assert stats.pages + stats.redirects + stats.sitemaps == states[UrlState.DONE]
    owners = cluster.coordinator.table
    for name, hosts in by_shard(into).items():
        assert {owners.owner_of_bucket(key[:2]) for key in hosts} <= {name}


def test_agent_that_joins_gets_its_share_and_nothing_is_lost_or_asked_twice(tmp_path: Path) -> None:
    async def join(cluster: MemoryCluster) -> None:
        await asyncio.sleep(2)
        for name in cluster.coordinator.join([""]):
            cluster.start(name)

    cluster = crawl(WEB, tmp_path, SEED, workers=2, delay_s=DELAY_S, act=join)
    assert cluster.coordinator.table.epoch == 2
    fetched = cluster.fetched()
    assert set(fetched) == truth_of(WEB, [SEED], scope="any", mine="ancestors").pages
    assert max(fetched.values()) == 1
    findings = audit(WEB.settings, cluster.entries(), AuditRules(delay_s=DELAY_S))
    assert findings.is_clean, findings.broken()[:5]
    assert cluster.webs["s2"][0].entries
    assert_one_view(cluster, tmp_path)


def test_agent_that_leaves_hands_everything_over(tmp_path: Path) -> None:
    async def leave(cluster: MemoryCluster) -> None:
        await asyncio.sleep(2)
        cluster.coordinator.leave(["s1"])

    cluster = crawl(WEB, tmp_path, SEED, workers=3, delay_s=DELAY_S, act=leave)
    assert cluster.coordinator.names == ["s0", "s2"]
    fetched = cluster.fetched()
    assert set(fetched) == truth_of(WEB, [SEED], scope="any", mine="ancestors").pages
    assert max(fetched.values()) == 1
    findings = audit(WEB.settings, cluster.entries(), AuditRules(delay_s=DELAY_S))
    assert findings.is_clean, findings.broken()[:5]
    assert by_shard(tmp_path)["s1"] == set()
    assert_one_view(cluster, tmp_path)


def test_only_members_can_leave_and_one_has_to_stay(tmp_path: Path) -> None:
    coordinator = Coordinator(tmp_path, CrawlSettings(seeds=[SEED]))
    coordinator.create_members(["", ""])
    for names, words in ((["s9"], "cannot take s9 out of s0, s1"), (["s0", "s1"], "cannot take s0, s1 out")):
        with pytest.raises(SettingsError, match=words):
            coordinator.leave(names)
    coordinator.leave(["s0"])
    with pytest.raises(ClusterError, match="hosts are moving already"):
        coordinator.join([""])


def test_new_members_go_where_there_is_room(tmp_path: Path) -> None:
    coordinator = Coordinator(tmp_path, CrawlSettings(seeds=[SEED]))
    coordinator.create_members(["small", "large", "large"])
    machines = ["small", "small", *["large"] * 4, "new"]
    assert coordinator.least_loaded(4, machines) == ["large", "large", "new", "small"]
    assert coordinator.least_loaded(2, []) == ["", ""]


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_agents_that_die_while_hosts_move_lose_nothing(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)

    async def stir(cluster: MemoryCluster) -> None:
        await asyncio.sleep(1 + chance.random())
        for name in cluster.coordinator.join([""]):
            cluster.start(name)
        for _ in range(3):
            await asyncio.sleep(chance.random() * 0.7)
            name = chance.choice([name for name in cluster.coordinator.names if name in cluster.tasks])
            await cluster.kill(name)
            await asyncio.sleep(chance.random() * 0.5)
            cluster.start(name)

    cluster = crawl(WEB, tmp_path, SEED, workers=2, delay_s=DELAY_S, act=stir)
    assert set(cluster.fetched()) == truth_of(WEB, [SEED], scope="any", mine="ancestors").pages
    findings = audit(WEB.settings, cluster.entries(), AuditRules(delay_s=DELAY_S))
    assert findings.is_clean, findings.broken()[:5]
    assert_one_view(cluster, tmp_path)
