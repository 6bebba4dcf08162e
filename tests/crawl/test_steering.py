"""Orders for a running crawl: it pauses, resumes, stops, and continues with other settings; each is logged."""

import json
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from lycosa.api.crawl import Crawl
from lycosa.crawl import NEW_SETTINGS, Steering, load_timeline, steer
from lycosa.crawl.timeline import MOST_SAMPLES, Sample, Timeline
from lycosa.errors import SettingsError
from lycosa.inspect import latest_events, open_to_read
from lycosa.settings import merge, settings_of_folder
from lycosa.simweb import SimSettings, SimWeb
from tests.cli.command import lycosa, simulated_web, started
from tests.crawl.memory_crawl import crawl, front

WEB = SimWeb(SimSettings(hosts=3, pages=60, rtt_ms=40))


def events(into: Path, name: str) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in (into / "log.jsonl").read_text().splitlines()]
    return [line for line in lines if line["event"] == name]


def test_paused_crawl_asks_nobody_until_it_is_resumed(tmp_path: Path) -> None:
    seen: list[int] = []

    def hold(running: Crawl) -> None:
        Steering(tmp_path).give("pause", origin="test")
        loop = running.engine._loop
        loop.call_later(20, lambda: seen.append(running.stats().requests))
        loop.call_later(60, lambda: seen.append(running.stats().requests))
        loop.call_later(61, lambda: seen.append(running.stats().is_paused))
        loop.call_later(62, lambda: Steering(tmp_path).give("resume", origin="test"))

    result = crawl(WEB, tmp_path, front(WEB), act=hold, after=10)

    assert seen[0] == seen[1], "nothing was asked for in 40 seconds"
    assert seen[2] is True
    whole = crawl(WEB, tmp_path / "whole", front(WEB))
    assert result.fetched() == whole.fetched()
    assert [each["action"] for each in events(tmp_path, "steered")] == ["pause", "resume"]
    assert {each["origin"] for each in events(tmp_path, "steered")} == {"test"}


def test_stopped_crawl_commits_and_ends(tmp_path: Path) -> None:
    result = crawl(WEB, tmp_path, front(WEB), act=lambda _: Steering(tmp_path).give("stop", origin="test"), after=10)
    assert result.ended_by == "stopped"
    assert 0 < result.stats.pages < 60


def test_order_of_a_crawl_before_is_void(tmp_path: Path) -> None:
    crawl(WEB, tmp_path, front(WEB), pages=5)
    Steering(tmp_path).give("stop", origin="test")
    assert crawl(WEB, tmp_path, pages=60).ended_by != "stopped"


def test_settings_that_cannot_be_are_left_alone(tmp_path: Path) -> None:
    bad = {"delay_s": "never"}
    result = crawl(
        WEB, tmp_path, front(WEB), act=lambda _: Steering(tmp_path).give("set", origin="test", settings=bad), after=10
    )
    assert result.ended_by != NEW_SETTINGS
    assert "delay_s" in events(tmp_path, "not-steered")[0]["reason"]


def test_orders_after_new_settings_are_for_the_run_that_continues(tmp_path: Path) -> None:
    def give(_: Crawl) -> None:
        Steering(tmp_path).give("pause", origin="test")
        Steering(tmp_path).give("set", origin="test", settings={"delay_s": 0.5})
        Steering(tmp_path).give("set", origin="test", settings={"pages": 30})

    assert crawl(WEB, tmp_path, front(WEB), act=give, after=10).ended_by == NEW_SETTINGS
    assert [each["action"] for each in events(tmp_path, "steered")] == ["pause", "set"]

    def continued(running: Crawl) -> None:
        running.engine.orders.continue_run(is_paused=True)
        assert running.engine.orders.is_paused

    assert crawl(WEB, tmp_path, begin=continued).ended_by == NEW_SETTINGS
    assert events(tmp_path, "steered")[-1]["settings"] == {"pages": 30}


def test_command_changes_settings_of_a_collection_at_rest(tmp_path: Path) -> None:
    crawl(WEB, tmp_path, front(WEB), pages=5)
    assert lycosa("steer", tmp_path, "set", "delay=7", "exclude=*.zip /a/*").code == 0
    toml = (tmp_path / "lycosa.toml").read_text()
    assert "delay_s = 7.0" in toml
    assert '"*.zip", "/a/*"' in toml


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["pause"], "nothing to pause"),
        (["pause", "delay=1"], "takes no settings"),
        (["set"], "nothing to set"),
        (["set", "delay"], "NAME=VALUE"),
        (["set", "archive=none"], "cannot be changed"),
        (["set", "delay=soon"], "delay_s is 'soon'"),
    ],
)
def test_command_says_what_cannot_be(words: list[str], said: str, tmp_path: Path) -> None:
    crawl(WEB, tmp_path, front(WEB), pages=2)
    result = lycosa("steer", tmp_path, *words)
    assert result.code == 2
    assert said in result.err


def test_command_on_a_folder_that_is_not_there_says_so(tmp_path: Path) -> None:
    result = lycosa("steer", tmp_path / "none", "pause")
    assert result.code == 2 and "there is no collection at" in result.err


def test_sharded_crawl_is_not_stopped_in_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    crawl(WEB, tmp_path / "shards" / "a", front(WEB), pages=2)
    (tmp_path / "lycosa.toml").write_text("")
    monkeypatch.setattr("lycosa.crawl.steering.is_crawled", lambda _: True)
    with pytest.raises(SettingsError, match="several processes"):
        steer(tmp_path, "stop", origin="test")
    with pytest.raises(SettingsError, match="set this, and continue"):
        steer(tmp_path, "set", {"pages": 3}, origin="test")
    assert "pauses" in steer(tmp_path, "pause", origin="test")
    assert len(list((tmp_path / "shards" / "a" / "steering").iterdir())) == 1


def test_settings_of_shards_at_rest_are_changed_for_all_of_them(tmp_path: Path) -> None:
    crawl(WEB, tmp_path / "shards" / "a", front(WEB), pages=2)
    (tmp_path / "lycosa.toml").write_text("delay_s = 3.0\n")
    assert steer(tmp_path, "set", {"pages": "70"}, origin="test") == "the next run uses these settings"
    assert merge(settings_of_folder(tmp_path)).pages == 70
    assert merge(settings_of_folder(tmp_path)).delay_s == 3
    logged = [each for each in latest_events(tmp_path, most=9) if each["event"] == "steered"]
    assert [(each["origin"], each["settings"]) for each in logged] == [("test", {"pages": "70"})]


@pytest.mark.slow
def test_running_command_continues_with_other_settings(tmp_path: Path) -> None:
    with simulated_web(tmp_path, "--hosts", "4", "--pages", "400") as web:
        running = started(*web.crawl(tmp_path / "c", "--scope", "any", "--json", delay="0.3"))
        try:
            wait_for_pages(tmp_path / "c", 20)
            assert lycosa("steer", tmp_path / "c", "set", "pages=200", "delay=0.01").code == 0
            out, err = running.communicate(timeout=120)
        finally:
            running.kill()
    assert json.loads(out)["pages"] == 200, err
    assert "continuing with pages = 200, delay_s = 0.01" in err
    assert events(tmp_path / "c", "steered")[0]["settings"] == {"pages": "200", "delay_s": "0.01"}


def wait_for_pages(into: Path, pages: int) -> None:
    until = time.monotonic() + 120
    while time.monotonic() < until:
        said = lycosa("status", into, "--json")
        if said.code == 0 and said.facts["pages"] >= pages:
            return
        time.sleep(0.02)
    raise AssertionError("the crawl did not get there")


def test_timeline_covers_all_runs_and_stays_small(tmp_path: Path) -> None:
    crawl(WEB, tmp_path, front(WEB), pages=20)
    crawl(WEB, tmp_path, pages=40)
    with open_to_read(tmp_path) as collection:
        samples = load_timeline(collection.state).samples
    assert [each.begins for each in samples].count(True) == 2
    assert samples[-1].pages == 40
    assert samples[-1].archive_bytes > 0
    assert all(a.pages <= b.pages for a, b in pairwise(samples))


def test_timeline_that_is_full_keeps_every_second_sample() -> None:
    timeline = Timeline(samples=[])
    for second in range(10 * MOST_SAMPLES):
        timeline.add(Sample(at_unix=float(second), begins=second == 501))
    assert len(timeline.samples) <= MOST_SAMPLES
    assert timeline.interval_s > 1
    assert any(each.begins for each in timeline.samples)
    assert timeline.samples[0].at_unix == 0


def test_request_log_has_a_line_for_each_request(tmp_path: Path) -> None:
    log = tmp_path / "requests.jsonl"
    result = crawl(WEB, tmp_path / "c", front(WEB), request_log=str(log))
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert len(lines) == len(result.entries)
    assert {line["kind"] for line in lines} >= {"page", "robots"}
    first = next(line for line in lines if line["kind"] == "page")
    assert first["url"] == front(WEB)
    assert first["status"] == 200
    assert first["bytes"] > 0
    assert first["total_ms"] >= first["first_byte_ms"] >= 0
    assert first["time"].endswith("+00:00")


def test_answers_are_counted_by_their_time(tmp_path: Path) -> None:
    stats = crawl(WEB, tmp_path, front(WEB)).stats
    answered = sum(many for status, many in stats.statuses.items() if status.isdigit())
    assert sum(stats.request_times.values()) == sum(stats.first_bytes.values()) == answered
    assert stats.requests_s >= stats.first_bytes_s > 0
