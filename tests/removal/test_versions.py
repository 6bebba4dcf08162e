"""Old versions that are dropped: their rows and their space; what needs their bodies keeps them."""

import shutil
from pathlib import Path
from typing import Any

import pytest

import lycosa
from lycosa.crawl import Recrawl
from lycosa.records import Family
from lycosa.recrawl import ChangeKind, ChangeRow
from lycosa.removal import VersionLimits, count_old_versions, prune_versions
from lycosa.removal.versions import _first_kept
from lycosa.store import CollectionStore
from tests.crawl.consistency import problems
from tests.crawl.small_site import FIRST, crawl_site, links
from tests.recrawl.recrawl_world import BEGIN_S, DAY_S, wall_clock
from tests.removal.killing import Killed, kill_at

VISITS = 5
TWIN = f"{FIRST}twin"


def front(day: int) -> str:
    words = " ".join(f"{'abcdefghij'[day]}{number}" for number in range(2_000))
    return f"<title>Day {day}</title>" + f"<p>{words}</p>" * (day + 1) + links("twin", "still")


def site(day: int) -> dict[str, str]:
    """A front page that is another every day; on the first day another page has the same content, and keeps it."""
    return {FIRST: front(day), TWIN: front(0), f"{FIRST}still": "<p>Always the same.</p>"}


def visited(into: Path, **settings: Any) -> Path:
    for day in range(VISITS):
        with wall_clock(BEGIN_S + day * DAY_S):
            crawl_site(into, site(day).get, recrawl=Recrawl(everything=True) if day else None, **settings)
    return into


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return visited(tmp_path_factory.mktemp("versions") / "c")


def archive_bytes(path: Path) -> int:
    return sum(file.stat().st_size for file in path.glob("warc/*.gz"))


def days_of(path: Path) -> list[str]:
    """The days that the versions of the front page say, the oldest first."""
    with lycosa.open(path) as collection:
        page = collection.get(FIRST)
        return [version.body.decode()[11:12] for version in (*page.versions, page)]


def copied(history: Path, to: Path) -> Path:
    shutil.copytree(history, to)
    return to


@pytest.mark.slow
def test_versions_over_the_number_go_and_their_space_is_freed(history: Path, tmp_path: Path) -> None:
    path = copied(history, tmp_path / "c")
    before = archive_bytes(path)
    assert days_of(path) == ["0", "1", "2", "3", "4"]
    with CollectionStore.open(path) as collection:
        assert count_old_versions(collection, VersionLimits(2)) == 3
        done = prune_versions(collection, VersionLimits(2))
    assert (done.versions, done.files) == (3, 1)
    assert days_of(path) == ["3", "4"]
    assert archive_bytes(path) < 0.75 * before
    with lycosa.open(path) as collection:
        assert collection.get(TWIN).body == site(0)[TWIN].encode()  # its body stood with a version that is gone
        assert all(page.body for page in collection)
    assert problems(path) == []
    with CollectionStore.open(path) as collection:  # nothing is left to do
        assert prune_versions(collection, VersionLimits(2)).versions == 0
        assert list(collection.state.walk(Family.META, b"dead:", b"dead;")) == []
        assert list(collection.state.walk(Family.META, b"moving:", b"moving;")) == []


def test_versions_that_stood_there_within_the_days_stay(history: Path, tmp_path: Path) -> None:
    path = copied(history, tmp_path / "c")
    with CollectionStore.open(path) as collection:
        done = prune_versions(collection, VersionLimits(days=2), now_s=BEGIN_S + (VISITS - 1) * DAY_S + 60)
    assert done.versions == 2
    assert days_of(path) == ["2", "3", "4"]


@pytest.mark.slow
def test_recrawl_drops_what_its_settings_do_not_keep_and_goes_on(tmp_path: Path) -> None:
    path = visited(tmp_path / "c", keep_versions=2)
    assert days_of(path) == ["3", "4"]
    assert problems(path) == []
    with wall_clock(BEGIN_S + 9 * DAY_S):
        crawl_site(path, site(9).get, recrawl=Recrawl(everything=True))  # the collection remembers the setting
    assert days_of(path) == ["4", "9"]


def row(kind: ChangeKind = ChangeKind.TEXT, place: bytes = b"x") -> ChangeRow:
    return ChangeRow(kind, place=place, payload_sha1=b"1")


@pytest.mark.parametrize(
    ("limits", "kept"),
    [
        (VersionLimits(1), 4),
        (VersionLimits(2), 2),
        (VersionLimits(9), 0),
        (VersionLimits(days=1), 4),
        (VersionLimits(days=4), 2),
        (VersionLimits(days=1_000), 0),
        (VersionLimits(9, 1), 4),
    ],
)
def test_history_begins_with_the_oldest_version_that_is_kept(limits: VersionLimits, kept: int) -> None:
    gone = ChangeRow(ChangeKind.GONE)
    times = [0.0, 2.0, 5.0, 6.0, 7.0]
    rows = [row(ChangeKind.NEW), gone, row(), gone, row()]
    history = [(at * DAY_S, each) for at, each in zip(times, rows, strict=True)]
    assert _first_kept(history, limits, 9.5 * DAY_S) == kept


def test_page_without_versions_keeps_its_history() -> None:
    assert _first_kept([(0.0, ChangeRow(ChangeKind.GONE))], VersionLimits(1, 1), 1e9) == 0


@pytest.mark.slow
def test_pruning_killed_at_any_write_loses_nothing_and_ends_right_when_run_again(
    history: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lycosa.store.warc_edit.STEP_RECORDS", 6)
    for step in range(50):
        path = copied(history, tmp_path / f"c{step}")
        with monkeypatch.context() as patched:
            kill_at(step, patched)
            try:
                with CollectionStore.open(path) as collection:
                    prune_versions(collection, VersionLimits(2))
                is_over = True
            except Killed:
                is_over = False
        assert days_of(path)[-2:] == ["3", "4"]
        with CollectionStore.open(path) as collection:
            prune_versions(collection, VersionLimits(2))
        assert days_of(path) == ["3", "4"]
        with lycosa.open(path) as collection:
            assert collection.get(TWIN).body == front(0).encode()
        if is_over:
            return
    pytest.fail("the pruning never ended")
