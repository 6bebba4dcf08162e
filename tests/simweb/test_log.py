"""The audit finds what was planted, and nothing else."""

from pathlib import Path

import msgspec
import pytest

from lycosa.errors import SettingsError
from lycosa.simweb import SimSettings, SimWeb
from lycosa.simweb.log import Audit, AuditRules, LoggedRequest, RequestLog, audit, audit_log, read_log

SETTINGS = SimSettings(hosts=12, pages=3000, robots={"rules": 1, "missing": 0})
WEB = SimWeb(SETTINGS)


def request(start: float, end: float, path: str = "/", host: str = "h0.sim", **more: object) -> LoggedRequest:
    return LoggedRequest(start, end, host, "127.1.0.1", path, 200, 100, "lycosa", **more)  # type: ignore[arg-type]


def polite(host: str = "h0.sim", count: int = 10) -> list[LoggedRequest]:
    robots = request(0.0, 0.1, "/robots.txt", host)
    return [robots, *(request(i * 1.2, i * 1.2 + 0.1, "/", host) for i in range(1, count))]


def judged(entries: list[LoggedRequest], **rules: float) -> Audit:
    return audit(SETTINGS, entries, AuditRules(**rules))  # type: ignore[arg-type]


def test_clean_log_passes() -> None:
    findings = judged([*polite("h0.sim"), *polite("h1.sim")])
    assert findings.is_clean
    assert findings.broken() == []
    assert findings.hosts[0].largest_overlap == 1
    assert findings.hosts[0].smallest_gap_s == pytest.approx(1.1)


def test_planted_overlap_is_found() -> None:
    findings = judged([*polite(), request(1.25, 1.28)])
    assert not findings.is_clean
    assert findings.hosts[0].largest_overlap == 2
    assert findings.hosts[0].smallest_gap_s is not None
    assert findings.hosts[0].smallest_gap_s < 0


def test_planted_short_gap_is_found() -> None:
    findings = judged([*polite(count=3), request(3.4, 3.5)])
    assert findings.hosts[0].early == 1
    assert findings.hosts[0].largest_overlap == 1
    assert "h0.sim: 1 requests too early" in findings.broken()[0]


def test_planted_robots_violation_is_found() -> None:
    closed = next(pattern for allow, pattern in WEB.robots.of(0).rules if not allow and pattern.endswith("/"))
    findings = judged([*polite(), request(60, 60.1, closed)])
    assert findings.hosts[0].robots == (closed,)
    assert not findings.is_clean


def test_page_before_robots_is_found() -> None:
    findings = judged([request(0, 0.1), request(2, 2.1, "/robots.txt"), request(4, 4.1)])
    assert findings.hosts[0].before_robots == 1
    assert not findings.is_clean


def test_request_before_retry_after_is_found() -> None:
    busy = request(20, 20.1, retry_after_s=10.0)
    assert judged([*polite(), busy, request(31, 31.1)]).is_clean
    assert judged([*polite(), busy, request(25, 25.1)]).hosts[0].before_retry_after == 1


def test_retry_after_is_kept_apart_over_many_requests() -> None:
    busy = [request(i * 10.0, i * 10.0 + 0.1, retry_after_s=5.0) for i in range(1, 2_000)]
    early = [request(i * 10.0 + 3, i * 10.0 + 3.1) for i in range(1, 2_000, 2)]
    findings = judged([request(0.0, 0.1, "/robots.txt"), *busy, *early])
    assert findings.hosts[0].before_retry_after == len(early)


def test_odd_host_names_in_a_log_do_not_stop_the_audit() -> None:
    odd = [request(i * 2.0, i * 2.0 + 0.1, "/", name) for i, name in enumerate(("h\xb2", "", "h" + "9" * 5000, "٣.٤"))]
    findings = judged([*polite(), *odd])
    assert findings.is_clean
    assert len(findings.hosts) == 5


def test_crawl_delay_counts_as_a_rule() -> None:
    slow = msgspec.structs.replace(SETTINGS, robots={"delay": 1, "missing": 0})
    assert not audit(slow, polite(), AuditRules()).is_clean


def test_address_with_too_many_at_a_time_is_found() -> None:
    hosts = [f"h{i}.sim" for i in range(5)]
    entries = [request(0, 0.1, "/robots.txt", host) for host in hosts] + [request(5, 6, "/", host) for host in hosts]
    findings = judged(entries)
    assert not any(finding.is_broken for finding in findings.hosts)
    assert findings.addresses[0].largest_overlap == 5
    assert findings.addresses[0].is_broken
    assert judged(entries, per_ip=5).is_clean


def test_slots_each_keep_their_own_delay() -> None:
    robots = request(0, 0.1, "/robots.txt")
    two_slots = [request(2 + i * 0.6, 2.1 + i * 0.6) for i in range(10)]
    assert judged([robots, *two_slots], per_host=2).is_clean
    assert not judged([robots, *two_slots], per_host=1).is_clean


def test_log_comes_back_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "log"
    log = RequestLog(path, SETTINGS)
    for entry in polite():
        log.add(entry)
    log.close()
    with path.open("ab") as file:
        file.write(b'{"start": 1')  # a last line that is cut off
    settings, entries = read_log(path)
    assert (settings, list(entries)) == (SETTINGS, polite())
    assert audit_log(path, AuditRules()).is_clean


@pytest.mark.parametrize("content", [b"", b"{}\n", b"hello\n", b'{"simweb": {"hosts": 0}}\n'])
def test_file_that_is_no_log_is_refused_with_a_sentence(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "log"
    path.write_bytes(content)
    with pytest.raises(SettingsError, match="not a log of the simulated web"):
        audit_log(path, AuditRules())


def test_rules_that_make_no_sense_are_refused() -> None:
    for delay_s in (-1.0, float("nan"), float("inf")):
        with pytest.raises(SettingsError, match="negative"):
            AuditRules(delay_s=delay_s)
        with pytest.raises(SettingsError, match="negative"):
            AuditRules(ip_delay_s=delay_s)
    with pytest.raises(SettingsError, match="at least 1"):
        AuditRules(per_host=0)
