"""A recrawl killed at any write: the history is whole, no visit is counted twice, the rest is done next time."""

import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lycosa.records import Family
from lycosa.recrawl.versions import ChangeRow, split_change_key, unpack_change, unpack_visit
from lycosa.simweb import SimWeb
from lycosa.store import CollectionStore
from lycosa.web.url import url_from_key
from tests.crawl.consistency import problems
from tests.crawl.memory_crawl import front
from tests.recrawl.recrawl_victim import SETTINGS
from tests.recrawl.recrawl_world import run

DAYS = 250.0  # all pages are due by then


def recrawl(into: Path, commit: int, moment: str) -> int:
    words = (str(into), str(DAYS), str(commit), moment)  # the clock stands still: entries of two runs must not collide
    command = [sys.executable, "-m", "tests.recrawl.recrawl_victim", *words]
    return subprocess.run(command, check=False, timeout=300).returncode


def visits(into: Path) -> dict[str, int]:
    with CollectionStore.open(into) as collection:
        return {url_from_key(key): unpack_visit(row).visits for key, row in collection.state.walk(Family.VISIT)}


def told(into: Path) -> dict[str, list[tuple[str, str, int]]]:
    """The history without its times, and without the places, which a killed run moves."""
    found: dict[str, list[tuple[str, str, int]]] = {}
    with CollectionStore.open(into) as collection:
        for key, packed in collection.state.walk(Family.CHANGE):
            row: ChangeRow = unpack_change(packed)
            url = url_from_key(split_change_key(key)[0])
            found.setdefault(url, []).append((row.kind, row.where, row.status))
    return found


@pytest.mark.slow
def test_recrawl_killed_at_every_kind_of_write_counts_each_visit_once(tmp_path: Path) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    web = SimWeb(SETTINGS)
    run(web, whole, front(web))
    shutil.copytree(whole, killed)
    assert recrawl(whole, 0, "") == 0
    for commit, moment in ((2, "between"), (3, "before"), (4, "after")):
        assert recrawl(killed, commit, moment) == -signal.SIGKILL
    assert recrawl(killed, 0, "") == 0
    assert visits(killed) == visits(whole)
    assert set(visits(killed).values()) == {1}
    assert told(killed) == told(whole)
    assert problems(killed) == []
