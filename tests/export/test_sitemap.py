"""`lycosa export DIR sitemap`: read back by our own reader and by an XML parser that knows what the schema allows."""

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from lycosa.export import sitemap
from lycosa.web import read_sitemap
from tests.cli.command import lycosa
from tests.crawl.small_site import FIRST, Sent, crawl_site, links
from tests.export.conftest import OTHER

NAMESPACE = "{http://www.sitemaps.org/schemas/sitemap/0.9}"
W3C_DATE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


def checked(path: Path) -> list[str]:
    """The URLs of a sitemap or an index, which must be as the schema says."""
    root = ET.parse(path).getroot()
    assert root.tag in (f"{NAMESPACE}urlset", f"{NAMESPACE}sitemapindex")
    entry = f"{NAMESPACE}{'url' if root.tag.endswith('urlset') else 'sitemap'}"
    urls = []
    for child in root:
        assert child.tag == entry
        names = [part.tag.removeprefix(NAMESPACE) for part in child]
        assert names in (["loc"], ["loc", "lastmod"])
        assert all(W3C_DATE.fullmatch(part.text or "") for part in child if part.tag.endswith("lastmod"))
        urls.append(child[0].text or "")
    assert 0 < len(urls) <= sitemap.MOST_URLS
    assert path.stat().st_size <= sitemap.MOST_BYTES
    return urls


def test_sitemap_of_each_host_lists_its_pages_once(small: Path, tmp_path: Path) -> None:
    out = tmp_path / "maps"
    assert lycosa("export", small, "sitemap", "--out", out).code == 0
    first = checked(out / "127.0.0.1~http~9" / "sitemap.xml")
    assert set(first) == {FIRST, f"{FIRST}a", f"{FIRST}docs/x", f"{FIRST}docs/y.txt"}  # b is a copy of a
    assert checked(out / "127.0.0.2~http~9" / "sitemap.xml") == [OTHER]
    data = (out / "127.0.0.1~http~9" / "sitemap.xml").read_bytes()
    read = read_sitemap(data, f"{FIRST}sitemap.xml")
    assert [entry.url for entry in read.entries] == first
    assert not read.problem


def test_sitemap_leaves_out_what_is_shown_in_pages_and_counts_what_it_lists(tmp_path: Path) -> None:
    pages: dict[str, str | Sent | int] = {
        FIRST: links("a.css", "b.js", "c.png", "d.txt"),
        f"{FIRST}a.css": Sent("p {}", {"content-type": "text/css"}),
        f"{FIRST}b.js": Sent("run()", {"content-type": "text/javascript"}),
        f"{FIRST}c.png": Sent("a picture", {"content-type": "image/png"}),
        f"{FIRST}d.txt": Sent("words", {"content-type": "text/plain"}),
    }
    crawl_site(tmp_path / "c", pages.get, FIRST, skip_extensions=())

    said = lycosa("export", tmp_path / "c", "sitemap", "--out", tmp_path / "m", "--json")
    pictures = lycosa("export", tmp_path / "c", "sitemap", "--out", tmp_path / "p", "--type", "image/*", "--json")

    assert said.facts["pages"] == 2
    assert checked(tmp_path / "m" / "sitemap.xml") == [FIRST, f"{FIRST}d.txt"]
    assert pictures.facts["pages"] == 1
    assert checked(tmp_path / "p" / "sitemap.xml") == [f"{FIRST}c.png"]


def test_sitemap_of_one_host_stands_in_the_folder_itself(small: Path, tmp_path: Path) -> None:
    assert lycosa("export", small, "sitemap", "--host", "127.0.0.2", "--out", tmp_path / "m").code == 0
    assert checked(tmp_path / "m" / "sitemap.xml") == [OTHER]


@pytest.mark.parametrize(("name", "most"), [("MOST_URLS", 2), ("MOST_BYTES", 250)])
def test_sitemap_that_is_full_is_continued_in_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, most: int
) -> None:
    monkeypatch.setattr(sitemap, name, most)
    pages = {f"{FIRST}{n}?a=1&b=<>": f"<title>{n}</title>{n}" for n in range(5)}
    hrefs = [url.replace("<>", "%3C%3E") for url in pages]
    site = dict(zip(hrefs, pages.values(), strict=True)) | {FIRST: links(*(url.replace("&", "&amp;") for url in hrefs))}
    crawl_site(tmp_path / "c", site.get)
    assert lycosa("export", tmp_path / "c", "sitemap", "--out", tmp_path / "m").code == 0
    parts = sorted((tmp_path / "m").glob("sitemap-*.xml"))
    assert len(parts) >= 3
    index = read_sitemap((tmp_path / "m" / "sitemap.xml").read_bytes(), f"{FIRST}sitemap.xml")
    assert index.is_index
    assert sorted(entry.url for entry in index.entries) == [f"{FIRST}{part.name}" for part in parts]
    assert sorted(url for part in parts for url in checked(part)) == sorted(site)


def test_lastmod_is_when_the_page_changed_or_what_its_server_says(tmp_path: Path) -> None:
    said = {"last-modified": "Sat, 31 Jan 2026 12:00:00 GMT"}
    crawl_site(tmp_path / "c", {FIRST: links("a"), f"{FIRST}a": Sent("a", said)}.get)
    assert lycosa("export", tmp_path / "c", "sitemap", "--out", tmp_path / "m").code == 0
    text = (tmp_path / "m" / "sitemap.xml").read_text()
    assert text.count("<lastmod>") == 1
    assert "a</loc><lastmod>2026-01-31T12:00:00Z</lastmod>" in text
