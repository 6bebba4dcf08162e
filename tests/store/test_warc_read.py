"""Reading: agreement with the sample files, random access, damaged ends."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lycosa.errors import StoreError
from lycosa.store.warc_read import WarcLocation, WarcReader, intact_length, parse_head, read_record, unchunk
from lycosa.store.warc_record import warcinfo
from tests.effort import bounded
from tests.store.warc_digests import block_digest_agrees, payload_digest_agrees

SAMPLES = [
    "warcio-example.warc.gz",
    "warcio-example.warc",
    "warcio-example-iana.org-chunked.warc",
    "warcio-example-trunc.warc",
    "warcio-example-resource.warc.gz",
    "warcio-example-bad.warc.gz.bad",
    "warcio-example-bad-non-chunked.warc.gz",
    "warcio-example-digest.warc",
    "warcio-example-wget-bad-target-uri.warc.gz",
    "warcio-example-space-in-target-uri.warc.gz",
    "warcio-example.arc",
    "warcio-example.arc.gz",
    "warcio-example-space-in-url.arc",
    "warcio-bad.arc",
]


@pytest.mark.parametrize("name", SAMPLES)
def test_reader_sample_file_agrees_with_what_is_expected(conformance: Path, name: str) -> None:
    if ".arc" in name:
        pytest.skip("ARC, the format before WARC, is not read here")
    expected: dict[str, Any] = json.loads((conformance / "warc" / "expected.json").read_text())[name]
    with WarcReader(conformance / "warc" / name) as reader:
        if expected.get("raises"):
            with pytest.raises(StoreError, match="compressed as a whole"):
                list(reader)
            return
        records = list(reader)
    verdicts = [(block_digest_agrees(record), payload_digest_agrees(record)) for record in records]
    bodies = [record.http()[1] for record in records if record.type == "response"]
    found = {
        "types": [record.type for record in records],
        "offsets": [record.offset for record in records],
        "errors": len(reader.problems),
        "records": len(records),
        "digests": "fail" if any(False in verdict for verdict in verdicts) else "pass",
        "digest_pass": sum(False not in verdict for verdict in verdicts),
        "payload_digest_failed": sum(payload is False for _, payload in verdicts),
        "target_uri": next((record.url for record in records if record.url), None),
    }
    for key, value in expected.items():
        if key in found:
            assert found[key] == value, key
        elif key == "first_response_body_startswith":
            assert bodies[0].startswith(value.encode())
        elif key == "first_response_body_contains":
            assert value.encode() in bodies[0]
        else:
            assert key == "note"
    assert len(reader.problems) == expected.get("errors", 0)


def test_every_sample_with_an_expectation_is_tried(conformance: Path) -> None:
    assert set(SAMPLES) == set(json.loads((conformance / "warc" / "expected.json").read_text()))


def test_parse_head_examples_of_the_standard_have_their_type(conformance: Path) -> None:
    rows = [json.loads(line) for line in (conformance / "warc" / "spec_examples_warc11.jsonl").read_text().splitlines()]
    heads = [parse_head(row["text"].encode()) for row in rows]

    assert [head and head[0] for head in heads] == [row["type"] for row in rows]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "x.warc.gz"
    path.write_bytes(b"".join(warcinfo({"n": str(n) * 50}, filename="x", created_s=0.0) for n in range(3)))
    return path


def test_read_record_by_its_place_gives_what_the_sequence_gives(file: Path) -> None:
    with WarcReader(file) as reader:
        records = list(reader)

    assert len(records) == 3
    for record in records:
        assert read_record(file, WarcLocation(1, record.offset, record.length)) == record
    assert records[-1].offset + records[-1].length == file.stat().st_size


@pytest.mark.parametrize("place", [WarcLocation(1, 1, 50), WarcLocation(1, 0, 50), WarcLocation(1, 10**6, 50)])
def test_read_record_where_none_is_says_so(file: Path, place: WarcLocation) -> None:
    with pytest.raises(StoreError, match="no whole record at byte"):
        read_record(file, place)


def test_read_record_no_such_file_says_so(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="reading the archive failed"):
        read_record(tmp_path / "none", WarcLocation(1, 0, 1))


def test_reader_cut_anywhere_gives_the_whole_records_before(file: Path) -> None:
    data = file.read_bytes()
    with WarcReader(file) as reader:
        ends = [record.offset + record.length for record in reader]
    for size in range(ends[0], len(data) + 1):
        file.write_bytes(data[:size])
        whole = [end for end in ends if end <= size]
        with WarcReader(file) as reader:
            assert len(list(reader)) == len(whole)
        assert bool(reader.problems) == (size not in ends)
        assert intact_length(file) == whole[-1]


def test_reader_garbage_behind_whole_records_is_a_problem_not_an_error(file: Path) -> None:
    size = file.stat().st_size
    with file.open("ab") as end:
        end.write(b"\0" * 5000)

    with WarcReader(file) as reader:
        assert len(list(reader)) == 3
    assert len(reader.problems) == 1
    assert intact_length(file) == size


def _records_of(path: Path) -> tuple[list[int], list[str]]:
    with WarcReader(path) as reader:
        return [record.offset for record in reader], reader.problems


def test_reader_any_byte_flipped_goes_on_at_the_next_member(file: Path) -> None:
    data = file.read_bytes()
    starts, _ = _records_of(file)
    ends = [*starts[1:], len(data)]
    for at in range(len(data)):
        file.write_bytes(data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :])
        hit = next(n for n, end in enumerate(ends) if at < end)

        found, problems = _records_of(file)

        if found != starts:  # bytes of a gzip head, such as that of the time, say nothing
            assert found == [start for n, start in enumerate(starts) if n != hit]
            assert [problem.split(":")[0] for problem in problems] == [f"byte {starts[hit]}"]


def test_reader_zeros_in_the_middle_are_named_with_what_is_passed_over(file: Path) -> None:
    data = file.read_bytes()
    starts, _ = _records_of(file)
    file.write_bytes(data[: starts[1]] + bytes(200_000) + data[starts[1] :])

    found, problems = _records_of(file)

    assert found == [starts[0], starts[1] + 200_000, starts[2] + 200_000]
    assert problems == [f"byte {starts[1]}: not gzip, or damaged; 200000 bytes passed over"]


def test_reader_many_false_members_are_tried_within_a_bound(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lycosa.store.warc_read._TRIALS_MOST", 100)
    file.write_bytes(file.read_bytes() + b"\x1f\x8b\x08\0" * 10_000 + file.read_bytes())

    found, problems = _records_of(file)

    assert len(found) == 3
    assert len(problems) == 1


_GOOD = b"WARC/1.0\r\nWARC-Type: metadata\r\nContent-Length: 2\r\n\r\nok\r\n\r\n"
_BAD = b"WARC/1.0\r\nWARC-Type: metadata\r\n\r\nabc\r\n\r\n"  # how long it is, it does not say


@pytest.mark.parametrize(
    ("line", "last", "is_found"),
    [
        (b"WARC/1.0\r\n", b"", True),
        (b"xWARC/1.0\r\n", b"", True),
        (b"a:WARC/1.0\r\n", b"", False),
        (b"a:WARC/1.0\r\n", b"Content-Length: 999999\r\n", False),
    ],
)
def test_reader_of_thousands_of_beginnings_of_records_takes_bounded_work(
    tmp_path: Path, line: bytes, last: bytes, is_found: bool
) -> None:
    """Each of them could be a header up to the end of the file. Lines with a colon belong to one; in vain."""
    (tmp_path / "x.warc").write_bytes(_GOOD + line * 8_000 + last + b"\r\n" + _GOOD)

    found, _ = bounded(lambda: _records_of(tmp_path / "x.warc"), units=250)

    assert len(found) == 1 + is_found


@pytest.mark.parametrize("before", [50, 0])
def test_reader_goes_on_behind_thousands_of_records_without_a_length(tmp_path: Path, before: int) -> None:
    (tmp_path / "x.warc").write_bytes(_GOOD * before + _BAD * 5_000 + _GOOD * 50)

    found, problems = _records_of(tmp_path / "x.warc")

    assert len(found) == before + 50
    assert len(problems) == 1_000


def test_reader_that_gives_up_says_so_however_much_it_has_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lycosa.store.warc_read._VAIN_BYTES_MOST", 0)
    head = b"WARC/1.0\r\n" + b"a:WARC/1.0\r\n" * 100 + b"\r\n"  # each line could be the first of a record
    start = len(_GOOD + _BAD * 1_000)
    (tmp_path / "x.warc").write_bytes(_GOOD + _BAD * 1_000 + head * 100 + _GOOD)

    found, problems = _records_of(tmp_path / "x.warc")

    assert found == [0]
    assert len(problems) == 1_001
    assert int(problems[0].split(":")[0].removeprefix("byte ")) > start
    assert problems[0].endswith("the rest of the file is not read, since too much of it looks like records and is none")


def test_reader_plain_file_damaged_head_goes_on_at_the_next_record(conformance: Path, tmp_path: Path) -> None:
    whole = conformance / "warc" / "warcio-example.warc"
    starts, _ = _records_of(whole)
    data = whole.read_bytes()
    (tmp_path / "x.warc").write_bytes(data[: starts[2]] + b"\0" * 9 + data[starts[2] + 9 :])

    found, problems = _records_of(tmp_path / "x.warc")

    assert found == [start for start in starts if start != starts[2]]
    assert problems == [f"byte {starts[2]}: no WARC record begins here; {starts[3] - starts[2]} bytes passed over"]


def test_reader_large_record_is_passed_over_and_told(file: Path) -> None:
    large = warcinfo({"n": "x" * 5_000}, filename="x", created_s=0.0)
    data = file.read_bytes()
    file.write_bytes(large + data)

    with WarcReader(file, record_bytes=2_000) as reader:
        assert len(list(reader)) == 3
    assert reader.problems == [f"byte 0: a record of more than 2000 bytes; {len(large)} bytes passed over"]


def test_reader_part_of_a_file_is_read_as_a_file_of_its_own(file: Path) -> None:
    data = file.read_bytes()
    starts, _ = _records_of(file)
    file.write_bytes(b"before" + data + data)

    with WarcReader(file, inside=(6, len(data)), start=starts[1]) as reader:
        assert [record.offset for record in reader] == starts[1:]
    assert not reader.problems


def test_reader_empty_file_holds_nothing(tmp_path: Path) -> None:
    (tmp_path / "x.warc.gz").touch()

    with WarcReader(tmp_path / "x.warc.gz") as reader:
        assert list(reader) == []
    assert intact_length(tmp_path / "x.warc.gz") == 0


@given(data=st.binary(max_size=200))
def test_parse_head_any_bytes_is_a_head_or_none(data: bytes) -> None:
    head = parse_head(b"WARC/1.1\r\n" + data)

    assert head is None or head[3] >= 0


@given(parts=st.lists(st.binary(min_size=1, max_size=40), max_size=5), upper=st.booleans(), extension=st.booleans())
def test_unchunk_any_chunks_gives_the_body(parts: list[bytes], upper: bool, extension: bool) -> None:
    def size(part: bytes) -> bytes:
        return (b"%X" if upper else b"%x") % len(part) + (b";name=value" if extension else b"")

    body = b"".join(size(part) + b"\r\n" + part + b"\r\n" for part in parts) + b"0\r\n\r\n"

    assert unchunk(body) == b"".join(parts)


@given(data=st.binary(max_size=100))
def test_unchunk_any_bytes_gives_no_more_than_there_were(data: bytes) -> None:
    assert len(unchunk(data)) <= len(data)
