"""The addresses in replayed documents: which are rewritten, and that everything else stays as it was."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lycosa.replay.rewrite import HtmlRewriter, ReplayAddresses, rewrite_css
from tests.effort import bounded

PAGE = "https://site.example/docs/page.html"
TO = ReplayAddresses("/t/view/2026/", "/t/frame/2026/", "/t/file/2026/")


def rewritten(
    text: str, *, url: str = PAGE, charset: str = "UTF-8", is_inner: bool = False, is_xml: bool = False
) -> str:
    return HtmlRewriter(url, charset, TO._replace(is_inner=is_inner), is_xml=is_xml).rewrite(text)


@pytest.mark.parametrize(
    ("written", "replayed"),
    [
        ("<a href=other.html>", '<a href="/t/view/2026/https://site.example/docs/other.html" target="_top">'),
        ("<A HREF='/x?a=1&amp;b=2#f'>", '<A href="/t/view/2026/https://site.example/x?a=1&amp;b=2#f" target="_top">'),
        ("<a href='/?a=1&copy=2'>", '<a href="/t/view/2026/https://site.example/?a=1&amp;copy=2" target="_top">'),
        ("<a href='#part'>", "<a href='#part'>"),
        ("<a href=/x target=_blank>", '<a href="/t/view/2026/https://site.example/x" target="_blank" rel="noopener">'),
        ("<a href=x target=side>", '<a href="/t/frame/2026/https://site.example/docs/x" target="side">'),
        ("<a href=//live.example>", '<a href="/t/view/2026/https://live.example/" target="_top">'),
        ("<a href='ht\ntps://live.example/'>", '<a href="/t/view/2026/https://live.example/" target="_top">'),
        ("<a href='javascript:go()'>", "<a href='javascript:go()'>"),
        ("<a href='java\nscript:go()'>", "<a>"),
        ("<a href=mailto:me@x.example>", "<a href=mailto:me@x.example>"),
        ("<img src=i.png alt='a > b'>", '<img src="/t/file/2026/https://site.example/docs/i.png" alt="a &gt; b">'),
        ("<script\u00a0><img src=i>", '<script\u00a0><img src="/t/file/2026/https://site.example/docs/i">'),
        ("<script>'</\u017fcript><img src=i>'</script>", "<script>'</\u017fcript><img src=i>'</script>"),
        ("<img a\vsrc=i b\u2003src=i>", "<img a\vsrc=i b\u2003src=i>"),
        ("<img src=data:image/gif;base64,AA>", "<img src=data:image/gif;base64,AA>"),
        (
            "<img srcset='a.png 1x, /b.png 2x,c.png'>",
            '<img srcset="/t/file/2026/https://site.example/docs/a.png 1x, '
            '/t/file/2026/https://site.example/b.png 2x, /t/file/2026/https://site.example/docs/c.png">',
        ),
        ("<iframe src=f.html></iframe>", '<iframe src="/t/frame/2026/https://site.example/docs/f.html"></iframe>'),
        ("<link rel=preconnect href=//live.example>", '<link rel="preconnect" href="/t/file/2026/https://live.example/">'),
        (
            "<link rel=stylesheet href=s.css integrity=sha256-x crossorigin>",
            '<link rel="stylesheet" href="/t/file/2026/https://site.example/docs/s.css">',
        ),
        ("<p style='x: url(/a)'>", '<p style="x: url(&quot;/t/file/2026/https://site.example/a&quot;)">'),
        ("<style>p { x: url('/a') }</style>", '<style>p { x: url("/t/file/2026/https://site.example/a") }</style>'),
        ("<script>x = '<a href=y>';</script>", "<script>x = '<a href=y>';</script>"),
        ("<!-- <a href=y> --><b>", "<!-- <a href=y> --><b>"),
        ("<!--><img src=/y>", '<!--><img src="/t/file/2026/https://site.example/y">'),
        ("<textarea><img src=y></textarea>", "<textarea><img src=y></textarea>"),
        ("<noscript><img src=/y></noscript>", '<noscript><img src="/t/file/2026/https://site.example/y"></noscript>'),
        ("<meta http-equiv=Content-Security-Policy content=\"img-src 'none'\">", "<meta>"),
        (
            "<meta http-equiv=refresh content='0; url=next.html'>",
            '<meta http-equiv="refresh" content="0; url=/t/frame/2026/https://site.example/docs/next.html">',
        ),
        ("<iframe srcdoc='<a href=//live.example>x</a>'>", "<iframe>"),
        ("<p title=it's><img src=/y>", '<p title=it\'s><img src="/t/file/2026/https://site.example/y">'),
        ("<a href=x", '<a href="/t/view/2026/https://site.example/docs/x" target="_top"'),
        ("<a href=\"x", '<a href="/t/view/2026/https://site.example/docs/x" target="_top"'),
        ("1 < 2 and <3", "1 < 2 and <3"),
    ],
)  # fmt: skip
def test_addresses_of_a_page_lead_into_the_archive(written: str, replayed: str) -> None:
    assert rewritten(written) == replayed


def test_base_counts_for_what_follows_and_is_taken_out() -> None:
    text = rewritten("<base href='https://other.example/b/'><img src=x>")

    assert text == '<base><img src="/t/file/2026/https://other.example/b/x">'


def test_links_of_a_frame_stay_in_it() -> None:
    assert rewritten("<a href=/x>", is_inner=True) == '<a href="/t/frame/2026/https://site.example/x">'


def test_query_is_written_in_the_encoding_of_the_page() -> None:
    assert "?q=%E4" in rewritten("<a href='?q=ä'>", charset="windows-1252")
    assert "?q=%C3%A4" in rewritten("<a href='?q=ä'>")


def test_xml_has_no_raw_elements_and_keeps_its_slashes() -> None:
    text = rewritten("<script src='a'/><![CDATA[<a href='y'>]]><img src='/y'/>", is_xml=True)

    assert "<![CDATA[<a href='y'>]]>" in text
    assert text.endswith('<img src="/t/file/2026/https://site.example/y" />')


@pytest.mark.parametrize(
    ("written", "replayed"),
    [
        ("@import 'a.css';", '@import "[a.css]";'),
        ("@import url(a.css);", '@import url("[a.css]");'),
        ("p { src: url( 'a b.woff' ) }", 'p { src: url("[a b.woff]") }'),
        ("/* url(a) */", "/* url(a) */"),
        (r"p { background: url(a\29 .png) }", 'p { background: url("[a).png]") }'),
        ("@namespace svg url(http://www.w3.org/2000/svg);", "@namespace svg url(http://www.w3.org/2000/svg);"),
    ],
)
def test_addresses_of_a_style_sheet_are_replaced(written: str, replayed: str) -> None:
    assert rewrite_css(written, lambda url: f"[{url}]") == replayed


def test_quotes_in_an_address_do_not_end_it() -> None:
    assert rewrite_css("p { background: url(x) }", lambda _: 'a"</style>\n\\') == (
        'p { background: url("a%22%3C/style>\\\\") }'
    )


_PIECES = st.lists(
    st.sampled_from(
        (
            *"<a <img </a> <!-- --> <style> </style> <script> </script> href= src= srcset= style= \" ' = / >".split(),
            *"< &amp; &copy http://live.example/ //live.example/ url( ) @import x , 2x <base <svg>".split(),
            *("<![CDATA[", "]]>", "\0", "é", "<textarea>", "<p>", "#", " ", "\n"),
        )
    ),
    max_size=40,
)


@given(_PIECES, st.booleans())
def test_any_markup_is_rewritten_and_text_without_tags_stays(pieces: list[str], is_xml: bool) -> None:
    text = "".join(pieces)
    made = rewritten(text, is_xml=is_xml)
    for found in re.finditer(r'(?:href|src)="(/t/[^"]*)"', made):
        assert found[1].startswith(("/t/view/2026/http", "/t/frame/2026/http", "/t/file/2026/http"))
    if not re.search(r"<[a-zA-Z]", text):
        assert made == text


@pytest.mark.parametrize("piece", ["<a ", "<a href=", '<a href="', "<!--", "<style>", "url(", "<a '", "<a x=", "< "])
def test_work_is_linear_in_the_length(piece: str) -> None:
    bounded(lambda: rewritten(piece * 100_000), units=250)  # some 25; where it was quadratic, it took thousands
