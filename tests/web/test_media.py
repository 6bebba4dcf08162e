"""Content-Type by the standard, and the kind of a document from header and first bytes."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from page_data import conformance

from lycosa.web import mime
from lycosa.web.encodings import encoding_of
from lycosa.web.media import Kind, identify


def charset_of(found: mime.MimeType | None) -> str | None:
    return None if found is None or found.charset is None else encoding_of(found.charset)


@pytest.mark.parametrize(("name", "count"), [("wpt_mime-types.json", 74), ("wpt_generated-mime-types.json", 881)])
def test_mime_type_rows_of_the_standard_parse_and_write_back(name: str, count: int) -> None:
    rows = [row for row in json.loads(conformance(f"encoding/{name}").read_text()) if isinstance(row, dict)]

    wrong = []
    for row in rows:
        found = mime.parse(row["input"])
        written = None if found is None else str(found)
        if written != row["output"] or ("encoding" in row and charset_of(found) != row["encoding"]):
            wrong.append(row["input"])

    assert len(rows) == count
    assert wrong == []


def test_content_type_rows_with_repeated_headers_give_type_and_encoding() -> None:
    rows = json.loads(conformance("encoding/wpt_content-types.json").read_text())

    found = [mime.from_header(", ".join(row["contentType"])) for row in rows]

    assert [str(one) for one in found] == [row["mimeType"] for row in rows]
    assert [charset_of(one) for one in found] == [row["encoding"] for row in rows]


def test_script_content_type_rows_give_their_encoding() -> None:
    rows = json.loads(conformance("encoding/wpt_script-content-types.json").read_text())

    found = [charset_of(mime.from_header(", ".join(row["contentType"]))) for row in rows]

    assert found == [row["encoding"] for row in rows]


@given(st.text(max_size=60))
def test_mime_type_written_and_parsed_again_is_the_same(value: str) -> None:
    found = mime.from_header(value)

    assert found is None or mime.parse(str(found)) == found


@pytest.mark.parametrize(
    ("content_type", "head", "kind"),
    [
        ("text/html", b"<p>", Kind.HTML),
        ("text/html; charset=utf-8", b"", Kind.HTML),
        ("text/html", b"%PDF-1.7 ...", Kind.PDF),
        ("text/html", b"\x89PNG\r\n\x1a\n", Kind.IMAGE),
        ("text/html", b"RIFF....WEBPVP8", Kind.IMAGE),
        ("text/html", b"\x1f\x8b\x08\x00", Kind.ARCHIVE),
        ("text/html", b"<?xml version='1.0'?><rss version='2.0'>", Kind.FEED),
        ("text/html", b"<?xml version='1.0'?><html>", Kind.HTML),
        ("application/xhtml+xml", b"<html>", Kind.XHTML),
        ("application/xml", b"<?xml version='1.0'?><!-- a --><feed xmlns='...'>", Kind.FEED),
        ("application/xml", b"<!DOCTYPE html><html>", Kind.XHTML),
        ("text/xml", b"<data>", Kind.XML),
        ("application/vnd.example+xml", b"<data>", Kind.XML),
        ("application/rss+xml", b"", Kind.FEED),
        ("text/plain", b"plain", Kind.TEXT),
        ("text/plain", b"a\0b", Kind.OTHER),
        ("text/plain", b"\xff\xfea\0", Kind.TEXT),
        ("text/plain", b"<html>", Kind.TEXT),
        ("image/svg+xml", b"<svg>", Kind.IMAGE),
        ("application/json", b"{}", Kind.OTHER),
        ("application/octet-stream", b"<html>", Kind.OTHER),
        (None, b"  \n<!DOCTYPE HTML><p>", Kind.HTML),
        (None, b"<?xml version='1.0'?><rdf:RDF>", Kind.FEED),
        (None, b"<b>", Kind.HTML),
        (None, b"<bold>", Kind.TEXT),
        (None, b"PK\3\4", Kind.ARCHIVE),
        (None, b"\0\1\2\3", Kind.OTHER),
        (None, b"", Kind.TEXT),
        ("nonsense", b"<html>", Kind.HTML),
        ("*/*", b"<html>", Kind.HTML),
    ],
)
def test_identify_header_and_bytes_give_the_kind(content_type: str | None, head: bytes, kind: Kind) -> None:
    assert identify(content_type, head).kind is kind


def test_identify_keeps_the_headers_charset_as_sent() -> None:
    assert identify('text/html; charset="Latin1"', b"<p>").charset == "Latin1"


@given(st.one_of(st.none(), st.text(max_size=30)), st.binary(max_size=60))
def test_identify_anything_gives_a_media(content_type: str | None, head: bytes) -> None:
    assert identify(content_type, head).kind in Kind
