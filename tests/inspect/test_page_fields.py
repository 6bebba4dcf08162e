"""What is extracted from stored pages when it is asked for: metadata and fields."""

import json
from pathlib import Path

from lycosa import Collection
from tests.cli.command import lycosa
from tests.crawl.small_site import FIRST, crawl_site, links

ARTICLE = (
    "<title>Storm - News</title><meta property=og:title content=Storm><meta name=author content='Ada Reed'>"
    '<script type="application/ld+json">{"@type": "NewsArticle", "datePublished": "2024-05-01"}</script>'
)


def test_metadata_of_a_stored_page_is_read_from_its_body(tmp_path: Path) -> None:
    crawl_site(tmp_path / "c", {FIRST: ARTICLE}.get)
    with Collection(tmp_path / "c") as collection:
        found = collection.get(FIRST).metadata
    assert (found.title, found.author, found.published) == ("Storm", "Ada Reed", "2024-05-01")
    assert found.type == "NewsArticle"


def test_fields_of_settings_work_for_pages_crawled_before_them(tmp_path: Path) -> None:
    site = {FIRST: f"<h1>Shop</h1>{links('a')}", f"{FIRST}a": "<b class=price>12</b><i class=tag>x</i>"}.get
    crawl_site(tmp_path / "c", site)
    with Collection(tmp_path / "c") as collection:
        assert collection.get(f"{FIRST}a").fields == {}
    crawl_site(tmp_path / "c", site, fields={"price": ".price", "tags": ".tag*"})
    with Collection(tmp_path / "c") as collection:
        assert [page.fields for page in collection] == [
            {"price": None, "tags": []},
            {"price": "12", "tags": ["x"]},
        ]


GERMAN = "<p>" + "Alle Menschen sind frei und gleich an Würde und Rechten geboren. Sie sind mit Vernunft begabt. " * 3


def test_language_is_what_a_page_declares_and_else_that_of_its_text(tmp_path: Path) -> None:
    site = {
        FIRST: f"<html lang=en><main>{GERMAN}{links('a', 'b')}",
        f"{FIRST}a": GERMAN,
        f"{FIRST}b": "<p>12</p>",
    }
    crawl_site(tmp_path / "c", site.get)
    with Collection(tmp_path / "c") as collection:
        pages = {page.url: page for page in collection}
        assert [page.language for page in pages.values()] == ["en", "de", ""]
        assert pages[FIRST].detected_language.language == "de"
        assert pages[FIRST].detected_language.score > 0.9
    said = lycosa("export", tmp_path / "c", "jsonl", "--language", "de", "--content", "none")
    assert [json.loads(line)["url"] for line in said.out.splitlines()] == [f"{FIRST}a"]
    fine = lycosa("export", tmp_path / "c", "jsonl", "--like", "fineweb", "--path", "/$")
    assert (json.loads(fine.out)["language"], json.loads(fine.out)["language_score"] > 0.9) == ("de", True)
