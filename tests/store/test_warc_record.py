"""Records: what they hold, what links them, and that nothing from outside can add a line to a header."""

import hashlib
import json
import re
from base64 import b32encode
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from isal import isal_zlib
from warcio.checker import Checker

from lycosa.records import Request, Response, Truncation
from lycosa.store.warc_read import WarcLocation, WarcReader, WarcRecord, parse_head
from lycosa.store.warc_record import (
    HttpExchange,
    OriginalRecord,
    PatchBase,
    RevisitProfile,
    _date,
    patch_locations,
    patch_on_read_exchange,
    recompress_record,
    response_exchange,
    revisit_exchange,
    revisit_of_record,
    warcinfo,
)
from tests.store.warc_digests import block_digest_agrees, payload_digest_agrees

pytestmark = pytest.mark.usefixtures("each_kernel")
FETCHED_S = 1_700_000_000.123456
METADATA = {"fetchTimeMs": "120", "via": "https://www.example.org/"}


def opened(member: bytes) -> WarcRecord:
    data = isal_zlib.decompress(member, 31)
    head = parse_head(data)
    assert head is not None
    kind, headers, head_bytes, block_bytes = head
    assert data[head_bytes + block_bytes :] == b"\r\n\r\n"
    block = data[head_bytes : head_bytes + block_bytes]
    return WarcRecord(type=kind, headers=headers, block=block, offset=0, length=len(member))


def base32(data: bytes) -> str:
    return "sha1:" + b32encode(hashlib.sha1(data).digest()).decode()


def warcio_says(path: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """What `warcio check` answers: its exit code and its complaints."""

    class Command:
        inputs = (str(path),)
        verbose = False

    capsys.readouterr()
    code = Checker(Command).process_all()
    return code, capsys.readouterr().out


def test_exchange_makes_linked_request_response_and_metadata(request_sent: Request, response_got: Response) -> None:
    made = response_exchange(request_sent, response_got, fetched_s=FETCHED_S, metadata=METADATA)
    request, response, metadata = map(opened, made.members)

    assert [request.type, response.type, metadata.type] == ["request", "response", "metadata"]
    assert request.header("WARC-Concurrent-To") == response.header("WARC-Record-ID")
    assert metadata.header("WARC-Concurrent-To") == response.header("WARC-Record-ID")
    ids = [record.header("WARC-Record-ID") or "" for record in (request, response, metadata)]
    assert len(set(ids)) == 3
    shape = re.compile(r"<urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}>")
    assert all(shape.fullmatch(record_id) for record_id in ids)
    for record in (request, response, metadata):
        assert record.header("WARC-Date") == "2023-11-14T22:13:20.123456Z"
        assert record.header("WARC-Target-URI") == request_sent.url
        assert record.header("WARC-IP-Address") == "192.0.2.7"
    assert metadata.block == b"fetchTimeMs: 120\r\nvia: https://www.example.org/\r\n"


def test_exchange_response_holds_the_message_and_the_digest_of_its_body(
    request_sent: Request, response_got: Response
) -> None:
    made = response_exchange(request_sent, response_got, fetched_s=FETCHED_S)
    response = opened(made.members[HttpExchange.RESPONSE])

    assert response.block == response_got.header_block + response_got.body
    assert response.header("WARC-Payload-Digest") == base32(response_got.body)
    assert made.payload_sha1 == hashlib.sha1(response_got.body).digest()
    assert response.header("WARC-Truncated") is None


def test_small_answers_and_revisits_name_the_digest_of_their_block(
    request_sent: Request, response_got: Response
) -> None:
    small = msgspec.structs.replace(response_got, body=b"moved")
    large = msgspec.structs.replace(response_got, body=b"x" * 2_000)
    original = OriginalRecord("https://www.example.org/", FETCHED_S, b"x" * 20)
    revisited = revisit_exchange(
        request_sent, large, fetched_s=FETCHED_S, original=original, profile=RevisitProfile.SAME_PAYLOAD
    )
    made = response_exchange(request_sent, small, fetched_s=FETCHED_S).members[HttpExchange.RESPONSE]

    assert opened(made).header("WARC-Block-Digest") == base32(opened(made).block)
    assert block_digest_agrees(opened(revisited.members[HttpExchange.RESPONSE])) is True
    info = warcinfo({"software": "x"}, filename="a.warc.gz", created_s=FETCHED_S)
    assert block_digest_agrees(opened(info)) is True
    for member in response_exchange(request_sent, large, fetched_s=FETCHED_S, metadata=METADATA).members:
        assert opened(member).header("WARC-Block-Digest") is None, "work or bytes for every page"


def test_revisit_made_of_a_small_response_names_the_digest_of_what_is_left(
    request_sent: Request, response_got: Response
) -> None:
    small = msgspec.structs.replace(response_got, body=b"a few words")
    member = response_exchange(request_sent, small, fetched_s=FETCHED_S).members[HttpExchange.RESPONSE]

    made = opened(recompress_record(revisit_of_record(isal_zlib.decompress(member, 31), "https://o.example/")))

    assert made.type == "revisit"
    assert made.block.endswith(b"\r\n\r\n")
    assert block_digest_agrees(made) is True


def test_exchange_request_is_rebuilt_as_it_was_sent(request_sent: Request, response_got: Response) -> None:
    made = response_exchange(request_sent, response_got, fetched_s=FETCHED_S)

    assert opened(made.members[0]).block == (
        b"GET /a/b?c=d HTTP/1.1\r\nHost: www.example.org:8443\r\nUser-Agent: lycosa\r\nAccept: */*\r\n\r\n"
    )


def test_exchange_without_metadata_makes_two_records(request_sent: Request, response_got: Response) -> None:
    assert len(response_exchange(request_sent, response_got, fetched_s=FETCHED_S).members) == 2


def test_exchange_body_cut_short_says_why(request_sent: Request, response_got: Response) -> None:
    cut = msgspec.structs.replace(response_got, body=b"<html>", truncated=Truncation.DISCONNECT)

    response = opened(response_exchange(request_sent, cut, fetched_s=FETCHED_S).members[HttpExchange.RESPONSE])

    assert response.header("WARC-Truncated") == "disconnect"
    assert b"\r\nX-Archive-Orig-Content-Length: 613\r\nContent-Length: 6\r\n\r\n<html>" in response.block


def test_exchange_binary_http_names_its_protocol(request_sent: Request, response_got: Response) -> None:
    two = msgspec.structs.replace(response_got, header_block=b"HTTP/2 200 \r\nserver: x\r\n\r\n")

    response = opened(response_exchange(request_sent, two, fetched_s=FETCHED_S).members[HttpExchange.RESPONSE])

    assert response.header("WARC-Protocol") == "h2"
    assert response.block.startswith(b"HTTP/1.1 200 \r\n")


@pytest.mark.parametrize("profile", list(RevisitProfile))
def test_revisit_keeps_the_headers_and_points_to_the_original(
    request_sent: Request, response_got: Response, profile: RevisitProfile
) -> None:
    original = OriginalRecord(url="https://other.example/", fetched_s=1_600_000_000.5, payload_sha1=b"x" * 20)

    made = revisit_exchange(request_sent, response_got, fetched_s=FETCHED_S, original=original, profile=profile)
    record = opened(made.members[HttpExchange.RESPONSE])

    assert record.type == "revisit"
    assert record.block == response_got.header_block
    assert record.header("WARC-Profile") == profile
    assert record.header("WARC-Refers-To-Target-URI") == "https://other.example/"
    assert record.header("WARC-Refers-To-Date") == "2020-09-13T12:26:40.500000Z"
    assert record.header("WARC-Payload-Digest") == "sha1:" + b32encode(b"x" * 20).decode()
    assert made.payload_sha1 == b"x" * 20


def names_of(member: bytes) -> list[str]:
    return [name for name, _ in opened(member).headers]


@given(text=st.text(st.characters(codec=None, exclude_categories=[]), max_size=40))
def test_records_any_text_in_any_field_gain_no_line(text: str) -> None:
    plain_request = Request(url="http://a/b", host="a", port=80, address="192.0.2.1", headers=(("A", "b"),))
    plain_response = Response(url="http://a/b", header_block=b"HTTP/1.1 200 OK\r\n\r\n", address="192.0.2.1")
    odd_request = Request(
        url="http://a/b" + text, host=text, port=80, address=text, headers=(("A" + text, text),), method="GET" + text
    )
    odd_response = Response(url=text, header_block=b"HTTP/1.1 200 OK\r\n\r\n", address="192.0.2.1" + text)

    plain = response_exchange(plain_request, plain_response, fetched_s=1.0, metadata={"k": "v"}).members
    odd = response_exchange(odd_request, odd_response, fetched_s=1.0, metadata={"k" + text: text}).members

    assert [names_of(member) for member in odd] == [names_of(member) for member in plain]
    assert opened(odd[0]).block.count(b"\n") == opened(plain[0]).block.count(b"\n")
    assert opened(odd[2]).block.count(b"\n") == 1
    assert names_of(warcinfo({"k": text}, filename=text, created_s=1.0)) == names_of(
        warcinfo({"k": "v"}, filename="f", created_s=1.0)
    )


def hostile_exchanges(strings: list[str]) -> list[bytes]:
    members = []
    for number, text in enumerate(strings):
        raw = text.encode("utf-8", "surrogatepass")
        request = Request(url=f"http://a/{text}", host="a", port=80, address="", headers=(("X-Odd", text),))
        block = b"HTTP/1.1 200 OK\r\nX-Odd: " + raw + b"\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n"
        response = Response(url=request.url, status=200, header_block=block, body=raw, address="::1")
        members += response_exchange(request, response, fetched_s=float(number), metadata={"title": text}).members
    return members


def test_written_file_with_hostile_strings_passes_warcio_check(
    conformance: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    strings = json.loads((conformance / "hostile-strings" / "blns.json").read_text())
    members = [warcinfo({"software": "lycosa"}, filename="x.warc.gz", created_s=0.0), *hostile_exchanges(strings)]
    path = tmp_path / "x.warc.gz"
    path.write_bytes(b"".join(members))

    assert warcio_says(path, capsys) == (0, "")
    with WarcReader(path) as reader:
        records = list(reader)
    assert not reader.problems
    assert len(records) == 1 + 3 * len(strings)
    bodies = [record.http()[1] for record in records if record.type == "response"]
    assert bodies == [text.encode("utf-8", "surrogatepass") for text in strings]


HTTP_CASES: dict[str, dict[str, Any]] = {
    "empty body": {"header_block": b"HTTP/1.1 204 No Content\r\n\r\n", "body": b""},
    "no headers": {"header_block": b"HTTP/1.1 200 OK\r\n\r\n"},
    "http 2": {"header_block": b"HTTP/2 200 \r\nserver: x\r\n\r\n"},
    "http 3": {"header_block": b"HTTP/3 200 \r\nserver: x\r\n\r\n"},
    "line feeds": {"header_block": b"HTTP/1.1 200 OK\nA: b\n\n"},
    "junk": {"header_block": b"HTTP/1.1 200 OK\r\nno colon here\r\n: no name\r\n\xff\xfe: \x00\r\n\r\n"},
    "not http": {"header_block": b"ICY 200 OK\r\n\r\n"},
    "nothing": {"header_block": b""},
    "chunk-like": {
        "header_block": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        "body": b"5\r\nhello\r\n0\r\n\r\n",
    },
    "large": {"header_block": b"HTTP/1.1 200 OK\r\n\r\n", "body": bytes(range(256)) * 4096},
}


@pytest.mark.parametrize("name", HTTP_CASES)
def test_written_file_with_odd_responses_passes_warcio_check(
    name: str, request_sent: Request, response_got: Response, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    odd = msgspec.structs.replace(response_got, **HTTP_CASES[name])
    original = OriginalRecord(url="http://o/", fetched_s=1.0, payload_sha1=hashlib.sha1(odd.body).digest())
    members = response_exchange(request_sent, odd, fetched_s=FETCHED_S, metadata=METADATA).members
    for profile in RevisitProfile:
        members += revisit_exchange(request_sent, odd, fetched_s=FETCHED_S, original=original, profile=profile).members
    path = tmp_path / "x.warc.gz"
    path.write_bytes(b"".join(members))

    assert warcio_says(path, capsys) == (0, "")
    with WarcReader(path) as reader:
        records = list(reader)
    revisits = ["request", "revisit"] * len(RevisitProfile)
    assert [record.type for record in records] == ["request", "response", "metadata", *revisits]
    assert records[1].http()[1] == odd.body
    assert payload_digest_agrees(records[1])


def test_records_survive_pickling(request_sent: Request, response_got: Response) -> None:
    import pickle

    made = response_exchange(request_sent, response_got, fetched_s=FETCHED_S)

    assert pickle.loads(pickle.dumps(made)) == made


@given(st.floats(0, 4e9))
def test_date_any_second_as_datetime_writes_it(unix_s: float) -> None:
    written = datetime.fromtimestamp(unix_s, UTC).isoformat(timespec="microseconds")
    assert _date(unix_s) == written[:26].encode() + b"Z"


def test_patch_on_read_refers_to_the_whole_document_and_to_the_table_before_it(
    request_sent: Request, response_got: Response, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = msgspec.structs.replace(response_got, url="https://www.example.org/page", body=b"as it is now")
    whole = PatchBase(WarcLocation(3, 4_000, 700), "https://www.example.org/first", "2026-01-02T03:04:05Z")
    made = patch_on_read_exchange(
        request_sent, response_got, document, whole=whole, fetched_s=FETCHED_S, metadata={"patched-by": "x"}
    )
    records = [opened(member) for member in made.members]

    assert [record.type for record in records] == ["response", "revisit", "request", "metadata"]
    table, revisit_record = records[:2]
    assert table.url == request_sent.url
    assert revisit_record.url == document.url
    assert revisit_record.header("WARC-Refers-To-Target-URI") == whole.url
    assert revisit_record.header("WARC-Refers-To-Date") == whole.date
    assert revisit_record.header("WARC-Payload-Digest") == base32(document.body)
    assert revisit_record.http()[1] == b""
    at = WarcLocation(9, 5_000 + len(made.members[0]), len(made.members[1]))
    assert patch_locations(revisit_record, at) == (whole.place, WarcLocation(9, 5_000, len(made.members[0])))
    assert patch_locations(revisit_record, WarcLocation(9, 1, 1)) is None  # not where it was written
    assert patch_locations(table, at) is None

    (tmp_path / "x.warc.gz").write_bytes(b"".join(made.members))
    assert warcio_says(tmp_path / "x.warc.gz", capsys)[0] == 0
