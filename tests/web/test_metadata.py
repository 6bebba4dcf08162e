"""`page_metadata`: what pages say of themselves, in the ways that they are really written, and hostile ones."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lycosa.web import PageMetadata, page_metadata
from lycosa.web import structured as limits
from lycosa.web.date import iso_date

URL = "https://news.example/2024/storm.html"


def metadata(html: str, content_type: str = "text/html; charset=utf-8") -> PageMetadata:
    return page_metadata(html.encode(), url=URL, content_type=content_type)


def ld(text: str) -> str:
    return f'<script type="application/ld+json">{text}</script>'


# The graph that the most used plug-in of WordPress writes: the article refers to its author and site by @id.
GRAPH = """{"@context":"https://schema.org","@graph":[
 {"@type":"WebSite","@id":"https://news.example/#website","name":"The Example News"},
 {"@type":"Article","@id":"https://news.example/2024/storm.html#article","headline":"Storm over the bay",
  "author":[{"name":"Ada Reed","@id":"https://news.example/#/person/1"},{"@id":"https://news.example/#/person/2"}],
  "datePublished":"2024-05-01T10:00:00+02:00","dateModified":"2024-05-02",
  "image":{"@id":"https://news.example/#image"},"publisher":{"@id":"https://news.example/#website"}},
 {"@type":"ImageObject","@id":"https://news.example/#image","url":"/bay.jpg"},
 {"@type":"Person","@id":"https://news.example/#/person/2","name":"Ben Wu"}]}"""


def test_graph_of_json_ld_gives_article_with_referenced_authors_and_image() -> None:
    page = metadata(f"<title>Storm over the bay - The Example News</title>{ld(GRAPH)}")
    assert page.title == "Storm over the bay"
    assert page.author == "Ada Reed, Ben Wu"
    assert (page.published, page.modified) == ("2024-05-01T08:00:00Z", "2024-05-02")
    assert page.image == "https://news.example/bay.jpg"
    assert (page.site_name, page.type) == ("The Example News", "Article")
    assert [item["@type"] for item in page.json_ld] == ["WebSite", "Article", "ImageObject", "Person"]


@pytest.mark.parametrize(
    "text",
    [
        '{"@type": "Article", "headline": "Storm\nover the bay"}',  # a line break in a string
        '<!-- {"@type": "Article", "headline": "Storm over the bay"} -->',
        '//<![CDATA[\n{"@type": "Article", "headline": "Storm over the bay"}\n//]]>',
        '/* <![CDATA[ */{"@type": "Article", "headline": "Storm over the bay"}/* ]]> */',
        '{"@type": "Article", "headline": "Storm over the bay",};',
        '[{"@type": ["Article", "Thing"], "headline": ["Storm over the bay"], "wordCount": NaN}]',
        '{"@type": "http://schema.org/Article", "headline": "Storm over the bay"}',
    ],
)
def test_json_ld_with_the_usual_mistakes_is_read(text: str) -> None:
    assert metadata(f"<title>-</title>{ld(text)}").title == "Storm over the bay"


def test_broken_json_ld_costs_its_script_only() -> None:
    page = metadata(ld('{"@type": "Article", "headline": "never ends') + ld('{"@type":"Article","headline":"Whole"}'))
    assert page.title == "Whole"
    assert len(page.json_ld) == 1


def test_opengraph_twitter_and_plain_metas_fill_what_items_leave_out() -> None:
    page = metadata(
        "<head><title>T</title><base href='https://cdn.example/x/'><link rel='canonical nofollow' href=/storm>"
        "<meta property=og:title content=' Storm  over '><meta property=og:image content=a.png>"
        "<meta property=og:image content=b.png><meta name=twitter:description content='By card'>"
        "<meta name=Author content='Ada Reed'><meta name=dc.date content='May 1, 2024'>"
        "<meta property=article:author content=https://social.example/ada><meta property=og:type content=article>"
    )
    assert (page.title, page.description, page.author) == ("Storm over", "By card", "Ada Reed")
    assert (page.published, page.type) == ("2024-05-01", "article")
    assert (page.image, page.canonical) == ("https://cdn.example/x/a.png", "https://cdn.example/storm")
    assert page.opengraph["og:image"] == ["a.png", "b.png"]
    assert page.twitter == {"twitter:description": "By card"}
    assert page.metas == {"author": "Ada Reed", "dc.date": "May 1, 2024"}


def test_nested_microdata_is_read_as_the_standard_writes_it() -> None:
    page = metadata(
        "<div itemscope itemtype=https://schema.org/Product id=p><h1 itemprop=name>Kettle <b>9</b></h1>"
        "<img itemprop=image src=/k.png><div itemprop='offers' itemscope itemtype=https://schema.org/Offer>"
        "<span itemprop=price content=19.90>19,90 €</span><link itemprop=availability href=https://schema.org/InStock>"
        "</div><time itemprop=releaseDate datetime=2024-05-01>spring</time></div>"
    )
    assert page.microdata == (
        {
            "type": ["https://schema.org/Product"],
            "properties": {
                "name": ["Kettle 9"],
                "image": ["https://news.example/k.png"],
                "offers": [
                    {
                        "type": ["https://schema.org/Offer"],
                        "properties": {"price": ["19.90"], "availability": ["https://schema.org/InStock"]},
                    }
                ],
                "releaseDate": ["2024-05-01"],
            },
        },
    )
    assert (page.title, page.type, page.image) == ("Kettle 9", "Product", "https://news.example/k.png")


def test_microdata_takes_in_what_itemref_names_and_no_item_is_in_itself() -> None:
    page = metadata(
        "<div itemscope itemref='a b' id=c><b itemprop=name>Ada</b></div><p id=a><i itemprop=job>pilot</i></p>"
        "<div id=b><div itemprop=friend itemscope itemref=b></div></div>"
    )
    (item,) = page.microdata
    assert item["properties"]["name"] == ["Ada"]
    assert item["properties"]["job"] == ["pilot"]
    json.dumps(page.microdata)  # it ends


def test_rdfa_lite_is_read_as_items() -> None:
    page = metadata(
        "<div vocab=https://schema.org/ typeof=Article><h2 property=headline>Storm</h2>"
        "<span property=author typeof=Person><b property=name>Ada Reed</b></span></div>"
    )
    assert page.rdfa[0]["properties"]["author"][0]["properties"] == {"name": ["Ada Reed"]}
    assert (page.title, page.author, page.type) == ("Storm", "Ada Reed", "Article")


def test_page_without_metadata_has_its_title_or_first_heading() -> None:
    assert metadata("<svg><title>Logo</title></svg><title> A\npage </title>").title == "A page"
    assert metadata("<h1>Heading</h1>").title == "Heading"
    assert metadata("") == PageMetadata()


def test_documents_that_are_not_html_have_their_title() -> None:
    feed = "<rss><channel><title>News</title><description>All of it</description></channel></rss>"
    assert metadata(feed, "application/rss+xml").title == "News"
    assert page_metadata(b"\x89PNG\r\n", url=URL, content_type="image/png") == PageMetadata()


@pytest.mark.parametrize(
    ("written", "iso"),
    [
        ("2024-05-01", "2024-05-01"),
        ("2024-05", "2024-05"),
        ("2024-05-01T10:00:00.000+02:00", "2024-05-01T08:00:00Z"),
        ("2024-05-01 10:00", "2024-05-01T10:00:00Z"),
        ("Wed, 01 May 2024 10:00:00 GMT", "2024-05-01T10:00:00Z"),
        ("2024/5/1", "2024-05-01"),
        ("1st May 2024", "2024-05-01"),
        ("Wednesday, September 3, 2024", "2024-09-03"),
        ("2024-13-01", ""),
        ("May 32, 2024", ""),
        ("5/1/2024", ""),  # of two months one cannot know which
        ("yesterday", ""),
        ("0001-01-01T00:00:00+14:00", ""),
    ],
)
def test_dates_of_pages_are_iso_8601_or_empty(written: str, iso: str) -> None:
    assert iso_date(written) == iso


def _is_bounded(page: PageMetadata) -> bool:
    """It can be written as JSON, and is not large."""
    return len(msgspec.json.encode(page)) < 4 * limits.MAX_TEXT_CHARS


def hostile_documents() -> dict[str, str]:
    return {
        "deep json": ld('{"@type":"Article","a":' + "[" * 100_000 + "]" * 100_000 + "}"),
        "deep objects": ld('{"a":' * 2_000 + "1" + "}" * 2_000),
        "wide json": ld(json.dumps([{"@type": "Article"}] * 60_000)),
        "many scripts": ld('{"@type":"Article"}') * 5_000,
        "surrogates": ld('{"@type":"Article","headline":"\\ud800 x"}'),
        "many digits": ld('{"@type":"Article","headline":' + "9" * 10_000 + "}"),
        "many metas": "".join(f"<meta name=a{n} content=b>" for n in range(50_000)),
        "one meta often": "".join(f"<meta name=a content=b{n}>" for n in range(50_000)),
        "nested properties": "<div itemscope>" + "<div itemprop=a>" * 3_000 + "x" * 100_000,
        "nested items": "<div itemscope itemprop=a>" * 3_000,
        "items that refer": "".join(
            f"<p itemscope itemref='i{n + 1} i{n + 1}x' id=i{n} itemprop=a></p>" for n in range(999)
        ),
        "twice each": "<p itemscope itemref=i0></p>"
        + "".join(
            f"<div id=i{n}>" + f"<p itemprop=a itemscope itemref=i{n + 1}></p>" * 2 + "</div>" for n in range(40)
        ),
        "one element, many items": "<b id=x><i itemprop=a>1</i></b>" + "<p itemscope itemref=x></p>" * 4_000,
    }


@pytest.mark.parametrize("name", hostile_documents())
def test_hostile_document_gives_a_bounded_record(name: str) -> None:
    assert _is_bounded(metadata(hostile_documents()[name]))


TOKENS = st.sampled_from(
    [
        "<div itemscope>", "<b itemprop=a>", "</b>", "</div>", "<p itemscope itemprop='a b' itemref='x y' id=x>",
        "<i id=y itemprop=n>", "text", "<meta property=og:title content='t'>", "<meta itemprop=c content=d>",
        ld('{"@type":"Article","author":{"@id":"a"},"@id":"a"}'), ld('{"@graph":[{"@type":[1,null]}]}'), ld("[[{}]]"),
        ld('{"@type":"WebPage","mainEntity":{"@type":"Product","name":[{}],"image":[[]]}}'), "<base href='http://['>",
        "<link rel=canonical href='http://['>", "<time pubdate>", "<a rel=author>", "<div typeof=Article property=x>",
    ]
)  # fmt: skip


@given(st.lists(TOKENS, max_size=30))
def test_any_document_gives_a_record_that_can_be_written(tokens: list[str]) -> None:
    assert _is_bounded(metadata("".join(tokens)))


@given(
    st.recursive(
        st.none() | st.text(max_size=5) | st.integers(),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    ["@type", "@id", "@graph", "author", "headline", "image", "mainEntity", "name", "publisher", "url"]
                ),
                inner | st.just("Article"),
                max_size=4,
            )
        ),
    )
)
@settings(max_examples=30)
def test_any_json_gives_a_record(value: Any) -> None:
    assert _is_bounded(metadata(ld(json.dumps(value))))
