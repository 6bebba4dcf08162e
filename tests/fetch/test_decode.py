"""Content decoding: whole, stacked, cut, damaged and hostile bodies."""

import gzip
import json
import random
import zlib
from collections.abc import Callable
from pathlib import Path

import brotli
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from lycosa.fetch.decode import (
    FIRST_STEP_BYTES,
    FREE_BYTES,
    MAX_MEMBERS,
    MOST_TIMES,
    DecodedBody,
    decode_body,
    decode_pieces,
)
from tests.effort import bounded

CAP_BYTES = 1_000_000
BOMB_BYTES = 11_511_612
PAGE = b"<p>A page with some words in it, and some more.</p>\n" * 2_000
Read = Callable[[str], bytes]


@pytest.fixture
def hostile(conformance: Path) -> Read:
    return lambda name: (conformance / "hostile-compressed" / name).read_bytes()


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


CODERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": brotli.compress,
    "zstd": zstandard.compress,
}


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd"])
def test_decode_bomb_stops_at_the_cap_or_where_it_is_known_to_be_one(hostile: Read, coding: str) -> None:
    bomb = hostile(f"scrapy-bomb-{coding}.bin")

    cut = decode_body(bomb, coding, cap_bytes=CAP_BYTES)
    known = decode_body(bomb, coding, cap_bytes=BOMB_BYTES)

    assert cut.is_cut
    assert len(cut.body) == CAP_BYTES
    assert (len(known.body), known.is_cut, known.is_damaged) == (FREE_BYTES, True, False)


@pytest.mark.parametrize("coding", CODERS)
def test_decode_bomb_of_many_megabytes_stops_long_before_the_cap(coding: str) -> None:
    bomb = CODERS[coding](bytes(60_000_000))

    decoded = decode_body(bomb, coding)

    assert (len(decoded.body), decoded.is_cut, decoded.is_damaged) == (FREE_BYTES, True, False)


@pytest.mark.parametrize("coding", CODERS)
def test_decode_body_that_is_less_than_two_hundred_times_larger_is_whole(coding: str) -> None:
    chance = random.Random(3)
    text = b"".join(chance.randbytes(100) + bytes(15_000) for _ in range(600))
    packed = CODERS[coding](text)

    assert 90 < len(text) / len(packed) < MOST_TIMES
    assert decode_body(packed, coding) == DecodedBody(text)


@pytest.mark.parametrize("coding", ["br", "zstd"])
def test_decode_table_of_rows_that_differ_by_little_is_whole(coding: str) -> None:
    classes = " ".join(f"md:hover:bg-slate-{n} px-{n} py-{n} sm:px-{n}" for n in range(24))
    rows = "".join(f"<tr class='{classes}'><td><a href='/item/{n}'>Item {n}</a></td></tr>" for n in range(9_000))
    packed = CODERS[coding](rows.encode())

    assert len(rows) > FREE_BYTES
    assert len(rows) / len(packed) > MOST_TIMES
    assert decode_body(packed, coding) == DecodedBody(rows.encode())


@pytest.mark.parametrize("coding", CODERS)
def test_decode_body_of_which_only_the_beginning_looks_like_a_bomb_is_whole(coding: str) -> None:
    text = bytes(6_000_000) + random.Random(3).randbytes(1_000_000)
    assert decode_body(CODERS[coding](text), coding) == DecodedBody(text)


def test_decode_brotli_of_few_bytes_may_be_as_large_as_all_of_them_explain() -> None:
    text = bytes(4_001_600)
    packed = brotli.compress(random.Random(3).randbytes(2_400) + text)
    assert 2_000 < len(packed) < 4_096
    assert len(decode_body(packed, "br").body) == len(text) + 2_400


def test_decode_coding_in_another_is_bounded_by_what_was_sent() -> None:
    """Neither layer alone is a bomb."""
    chance = random.Random(3)
    text = b"".join(chance.randbytes(100) + bytes(15_000) for _ in range(600))
    packed = brotli.compress(gzip.compress(text) * 12)

    decoded = decode_body(packed, "gzip, br", cap_bytes=100_000_000)

    assert decoded.is_cut
    assert len(decoded.body) == MOST_TIMES * len(packed) < 12 * len(text)


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd"])
def test_decode_bomb_layer_produces_at_most_a_tenth_above_the_cap(hostile: Read, coding: str) -> None:
    from lycosa.fetch.decode import _LAYERS, _Output

    output = _Output(CAP_BYTES)
    _LAYERS[coding](hostile(f"scrapy-bomb-{coding}.bin"), output)

    assert CAP_BYTES < output.size <= CAP_BYTES * 1.1


@pytest.mark.parametrize(
    ("name", "coding"),
    [
        ("scrapy-html-br.bin", "br"),
        ("scrapy-html-gzip.bin", "gzip"),
        ("scrapy-html-rawdeflate.bin", "deflate"),
        ("scrapy-html-zlibdeflate.bin", "deflate"),
        ("scrapy-html-zstd-static-content-size.bin", "zstd"),
        ("scrapy-html-zstd-static-no-content-size.bin", "zstd"),
        ("scrapy-html-zstd-streaming-no-content-size.bin", "zstd"),
        ("scrapy-html-gzip-deflate.bin", "gzip, deflate"),
        ("scrapy-html-gzip-deflate-gzip.bin", "gzip, deflate, gzip"),
    ],
)
def test_decode_whole_page_of_any_coding_is_a_page(hostile: Read, name: str, coding: str) -> None:
    decoded = decode_body(hostile(name), coding, cap_bytes=CAP_BYTES)

    assert (decoded.is_cut, decoded.is_damaged, decoded.unknown) == (False, False, "")
    assert decoded.body.lstrip()[:5].lower() in (b"<!doc", b"<html")
    assert decoded.body.rstrip().endswith(b"</html>")


def test_decode_every_file_of_the_set_gives_an_answer_within_the_cap(hostile: Read) -> None:
    rows = json.loads(hostile("manifest.json"))

    for row in rows:
        for coding in ("gzip", "deflate", "br", "zstd", "gzip, deflate"):
            assert len(decode_body(hostile(row["file"]), coding, cap_bytes=CAP_BYTES).body) <= CAP_BYTES
    assert len(rows) >= 35


@pytest.mark.parametrize("suffix", [("gz", "gzip"), ("br", "br"), ("zst", "zstd")])
@pytest.mark.parametrize("stem", ["foo.octetstream", "foo.text", "hello.html"])
def test_decode_web_platform_file_is_whole(hostile: Read, stem: str, suffix: tuple[str, str]) -> None:
    decoded = decode_body(hostile(f"wpt-{stem}.{suffix[0]}"), suffix[1], cap_bytes=30_000_000)

    assert decoded.body
    assert not decoded.is_damaged
    assert not decoded.is_cut


def test_decode_zstd_window_beyond_eight_megabytes_is_refused(hostile: Read) -> None:
    data = hostile("wpt-big.window.zst")

    assert decode_body(data, "zstd", cap_bytes=CAP_BYTES) == DecodedBody(data, is_damaged=True)


def test_decode_gzip_that_ends_early_gives_the_readable_prefix(hostile: Read) -> None:
    decoded = decode_body(hostile("scrapy-unexpected-eof.gz"), "gzip", cap_bytes=CAP_BYTES)

    assert decoded.is_damaged
    assert decoded.body.decode("latin-1").encode() == hostile("scrapy-unexpected-eof-output.txt")


@pytest.mark.parametrize("name", ["scrapy-truncated-crc-error.gz", "scrapy-truncated-crc-error-short.gz"])
def test_decode_gzip_without_its_checksum_gives_the_text(hostile: Read, name: str) -> None:
    decoded = decode_body(hostile(name), "gzip", cap_bytes=CAP_BYTES)

    assert decoded.is_damaged
    assert decoded.body == zlib.decompressobj(31).decompress(hostile(name))
    assert decoded.body.rstrip(b">").endswith(b"</html")


def test_decode_gzip_with_a_wrong_checksum_gives_the_text_and_says_damaged() -> None:
    packed = bytearray(gzip.compress(PAGE))
    packed[-6] ^= 0xFF

    assert decode_body(bytes(packed), "gzip") == DecodedBody(PAGE, is_damaged=True)


@pytest.mark.parametrize(("coding", "window_bits"), [("gzip", 31), ("deflate", 15), ("deflate", -15)])
def test_decode_damage_in_the_middle_keeps_all_that_stands_before_it(coding: str, window_bits: int) -> None:
    text = random.Random(1).randbytes(60_000).hex().encode()
    packer = zlib.compressobj(wbits=window_bits)
    before = packer.compress(text) + packer.flush(zlib.Z_FULL_FLUSH)
    forbidden_block = b"\x07"  # the fourth kind of block does not exist

    assert decode_body(before + forbidden_block + b"more", coding) == DecodedBody(text, is_damaged=True)


def test_decode_gzip_members_in_a_row_are_joined_and_trailing_bytes_left() -> None:
    packed = gzip.compress(b"one ") + gzip.compress(PAGE) + gzip.compress(b" three") + b"\0\0garbage"

    assert decode_body(packed, "gzip") == DecodedBody(b"one " + PAGE + b" three")


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
def test_decode_endless_empty_members_end_within_bounds(coding: str) -> None:
    member = (
        zstandard.ZstdCompressor(write_content_size=False).compress(b"") if coding == "zstd" else gzip.compress(b"")
    )

    decoded = bounded(lambda: decode_body(member * (10_000_000 // len(member)), coding), units=250)

    assert decoded.is_damaged
    assert 10_000_000 // len(member) > MAX_MEMBERS


def test_decode_plain_body_said_to_be_gzip_is_left_as_it_is() -> None:
    assert decode_body(PAGE, "gzip") == DecodedBody(PAGE, is_damaged=True)


@pytest.mark.parametrize("encoding", ["", "identity", " , identity", "IDENTITY"])
def test_decode_without_a_coding_gives_the_body(encoding: str) -> None:
    assert decode_body(PAGE, encoding) == DecodedBody(PAGE)


def test_decode_plain_body_above_the_cap_is_cut() -> None:
    assert decode_body(b"12345", "", cap_bytes=4) == DecodedBody(b"1234", is_cut=True)


@pytest.mark.parametrize("coding", list(CODERS))
def test_decode_empty_body_is_no_damage(coding: str) -> None:
    assert decode_body(b"", coding) == DecodedBody(b"")


def test_decode_unknown_coding_is_named() -> None:
    assert decode_body(gzip.compress(PAGE), "compress, GZip") == DecodedBody(PAGE, unknown="compress")


def test_decode_more_codings_than_five_are_not_undone() -> None:
    packed = PAGE
    for _ in range(6):
        packed = gzip.compress(packed)

    assert decode_body(packed, ", ".join(["gzip"] * 6)).unknown
    assert decode_body(gzip.decompress(packed), ", ".join(["gzip"] * 5)) == DecodedBody(PAGE)


@pytest.mark.parametrize("coding", list(CODERS))
@given(data=st.binary(max_size=3_000), cut=st.floats(0, 1))
def test_decode_any_cut_of_a_coded_body_is_a_prefix_of_it(coding: str, data: bytes, cut: float) -> None:
    packed = CODERS[coding](data)

    assert decode_body(packed, coding) == DecodedBody(data)
    part = packed[: int(len(packed) * cut)]
    decoded = decode_body(part, coding)
    # nothing readable leaves the bytes as they came
    assert data.startswith(decoded.body) or decoded.body == part
    assert decoded.is_damaged or not part or part == packed


@given(
    data=st.binary(max_size=500),
    encoding=st.sampled_from(["gzip", "deflate", "br", "zstd", "gzip, br", "deflate, zstd"]),
)
def test_decode_any_bytes_give_an_answer(data: bytes, encoding: str) -> None:
    assert len(decode_body(data, encoding, cap_bytes=10_000).body) <= 10_000


@pytest.mark.parametrize("coding", ["gzip", "br", "zstd"])
def test_decode_pieces_of_a_bomb_are_small_and_end_at_the_cap(hostile: Read, coding: str) -> None:
    sizes = [len(piece) for piece in decode_pieces(hostile(f"scrapy-bomb-{coding}.bin"), coding, cap_bytes=CAP_BYTES)]

    assert sum(sizes) == CAP_BYTES
    assert max(sizes) <= 8 * FIRST_STEP_BYTES


@pytest.mark.parametrize("coding", ["gzip", "x-gzip", "deflate", "br", "zstd", "gzip, br", "none"])
@given(data=st.binary(max_size=3_000), repeats=st.integers(1, 300))
def test_decode_pieces_are_the_body(coding: str, data: bytes, repeats: int) -> None:
    packed = data * repeats
    for name in coding.split(", "):
        packed = CODERS.get(name, bytes)(packed)

    whole = decode_body(packed, coding, cap_bytes=500_000).body
    assert b"".join(decode_pieces(packed, coding, cap_bytes=500_000)) == whole


@pytest.mark.parametrize("coding", ["gzip", "br", "zstd"])
@given(data=st.binary(max_size=500))
def test_decode_pieces_of_any_bytes_are_an_answer(coding: str, data: bytes) -> None:
    assert len(b"".join(decode_pieces(data, coding, cap_bytes=10_000))) <= 10_000


@given(st.binary(max_size=2_000))
def test_decode_raw_deflate_is_read_too(data: bytes) -> None:
    packed = raw_deflate(data)
    if packed[0] & 0x0F != 8:  # else its first bytes may pass for a zlib header
        assert decode_body(packed, "deflate") == DecodedBody(data)
