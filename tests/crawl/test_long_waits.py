"""A host that asks for very long patience: the crawl does not wait for it unless it is told to, and loses nothing."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from lycosa.cli.summary import summary, visits_left
from lycosa.crawl.progress import clock
from lycosa.inspect import explain_url, hosts, open_to_read
from lycosa.simweb import SimSettings, SimWeb
from lycosa.simweb.web import Answer
from proof.ground.memory_cluster import crawl
from tests.crawl.memory_crawl import front
from tests.recrawl.recrawl_world import BEGIN_S, DAY_S, run, wall_clock

WEB = SimWeb(SimSettings(hosts=3, pages=60, seed=3))
LONG_S, SHORT_S, DAY = 1_000, 800, 86_400


def patient(seconds: int, *, once: bool = False) -> Callable[..., Any]:
    """Host 1 has no page for anybody, and says for how long; `once`: after that it has."""
    asked: list[str] = []

    def answer(original: Callable[..., Answer], host: int, target: str, *rest: Any) -> Answer:
        if host == 1 and target != "/robots.txt" and not (once and asked):
            asked.append(target)
            return Answer(503, b"later", headers=(("Retry-After", str(seconds)),))
        return original(host, target, *rest)

    return answer


def test_long_retry_after_ends_the_crawl_and_the_same_command_goes_on(tmp_path: Path) -> None:
    seeds = [front(WEB, host) for host in range(3)]
    whole = run(WEB, tmp_path / "whole", *seeds).stats

    first = run(WEB, tmp_path / "c", *seeds, answer=patient(DAY))
    soon = run(WEB, tmp_path / "c", days=0.01, answer=patient(DAY))
    later = run(WEB, tmp_path / "c", days=2)

    assert (first.ended_by, soon.ended_by, later.ended_by) == ("waiting", "waiting", "")
    assert first.stats.queued > 0
    assert not first.stats.failed
    assert not any(entry.host == "h1.sim" for entry in soon.entries)
    assert (later.stats.pages, later.stats.queued, later.stats.known) == (whole.pages, 0, whole.known)
    text = summary(first.stats, tmp_path, left=visits_left(first.stats, first.ended_by, keeps_fresh=False))
    assert f"{first.stats.queued:,} still queued: the same command continues" in text
    assert "with --wait it waits" in text
    assert "http://h1.sim:8800 asks for patience; it is left alone until 20" in text
    assert "Ctrl-C" not in text


@pytest.mark.parametrize(("seconds", "options"), [(SHORT_S, {}), (LONG_S, {"wait": True})])
def test_patience_that_is_short_or_wanted_is_had(tmp_path: Path, seconds: int, options: dict[str, Any]) -> None:
    seeds = [front(WEB, host) for host in range(3)]
    result = run(WEB, tmp_path / "c", *seeds, answer=patient(seconds, once=True), store_interval_s=30, **options)
    assert (result.ended_by, result.stats.queued) == ("", 0)
    assert result.stats.pages > 50


def test_long_retry_after_ends_a_crawl_of_shards_and_the_same_command_goes_on(tmp_path: Path) -> None:
    seeds = [front(WEB, host) for host in range(3)]
    whole = run(WEB, tmp_path / "whole", *seeds).stats
    with patch.object(WEB, "answer", partial(patient(DAY), WEB.answer)), wall_clock(BEGIN_S):
        first = crawl(WEB, tmp_path / "c", *seeds, workers=2, delay_s=0.05).coordinator
    with wall_clock(BEGIN_S + 2 * DAY_S):
        later = crawl(WEB, tmp_path / "c", *seeds, workers=2, delay_s=0.05).coordinator

    assert (first.stopping, later.stopping) == ("waiting", "")
    assert first.seconds() < 60
    assert first.stats().queued > 0
    assert not first.stats().failed
    assert "h1.sim:8800 asks for patience" in first.stats().standing
    assert (later.stats().pages, later.stats().queued) == (whole.pages, 0)


@pytest.mark.slow
def test_shards_that_are_told_to_wait_do(tmp_path: Path) -> None:
    seeds = [front(WEB, host) for host in range(3)]
    options: dict[str, Any] = {"workers": 2, "delay_s": 0.05, "store_interval_s": 30}
    with patch.object(WEB, "answer", partial(patient(LONG_S, once=True), WEB.answer)):
        whole = crawl(WEB, tmp_path / "c", *seeds, wait=True, **options).coordinator
    assert (whole.stopping, whole.stats().queued) == ("", 0)
    assert whole.seconds() > LONG_S


def test_long_delay_between_requests_ends_no_crawl(tmp_path: Path) -> None:
    """The next run would have to wait for it all the same."""
    web = SimWeb(SimSettings(hosts=1, pages=5, seed=3))
    result = run(web, tmp_path / "c", front(web), delay_s=1_000, store_interval_s=30)
    assert (result.ended_by, result.stats.queued) == ("", 0)
    assert result.stats.pages > 2


def test_hosts_and_why_give_the_date_of_a_wait_that_ends_on_another_day(tmp_path: Path) -> None:
    run(WEB, tmp_path / "c", front(WEB, 1), answer=patient(DAY))
    with open_to_read(tmp_path / "c") as collection:
        [row] = [row for row in hosts(collection, now_unix=0.0) if row.host.startswith("http://h1.sim")]
        assert explain_url(collection, front(WEB, 1))[1].startswith("queued")
    assert row.waits.startswith("until 20")


def test_clock_gives_a_date_where_it_is_not_today() -> None:
    noon = 1_700_000_000.0
    assert len(clock(noon, now_unix=noon)) == len("14:05:00")
    assert clock(noon, now_unix=noon - DAY_S) == f"{clock(noon, now_unix=0.0)[:10]} {clock(noon, now_unix=noon)}"
