"""Every known URL is counted in one place, at every commit, whatever goes wrong on the way."""

import os
import shutil
from pathlib import Path

import pytest

from lycosa.api.crawl import Crawl
from lycosa.crawl.loop import Engine
from lycosa.crawl.progress import Recrawl
from lycosa.frontier.rows import UrlRow, UrlState
from lycosa.inspect import explain_url, hosts, open_to_read, stats_of
from lycosa.records import Family
from lycosa.simweb import SimSettings, SimWeb
from lycosa.simweb.settings import DNS, DOCUMENT_TROUBLE, ROBOTS
from lycosa.simweb.truth import truth_of
from lycosa.simweb.web import Answer
from lycosa.web.url import url_from_key
from tests.crawl.consistency import problems, uncounted
from tests.crawl.memory_crawl import crawl, front
from tests.crawl.small_site import FIRST, crawl_site, links

HEAVY = {"huge", "endless", "bomb", "deep"}  # megabytes a page: tested elsewhere
TROUBLE = {name: 0.04 for name in DOCUMENT_TROUBLE if name not in HEAVY}


def troubled_web(seed: int) -> SimWeb:
    """A web on which everything goes wrong somewhere."""
    trouble = {**TROUBLE, "unavailable": 0.2, "too-many": 0.2}
    settings = SimSettings(
        seed=seed,
        hosts=12,
        pages=400,
        trouble=trouble,
        robots=dict.fromkeys(ROBOTS, 0.2),
        dns=dict.fromkeys(DNS, 0.1),
        mirrors=0.1,
        rtt_ms=50,
        rtt_spread=0.5,
    )
    return SimWeb(settings)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    "settings",
    [
        {"per_host": 1},
        {"per_host": 4, "delay_s": 0.1, "pages_per_host": 20},
        {"depth": 2, "types": ["text/html"], "exclude": ["*7*"], "robots": False, "delay_s": 0.1},
    ],
)
def test_counts_of_a_troubled_crawl_add_up_at_every_commit(
    tmp_path: Path, seed: int, settings: dict[str, object]
) -> None:
    web = troubled_web(seed)
    off: list[int] = []

    def watch(running: Crawl) -> None:
        running.engine.on_commit = lambda: off.append(uncounted(running.stats()))

    seeds = [front(web, host) for host in range(4)]
    first = crawl(web, tmp_path / "c", *seeds, act=watch, pages=60, **settings)
    second = crawl(web, tmp_path / "c", *seeds, act=watch, **settings)

    assert len(off) > 10
    assert set(off) == {0}
    assert problems(tmp_path / "c") == []
    assert first.stats.known <= second.stats.known
    assert second.stats.failed.total() > 0


@pytest.mark.slow
def test_pages_whose_records_are_lost_are_fetched_again_and_counted_once(tmp_path: Path) -> None:
    web = SimWeb(SimSettings(hosts=6, pages=300, seed=3, mirrors=0.2, trouble={"redirect-loop": 0.1}))
    first = crawl(web, tmp_path / "c", front(web))
    archive = max((tmp_path / "c" / "warc").iterdir(), key=lambda path: path.stat().st_size)
    os.truncate(archive, archive.stat().st_size // 2)  # as a power loss leaves it

    second = crawl(web, tmp_path / "c", front(web))

    assert len(second.fetched()) > 50
    assert second.stats.sitemaps == first.stats.sitemaps > 0
    assert (second.stats.pages, second.stats.redirects) == (first.stats.pages, first.stats.redirects)
    assert second.stats.failed == first.stats.failed
    assert second.stats.run_lost >= len(second.fetched())
    assert problems(tmp_path / "c") == []


def test_pages_fetched_again_for_lost_records_are_no_trap(tmp_path: Path) -> None:
    web = SimWeb(SimSettings(hosts=8, pages=500))
    first = crawl(web, tmp_path / "c", front(web), mine="off")
    archive = max((tmp_path / "c" / "warc").iterdir(), key=lambda path: path.stat().st_size)
    os.truncate(archive, archive.stat().st_size // 4)

    second = crawl(web, tmp_path / "c", front(web), mine="off")

    assert second.stats.run_lost > 100
    assert second.stats.pages == first.stats.pages
    assert second.stats.dropped == first.stats.dropped
    assert "pattern-slowed" not in (tmp_path / "c" / "log.jsonl").read_text().partition("records-lost")[2]


def test_log_of_the_state_torn_by_a_kill_is_cut_and_told_and_nothing_is_lost(tmp_path: Path) -> None:
    web = SimWeb(SimSettings(hosts=6, pages=200))

    def watch(running: Crawl) -> None:
        def copy() -> None:  # what a kill at this moment leaves
            if running.stats().pages > 50 and not (tmp_path / "killed").exists():
                shutil.copytree(tmp_path / "c", tmp_path / "killed")

        running.engine.on_commit = copy

    whole = crawl(web, tmp_path / "c", front(web), act=watch)
    log = max((tmp_path / "killed" / "state").glob("*.log"), key=lambda path: path.stat().st_size)
    os.truncate(log, log.stat().st_size - 50)

    again = crawl(web, tmp_path / "killed", front(web))

    assert '"event":"state-log-cut"' in (tmp_path / "killed" / "log.jsonl").read_text()
    assert again.stats.pages == whole.stats.pages
    assert problems(tmp_path / "killed") == []


def test_redirect_without_a_target_has_failed_and_leads_nowhere(tmp_path: Path) -> None:
    web = SimWeb(SimSettings(hosts=2, pages=40, seed=3))
    original, page = web.answer, truth_of(web, [front(web)], scope="host").pages - {front(web)}
    lost = sorted(page)[0]
    web.answer = lambda host, target, *rest: (  # type: ignore[method-assign]
        Answer(302) if lost.endswith(target) and len(target) > 1 else original(host, target, *rest)
    )

    stats = crawl(web, tmp_path / "c", front(web), scope="host").stats

    assert stats.failed == {"bad-redirect": 1}
    assert stats.redirects == stats.statuses["301"]
    with open_to_read(tmp_path / "c") as collection:
        told = "\n".join(explain_url(collection, lost))
    assert "failed" in told
    assert "redirects to" not in told
    assert problems(tmp_path / "c") == []


def test_host_given_up_has_nothing_queued_and_says_why(tmp_path: Path) -> None:
    web = SimWeb(SimSettings(hosts=4, pages=100, seed=3))
    lost = [f"http://nobody.sim:8800/{name}" for name in "abc"]
    result = crawl(web, tmp_path / "c", front(web), *lost, scope="host")
    with open_to_read(tmp_path / "c") as collection:
        [view] = [view for view in hosts(collection) if "nobody" in view.host]
        sentences = explain_url(collection, lost[1])
    assert result.stats.failed == {"no-such-host": 3}
    assert (view.queued, view.failed, view.gave_up) == (0, 3, "no-such-host")
    assert "failed: its host was given up (no-such-host); depth 0, asked for by you" in sentences
    assert "host: 0 pages, given up (no-such-host), robots.txt not known yet" in sentences


@pytest.mark.slow
def test_hosts_given_up_while_the_line_was_down_are_tried_again_by_the_next_run(tmp_path: Path) -> None:
    web = SimWeb(SimSettings(hosts=8, pages=300, seed=3, dns_ttl_s=1))
    down = SimWeb(SimSettings(hosts=8, pages=300, seed=3, dns_ttl_s=1, dns={"servfail": 1.0}))
    crawl(web, tmp_path / "c", front(web), pages=40)
    between = crawl(down, tmp_path / "c", front(web), pages=None)
    assert between.stats.queued == 0
    assert between.stats.failed["dns"] > 50

    last = crawl(web, tmp_path / "c", front(web), pages=None)

    assert last.stats.failed.total() == 0
    assert last.stats.pages == crawl(web, tmp_path / "whole", front(web)).stats.pages
    assert problems(tmp_path / "c") == []


def test_url_that_failed_is_asked_for_again_when_somebody_asks_for_it(tmp_path: Path) -> None:
    web = SimWeb(SimSettings(hosts=4, pages=100, seed=3))
    broken = SimWeb(SimSettings(hosts=4, pages=100, seed=3, trouble={"error": 0.3}))
    first = crawl(broken, tmp_path / "c", front(web))
    failed = list(first.fetched(500))
    assert len(failed) > 5
    again = crawl(web, tmp_path / "c", front(web), *failed, *failed)

    assert set(failed) <= set(again.fetched())
    assert again.stats.failed.total() == 0
    assert again.stats.pages == crawl(web, tmp_path / "whole", front(web)).stats.pages
    assert problems(tmp_path / "c") == []


def test_crawl_with_all_transfers_in_use_sleeps_until_one_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    web = SimWeb(SimSettings(hosts=8, pages=200, seed=3, rtt_ms=200))
    looks, turn = 0, Engine._turn

    def counted(engine: Engine) -> None:
        nonlocal looks
        looks += 1
        assert looks < 50 * (engine.stats().requests + 10)
        turn(engine)

    monkeypatch.setattr(Engine, "_turn", counted)
    result = crawl(web, tmp_path / "c", front(web), transfers=2, delay_s=0.01)
    assert set(result.fetched()) == truth_of(web, [front(web)], scope="any", mine="ancestors").pages


@pytest.mark.parametrize(
    ("narrow", "wide"),
    [
        ({"depth": 1}, {"depth": None}),
        ({"scope": "host"}, {"scope": "any"}),
        ({"exclude": ["*e*.html"]}, {"exclude": []}),
        ({"pages_per_host": 5}, {"pages_per_host": None}),
        ({"pages_per_host": 5}, {"pages_per_host": 5, "host_pages": ["*.sim=1000"]}),
    ],
)
def test_wider_settings_bring_in_what_narrower_ones_left_out(
    tmp_path: Path, narrow: dict[str, object], wide: dict[str, object]
) -> None:
    web = SimWeb(SimSettings(hosts=6, pages=200, seed=3))
    options = {"mine": "off", "sitemaps": False}
    first = crawl(web, tmp_path / "c", front(web), **options, **narrow)
    whole = crawl(web, tmp_path / "whole", front(web), **options, **wide)

    second = crawl(web, tmp_path / "c", front(web), **options, **wide)

    assert first.stats.pages < whole.stats.pages == second.stats.pages
    assert not set(first.fetched()) & set(second.fetched())
    assert problems(tmp_path / "c") == []


def test_why_names_what_a_url_failed_by(tmp_path: Path) -> None:
    web = SimWeb(SimSettings(hosts=4, pages=100, seed=3, trouble={"reset": 0.2}))
    crawl(web, tmp_path / "c", front(web))
    with open_to_read(tmp_path / "c") as collection:
        rows = ((key, UrlRow.unpack(row)) for key, row in collection.state.walk(Family.URL))
        failed = [url_from_key(key) for key, row in rows if row.state is UrlState.FAILED]
        assert failed
        for url in failed:
            lines = explain_url(collection, url)
            assert any(line.startswith("failed after 3 tries: reset, depth ") for line in lines), lines
            assert any(": reset, status " in line for line in lines), lines


def test_why_of_a_page_that_is_not_there_tells_what_came(tmp_path: Path) -> None:
    crawl_site(tmp_path, {FIRST: links("a")}.get)
    with open_to_read(tmp_path) as collection:
        _, failed, asked, *_ = explain_url(collection, f"{FIRST}a")
    assert failed.startswith("failed after 1 try: status 404, depth 1")
    assert asked.endswith(": status 404, 0 bytes text/html")


def test_urls_in_flight_are_named_and_why_says_since_when(tmp_path: Path) -> None:
    web = SimWeb(SimSettings(hosts=8, pages=200, seed=3, rtt_ms=3_000))
    named: list[str] = []

    def look(running: Crawl) -> None:
        now = running.stats()
        assert len(now.fetching) == now.in_flight
        with open_to_read(tmp_path / "c") as collection:
            committed = stats_of(collection).fetching
            named.extend(explain_url(collection, committed[0].url)[1:2])

    crawl(web, tmp_path / "c", front(web), act=look, after=20, delay_s=0.01)

    assert named
    assert named[0].startswith("being fetched since ")


def test_links_that_are_ignored_are_not_counted_again_when_a_page_is_revisited(tmp_path: Path) -> None:
    elsewhere = links("http://127.0.0.2:9/")
    _, first = crawl_site(tmp_path, {FIRST: f"<p>old words of a page{elsewhere}"}.get)
    day = {"wall": lambda: first.run_seconds + 4e9}
    _, again = crawl_site(
        tmp_path, {FIRST: f"<p>new words of a page{elsewhere}"}.get, recrawl=Recrawl(everything=True), **day
    )

    assert again.visits_changed == 1
    assert first.ignored == again.ignored == {"out-of-scope": 1}
