"""Assignments of a crawl: by letters, by address, by place; all of a host is with one agent at any time."""

from pathlib import Path

import pytest

from lycosa.cluster.assignment import (
    FIRST_PAUSE_S,
    LearnedAddresses,
    ObservedAddresses,
    Scheme,
    letter_sum,
    read_places_file,
)
from lycosa.cluster.coordinator import Coordinator
from lycosa.cluster.membership import load_cluster_state, save_cluster_state
from lycosa.errors import SettingsError
from lycosa.settings import CrawlSettings
from lycosa.simweb import SimSettings, SimWeb
from lycosa.simweb.log import AuditRules, audit
from lycosa.simweb.truth import truth_of
from lycosa.web.url import bucket_of
from proof.ground.memory_cluster import MemoryCluster, crawl

WEB = SimWeb(SimSettings(hosts=12, pages=300, addresses=4, seed=5))
SEED = f"{WEB.linker.origin(0)}/"
DELAY_S = 0.2
RULES = AuditRules(delay_s=DELAY_S)


def assert_whole(cluster: MemoryCluster) -> None:
    fetched = cluster.fetched()
    assert set(fetched) == truth_of(WEB, [SEED], scope="any", mine="ancestors").pages
    assert max(fetched.values()) == 1
    findings = audit(WEB.settings, cluster.entries(), RULES)
    assert findings.is_clean, findings.broken()[:5]


def askers(cluster: MemoryCluster) -> dict[tuple[str, str], list[str]]:
    """(address, host) → the agents that asked there, one after the other."""
    entries = [(e.end, e.address, e.host, name) for name, webs in cluster.webs.items() for w in webs for e in w.entries]
    found: dict[tuple[str, str], list[str]] = {}
    for _, address, host, name in sorted(entries):
        agents = found.setdefault((address, host), [])
        if not agents or agents[-1] != name:
            agents.append(name)
    return found


def assert_moved_once_to_the_owner(cluster: MemoryCluster) -> None:
    """A host is with the agent that its name drew, and then with the one that its address says, never back."""
    owners, hosts = cluster.coordinator.table, askers(cluster)
    assert owners.epoch > 1
    assert all(len(agents) <= 2 for agents in hosts.values())
    assert any(len(agents) == 2 and agents[-1] == owners.owner(host) for (_, host), agents in hosts.items())


@pytest.mark.slow
@pytest.mark.parametrize("assignment", ["letter-sum", "two-level"])
def test_papers_assignments_crawl_all_and_every_host_has_one_agent(tmp_path: Path, assignment: str) -> None:
    cluster = crawl(WEB, tmp_path, SEED, workers=4, delay_s=DELAY_S, assignment=assignment)
    assert_whole(cluster)
    asked = [{e.host for w in webs for e in w.entries} for webs in cluster.webs.values()]
    assert sum(map(len, asked)) == len(set.union(*asked)) == 12
    assert all(asked)  # numbered hosts are spread over all agents


def owners_by_letters(into: Path, *letters: str) -> list[str]:
    """The owners of twelve numbered hosts, in a collection that is begun or gone on with."""
    settings = CrawlSettings(seeds=[SEED], assignment="letter-sum", letters=letters)
    coordinator = Coordinator(into, settings)
    if coordinator.names:
        coordinator.require_same_assignment(settings)
    else:
        coordinator.create_members([""] * 5, scheme=Scheme.LETTER_SUM)
    return [coordinator.table.owner(f"h{number}-x.sim") for number in range(12)]


def test_setting_extends_the_table_of_letters_for_as_long_as_the_collection_lives(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    plain, extended = owners_by_letters(tmp_path / "plain"), owners_by_letters(tmp_path, "-=38")
    assert set(plain) == {"s0", "s1", "s2", "s3", "s4"}
    assert [f"s{(int(name[1:]) + 38) % 5}" for name in plain] == extended
    assert owners_by_letters(tmp_path, "-=38") == extended
    for other in ((), ("-=39",)):
        with pytest.raises(SettingsError, match="begun with other letters"):
            owners_by_letters(tmp_path, *other)


def test_collection_that_was_begun_when_digits_had_no_value_keeps_its_owners(tmp_path: Path) -> None:
    owners_by_letters(tmp_path)
    kept = load_cluster_state(tmp_path)
    kept.letters = {}
    save_cluster_state(tmp_path, kept)
    assert set(owners_by_letters(tmp_path)) == {f"s{letter_sum('hxsim') % 5}"}


@pytest.mark.slow
def test_ip_brings_the_hosts_of_an_address_to_one_agent(tmp_path: Path) -> None:
    cluster = crawl(WEB, tmp_path, SEED, workers=3, delay_s=DELAY_S, assignment="ip")
    assert_whole(cluster)
    assert_moved_once_to_the_owner(cluster)
    owners = cluster.coordinator.table
    of_address: dict[str, set[str]] = {}
    for address, host in askers(cluster):
        of_address.setdefault(address, set()).add(owners.owner(host))
    assert {len(names) for names in of_address.values()} == {1}


@pytest.mark.slow
def test_places_bring_hosts_to_agents_near_by(tmp_path: Path) -> None:
    machines = {"m1": "east", "m2": "west", "m3": "west"}
    places = ["127.0.0.0/8=east", *(f"127.1.0.{last}/32=west" for last in (2, 4))]
    cluster = crawl(WEB, tmp_path, SEED, delay_s=DELAY_S, machines=machines, places=places)
    assert_whole(cluster)
    assert_moved_once_to_the_owner(cluster)
    near, owners = {"east": {"s0"}, "west": {"s1", "s2"}}, cluster.coordinator.table
    seen = set()
    for address, host in askers(cluster):
        is_west = int(address.rpartition(".")[2]) % 2 == 0
        assert owners.owner(host) in near["west" if is_west else "east"]
        seen.add(owners.owner(host))
    assert seen == {"s0", "s1", "s2"}


def test_collection_keeps_its_assignment_and_places(tmp_path: Path) -> None:
    cluster = crawl(WEB, tmp_path, SEED, workers=2, delay_s=DELAY_S, pages=5)
    cluster.coordinator.require_same_assignment(cluster.settings)
    for update in ({"assignment": "ip"}, {"places": ("192.0.2.0/24=berlin",)}):
        with pytest.raises(SettingsError, match="was begun with"):
            cluster.coordinator.require_same_assignment(cluster.settings.replace(**update))


def test_bucket_keeps_the_first_address_that_was_told() -> None:
    observed, learned = ObservedAddresses(), LearnedAddresses()
    observed.record("a.example", "192.0.2.1")
    observed.record("a.example", "192.0.2.2")
    bucket = bucket_of("a.example")
    assert observed.unreported == {bucket: "192.0.2.1"}
    observed.on_reported(observed.unreported, is_new_coordinator=False)
    assert observed.unreported == {}
    learned.record({bucket: "192.0.2.1"}, {}, 0.0)
    learned.record({bucket: "192.0.2.9"}, {}, 0.0)
    assert not learned.is_due(FIRST_PAUSE_S / 2)
    assert learned.is_due(FIRST_PAUSE_S)
    assert learned.take(FIRST_PAUSE_S) == {bucket: "192.0.2.1"}
    learned.record({bucket: "192.0.2.9"}, {bucket: "192.0.2.1"}, FIRST_PAUSE_S)
    assert not learned.is_due(100.0)


def test_file_of_places(tmp_path: Path) -> None:
    file = tmp_path / "places"
    file.write_text("# where\n192.0.2.0/24 berlin\n\n2001:db8::/32  paris # six\n")
    assert read_places_file(file) == ["192.0.2.0/24=berlin", "2001:db8::/32=paris"]
    file.write_text("192.0.2.0/24\n")
    with pytest.raises(SettingsError, match="line 1"):
        read_places_file(file)
