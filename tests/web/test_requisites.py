"""What a document needs to be shown: addresses in HTML, in `srcset` and in CSS."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lycosa.web import document_requisites
from lycosa.web.requisites import MOST_REQUISITES, css_addresses, srcset_addresses

PAGE = "http://h.test/a/"


def of_html(markup: str) -> list[str]:
    found = document_requisites(markup.encode(), url=PAGE, content_type="text/html; charset=utf-8")
    assert found.imported == []
    return [url.removeprefix(PAGE) for url in found.needed]


def of_css(text: str) -> list[str]:
    return [address for address, _ in css_addresses(text)]


@pytest.mark.parametrize(
    ("markup", "needed"),
    [
        ("<link rel=stylesheet href=s.css>", ["s.css"]),
        ("<link rel='preload stylesheet' href=s.css>", ["s.css"]),
        ("<link rel='SHORTCUT ICON' href=/f.ico>", ["http://h.test/f.ico"]),
        ("<link rel=manifest href=m.json><link rel=mask-icon href=i.svg>", ["m.json", "i.svg"]),
        ("<link rel=canonical href=c><link rel=alternate href=d><link rel=next href=e>", []),
        ("<link rel=preload as=image imagesrcset='a.png 1x, b.png 2x' href=c.png>", ["c.png", "a.png", "b.png"]),
        ("<script src=//cdn.test/x.js></script><script>url(no.png)</script>", ["http://cdn.test/x.js"]),
        ("<img src=i.png srcset='j.png 2x'>", ["i.png", "j.png"]),
        ("<img data-src=lazy.png src='data:image/gif;base64,R0lGOD'>", ["lazy.png"]),
        ("<picture><source srcset='p.webp, q.webp 2x'><img src=p.png></picture>", ["p.webp", "q.webp", "p.png"]),
        ("<video poster=p.jpg src=v.mp4><source src=w.mp4></video><audio src=a.ogg>", ["p.jpg"]),
        ("<style>p { background: url(b.png) }</style>", ["b.png"]),
        ("<p style='background: url(&quot;b.png&quot;)'>", ["b.png"]),
        ("<svg><use xlink:href='s.svg#a'/><image href=i.png /></svg><svg><use href='#b'/></svg>", ["s.svg", "i.png"]),
        ("<table background=t.png><tr><td background=d.png>", ["t.png", "d.png"]),
        ("<noscript><img src=n.png></noscript>", ["n.png"]),
        ("<iframe src=f.html></iframe><object data=o.svg></object><embed src=e.svg>", ["f.html", "o.svg", "e.svg"]),
        ("<base href=/x/><img src=i.png>", ["http://h.test/x/i.png"]),
        ("<a href=no.html><img src=i.png></a><img src=i.png><img src=i.png#part>", ["i.png"]),
        ("<img src=''><img src='#a'><img src='javascript:x'><img src='mailto:a@b'><img>", []),
        ("<img src='/a/'>", []),  # the page itself
    ],
)
def test_html_names_what_it_needs(markup: str, needed: list[str]) -> None:
    assert of_html(markup) == needed


@pytest.mark.parametrize(
    ("value", "addresses"),
    [
        ("a.png", ["a.png"]),
        ("a.png 1x, b.png 2x", ["a.png", "b.png"]),
        ("a.png, b.png 2x", ["a.png", "b.png"]),
        ("a,b.png 1x,c.png 2x", ["a,b.png", "c.png"]),  # commas belong to an address unless they end it
        (" , a.png 100w , b.png 200w,", ["a.png", "b.png"]),
        ("a.png 1x (future, descriptor), b.png", ["a.png", "b.png"]),
        ("", []),
    ],
)
def test_srcset_is_split_as_the_standard_says(value: str, addresses: list[str]) -> None:
    assert list(srcset_addresses(value)) == addresses


@pytest.mark.parametrize(
    ("text", "addresses"),
    [
        ("a { b: url(x.png) }", ["x.png"]),
        ("a { b: URL( 'x.png' ) }", ["x.png"]),
        ('a { b: url("x y.png") }', ["x y.png"]),
        ("a { b: url(x.png), url(y.png) }", ["x.png", "y.png"]),
        ("/* url(x.png) */ a { b: url(y.png) }", ["y.png"]),
        ("a { content: 'url(x.png)' } /* @import 'y.css' */", []),
        (r"a { content: 'it\'s url(x.png)' }", []),
        (r"a { b: url(x\ y.png) }", ["x y.png"]),
        (r"a { b: url('x\27 y.png') }", ["x'y.png"]),
        (r"a { b: \75rl(x.png) }", ["x.png"]),  # an escaped u
        (r"a { b: u\72 l(x.png) } b { c: u\52L(y.png) }", ["x.png", "y.png"]),
        (r"a { b: url(x\29.png) }", ["x).png"]),
        (r"a\" { b: url(x.png) }", ["x.png"]),  # an escaped quote in a name opens no string
        ("a { b: my-url(x.png); c: curl(y.png) }", []),
        ("a { b: url(x y.png) } c { d: url(z.png) }", ["z.png"]),  # a bad url
        ("@namespace svg url(http://www.w3.org/2000/svg); a { b: url(x.png) }", ["x.png"]),
        ("@charset 'utf-8'; @import 'a.css' screen;", ["a.css"]),
        ("a { b: image-set('x' 1x, url(y) 2x, 'z' type('image/png')); c: 'no' }", ["x", "y", "z"]),
        ("a { b: -webkit-image-set('x.png' 1x) }", ["x.png"]),
        ("a { b: 'open\n} c { d: url(x.png) }", ["x.png"]),  # a string ends with its line
        ("a { b: url(x.png", []),
    ],
)
def test_css_names_addresses_by_the_rules_of_its_syntax(text: str, addresses: list[str]) -> None:
    assert of_css(text) == addresses


def test_imports_of_a_style_sheet_are_told_apart() -> None:
    text = "@import 'a.css'; @import url(b.css) print; @IMPORT/**/url( \"c.css\" ); d { e: url(f.png) }"
    found = document_requisites(text.encode(), url="http://h.test/s/x.css", content_type="text/css")
    assert found.imported == [f"http://h.test/s/{name}.css" for name in "abc"]
    assert found.needed == ["http://h.test/s/f.png"]


def test_other_documents_need_nothing() -> None:
    for essence in ("text/plain", "application/json", "image/svg+xml", "text/javascript"):
        assert document_requisites(b"a { b: url(x.png) }", url=PAGE, content_type=essence) == ([], [])


def test_requisites_of_one_document_are_bounded() -> None:
    assert len(of_html("".join(f"<img src={number}.png>" for number in range(3_000)))) == MOST_REQUISITES


@given(st.text(alphabet="url(/*'\")\\@import;se- \n0a", max_size=200))
def test_any_text_is_scanned(text: str) -> None:
    list(css_addresses(text))
    list(srcset_addresses(text))
    of_html(f"<style>{text}</style><p style=\"{text}\"><img srcset='{text}'>")
