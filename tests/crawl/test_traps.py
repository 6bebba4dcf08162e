"""Traps beside a real site, under default settings: the pages are fetched, the traps are starved, and it is told."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from lycosa.frontier.rows import UrlRow, UrlState
from lycosa.inspect import explain_url, open_to_read
from lycosa.learning import traps
from lycosa.learning.trap_guard import DomainBudget, write_domain_budget
from lycosa.records import Family
from lycosa.simweb import SimSettings, SimWeb
from lycosa.simweb.log import AuditRules, audit
from lycosa.simweb.truth import truth_of
from lycosa.simweb.web import without_session
from lycosa.store import Batch, CollectionStore
from tests.crawl.memory_crawl import crawl, front
from tests.crawl.small_site import crawl_site, links

TRAPS = ("calendar", "path-loop", "session-ids", "soft-404")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seed", "hosts", "pages", "share"),
    [(1, 1, 2_500, 1.0), (2, 2, 1_800, 0.5)],
)
def test_traps_take_a_tenth_of_the_requests_at_most_and_cost_no_page(
    tmp_path: Path, seed: int, hosts: int, pages: int, share: float
) -> None:
    web = SimWeb(SimSettings(seed=seed, hosts=hosts, pages=pages, trouble=dict.fromkeys(TRAPS, share)))
    seeds = [front(web, host) for host in range(hosts)]
    result = crawl(web, tmp_path / "c", *seeds, scope="host")
    found = truth_of(web, seeds, scope="host", mine="ancestors")
    real = {web.address_of(url) for url in found.pages}
    harmless = {web.address_of(url) for url in found.redirects}
    asked = [
        (web.layout.host_number(entry.host) or 0, without_session(entry.path))
        for entry in result.entries
        if entry.path != "/robots.txt" and ".xml" not in entry.path
    ]
    fetched = set(asked) & real
    trapped = len(asked) - len(fetched) - len(set(asked) & harmless)
    assert len(real) >= pages * 2 // 3
    assert len(fetched) >= 0.99 * len(real)
    assert trapped <= 0.1 * len(asked)
    assert audit(web.settings, result.entries, AuditRules()).is_clean
    assert result.ended_by == ""
    assert result.stats.dropped["path-pattern"] > 0
    assert result.stats.ignored["parameter-without-effect"] > 0
    log = (tmp_path / "c" / "log.jsonl").read_text()
    assert "pattern-slowed" in log
    assert "pattern-dropped" in log


@pytest.mark.slow
def test_unlinked_folders_and_series_are_found_at_little_cost(tmp_path: Path) -> None:
    web = SimWeb(SimSettings(seed=2, hosts=10, pages=3_000))
    seeds = [front(web, host) for host in range(10)]
    crawl(web, tmp_path / "c", *seeds, scope="host", mine="all")
    unlinked = (
        truth_of(web, seeds, scope="host", mine="all").pages - truth_of(web, seeds, scope="host", mine="off").pages
    )
    with open_to_read(tmp_path / "c") as collection:
        rows = [UrlRow.unpack(row) for _, row in collection.state.walk(Family.URL)]
    guesses = [row for row in rows if row.origin.is_guess]
    asked = [row for row in guesses if row.state is UrlState.DONE or row.reason == "guess-missed"]
    found = sum(row.state is UrlState.DONE for row in guesses)
    assert found >= 0.8 * len(unlinked)
    assert len(asked) <= 1.3 * found


def test_domain_that_has_had_its_pages_goes_after_all_others(tmp_path: Path) -> None:
    web = SimWeb(SimSettings(seed=4, hosts=2, pages=200))
    seeds = [front(web, host) for host in range(2)]
    crawl(web, tmp_path / "c", *seeds, pages=1)
    batch = Batch()
    write_domain_budget(batch, "h0.sim", DomainBudget(pages=10_000))
    with CollectionStore.open(tmp_path / "c") as collection:
        collection.commit(batch)
    result = crawl(web, tmp_path / "c", *seeds, pages=None)
    order = [entry.host for entry in result.entries if not entry.path.endswith((".txt", ".xml"))]
    assert order[:60].count("h0.sim") <= 3  # h1 has more to give all the time
    assert order.count("h0.sim") > 50
    assert "domain-put-last" in (tmp_path / "c" / "log.jsonl").read_text()
    with open_to_read(tmp_path / "c") as collection:
        assert any("has had its" in line for line in explain_url(collection, seeds[0]))


def documents_with_copies(url: str) -> str | None:
    """/a/1 to /a/334 are documents, /b and /c have copies of them; /s/N/M are five documents without end.
    /r/1 to /r/300 are five documents again and again, byte by byte."""
    path = url.removeprefix("http://127.0.0.1:9/")
    if not path:
        return links(
            *(f"/{tree}/{n}" for tree in "abc" for n in range(1, 335)), "/s/1/1", *(f"/r/{n}" for n in range(300))
        )
    tree, *numbers = path.split("/")
    if tree == "s":
        session, n = int(numbers[0]), int(numbers[1])
        return f"<p>Words of number {n:b}".replace("1", "i").replace("0", "o") + links(f"/s/{session + 1}/{n % 5 + 1}")
    number = int(numbers[0]) if tree != "r" else int(numbers[0]) % 5 + 1_000
    return "<p>Document " + f"{number:b}".replace("1", "i").replace("0", "o")


@pytest.mark.slow
def test_copies_of_distinct_documents_under_numbered_names_are_duplicates_not_a_trap(tmp_path: Path) -> None:
    asked, stats = crawl_site(tmp_path / "c", documents_with_copies, delay_s=0)
    assert stats.duplicates >= 2 * 334
    assert len({url for url in asked if "/b/" in url or "/c/" in url}) == 2 * 334
    assert len([url for url in asked if "/s/" in url]) < 40  # copies of five documents, again and again
    assert len([url for url in asked if "/r/" in url]) < 60
    assert stats.dropped["path-pattern"] > 240
    dropped = [json.loads(line) for line in (tmp_path / "c" / "log.jsonl").open() if "pattern-dropped" in line]
    assert {event["pattern"]: 5 < event["known"] <= 300 for event in dropped} == {"/s/#/#": True, "/r/#": True}


THIN_PAGES = 400


def in_letters(number: int) -> str:
    """A number in letters, so that pages with it do not differ in numbers only."""
    return f"{number:b}".replace("1", "lo").replace("0", "ra")


def thin_pages(page: Callable[[int], str], *, chained: bool, most: float = THIN_PAGES) -> Callable[[str], str | None]:
    """A site of numbered pages: the front page leads to all of them or, if `chained`, each to the next one."""

    def answer(url: str) -> str | None:
        path = url.removeprefix("http://127.0.0.1:9/")
        if not path:
            return links("/p1.html") if chained else links(*(f"/p{n}.html" for n in range(1, THIN_PAGES + 1)))
        number = int(path.removeprefix("p").removesuffix(".html"))
        onwards = f"<a href='/p{number + 1}.html'>next</a>" if chained and number < most else ""
        return page(number) + onwards

    return answer


@pytest.mark.parametrize("chained", [False, True], ids=["from an index", "each from the one before"])
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(lambda n: f"<title>Page {n}</title>", id="a title"),
        pytest.param(lambda n: f"<title>Page {n}</title><p>Under construction</p>", id="a title above one text"),
        pytest.param(lambda n: f"<title>{in_letters(n)}</title><p>Under construction</p>", id="a name above one text"),
        pytest.param(lambda n: f"<p>Page {n}</p>", id="a number"),
        pytest.param(
            lambda n: f"<title>{in_letters(n)}</title><p>{in_letters(n)}: {'a text that all have in common ' * 20}",
            id="a name in one text",
        ),
    ],
)
def test_numbered_pages_that_say_next_to_nothing_are_a_site_where_they_end(
    tmp_path: Path, page: Callable[[int], str], chained: bool
) -> None:
    asked, stats = crawl_site(tmp_path / "c", thin_pages(page, chained=chained), delay_s=0)
    assert len(set(asked)) == stats.pages == THIN_PAGES + 1
    assert stats.dropped["path-pattern"] == 0


def test_numbered_pages_without_end_are_given_up_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traps, "FILES_ALLOWED", 100)
    for name, page, fewest, most in (
        ("titles", lambda n: f"<title>Page {n}</title><p>Nothing on this day</p>", 100, 120),
        ("numbers", lambda n: f"<p>Day {n}. Nothing on this day</p>", 100, 120),
        ("one title", lambda n: "<title>Days</title><p>Nothing on this day</p>", 1, 15),
    ):
        site = thin_pages(page, chained=True, most=float("inf"))
        asked, stats = crawl_site(tmp_path / name, site, delay_s=0, pages=1_000)
        assert fewest <= len(set(asked)) <= most
        assert stats.dropped["path-pattern"] == 1


def test_days_without_end_on_two_hosts_that_lead_to_each_other_are_given_up(tmp_path: Path) -> None:
    """A page that leads on, if to another host, is not one of those that somebody has listed."""

    def answer(url: str) -> str:
        _, _, number = url.partition("/day?d=")
        other = 2 if url.startswith("http://127.0.0.1") else 1
        onwards = f"http://127.0.0.{other}:9/day?d={int(number or 0) + 1}"
        return f"<title>Day {number}</title><p>Nothing on this day</p>{links(onwards)}"

    seeds = ("http://127.0.0.1:9/", "http://127.0.0.2:9/")
    asked, stats = crawl_site(tmp_path / "c", answer, *seeds, delay_s=0, pages=300)
    assert len(asked) < 60
    assert stats.dropped["path-pattern"] > 0
