"""The collection folder: made, opened, refused, locked, repaired; and the commit that joins its parts."""

import os
import pickle
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from lycosa.errors import SettingsError, StoreError
from lycosa.records import Family, Request, Response
from lycosa.store import Batch, CollectionStore, HttpExchange, State, is_collection, response_exchange


def row(key: bytes, value: bytes = b"") -> Batch:
    batch = Batch()
    batch.put(Family.PAGE, key, value)
    return batch


def one_sentence(error: pytest.ExceptionInfo[BaseException]) -> bool:
    text = str(error.value)
    return "\n" not in text and pickle.loads(pickle.dumps(error.value)).args == error.value.args


def test_create_makes_the_folder_and_opens_it(tmp_path: Path) -> None:
    with CollectionStore.create(tmp_path / "a" / "crawl") as collection:
        collection.commit(row(b"k", b"v"))

    assert is_collection(tmp_path / "a" / "crawl")
    names = sorted(path.name for path in (tmp_path / "a" / "crawl").iterdir())
    assert names == ["lycosa.format", "lycosa.lock", "state", "warc"]
    with CollectionStore.open(tmp_path / "a" / "crawl") as collection:
        assert collection.state.get(Family.PAGE, b"k") == b"v"


def test_create_where_one_is_opens_it(tmp_path: Path) -> None:
    with CollectionStore.create(tmp_path) as collection:
        collection.commit(row(b"k", b"v"))
    with CollectionStore.create(tmp_path) as collection:
        assert collection.state.get(Family.PAGE, b"k") == b"v"


def test_create_on_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")

    with pytest.raises(SettingsError, match="is a file") as error:
        CollectionStore.create(tmp_path / "file")
    assert one_sentence(error)
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize("names", [["notes.txt"], ["notes.txt", "lycosa.lock"], ["state"]])
def test_create_in_a_folder_of_something_else_is_refused_and_nothing_touched(tmp_path: Path, names: list[str]) -> None:
    for name in names:
        (tmp_path / name).write_text("mine")

    with pytest.raises(SettingsError, match="not a collection and not empty") as error:
        CollectionStore.create(tmp_path)
    assert one_sentence(error)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == dict.fromkeys(names, "mine")


@pytest.mark.parametrize("name", [".lycosa.format.new", "lycosa.format.new"])
def test_create_goes_on_where_it_was_killed_by_this_version_or_the_one_before(tmp_path: Path, name: str) -> None:
    (tmp_path / "lycosa.lock").touch()
    (tmp_path / name).write_text("lycosa coll")
    CollectionStore.create(tmp_path).close()
    CollectionStore.open(tmp_path).close()


@pytest.mark.parametrize("read_only", [False, True])
def test_open_where_none_is_says_so_and_makes_nothing(tmp_path: Path, read_only: bool) -> None:
    with pytest.raises(SettingsError, match="there is no collection"):
        CollectionStore.open(tmp_path / "none", read_only=read_only)
    with pytest.raises(SettingsError, match="is not a collection"):
        CollectionStore.open(tmp_path, read_only=read_only)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words", ["lycosa collection, format 99\n", "", "\x00\xff"])
def test_open_marker_of_another_version_is_refused(tmp_path: Path, words: str) -> None:
    CollectionStore.create(tmp_path).close()
    (tmp_path / "lycosa.format").write_text(words)

    for use in (CollectionStore.create, CollectionStore.open):
        with pytest.raises(SettingsError, match="made by another version") as error:
            use(tmp_path)
        assert one_sentence(error)


@pytest.mark.parametrize("read_only", [False, True])
def test_open_state_of_another_version_is_refused_and_unlocked(tmp_path: Path, read_only: bool) -> None:
    CollectionStore.create(tmp_path).close()
    with State.open(tmp_path / "state") as state:
        batch = Batch()
        batch.put(Family.META, b"format", b"99")
        state.write(batch)

    with pytest.raises(SettingsError, match="made by another version"):
        CollectionStore.open(tmp_path, read_only=read_only)
    with State.open(tmp_path / "state") as state:
        assert state.get(Family.META, b"format") == b"99"


def test_open_in_use_names_the_process(tmp_path: Path) -> None:
    script = "import sys,time; from pathlib import Path; from lycosa.store import CollectionStore as Collection\n"
    script += "c = Collection.create(Path(sys.argv[1])); print('ready', flush=True); sys.stdin.read()"
    source = str(Path(__file__).parents[2] / "src")
    child = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": source},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    assert child.stdin is not None
    try:
        child.stdout.readline()
        for use in (CollectionStore.create, CollectionStore.open):
            with pytest.raises(SettingsError, match=f"in use by process {child.pid}") as error:
                use(tmp_path)
            assert one_sentence(error)
        CollectionStore.open(tmp_path, read_only=True).close()
    finally:
        child.kill()
        child.communicate()
    CollectionStore.open(tmp_path).close()


def test_open_for_reading_sees_commits_beside_the_writer_and_cannot_write(
    tmp_path: Path, request_sent: Request, response_got: Response
) -> None:
    with CollectionStore.create(tmp_path) as writer, CollectionStore.open(tmp_path, read_only=True) as reader:
        place = writer.warc.append(response_exchange(request_sent, response_got, fetched_s=1.0).members)[
            HttpExchange.RESPONSE
        ]
        writer.commit(row(b"k", place.pack()))
        reader.state.refresh()

        assert reader.state.get(Family.PAGE, b"k") == place.pack()
        assert reader.record(place).http()[1] == response_got.body
        with pytest.raises(StoreError, match="for reading only"):
            reader.commit(Batch())


def test_open_after_an_append_without_commit_cuts_the_archive(
    tmp_path: Path, request_sent: Request, response_got: Response
) -> None:
    members = response_exchange(request_sent, response_got, fetched_s=1.0).members
    with CollectionStore.create(tmp_path) as collection:
        kept = collection.warc.append(members)
        collection.commit(row(b"k"))
        lost = collection.warc.append(members)

    with CollectionStore.open(tmp_path) as collection:
        assert collection.recovery.cut_bytes == {1: sum(len(member) for member in members)}
        assert collection.record(kept[1]).type == "response"
        with pytest.raises(StoreError, match="no whole record"):
            collection.record(lost[1])


def test_open_archive_shorter_than_committed_is_told_until_it_is_settled(
    tmp_path: Path, request_sent: Request, response_got: Response
) -> None:
    with CollectionStore.create(tmp_path) as collection:
        places = collection.warc.append(response_exchange(request_sent, response_got, fetched_s=1.0).members)
        collection.commit(row(b"k"))
        path = collection.warc.path(1)
    os.truncate(path, places[1].offset + 1)

    for _ in range(2):
        with CollectionStore.open(tmp_path) as collection:
            assert collection.recovery.is_lost(places[1])
            assert not collection.recovery.is_lost(places[0])
    with CollectionStore.open(tmp_path) as collection:
        batch = Batch()
        collection.acknowledge_losses(batch)
        collection.commit(batch)
    with CollectionStore.open(tmp_path) as collection:
        assert collection.recovery.short == {}
        assert path.stat().st_size == places[1].offset


def test_commit_names_every_file_that_grew(tmp_path: Path, request_sent: Request, response_got: Response) -> None:
    members = response_exchange(request_sent, response_got, fetched_s=1.0).members
    with CollectionStore.create(tmp_path, warc_bytes=1000) as collection:
        for _ in range(6):
            collection.warc.append(members)
        collection.commit(Batch(), sync=True)
        files = sorted((tmp_path / "warc").iterdir())
        rows = collection.state.scan(Family.META, b"warc:", b"warc;", limit=100)

    assert len(files) > 2
    assert [struct.unpack(">Q", value)[0] for _, value in rows] == [path.stat().st_size for path in files]
    with CollectionStore.open(tmp_path, warc_bytes=1000) as collection:
        assert collection.recovery.cut_bytes == collection.recovery.short == {}


def test_save_settings_replaces_the_file(tmp_path: Path) -> None:
    with CollectionStore.create(tmp_path) as collection:
        collection.save_settings("a = 1\n")
        collection.save_settings("a = 2\n")

        assert collection.settings_path.read_text() == "a = 2\n"
        assert collection.log_path == tmp_path / "log.jsonl"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_create_without_permission_says_so(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)

    with pytest.raises(StoreError, match="no permission"):
        CollectionStore.create(tmp_path / "crawl")
