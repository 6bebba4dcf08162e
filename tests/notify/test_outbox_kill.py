"""A recrawl killed at any write: the outbox has exactly the changes that the history has."""

import signal
from pathlib import Path

import msgspec
import pytest

from lycosa.notify import Notice
from lycosa.records import Family
from lycosa.recrawl import UNCHANGED, ChangeKind, split_change_key, unpack_change
from lycosa.simweb import SimWeb
from lycosa.store import CollectionStore
from lycosa.web import url_from_key
from tests.crawl.memory_crawl import front
from tests.recrawl.recrawl_victim import SETTINGS
from tests.recrawl.recrawl_world import run
from tests.recrawl.test_kill import recrawl

NOBODY = "http://nobody.sim:8800/hook"  # a receiver that is never there: everything waits


def told_and_recorded(into: Path) -> tuple[list[tuple[str, int, str]], list[tuple[str, int, str]]]:
    """The changes in the outbox and those in the history: URL, time and kind."""
    with CollectionStore.open(into) as collection:
        rows = collection.state.walk(Family.META, b"notice:row:", b"notice:row;")
        notices = [msgspec.msgpack.decode(row, type=Notice) for _, row in rows]
        changes = []
        for key, packed in collection.state.walk(Family.CHANGE):
            change, (url, at_s) = unpack_change(packed), split_change_key(key)
            is_opening = change.kind is ChangeKind.NEW and not change.size
            if not is_opening and change.kind not in UNCHANGED:
                changes.append((url_from_key(url), round(at_s * 1000), str(change.kind)))
    return sorted((each.url, int(each.at_s * 1000), each.kind) for each in notices), sorted(changes)


@pytest.mark.slow
def test_outbox_has_what_the_history_has_after_every_kill(tmp_path: Path) -> None:
    into, web = tmp_path / "c", SimWeb(SETTINGS)
    run(web, into, front(web), webhook=[NOBODY])
    for commit, moment in ((2, "between"), (3, "before"), (4, "after")):
        assert recrawl(into, commit, moment) == -signal.SIGKILL
        told, recorded = told_and_recorded(into)
        assert told == recorded
    assert recrawl(into, 0, "") == 0
    told, recorded = told_and_recorded(into)
    assert told == recorded
    assert len(told) > 50
