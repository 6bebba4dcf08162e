"""Address leases: one holder at a time, everyone gets one, and who is gone loses it."""

import random
from pathlib import Path

from lycosa.cluster.coordinator import Coordinator
from lycosa.cluster.heartbeat import AgentOrders, AgentReport
from lycosa.cluster.leases import ADDRESS_LEASE_S, AGENT_LEASE_S, RENEW_S, TURN_S, AddressLeases, HeldAddresses
from lycosa.crawl.stats import CrawlStats
from lycosa.settings import CrawlSettings

ADDRESS = "192.0.2.1"


def test_second_agent_waits_until_the_first_gives_back() -> None:
    leases = AddressLeases()
    assert leases.request("a", ADDRESS, 0.0) == ADDRESS_LEASE_S
    assert leases.request("b", ADDRESS, 1.0) == 0.0
    assert leases.contended("a", 2.0) == {ADDRESS: False}
    assert leases.request("b", ADDRESS, TURN_S - 0.5) == 0.0
    assert leases.contended("a", TURN_S) == {ADDRESS: True}
    leases.release("a", ADDRESS)
    assert leases.request("a", ADDRESS, TURN_S) == 0.0  # whoever waited is next
    assert leases.request("b", ADDRESS, TURN_S) == ADDRESS_LEASE_S


def test_agent_that_is_gone_loses_the_address_when_its_time_is_over() -> None:
    leases = AddressLeases()
    leases.request("a", ADDRESS, 0.0)
    assert leases.request("b", ADDRESS, ADDRESS_LEASE_S - 0.1) == 0.0
    assert leases.request("b", ADDRESS, ADDRESS_LEASE_S) == ADDRESS_LEASE_S


def test_agent_that_no_longer_asks_holds_up_nobody() -> None:
    leases = AddressLeases()
    leases.request("a", ADDRESS, 0.0)
    leases.request("b", ADDRESS, 1.0)
    leases.release("a", ADDRESS)
    assert leases.request("c", ADDRESS, 10.0) == ADDRESS_LEASE_S


def test_new_coordinator_grants_nothing_before_it_has_heard_who_holds_what() -> None:
    leases = AddressLeases(quiet_until=ADDRESS_LEASE_S)
    assert leases.request("b", ADDRESS, 1.0) == 0.0
    leases.restore("a", ADDRESS, 1.5)
    leases.quiet_until = 0.0
    assert leases.request("b", ADDRESS, 2.0) == 0.0
    assert leases.request("a", ADDRESS, 2.0) == ADDRESS_LEASE_S


def test_never_two_agents_think_that_they_may_ask() -> None:
    """Three agents with lost beats and late answers: what each believes never overlaps with another's."""
    chance = random.Random(3)
    leases = AddressLeases()
    agents = {name: HeldAddresses() for name in "abc"}
    busy_until = dict.fromkeys(agents, 0.0)
    served: set[str] = set()
    now = 0.0
    for _ in range(3_000):
        now += chance.random() * 0.4
        name = chance.choice("abc")
        held = agents[name]
        held.release_idle(lambda _, name=name, at=now: int(busy_until[name] > at), now)
        if chance.random() < 0.9:  # the heartbeat arrives
            for address in held.releases():
                leases.release(name, address)
            granted = {a: seconds for a in held.requests(now) if (seconds := leases.request(name, a, now))}
            contended = leases.contended(name, now)
            if chance.random() < 0.9:  # and so does the answer
                held.on_granted(granted, contended, now)
        if held.may_request(ADDRESS, "host", now):
            assert all(until <= now for other, until in busy_until.items() if other != name)
            busy_until[name] = now + 0.3
            served.add(name)
    assert served == {"a", "b", "c"}


def beat(coordinator: Coordinator, name: str, incarnation: int, **words: object) -> AgentOrders:
    report = AgentReport(name=name, incarnation=incarnation, epoch=1, stats=CrawlStats(), **words)  # type: ignore[arg-type]
    return coordinator.heartbeat(report)


def test_new_coordinator_gives_nobody_an_address_that_another_one_holds(tmp_path: Path) -> None:
    settings = CrawlSettings(seeds=["http://a.example/"])
    first = Coordinator(tmp_path, settings)
    first.create_members(["", ""])
    given = {name: first.enrol(name).incarnation for name in ("s0", "s1")}
    for name in ("s0", "s1"):
        beat(first, name, given[name])
    assert beat(first, "s0", given["s0"], wants=(ADDRESS,)).granted
    second = Coordinator(tmp_path, settings)
    boot = beat(second, "s1", given["s1"], boot="old", wants=(ADDRESS,)).boot
    beat(second, "s0", given["s0"], boot="old")
    assert not beat(second, "s1", given["s1"], boot=boot, wants=(ADDRESS,)).granted
    assert beat(second, "s0", given["s0"], boot=boot, holds=(ADDRESS,)).contended == {ADDRESS: False}
    assert not beat(second, "s1", given["s1"], boot=boot, wants=(ADDRESS,)).granted


def test_address_that_others_wait_for_is_given_back_when_there_is_nothing_to_ask() -> None:
    held = HeldAddresses()
    held.on_granted({ADDRESS: ADDRESS_LEASE_S}, {}, 0.0)
    assert held.may_request(ADDRESS, "host", 0.5)
    held.release_idle(lambda _: 0, 1.0)
    assert held.releases() == ()
    held.on_granted({}, {ADDRESS: False}, 1.0)
    held.release_idle(lambda _: 1, 1.5)  # something is under way
    assert held.releases() == ()
    held.release_idle(lambda _: 0, 1.7)
    assert held.releases() == (ADDRESS,)
    assert not held.may_request(ADDRESS, "host", 1.8)
    assert held.has_new_requests


def test_address_is_renewed_in_time_to_outlast_a_lease() -> None:
    held = HeldAddresses()
    held.on_granted({ADDRESS: ADDRESS_LEASE_S}, {}, 0.0)
    assert held.requests(1.0) == ()
    assert held.requests(ADDRESS_LEASE_S - RENEW_S + 0.1) == (ADDRESS,)
    assert RENEW_S > AGENT_LEASE_S
