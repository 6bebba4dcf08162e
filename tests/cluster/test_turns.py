"""Addresses in turns: one holder at a time, everyone gets one, and who is gone loses it."""

import random
from pathlib import Path

from lycosa.cluster.coordinator import Coordinator
from lycosa.cluster.heartbeat import AgentOrders, AgentReport
from lycosa.cluster.leases import ADDRESS_LEASE_S, AGENT_LEASE_S, RENEW_S, TURN_S, AddressLeases, HeldAddresses
from lycosa.cluster.termination import PageQuota, TerminationDetector
from lycosa.crawl.stats import CrawlStats
from lycosa.settings import CrawlSettings

ADDRESS = "192.0.2.1"


def test_second_agent_waits_until_the_first_gives_back() -> None:
    turns = AddressLeases()
    assert turns.request("a", ADDRESS, 0.0) == ADDRESS_LEASE_S
    assert turns.request("b", ADDRESS, 1.0) == 0.0
    assert turns.contended("a", 2.0) == {ADDRESS: False}
    assert turns.request("b", ADDRESS, TURN_S - 0.5) == 0.0
    assert turns.contended("a", TURN_S) == {ADDRESS: True}
    turns.release("a", ADDRESS)
    assert turns.request("a", ADDRESS, TURN_S) == 0.0  # whoever waited is next
    assert turns.request("b", ADDRESS, TURN_S) == ADDRESS_LEASE_S


def test_agent_that_is_gone_loses_the_address_when_its_time_is_over() -> None:
    turns = AddressLeases()
    turns.request("a", ADDRESS, 0.0)
    assert turns.request("b", ADDRESS, ADDRESS_LEASE_S - 0.1) == 0.0
    assert turns.request("b", ADDRESS, ADDRESS_LEASE_S) == ADDRESS_LEASE_S


def test_agent_that_no_longer_asks_holds_up_nobody() -> None:
    turns = AddressLeases()
    turns.request("a", ADDRESS, 0.0)
    turns.request("b", ADDRESS, 1.0)
    turns.release("a", ADDRESS)
    assert turns.request("c", ADDRESS, 10.0) == ADDRESS_LEASE_S


def test_new_coordinator_grants_nothing_before_it_has_heard_who_holds_what() -> None:
    turns = AddressLeases(quiet_until=ADDRESS_LEASE_S)
    assert turns.request("b", ADDRESS, 1.0) == 0.0
    turns.restore("a", ADDRESS, 1.5)
    turns.quiet_until = 0.0
    assert turns.request("b", ADDRESS, 2.0) == 0.0
    assert turns.request("a", ADDRESS, 2.0) == ADDRESS_LEASE_S


def test_never_two_agents_think_that_they_may_ask() -> None:
    """Three agents with lost beats and late answers: what each believes never overlaps with another's."""
    chance = random.Random(3)
    turns = AddressLeases()
    agents = {name: HeldAddresses() for name in "abc"}
    busy_until = dict.fromkeys(agents, 0.0)
    served: set[str] = set()
    now = 0.0
    for _ in range(3_000):
        now += chance.random() * 0.4
        name = chance.choice("abc")
        visits = agents[name]
        visits.release_idle(lambda _, name=name, at=now: int(busy_until[name] > at), now)
        if chance.random() < 0.9:  # the beat arrives
            for address in visits.releases():
                turns.release(name, address)
            granted = {a: held for a in visits.requests(now) if (held := turns.request(name, a, now))}
            awaited = turns.contended(name, now)
            if chance.random() < 0.9:  # and so does the answer
                visits.on_granted(granted, awaited, now)
        if visits.may_request(ADDRESS, "host", now):
            assert all(until <= now for other, until in busy_until.items() if other != name)
            busy_until[name] = now + 0.3
            served.add(name)
    assert served == {"a", "b", "c"}


def test_caps_never_exceed_the_limit_and_all_of_it_is_used() -> None:
    chance = random.Random(5)
    allowance = PageQuota(1_000)
    used, caps = dict.fromkeys("abc", 0), dict.fromkeys("abc", 0)
    for _ in range(5_000):
        name = chance.choice("abc")
        used[name] = min(caps[name], used[name] + chance.randrange(10))
        caps[name] = allowance.update(name, used=used[name], cap=caps[name], wants=True, members="abc")
        assert sum(caps.values()) <= 1_000
    assert sum(used.values()) == 1_000


def test_quiet_needs_everyone_idle_twice_and_nothing_in_between() -> None:
    quiet = TerminationDetector()
    for name in "ab":
        quiet.record(name, (1, 7), "ab")
    assert not quiet.has_terminated("ab")
    quiet.record("a", (1, 7), "ab")
    quiet.record("b", (1, 8), "ab")  # it did something
    quiet.record("a", (1, 7), "ab")
    assert not quiet.has_terminated("ab")
    for name in "bab":
        quiet.record(name, (1, 8) if name == "b" else (1, 7), "ab")
    assert quiet.has_terminated("ab")
    quiet.record("b", None, "ab")
    assert not quiet.has_terminated("ab")


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
    visits = HeldAddresses()
    visits.on_granted({ADDRESS: ADDRESS_LEASE_S}, {}, 0.0)
    assert visits.may_request(ADDRESS, "host", 0.5)
    visits.release_idle(lambda _: 0, 1.0)
    assert visits.releases() == ()
    visits.on_granted({}, {ADDRESS: False}, 1.0)
    visits.release_idle(lambda _: 1, 1.5)  # something is under way
    assert visits.releases() == ()
    visits.release_idle(lambda _: 0, 1.7)
    assert visits.releases() == (ADDRESS,)
    assert not visits.may_request(ADDRESS, "host", 1.8)
    assert visits.has_new_requests


def test_address_is_renewed_in_time_to_outlast_a_lease() -> None:
    visits = HeldAddresses()
    visits.on_granted({ADDRESS: ADDRESS_LEASE_S}, {}, 0.0)
    assert visits.requests(1.0) == ()
    assert visits.requests(ADDRESS_LEASE_S - RENEW_S + 0.1) == (ADDRESS,)
    assert RENEW_S > AGENT_LEASE_S
