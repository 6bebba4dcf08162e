"""A stored header block agrees with the stored body, and keeps what the server said."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from isal import isal_zlib

from lycosa.records import Request, Response
from lycosa.store.warc_read import parse_head
from lycosa.store.warc_record import OriginalRecord, RevisitProfile, response_exchange, revisit_exchange
from tests.effort import bounded

pytestmark = pytest.mark.usefixtures("each_kernel")
REQUEST = Request(url="http://a/", host="a", port=80, address="192.0.2.7")
ORIGINAL = OriginalRecord(url=REQUEST.url, fetched_s=1.0, payload_sha1=b"x" * 20)


def block_of(member: bytes) -> bytes:
    record = isal_zlib.decompress(member, 31)
    found = parse_head(record)
    assert found is not None
    return record[found[2] : found[2] + found[3]]


def before_body(block: bytes) -> bytes:
    """The block as it is stored before a body of five bytes."""
    response = Response(url=REQUEST.url, status=200, header_block=block, body=b"12345")
    stored = block_of(response_exchange(REQUEST, response, fetched_s=1.0).members[1])
    assert stored.endswith(response.body)
    return stored.removesuffix(response.body)


def without_body(block: bytes) -> bytes:
    """The block as it is stored where nothing was sent behind it."""
    response = Response(url=REQUEST.url, status=200, header_block=block)
    profile = RevisitProfile.NOT_MODIFIED
    return block_of(revisit_exchange(REQUEST, response, fetched_s=1.0, original=ORIGINAL, profile=profile).members[1])


def test_agreeing_right_length_is_kept_byte_for_byte() -> None:
    block = b"HTTP/1.0 200 OK\r\nX-odd:\tvalue \r\ncontent-length:  5 \r\n folded\r\n\r\n"

    assert before_body(block) == block


def test_agreeing_no_length_named_is_kept_byte_for_byte() -> None:
    block = b"HTTP/1.1 200 OK\r\nServer: x\r\n\r\n"

    assert before_body(block) == block


def test_agreeing_chunked_is_renamed_and_the_length_named() -> None:
    block = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nServer: x\r\n\r\n"

    assert before_body(block) == (
        b"HTTP/1.1 200 OK\r\nX-Archive-Orig-Transfer-Encoding: chunked\r\nServer: x\r\nContent-Length: 5\r\n\r\n"
    )


def test_agreeing_wrong_length_is_renamed_and_the_right_one_named() -> None:
    block = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\nServer: x\r\n\r\n"

    assert before_body(block) == (
        b"HTTP/1.1 200 OK\r\nX-Archive-Orig-Content-Length: 9\r\nServer: x\r\nContent-Length: 5\r\n\r\n"
    )


def test_agreeing_two_lengths_keeps_the_right_one() -> None:
    block = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 7\r\nTransfer-Encoding: gzip\r\n\r\n"

    assert before_body(block) == (
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-Archive-Orig-Content-Length: 7\r\n"
        b"X-Archive-Orig-Transfer-Encoding: gzip\r\n\r\n"
    )


def test_agreeing_header_behind_a_space_is_renamed_too() -> None:
    block = b"HTTP/1.1 200 OK\r\n Transfer-Encoding: chunked\r\n\r\n"

    assert before_body(block) == (
        b"HTTP/1.1 200 OK\r\n X-Archive-Orig-Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n"
    )


def test_agreeing_long_run_of_spaces_takes_linear_time() -> None:
    block = b"HTTP/1.1 200 OK\r\nContent-Length:" + b" " * 300_000 + b"x\r\n" + b" " * 300_000 + b"\r\n\r\n"

    fitted = bounded(lambda: before_body(block), units=100)

    assert fitted.endswith(b"Content-Length: 5\r\n\r\n")


def test_well_formed_binary_http_gets_a_textual_status_line() -> None:
    assert without_body(b"HTTP/2 200 \r\nserver: x\r\n\r\n") == b"HTTP/1.1 200 \r\nserver: x\r\n\r\n"


def test_well_formed_other_status_line_is_put_aside() -> None:
    assert without_body(b"ICY 200 OK\r\nicy-name: x\r\n\r\n") == (
        b"HTTP/1.1 200 \r\nX-Archive-Orig-Status: ICY 200 OK\r\nicy-name: x\r\n\r\n"
    )


def test_well_formed_bare_line_feeds_become_crlf() -> None:
    assert without_body(b"HTTP/1.1 200 OK\nA: b\n\n") == b"HTTP/1.1 200 OK\r\nA: b\r\n\r\n"


def test_well_formed_nothing_received_still_has_a_status_line() -> None:
    assert without_body(b"") == b"HTTP/1.1 200 \r\n\r\n"


PIECES = [b"HTTP/1.1 200 OK", b"\r\n", b"\n", b"\r", b" ", b":", b"Content-Length", b"Transfer-Encoding: chunked", b"5"]


@given(block=st.lists(st.sampled_from(PIECES) | st.binary(max_size=4), max_size=20).map(b"".join))
def test_agreeing_any_bytes_has_one_empty_line_and_nothing_that_contradicts_the_body(block: bytes) -> None:
    stored = before_body(block)
    lines = stored.removesuffix(b"\r\n\r\n").split(b"\r\n")

    assert stored.endswith(b"\r\n\r\n")
    assert stored.startswith(b"HTTP/1.")
    assert all(lines)
    named = [line.lower().replace(b" ", b"").replace(b"\t", b"") for line in lines[1:]]
    assert not any(line.startswith(b"transfer-encoding:") for line in named)
    assert all(line == b"content-length:5" for line in named if line.startswith(b"content-length:"))
    assert before_body(stored) == stored


@given(st.from_regex(rb"HTTP/1\.[01] (?:[^\r\n]+\r\n){1,4}\r\n", fullmatch=True))
def test_well_formed_block_is_kept_as_it_is(block: bytes) -> None:
    assert without_body(block) == block
