"""The texts that a crawl hands to its index: used instead of the archive, and only where they are the page's."""

import io
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from lycosa.search import text_log
from lycosa.search.follower import IndexFollower
from lycosa.search.indexer import Indexer
from lycosa.search.text_log import TextLog, TextLogReader
from lycosa.simweb import SimSettings, SimWeb
from lycosa.store import Batch, CollectionStore, PageRow
from lycosa.web import MAIN_TEXT_VERSION, Readable
from lycosa.web.kernel import native
from tests.crawl.memory_crawl import crawl, front
from tests.search.shop import index_problems


def row(number: int, digest: bytes = b"d" * 16) -> PageRow:
    return PageRow(200, 1.0, digest=digest, file_num=number)


def logged(log: TextLog, *numbers: int) -> None:
    for number in numbers:
        log.add(row(number), Readable.of("t", (), f"text {number}"))
    log.before_commit(Batch(), is_last=False)


def sequences(*values: int) -> Callable[[], int]:
    return iter(values).__next__


def texts(reader: TextLogReader, *numbers: int) -> list[str]:
    return [found.text for number in numbers if (found := reader.text(number, b"d" * 16))]


async def nothing(_: IndexFollower) -> None:
    return


def test_index_beside_a_crawl_reads_nothing_from_the_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if native() is None:
        pytest.skip("the twin's texts are read from the archive")
    web = SimWeb(SimSettings(hosts=3, pages=150, seed=5))
    monkeypatch.setattr(IndexFollower, "start", lambda _: None)
    monkeypatch.setattr(IndexFollower, "finish", nothing)  # the log stays
    crawl(web, tmp_path / "c", front(web), delay_s=0.0, index=True)
    read: list[str] = []
    monkeypatch.setattr("lycosa.search.texts.read_text", lambda _, url, *rest, **more: read.append(url))

    with CollectionStore.open(tmp_path / "c", read_only=True) as collection:
        indexer = Indexer(collection, follows=True)
        indexer.catch_up()
        indexer.update_anchors_and_ranks()
        indexer.close()

    assert read == []
    assert index_problems(tmp_path / "c") == []


def test_text_is_found_for_the_document_it_was_made_of(tmp_path: Path) -> None:
    log, reader = TextLog(tmp_path, sequences(2)), TextLogReader(tmp_path)
    logged(log, 1, 2)

    reader.read(0, 2)

    assert texts(reader, 1, 2, 3) == ["text 1", "text 2"]
    assert reader.text(1, b"other") is None


def test_reader_goes_no_further_than_it_is_asked_and_forgets_what_is_done(tmp_path: Path) -> None:
    log, reader = TextLog(tmp_path, sequences(1, 2, 3)), TextLogReader(tmp_path)
    for number in (1, 2, 3):
        logged(log, number)

    reader.read(0, 2)
    assert texts(reader, 1, 2, 3) == ["text 1", "text 2"]

    reader.read(2, 3)
    assert texts(reader, 1, 2, 3) == ["text 3"]


def test_what_is_held_counts_no_frame_that_was_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader that is never quite done with the last frame, as one that lags behind, has room for the next ones."""
    log, reader = TextLog(tmp_path, sequences(*range(2, 40, 2))), TextLogReader(tmp_path)
    for number in range(2, 40, 2):
        logged(log, number - 1, number)
    monkeypatch.setattr(text_log, "HELD_BYTES", 200)  # at most three frames

    for until in range(1, 38, 2):
        reader.read(until - 2, until)
        assert texts(reader, until - 1, until) == [f"text {number}" for number in (until - 1, until) if number]


def test_half_a_frame_is_read_when_all_of_it_is_there(tmp_path: Path) -> None:
    log, reader = TextLog(tmp_path, sequences(1, 2)), TextLogReader(tmp_path)
    logged(log, 1)
    file = tmp_path / text_log.FOLDER / "00000001"
    whole = file.read_bytes()
    file.write_bytes(whole[:-3])
    reader.read(0, 1)
    assert texts(reader, 1) == []

    file.write_bytes(whole)
    reader.read(0, 1)

    assert texts(reader, 1) == ["text 1"]


def test_files_that_were_read_are_deleted_and_too_many_unread_are_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_log, "FILE_BYTES", 1)
    monkeypatch.setattr(text_log, "FILES_MOST", 2)
    log, reader = TextLog(tmp_path, sequences(1, 2, 3, 4)), TextLogReader(tmp_path)
    for number in (1, 2, 3):
        logged(log, number)
    reader.read(0, 3)
    assert texts(reader, 1, 2, 3) == ["text 1", "text 2"]
    assert [path.name for path in (tmp_path / text_log.FOLDER).iterdir()] == ["00000002"]

    logged(log, 4)
    reader.read(3, 4)

    assert texts(reader, 4) == ["text 4"]


@pytest.mark.parametrize("version", ["MAIN_TEXT_VERSION", "FRAME_VERSION"])
def test_log_of_another_version_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    log = TextLog(tmp_path, sequences(1))
    logged(log, 1)
    monkeypatch.setattr(text_log, version, getattr(text_log, version) + 1)
    reader = TextLogReader(tmp_path)

    reader.read(0, 1)

    assert texts(reader, 1) == []


def test_log_of_an_earlier_crawl_that_wrote_texts_as_str_is_not_read(tmp_path: Path) -> None:
    frame = msgspec.msgpack.encode((1, [(1, b"d" * 16, ("t", (), "text 1", "", ""))]))
    (tmp_path / text_log.FOLDER).mkdir()
    versions = MAIN_TEXT_VERSION.to_bytes(4)  # before frames had a version of their own
    (tmp_path / text_log.FOLDER / f"{1:08}").write_bytes(versions + len(frame).to_bytes(4) + frame)
    reader = TextLogReader(tmp_path)

    reader.read(0, 1)

    assert texts(reader, 1) == []


def test_file_that_is_about_to_be_written_is_read_later(tmp_path: Path) -> None:
    log, reader = TextLog(tmp_path, sequences(1)), TextLogReader(tmp_path)
    (tmp_path / text_log.FOLDER).mkdir()
    first = tmp_path / text_log.FOLDER / f"{1:08}"
    first.touch()
    reader.read(0, 1)
    logged(log, 7)
    reader.read(0, 1)

    assert texts(reader, 7) == ["text 7"]


def test_frame_that_was_written_in_part_ends_the_log(tmp_path: Path) -> None:
    class Full(io.BytesIO):
        def write(self, data: object) -> int:
            return 3

    log = TextLog(tmp_path, sequences(1, 2))
    logged(log, 1)
    log._file = Full()
    logged(log, 2)

    assert not (tmp_path / text_log.FOLDER).exists()


def test_disk_that_refuses_ends_the_log_and_nothing_else(tmp_path: Path) -> None:
    log = TextLog(tmp_path, sequences(1, 2))
    (tmp_path / text_log.FOLDER).write_bytes(b"")  # a file where the folder would be

    logged(log, 1)
    logged(log, 2)

    assert not TextLogReader(tmp_path)._next()
