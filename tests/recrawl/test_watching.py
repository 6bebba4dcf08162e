"""URLs that the user watches: their own intervals, recrawls of some URLs, and what is said when nothing is due."""

from pathlib import Path
from typing import Any

import pytest

from lycosa.crawl import AddedUrl, Inbox, Recrawl
from lycosa.recrawl import next_due, visit_of
from lycosa.recrawl.plan import VisitPlan, VisitPlanner
from lycosa.recrawl.versions import VisitRow
from lycosa.simweb import SimSettings, SimWeb
from lycosa.store import SITEMAP, CollectionStore, PageRow
from lycosa.web import parse_url, url_key
from tests.cli.command import lycosa
from tests.crawl.memory_crawl import front
from tests.notify.receivers import page, site
from tests.recrawl.recrawl_world import BEGIN_S, DAY_S, run

SETTINGS = SimSettings(seed=3, hosts=2, pages=40)
MINUTE_S = 60.0
NAMESPACE = "http://www.sitemaps.org/schemas/sitemap/0.9"


def watch(into: Path, url: str, every_s: float) -> None:
    parsed = parse_url(url)
    assert parsed is not None
    Inbox(into).put([AddedUrl(parsed, every_s).line])


def visit_row(into: Path, url: str) -> VisitRow:
    with CollectionStore.open(into) as collection:
        return visit_of(collection.state, url_key(url)) or VisitRow()


def keep_fresh(web: SimWeb, into: Path, hours: float, days: float, **more: Any) -> Any:
    """Keeps fresh for some hours, in steps of five seconds."""
    steps = {"store_interval_s": 5, "delay_s": 0.5}
    return run(web, into, days=days, keep_fresh=True, time_s=hours * 3600, visits_per_day=1, **steps, **more)


@pytest.mark.slow
def test_watched_page_is_visited_at_its_interval_beside_the_budget(tmp_path: Path) -> None:
    web, into = SimWeb(SETTINGS), tmp_path / "c"
    run(web, into, front(web))
    with CollectionStore.open(into) as collection:
        pages = collection.state.scan("page", limit=50)  # type: ignore[arg-type]
    watch(into, front(web), 10 * MINUTE_S)
    assert len(pages) > 20

    keep_fresh(web, into, 3, days=1)

    row = visit_row(into, front(web))
    assert row.every_s == 10 * MINUTE_S
    assert row.visits in (17, 18, 19)  # three hours of it, whatever the budget of one visit a day
    assert row.due_s == pytest.approx(row.checked_s + 10 * MINUTE_S)


@pytest.mark.slow
def test_interval_set_while_the_crawl_runs_counts_at_once_and_can_be_taken_back(tmp_path: Path) -> None:
    web, into = SimWeb(SETTINGS), tmp_path / "c"
    run(web, into, front(web))
    commits = 0

    def act(crawl: Any) -> None:
        nonlocal commits
        commits += 1
        if commits == 20:
            watch(into, front(web), 10 * MINUTE_S)

    keep_fresh(web, into, 2, days=1, act=act)
    before = visit_row(into, front(web))
    assert before.visits in (11, 12, 13)

    watch(into, front(web), 0)
    keep_fresh(web, into, 2, days=2)
    after = visit_row(into, front(web))
    assert (after.every_s, after.visits <= before.visits + 1) == (0.0, True)
    assert after.interval > 1 / 24  # its place in the plan again


def test_recrawl_takes_watched_pages_that_are_due_and_keeps_to_its_budget_otherwise(tmp_path: Path) -> None:
    web, into = SimWeb(SETTINGS), tmp_path / "c"
    run(web, into, front(web))
    watch(into, front(web), 3600)
    assert run(web, into, days=0.01, recrawl=Recrawl(budget=1)).stats.run_visits == 0  # not due within an hour
    first = run(web, into, days=0.1, recrawl=Recrawl(budget=1)).stats
    assert (first.run_visits, visit_row(into, front(web)).visits) == (1, 1)
    assert run(web, into, days=0.12, recrawl=Recrawl(budget=1)).stats.run_visits == 0
    with CollectionStore.open(into) as collection:
        assert next_due(collection.state) == pytest.approx(BEGIN_S + 0.1 * DAY_S + 3600, abs=60)


@pytest.mark.parametrize("limits", [{}, {"pages": 5}])
def test_recrawl_hears_of_intervals_before_it_looks_for_what_is_due(tmp_path: Path, limits: dict[str, Any]) -> None:
    """Also where URLs are queued, which a recrawl leaves to the crawl, and where one of them is new."""
    web, into = SimWeb(SETTINGS), tmp_path / "c"
    queued = run(web, into, front(web), **limits).stats.queued
    assert bool(queued) == bool(limits)
    watch(into, front(web), 3600)
    watch(into, front(web) + "never-seen", 3600)
    stats = run(web, into, days=0.1, recrawl=Recrawl(budget=1)).stats
    assert (stats.run_visits, visit_row(into, front(web)).visits) == (1, 1)
    assert stats.queued == (queued + 1 if queued else 0)


def test_recrawl_of_urls_leaves_watched_pages_that_are_due_alone(tmp_path: Path) -> None:
    web, into = SimWeb(SETTINGS), tmp_path / "c"
    run(web, into, front(web))
    watch(into, front(web), 3600)
    other = front(web, 1)
    assert run(web, into, days=0.1, recrawl=Recrawl(urls=(other,))).stats.run_visits == 1
    assert (visit_row(into, front(web)).visits, visit_row(into, other).visits) == (0, 1)


@pytest.mark.slow
def test_watched_url_that_fails_is_asked_for_again_at_its_interval(tmp_path: Path) -> None:
    web, into = SimWeb(SETTINGS), tmp_path / "c"
    run(web, into, front(web))
    missing = front(web) + "nothing-here"
    watch(into, missing, 20 * MINUTE_S)
    found = keep_fresh(web, into, 2, days=1)
    asked = [entry for entry in found.entries if entry.path.endswith("nothing-here")]
    assert len(asked) in (5, 6, 7)


def test_recrawl_of_urls_visits_these_alone(tmp_path: Path) -> None:
    web, into = SimWeb(SETTINGS), tmp_path / "c"
    run(web, into, front(web))
    stats = run(web, into, days=0.01, recrawl=Recrawl(urls=(front(web),))).stats
    assert stats.run_visits == 1
    assert visit_row(into, front(web)).visits == 1
    assert run(web, into, days=0.02, recrawl=Recrawl(urls=(front(web),))).stats.run_visits == 1


@pytest.mark.slow
def test_commands_say_what_is_watched_due_and_unknown(tmp_path: Path) -> None:
    into = tmp_path / "c"
    with site() as web:
        web.pages |= {"/": page("Home", "<a href=/a>a</a>"), "/a": page("A", "a")}
        url = f"{web.url}/"
        lycosa("crawl", url, "--into", into, "--delay", "0", "-q")
        said = lycosa("recrawl", into)
        assert said.code == 0
        assert "nothing was due; the next page is due in" in said.out

        listed = tmp_path / "urls.txt"
        listed.write_text(f"# mine\n{url}a 1s\n{url}b 2h\n{url}c\n")
        said = lycosa("add", into, "-i", str(listed), "--every", "1d")
        assert said.err.strip() == f"3 URLs added to {into}, 3 of them watched"
        assert "watched every 1.0 s, as soon as a run takes that in" in lycosa("why", f"{url}a", "--in", into).out
        assert "watched every 1d" in lycosa("why", f"{url}c", "--in", into).out
        lycosa("add", into, f"{url}c", "--every", "none")
        assert "watched no more, as soon as a run" in lycosa("why", f"{url}c", "--in", into).out
        web.asked.clear()
        lycosa("crawl", "--into", into, "-q")
        assert "watched every 2h" in lycosa("why", f"{url}b", "--in", into).out
        assert "watched" not in lycosa("why", f"{url}c", "--in", into).out
        assert lycosa("recrawl", into, "-q").code == 0
        assert "watched every 1.0 s" in lycosa("why", f"{url}a", "--in", into).out

        web.asked.clear()
        assert lycosa("recrawl", into, f"{url}", "-q").code == 0
        assert web.asked == ["/"]
        for words, wanted in (
            ((f"{url}zzz",), "is not known: lycosa add"),
            ((url, "--all"), "not both"),
        ):
            wrong = lycosa("recrawl", into, *words)
            assert (wrong.code, wanted in wrong.err) == (2, True), wrong.err
    for words in (("--every", "soon"), ("--every", "0.1s")):
        wrong = lycosa("add", into, url, *words)
        assert (wrong.code, "--every is" in wrong.err) == (2, True)
    listed.write_text(f"{url}a often\n")
    assert "line 1, has an interval that is 'often'" in lycosa("add", into, "-i", str(listed)).err


@pytest.mark.parametrize(
    ("essence", "is_feed", "rate", "days"),
    [
        (SITEMAP, False, 0.03, 1.0),  # daily at least
        (SITEMAP, False, 4.0, 0.125),  # twice as often as something new is found
        (SITEMAP, False, 500.0, 1 / 24),  # hourly at most
        ("application/rss+xml", False, 4.0, 0.125),
        ("text/xml", True, 4.0, 0.125),
    ],
)
def test_feeds_and_sitemaps_are_polled_at_the_pace_of_their_news(
    tmp_path: Path, essence: str, is_feed: bool, rate: float, days: float
) -> None:
    web, into, found = SimWeb(SETTINGS), tmp_path / "c", list[float]()
    run(web, into, front(web), pages=1)

    def act(crawl: Any) -> None:
        planner = VisitPlanner(crawl.engine.shard)
        planner.plan = VisitPlan(price=1e9)  # a page would wait for months
        row = PageRow(200, BEGIN_S, essence=essence)
        found.append(planner.interval(url_key(front(web)), row, VisitRow(rate=rate, is_feed=is_feed)))

    run(web, into, days=1, recrawl=Recrawl(urls=(front(web),)), act=act)
    assert found[0] == pytest.approx(days)


@pytest.mark.slow
def test_sitemap_with_news_is_read_more_often_and_its_urls_are_fetched(tmp_path: Path) -> None:
    into = tmp_path / "c"
    with site() as web:
        web.pages |= {"/": page("Home", "x"), "/robots.txt": f"Sitemap: {web.url}/map.xml"}

        def publish(*numbers: int) -> None:
            urls = "".join(f"<url><loc>{web.url}/{number}</loc></url>" for number in numbers)
            web.pages["/map.xml"] = f"<?xml version='1.0'?><urlset xmlns='{NAMESPACE}'>{urls}</urlset>"
            web.pages.update({f"/{number}": page(f"P{number}", f"text {number}") for number in numbers})

        publish(1)
        lycosa("crawl", f"{web.url}/", "--into", into, "--delay", "0", "-q")
        lycosa("recrawl", into, "--all", "-q")
        quiet = visit_row(into, f"{web.url}/map.xml").rate
        for number in (2, 3):
            publish(*range(1, number + 1))
            lycosa("recrawl", into, "--all", "-q")
            assert f"/{number}" in web.asked
        assert visit_row(into, f"{web.url}/map.xml").rate > 2 * quiet
        assert lycosa("recrawl", into, "--all", "--json").facts["run_changed"] == 0  # a sitemap is no page
