"""What is extracted from stored pages when it is asked for: metadata and fields."""

from pathlib import Path

from lycosa import Collection
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
