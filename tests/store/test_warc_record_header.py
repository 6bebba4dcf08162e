"""A stored header block agrees with the stored body, and keeps what the server said."""

import re

from hypothesis import given
from hypothesis import strategies as st

from lycosa.store.warc_record import _is_well_formed, header_block_for_body, well_formed_header_block
from tests.effort import bounded


def test_agreeing_right_length_is_kept_byte_for_byte() -> None:
    block = b"HTTP/1.0 200 OK\r\nX-odd:\tvalue \r\ncontent-length:  5 \r\n folded\r\n\r\n"

    assert header_block_for_body(block, status=200, body_bytes=5) == block


def test_agreeing_no_length_named_is_kept_byte_for_byte() -> None:
    block = b"HTTP/1.1 200 OK\r\nServer: x\r\n\r\n"

    assert header_block_for_body(block, status=200, body_bytes=5) == block


def test_agreeing_chunked_is_renamed_and_the_length_named() -> None:
    block = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nServer: x\r\n\r\n"

    assert header_block_for_body(block, status=200, body_bytes=5) == (
        b"HTTP/1.1 200 OK\r\nX-Archive-Orig-Transfer-Encoding: chunked\r\nServer: x\r\nContent-Length: 5\r\n\r\n"
    )


def test_agreeing_wrong_length_is_renamed_and_the_right_one_named() -> None:
    block = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\nServer: x\r\n\r\n"

    assert header_block_for_body(block, status=200, body_bytes=5) == (
        b"HTTP/1.1 200 OK\r\nX-Archive-Orig-Content-Length: 9\r\nServer: x\r\nContent-Length: 5\r\n\r\n"
    )


def test_agreeing_two_lengths_keeps_the_right_one() -> None:
    block = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 7\r\nTransfer-Encoding: gzip\r\n\r\n"

    assert header_block_for_body(block, status=200, body_bytes=5) == (
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-Archive-Orig-Content-Length: 7\r\n"
        b"X-Archive-Orig-Transfer-Encoding: gzip\r\n\r\n"
    )


def test_agreeing_header_behind_a_space_is_renamed_too() -> None:
    block = b"HTTP/1.1 200 OK\r\n Transfer-Encoding: chunked\r\n\r\n"

    assert header_block_for_body(block, status=200, body_bytes=5) == (
        b"HTTP/1.1 200 OK\r\n X-Archive-Orig-Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n"
    )


def test_agreeing_long_run_of_spaces_takes_linear_time() -> None:
    block = b"HTTP/1.1 200 OK\r\nContent-Length:" + b" " * 300_000 + b"x\r\n" + b" " * 300_000 + b"\r\n\r\n"

    fitted = bounded(lambda: header_block_for_body(block, status=200, body_bytes=5), units=100)

    assert fitted.endswith(b"Content-Length: 5\r\n\r\n")


def test_well_formed_binary_http_gets_a_textual_status_line() -> None:
    assert (
        well_formed_header_block(b"HTTP/2 200 \r\nserver: x\r\n\r\n", status=200)
        == b"HTTP/1.1 200 \r\nserver: x\r\n\r\n"
    )


def test_well_formed_other_status_line_is_put_aside() -> None:
    assert well_formed_header_block(b"ICY 200 OK\r\nicy-name: x\r\n\r\n", status=200) == (
        b"HTTP/1.1 200 \r\nX-Archive-Orig-Status: ICY 200 OK\r\nicy-name: x\r\n\r\n"
    )


def test_well_formed_bare_line_feeds_become_crlf() -> None:
    assert well_formed_header_block(b"HTTP/1.1 200 OK\nA: b\n\n", status=200) == b"HTTP/1.1 200 OK\r\nA: b\r\n\r\n"


def test_well_formed_nothing_received_still_has_a_status_line() -> None:
    assert well_formed_header_block(b"", status=200) == b"HTTP/1.1 200 \r\n\r\n"


PIECES = [b"HTTP/1.1 200 OK", b"\r\n", b"\n", b"\r", b" ", b":", b"Content-Length", b"Transfer-Encoding: chunked", b"5"]


@given(block=st.lists(st.sampled_from(PIECES) | st.binary(max_size=4), max_size=20).map(b"".join))
def test_agreeing_any_bytes_has_one_empty_line_and_nothing_that_contradicts_the_body(block: bytes) -> None:
    stored = header_block_for_body(block, status=200, body_bytes=5)
    lines = stored.removesuffix(b"\r\n\r\n").split(b"\r\n")

    assert stored.endswith(b"\r\n\r\n")
    assert stored.startswith(b"HTTP/1.")
    assert all(lines)
    named = [line.lower().replace(b" ", b"").replace(b"\t", b"") for line in lines[1:]]
    assert not any(line.startswith(b"transfer-encoding:") for line in named)
    assert all(line == b"content-length:5" for line in named if line.startswith(b"content-length:"))
    assert header_block_for_body(stored, status=200, body_bytes=5) == stored


@given(
    st.lists(st.sampled_from([b"HTTP/1.1 ", b"HTTP/1.0 ", b"HTTP/2 ", b"200", b"\r\n", b"\r", b"\n", b"A: b", b" "]))
)
def test_well_formed_block_is_one_that_the_pattern_matches(parts: list[bytes]) -> None:
    block = b"".join(parts)
    is_one = re.fullmatch(rb"HTTP/1\.[01] (?:[^\r\n]+\r\n)+\r\n", block) is not None
    assert _is_well_formed(block) == is_one
