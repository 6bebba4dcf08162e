"""Encodings: labels, mappings and detection as the standards have them; any bytes decode."""

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from page_data import conformance

from lycosa.web.charset import detect_charset, to_utf8
from lycosa.web.encodings import decode_text, encoding_of
from tests.effort import python_calls

pytestmark = pytest.mark.usefixtures("each_kernel")

MULTI_BYTE = ("UTF-8", "UTF-16LE", "UTF-16BE", "GBK", "gb18030", "Big5", "EUC-KR", "Shift_JIS", "EUC-JP", "ISO-2022-JP")
ENCODINGS = (*MULTI_BYTE, "replacement", "windows-1252", "x-user-defined")


def test_labels_of_the_standard_all_228_give_their_encoding() -> None:
    rows = [json.loads(line) for line in conformance("encoding/whatwg_labels.jsonl").read_text().splitlines()]

    found = [encoding_of(row["label"]) for row in rows]

    assert len(rows) == 228
    assert found == [row["name"] for row in rows]


@pytest.mark.parametrize("label", [" UTF-8\t", "Utf8", "\nLATIN1 "])
def test_label_with_case_and_space_around_it_is_known(label: str) -> None:
    assert encoding_of(label) is not None


@pytest.mark.parametrize("label", ["", "utf-9", "\N{NO-BREAK SPACE}utf-8", "utf-7", "base64", "ſhift_jis"])
def test_label_nobody_defined_is_unknown(label: str) -> None:
    assert encoding_of(label) is None


def read(body: bytes, encoding: str) -> str:
    return to_utf8(body, encoding).decode("utf-8", "replace")


def test_single_byte_indexes_all_27_match_code_point_by_code_point() -> None:
    indexes = json.loads(conformance("encoding/whatwg_single_byte_indexes.json").read_text())

    wrong = [
        (name, hex(place + 0x80))
        for name, index in indexes.items()
        for place, code in enumerate(index)
        if read(bytes((place + 0x80,)), name) != ("\ufffd" if code is None else chr(code))
    ]

    assert len(indexes) == 27
    assert wrong == []


def test_meta_prescan_rows_of_html5lib_give_their_encoding() -> None:
    lines = conformance("encoding/html5lib_meta_prescan.jsonl").read_text().splitlines()
    rows = [row for row in map(json.loads, lines) if not row["needs_script"]]

    wrong = [
        row["id"] for row in rows if detect_charset(base64.b64decode(row["data_b64"])) != encoding_of(row["encoding"])
    ]

    assert len(rows) == 82
    assert wrong == []


def test_big5_document_decodes_without_a_hole() -> None:
    text = read(conformance("encoding/html5lib_test_big5.txt").read_bytes(), "Big5")

    assert "\ufffd" not in text
    assert text.startswith("老子《道德經》")


# Rows of the Japanese tables that say how a character is written: the same bytes are read as another one.
WRITTEN_ONLY = {"A5", "203E", "2212"}


def test_decode_reads_every_code_of_the_standards_tables() -> None:
    codes = [
        (
            encoding_of(table["encoding"]) or "",
            bytes.fromhex(code),
            "".join(chr(int(point, 16)) for point in points.split()),
        )
        for table in map(json.loads, conformance("encoding/multibyte_tables.jsonl").read_text().splitlines())
        for code, points in table["pairs"]
        if points not in WRITTEN_ONLY or "japanese" not in table["path"]
    ]
    wrong = [(encoding, code) for encoding, code, text in codes if read(code, encoding) != text]

    assert len(codes) > 60_000
    assert wrong == []


@pytest.mark.parametrize(
    ("encoding", "body", "text"),
    [
        ("GBK", b"\xa3\xa0", "\u3000"),
        ("gb18030", b"\xa3\xa0", "\u3000"),
        ("Big5", b"\xa4\xa2A<b>\xa2A\xa1\xfe\xa3\xc0", "丐A<b>∕／␀"),
        ("EUC-JP", b"~\x8f\xa2\xb7", "~～"),
        ("ISO-2022-JP", b"\x1b$B\x2d\x21\x1b(I\x31\x1b(J\\~\x1b(B\\~\xff", "①ｱ¥‾\\~\ufffd"),
        ("GBK", b"\x80\xa8\xbc\xa6\xd9", "€\u1e3f\ufe10"),
        ("gb18030", b"\x81\x30\x81\x30", "\x80"),
        ("Big5", b"\xa1\x45\xa3\xe1\x88\x62", "\u2027€\u00ca\u0304"),
        ("EUC-KR", b"\x81\x41", "\uac02"),
        ("Shift_JIS", b"\x80\xa0\x87\x40\x81\x60", "\x80\ufffd①～"),
        ("EUC-JP", b"\xa1\xc1\xad\xa1\xf9\xa1\x8e\xb1", "～①纊ｱ"),
        ("ISO-2022-JP", b"\x1b$B\x24\x22\x1b(Bx", "あx"),
        ("x-user-defined", b"a\x80\xff", "a\uf780\uf7ff"),
        ("replacement", b"anything", "\ufffd"),
        ("UTF-16LE", b"a\x00\x3d", "a\ufffd"),
        ("UTF-8", b"\xf0\x9f\x92x", "\ufffdx"),
    ],
)
def test_decode_follows_the_webs_mapping_where_pythons_differs(encoding: str, body: bytes, text: str) -> None:
    assert read(body, encoding) == text


@pytest.mark.parametrize("encoding", ["GBK", "Big5", "EUC-KR", "Shift_JIS", "EUC-JP"])
def test_decode_lead_byte_before_markup_leaves_the_markup(encoding: str) -> None:
    assert read(b'\x81"><a', encoding) == '\ufffd"><a'


@given(st.binary(max_size=200), st.sampled_from(ENCODINGS))
def test_any_bytes_are_read_as_the_twin_reads_them(body: bytes, encoding: str) -> None:
    mark = {"UTF-8": b"\xef\xbb\xbf", "UTF-16BE": b"\xfe\xff", "UTF-16LE": b"\xff\xfe"}.get(encoding, b"")

    assert read(body, encoding) == decode_text(body.removeprefix(mark), encoding)


PAIRS = [bytes((lead, trail)) for lead in range(0x80, 0x100) for trail in range(0x100)]
FOURS = [
    bytes((lead, 0x30 + n, third, 0x39 - n))
    for lead in range(0x81, 0xFF)
    for n in range(10)
    for third in (0x81, 0xF4, 0xFE)
]


@pytest.mark.parametrize(
    ("encoding", "codes"),
    [
        *((encoding, PAIRS) for encoding in ("GBK", "gb18030", "Big5", "EUC-KR", "Shift_JIS", "EUC-JP")),
        ("gb18030", [*FOURS, b"\x81\x35\xf4\x37"]),
        ("EUC-JP", [b"\x8f" + pair for pair in PAIRS]),
        ("ISO-2022-JP", [b"\x1b$B" + bytes((pair[0] & 0x7F, pair[1])) + b"\x1b(B" for pair in PAIRS]),
    ],
)
def test_codes_right_or_wrong_are_all_read_as_the_twin_reads_them(encoding: str, codes: list[bytes]) -> None:
    body = b"!".join(codes)

    assert read(body, encoding) == decode_text(body, encoding)


@given(st.binary(max_size=200), st.one_of(st.none(), st.text(max_size=12)), st.sampled_from(["html", "xml", "text"]))
def test_detect_any_bytes_names_an_encoding_that_decodes(body: bytes, http_charset: str | None, form: str) -> None:
    encoding = detect_charset(body, http_charset=http_charset, form=form)  # type: ignore[arg-type]

    assert encoding_of(encoding) == encoding
    to_utf8(body, encoding)


@given(
    st.lists(
        st.sampled_from([b"<meta charset=", b"utf-8", b'"', b"'", b">", b"<!--", b"-->", b" ", b"<x a="]), max_size=30
    )
)
def test_prescan_any_soup_of_markup_ends(parts: list[bytes]) -> None:
    assert detect_charset(b"".join(parts)) in ("windows-1252", "UTF-8")


def test_detect_bom_outranks_http() -> None:
    assert detect_charset(b"\xff\xfea\0", http_charset="utf-8") == "UTF-16LE"


def test_detect_http_outranks_meta() -> None:
    assert detect_charset(b"<meta charset=koi8-r>", http_charset="shift_jis") == "Shift_JIS"


def test_detect_unknown_http_charset_counts_for_nothing() -> None:
    assert detect_charset(b"<meta charset=koi8-r>", http_charset="none-such") == "KOI8-R"


@pytest.mark.parametrize(
    "head",
    [
        b"<!-- <meta charset=koi8-r> --><meta charset=utf-8>",
        b"<x a='<meta charset=koi8-r>'><meta charset=utf-8>",
        b'<x a=">" b="<meta charset=koi8-r>"><meta charset=utf-8>',
        b"<title>It's</title><meta charset='utf-8'>",
        b"<meta name=x content='charset=koi8-r'><META CONTENT='text/html; charset=utf-8' HTTP-EQUIV=Content-Type>",
        b"<meta charset=utf-16le>",
    ],
)
def test_prescan_finds_the_declaration_that_counts(head: bytes) -> None:
    assert detect_charset(head) == "UTF-8"


def test_prescan_declaration_whose_tag_is_cut_off_does_not_count() -> None:
    assert detect_charset(b'<meta charset="koi8-r') == "windows-1252"


def test_detect_undeclared_utf8_is_utf8_and_undeclared_ascii_the_default() -> None:
    assert detect_charset("naïve".encode()) == "UTF-8"
    assert detect_charset(b"naive") == "windows-1252"
    assert detect_charset("naïve".encode("latin-1")) == "windows-1252"


def test_detect_undeclared_utf8_cut_within_a_character_is_still_utf8() -> None:
    assert detect_charset("naïve €".encode()[:-1]) == "UTF-8"


def test_detect_xml_reads_its_declaration_and_else_is_utf8() -> None:
    assert detect_charset(b"<?xml version='1.0' encoding='koi8-r'?>", form="xml") == "KOI8-R"
    assert detect_charset(b"<a><meta charset=koi8-r></a>", form="xml") == "UTF-8"


def test_to_utf8_of_valid_utf8_hands_on_the_same_bytes() -> None:
    body = "é".encode() * 10

    assert to_utf8(body, "UTF-8") is body


def test_to_utf8_drops_byte_order_marks() -> None:
    assert to_utf8(b"\xef\xbb\xbfa", "UTF-8") == b"a"
    assert to_utf8(b"\xff\xfea\0", "UTF-16LE") == b"a"


@pytest.mark.parametrize("encoding", ["Big5", "EUC-JP", "GBK"])
def test_decode_megabytes_of_errors_asks_for_a_bounded_number_of_opinions(encoding: str) -> None:
    assert python_calls(lambda: decode_text(b"\xff\x81" * 500_000, encoding)) < 50_000  # not one opinion each
