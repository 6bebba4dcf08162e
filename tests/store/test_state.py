"""The state: what is written comes back, in order, whole; damage is told; readers see the writer's work."""

import contextlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rocksdict import Options, Rdict

from lycosa.errors import StoreError
from lycosa.records import Family
from lycosa.store.state import Batch, State
from tests.effort import cpu_s


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[State]:
    monkeypatch.setattr("lycosa.store.state._WALK_KEYS", 3)  # so that few rows make many pieces
    with State.open(tmp_path / "state") as opened:
        yield opened


def written(state: State, rows: dict[bytes, bytes], family: Family = Family.URL) -> None:
    batch = Batch()
    for key, value in rows.items():
        batch.put(family, key, value)
    state.write(batch)


def test_write_then_get_returns_the_value_of_that_family_only(state: State) -> None:
    batch = Batch()
    batch.put(Family.URL, b"k", b"url")
    batch.put(Family.PAGE, b"k", b"page")

    state.write(batch)

    assert state.get(Family.URL, b"k") == b"url"
    assert state.get(Family.PAGE, b"k") == b"page"
    assert state.get(Family.QUEUE, b"k") is None


def test_get_many_mixed_keys_answers_in_the_order_asked(state: State) -> None:
    written(state, {b"a": b"1", b"c": b""})

    assert state.get_many(Family.URL, [b"c", b"b", b"a"]) == [b"", None, b"1"]
    assert state.get_many(Family.URL, []) == []


def test_batch_written_twice_has_the_same_effect_as_once(state: State) -> None:
    batch = Batch()
    batch.put(Family.URL, b"a", b"1")
    batch.delete(Family.URL, b"b")
    written(state, {b"b": b"0"})

    state.write(batch)
    state.write(batch)

    assert state.scan(Family.URL, limit=10) == [(b"a", b"1")]


def test_delete_range_leaves_its_end(state: State) -> None:
    written(state, {b"a": b"", b"b": b"", b"c": b""})
    batch = Batch()
    batch.delete_range(Family.URL, b"a", b"c")

    state.write(batch)

    assert state.scan(Family.URL, limit=10) == [(b"c", b"")]


KEYS = st.binary(max_size=3)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
@given(rows=st.dictionaries(KEYS, st.binary(max_size=2), max_size=30), start=KEYS, end=st.none() | KEYS, data=st.data())
def test_scan_any_rows_and_bounds_agrees_with_a_sorted_dict(
    state: State, rows: dict[bytes, bytes], start: bytes, end: bytes | None, data: st.DataObject
) -> None:
    clear = Batch()
    for key, _ in list(state.walk(Family.LINK)):
        clear.delete(Family.LINK, key)
    state.write(clear)
    written(state, rows, Family.LINK)
    limit = data.draw(st.integers(0, 31))

    expected = [(k, v) for k, v in sorted(rows.items()) if k >= start and (end is None or k < end)]

    assert state.scan(Family.LINK, start, end, limit=limit) == expected[:limit]
    assert list(state.walk(Family.LINK, start, end)) == expected


def test_walk_more_rows_than_one_piece_gives_each_once(state: State) -> None:
    rows = {b"k" + b"\0" * n: b"" for n in range(10)}
    written(state, rows)

    assert [key for key, _ in state.walk(Family.URL)] == sorted(rows)


def test_reopen_after_close_keeps_everything(tmp_path: Path) -> None:
    with State.open(tmp_path / "state") as state:
        written(state, {b"a": b"1"})
    with State.open(tmp_path / "state") as state:
        assert state.get(Family.URL, b"a") == b"1"
        assert state.repaired == ""


def test_reopen_in_place_keeps_everything_and_accepts_old_batches(state: State) -> None:
    batch = Batch()
    batch.put(Family.URL, b"a", b"1")

    state.reopen()
    state.write(batch)
    state.reopen()

    assert state.get(Family.URL, b"a") == b"1"


@pytest.mark.parametrize("use", ["get", "scan", "write"])
def test_closed_state_any_use_says_that_it_is_closed(tmp_path: Path, use: str) -> None:
    state = State.open(tmp_path / "state")
    state.close()
    uses = {
        "get": lambda: state.get(Family.URL, b"a"),
        "scan": lambda: state.scan(Family.URL, limit=1),
        "write": lambda: state.write(Batch()),
    }

    with pytest.raises(StoreError, match="is closed"):
        uses[use]()


def test_write_key_that_is_not_bytes_is_the_callers_mistake(state: State) -> None:
    batch = Batch()
    batch.put(Family.URL, "text", b"")  # type: ignore[arg-type]

    with pytest.raises((TypeError, KeyError)):
        state.write(batch)


def test_second_writer_of_a_folder_is_refused(state: State) -> None:
    with pytest.raises(StoreError, match="opening the state failed"):
        State.open(state.path)


def test_reader_beside_writer_sees_fresh_rows_after_refresh(state: State) -> None:
    written(state, {b"a": b"1"})
    with State.open_reader(state.path) as reader:
        before = reader.get(Family.URL, b"a")
        written(state, {b"b": b"2"})
        state.compact()
        written(state, {b"c": b"3"})
        unseen = reader.get(Family.URL, b"b")
        reader.refresh()

        assert before == b"1"
        assert unseen is None
        assert reader.get_many(Family.URL, [b"a", b"b", b"c"]) == [b"1", b"2", b"3"]


def test_reader_gets_what_was_written_just_before_the_log_was_flushed(state: State, tmp_path: Path) -> None:
    """A secondary instance that only catches up has the row of its last look before that of the table."""
    written(state, {b"a": b"1"})
    with State.open_reader(state.path) as reader:
        written(state, {b"a": b"2"})
        reader.refresh()
        for value in (b"3", b"4"):
            written(state, {b"a": value})
            state.compact()
            assert reader.refresh()
            assert reader.get(Family.URL, b"a") == value
            assert reader.scan(Family.URL, limit=9) == [(b"a", value)]
        written(state, {b"a": b"5"})
        state.close()
        assert reader.refresh()
        assert reader.get(Family.URL, b"a") == b"5"
        assert not reader.refresh()


def test_reader_opened_and_closed_leaves_no_file_behind(
    state: State, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    written(state, {b"a": b"1"})
    files = sorted(path.name for path in state.path.iterdir())

    with State.open_reader(state.path) as reader:
        assert reader.get(Family.URL, b"a") == b"1"
        assert list(temporary.iterdir()) == []

    assert sorted(path.name for path in state.path.iterdir()) == files


def test_reader_write_is_refused(state: State) -> None:
    batch = Batch()
    batch.put(Family.URL, b"a", b"1")
    with State.open_reader(state.path) as reader, pytest.raises(StoreError, match="writing the state failed"):
        reader.write(batch)


def test_reader_of_a_state_without_a_newer_family_completes_it(tmp_path: Path) -> None:
    with State.open(tmp_path / "state") as state:
        written(state, {b"k": b"v"})
    older = Rdict(str(tmp_path / "state"), Options(raw_mode=True), {str(f): Options(raw_mode=True) for f in Family})
    older.drop_column_family(Family.DUE)
    with pytest.raises(StoreError, match="earlier version"):
        State.open_reader(tmp_path / "state")
    older.close()
    with State.open_reader(tmp_path / "state") as reader:
        assert (reader.get(Family.URL, b"k"), reader.get(Family.DUE, b"k")) == (b"v", None)


def test_reader_where_no_state_is_makes_none(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="holds no state"):
        State.open_reader(tmp_path / "none")
    with pytest.raises(StoreError, match="holds no state"):
        State.open(tmp_path / "none", may_make=False)
    assert not (tmp_path / "none").exists()


def test_files_of_a_state_that_is_not_whole_are_never_replaced_by_an_empty_one(tmp_path: Path) -> None:
    state = State.open(tmp_path / "state")
    batch = Batch()
    batch.put(Family.URL, b"k", b"v")
    state.write(batch)
    (tmp_path / "state" / "CURRENT").rename(tmp_path / "CURRENT")
    with pytest.raises(StoreError, match="holds no state"):
        state.reopen()
    before = {file.name: file.read_bytes() for file in (tmp_path / "state").iterdir()}

    with pytest.raises(StoreError, match="holds no state"):
        State.open(tmp_path / "state")

    assert {file.name: file.read_bytes() for file in (tmp_path / "state").iterdir()} == before
    (tmp_path / "CURRENT").rename(tmp_path / "state" / "CURRENT")
    with State.open(tmp_path / "state") as state:
        assert state.get(Family.URL, b"k") == b"v"


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """A state whose process died after a hundred batches."""
    folder = tmp_path / "killed"
    child = os.fork()
    if not child:
        try:
            state = State.open(folder)
            for number in range(100):
                written(state, {b"%03d" % number: os.urandom(200)})
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    return folder


def log_of(folder: Path) -> Path:
    return max(folder.glob("*.log"), key=lambda path: path.stat().st_size)


def test_open_after_a_kill_finds_every_batch(killed: Path) -> None:
    with State.open(killed) as state:
        assert len(state.scan(Family.URL, limit=200)) == 100
        assert state.repaired == ""


def test_open_log_cut_in_its_last_record_keeps_the_others_and_says_so(killed: Path) -> None:
    log = log_of(killed)
    os.truncate(log, log.stat().st_size - 50)

    with State.open(killed) as state:
        assert len(state.scan(Family.URL, limit=200)) == 99
        assert "truncated" in state.repaired


def test_open_log_damaged_in_the_middle_keeps_what_is_before_and_says_so(killed: Path) -> None:
    log = log_of(killed)
    with log.open("r+b") as file:
        file.seek(log.stat().st_size // 2)
        file.write(b"\xff" * 100)

    with State.open(killed) as state:
        keys = [key for key, _ in state.walk(Family.URL)]
        assert keys == [b"%03d" % number for number in range(len(keys))]
        assert 30 < len(keys) < 60
        assert state.repaired


def test_open_manifest_damaged_says_in_one_sentence(killed: Path) -> None:
    manifest = next(killed.glob("MANIFEST-*"))
    manifest.write_bytes(b"\xff" * manifest.stat().st_size)

    with pytest.raises(StoreError, match=r"opening the state failed: .*is damaged") as caught:
        State.open(killed)
    assert "\n" not in str(caught.value)


def test_checkpoint_opens_as_a_state_of_that_moment(state: State, tmp_path: Path) -> None:
    written(state, {b"a": b"1"})
    state.checkpoint(tmp_path / "copy")
    written(state, {b"b": b"2"})

    with State.open(tmp_path / "copy") as copy:
        assert copy.scan(Family.URL, limit=10) == [(b"a", b"1")]


def test_checkpoint_where_something_is_says_so(state: State, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="copying the state failed"):
        state.checkpoint(tmp_path)


def table_bytes(state: State) -> int:
    found = 0
    for table in state.path.glob("*.sst"):
        with contextlib.suppress(FileNotFoundError):  # RocksDB deletes what is obsolete by the way
            found += table.stat().st_size
    return found


def test_compact_after_deleting_gives_the_space_back(state: State) -> None:
    written(state, {b"%04d" % n: os.urandom(500) for n in range(2000)})
    state.compact()
    full = table_bytes(state)
    batch = Batch()
    batch.delete_range(Family.URL, b"0", b"9")
    state.write(batch)
    state.compact()

    assert full > 1_000_000
    until = time.monotonic() + 60
    while (left := table_bytes(state)) >= 10_000:
        assert time.monotonic() < until, left
        time.sleep(0.02)


@pytest.mark.slow
def test_scan_queue_emptied_from_its_front_stays_quick(state: State) -> None:
    for start in range(0, 300_000, 5000):
        written(state, {b"host\0%08d" % n: b"/path" for n in range(start, start + 5000)}, Family.QUEUE)
    for start in range(0, 299_000, 5000):
        batch = Batch()
        for n in range(start, min(start + 5000, 299_000)):
            batch.delete(Family.QUEUE, b"host\0%08d" % n)
        state.write(batch)

    def rows_from(number: int) -> list[tuple[bytes, bytes]]:
        return state.scan(Family.QUEUE, b"host\0%08d" % number, b"host\1", limit=100)

    over_deleted_s = min(cpu_s(lambda: rows_from(0))[0] for _ in range(3))  # all that was deleted is stepped over
    scan_s = min(cpu_s(lambda: rows_from(299_000))[0] for _ in range(3))

    rows = rows_from(299_000)
    assert rows[0][0] == b"host\0%08d" % 299_000
    assert len(rows) == 100
    assert scan_s < over_deleted_s / 10


def test_copied_folder_opens_elsewhere(state: State, tmp_path: Path) -> None:
    written(state, {b"a": b"1"})
    state.close()
    shutil.copytree(state.path, tmp_path / "elsewhere")

    with State.open(tmp_path / "elsewhere") as copy:
        assert copy.get(Family.URL, b"a") == b"1"


def test_cache_grows_with_the_number_of_urls_within_bounds(state: State, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lycosa.store.options.CACHE_LEAST_BYTES", 1_000)
    monkeypatch.setattr("lycosa.store.options.CACHE_MOST_BYTES", 40_000)
    monkeypatch.setattr("lycosa.store.state._FIT_CACHE_WRITES", 1)

    sizes = []
    for urls in (10, 9_990, 10_000):
        written(state, {b"%d-%d" % (urls, number): b"" for number in range(urls)})
        sizes.append(state.cache_most_bytes)
    state.reopen()

    assert sizes == [1_000, 30_000, 40_000]
    assert state.cache_most_bytes == 40_000
