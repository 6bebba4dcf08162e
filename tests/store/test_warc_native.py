"""The native kernel makes the records that Python makes, byte for byte, from the same random bytes and date."""

import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from isal import isal_zlib

from lycosa.records import Request, Response, Truncation
from lycosa.store import warc_record
from lycosa.store.warc_record import (
    OriginalRecord,
    RevisitProfile,
    response_exchange,
    revisit_exchange,
)
from lycosa.web import document, document_digests

if warc_record.member_writer() is None:
    pytest.skip("the native kernel is not installed", allow_module_level=True)

STATUS_LINES = [
    "HTTP/1.1 200 OK",
    "HTTP/1.0 200",
    "HTTP/1.1 ",
    "HTTP/2 200 ",
    "HTTP/3.0 200 ok",
    "HTTP/2",
    "HTTP/1.1  x",
]
FRAMING = ["Content-Length: 5", "content-length :\t5 ", " Content-Length:", "Content-Lengthy: 5", "Content-Length: 5\v"]
FRAMING += ["Transfer-Encoding: chunked", "\ttransfer-ENCODING : x"]
LINES = [*STATUS_LINES, *FRAMING, "ICY 200", "A: b", ":", " ", "", "\f", "\x85", "\x1c"]
ENDS = ["\r\n", "\n", "\r", "\r\n\r\n", "\n\r", ""]
blocks = st.lists(st.tuples(st.sampled_from(LINES), st.sampled_from(ENDS))).map(
    lambda parts: "".join(line + end for line, end in parts).encode("latin-1")
)
# Among them line ends, angle brackets, spaces; now and then other than ASCII, not printable, or a lone surrogate.
ascii_texts = st.text(st.sampled_from("aZ9/%@#:?&<> \"'\\^`{|}~\r\n\t\x00\x7f"), max_size=12)
texts = st.one_of([ascii_texts] * 9 + [st.text(st.sampled_from("a/é中\xad\ud800"), max_size=3)])
urls = st.builds("{}{}".format, st.sampled_from(["http://a/", "https://u:p@a.example:8443/", "http://a", ""]), texts)
header_fields = st.lists(st.tuples(st.sampled_from(["A", "Host", "hOsT"]), texts), max_size=2).map(tuple)
requests = st.builds(
    Request, url=urls, host=texts, port=st.just(80), address=texts, headers=header_fields, method=texts
)
responses = st.builds(
    Response,
    url=urls,
    status=st.integers(0, 999),
    header_block=blocks | st.binary(max_size=30),
    body=st.sampled_from([b"", b"12345", b"<p>" * 400]),
    address=texts,
    truncated=st.none() | st.sampled_from(Truncation),
)


def members_by_both(make: Callable[[], warc_record.HttpExchange]) -> tuple[list[bytes], list[bytes]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(warc_record.os, "urandom", lambda size: random.Random(7).randbytes(size))
        native = make().members
        patch.setattr(warc_record, "member_writer", lambda: None)
        return native, make().members


@given(requests, responses, st.floats(0, 4e9), st.dictionaries(texts, texts, max_size=2))
def test_exchange_of_anything_is_the_same(
    request: Request, response: Response, fetched_s: float, metadata: dict[str, str]
) -> None:
    native, python = members_by_both(
        lambda: response_exchange(request, response, fetched_s=fetched_s, metadata=metadata)
    )
    assert native == python


@given(requests, responses, urls, st.sampled_from(RevisitProfile))
def test_revisit_of_anything_is_the_same(
    request: Request, response: Response, original_url: str, profile: RevisitProfile
) -> None:
    original = OriginalRecord(original_url, 1.5, b"y" * 20)
    native, python = members_by_both(
        lambda: revisit_exchange(request, response, fetched_s=2.5, original=original, profile=profile)
    )
    assert native == python


SIZES = [
    0,
    760,
    1023,
    1024,
    1025,
    5_000,
    16_384,
    32_768,
    65_535,
    65_536,
    65_537,
    131_072,
    262_144,
    1_000_000,
    5_000_000,
]


@pytest.mark.parametrize("texture", ["random", "words", "zeros"])
def test_exchange_of_any_size_is_the_same(request_sent: Request, texture: str) -> None:
    source = random.Random(1)
    words = [source.randbytes(source.randint(2, 9)).hex().encode() for _ in range(500)]
    whole = {
        "random": source.randbytes(SIZES[-1]),
        "words": b" ".join(source.choices(words, k=SIZES[-1] // 10)),
        "zeros": bytes(SIZES[-1]),
    }[texture]
    for size in SIZES:
        response = Response(url=request_sent.url, status=200, body=whole[:size], address="192.0.2.7")
        native, python = members_by_both(lambda got=response: response_exchange(request_sent, got, fetched_s=1.0))
        assert native == python, size
        assert isal_zlib.decompress(native[1], 31).endswith(response.body + b"\r\n\r\n")


def test_compressor_of_another_major_version_is_left_to_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warc_record, "ISAL_MAJOR_VERSION", 3)
    assert warc_record.member_writer.__wrapped__() is None


def test_library_without_the_compressor_is_refused() -> None:
    kernel = warc_record.native()
    assert kernel is not None
    with pytest.raises(OSError, match="isal_deflate_init"):
        kernel.MemberWriter(kernel.lycosa_native.__file__)
    with pytest.raises(OSError, match=r"no-such\.so"):
        kernel.MemberWriter("/no-such.so")


@given(st.binary(max_size=300), st.none() | st.binary(max_size=300))
def test_digests_are_the_same(payload: bytes, decoded: bytes | None) -> None:
    body = payload if decoded is None else decoded
    with pytest.MonkeyPatch.context() as patch:
        native = document_digests(payload, body)
        patch.setattr(document, "native", lambda: None)
        assert native == document_digests(payload, body)
