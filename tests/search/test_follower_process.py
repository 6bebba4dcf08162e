"""When the process that follows a crawl brings anchors and ranks up to date."""

from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from lycosa.search import follower_process
from lycosa.search.follower_process import CALM_S, EVERY_S, FEW, SOON_S, FollowerProcess, commit_after_s
from lycosa.search.indexer import Indexer
from lycosa.store import CollectionStore

LOOKS = 10


class CountedUpdates:
    """An indexer that takes `pages` at every look, and has them committed at once."""

    behind = 0
    reader = None

    def __init__(self, pages: int) -> None:
        self._pages, self.updates = pages, 0

    def index_feed(self, **_: object) -> int:
        return self._pages

    def commit(self) -> None:
        return

    def links_have_doubled(self) -> bool:
        return False

    def update_anchors_and_ranks(self) -> int:
        self.updates += 1
        return 0


@pytest.mark.parametrize("pages", [1, FEW + 1])
def test_anchors_are_updated_where_little_comes_whether_or_not_it_is_committed(
    pages: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = iter([True] * LOOKS)
    monkeypatch.setattr(follower_process, "time", SimpleNamespace(monotonic=count(0, 2 * CALM_S).__next__))
    monkeypatch.setattr(follower_process, "is_anchor_update_due", lambda _: True)
    monkeypatch.setattr(FollowerProcess, "_goes_on", lambda *_: next(looks, False))
    collection = SimpleNamespace(state=SimpleNamespace(refresh=lambda: True))
    indexer = CountedUpdates(pages)

    FollowerProcess(tmp_path)._follow(cast(CollectionStore, collection), cast(Indexer, indexer))

    assert (indexer.updates > 0) == (pages <= FEW)


def test_commits_that_take_long_come_less_often_unless_little_comes() -> None:
    assert commit_after_s(is_calm=False, took_s=0.2) == EVERY_S
    assert commit_after_s(is_calm=False, took_s=2.0) == 20.0
    assert commit_after_s(is_calm=True, took_s=2.0) == SOON_S
