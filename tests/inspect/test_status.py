"""What `status` and `hosts` say of a crawl, while it runs, when it was killed, and when it is over."""

import json
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest

from lycosa.cli.collection import HostOrder, status
from lycosa.cli.collection import hosts as hosts_command
from lycosa.frontier.politeness import pause_of
from lycosa.frontier.rows import HostRow, pack_host, unpack_host
from lycosa.inspect import hosts, open_to_read, stats_of
from lycosa.simweb import SimSettings, SimWeb
from lycosa.simweb.log import AuditRules, audit
from tests.crawl.memory_crawl import Result, front
from tests.recrawl.recrawl_world import BEGIN_S, run

WEB = SimWeb(SimSettings(hosts=6, pages=120, seed=4, robots={"delay": 0.5}))
DELAY_S, IP_DELAY_S = 0.1, 0.05


def test_status_of_a_running_crawl_says_so_and_gives_its_rate(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    into, killed = tmp_path / "c", tmp_path / "killed"
    told: list[str] = []

    def tell(folder: Path, **options: Any) -> None:
        status(folder, **options)
        told.append(capsys.readouterr().out.replace(str(tmp_path), ""))

    def look(running: Any) -> None:
        if not told and running.stats().run_seconds > 5:
            tell(into)
            tell(into, json=True)
            shutil.copytree(into, killed, ignore=shutil.ignore_patterns("LOCK"))  # as a kill leaves it

    run(WEB, into, front(WEB), delay_s=DELAY_S, act=look)
    tell(killed)
    tell(into)

    text, facts, dead, over = told[0], json.loads(told[1]), told[2], told[3]
    assert " pages/s, " in text.partition("  running for ")[2].partition("\n")[0]
    assert "continues" not in text
    assert facts["is_running"]
    assert facts["pages_per_s"] > 1
    assert "continues" in dead
    assert "running" not in dead + over
    with open_to_read(into) as collection:
        assert not stats_of(collection).is_running


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Result]:
    into = tmp_path_factory.mktemp("crawled") / "c"
    return into, run(WEB, into, front(WEB), delay_s=DELAY_S, ip_delay_s=IP_DELAY_S, per_ip=1)


def test_hosts_come_by_pages_and_by_what_is_asked_for(
    crawled: tuple[Path, Result], capsys: pytest.CaptureFixture[str]
) -> None:
    into, _ = crawled

    def shown(order: HostOrder | None, field: str) -> list[Any]:
        hosts_command(into, json=True, **({} if order is None else {"sort": order}))
        return [json.loads(line)[field] for line in capsys.readouterr().out.splitlines()]

    for order, field in [(None, "pages"), (HostOrder.ERRORS, "failed"), (HostOrder.DELAY, "delay_s")]:
        values = shown(order, field)
        assert len(values) == 6
        assert values == sorted(values, reverse=True)
    assert len(set(shown(HostOrder.DELAY, "delay_s"))) == 2
    assert shown(HostOrder.NAME, "host") == [f"http://h{number}.sim:8800" for number in range(6)]
    for order in HostOrder:
        hosts_command(into, sort=order)
    assert capsys.readouterr().out.count("http://h0.sim:8800") == len(HostOrder)


def test_hosts_tell_how_long_each_was_crawled(crawled: tuple[Path, Result]) -> None:
    into, result = crawled
    with open_to_read(into) as collection:
        rows = {row.host: row for row in hosts(collection)}
    for host in {entry.host for entry in result.entries}:
        ends = [entry.end for entry in result.entries if entry.host == host]
        row = rows[f"http://{host}:8800"]
        assert row.first_s == pytest.approx(BEGIN_S + min(ends), abs=0.01)
        assert row.time_s == pytest.approx(max(ends) - min(ends), abs=0.01)


def test_host_row_of_an_older_collection_has_no_times() -> None:
    fields = msgspec.msgpack.decode(pack_host(HostRow(pages=3, requests=4)))
    old = unpack_host(msgspec.msgpack.encode(fields[: HostRow.__struct_fields__.index("retries")]))
    assert (old.pages, old.requests, old.retries, old.failing) == (3, 4, 0, 0)
    assert (old.first_asked, old.last_asked) == (0.0, 0.0)


def test_pauses_are_longer_than_the_delay_by_a_margin(crawled: tuple[Path, Result]) -> None:
    """A server that notes the end of its answer some milliseconds late still sees the whole delay."""
    rules = AuditRules(delay_s=DELAY_S, ip_delay_s=IP_DELAY_S, per_ip=1)
    findings = audit(WEB.settings, crawled[1].entries, rules)
    gaps = [(one.smallest_gap_s, one.least_gap_s) for one in [*findings.hosts, *findings.addresses]]
    assert all(gap is None or gap >= pause_of(least) - 1e-6 for gap, least in gaps)
    assert pause_of(DELAY_S) - DELAY_S == pytest.approx(0.01)
    assert pause_of(0.0) == 0.0
