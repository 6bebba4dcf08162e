"""Content-Type by the standard, and the kind of a document from header and first bytes."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from page_data import conformance

from lycosa.web import media as mime
from lycosa.web.encodings import encoding_of
from lycosa.web.media import MediaKind, identify_media


def written(found: mime.MimeType) -> str:
    """A MIME type as the standard serialises it."""
    token = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
    quoted = {name: re.sub(r'(["\\])', r"\\\1", value) for name, value in found.parameters.items()}
    values = {name: value if token.fullmatch(value) else f'"{value}"' for name, value in quoted.items()}
    return found.essence + "".join(f";{name}={value}" for name, value in values.items())


def charset_of(found: mime.MimeType | None) -> str | None:
    return None if found is None or found.charset is None else encoding_of(found.charset)


@pytest.mark.parametrize(("name", "count"), [("wpt_mime-types.json", 74), ("wpt_generated-mime-types.json", 881)])
def test_mime_type_rows_of_the_standard_parse_and_write_back(name: str, count: int) -> None:
    rows = [row for row in json.loads(conformance(f"encoding/{name}").read_text()) if isinstance(row, dict)]

    wrong = []
    for row in rows:
        found = mime.parse_mime_type(row["input"])
        said = None if found is None else written(found)
        if said != row["output"] or ("encoding" in row and charset_of(found) != row["encoding"]):
            wrong.append(row["input"])

    assert len(rows) == count
    assert wrong == []


def test_content_type_rows_with_repeated_headers_give_type_and_encoding() -> None:
    rows = json.loads(conformance("encoding/wpt_content-types.json").read_text())

    found = [mime.parse_content_type(", ".join(row["contentType"])) for row in rows]

    assert [one and written(one) for one in found] == [row["mimeType"] for row in rows]
    assert [charset_of(one) for one in found] == [row["encoding"] for row in rows]


def test_script_content_type_rows_give_their_encoding() -> None:
    rows = json.loads(conformance("encoding/wpt_script-content-types.json").read_text())

    found = [charset_of(mime.parse_content_type(", ".join(row["contentType"]))) for row in rows]

    assert found == [row["encoding"] for row in rows]


@given(st.text(max_size=60))
def test_mime_type_written_and_parsed_again_is_the_same(value: str) -> None:
    found = mime.parse_content_type(value)

    assert found is None or mime.parse_mime_type(written(found)) == found


@pytest.mark.parametrize(
    ("content_type", "head", "kind"),
    [
        ("text/html", b"<p>", MediaKind.HTML),
        ("text/html; charset=utf-8", b"", MediaKind.HTML),
        ("text/html", b"%PDF-1.7 ...", MediaKind.PDF),
        ("text/html", b"\x89PNG\r\n\x1a\n", MediaKind.IMAGE),
        ("text/html", b"RIFF....WEBPVP8", MediaKind.IMAGE),
        ("text/html", b"\x1f\x8b\x08\x00", MediaKind.ARCHIVE),
        ("text/html", b"<?xml version='1.0'?><rss version='2.0'>", MediaKind.FEED),
        ("text/html", b"<?xml version='1.0'?><html>", MediaKind.HTML),
        ("application/xhtml+xml", b"<html>", MediaKind.XHTML),
        ("application/xml", b"<?xml version='1.0'?><!-- a --><feed xmlns='...'>", MediaKind.FEED),
        ("application/xml", b"<!DOCTYPE html><html>", MediaKind.XHTML),
        ("text/xml", b"<data>", MediaKind.XML),
        ("application/vnd.example+xml", b"<data>", MediaKind.XML),
        ("application/rss+xml", b"", MediaKind.FEED),
        ("text/plain", b"plain", MediaKind.TEXT),
        ("text/plain", b"a\0b", MediaKind.OTHER),
        ("text/plain", b"\xff\xfea\0", MediaKind.TEXT),
        ("text/plain", b"<html>", MediaKind.TEXT),
        ("image/svg+xml", b"<svg>", MediaKind.IMAGE),
        ("application/json", b"{}", MediaKind.OTHER),
        ("application/octet-stream", b"<html>", MediaKind.OTHER),
        (None, b"  \n<!DOCTYPE HTML><p>", MediaKind.HTML),
        (None, b"<?xml version='1.0'?><rdf:RDF>", MediaKind.FEED),
        (None, b"<b>", MediaKind.HTML),
        (None, b"<bold>", MediaKind.TEXT),
        (None, b"PK\3\4", MediaKind.ARCHIVE),
        (None, b"\0\1\2\3", MediaKind.OTHER),
        (None, b"", MediaKind.TEXT),
        ("nonsense", b"<html>", MediaKind.HTML),
        ("*/*", b"<html>", MediaKind.HTML),
    ],
)
def test_identify_header_and_bytes_give_the_kind(content_type: str | None, head: bytes, kind: MediaKind) -> None:
    assert identify_media(content_type, head).kind is kind


def test_identify_keeps_the_headers_charset_as_sent() -> None:
    assert identify_media('text/html; charset="Latin1"', b"<p>").charset == "Latin1"


@given(st.one_of(st.none(), st.text(max_size=30)), st.binary(max_size=60))
def test_identify_anything_gives_a_media(content_type: str | None, head: bytes) -> None:
    assert identify_media(content_type, head).kind in MediaKind
