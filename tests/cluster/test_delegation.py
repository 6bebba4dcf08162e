"""A robots.txt that redirects to another shard's host: its owner fetches it, in that host's pace."""

from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

from lycosa.records import Request, Response
from lycosa.simweb import SimSettings, SimWeb
from lycosa.simweb.log import AuditRules, audit
from lycosa.simweb.memory import MemoryWeb
from proof.ground.memory_cluster import MemoryCluster, crawl

WEB = SimWeb(SimSettings(hosts=8, pages=240, seed=5))
SEED = f"{WEB.linker.origin(0)}/"
DELAY_S = 0.2


class Redirecting(MemoryWeb):
    """Hosts whose robots.txt is at another host."""

    moved: ClassVar[dict[str, str]] = {}

    def start(self, request: Request, done: Callable[[Response], None]) -> None:
        target = self.moved.get(request.host)
        if target is None or not request.url.endswith("/robots.txt"):
            super().start(request, done)
            return

        def redirected(response: Response) -> None:
            done(Response(request.url, 302, headers={"location": target}, ended_s=response.ended_s))

        super().start(request, redirected)


class RedirectingCluster(MemoryCluster):
    make_web = Redirecting


def test_robots_of_another_shard_s_host_are_fetched_by_its_owner(tmp_path: Path) -> None:
    Redirecting.moved = {f"h{number}.sim": "http://h1.sim:8800/robots.txt" for number in range(2, 8)}
    cluster = crawl(WEB, tmp_path, SEED, workers=3, delay_s=DELAY_S, cluster_type=RedirectingCluster)
    owners = cluster.coordinator.table
    assert len({owners.owner(host) for host in Redirecting.moved}) == 3
    asked = [(name, e) for name, webs in cluster.webs.items() for w in webs for e in w.entries if e.host == "h1.sim"]
    assert {name for name, _ in asked} == {owners.owner("h1.sim")}
    assert sum(entry.path == "/robots.txt" for _, entry in asked) >= 3
    crawled = {e.host for e in cluster.entries() if e.status == 200 and e.path != "/robots.txt"}
    assert crawled >= set(Redirecting.moved)
    assert not cluster.coordinator.stats().failed
    late = [host for host in audit(WEB.settings, cluster.entries(), AuditRules(delay_s=DELAY_S)).hosts if host.early]
    assert late == []


def test_robots_elsewhere_that_lead_in_a_circle_end(tmp_path: Path) -> None:
    Redirecting.moved = {f"h{number}.sim": f"http://h{number % 7 + 1}.sim:8800/robots.txt" for number in range(1, 8)}
    cluster = crawl(WEB, tmp_path, SEED, workers=3, delay_s=0.05, cluster_type=RedirectingCluster)
    crawled = {e.host for e in cluster.entries() if e.status == 200 and e.path != "/robots.txt"}
    assert crawled >= {"h0.sim"}
