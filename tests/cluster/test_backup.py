"""A crawl with a central store: archives travel there and are read there; a shard whose disk is gone comes back."""

import asyncio
import random
import re
import shutil
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from lycosa.cluster.checkpoints import fetch_copies, latest_checkpoint
from lycosa.cluster.run import ShardedFolder
from lycosa.errors import StoreError
from lycosa.frontier.forwarding import ForwardedUrl
from lycosa.frontier.rows import UrlRow, UrlState
from lycosa.graph.links import links_of
from lycosa.inspect import open_to_read, stats_of
from lycosa.records import Family
from lycosa.recrawl.versions import StoredDocuments
from lycosa.settings import CrawlSettings
from lycosa.settings.sources import to_toml
from lycosa.simweb import SimSettings, SimWeb
from lycosa.simweb.log import AuditRules, audit
from lycosa.simweb.truth import truth_of
from lycosa.store import WarcLocation
from lycosa.store.central import open_central_store
from lycosa.store.page_rows import unpack_page
from lycosa.web.url import url_from_key, url_key
from proof.ground.memory_cluster import MemoryCluster, crawl
from tests.crawl.consistency import problems

WEB = SimWeb(SimSettings(hosts=8, pages=240, seed=5))
SEED = f"{WEB.linker.origin(0)}/"
DELAY_S = 0.05


def assert_whole(cluster: MemoryCluster, into: Path) -> None:
    """The truth, politely; every known URL once over all shards; every page's record can be read."""
    assert set(cluster.fetched()) == truth_of(WEB, [SEED], scope="any", mine="ancestors").pages
    findings = audit(WEB.settings, cluster.entries(), AuditRules(delay_s=DELAY_S))
    assert findings.is_clean, findings.broken()[:5]
    with open_to_read(into) as whole:
        states = Counter(UrlRow.unpack(row).state for _, row in whole.state.walk(Family.URL))
        stats = stats_of(whole)
        assert stats.known == states.total()
        assert stats.pages + stats.redirects + stats.sitemaps == states[UrlState.DONE]
        pages = {url_from_key(key): unpack_page(row) for key, row in whole.state.walk(Family.PAGE)}
        contents = StoredDocuments(whole)
        for url, page in pages.items():
            if page.place:
                assert whole.record(WarcLocation.unpack(page.place)).url == url
                assert page.status != 200 or contents.read(page) is not None


def again(cluster: MemoryCluster) -> int:
    """Pages that were fetched more than once."""
    fetched = cluster.fetched()
    return fetched.total() - len(fetched)


@pytest.mark.parametrize("checkpoint_s", [None, 2.0])
def test_archives_travel_to_the_store_and_one_view_reads_them_there(tmp_path: Path, checkpoint_s: float | None) -> None:
    into, place = tmp_path / "crawl", tmp_path / "store"
    manners = {"delay_s": DELAY_S, "warc_bytes": 30_000, "store": str(place), "checkpoint_s": checkpoint_s}
    cluster = crawl(WEB, into, SEED, workers=2, **manners)
    assert_whole(cluster, into)
    assert [problems(into / "shards" / name) for name in cluster.coordinator.names] == [[], []]
    assert not again(cluster)
    assert not list(into.glob("shards/*/warc/*.warc.gz"))
    assert len(list(place.glob("warc/*.warc.zst"))) > 6
    assert not [file for file in place.rglob("*") if ".new-" in file.name]
    reports = cluster.coordinator.reports()
    assert all(report.stored_bytes and not report.unstored and not report.trouble for report in reports)


def test_store_that_vanished_is_missed_before_anything_starts_and_not_replaced(tmp_path: Path) -> None:
    into, place = tmp_path / "crawl", tmp_path / "store"
    settings = CrawlSettings(seeds=(SEED,), workers=2, delay_s=DELAY_S, store=str(place))
    with closing(ShardedFolder(into)) as folder:
        folder.prepare(settings)
        place.rename(tmp_path / "early")  # nothing was brought yet: a new one does as well
        folder.prepare(settings)
    cluster = crawl(WEB, into, SEED, workers=2, delay_s=DELAY_S, store=str(place))
    assert cluster.coordinator.names
    kept, files = (into / "cluster.json").read_bytes(), len(list(place.glob("warc/*.warc.zst")))
    place.rename(tmp_path / "away")

    missing = f"{into} has {files} archive files in {place}, which holds no store: is it mounted?"
    with closing(ShardedFolder(into)) as folder, pytest.raises(StoreError, match=re.escape(missing)):
        folder.prepare(settings.replace(workers=3))
    with pytest.raises(StoreError):
        fetch_copies(into)
    place.mkdir()  # where it was mounted
    with closing(ShardedFolder(into)) as folder:
        shutil.rmtree(into / "shards")  # they are on other machines
        with pytest.raises(StoreError, match=r"has what its shards brought in .* is it mounted"):
            folder.prepare(settings)
        assert (into / "cluster.json").read_bytes() == kept
        assert not list(place.iterdir())
        place.rmdir()
        (tmp_path / "away").rename(place)
        folder.prepare(settings)


def test_shards_of_other_machines_are_read_from_their_copies(tmp_path: Path) -> None:
    into, elsewhere = tmp_path / "crawl", tmp_path / "elsewhere"
    (into / "shards").mkdir(parents=True)
    manners = {"delay_s": DELAY_S, "store": str(tmp_path / "store"), "pages": 60}
    cluster = crawl(WEB, into, SEED, workers=2, **manners)
    (into / "lycosa.toml").write_text(to_toml(cluster.settings))
    with open_to_read(into) as whole:
        before = list(whole.state.walk(Family.PAGE))
        links = [links_of(whole, url_from_key(key)) for key, _ in before]
    (into / "shards" / "s1").rename(elsewhere)
    assert list(fetch_copies(into)) == ["s1"]
    assert list(fetch_copies(into)) == ["s1"]
    with open_to_read(into) as whole:
        assert list(whole.state.walk(Family.PAGE)) == before
        assert [links_of(whole, url_from_key(key)) for key, _ in before] == links
        assert all(
            whole.record(WarcLocation.unpack(unpack_page(row).place)) for _, row in before if unpack_page(row).place
        )
    elsewhere.rename(into / "shards" / "s1")
    assert fetch_copies(into) == {}


def pages_since(cluster: MemoryCluster, name: str, since_s: float) -> int:
    entries = [entry for memory in cluster.webs[name] for entry in memory.entries]
    return sum(entry.status == 200 and entry.end > since_s for entry in entries)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_shards_whose_disks_are_gone_are_restored_and_nothing_is_lost(tmp_path: Path, seed: int) -> None:
    into, place, chance = tmp_path / "crawl", tmp_path / "store", random.Random(seed)
    lost = 0

    async def wreck(cluster: MemoryCluster) -> None:
        nonlocal lost
        for _ in range(5):
            await asyncio.sleep(1.0 + 2 * chance.random())
            name = chance.choice(cluster.coordinator.names)
            if name not in cluster.tasks or cluster.coordinator.is_over:
                continue
            backup = cluster.agents[name].backup
            assert backup is not None
            await cluster.kill(name)
            lost += pages_since(cluster, name, backup.covers_s - 1.0)
            shutil.rmtree(into / "shards" / name)
            await asyncio.sleep(chance.random())
            cluster.start(name)

    manners = {"delay_s": DELAY_S, "store": str(place), "checkpoint_s": 1.5}
    cluster = crawl(WEB, into, SEED, workers=3, act=wreck, **manners)
    assert_whole(cluster, into)
    assert [problems(into / "shards" / name) for name in cluster.coordinator.names] == [[], [], []]
    assert lost
    assert again(cluster) <= lost
    assert all(latest_checkpoint(open_central_store(str(place)), name) for name in cluster.coordinator.names)


@pytest.mark.slow
def test_store_that_is_away_for_a_while_stops_nothing_and_gets_everything_later(tmp_path: Path) -> None:
    into, place = tmp_path / "crawl", tmp_path / "store"

    async def take_away(cluster: MemoryCluster) -> None:
        await asyncio.sleep(1.0)
        place.rename(tmp_path / "away")
        before = cluster.coordinator.stats().pages
        await asyncio.sleep(2.5)
        assert cluster.coordinator.stats().pages > before + 20
        assert any("is away" in report.trouble for report in cluster.coordinator.reports())
        assert not place.exists()
        assert list(into.glob("shards/*/warc/*.warc.gz"))
        (tmp_path / "away").rename(place)

    manners = {"delay_s": DELAY_S, "store": str(place), "checkpoint_s": 2.0, "warc_bytes": 30_000}
    cluster = crawl(WEB, into, SEED, workers=2, act=take_away, **manners)
    assert_whole(cluster, into)
    assert not list(into.glob("shards/*/warc/*.warc.gz"))
    assert not any(report.trouble for report in cluster.coordinator.reports())


@pytest.mark.slow
def test_url_that_was_added_is_there_when_the_disk_is_gone_right_after(tmp_path: Path) -> None:
    into, wish = tmp_path / "crawl", f"{WEB.linker.origin(3)}/nobody-links-here.html"

    async def add(cluster: MemoryCluster) -> None:
        await asyncio.sleep(1.0)
        name = cluster.coordinator.table.owner("h3.sim")
        await cluster.agents[name].add_urls([wish])
        await cluster.kill(name)
        shutil.rmtree(into / "shards" / name)
        cluster.start(name)

    manners = {"delay_s": DELAY_S, "store": str(tmp_path / "store"), "checkpoint_s": 60.0}
    crawl(WEB, into, SEED, workers=2, act=add, **manners)
    with open_to_read(into) as whole:
        assert whole.state.get(Family.URL, url_key(wish)) is not None


@pytest.mark.slow
def test_what_a_shard_sent_before_it_left_survives_the_disks_of_the_others(tmp_path: Path) -> None:
    into, found = tmp_path / "crawl", f"{WEB.linker.origin(3)}/nobody-else-links-here.html"

    async def leave(cluster: MemoryCluster) -> None:
        await asyncio.sleep(2)
        leaver, agent = cluster.tasks["s2"], cluster.agents["s2"]
        cluster.coordinator.leave(["s2"])
        while agent.hosts.next_table is None:  # noqa: ASYNC110 -- no event tells
            await asyncio.sleep(0.02)
        agent.send([ForwardedUrl(found, depth=1)])  # nobody takes it before the move is over, and all have been copied
        await asyncio.wait([leaver])
        for name in ("s0", "s1"):
            await cluster.kill(name)
            shutil.rmtree(into / "shards" / name)
            cluster.start(name)

    manners = {"delay_s": DELAY_S, "store": str(tmp_path / "store"), "checkpoint_s": 600.0}
    cluster = crawl(WEB, into, SEED, workers=3, act=leave, **manners)
    assert cluster.coordinator.names == ["s0", "s1"]
    assert set(cluster.fetched()) == truth_of(WEB, [SEED], scope="any", mine="ancestors").pages
    with open_to_read(into) as whole:
        assert whole.state.get(Family.URL, url_key(found)) is not None


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_disks_that_go_while_hosts_move_lose_nothing(tmp_path: Path, seed: int) -> None:
    into, place, chance = tmp_path / "crawl", tmp_path / "store", random.Random(seed)

    async def stir(cluster: MemoryCluster) -> None:
        await asyncio.sleep(1 + chance.random())
        for name in cluster.coordinator.join([""]):
            cluster.start(name)
        for _ in range(4):
            await asyncio.sleep(chance.random() * 0.7)
            name = chance.choice([name for name in cluster.coordinator.names if name in cluster.tasks])
            await cluster.kill(name)
            shutil.rmtree(into / "shards" / name, ignore_errors=True)
            await asyncio.sleep(chance.random() * 0.3)
            cluster.start(name)

    manners = {"delay_s": DELAY_S, "store": str(place), "checkpoint_s": 3.0}
    cluster = crawl(WEB, into, SEED, workers=2, act=stir, **manners)
    assert cluster.coordinator.table.epoch == 2
    assert_whole(cluster, into)
