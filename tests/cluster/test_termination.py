"""When a crawl ends: a limit over all agents, nothing left to do anywhere, or only failing members left."""

import random
import time
from pathlib import Path

from lycosa.cluster.coordinator import Coordinator
from lycosa.cluster.heartbeat import AgentReport
from lycosa.cluster.termination import (
    ALL_RESTING_S,
    RECENT_FAILURES_S,
    RESTART_PAUSE_S,
    MemberFailure,
    MemberHealth,
    PageQuota,
    TerminationDetector,
)
from lycosa.crawl.stats import CrawlStats
from lycosa.settings import CrawlSettings

FULL = MemberFailure("the disk is full", True)


def failing(*names: str) -> MemberHealth:
    health = MemberHealth()
    for name in names:
        for at in range(3):
            health.record_failure(name, FULL, float(at))
    return health


def test_member_that_fails_is_started_at_once_and_less_often_when_that_goes_on() -> None:
    health = MemberHealth()
    for at in (0.0, 1.0):
        health.record_failure("s1", FULL, at)
        assert health.may_start("s1", at)
    health.record_failure("s1", FULL, 2.0)
    assert not health.may_start("s1", 2.0 + RESTART_PAUSE_S - 0.1)
    assert health.may_start("s1", 2.0 + RESTART_PAUSE_S)


def test_others_go_on_for_as_long_as_they_have_work() -> None:
    health = failing("s1")
    assert health.crawl_failure(["s0", "s1"], [], 50.0) is None
    assert health.crawl_failure(["s0", "s1"], ["s0"], 50.0) is None
    assert health.crawl_failure(["s0", "s1"], [], 50.0 + ALL_RESTING_S) is None  # it had work again
    assert health.crawl_failure(["s0", "s1"], ["s0"], 60.0) is None
    assert health.crawl_failure(["s0", "s1"], ["s0"], 60.0 + ALL_RESTING_S) == FULL


def test_crawl_whose_members_all_fail_ends_at_once() -> None:
    assert failing("s0", "s1").crawl_failure(["s0", "s1"], [], 3.0) == FULL


def test_member_that_went_well_for_long_is_not_failing() -> None:
    health = failing("s1")
    assert health.is_failing("s1", 3.0)
    assert not health.is_failing("s1", 3.0 + RECENT_FAILURES_S)
    assert health.crawl_failure(["s0", "s1"], ["s0"], 3.0 + RECENT_FAILURES_S) is None


def test_clock_that_is_wrong_is_named_once_a_start_and_the_crawl_goes_on(tmp_path: Path) -> None:
    coordinator = Coordinator(tmp_path, CrawlSettings(seeds=["http://a.example/"]))
    coordinator.create_members(["", ""])

    def warnings(incarnation: int, ahead_s: float) -> list[str]:
        unix = time.time() + ahead_s
        stats = CrawlStats()
        report = AgentReport(name="s1", incarnation=incarnation, epoch=1, stats=stats, unix=unix, machine="north")
        assert not coordinator.heartbeat(report).is_void
        return coordinator.take_warnings()

    first = coordinator.enrol("s1").incarnation
    assert warnings(first, 10.0) == []
    (sentence,) = warnings(first, 3600.5)
    assert sentence.startswith("s1: the clock of north is 3,600 s ahead of the coordinator's")
    assert warnings(first, 3600.5) == []
    (sentence,) = warnings(coordinator.enrol("s1").incarnation, -3600.0)
    assert "behind" in sentence


def test_caps_never_exceed_the_limit_and_all_of_it_is_used() -> None:
    chance = random.Random(5)
    quota = PageQuota(1_000)
    used, caps = dict.fromkeys("abc", 0), dict.fromkeys("abc", 0)
    for _ in range(5_000):
        name = chance.choice("abc")
        used[name] = min(caps[name], used[name] + chance.randrange(10))
        caps[name] = quota.update(name, used=used[name], cap=caps[name], wants=True, members="abc")
        assert sum(caps.values()) <= 1_000
    assert sum(used.values()) == 1_000


def test_termination_needs_everyone_idle_twice_and_nothing_in_between() -> None:
    detector = TerminationDetector()
    for name in "ab":
        detector.record(name, (1, 7), "ab")
    assert not detector.has_terminated("ab")
    detector.record("a", (1, 7), "ab")
    detector.record("b", (1, 8), "ab")  # it did something
    detector.record("a", (1, 7), "ab")
    assert not detector.has_terminated("ab")
    for name in "bab":
        detector.record(name, (1, 8) if name == "b" else (1, 7), "ab")
    assert detector.has_terminated("ab")
    detector.record("b", None, "ab")
    assert not detector.has_terminated("ab")
