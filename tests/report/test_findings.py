"""What a report finds: each planted fault, and nothing else; in shards, in central stores, and without bodies."""

from pathlib import Path

import pytest

from lycosa.importing import import_archives
from lycosa.report import RULES, SiteReport, make_report
from lycosa.report.findings import QUERIES
from lycosa.report.rules import Need
from lycosa.search import workers
from lycosa.store import SHARDED_FILE, SHARDS_FOLDER
from tests.crawl.small_site import crawl_site
from tests.crawl.test_requisites import SITE as REQUISITES_SITE
from tests.importing.foreign import answer, record, write
from tests.report.planted_site import SITE, crawl_planted, expected, page
from tests.search.shop import Shop
from tests.search.test_archive_away import bring_back, put_away

A, B = "https://a.example/", "https://b.other/"


def pairs(report: SiteReport, name: str) -> set[tuple[str, str]]:
    return {(row.page, row.target) for row in report.rows(name)}


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    into = tmp_path_factory.mktemp("planted") / "c"
    crawl_planted(into, requisites=True)
    return into


def test_every_planted_fault_is_found_and_nothing_else(planted: Path) -> None:
    wanted = expected()
    with make_report(planted) as report:
        for each in report.findings:
            if not each.unchecked:
                assert pairs(report, each.rule.name) == wanted.get(each.rule.name, set()), each.rule.name
        checked = [each for each in report.findings if not each.unchecked]
        assert {each.rule.name for each in checked if each.rows} == {each.rule.name for each in checked} - {
            "broken-start"
        }


def test_findings_say_the_words_of_links_and_what_is_wrong_with_their_targets(planted: Path) -> None:
    with make_report(planted) as report:
        said = {row.target.removeprefix(SITE): (row.words, row.detail) for row in report.rows("broken-links")}
        assert said == {"/missing": ("our offers", "404"), "/fails": ("see", "410")}
        others = {row.target: row.detail for row in report.rows("broken-external-links")}
        assert others["https://gone.example/"] == "the host does not exist"
        details = {row.page.removeprefix(SITE): row.detail for row in report.rows("orphans")}
        assert details == {"/orphan": "in a sitemap", "/plain-end": "in a sitemap"}
        assert [row.detail for row in report.rows("slow-pages")] == ["3.5 s"]
        leads = {row.target.removeprefix(SITE): row.detail for row in report.rows("redirected-links")}
        assert leads["/chain"] == f"301, ends at {SITE}/plain"
        assert leads["/loop"] == "301, never arrives"


def test_every_page_and_style_sheet_that_names_a_broken_file_is_told_with_what_is_wrong(planted: Path) -> None:
    with make_report(planted) as report:
        details = {row.target.removeprefix(SITE): row.detail for row in report.rows("broken-requisites")}
        assert details == {"/gone.css": "404", "/gone.png": "404", "/gone.woff": "410"}
        assert {row.target for row in report.rows("broken-links")} == {f"{SITE}/missing", f"{SITE}/fails"}


def test_style_sheets_and_images_of_an_imported_archive_are_no_orphans(tmp_path: Path) -> None:
    files = {"": ("text/html", b"<p>A page"), "s.css": ("text/css", b"p {}"), "alone": ("text/html", b"<p>Alone")}
    written = [
        record("response", f"{A}{name}", answer(body, Content_Type=kind)) for name, (kind, body) in files.items()
    ]
    import_archives([write(tmp_path / "a.warc.gz", *written)], tmp_path / "c")
    with make_report(tmp_path / "c") as report:
        assert {row.page for row in report.rows("orphans")} == {A, f"{A}alone"}


def test_requisites_are_no_pages_and_no_orphans(tmp_path: Path) -> None:
    _, stats = crawl_site(tmp_path / "c", REQUISITES_SITE.get, requisites=True)
    with make_report(tmp_path / "c") as report:
        assert stats.requisites > 0
        assert report.survey.pages == stats.pages
        assert not list(report.rows("orphans"))


@pytest.mark.slow
def test_report_read_by_workers_is_the_same(planted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with make_report(planted) as here:
        alone = {each.rule.name: list(here.rows(each.rule.name)) for each in here.findings}
    monkeypatch.setattr(workers, "MANY_DOCUMENTS", 1)
    with make_report(planted) as report:
        assert {each.rule.name: list(report.rows(each.rule.name)) for each in report.findings} == alone


def test_collection_without_bodies_says_what_was_not_checked(tmp_path: Path) -> None:
    crawl_planted(tmp_path, archive="none")
    with make_report(tmp_path) as report:
        for each in report.findings:
            assert bool(each.unchecked) == (each.rule.needs not in (Need.NOTHING, Need.TIMES, Need.CLUSTERS)), (
                each.rule.name
            )
            if each.rule.needs is Need.BODIES:
                assert not each.rows
        for name in ("broken-external-links", "redirect-loops", "redirected-links", "slow-pages"):
            assert pairs(report, name) == expected()[name]
        assert pairs(report, "broken-links") >= expected()["broken-links"]
        assert pairs(report, "sitemap-broken") == expected()["sitemap-broken"], "known by the sitemap alone"
        assert any("keeps no bodies" in remark for remark in report.remarks)


def test_start_that_fails_is_told(tmp_path: Path) -> None:
    crawl_planted(tmp_path, {"/": 404})
    with make_report(tmp_path) as report:
        assert pairs(report, "broken-start") == {(f"{SITE}/", "")}
        assert "The collection has no page of this site yet." in report.remarks


def test_clean_site_has_no_finding(tmp_path: Path) -> None:
    crawl_planted(
        tmp_path, {"/": page("home", "<a href=/a>a</a>"), "/a": page("a", "<a href=/>home</a>")}, sitemaps=False
    )
    with make_report(tmp_path) as report:
        assert [each.rule.name for each in report.findings if each.rows] == []


def test_crawl_that_is_not_complete_says_so(tmp_path: Path) -> None:
    crawl_planted(tmp_path, pages=3)
    with make_report(tmp_path) as report:
        assert report.survey.queued > 10
        assert "The crawl is not complete" in report.remarks[0]


def test_shards_are_judged_as_one_site(tmp_path: Path) -> None:
    (tmp_path / SHARDED_FILE).write_text("{}")
    shards = [Shop(tmp_path / SHARDS_FOLDER / str(n), warc_first=100 * n) for n in (1, 2)]
    body = "<title>Same</title><h1>h</h1><meta name=description content=d>"
    shards[0].page(A, f"{body}<a href='{B}gone'>lost</a><a href='{B}'>b</a>")
    shards[1].page(B, f"<title>Same</title><h1>h</h1><meta name=description content=e><a href='{A}'>a</a>")
    shards[1].gone(f"{B}gone")
    for shop in shards:
        shop.linker.flush()
        shop.close()
    with make_report(tmp_path) as report:
        assert pairs(report, "broken-links") == {(A, f"{B}gone")}
        assert pairs(report, "duplicate-titles") == {(A, ""), (B, "")}
        assert report.survey.unread == 0


def test_archive_in_a_central_store_is_read_and_a_store_out_of_reach_is_told(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "c")
    shop.page(A, "<title>T</title><meta name=description content=d>no heading")
    shop.linker.flush()
    gone = put_away(shop, "store")
    with make_report(shop.path) as report:
        assert report.survey.unread == 1
        assert "The bodies of 1 pages could not be read" in report.remarks[0]
    bring_back(gone)
    with make_report(shop.path) as report:
        assert pairs(report, "missing-h1") == {(A, "")}
        assert not report.survey.unread
    shop.close()


def test_every_rule_has_a_query_or_a_walk_and_is_in_the_docs() -> None:
    text = (Path(__file__).parents[2] / "docs" / "report.md").read_text()
    assert [rule.name for rule in RULES if f"`{rule.name}`" not in text] == []
    assert {rule.name for rule in RULES} - set(QUERIES) == {"mixed-content", "canonical-loop", "canonical-chain"}
    assert not set(QUERIES) - {rule.name for rule in RULES}
