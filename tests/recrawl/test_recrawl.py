"""Looking again: what changed is found and kept, what did not stays, odd answers replace nothing, clocks may jump."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from lycosa.crawl.progress import Recrawl
from lycosa.frontier.rows import unpack_host
from lycosa.records import Family
from lycosa.recrawl.change.verdict import ChangeKind, Presence
from lycosa.recrawl.versions import ChangeRow, VisitRow, history, split_change_key, unpack_change, version_at, visit_of
from lycosa.search import row_as_of
from lycosa.simweb import SimSettings, SimWeb
from lycosa.simweb.documents import HONEST_LASTMOD, LASTMOD_PURPOSE
from lycosa.simweb.layout import PagePlace
from lycosa.simweb.log import AuditRules, audit
from lycosa.simweb.vocabulary import unit
from lycosa.simweb.web import Answer
from lycosa.store import CollectionStore
from lycosa.store.page_rows import PageRow, unpack_page
from lycosa.web.url import url_from_key, url_key
from tests.crawl.consistency import problems
from tests.crawl.memory_crawl import front
from tests.recrawl.recrawl_world import BEGIN_S, DAY_S, run

WEB = SimWeb(SimSettings(seed=1, hosts=4, pages=160, tables=0.0))  # by table: test_table_visits
ALL = Recrawl(everything=True)
LATER = 40  # days


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    into = tmp_path_factory.mktemp("crawled") / "crawl"
    run(WEB, into, front(WEB))
    return into


@pytest.fixture
def into(crawled: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(crawled, tmp_path / "crawl"))


def rows(into: Path) -> dict[str, PageRow]:
    with CollectionStore.open(into) as collection:
        return {url_from_key(key): unpack_page(row) for key, row in collection.state.walk(Family.PAGE)}


def changes(into: Path) -> dict[str, list[ChangeRow]]:
    found: dict[str, list[ChangeRow]] = {}
    with CollectionStore.open(into) as collection:
        for key, row in collection.state.walk(Family.CHANGE):
            found.setdefault(url_from_key(split_change_key(key)[0]), []).append(unpack_change(row))
    return found


def visit(into: Path, url: str) -> VisitRow:
    with CollectionStore.open(into) as collection:
        found = visit_of(collection.state, url_key(url))
    assert found is not None
    return found


def pages(into: Path) -> Iterator[tuple[str, PagePlace]]:
    """The documents of the collection, and the pages of the web that they are."""
    for url, row in rows(into).items():
        if row.is_page and row.status == 200:
            host, target = WEB.address_of(url)
            place = WEB.layout.locate(host, target)
            if place is not None:
                yield url, place


def an_article(into: Path) -> str:
    return next(url for url, place in pages(into) if place.page and WEB.pages.source(place) == place)


def expected(place: PagePlace, before: float, after: float) -> ChangeKind | None:
    """What the web says became of a page; None where nothing that is told of did."""
    source = WEB.pages.source(place)
    if WEB.state(place, after * DAY_S).gone:
        return ChangeKind.GONE
    old, new = WEB.state(source, before * DAY_S), WEB.state(source, after * DAY_S)
    if old.structure != new.structure:
        return ChangeKind.STRUCTURE
    is_news = old.volatile != new.volatile and not WEB.pages.has_marked_volatile(source)  # not learned yet
    return ChangeKind.TEXT if old.text != new.text or is_news else None


def test_recrawl_tells_exactly_what_the_web_says_has_changed(into: Path) -> None:
    truth = {url: kind for url, place in pages(into) if (kind := expected(place, 0, LATER))}
    before = dict(pages(into))
    result = run(WEB, into, days=LATER, recrawl=ALL)
    told = {url: found[-1].kind for url, found in changes(into).items() if url in before}
    assert told == truth
    assert set(truth.values()) == {ChangeKind.GONE, ChangeKind.STRUCTURE, ChangeKind.TEXT}
    assert {found[0].kind for found in changes(into).values()} == {ChangeKind.NEW}
    assert result.stats.not_modified > 10
    assert problems(into) == []
    assert audit(WEB.settings, result.entries, AuditRules(delay_s=0.05)).is_clean


@pytest.mark.slow
def test_recrawl_again_and_again_learns_volatile_parts_and_brings_pages_back(into: Path) -> None:
    for days in range(12, 72, 12):
        run(WEB, into, days=days, recrawl=ALL)
    assert problems(into) == []
    kinds = {row.kind for found in changes(into).values() for row in found}
    assert kinds == {ChangeKind.NEW, ChangeKind.TEXT, ChangeKind.STRUCTURE, ChangeKind.GONE, ChangeKind.BACK}
    unmarked = [
        url for url, place in pages(into) if WEB.pages.has_volatile(place) and not WEB.pages.has_marked_volatile(place)
    ]
    learned = [url for url in unmarked if any(part.is_volatile for part in visit(into, url).masks.parts)]
    assert len(learned) > len(unmarked) / 2


def test_versions_before_a_change_are_read_back_from_the_archive(into: Path) -> None:
    url, place = next(
        (url, place)
        for url, place in pages(into)
        if expected(place, 0, LATER) in (ChangeKind.TEXT, ChangeKind.STRUCTURE)
    )
    run(WEB, into, days=LATER, recrawl=ALL)
    with CollectionStore.open(into) as collection:
        stored = [version_at(collection, row.place, url) for _, row in history(collection.state, url_key(url))]
    source = WEB.pages.source(place)
    bodies = [WEB.pages.html(source, WEB.state(source, days * DAY_S)) for days in (0, LATER)]
    assert [version.body for version in stored if version] == bodies


def test_recrawl_of_a_web_that_stood_still_stores_nothing_and_keeps_every_link(into: Path) -> None:
    before = rows(into)
    size = sum(file.stat().st_size for file in (into / "warc").iterdir())
    result = run(WEB, into, days=0, clock_days=LATER, recrawl=ALL)
    assert result.stats.visits_changed == 0
    assert changes(into) == {}
    assert {url: row for url, row in rows(into).items() if not row.is_sitemap} == {
        url: row for url, row in before.items() if not row.is_sitemap
    }
    assert sum(file.stat().st_size for file in (into / "warc").iterdir()) - size < 2_000 * result.stats.visits
    assert problems(into) == []


def test_recrawl_visits_only_what_is_due_and_leaves_the_queue_to_the_crawl(tmp_path: Path) -> None:
    first = run(WEB, tmp_path / "c", front(WEB), pages=40)
    assert first.stats.queued > 20
    soon = run(WEB, tmp_path / "c", days=1 / 48, recrawl=Recrawl(), pages=40)
    assert soon.stats.run_visits == 0
    later = run(WEB, tmp_path / "c", days=100, recrawl=Recrawl(), pages=40)
    assert 0 < later.stats.run_visits <= first.stats.pages + first.stats.redirects + first.stats.sitemaps
    assert later.stats.run_pages == 0
    assert later.stats.queued >= first.stats.queued
    assert problems(tmp_path / "c") == []


def test_recrawl_after_a_finished_crawl_follows_links_that_are_new(into: Path) -> None:
    url = an_article(into)

    def with_link(original, host, target, *rest):  # type: ignore[no-untyped-def]
        answer = original(host, target, *rest)
        if url.endswith(target) and target != "/":
            return msgspec.structs.replace(
                answer, etag="", modified_s=0, body=answer.body.replace(b"</main>", b"<a href=/feed.xml>new</a></main>")
            )
        return answer

    result = run(WEB, into, days=0, clock_days=LATER, recrawl=ALL, answer=with_link)
    assert any(entry.path == "/feed.xml" for entry in result.entries)
    assert problems(into) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("odd", "kind", "presence"),
    [
        (Answer(200, b"%PDF-1.7 binary", "application/pdf"), ChangeKind.GONE, Presence.FILE),
        (Answer(200, b"<h1>Sign in</h1><form><input type=password></form>"), ChangeKind.GONE, Presence.LOGIN),
        (Answer(200, b""), ChangeKind.GONE, Presence.EMPTY),
        (Answer(410, b"gone"), ChangeKind.GONE, Presence.GONE),
        (Answer(403, b"no"), ChangeKind.GONE, Presence.GONE),
        (Answer(301, b"", headers=(("Location", "/"),)), ChangeKind.MOVED, Presence.MOVED),
    ],
    ids=["pdf", "login", "empty", "gone", "forbidden", "moved"],
)
def test_page_that_turns_into_something_else_changes_its_state_and_comes_back(
    into: Path, odd: Answer, kind: ChangeKind, presence: Presence
) -> None:
    url = an_article(into)
    digest = rows(into)[url].digest

    def oddly(original, host, target, *rest):  # type: ignore[no-untyped-def]
        return odd if WEB.linker.origin(host) + target == url else original(host, target, *rest)

    run(WEB, into, days=0, clock_days=10, recrawl=ALL, answer=oddly)
    assert [row.kind for row in changes(into)[url]] == [ChangeKind.NEW, kind]
    assert visit(into, url).presence is presence
    assert problems(into) == []
    run(WEB, into, days=0, clock_days=20, recrawl=ALL, answer=oddly)
    assert [row.kind for row in changes(into)[url]] == [ChangeKind.NEW, kind]  # told once
    run(WEB, into, days=0, clock_days=30, recrawl=ALL)
    assert [row.kind for row in changes(into)[url]] == [ChangeKind.NEW, kind, ChangeKind.BACK]
    assert (rows(into)[url].digest, visit(into, url).presence) == (digest, Presence.PAGE)
    assert problems(into) == []
    with CollectionStore.open(into) as collection:
        then = [row_as_of(collection.state, url_key(url), BEGIN_S + days * DAY_S) for days in (5, 15, 35)]
        bodies = [version.body if row and (version := version_at(collection, row.place, url)) else b"" for row in then]
    assert bodies == [bodies[0], odd.body if presence is Presence.FILE else b"", bodies[0]]
    assert bodies[0]


@pytest.mark.parametrize("status", [500, 302], ids=["error", "redirect to itself"])
def test_server_errors_leave_the_page_until_they_have_come_three_times(into: Path, status: int) -> None:
    url = an_article(into)
    before = rows(into)[url]

    def broken(original, host, target, *rest):  # type: ignore[no-untyped-def]
        bad = Answer(status, b"", headers=(("Location", f"{target}#top"),) if status == 302 else ())
        return bad if WEB.linker.origin(host) + target == url else original(host, target, *rest)

    for days in (10, 20):
        run(WEB, into, days=0, clock_days=days, recrawl=ALL, answer=broken)
        assert rows(into)[url] == before
        assert url not in changes(into)
    run(WEB, into, days=0, clock_days=30, recrawl=ALL, answer=broken)
    assert [row.kind for row in changes(into)[url]] == [ChangeKind.NEW, ChangeKind.GONE]
    assert problems(into) == []


@pytest.mark.parametrize("hours", [1, 240])  # robots.txt is still known, or has to be asked for first
def test_recrawl_of_hosts_that_are_silent_says_so_and_loses_nothing(into: Path, hours: int) -> None:
    before = rows(into)

    def silent(original, host, target, *rest):  # type: ignore[no-untyped-def]
        return Answer(200, b"", trouble="hang")

    stats = run(WEB, into, days=0, clock_days=hours / 24, recrawl=ALL, answer=silent, store_interval_s=30).stats
    assert stats.has_only_silence
    assert set(stats.run_statuses) == {"first-byte-timeout"}
    assert rows(into) == before


def test_clock_that_jumps_ten_years_ahead_makes_a_week_of_work_at_most(into: Path) -> None:
    run(WEB, into, days=1, recrawl=Recrawl(budget=5))
    result = run(WEB, into, days=3_650, recrawl=Recrawl(budget=5))
    assert 0 < result.stats.run_visits <= 35
    assert problems(into) == []


@pytest.mark.slow
def test_clock_that_goes_back_loses_no_page_and_pulls_its_times_in(into: Path) -> None:
    run(WEB, into, days=1_000, recrawl=ALL)
    assert run(WEB, into, days=10, recrawl=Recrawl(budget=1_000)).stats.run_visits == 0
    with CollectionStore.open(into) as collection:
        due = [int.from_bytes(key[:8]) / 1000 for key, _ in collection.state.walk(Family.DUE)]
    assert max(due) < BEGIN_S + (10 + 1.1 * 180) * DAY_S
    assert run(WEB, into, days=250, recrawl=Recrawl(budget=1_000)).stats.run_visits > 100
    assert problems(into) == []


@pytest.mark.slow
def test_sitemaps_that_tell_the_truth_bring_visits_forward_and_liars_lose_their_trust(tmp_path: Path) -> None:
    web = SimWeb(SimSettings(seed=3, hosts=6, pages=240, robots={"sitemap": 1.0, "missing": 0.0}))
    run(web, tmp_path / "c", front(web))
    for days in (4, 5, 6, 9, 10, 11):
        run(web, tmp_path / "c", days=days, recrawl=Recrawl(budget=20))
    with CollectionStore.open(tmp_path / "c") as collection:
        hosts = {url_from_key(key + b"\0"): unpack_host(row) for key, row in collection.state.walk(Family.HOST)}
    honest, lying = [], []
    for number in range(6):
        row = hosts[web.linker.origin(number)]
        is_honest = unit(web.draws.mix(number, 0, LASTMOD_PURPOSE)) < HONEST_LASTMOD
        (honest if is_honest else lying).append(row)
    assert sum(row.hints for row in honest) > 5
    assert sum(row.hints_true for row in honest) >= 0.5 * sum(row.hints for row in honest)
    assert all(row.hints_true < 0.5 * row.hints for row in lying)
    assert all(0 < row.hints <= 6 for row in lying)
    assert problems(tmp_path / "c") == []


def test_keep_fresh_counts_its_time_from_its_own_start(tmp_path: Path) -> None:
    run(WEB, tmp_path / "c", front(WEB), time_s=2)
    result = run(WEB, tmp_path / "c", time_s=2, keep_fresh=True)
    assert result.ended_by == "time"
    assert result.stats.run_pages > 0
    assert result.stats.run_seconds == pytest.approx(2, abs=0.3)
    assert run(WEB, tmp_path / "c", time_s=2).stats.run_pages == 0


@pytest.mark.slow
def test_keep_fresh_goes_on_for_ever_within_its_budget(tmp_path: Path) -> None:
    result = run(
        WEB,
        tmp_path / "c",
        front(WEB),
        time_scale=1.0,
        keep_fresh=True,
        visits_per_day=48,
        time_s=8 * DAY_S,
        store_interval_s=30,
    )
    assert result.ended_by == "time"
    assert 0.5 * 48 * 8 <= result.stats.visits <= 1.05 * 48 * 8
    assert result.stats.visits_changed > 0
    assert problems(tmp_path / "c") == []
