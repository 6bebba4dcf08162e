"""The whole crawl on the in-memory web: complete, polite, each page once, whatever goes wrong."""

import json
from pathlib import Path

import pytest

from lycosa.frontier import Frontier
from lycosa.frontier.host_cache import MemoryLimits
from lycosa.inspect import explain_url, hosts, open_to_read, stats_of
from lycosa.simweb import SimSettings, SimWeb
from lycosa.simweb.log import AuditRules, audit
from lycosa.simweb.network import has_dns_trouble
from lycosa.simweb.truth import truth_of
from lycosa.simweb.web import Answer
from tests.crawl.memory_crawl import crawl, front
from tests.crawl.small_site import FIRST, crawl_site, links

WEB = SimWeb(SimSettings(hosts=8, pages=1000, seed=3, robots={"delay": 0.2}))


@pytest.mark.slow
def test_crawl_reaches_exactly_the_truth_each_page_once_and_politely(tmp_path: Path) -> None:
    result = crawl(WEB, tmp_path / "c", front(WEB))
    fetched = result.fetched()
    assert set(fetched) == truth_of(WEB, [front(WEB)], scope="any", mine="ancestors").pages
    assert set(fetched.values()) == {1}
    assert audit(WEB.settings, result.entries, AuditRules()).is_clean
    assert result.stats.queued == 0
    assert result.ended_by == ""
    assert result.stats.types["text/html"] == len(fetched) - result.stats.duplicates
    assert sum(result.stats.sizes.values()) == sum(result.stats.links.values()) == sum(result.stats.types.values())


@pytest.mark.parametrize("scope", ["host", "domain", "prefix"])
def test_scope_limits_the_crawl_to_its_truth(tmp_path: Path, scope: str) -> None:
    seed = front(WEB) if scope != "prefix" else WEB.linker.origin(0) + WEB.layout.folder(0, 1).path
    result = crawl(WEB, tmp_path / "c", seed, scope=scope)
    assert set(result.fetched()) == truth_of(WEB, [seed], scope=scope, mine="ancestors").pages


@pytest.mark.slow
def test_several_slots_and_a_delay_stay_within_the_rules(tmp_path: Path) -> None:
    web = SimWeb(SimSettings(hosts=8, pages=1000, seed=3, rtt_ms=300, rtt_spread=0.5))
    result = crawl(web, tmp_path / "c", front(web), per_host=3, delay_s=0.5, per_ip=4, ip_delay_s=0.05)
    found = audit(web.settings, result.entries, AuditRules(delay_s=0.5, per_host=3, per_ip=4, ip_delay_s=0.05))
    assert found.is_clean, found.broken()
    assert max(finding.largest_overlap for finding in found.hosts) == 3


@pytest.mark.slow
def test_same_web_and_settings_give_the_same_pages_and_digests(tmp_path: Path) -> None:
    digests = []
    for name in ("one", "two"):
        crawl(WEB, tmp_path / name, front(WEB))
        with open_to_read(tmp_path / name) as collection:
            from lycosa.records import Family
            from lycosa.store.page_rows import unpack_page

            rows = {key: unpack_page(row) for key, row in collection.state.walk(Family.PAGE)}
            digests.append({key: (row.status, row.payload_sha1) for key, row in rows.items()})
    assert digests[0] == digests[1]
    assert len(digests[0]) > 500


def test_page_limit_is_exact_and_counts_over_the_collection(tmp_path: Path) -> None:
    first = crawl(WEB, tmp_path / "c", front(WEB), pages=100)
    assert first.stats.pages == 100
    assert first.ended_by == "pages"
    second = crawl(WEB, tmp_path / "c", front(WEB), pages=150)
    assert second.stats.pages == 150
    assert second.stats.run_pages == 50


@pytest.mark.slow
def test_stopped_crawl_goes_on_without_fetching_anything_again(tmp_path: Path) -> None:
    first = crawl(WEB, tmp_path / "c", front(WEB), act=lambda c: c.stop(), after=200)
    second = crawl(WEB, tmp_path / "c", front(WEB))
    both = first.fetched() + second.fetched()
    assert set(both) == truth_of(WEB, [front(WEB)], scope="any", mine="ancestors").pages
    assert set(both.values()) == {1}
    assert second.stats.pages == len([e for r in (first, second) for e in r.entries if e.status == 200]) - _special(
        [*first.entries, *second.entries]
    )


def _special(entries: list) -> int:  # type: ignore[type-arg]
    return sum(e.status == 200 and e.path.endswith(("robots.txt", "sitemap.xml", ".gz")) for e in entries)


def test_restart_waits_a_full_delay_before_a_known_host_is_asked(tmp_path: Path) -> None:
    crawl(WEB, tmp_path / "c", front(WEB), pages=20)
    second = crawl(WEB, tmp_path / "c", front(WEB), pages=40, delay_s=3.0)
    first_start = {e.host: e.start for e in reversed(second.entries)}
    assert first_start["h0.sim"] >= 3.0


def test_depth_limit_stops_at_its_depth(tmp_path: Path) -> None:
    result = crawl(WEB, tmp_path / "c", front(WEB), depth=1, sitemaps=False)
    direct = crawl(WEB, tmp_path / "d", front(WEB), depth=0, sitemaps=False)
    assert len(direct.fetched()) == 1
    assert 10 < len(result.fetched()) < 200
    assert result.stats.ignored["depth"] > 0


@pytest.mark.slow
def test_documents_that_are_copies_are_stored_once(tmp_path: Path) -> None:
    web = SimWeb(SimSettings(hosts=8, pages=1000, seed=3, mirrors=0.2))
    result = crawl(web, tmp_path / "c", front(web))
    fetched = set(result.fetched())
    assert fetched == truth_of(web, [front(web)], scope="any", mine="ancestors").pages
    bodies = {}
    for url in fetched:
        host = int(url.partition("://h")[2].partition(".")[0])
        bodies[url] = web.answer(host, url.partition(":8800")[2]).body
    assert result.stats.duplicates == len(bodies) - len(set(bodies.values()))
    assert result.stats.duplicates > 20


def test_busy_hosts_are_left_alone_and_complete_in_the_end(tmp_path: Path) -> None:
    web = SimWeb(SimSettings(hosts=6, pages=300, seed=3, trouble={"unavailable": 0.5, "too-many": 0.5}))
    result = crawl(web, tmp_path / "c", front(web))
    assert set(result.fetched()) == truth_of(web, [front(web)], scope="any", mine="ancestors").pages
    found = audit(web.settings, result.entries, AuditRules())
    assert found.is_clean, found.broken()
    assert result.fetched(503, 429)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("trouble", "reason"),
    [
        ("hang", "first-byte-timeout"),
        ("reset", "reset"),
        ("error", "500"),
        ("not-found", "404"),
        ("header-flood", "headers-too-large"),
        ("drip", "total-timeout"),
    ],
)
def test_trouble_is_tried_as_the_table_says_then_told(tmp_path: Path, trouble: str, reason: str) -> None:
    web = SimWeb(SimSettings(hosts=4, pages=200, seed=3, trouble={trouble: 0.1}))
    result = crawl(web, tmp_path / "c", front(web))
    expected = truth_of(web, [front(web)], scope="any", mine="ancestors")
    assert set(result.fetched()) >= expected.pages
    assert result.stats.failed == {reason: len(expected.troubled)}
    assert result.stats.queued == 0
    assert audit(web.settings, result.entries, AuditRules()).is_clean


@pytest.mark.slow
def test_pages_that_come_odd_do_not_stop_the_crawl(tmp_path: Path) -> None:
    odd = dict.fromkeys(("truncated", "wrong-length", "endless", "bomb", "redirect-loop", "huge", "deep"), 0.05)
    web = SimWeb(SimSettings(hosts=3, pages=150, seed=3, trouble=odd))
    result = crawl(web, tmp_path / "c", front(web))
    assert result.stats.queued == 0
    assert set(result.fetched()) >= truth_of(web, [front(web)], scope="any", mine="ancestors").pages


def test_page_that_would_choke_the_parser_is_read_in_part_and_told(tmp_path: Path) -> None:
    body = b"<a href=/first>x</a>" + b"<div>" * 20_000 + b"<a href=/last>x</a>"

    class Choking(SimWeb):
        def answer(self, host: int, target: str, time_s: float = 0.0, elapsed_s: float = 0.0) -> Answer:
            return Answer(200, body) if target == "/" else Answer(404)

    web = Choking(SimSettings(hosts=1, pages=1))
    result = crawl(web, tmp_path / "c", front(web), sitemaps=False)

    events = [json.loads(line) for line in (tmp_path / "c" / "log.jsonl").read_text().splitlines()]
    cut = [(event["url"], event["size_bytes"]) for event in events if event["event"] == "page-cut"]
    assert cut == [(front(web), len(body))]
    assert set(result.fetched(404)) == {f"{front(web)}first"}


def test_hosts_whose_rules_cannot_be_had_are_not_crawled(tmp_path: Path) -> None:
    web = SimWeb(SimSettings(hosts=8, pages=400, seed=3, robots={"error": 0.4}))
    result = crawl(web, tmp_path / "c", *(front(web, host) for host in range(8)))
    assert (
        set(result.fetched())
        == truth_of(web, [front(web, host) for host in range(8)], scope="any", mine="ancestors").pages
    )
    assert audit(web.settings, result.entries, AuditRules()).is_clean
    assert result.stats.failed["robots-unreachable"] > 0
    assert result.stats.queued == 0


def test_names_that_fail_are_told(tmp_path: Path) -> None:
    web = SimWeb(SimSettings(hosts=8, pages=400, seed=3, dns={"servfail": 0.4}))
    result = crawl(web, tmp_path / "c", *(front(web, host) for host in range(8)))
    assert (
        set(result.fetched())
        == truth_of(web, [front(web, host) for host in range(8)], scope="any", mine="ancestors").pages
    )
    assert set(result.stats.failed) == {"dns"}


def test_name_that_fails_is_tried_longer_where_another_host_has_answered(tmp_path: Path) -> None:
    web = SimWeb(SimSettings(hosts=8, pages=400, seed=3, dns={"servfail": 0.4}))
    bad = [host for host in range(8) if has_dns_trouble(web, host, "servfail")]
    good = next(host for host in range(8) if host not in bad)

    alone = crawl(web, tmp_path / "alone", *(front(web, host) for host in bad), scope="host")
    beside = crawl(web, tmp_path / "beside", front(web, good), front(web, bad[0]), scope="host", depth=0)

    assert alone.stats.failed == {"dns": len(bad)}
    assert beside.stats.failed == {"dns": 1}
    assert 1 <= alone.stats.seconds < 3
    assert beside.stats.seconds >= 30


def test_private_addresses_are_refused_without_leave(tmp_path: Path) -> None:
    result = crawl(WEB, tmp_path / "c", front(WEB), allow_private=[])
    assert result.entries == []
    assert result.stats.failed == {"address-refused": 1}


def test_urls_fed_to_a_running_crawl_are_crawled(tmp_path: Path) -> None:
    seed, other = front(WEB), front(WEB, 5)
    result = crawl(WEB, tmp_path / "c", seed, scope="host", act=lambda c: c.add(other), after=5)
    assert set(result.fetched()) == truth_of(WEB, [seed, other], scope="host", mine="ancestors").pages


def test_memory_of_hosts_is_bounded_and_none_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(Frontier.__init__.__kwdefaults__, "memory", MemoryLimits(hosts=5))
    web = SimWeb(SimSettings(hosts=40, pages=800, seed=3))
    result = crawl(web, tmp_path / "c", front(web), delay_s=0.1)
    assert set(result.fetched()) == truth_of(web, [front(web)], scope="any", mine="ancestors").pages
    assert set(result.fetched().values()) == {1}


def test_views_tell_counts_hosts_and_reasons(tmp_path: Path) -> None:
    result = crawl(WEB, tmp_path / "c", front(WEB), scope="host")
    with open_to_read(tmp_path / "c") as collection:
        assert stats_of(collection).pages == result.stats.pages
        assert [view.host for view in hosts(collection)] == ["http://h0.sim:8800"]
        assert any("done" in line for line in explain_url(collection, front(WEB)))
        assert any("out-of-scope" in line for line in explain_url(collection, front(WEB, 1)))
        assert any("not known" in line for line in explain_url(collection, front(WEB) + "nowhere.html"))
        assert "never asked for" in explain_url(collection, "mailto:x@y")[0]


def test_crawl_ends_with_its_last_page_and_does_not_wait_for_the_next_commit(tmp_path: Path) -> None:
    _, stats = crawl_site(tmp_path / "c", lambda url: links("a") if url == FIRST else "<p>end", store_interval_s=60)

    assert stats.pages == 2
    assert stats.seconds < 10
