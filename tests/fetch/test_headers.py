"""Header fields: what goes out is clean, what comes in is read as it stands."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lycosa.errors import SettingsError
from lycosa.fetch.downloader import (
    curl_lines,
    is_field_value,
    parse_fields,
    parse_status,
    request_fields,
    response_media_type,
    user_agent,
)
from lycosa.version import __version__


def test_user_agent_carries_the_contact() -> None:
    assert user_agent("lycosa") == f"lycosa/{__version__}"
    assert user_agent("mybot", contact="bot@example.org") == "mybot (+bot@example.org)"
    assert user_agent("Lycosa/1.0", contact="https://example.org/bot") == "Lycosa/1.0 (+https://example.org/bot)"


@pytest.mark.parametrize("contact", ["a\r\nX: y", "a\nb", "\x00", "日本"])
def test_user_agent_that_cannot_be_sent_is_a_settings_error(contact: str) -> None:
    with pytest.raises(SettingsError, match="user agent"):
        user_agent("Lycosa", contact=contact)


@given(st.text())
def test_curl_lines_never_carry_a_line_break(value: str) -> None:
    try:
        lines = curl_lines((("X-Name", value),))
    except ValueError:
        assert not is_field_value(value)
        return
    assert not any(byte in line for line in lines for byte in (b"\r", b"\n", b"\0"))


@pytest.mark.parametrize("name", ["", "A B", "A:", "Ä", "A\n"])
def test_curl_lines_bad_name_is_an_error(name: str) -> None:
    with pytest.raises(ValueError, match="cannot be sent"):
        curl_lines(((name, "v"),))


def test_curl_lines_without_accept_keep_libcurl_from_adding_one() -> None:
    assert curl_lines((("A", "b"), ("E", ""))) == [b"A: b", b"E;", b"Accept:"]
    assert b"Accept:" not in curl_lines(request_fields("Lycosa"))


def test_parse_fields_lowers_names_joins_repeats_and_unfolds() -> None:
    lines = [b"HTTP/1.1 200 OK", b"A: 1", b"Set-Cookie: x", b"set-cookie:y", b"no colon", b" lost", b"Fold: a", b"\t b"]
    block = b"\r\n".join([*lines, b"L: \xe9", b"", b""])

    assert parse_fields(block) == {"a": "1", "set-cookie": "x, y", "fold": "a b", "l": "é"}


@pytest.mark.parametrize(
    ("block", "status"),
    [
        (b"HTTP/1.1 404 Not Found\r\n", 404),
        (b"HTTP/2 200\r\n", 200),
        (b"HTTP/1.1 999", 999),
        (b"ICY\r\n", 0),
        (b"A bcd", 0),
        (b"HTTP/1.1\t200 OK\r\n", 0),
        (b"HTTP/1.1 2000 OK\r\n", 0),
        (b"HTTP/1.1 099\r\n", 0),
    ],
)
def test_parse_status_reads_the_first_line(block: bytes, status: int) -> None:
    assert parse_status(block) == status


@given(st.binary(max_size=300))
def test_parse_fields_any_bytes_give_fields(block: bytes) -> None:
    fields = parse_fields(b"HTTP/1.1 200 OK\n" + block)

    assert all(name == name.lower() and "\n" not in value for name, value in fields.items())
    assert 0 <= parse_status(block) <= 999


@pytest.mark.parametrize(
    ("value", "expected"),
    [("text/HTML; charset=x", "text/html"), ("", ""), ("text/html, text/html", "text/html"), (" a/b ", "a/b")],
)
def test_media_type_is_bare_and_lower_case(value: str, expected: str) -> None:
    assert response_media_type({"content-type": value}) == expected
