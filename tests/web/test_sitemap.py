"""Sitemaps: crawler-commons' rows and files, broken files that still have URLs, and files meant to hurt."""

import base64
import gzip
import json
import sys
import tracemalloc
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lycosa.web import sitemap
from lycosa.web.date import parse_date
from lycosa.web.robots import run_steps
from lycosa.web.sitemap import Sitemap, SitemapEntry, SitemapKind, read_sitemap, read_sitemap_steps
from tests.effort import bounded

BASE = "https://www.example.com/sitemap.xml"

FILES = {
    "rss__feed.rss": (SitemapKind.FEED, 4),
    "rss__xmlRss_pubDate.xml": (SitemapKind.FEED, 7),
    "sitemaps__atom.xml": (SitemapKind.FEED, 1),
    "sitemaps__do-not-visit.txt": (SitemapKind.TEXT, 1),
    "sitemaps__extension__hebdenbridgetimes-articles-sitemap.xml": (SitemapKind.URLS, 74),
    "sitemaps__extension__pagemaps-sitemap.xml": (SitemapKind.URLS, 2),
    "sitemaps__extension__shinpaideshou-news-sitemap.xml": (SitemapKind.URLS, 3),
    "sitemaps__extension__sitemap-images.xml": (SitemapKind.URLS, 1),
    "sitemaps__extension__sitemap-links.xml": (SitemapKind.URLS, 3),
    "sitemaps__extension__sitemap-mobile.xml": (SitemapKind.URLS, 3),
    "sitemaps__extension__sitemap-news.xml": (SitemapKind.URLS, 2),
    "sitemaps__extension__sitemap-videos-tvshow.xml": (SitemapKind.URLS, 1),
    "sitemaps__extension__sitemap-videos.xml": (SitemapKind.URLS, 3),
    "sitemaps__sitemap-with-bom.txt": (SitemapKind.TEXT, 2),
    "sitemaps__sitemap.badns.xml": (SitemapKind.URLS, 2),
    "sitemaps__sitemap.index.xml": (SitemapKind.INDEX, 15),
    "sitemaps__sitemap.ns.xml": (SitemapKind.URLS, 2),
    "sitemaps__sitemap.txt": (SitemapKind.TEXT, 2),
    "sitemaps__sitemap.txt.gz": (SitemapKind.TEXT, 5),
    "sitemaps__xmlSitemap.gz": (SitemapKind.URLS, 5),
}


def rows(conformance: Path) -> dict[str, dict[str, Any]]:
    lines = (conformance / "sitemaps" / "crawler_commons_sitemaps.jsonl").read_text().splitlines()
    found = {row["id"]: row for row in map(json.loads, lines)}
    # This row's content is missing from the data: it is that of another row with the first URL's scheme left out and
    # a fragment on the second one.
    plain = found["testSitemapXML"]["content"]
    changed = plain.replace("<loc>http://", "<loc>", 1).replace("item=12<", "item=12#anchor<", 1)
    found["testSitemapXMLfilterUrls"]["content"] = changed
    return found


def urlset(*locations: str) -> bytes:
    return f"<urlset>{''.join(f'<url><loc>{location}</loc></url>' for location in locations)}</urlset>".encode()


def urls(found: Sitemap) -> list[str]:
    return [entry.url for entry in found.entries]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_read_file_cut_anywhere_names_no_url_that_is_not_in_it(encoding: str) -> None:
    whole = urlset("http://e.org/a?x=1&amp;y=2", "http://e.org/b?x=1&#38;y=2").decode().encode(encoding)
    named = {"http://e.org/a?x=1&y=2", "http://e.org/b?x=1&y=2"}

    found = {entry.url for end in range(len(whole) + 1) for entry in read_sitemap(whole[:end], BASE).entries}

    assert found == named


def test_read_every_row_as_expected(conformance: Path) -> None:
    found = {
        name: row for name, row in rows(conformance).items() if "setAllowDocTypeDefinitions(true)" not in row["options"]
    }  # ours refuses every document type definition
    wrong = [name for name, row in found.items() if not is_as_expected(row)]
    assert (len(found), wrong) == (25, [])


def is_as_expected(row: dict[str, Any]) -> bool:
    body = base64.b64decode(row["content_b64"]) if row.get("content_b64") else row["content"].encode()
    found = read_sitemap(body, row["url"])
    expect = row["expect"]
    if expect.get("rejects"):
        return found.kind is SitemapKind.UNKNOWN and not found.entries and "root:" not in repr(found)
    count = expect.get("url_count", expect.get("sitemap_count", len(found.entries)))
    is_right_kind = found.kind is not SitemapKind.UNKNOWN and found.is_index is expect.get("is_index", False)
    return is_right_kind and len(found.entries) == count and expect.get("urls_mentioned", urls(found)) == urls(found)


@pytest.mark.parametrize("name", FILES)
def test_read_every_file_its_kind_and_count(conformance: Path, name: str) -> None:
    found = read_sitemap((conformance / "sitemaps" / name).read_bytes(), "http://www.example.com/sitemap.xml")
    assert (found.kind, len(found.entries), found.problem) == (*FILES[name], "")


def test_read_hostile_xml_opens_nothing_and_stays_small(conformance: Path) -> None:
    opened: list[str] = []
    sys.addaudithook(lambda event, _: opened.append(event) if event in WATCHED and tracemalloc.is_tracing() else None)
    benign = ("simple.xml", "simple-ns.xml", "dtd.xml")
    bodies = {path.name: path.read_bytes() for path in (conformance / "hostile-xml").glob("*.xml")}
    assert len(bodies) == 10
    for body in bodies.values():
        read_sitemap(body, BASE)  # Python opens the codecs it meets for the first time
    for name, body in bodies.items():
        tracemalloc.start()
        found = read_sitemap(body, BASE)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 20_000_000
        assert found.problem.startswith("not a sitemap" if name in benign else "refused")
    assert opened == []


WATCHED = frozenset({"open", "socket.connect", "socket.getaddrinfo", "urllib.Request"})


@pytest.mark.parametrize(
    "document",
    ["<urlset><url><loc>http://a/&j;</loc></url></urlset>", "<feed><entry><link href='http://a/&j;'/></entry></feed>"],
)
def test_read_entity_bomb_is_refused(document: str) -> None:
    levels = "".join(f'<!ENTITY {name} "{f"&{chr(ord(name) - 1)};" * 10}">' for name in "bcdefghij")
    bomb = f'<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa">{levels}]>{document}'.encode()
    found = bounded(lambda: read_sitemap(bomb, BASE), units=100)
    assert (urls(found), found.problem[:7]) == ([], "refused")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"<urlset>" + b"<a>" * 1_000_000, "too many or too deeply nested"),
        (b"<urlset>" + b"<a/>" * 2_100_000, "too many or too deeply nested"),
        (b"<urlset " + b"a='b' " * 2_000_000, "a tag without end"),
        (b"<urlset><!--" + b"x" * 9_000_000, "a tag without end"),
        (b"<urlset><url><loc>" + b"a" * 40_000_000, "no element found"),
        (b"\n" * 50_000_000, "not a sitemap"),
        (gzip.compress(b"https://www.example.com/\n") * 20_000, "broken gzip: too many members"),
        (b"\x1f\x8b" + b"junk" * 1_000, "broken gzip"),
    ],
    ids=["deep", "elements", "tag", "comment", "text", "blank", "members", "junk"],
)
def test_read_hostile_size_bounded_time(body: bytes, problem: str) -> None:
    found = bounded(lambda: read_sitemap(body, BASE), units=3_000)
    assert found.problem.startswith(problem)
    assert len(found.entries) <= 1


@pytest.mark.slow
def test_read_gzip_bomb_cut_at_its_bound() -> None:
    packer = zlib.compressobj(9, zlib.DEFLATED, zlib.MAX_WBITS | 16)
    head = packer.compress(b" ") + packer.flush(zlib.Z_FULL_FLUSH)
    megabyte = packer.compress((b" " * 999 + b"\n") * 1_000) + packer.flush(
        zlib.Z_FULL_FLUSH
    )  # needs nothing of what is before it
    bomb = head + megabyte * 1_000
    found = bounded(lambda: read_sitemap(bomb, BASE), units=800)
    assert found.problem.startswith(f"cut at {sitemap.MAX_SITEMAP_BYTES} bytes")


@pytest.mark.slow
def test_read_more_urls_than_allowed_first_ones_kept() -> None:
    full = [f"https://www.example.com/{number}" for number in range(sitemap.MAX_SITEMAP_URLS)]
    assert urls(read_sitemap(urlset(*full), BASE)) == full
    assert read_sitemap(urlset(*full), BASE).problem == ""
    over = read_sitemap(urlset(*full, "https://www.example.com/over"), BASE)
    assert urls(over) == full
    assert over.problem == "more than 50000 URLs"


@pytest.mark.parametrize(
    "body",
    [
        b"<urlset><url><loc>https://a.example/?x=1&y=2</loc></url></urlset>",
        b"<urlset><url><loc>https://a.example/?x=1&amp;y=2</loc></url><url>\xff</url></urlset>",
        b"<urlset><url><loc>https://a.example/?x=1&amp;y=2</loc>\x01</url></urlset>",
        b"<urlset><url><loc>https://a.example/?x=1&amp;y=2</loc><title>&nbsp;</title></url></urlset>",
        b"<urlset><url><loc>https://a.example/?x=1&amp;y=2</loc></url><url></urlset>",
        b"<urlset><url><loc>https://a.example/?x=1&amp;y=2</loc></url><url><loc>https://a.example/cut-in-the-mid",
        b'<?xml version="1.0" encoding="gb2312"?><urlset><url><loc>https://a.example/?x=1&amp;y=2</loc></url></urlset>',
        b'<?xml version="1.0" encoding="no-such"?><urlset><url><loc>https://a.example/?x=1&amp;y=2</loc></url></urlset>',
        b"<?xml version='1.0'?><urlset><url><loc>https://a.example/?x=1&amp;y=2</loc></url></urlset>".decode().encode("utf-16"),
        b"<!DOCTYPE urlset SYSTEM 'http://a.example/x.dtd'><urlset><url><loc>https://a.example/?x=1&amp;y=2</loc></url></urlset>",
        gzip.compress(b"<urlset><url><loc>https://a.example/?x=1&amp;y=2</loc></url>") + b"trailing",
    ],
    ids=["ampersand", "bytes", "control", "entity", "tags", "cut", "gb2312", "unknown", "utf-16", "doctype", "gzip"],
)  # fmt: skip
def test_read_broken_file_its_urls_found(body: bytes) -> None:
    assert urls(read_sitemap(body, BASE)) == ["https://a.example/?x=1&y=2"]


def test_read_entries_resolved_normalised_once_and_dated() -> None:
    body = b"""<urlset xmlns:image="i">
      <url><loc>https://www.example.com/a#x</loc><lastmod>2005-01-01</lastmod></url>
      <url><loc>HTTPS://WWW.EXAMPLE.COM/a</loc><lastmod>2006-01-01</lastmod></url>
      <url><lastmod>soon</lastmod><image:image><image:loc>https://i.example/x.png</image:loc></image:image>
           <loc>/b</loc></url>
      <url><loc>ftp://www.example.com/</loc></url>
      <url><loc>c.html</loc></url>
      <url><loc>www.elsewhere.example/d</loc></url>
    </urlset>"""
    assert read_sitemap(body, BASE).entries == (
        SitemapEntry("https://www.example.com/a", 1104537600.0),
        SitemapEntry("https://www.example.com/b", None),
    )


def test_read_feed_relative_link_resolved() -> None:
    links = b"<link rel='self' href='/no'/><link href='post/1'/>"
    body = b"<feed><entry>" + links + b"<updated>2003-12-13T18:30:02Z</updated></entry></feed>"
    assert read_sitemap(body, "https://a.example/blog/atom.xml").entries == (
        SitemapEntry("https://a.example/blog/post/1", 1071340202.0),
    )


@pytest.mark.parametrize(
    "body", [b"", b"<", b"<html></html>", b"Not found.", b"\x00\x01\x02", b"<!DOCTYPE html><html>"]
)
def test_read_something_else_unknown_with_problem(body: bytes) -> None:
    found = read_sitemap(body, BASE)
    assert (found.kind, found.entries) == (SitemapKind.UNKNOWN, ())
    assert found.problem


TAGS = b"<urlset> <url> <loc> http://a/ </loc> </url> </urlset> <rss> <item> <link> </link> <sitemap> <guid>"
BREAKS = b"& &amp; &x; <![CDATA[ ]]> <!DOCTYPE <!ENTITY [ ]> <!-- --> <?xml \xff \x00 \xef\xbb\xbf \x1f\x8b"
XMLISH = st.lists(st.sampled_from([*TAGS.split(b" "), *BREAKS.split(b" "), b" "]), max_size=20).map(b"".join)


@given(st.binary(max_size=200) | XMLISH, st.integers(1, 50), st.booleans())
def test_read_in_pieces_of_any_size_is_read_as_a_whole(body: bytes, size: int, packed: bool) -> None:
    body = gzip.compress(body) if packed else body
    pieces = [body[at : at + size] for at in range(0, len(body), size)]

    assert run_steps(read_sitemap_steps(pieces, BASE)) == read_sitemap(body, BASE)


def test_read_asks_for_no_piece_behind_what_counts() -> None:
    pieces = iter([b"<!DOCTYPE x [<!ENTITY a 'b'>]>" + b" " * 100_000, *([b" " * 100_000] * 9)])
    run_steps(read_sitemap_steps(pieces, BASE))

    assert len(list(pieces)) == 9


def test_read_gives_up_a_text_with_a_line_without_end() -> None:
    pieces = iter([b"https://www.example.com/a\n", *([bytes(100_000)] * 50)])
    found = run_steps(read_sitemap_steps(pieces, BASE))

    assert urls(found) == ["https://www.example.com/a"]
    assert len(list(pieces)) > 30


def test_read_holds_little_of_a_long_file() -> None:
    def pieces() -> Iterator[bytes]:
        yield b"<urlset>"
        for _ in range(200):
            yield b"<x>" + b" " * 250_000 + b"</x>"

    tracemalloc.start()
    found = run_steps(read_sitemap_steps(pieces(), BASE))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert (found.kind, found.entries) == (SitemapKind.URLS, ())
    assert most < 15_000_000  # as much as a repair may need, and what is being read


@given(st.binary(max_size=200) | XMLISH)
def test_read_any_bytes_give_a_sitemap(body: bytes) -> None:
    assert isinstance(read_sitemap(body, BASE), Sitemap)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2005-01-01", 1104537600.0),
        ("2005", 1104537600.0),
        ("2005-1", 1104537600.0),
        ("2004-12-23T18:00:15.5Z", 1103824815.5),
        ("2024-05-01T10:00+02:00", 1714550400.0),
        ("2024-05-01 08:00:00", 1714550400.0),
        ("Thu, 05 Jan 2017 13:34:51 +0100", 1483619691.0),
        ("05 Jan 17 12:34:51", 1483619691.0),
        ("2024-13-01", None),
        ("Thu, 45 Jan 2017 13:34:51 +0100", None),
        ("yesterday", None),
        ("", None),
        ("1" * 10_000, None),
    ],
)
def test_epoch_of_date_forms_read_as_utc(text: str, seconds: float | None) -> None:
    assert parse_date(text) == seconds


@given(st.text(max_size=70) | st.from_regex(r"[0-9TZ:+. ,a-zA-Z-]{0,40}", fullmatch=True))
def test_epoch_of_any_text_never_raises(text: str) -> None:
    assert parse_date(text) is None or isinstance(parse_date(text), float)
