"""What goes wrong with one member does not end the others: failures again and again, and clocks that are wrong."""

import time
from pathlib import Path

from lycosa.cluster.coordinator import Coordinator
from lycosa.cluster.heartbeat import AgentReport
from lycosa.cluster.termination import ALL_RESTING_S, RECENT_FAILURES_S, RESTART_PAUSE_S, MemberFailure, MemberHealth
from lycosa.crawl.stats import CrawlStats
from lycosa.settings import CrawlSettings

FULL = MemberFailure("the disk is full", True)


def ailing(*names: str) -> MemberHealth:
    one = MemberHealth()
    for name in names:
        for at in range(3):
            one.record_failure(name, FULL, float(at))
    return one


def test_member_that_fails_is_started_at_once_and_less_often_when_that_goes_on() -> None:
    one = MemberHealth()
    for at in (0.0, 1.0):
        one.record_failure("s1", FULL, at)
        assert one.may_start("s1", at)
    one.record_failure("s1", FULL, 2.0)
    assert not one.may_start("s1", 2.0 + RESTART_PAUSE_S - 0.1)
    assert one.may_start("s1", 2.0 + RESTART_PAUSE_S)


def test_others_go_on_for_as_long_as_they_have_work() -> None:
    one = ailing("s1")
    assert one.crawl_failure(["s0", "s1"], [], 50.0) is None
    assert one.crawl_failure(["s0", "s1"], ["s0"], 50.0) is None
    assert one.crawl_failure(["s0", "s1"], [], 50.0 + ALL_RESTING_S) is None  # it had work again
    assert one.crawl_failure(["s0", "s1"], ["s0"], 60.0) is None
    assert one.crawl_failure(["s0", "s1"], ["s0"], 60.0 + ALL_RESTING_S) == FULL


def test_crawl_whose_members_all_fail_ends_at_once() -> None:
    assert ailing("s0", "s1").crawl_failure(["s0", "s1"], [], 3.0) == FULL


def test_member_that_went_well_for_long_does_not_ail() -> None:
    one = ailing("s1")
    assert one.is_failing("s1", 3.0)
    assert not one.is_failing("s1", 3.0 + RECENT_FAILURES_S)
    assert one.crawl_failure(["s0", "s1"], ["s0"], 3.0 + RECENT_FAILURES_S) is None


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
