"""With `exchange = "coordinator"` the coordinator looks up names and reads robots.txt, once for all shards."""

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from warcio.archiveiterator import ArchiveIterator

from lycosa.cluster.delegation import CentralLookups, CentralRobotsDownloader
from lycosa.crawl.host_rules import ROBOTS_BYTES
from lycosa.errors import ClusterError
from lycosa.inspect import open_to_read, stats_of
from lycosa.records import Failure, Request, Resolved, Response
from lycosa.settings import CrawlSettings
from lycosa.simweb import SimSettings, SimWeb
from lycosa.simweb.log import AuditRules, audit
from lycosa.simweb.memory import MemoryWeb, run_virtual
from lycosa.simweb.truth import truth_of
from proof.ground.memory_cluster import MemoryCluster, crawl

WEB = SimWeb(SimSettings(hosts=8, pages=80, addresses=3, seed=5))
SEED = f"{WEB.linker.origin(0)}/"
DELAY_S = 0.2
PRIVATE = WEB.layout.host_name(3)


class CountingWeb(MemoryWeb):
    """Counts what it is asked to resolve."""

    def __init__(self, web: SimWeb) -> None:
        super().__init__(web)
        self.names: Counter[str] = Counter()

    async def resolve(self, name: str) -> Resolved:
        self.names[name] += 1
        return await super().resolve(name)


class CountingCluster(MemoryCluster):
    make_web = CountingWeb


def robots_in(*webs: MemoryWeb) -> Counter[str]:
    return Counter(entry.host for web in webs for entry in web.entries if entry.path == "/robots.txt")


def archived_robots(into: Path) -> Counter[str]:
    """How often the shards have archived the robots.txt of each host."""
    found: Counter[str] = Counter()
    for path in into.glob("shards/*/warc/*.warc.gz"):
        with path.open("rb") as file:
            for record in ArchiveIterator(file):
                url = urlsplit(record.rec_headers.get_header("WARC-Target-URI") or "")
                found[url.hostname or ""] += record.rec_type == "response" and url.path == "/robots.txt"
    return +found


@pytest.mark.slow
def test_coordinator_looks_up_every_host_and_reads_its_robots_once_for_all_shards(tmp_path: Path) -> None:
    async def join(cluster: MemoryCluster) -> None:
        await asyncio.sleep(1)
        for name in cluster.coordinator.join([""]):
            cluster.start(name)

    cluster = crawl(
        WEB, tmp_path, SEED, workers=2, delay_s=DELAY_S, exchange="coordinator", act=join, cluster_type=CountingCluster
    )
    shards = [web for webs in cluster.webs.values() for web in webs]
    hosts = {entry.host for entry in cluster.entries()}
    assert len([web for web in shards if web.entries]) == 3
    assert robots_in(cluster.centre) == dict.fromkeys(hosts, 1)
    assert cluster.centre.names == dict.fromkeys(hosts, 1)
    assert not robots_in(*shards)
    assert not any(web.names for web in shards)
    fetched = cluster.fetched()
    assert set(fetched) == truth_of(WEB, [SEED], scope="any", mine="ancestors").pages
    assert max(fetched.values()) == 1
    findings = audit(WEB.settings, cluster.entries(), AuditRules(delay_s=DELAY_S))
    assert findings.is_clean, findings.broken()[:5]
    assert archived_robots(tmp_path) == dict.fromkeys(hosts, 1)


class LyingWeb(CountingWeb):
    """A name server that gives a private address for one host, whose server would answer."""

    async def resolve(self, name: str) -> Resolved:
        found = await super().resolve(name)
        return found if name != PRIVATE else Resolved(name, ("10.0.0.7",), ttl_s=300)


class LyingCluster(MemoryCluster):
    make_web = LyingWeb


@pytest.mark.slow
def test_coordinator_that_is_away_for_a_while_costs_no_host(tmp_path: Path) -> None:
    asked: Counter[str] = Counter()

    class Failing(MemoryCluster):
        """Every first call fails; of a robots.txt, after it was fetched."""

        async def look_up(self, name: str) -> Resolved:
            return self._unless_first(name, await super().look_up(name))

        async def fetch(self, request: Request) -> Response:
            return self._unless_first(request.url, await super().fetch(request))

        def _unless_first(self, what: str, answer: Any) -> Any:
            asked[what] += 1
            if asked[what] == 1:
                raise ClusterError("away")
            return answer

    cluster = crawl(WEB, tmp_path, SEED, workers=2, delay_s=DELAY_S, exchange="coordinator", cluster_type=Failing)
    assert set(cluster.fetched()) == truth_of(WEB, [SEED], scope="any", mine="ancestors").pages
    findings = audit(WEB.settings, cluster.entries(), AuditRules(delay_s=DELAY_S))
    assert findings.is_clean, findings.broken()[:5]
    assert set(robots_in(cluster.centre).values()) == {2}


@pytest.mark.slow
def test_shard_refuses_a_private_address_that_the_coordinator_hands_it(tmp_path: Path) -> None:
    cluster = crawl(WEB, tmp_path, SEED, workers=2, delay_s=DELAY_S, exchange="coordinator", cluster_type=LyingCluster)
    assert PRIVATE not in {entry.host for entry in cluster.entries()}
    with open_to_read(tmp_path) as whole:
        assert stats_of(whole).failed[Failure.ADDRESS_REFUSED] > 0


def robots_request(address: str) -> Request:
    url = f"{WEB.linker.origin(1)}/robots.txt"
    return Request(url, WEB.layout.host_name(1), 8800, address, body_limit_bytes=ROBOTS_BYTES)


def test_coordinator_connects_to_no_address_that_its_own_guard_refuses() -> None:
    async def main() -> Response:
        web = MemoryWeb(WEB)
        central = CentralLookups(CrawlSettings(), resolver=web, downloader=web)
        response = await central.fetch(robots_request("127.1.0.2"))
        assert not web.entries
        return response

    assert run_virtual(main()).failure is Failure.ADDRESS_REFUSED


def test_robots_asked_for_again_while_it_is_under_way_is_fetched_once() -> None:
    async def main() -> None:
        web = MemoryWeb(WEB)
        central = CentralLookups(CrawlSettings(allow_private=["127.0.0.0/8"]), resolver=web, downloader=web)
        both = await asyncio.gather(*(central.fetch(robots_request("127.1.0.2")) for _ in range(2)))
        assert len(web.entries) == 1
        assert both[0].status == both[1].status != 0

    run_virtual(main())


class Away:
    """A coordinator that is away."""

    async def look_up(self, name: str) -> Resolved:
        raise ClusterError("away")

    async def fetch(self, request: Request) -> Response:
        raise ClusterError("away")


def test_robots_fails_while_the_coordinator_is_away_and_is_cancelled_when_the_shard_stops() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        heard: list[Response] = []
        robots = CentralRobotsDownloader(MemoryWeb(WEB), Away(), loop.time)
        robots.start(robots_request("127.1.0.2"), heard.append)
        await asyncio.sleep(2)
        robots.start(robots_request("127.1.0.2"), heard.append)
        await asyncio.sleep(0)
        robots.cancel_all()
        await asyncio.sleep(2)
        assert [response.failure for response in heard] == [Failure.CONNECT, Failure.CANCELLED]

    run_virtual(main())
