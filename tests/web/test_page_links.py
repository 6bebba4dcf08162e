"""Links: as written, each once a kind, with the words and the rel that count."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from lycosa.web.document import Page
from lycosa.web.links import (
    ANCHOR_LENGTH,
    Link,
    LinkCollector,
    LinkKind,
    Links,
    common_rel,
    refresh_target,
    shorten_anchor,
)
from lycosa.web.page import analyse_page

pytestmark = pytest.mark.usefixtures("each_kernel")


def html(body: str) -> Page:
    return analyse_page(body.encode(), url="http://host.example/", content_type="text/html; charset=utf-8")


def links(body: str) -> list[Link]:
    return list(html(body).links)


@pytest.mark.parametrize(
    ("markup", "kind", "href"),
    [
        ("<a href=x>", LinkKind.A, "x"),
        ("<a href=' \n x?a=1&amp;b=2#f \t'>", LinkKind.A, "x?a=1&b=2#f"),
        ("<A HREF=X>", LinkKind.A, "X"),
        ("<a href>", LinkKind.A, ""),
        ("<a href=''>", LinkKind.A, ""),
        ("<svg><a xlink:href=x>", LinkKind.A, "x"),
        ("<map><area href=x>", LinkKind.AREA, "x"),
        ("<iframe src=x></iframe>", LinkKind.IFRAME, "x"),
        ("<frameset><frame src=x></frameset>", LinkKind.FRAME, "x"),
        ("<img src=x>", LinkKind.IMG, "x"),
        ("<link rel=next href=x>", LinkKind.LINK, "x"),
        ("<meta http-equiv=Refresh content='5; URL=x'>", LinkKind.REFRESH, "x"),
        ("<meta name=viewport http-equiv=refresh content='0;url=x'>", LinkKind.REFRESH, "x"),
        ("<meta name=description http-equiv=' REFRESH ' content='0;url=x'>", LinkKind.REFRESH, "x"),
        ("<noscript><a href=x></a></noscript>", LinkKind.A, "x"),
        ("<body><table><a href=x>misplaced", LinkKind.A, "x"),
    ],
)
def test_link_of_each_kind_is_found_as_written(markup: str, kind: LinkKind, href: str) -> None:
    assert [(link.kind, link.href) for link in links(markup)] == [(kind, href)]


@pytest.mark.parametrize(
    "markup",
    [
        "<a name=x>",
        "<!-- <a href=x> -->",
        "<script>'<a href=x>'</script>",
        "<style><a href=x></style>",
        "<textarea><a href=x></textarea>",
        "<template><a href=x></template>",
        "<p title='<a href=x>'>",
        "<a href='javascript:void(0)'>",
        "<img src='DATA:image/png;base64,AAAA'>",
        "<meta name=refresh content='5; URL=x'>",
        "<meta name=refresh http-equiv=x content='5; URL=x'>",
    ],
)
def test_link_that_is_none_is_not_given(markup: str) -> None:
    assert links(markup) == []


def test_link_written_often_is_given_once_with_its_first_words() -> None:
    found = links("<a href=x><img></a><a href=' x '>\n two  <b>words</b>.</a><a href=x>other</a><a href=y>y</a>")

    assert found == [Link("x", LinkKind.A, "two words .", ""), Link("y", LinkKind.A, "y", "")]


HREF = st.sampled_from(
    ["x", " x", "x\n", "a b", "y#f", "", " ", "data:,x", "JavaScript:x", "http://h/data:", "\u00a0x"]
)
WORDS = st.sampled_from(
    ["", " ", "\n", "one", " two  words\t", "a\u00a0b", "<img>", "<b>bold</b> and", "<i> </i>", "x" * 300]
)
REL = st.sampled_from(["", "", "nofollow", "next nofollow", "NOFOLLOW ugc"])


@given(st.lists(st.tuples(HREF, WORDS, REL), max_size=12))
def test_links_read_all_at_once_are_those_read_one_by_one(anchors: list[tuple[str, str, str]]) -> None:
    body = "".join(f"<p><a href='{href}' rel='{rel}'>{words}</a>" for href, words, rel in anchors)
    one_by_one = LinkCollector()
    for node in LexborHTMLParser(body).css("a"):
        attributes, words = node.attributes, shorten_anchor(node.text(separator=" "))
        one_by_one.add(attributes["href"] or "", LinkKind.A, anchor=words, rel=attributes["rel"] or "")
    assert html(body).links == one_by_one.links()


HIDDEN = ["style", "script", "noscript", "iframe", "noembed", "noframes"]


@pytest.mark.parametrize("name", HIDDEN)
def test_anchor_and_heading_are_without_the_text_of_hidden_elements(name: str) -> None:
    hidden = f"<{name}>.c{{fill:red}}</{name}>"
    body = (
        f"<a href=z>{hidden}Zed</a><a href=y><b>Ypsi{hidden}</b></a><a href=x>{hidden}</a><a href=x>X</a>"
        f"<h1>Head{hidden}</h1><h2>{hidden}Two <i>words</i></h2>"
    )
    page = html(body)

    assert [(link.href, link.anchor) for link in page.links] == [("z", "Zed"), ("y", "Ypsi"), ("x", "X")]
    assert page.headings == ((1, "Head"), (2, "Two words"))


def test_links_in_hidden_elements_keep_their_own_words() -> None:
    body = (
        "<div><noscript><style>.x{}</style><a href=x>an <b>X</b><script>y()</script></a><img src=p alt=pic></noscript>"
        "<iframe src=f alt=frame><a href=z>Zed</a></iframe></div>"
    )
    page = html(body)

    assert [(link.href, link.anchor) for link in page.links] == [("x", "an X"), ("p", "pic"), ("f", "frame")]
    assert page.text == ""


def test_link_of_two_kinds_is_given_for_each() -> None:
    assert {link.kind for link in links("<a href=x>a</a><img src=x>")} == {LinkKind.A, LinkKind.IMG}


def test_link_is_nofollow_only_if_it_is_so_everywhere() -> None:
    once = links("<a href=x rel='NoFollow ugc'>a</a><a href=x rel='nofollow'>b</a><a href=y rel=nofollow>y</a>")
    mixed = links("<a href=x rel=nofollow>a</a><a href=x>b</a>")

    assert ["nofollow" in link.rel.lower() for link in once] == [True, True]
    assert ["nofollow" in link.rel.lower() for link in mixed] == [False]


def test_anchor_longer_than_the_limit_is_cut() -> None:
    (link,) = links(f"<a href=x>{'word ' * 200}</a>")

    assert len(link.anchor) <= ANCHOR_LENGTH
    assert link.anchor.startswith("word word")


@pytest.mark.parametrize(
    ("html", "anchor"),
    [
        ("<a href=x><img src=p alt=' a  cat '></a>", "a cat"),
        ("<a href=x> <span><b><img src=p alt=cat></b></span>\n</a>", "cat"),
        ("<a href=x><img src=p alt=cat> a dog</a>", "a dog"),
        ("<a href=x><img src=p alt=cat></a><a href=x>a dog</a>", "a dog"),
        ("<a href=x><img src=p></a><a href=x><img src=p alt=''><img src=q alt=cat></a>", "cat"),
        ("<a href=' x '><img src=p alt=cat></a>", "cat"),
        ("<a href=x>" + "<span>" * 20 + "<img src=p alt=cat></a>", "cat"),
        ("<a href=x><noscript><img src=p alt=cat></noscript></a>", ""),
        ("<a href=x></a><img src=p alt=cat>", ""),
    ],
)
def test_text_of_an_anchor_without_words_is_that_of_its_image(html: str, anchor: str) -> None:
    (found,) = [link for link in links(html) if link.kind is LinkKind.A]
    assert (found.href, found.anchor) == ("x", anchor)


def test_anchor_of_an_image_is_its_alternative_text() -> None:
    assert links("<img src=x alt=' a  cat '>")[0].anchor == "a cat"


def test_anchors_nested_by_the_thousand_have_the_words_of_all_in_them() -> None:
    count = 2_500
    body = "".join(f"<a href={n}>w{n}<object>" for n in range(count)) + "</object></a>" * count

    found = {link.href: link.anchor for link in links(body)}

    assert found["17"].startswith("w17 w18 w19 ")
    assert (found["2498"], found["2499"]) == ("w2498 w2499", "w2499")


@pytest.mark.parametrize(
    ("content", "target"),
    [
        ("0;url=x", "x"),
        ("0; URL = 'x y' z", "x y"),
        ('5 , url="x', "x"),
        ("5 x", "x"),
        ("5;x", "x"),
        (" 1.5 ;url=x ", "x"),
        (".5;url=x", "x"),
        ("0;urlx", "urlx"),
        ("0;url x", "url x"),
        ("0;url==x", "=x"),
        ("5", None),
        ("5;", None),
        ("5;url=", None),
        ("x;url=y", None),
        ("5x;url=y", None),
        ("url=y", None),
        ("-1;url=y", None),
        ("", None),
    ],
)
def test_refresh_grammar_of_the_standard(content: str, target: str | None) -> None:
    assert refresh_target(content) == target


def test_refresh_of_a_million_digits_is_read_at_once() -> None:
    assert refresh_target("1" * 1_000_000 + "x") is None


@given(st.text(st.sampled_from("ab c\t"), max_size=20), st.text(st.sampled_from("ab c\t"), max_size=20))
def test_agreed_rel_has_only_words_of_both(rel: str, other: str) -> None:
    words = common_rel(rel, other).split()

    assert set(words) == set(rel.split()) & set(other.split())


def test_links_length_is_that_of_every_column() -> None:
    columns = html("<a href=x>a</a><img src=y><link href=z rel=icon>").links

    assert isinstance(columns, Links)
    assert len(columns) == len(columns.kinds) == len(columns.anchors) == len(columns.rels) == 3
