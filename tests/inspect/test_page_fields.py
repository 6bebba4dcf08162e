"""What is extracted from stored pages when it is asked for: metadata and fields."""

from pathlib import Path

from lycosa import Collection
from tests.crawl.small_site import FIRST, crawl_site

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
