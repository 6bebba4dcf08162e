"""Queries of links are sent in the encoding of the page they stand on."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from page_data import conformance

from lycosa.web.encodings import decode_text, encode_text, encoding_of
from lycosa.web.links import Link, LinkKind, escape_query
from lycosa.web.page import analyse_page
from lycosa.web.url import parse_url

pytestmark = pytest.mark.usefixtures("each_kernel")

MANY_BYTES = ("GBK", "gb18030", "Big5", "EUC-KR", "Shift_JIS", "EUC-JP", "ISO-2022-JP")
SINGLE_BYTE = ("windows-1252", "KOI8-U", "ISO-8859-2", "windows-1255", "macintosh", "x-user-defined", "ISO-8859-8-I")


def hrefs(body: bytes, charset: str) -> list[str]:
    page = analyse_page(body, url="http://h.example/", content_type=f"text/html; charset={charset}")
    return list(page.links.hrefs)


@pytest.mark.parametrize(
    ("charset", "href", "found"),
    [
        ("iso-8859-1", "/q?a=ü", "/q?a=%FC"),
        ("iso-8859-1", "/q?a=&uuml;&amp;b=%20 x", "/q?a=%FC&b=%20 x"),
        ("iso-8859-1", "/ü?a=ü#ü", "/ü?a=%FC#ü"),
        ("iso-8859-1", "/q#?a=ü", "/q#?a=ü"),
        ("iso-8859-1", "HTTP://other.example?é&#8224;&#1102;", "HTTP://other.example?%E9%86%26%231102%3B"),
        ("iso-8859-1", "mailto:x@h.example?subject=ü", "mailto:x@h.example?subject=ü"),
        ("iso-8859-1", "a b:c?ü", "a b:c?%FC"),
        ("iso-8859-1", "./a:b?ü", "./a:b?%FC"),
        ("utf-8", "/q?a=ü", "/q?a=ü"),
        ("utf-16", "/q?a=ü", "/q?a=ü"),
        ("koi8-r", "/поиск?q=да", "/поиск?q=%C4%C1"),
        ("shift_jis", "?ソ", "?%83\\"),
    ],
)
def test_query_of_a_link_is_escaped_in_the_encoding_of_its_page(charset: str, href: str, found: str) -> None:
    assert hrefs(f"<a href='{href}'>x</a>".encode(charset), charset) == [found]


def test_query_escaped_by_the_page_leads_where_the_standard_says() -> None:
    url = parse_url(escape_query("/ü?a=ü", "windows-1252"), "http://h.example/")
    assert url is not None
    assert url.path == "/%C3%BC?a=%FC"


def test_links_that_are_the_same_once_escaped_are_given_once() -> None:
    body = "<link rel=canonical href='?ü'><a href='?%FC'></a><a href='?ü' rel=nofollow>words</a>".encode("latin-1")
    page = analyse_page(body, url="http://h.example/", content_type="text/html; charset=latin1")

    assert list(page.links) == [Link("?%FC", LinkKind.A, "words", ""), Link("?%FC", LinkKind.LINK, "", "canonical")]
    assert page.canonical == "?%FC"


def test_percent_encoding_rows_of_the_standard() -> None:
    rows = [row for row in json.loads(conformance("url-whatwg/percent-encoding.json").read_text()) if "input" in row]
    cases = [(name, row["input"], output) for row in rows for name, output in row["output"].items() if name != "utf-8"]
    cases = [case for case in cases if not case[1].isascii()]

    wrong = [case for case in cases if escape_query(f"?{case[1]}", encoding_of(case[0]) or "") != f"?{case[2]}"]

    assert len(cases) == 7
    assert wrong == []


def test_encode_single_byte_indexes_all_27_are_turned_round() -> None:
    indexes = json.loads(conformance("encoding/whatwg_single_byte_indexes.json").read_text())

    wrong = [
        (name, hex(place + 0x80))
        for name, index in indexes.items()
        for place, code in enumerate(index)
        if code is not None and encode_text(chr(code), name) != bytes((place + 0x80,))
    ]

    assert wrong == []


@given(
    st.text(st.characters(min_codepoint=0x80, exclude_categories=["Cs", "Co"])),
    st.sampled_from(MANY_BYTES + SINGLE_BYTE),
)
def test_encode_any_text_is_read_back_or_referred_to(text: str, encoding: str) -> None:
    for character in text:
        reference = f"%26%23{ord(character)}%3B"
        assert decode_text(encode_text(character, encoding), encoding) in (character, reference) or character in "¥‾−"
    assert escape_query(f"?{text}", encoding).isascii()


@pytest.mark.parametrize(
    ("character", "encoding", "code"),
    [
        ("€", "GBK", b"\x80"),
        ("€", "gb18030", b"\xa2\xe3"),
        ("漢", "GBK", b"\x9dh"),
        ("ю", "GBK", b"\xa7\xf0"),
        ("\U0001f600", "gb18030", b"\x949\xfc6"),
        ("\U0001f600", "GBK", b"%26%23128512%3B"),
        ("十", "Big5", b"\xa4Q"),
        ("漢", "Big5", b"\xba~"),
        ("①", "EUC-JP", b"\xad\xa1"),
        ("①", "Shift_JIS", b"\x87@"),
        ("ｱ", "Shift_JIS", b"\xb1"),
        ("ｱ", "EUC-JP", b"\x8e\xb1"),
        ("～", "EUC-JP", b"\xa1\xc1"),
        ("漢字", "ISO-2022-JP", b"\x1b$B4A;z\x1b(B"),
        ("한", "EUC-KR", b"\xc7\xd1"),
    ],
)
def test_encode_by_the_tables_of_the_web(character: str, encoding: str, code: bytes) -> None:
    assert encode_text(character, encoding) == code
