"""`--visits N`: never more than N, whatever an earlier run has left queued; and of everything, the oldest first."""

from collections import Counter
from pathlib import Path

import pytest

from lycosa.api.crawl import Crawl
from lycosa.crawl.progress import Recrawl
from lycosa.simweb import SimSettings, SimWeb
from tests.crawl.consistency import problems
from tests.crawl.memory_crawl import Result, front
from tests.recrawl.recrawl_world import run

WEB = SimWeb(SimSettings(seed=1, hosts=2, pages=16, tables=0.0))
ALL = Recrawl(everything=True)
HOUR = 1 / 24  # of a day


@pytest.fixture
def into(tmp_path: Path) -> Path:
    run(WEB, tmp_path / "c", front(WEB))
    return tmp_path / "c"


def asked(result: Result) -> set[str]:
    return {f"{entry.host}{entry.path}" for entry in result.entries if entry.path not in ("/robots.txt", "/index.tvi")}


def test_visits_that_a_stopped_run_left_queued_count(into: Path) -> None:
    def interrupt(crawl: Crawl) -> None:
        if crawl.engine.frontier.counts.revisiting:
            crawl.stop()

    left = run(WEB, into, days=1, recrawl=ALL, act=interrupt).stats.revisiting
    assert left > 10
    few = run(WEB, into, days=1, recrawl=Recrawl(everything=True, most=2))
    assert (few.stats.run_visits, few.stats.revisiting, few.ended_by) == (2, left - 2, "visits")
    many = run(WEB, into, days=1, recrawl=Recrawl(everything=True, most=left))
    assert many.stats.revisiting == 0
    assert left - 2 <= many.stats.run_visits <= left
    assert problems(into) == []


@pytest.mark.slow
def test_everything_goes_on_with_the_pages_that_were_not_seen_for_longest(into: Path) -> None:
    every = asked(run(WEB, into, days=1, recrawl=ALL))
    assert len(every) > 12
    for begin, step in ((2.0, 1.0), (40.0, 1 / 1440)):  # once a day, and once a minute
        times = Counter[str]()
        for turn in range(-(-len(every) // 5)):
            some = run(WEB, into, days=1, clock_days=begin + turn * step, recrawl=Recrawl(everything=True, most=5))
            assert some.stats.run_visits <= 5
            times.update(asked(some))
        assert set(times) == every


def test_visits_of_everything_leave_out_what_was_looked_at_within_the_hour(into: Path) -> None:
    many = Recrawl(everything=True, most=1_000)
    assert run(WEB, into, recrawl=many).stats.run_visits > 12  # right after the crawl
    assert asked(run(WEB, into, clock_days=0.9 * HOUR, recrawl=many)) == set()
    assert run(WEB, into, clock_days=1.1 * HOUR, recrawl=many).stats.run_visits > 12
    assert run(WEB, into, clock_days=1.2 * HOUR, recrawl=ALL).stats.run_visits > 12  # really everything
