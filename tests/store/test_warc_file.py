"""Appending, rotation, and recovery: files hold whole members only, and agree with what was committed."""

import errno
import gzip
import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lycosa.errors import StoreError
from lycosa.store.warc_file import TAIL_BYTES, WarcWriter
from lycosa.store.warc_read import WarcLocation, WarcReader, read_record
from lycosa.store.warc_record import warcinfo

INFO = {"software": "lycosa"}


def member(text: str = "x") -> bytes:
    return warcinfo({"text": text}, filename="none", created_s=0.0)


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[WarcWriter]:
    made = WarcWriter(tmp_path, info=INFO, max_bytes=2000)
    made.recover({})
    yield made
    made.close()


def texts(writer: WarcWriter, number: int) -> list[str]:
    """What the records behind the opening one say; the file must be whole."""
    with WarcReader(writer.path(number)) as reader:
        first, *rest = list(reader)
    assert not reader.problems
    assert first.header("WARC-Filename") == writer.path(number).name
    return [record.block.decode().removeprefix("text: ").strip() for record in rest]


def test_append_places_find_the_records_again(writer: WarcWriter) -> None:
    places = writer.append([member("a"), member("bb")]) + writer.append([member("c")])

    found = [read_record(writer.path(place.file_number), place).block for place in places]
    assert found == [b"text: a\r\n", b"text: bb\r\n", b"text: c\r\n"]
    assert texts(writer, 1) == ["a", "bb", "c"]


def test_append_in_pieces_places_find_the_records_again(writer: WarcWriter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lycosa.store.warc_file.JOINED_BYTES", 3 * len(member("a")))
    said = ["a", "b", "c" * 1_000, *(str(number) for number in range(20)), "d" * 1_000]
    places = writer.append([member(text) for text in said])

    found = [read_record(writer.path(place.file_number), place).block.decode() for place in places]
    assert found == [f"text: {text}\r\n" for text in said]
    assert texts(writer, 1) == said


def test_append_disk_full_between_two_pieces_leaves_the_file_as_it_was(
    writer: WarcWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lycosa.store.warc_file.JOINED_BYTES", 1)
    writer.append([member("a")])
    size, real = writer.path(1).stat().st_size, os.pwrite

    def full(file: int, data: memoryview, at: int) -> int:
        if at == size:
            return real(file, data, at)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(StoreError, match="no space left on the disk of"):
        writer.append([member("b"), member("c")])
    assert writer.path(1).stat().st_size == size

    monkeypatch.setattr(os, "pwrite", real)
    writer.append([member("b"), member("c")])
    assert texts(writer, 1) == ["a", "b", "c"]


def test_append_nothing_writes_no_place(writer: WarcWriter) -> None:
    assert writer.append([]) == []


def test_append_past_the_size_starts_the_next_file(writer: WarcWriter) -> None:
    places = [writer.append([member(str(number))])[0] for number in range(20)]

    files = {place.file_number for place in places}
    assert files == set(range(1, max(files) + 1))
    assert len(files) > 1
    assert sorted(path.name for path in writer.folder.iterdir()) == [f"lycosa-{n:06d}.warc.gz" for n in sorted(files)]
    assert [text for number in sorted(files) for text in texts(writer, number)] == [str(n) for n in range(20)]
    assert writer.lengths == {number: writer.path(number).stat().st_size for number in files}


def test_place_packed_comes_back() -> None:
    place = WarcLocation(7, 2**31, 2**20)

    assert WarcLocation.unpack(place.pack()) == place
    assert len(place.pack()) == 12


def test_recover_longer_than_committed_is_cut(writer: WarcWriter) -> None:
    writer.append([member("kept")])
    committed = dict(writer.lengths)
    tail = [member("lost")]
    writer.append(tail)

    again = WarcWriter(writer.folder, info=INFO, max_bytes=2000)
    recovery = again.recover(committed)
    again.append([member("new")])

    assert recovery.cut_bytes == {1: len(tail[0])}
    assert recovery.short == {}
    assert texts(again, 1) == ["kept", "new"]


def test_recover_never_committed_file_is_removed(writer: WarcWriter) -> None:
    writer.append([member()])

    again = WarcWriter(writer.folder, info=INFO)
    recovery = again.recover({})

    assert list(recovery.cut_bytes) == [1]
    assert list(writer.folder.iterdir()) == []
    again.append([member("new")])
    assert texts(again, 1) == ["new"]


def test_recover_shorter_than_committed_tells_which_records_are_lost(writer: WarcWriter) -> None:
    first, second = writer.append([member("a"), member("b")])
    committed = dict(writer.lengths)
    os.truncate(writer.path(1), second.offset + 10)

    again = WarcWriter(writer.folder, info=INFO)
    recovery = again.recover(committed)

    assert recovery.short == {1: second.offset}
    assert not recovery.is_lost(first)
    assert recovery.is_lost(second)
    assert not recovery.is_lost(WarcLocation(2, 0, 10))


def test_recover_shorter_than_committed_goes_on_in_a_new_file(writer: WarcWriter) -> None:
    second = writer.append([member("a"), member("b")])[1]
    committed = dict(writer.lengths)
    os.truncate(writer.path(1), second.offset)

    again = WarcWriter(writer.folder, info=INFO)
    again.recover(committed)

    assert again.append([member("new")])[0].file_number == 2


def test_recover_zeros_where_the_end_was_is_told_as_short(writer: WarcWriter) -> None:
    second = writer.append([member("a"), member("b")])[1]
    committed = dict(writer.lengths)
    with writer.path(1).open("r+b") as file:
        file.seek(second.offset)
        file.write(b"\0" * second.length)

    assert WarcWriter(writer.folder, info=INFO).recover(committed).short == {1: second.offset}


@pytest.mark.parametrize("before", [0, 3 * TAIL_BYTES])
def test_recover_flipped_bit_in_the_last_part_costs_that_record_alone(writer: WarcWriter, before: int) -> None:
    writer.max_bytes = 10 * TAIL_BYTES
    writer.append([gzip.compress(random.Random(1).randbytes(before))])
    kept, damaged, last = writer.append([member("kept"), member("damaged"), member("last")])
    committed = dict(writer.lengths)
    data = bytearray(writer.path(1).read_bytes())
    data[damaged.offset + damaged.length // 2] ^= 4
    writer.path(1).write_bytes(data)

    goes_on = WarcWriter(writer.folder, info=INFO)
    recovery = goes_on.recover(committed)

    assert recovery.damaged == {1: [(damaged.offset, last.offset)]}
    assert [recovery.is_lost(place) for place in (kept, damaged, last)] == [False, True, False]
    assert goes_on.append([member("next")])[0].file_number == 2


def test_recover_last_part_within_a_large_record_is_whole(writer: WarcWriter) -> None:
    writer.max_bytes = 10 * TAIL_BYTES
    writer.append([gzip.compress(random.Random(1).randbytes(2 * TAIL_BYTES))])

    assert not WarcWriter(writer.folder, info=INFO).recover(dict(writer.lengths)).has_losses


def test_recover_missing_file_is_short_by_all(writer: WarcWriter) -> None:
    place = writer.append([member()])[0]
    committed = dict(writer.lengths)
    writer.path(1).unlink()

    recovery = WarcWriter(writer.folder, info=INFO).recover(committed)

    assert recovery.short == {1: 0}
    assert recovery.is_lost(place)


def test_recover_leaves_other_files_alone(writer: WarcWriter) -> None:
    (writer.folder / "notes.txt").write_text("mine")
    (writer.folder / "other-000001.warc.gz").write_bytes(b"theirs")

    WarcWriter(writer.folder, info=INFO).recover({})

    assert (writer.folder / "notes.txt").read_text() == "mine"
    assert (writer.folder / "other-000001.warc.gz").read_bytes() == b"theirs"


@pytest.mark.parametrize("written_first", [0, 30])
def test_append_disk_full_half_way_leaves_the_file_as_it_was_and_works_later(
    writer: WarcWriter, monkeypatch: pytest.MonkeyPatch, written_first: int
) -> None:
    writer.append([member("a")])
    size, real = writer.path(1).stat().st_size, os.pwrite

    def full(file: int, data: memoryview, at: int) -> int:
        if written_first and len(data) > written_first and at == size:
            return real(file, data[:written_first], at)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(StoreError, match="no space left on the disk of"):
        writer.append([member("b"), member("c")])
    assert writer.path(1).stat().st_size == size

    monkeypatch.setattr(os, "pwrite", real)
    writer.append([member("b")])
    assert texts(writer, 1) == ["a", "b"]


def test_append_after_cutting_back_failed_too_cuts_first(writer: WarcWriter, monkeypatch: pytest.MonkeyPatch) -> None:
    writer.append([member("a")])
    real_write, real_cut = os.pwrite, os.ftruncate
    calls = iter([True])

    def full(file: int, data: memoryview, at: int) -> int:
        if next(calls, False):
            return real_write(file, data[:20], at)
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    def stuck(file: int, size: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "pwrite", full)
    monkeypatch.setattr(os, "ftruncate", stuck)
    with pytest.raises(StoreError, match="input/output error"):
        writer.append([member("lost")])
    with pytest.raises(StoreError, match="input/output error"):
        writer.append([member("lost")])

    monkeypatch.setattr(os, "pwrite", real_write)
    monkeypatch.setattr(os, "ftruncate", real_cut)
    writer.append([member("b")])
    assert texts(writer, 1) == ["a", "b"]


def test_append_folder_gone_says_so(writer: WarcWriter) -> None:
    writer.folder.rmdir()

    with pytest.raises(StoreError, match="writing the archive failed"):
        writer.append([member()])


def test_sync_before_and_after_an_append_keeps_the_records(writer: WarcWriter) -> None:
    writer.sync()
    for number in range(20):
        writer.append([member(str(number))])
        writer.sync()

    assert len(list(writer.folder.iterdir())) > 1


@settings(max_examples=40, deadline=None)
@given(steps=st.lists(st.sampled_from(["append", "commit", "crash", "torn crash"]), max_size=25))
def test_any_order_of_appends_commits_and_crashes_keeps_exactly_what_was_committed(
    tmp_path_factory: pytest.TempPathFactory, steps: list[str]
) -> None:
    folder = tmp_path_factory.mktemp("warc")
    writer = WarcWriter(folder, info=INFO, max_bytes=800)
    writer.recover({})
    lengths: dict[int, int] = {}
    committed: list[str] = []
    waiting: list[str] = []
    for number, step in enumerate([*steps, "crash"]):
        if step == "append":
            writer.append([member(f"{number}a"), member(f"{number}b")])
            waiting += [f"{number}a", f"{number}b"]
        elif step == "commit":
            lengths |= writer.lengths
            writer.on_committed()
            committed, waiting = committed + waiting, []
        else:
            if step == "torn crash" and writer.lengths:
                last = writer.path(max(writer.lengths))
                os.truncate(last, max(last.stat().st_size - 5, lengths.get(max(writer.lengths), 0)))
            writer.close()
            writer = WarcWriter(folder, info=INFO, max_bytes=800)
            assert writer.recover(lengths).short == {}
            waiting = []
            assert [text for file in sorted(lengths) for text in texts(writer, file)] == committed
    writer.close()
