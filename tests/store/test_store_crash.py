"""Killed at any instant: what was acknowledged is there, the archive is whole, and state and archive agree."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from victim import WARC_BYTES, body_of
from warcio.checker import Checker

from lycosa.records import Family
from lycosa.store import Batch, CollectionStore, WarcLocation, is_collection
from lycosa.store.warc_read import WarcReader
from tests.store.warc_digests import payload_digest_agrees

KILLS = 30
MOST_KILLS = 8 * KILLS
SOURCE = Path(__file__).parents[2] / "src"


@contextmanager
def gunman(work: str) -> Iterator[Callable[..., int]]:
    """A function that lets a child do `work` in a folder for some seconds, and tells what it last acknowledged."""
    victim = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("victim.py")), work],
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,  # so that its children can be ended with it
    )
    assert victim.stdin is not None
    assert victim.stdout is not None
    stdin, stdout = victim.stdin, victim.stdout

    def shoot(folder: Path, after_s: float, meanwhile: Callable[[], None] = lambda: None) -> int:
        stdin.write(f"{folder} {after_s}\n")
        stdin.flush()
        meanwhile()
        return int(stdout.readline())

    try:
        yield shoot
    finally:
        os.killpg(victim.pid, signal.SIGKILL)
        victim.communicate()


def archived(folder: Path) -> dict[int, bytes]:
    """Number -> body of every response in the archive; every file must be whole."""
    bodies: dict[int, bytes] = {}
    for path in sorted((folder / "warc").iterdir()):
        with WarcReader(path) as reader:
            for record in reader:
                assert record.type != "response" or payload_digest_agrees(record)
                if record.type == "response":
                    number = int((record.url or "").rpartition("/")[2])
                    assert number not in bodies, "a page is archived twice"
                    bodies[number] = record.http()[1]
        assert not reader.problems
    return bodies


def check(folder: Path, acknowledged: int) -> tuple[int, bool]:
    """Open after a kill and compare everything; returns the number of pages, and whether the archive had to be cut."""
    with CollectionStore.open(folder, warc_bytes=WARC_BYTES) as collection:
        rows = {int.from_bytes(key): WarcLocation.unpack(value) for key, value in collection.state.walk(Family.PAGE)}
        assert collection.state.repaired == "" or "truncated" in collection.state.repaired
        assert collection.recovery.short == {}
        assert list(rows) == list(range(len(rows))), "a page is missing"
        assert len(rows) >= acknowledged, "an acknowledged page is lost"
        assert sum(1 for _ in collection.state.walk(Family.URL)) == len(rows), "families differ"
        bodies = archived(folder)
        assert bodies.keys() == rows.keys(), "state and archive differ"
        assert all(body == body_of(number) for number, body in bodies.items())
        for number in random.sample(sorted(rows), min(20, len(rows))):
            assert collection.record(rows[number]).http()[1] == body_of(number)
    return len(rows), bool(collection.recovery.cut_bytes)


@pytest.mark.slow
def test_collection_killed_again_and_again_loses_nothing_acknowledged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    choose = random.Random(20)
    folder = tmp_path / "crawl"
    pages = acknowledged = cuts = 0
    with gunman("fill") as shoot:
        for kill in range(MOST_KILLS):
            if kill >= KILLS and pages > 100 and cuts:
                break
            slower = 1 + kill // KILLS  # on a busy machine a child needs longer to get anywhere
            acknowledged = max(acknowledged, shoot(folder, slower * choose.uniform(0.02, 0.08)))
            if is_collection(folder):
                pages, was_cut = check(folder, acknowledged)
                cuts += was_cut
    assert pages > 100
    assert cuts, "no kill came between an append and its commit"

    class Command:
        inputs = tuple(str(path) for path in sorted((folder / "warc").iterdir()))
        verbose = False

    assert len(Command.inputs) > 1
    assert Checker(Command).process_all() == 0
    assert capsys.readouterr().out == ""


@pytest.mark.slow
def test_create_killed_at_any_moment_is_finished_by_the_same_call(tmp_path: Path) -> None:
    unfinished = 0
    batch = Batch()
    batch.put(Family.PAGE, b"k", b"v")
    with gunman("create") as shoot:
        for attempt in range(40):
            folder = tmp_path / str(attempt)
            shoot(folder, 0.001 * attempt)
            unfinished += not is_collection(folder)
            with CollectionStore.create(folder) as collection:
                collection.commit(batch)
            with CollectionStore.open(folder) as collection:
                assert collection.state.get(Family.PAGE, b"k") == b"v"
    assert unfinished, "no kill came early enough to test anything"


@pytest.mark.slow
def test_reader_beside_a_busy_writer_sees_whole_batches_only(tmp_path: Path) -> None:
    folder = tmp_path / "crawl"
    looks = 0

    def look() -> None:
        nonlocal looks
        end_s = time.monotonic() + 4
        while time.monotonic() < end_s:
            if not is_collection(folder):
                continue
            with CollectionStore.open(folder, read_only=True) as reader:
                for _ in range(2):
                    urls, queue = (list(reader.state.walk(family)) for family in (Family.URL, Family.QUEUE))
                    assert urls == queue
                    looks += bool(urls)
                    reader.state.refresh()

    with gunman("churn") as shoot:
        for _ in range(5):  # on a busy machine both get to little in this time
            shoot(folder, 5.0, look)
            if looks > 3:
                break
    assert looks > 3
