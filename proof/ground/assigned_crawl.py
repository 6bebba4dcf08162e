"""A crawl of the simulated web by the product's shards, in one process on virtual time, as three systems would do it:

- ours: hosts by rendezvous, handed over when a crawler joins;
- that of paper 3: hosts by a key modulo the crawlers, of which there is one more after a join. A URL whose turn comes
  is matched with the key again and sent on if it is another's (figure 3 there); what a crawler has fetched nobody else
  knows;
- Nutch: a key modulo the crawlers, mixed with a number that is drawn anew for every round, so that hosts go elsewhere
  in each; one database for all, in which a URL that was fetched is found.

Who fetched what is read from the web's logs. Used by `make lab NAME=assignment`.
"""

import asyncio
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from lycosa.cluster.agent import Agent
from lycosa.cluster.assignment import AssignmentTable, Member, Scheme
from lycosa.cluster.coordinator import Coordinator
from lycosa.cluster.delegation import RobotsDelegation
from lycosa.cluster.membership import NO_PLACES
from lycosa.cluster.transfer import OwnedHosts
from lycosa.crawl import Engine
from lycosa.frontier import ForwardedUrl, Host, QueueEntry, Reason
from lycosa.simweb import AuditRules, SimWeb, audit, truth_of
from lycosa.web import domain_of
from proof.ground.memory_cluster import MemoryCluster, crawl

OURS = "rendezvous"
DELAY_S = 0.2
LOOK_S = 0.25

Key = Callable[[str], int]  # of a host


class AssignmentWay(NamedTuple):
    """How hosts are assigned; `key` None: by rendezvous. `rounds`: so many numbers are mixed in, one after the other,
    and there is one database for all."""

    name: str
    key: Key | None = None
    rounds: int = 0


class AssignedCrawl(NamedTuple):
    """What came of one crawl; shares in percent of the pages, hosts or sites that were fetched, or should have been."""

    pages_twice: float  # pages fetched by more than one crawler
    pages_of_shared_hosts: float  # pages of hosts of which more than one crawler fetched pages
    shared_sites: float  # registrable domains of several hosts of which more than one crawler fetched pages
    variation: float  # standard deviation over mean of the pages that the crawlers fetched
    missed: float
    messages: float  # a page, between crawlers
    bytes: float
    is_polite: bool


class _Turning:
    """What all crawlers of a crawl share: the number of the round, and the database of Nutch."""

    def __init__(self, way: AssignmentWay, seed: int) -> None:
        self.way, self._seed, self.round = way, seed, 0
        self.fetched: dict[str, str] = {}  # URL → who asked for it first

    def owner(self, host: str, members: tuple[Member, ...]) -> str:
        assert self.way.key is not None
        number = self.way.key(host)
        if self.way.rounds:
            mixed = (self._seed * 31 + self.round) * 0x9E3779B1
            number = (number ^ mixed) & 0x7FFFFFFF
        return members[number % len(members)].name


class _KeyTable(AssignmentTable, frozen=True, kw_only=True):
    """Owners by key, as of now."""

    turning: Any

    def owner(self, host: str) -> str:
        name: str = self.turning.owner(host, self.members)
        return name


class _KeyCoordinator(Coordinator):
    """One more crawler is one more at once: nothing is handed over."""

    turning: _Turning

    def _build_table(self, epoch: int, members: list[Member], addresses: dict[int, str]) -> AssignmentTable:
        return _KeyTable(epoch, tuple(members), Scheme.LETTER_SUM, turning=self.turning)

    def join(self, addresses: Iterable[str], places: Mapping[str, str] = NO_PLACES) -> list[str]:
        new = self._new_members(addresses, places)
        self._state.members, self._state.epoch = self._state.members + new, self._state.epoch + 1
        self._save()
        return [member.name for member in new]


class _KeyHosts(OwnedHosts):
    def adopt(self, engine: Engine, table: AssignmentTable) -> bool:
        self.table = table
        return True


class _KeyAgent(Agent):
    """Looks at every URL once more when its turn comes: is it still its own, has anybody fetched it?"""

    turning: _Turning

    def may_visit(self, address: str, host: str) -> bool:
        if self.engine is not None:
            self.engine.frontier.add_hook(self)
        return super().may_visit(address, host)

    def judge(self, host: Host, entry: QueueEntry, now_unix: float) -> Reason | float | None:
        href = host.origin + entry.path
        if self.turning.way.rounds:
            return None if self.turning.fetched.setdefault(href, self.name) == self.name else Reason.HOST_GIVEN_UP
        if self.owns(host.host):
            return None
        self.send([ForwardedUrl(href, entry.depth, entry.kind, entry.hops, entry.origin)])
        return Reason.HOST_GIVEN_UP

    def dropped(self, host: Host, entry: QueueEntry, reason: Reason) -> None: ...

    def gave_up(self, host: Host) -> None:
        return

    def puts_last(self, host: Host) -> bool:
        return False


class _KeyCluster(MemoryCluster):
    def __init__(self, *words: Any, way: AssignmentWay, seed: int, **settings: Any) -> None:
        self.turning = _Turning(way, seed)
        super().__init__(*words, **settings)

    def begin_round(self, round: int) -> None:
        if round != self.turning.round:
            self.turning.round = round
            for agent in self.agents.values():
                if agent.engine is not None:  # of what is to be sent some is its own now
                    agent.exchange.admit_own(agent.engine.receive)

    def make_coordinator(self, into: Path, now: Callable[[], float]) -> Coordinator:
        coordinator = _KeyCoordinator(into, self.settings, now=now)
        coordinator.turning = self.turning
        return coordinator

    def make_agent(self, enrolment: Any, **parts: Any) -> Agent:
        agent = _KeyAgent(enrolment, self, self, **parts)
        agent.turning = self.turning
        agent.hosts = _KeyHosts(agent.name, enrolment.table, None)
        agent.robots = RobotsDelegation(agent.hosts, self)
        return agent


def crawl_by(
    way: AssignmentWay, web: SimWeb, into: Path, *, crawlers: int, joins: bool, seed: int, exchange: str = "direct"
) -> AssignedCrawl:
    """Crawls all that can be reached; one more crawler joins when half of the pages are there."""
    start = f"{web.linker.origin(0)}/"
    wanted = truth_of(web, [start], scope="any", mine="ancestors").pages

    async def act(cluster: MemoryCluster) -> None:
        has_joined = not joins
        while not cluster.coordinator.is_over:
            done = cluster.coordinator.stats().pages / len(wanted)
            if isinstance(cluster, _KeyCluster):
                cluster.begin_round(int(done * way.rounds))
            if done >= 0.5 and not has_joined:
                has_joined = True
                for name in cluster.coordinator.join([""]):
                    cluster.start(name)
            await asyncio.sleep(LOOK_S)

    is_ours = way.key is None or (not joins and not way.rounds)  # the product assigns so by itself
    kind: Any = MemoryCluster if is_ours else partial(_KeyCluster, way=way, seed=seed)
    options = {"delay_s": DELAY_S, "exchange": exchange, "assignment": way.name if is_ours else OURS}
    cluster = crawl(web, into, start, workers=crawlers, act=act, cluster_type=kind, **options)
    return _outcome(cluster, web, wanted)


def _outcome(cluster: MemoryCluster, web: SimWeb, wanted: frozenset[str]) -> AssignedCrawl:
    by_page: dict[str, set[str]] = defaultdict(set)
    by_host: dict[str, set[str]] = defaultdict(set)
    by_site: dict[str, set[str]] = defaultdict(set)
    fetched: Counter[str] = Counter()
    hosts: dict[str, str] = {}
    for name in cluster.webs:
        for url in cluster.fetched(name):
            host = hosts[url] = url.split("/")[2].partition(":")[0]
            fetched[name] += 1
            for found, key in ((by_page, url), (by_host, host), (by_site, domain_of(host))):
                found[key].add(name)
    several = [site for site, count in Counter(map(domain_of, by_host)).items() if count > 1]
    reports = cluster.coordinator.reports()
    sent = sum(report.sent_bytes for report in reports) * cluster.hops
    return AssignedCrawl(
        pages_twice=_share(len(names) > 1 for names in by_page.values()),
        pages_of_shared_hosts=_share(len(by_host[host]) > 1 for host in hosts.values()),
        shared_sites=_share(len(by_site[site]) > 1 for site in several),
        variation=statistics.pstdev(fetched.values()) / statistics.mean(fetched.values()),
        missed=_share(url not in by_page for url in wanted),
        messages=cluster.messages / len(by_page),
        bytes=sent / len(by_page),
        is_polite=audit(web.settings, cluster.entries(), AuditRules(delay_s=DELAY_S)).is_clean,
    )


def _share(held: Iterable[bool]) -> float:
    return 100 * statistics.mean(map(float, held))
