"""The wall clock of the machine is wrong: for a while, for one run, or for the run before."""

import itertools
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lycosa.api.crawl import Crawl
from lycosa.simweb import AuditRules, SimSettings, SimWeb, audit
from lycosa.simweb.web import Answer
from tests.crawl.memory_crawl import front
from tests.recrawl.recrawl_world import BEGIN_S, DAY_S, OPTIONS, run

WEB = SimWeb(SimSettings(hosts=3, pages=15, seed=3))
SEEDS = [front(WEB, host) for host in range(3)]
YEAR = 365.0


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> int:
    """How many a crawl with a right clock gets."""
    return run(WEB, tmp_path_factory.mktemp("whole"), *SEEDS).stats.pages


def busy_once() -> Callable[..., Answer]:
    """Every page of host 1 asks to be tried again a minute later, once; host 2 has no time at all for ten minutes."""
    asked: set[tuple[int, str]] = set()

    def answer(original: Callable[..., Answer], host: int, target: str, *rest: Any) -> Answer:
        page = (host, target)
        if host == 0 or target == "/robots.txt" or page in asked:
            return original(host, target, *rest)
        asked.add(page)
        return Answer(503, b"later", headers=(("Retry-After", "60" if host == 1 else "600"),))

    return answer


def stop_after(count: int) -> Callable[[Crawl], None]:
    def act(crawl: Crawl) -> None:
        if crawl.stats().pages >= count:
            crawl.stop()

    return act


@pytest.mark.parametrize("days", [YEAR, -YEAR])
def test_clock_that_was_wrong_in_the_run_before_holds_nothing_back(tmp_path: Path, pages: int, days: float) -> None:
    answer = busy_once()

    first = run(WEB, tmp_path / "c", *SEEDS, clock_days=days, answer=answer, act=stop_after(5), store_interval_s=5)
    later = run(WEB, tmp_path / "c", answer=answer)

    assert first.stats.queued
    assert (later.stats.pages, later.stats.queued) == (pages, 0)
    assert audit(WEB.settings, later.entries, AuditRules(delay_s=OPTIONS["delay_s"])).is_clean


def test_rules_of_a_host_that_were_read_in_the_future_are_read_again(tmp_path: Path) -> None:
    slowly = {"delay_s": 2.0, "store_interval_s": 1.0}
    run(WEB, tmp_path / "c", *SEEDS, clock_days=YEAR, act=stop_after(3), **slowly)

    soon = run(WEB, tmp_path / "c", clock_days=YEAR, act=stop_after(8), **slowly)
    back = run(WEB, tmp_path / "c")

    assert "/robots.txt" not in {entry.path for entry in soon.entries if entry.host == "h0.sim"}
    assert "/robots.txt" in {entry.path for entry in back.entries if entry.host == "h0.sim"}


def test_clock_that_jumps_while_a_crawl_runs_changes_nothing(tmp_path: Path, pages: int) -> None:
    jumps = itertools.cycle((YEAR, -YEAR, 0.0))
    seen: set[float] = set()

    def jump(crawl: Crawl) -> None:
        now_unix = BEGIN_S + next(jumps) * DAY_S
        time.time = lambda: now_unix  # `run` puts it back
        seen.add(now_unix)

    got = run(WEB, tmp_path / "c", *SEEDS, answer=busy_once(), act=jump, store_interval_s=20)

    assert len(seen) == 3
    assert (got.stats.pages, got.stats.queued) == (pages, 0)
    assert audit(WEB.settings, got.entries, AuditRules(delay_s=OPTIONS["delay_s"])).is_clean
