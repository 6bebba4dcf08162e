"""What goes wrong with one member does not end the others: failures again and again, and clocks that are wrong."""

from pathlib import Path

from lycosa.cluster.coordinator import ClockSkew, Coordinator
from lycosa.cluster.heartbeat import AgentReport
from lycosa.cluster.termination import ALL_RESTING_S, RECENT_S, RESTART_PAUSE_S, MemberFailure, MemberHealth
from lycosa.crawl.stats import CrawlStats
from lycosa.settings import CrawlSettings

FULL = MemberFailure("the disk is full", True)


def ailing(*names: str) -> MemberHealth:
    one = MemberHealth()
    for name in names:
        for at in range(3):
            one.failed(name, FULL, float(at))
    return one


def test_member_that_fails_is_started_at_once_and_less_often_when_that_goes_on() -> None:
    one = MemberHealth()
    for at in (0.0, 1.0):
        one.failed("s1", FULL, at)
        assert one.may_start("s1", at)
    one.failed("s1", FULL, 2.0)
    assert not one.may_start("s1", 2.0 + RESTART_PAUSE_S - 0.1)
    assert one.may_start("s1", 2.0 + RESTART_PAUSE_S)


def test_others_go_on_for_as_long_as_they_have_work() -> None:
    one = ailing("s1")
    assert one.verdict(["s0", "s1"], [], 50.0) is None
    assert one.verdict(["s0", "s1"], ["s0"], 50.0) is None
    assert one.verdict(["s0", "s1"], [], 50.0 + ALL_RESTING_S) is None  # it had work again
    assert one.verdict(["s0", "s1"], ["s0"], 60.0) is None
    assert one.verdict(["s0", "s1"], ["s0"], 60.0 + ALL_RESTING_S) == FULL


def test_crawl_whose_members_all_fail_ends_at_once() -> None:
    assert ailing("s0", "s1").verdict(["s0", "s1"], [], 3.0) == FULL


def test_member_that_went_well_for_long_does_not_ail() -> None:
    one = ailing("s1")
    assert one.ails("s1", 3.0)
    assert not one.ails("s1", 3.0 + RECENT_S)
    assert one.verdict(["s0", "s1"], ["s0"], 3.0 + RECENT_S) is None


def test_clock_that_is_wrong_is_named_once_a_start() -> None:
    clocks = ClockSkew()
    assert clocks.warning("s1", 1, "north", theirs=1010.0, ours=1000.0) == ""
    words = clocks.warning("s1", 1, "north", theirs=4600.0, ours=1000.0)
    assert words.startswith("s1: the clock of north is 3,600 s ahead of the coordinator's")
    assert clocks.warning("s1", 1, "north", theirs=4600.0, ours=1000.0) == ""
    assert "behind" in clocks.warning("s1", 2, "north", theirs=0.5, ours=1000.0)


def test_coordinator_hears_whose_clock_is_wrong_and_goes_on(tmp_path: Path) -> None:
    coordinator = Coordinator(tmp_path, CrawlSettings(seeds=["http://a.example/"]))
    coordinator.found(["", ""])
    incarnation = coordinator.enrol("s1").incarnation
    orders = coordinator.beat(
        AgentReport(name="s1", incarnation=incarnation, epoch=1, stats=CrawlStats(), unix=1.0, machine="north")
    )
    assert not orders.is_void
    (words,) = coordinator.take_warnings()
    assert "clock of north" in words
