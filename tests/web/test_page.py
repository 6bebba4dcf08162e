"""The page of a document: what it says of itself, for every kind; and a page for any bytes, in bounded time."""

import json
import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from page_data import conformance

from lycosa.web.document import Document, Page, Readable
from lycosa.web.hazard import MAX_TAGS
from lycosa.web.kernel import native
from lycosa.web.links import LinkKind
from lycosa.web.media import MediaKind
from lycosa.web.page import analyse_page, beginning_read
from tests.effort import bounded

pytestmark = pytest.mark.usefixtures("each_kernel")

DOCUMENT = """<!DOCTYPE html><html lang=" en-GB "><head><title> The
  title </title><meta name=Description content=" In  short. "><meta name=robots content="noindex, nofollow">
<meta name="ROBOTS" content="noarchive"><link rel="stylesheet Canonical" href=" /c "><base target=x><base href="/b/">
<base href="/no/"><style>p { }</style></head><body><svg><title>drawing</title></svg><nav>Menu</nav>
<h1>One <b>head</b></h1><main><p>Some<b>bold</b> text,<script>var x;</script><p>more.<noscript>no</noscript></main>
<h3>Three</h3><template>hidden</template></body></html>"""


def html(body: str | bytes, content_type: str = "text/html; charset=utf-8") -> Page:
    data = body.encode() if isinstance(body, str) else body
    return analyse_page(data, url="http://host.example/", content_type=content_type)


def xml(body: str, content_type: str = "application/xml") -> Page:
    return analyse_page(body.encode(), url="http://host.example/", content_type=content_type)


def test_html_page_says_what_its_head_says() -> None:
    page = html(DOCUMENT)

    assert (page.title, page.description, page.canonical) == ("The title", "In short.", "/c")
    assert (page.language, page.base_href) == ("en-GB", "/b/")
    assert page.robots == ("noindex, nofollow", "noarchive")
    assert (page.charset, page.media.kind, page.is_cut) == ("UTF-8", MediaKind.HTML, False)


def test_html_page_text_is_the_visible_text() -> None:
    page = html(DOCUMENT)

    assert page.text == "drawing Menu One head Some bold text, more. Three"
    assert page.headings == ((1, "One head"), (3, "Three"))


def test_html_page_survives_pickling_and_stays_frozen() -> None:
    page = html(DOCUMENT)

    assert pickle.loads(pickle.dumps(page)) == page
    with pytest.raises(AttributeError):
        page.title = "other"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("markup", "title"),
    [
        ("<title> </title><title>T</title>", "T"),
        ("<svg><title>drawing</title></svg><title>T</title>", "T"),
        ("<math><title><title>T</title></title>", "T"),
        ("<noscript><title>T</title></noscript>", "T"),
        ("<title></title>", None),
    ],
)
def test_html_title_is_the_first_that_says_something_and_names_no_drawing(markup: str, title: str | None) -> None:
    assert html(markup).title == title


def test_html_text_digest_is_of_the_main_text_only() -> None:
    page = html(DOCUMENT)

    assert html(DOCUMENT.replace("Menu", "Another menu")).text_digest == page.text_digest
    assert html(DOCUMENT.replace("Some", "Other")).text_digest != page.text_digest


@pytest.mark.parametrize(
    ("head", "base"),
    [
        ("<base href=''><base href=/b/>", None),
        ("<base href><base href=/b/>", None),
        ("<base target=x><base href=' /b/ '><base href=/c/>", "/b/"),
    ],
)
def test_html_base_is_the_first_that_has_the_attribute_even_if_empty(head: str, base: str | None) -> None:
    assert html(head).base_href == base


def test_html_language_falls_back_from_markup_to_meta_to_header() -> None:
    meta = b"<meta http-equiv=content-language content='fr, de'>"

    assert html(meta).language == "fr"
    assert analyse_page(b"<p>", url="u", content_type="text/html", content_language="it, en").language == "it"
    assert html(b"<p>").language is None


def test_document_without_text_is_known_to_have_none_but_a_pdf_is_read_later() -> None:
    found = {
        kind: analyse_page(b"x", url="u", content_type=kind, wants_main=True).readable
        for kind in ("image/png", "application/zip", "application/pdf")
    }

    assert found == {"image/png": Readable(), "application/zip": Readable(), "application/pdf": None}


def test_html_in_a_legacy_encoding_is_read_by_the_webs_tables() -> None:
    page = html("<meta charset=latin1><title>“quoted”</title><a href=é>".encode("cp1252"), "text/html")

    assert (page.charset, page.title, page.links.hrefs) == ("windows-1252", "“quoted”", ("é",))


def test_html_without_a_body_has_frames_and_no_text() -> None:
    page = html("<frameset><frame src=a></frameset>")

    assert (page.links.hrefs, page.text) == (("a",), "")


def test_xhtml_with_a_self_closed_script_keeps_what_follows() -> None:
    page = html("<html><head><script src='x'/><title>T</title></head><body>text</body></html>", "application/xhtml+xml")

    assert (page.title, page.text) == ("T", "text")


def test_equal_bodies_have_equal_digests_and_others_do_not() -> None:
    one, same, other = html("<p>a"), html("<p>a", "text/html"), html("<p>b")

    assert (one.fingerprint, one.digest) == (same.fingerprint, same.digest)
    assert one.fingerprint != other.fingerprint
    assert one.digest != other.digest
    assert 0 <= one.fingerprint < 2**64


RSS = """<?xml version='1.0'?><rss><channel><title>News</title><link>http://a/</link>
<description>All &nbsp;of it</description><language>de</language><atom:link href='http://a/feed' rel='self'/>
<item><media:title>no</media:title><title>One &amp; two</title><link> http://a/1 </link>
<description>&lt;b&gt;bold&lt;/b&gt; text</description></item>
<item><guid>http://a/2</guid></item><item><guid isPermaLink='false'>http://a/3</guid></item></channel></rss>"""
ATOM = """<feed xmlns='http://www.w3.org/2005/Atom' xml:lang='en'><title>F</title><link href='/home'/>
<link rel='hub' href='/h'/><entry><link href='/1'/><title>One</title><link rel='edit' href='/e'/></entry></feed>"""


def test_rss_feed_gives_its_entries_links_under_their_titles() -> None:
    page = xml(RSS)

    assert (page.media.kind, page.title, page.description, page.language) == (MediaKind.FEED, "News", "All of it", "de")
    assert [(link.href, link.kind, link.anchor) for link in page.links] == [
        ("http://a/", LinkKind.A, "News"),
        ("http://a/feed", LinkKind.LINK, ""),
        ("http://a/1", LinkKind.A, "One & two"),
        ("http://a/2", LinkKind.A, ""),
    ]
    assert "bold text" in page.text
    assert "<b>" not in page.text


def test_atom_feed_gives_its_entries_links_under_their_titles() -> None:
    page = xml(ATOM, "application/atom+xml")

    assert page.language == "en"
    assert [(link.href, link.anchor, link.rel) for link in page.links] == [
        ("/home", "F", ""),
        ("/h", "", "hub"),
        ("/e", "", "edit"),
        ("/1", "One", ""),
    ]


def test_xml_gives_text_structure_and_xlinks() -> None:
    page = xml("<doc xml:lang='sv'><Part xlink:href='/p'>one</Part><part>two</part></doc>")

    assert (page.media.kind, page.text, page.language) == (MediaKind.XML, "one two", "sv")
    assert (page.structure_first, page.structure_last) == ("dpp", "ctt")
    assert page.links.hrefs == ("/p",)


def test_xml_broken_in_the_middle_keeps_what_came_before() -> None:
    assert xml("<doc><a href='/x'>one</a><b></doc>").links.hrefs == ("/x",)


@pytest.mark.parametrize(
    "name", ["cyclic", "dtd", "dtd_element", "external", "external_file", "quadratic", "xmlbomb", "xmlbomb2"]
)
def test_hostile_xml_is_not_expanded(name: str) -> None:
    body = conformance(f"hostile-xml/{name}.xml").read_bytes()

    page = analyse_page(body, url="http://host.example/", content_type="text/xml")

    assert len(page.text) < 1_000


@pytest.mark.parametrize("name", ["simple", "simple-ns"])
def test_harmless_xml_is_read(name: str) -> None:
    body = conformance(f"hostile-xml/{name}.xml").read_bytes()

    assert analyse_page(body, url="http://host.example/", content_type="text/xml").structure_first


def test_plain_text_has_text_and_no_links() -> None:
    page = html("See  http://host.example/\n<b>here</b>", "text/plain")

    assert page.text == "See http://host.example/ <b>here</b>"
    assert len(page.links) == 0
    assert page.codes.length == len(page.text)


def test_unread_kinds_have_digests_and_nothing_else() -> None:
    page = html(b"\x89PNG\r\n\x1a\n<a href=x>", "image/png")

    assert (page.media.kind, page.charset, page.text, len(page.links)) == (MediaKind.IMAGE, None, "", 0)
    assert page.digest


def test_another_analyser_in_the_registry_is_used() -> None:
    def upper(document: Document) -> Page:
        return Page(document.url, document.media, None, 0, b"", title=document.body.decode().upper())

    page = analyse_page(b"%PDF-x", url="u", content_type="application/pdf", analysers={MediaKind.PDF: upper})

    assert page.title == "%PDF-X"


TAGS = (
    b"<a href= </a> <!-- --> <script> </script> <table> <td> <svg> <title> <meta charset= gbk <base <main> <template> "
    b"<frameset> <x-y> <select> </p> <html lang= <noscript> <h1> <object> <b id=1> </b> <iframe> <img src=x>"
)
SOUP = st.lists(
    st.sampled_from([*TAGS.split(), b"<", b">", b"'", b'"', b" ", b"&#0;", b"\0", b"\xff", b"\x01\x02", b"\xe2\x80"]),
    max_size=60,
).map(b"".join)
TYPES = st.sampled_from(
    [
        None,
        "text/html",
        "text/html; charset=gbk",
        "application/xhtml+xml",
        "text/xml",
        "application/rss+xml",
        "text/plain",
    ]
)


@settings(max_examples=300)
@given(st.one_of(st.binary(max_size=300), SOUP), TYPES)
def test_any_bytes_give_a_page_that_survives_pickling(body: bytes, content_type: str | None) -> None:
    page = analyse_page(body, url="http://host.example/", content_type=content_type)

    assert pickle.loads(pickle.dumps(page)) == page
    assert len(page.structure_first) == len(page.structure_last)
    assert len(page.links) == len(page.links.kinds) == len(page.links.anchors) == len(page.links.rels)
    assert len({(link.href, link.kind) for link in page.links}) == len(page.links)
    page.text.encode()


def test_naughty_strings_in_every_place_give_a_page() -> None:
    for naughty in json.loads(conformance("hostile-strings/blns.json").read_text()):
        page = html(f"<title>{naughty}</title><a href='{naughty}' rel='{naughty}'>{naughty}</a><p>{naughty}")
        assert isinstance(page, Page)


def test_compressed_bodies_taken_for_text_give_a_page() -> None:
    for path in sorted(conformance("hostile-compressed").iterdir()):
        for content_type in ("text/html", "text/plain", "text/xml", None):
            assert analyse_page(path.read_bytes(), url="http://host.example/", content_type=content_type).digest


HOSTILE = {
    "nested": b"<div>" * 100_000,
    "nested and closed": b"<div>" * 100_000 + b"</div>" * 100_000,
    "never ended": b"<" * 10_000_000,
    "tags never ended": b"<a " * 3_000_000,
    "nul": b"\0" * 10_000_000,
    "ampersands": b"&" * 10_000_000,
    "spaces": b" " * 10_000_000,
    "attributes": b"<a " + b" ".join(b"x%d=1" % n for n in range(100_000)) + b">",
    "attributes by slash": b"<a " + b"/".join(b"x%d=1" % n for n in range(100_000)) + b">",
    "formatting": b"".join(b"<p><b id=%d></p>" % n for n in range(50_000)),
    "unmatched ends": b"<span>" * 100_000 + b"</i>" * 100_000,
    "comments": b"<!--" * 2_000_000,
    "scripts": b"<script>" * 1_000_000,
    "nested headings": b"<h1><div>" * 100_000,
    "nested anchors": b"<a href=x><object>" * 100_000,
    "words of rel": b"<a href=x rel='" + b"a " * 200_000 + b"'>1</a><a href=x rel='" + b"b " * 200_000 + b"'>2</a>",
    "late declaration": b"<meta " + b"charset " * 1_000_000,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_html_is_analysed_with_bounded_work(name: str) -> None:
    bounded(lambda: html(HOSTILE[name], "text/html"), units=800)  # each took 1,200 to millions without its guard


@pytest.mark.slow
def test_large_honest_pages_are_analysed_whole() -> None:
    links = b"".join(b"<li><a href=%d>x</a> " % n for n in range(40_000))
    table = b"<table>" + b"<tr><td>x<td><b class=y>y</b>" * 20_000 + b"</table>"
    breaks = b"line<br>" * 100_000

    for body, count in ((links, 40_000), (table, 0), (breaks, 0)):
        page = html(body)
        assert not page.is_cut
        assert len(page.links) == count


@pytest.mark.parametrize(
    ("word", "tail", "is_told"),
    [
        (b"x", b"", True),
        (b"\xc3\xa4", b"", True),
        (b"x", b"\xff", False),  # by it the document is in another encoding than its beginning
        (b"x", b"<i data-vol=a>", False),
    ],
)
def test_beginning_that_is_read_of_a_document_with_too_many_tags_gives_its_page(
    word: bytes, tail: bytes, is_told: bool
) -> None:
    body = (b"<a href=/%s>x</a>" % word) * (MAX_TAGS // 2 + 100) + tail

    read = beginning_read(body, "text/html")

    if native() is None:
        assert read == len(body)
        return
    assert (read < len(body)) == is_told
    page, whole = html(body[:read], "text/html"), html(body, "text/html")
    assert (page.is_cut, page.charset, page.text_digest) == (whole.is_cut, whole.charset, whole.text_digest)
    assert (page.links, page.is_volatile, page.structure_last) == (whole.links, whole.is_volatile, whole.structure_last)


@pytest.mark.parametrize("body", [b"<p>words", b"<div>" * 6_000, b"<b id=1>" * 1_000, b"x" * (17 << 20)])
def test_beginning_that_is_read_of_other_documents_is_all(body: bytes) -> None:
    assert beginning_read(body, "text/html") == len(body)


def test_page_cut_for_its_structure_says_so() -> None:
    page = html(b"<a href=first>x</a>" + HOSTILE["nested"])

    assert page.is_cut
    assert page.links.hrefs == ("first",)
