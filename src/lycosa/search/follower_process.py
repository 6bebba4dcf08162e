"""The process that keeps the search index of a crawl up to date; started by `IndexFollower`.

It looks into the feed once a second and indexes what was committed; that can be found two seconds later where little
comes, else four, or ten times as long as a commit takes. It prints how many entries are left. The queue between the
crawl and it is the feed, on disk: whichever of them is killed goes on from there. "end" on its standard input means:
index the rest, update anchors and ranks, and leave. An input that ends without it means that the crawl is gone: commit
what was indexed, and leave. Where the archive cannot be read the process lets go of the index, waits, longer each time,
and begins again from what is committed.
"""

import gc
import os
import select
import sys
import time
from pathlib import Path

from lycosa.errors import StoreError
from lycosa.search.index import IndexInUse, is_anchor_update_due
from lycosa.search.indexer import Indexer
from lycosa.search.text_log import IN_USE
from lycosa.store import ArchiveUnavailable, CollectionStore

EVERY_S = 4.0  # between two commits; fewer and larger ones are less to join
COMMIT_SHARE = 10  # a tenth of the time at most goes into commits, which take long on a busy machine
SOON_S, FEW = 2.0, 100  # the same where few entries of the feed wait: a slow crawl is found soon
LOOK_S = 1.0  # each look takes milliseconds, however little was written
LINKS_LOOK_S = 60.0  # at the least between two looks whether links have doubled
CALM_S, CALM_SHARE = 5.0, 20  # where few entries come anchors are updated sooner, a twentieth of the time at most
AWAY_S, AWAY_MOST_S = 5.0, 600.0  # until an archive that cannot be read is tried again, first and at most
NICE = 10  # the crawl goes first
COLLECTED_AFTER = 20_000  # objects: a batch of pages makes thousands, and hardly any cycle


class FollowerProcess:
    """The process: follows one collection until it is told to end."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._heard = b""
        self._is_over = False
        self._next_look = time.monotonic() + LINKS_LOOK_S
        self._next_update = time.monotonic() + CALM_S

    def run(self) -> None:
        with CollectionStore.open(self._path, read_only=True) as collection:
            indexer, wait_s = self._indexer(collection), AWAY_S
            while True:
                try:
                    return self._follow(collection, indexer)
                except ArchiveUnavailable:
                    if self._is_over:
                        raise  # the next search tries again
                finally:
                    indexer.close()
                while True:
                    self._wait(indexer, wait_s)
                    wait_s = min(AWAY_MOST_S, 2 * wait_s)
                    try:
                        indexer = self._indexer(collection)
                        break
                    except IndexInUse:  # somebody mends it
                        if self._is_over:
                            raise

    def _follow(self, collection: CollectionStore, indexer: Indexer) -> None:
        committed, taken, took_s = time.monotonic(), 0, 0.0
        while not self._is_over:
            collection.state.refresh()
            taken += indexer.index_feed(goes_on=lambda: self._goes_on(indexer, 0.0))
            if self._is_over:
                break
            since_s = time.monotonic() - committed
            is_calm = taken <= FEW
            if since_s >= commit_after_s(is_calm=is_calm, took_s=took_s):
                began = time.monotonic()
                indexer.commit()
                committed, taken = time.monotonic(), 0
                took_s = committed - began
                self._update_anchors_if_due(indexer, is_calm=is_calm)
            if not self._goes_on(indexer, LOOK_S):
                break
        if self._heard.startswith(b"end"):
            indexer.is_alone = True  # all cores are free for what is left
            collection.state.refresh()
            indexer.catch_up()
            indexer.update_anchors_and_ranks()
        else:
            indexer.commit()

    def _wait(self, indexer: Indexer, wait_s: float) -> None:
        until = time.monotonic() + wait_s
        while not self._is_over and time.monotonic() < until:
            self._goes_on(indexer, LOOK_S)

    def _indexer(self, collection: CollectionStore) -> Indexer:
        try:
            return Indexer(collection, follows=True)
        except IndexInUse:
            raise
        except StoreError:  # damaged: it is made anew
            return Indexer(collection, anew=True, follows=True)

    def _update_anchors_if_due(self, indexer: Indexer, *, is_calm: bool) -> None:
        """Updates anchors and ranks where links have doubled, or where much has come and little comes now."""
        now = time.monotonic()
        if not is_calm:
            self._next_update = max(self._next_update, now + CALM_S)
        is_due = is_calm and now >= self._next_update and is_anchor_update_due(indexer.reader)
        if now >= self._next_look:
            self._next_look = now + LINKS_LOOK_S
            is_due = is_due or indexer.links_have_doubled()
        if is_due:
            indexer.update_anchors_and_ranks()
            ended = time.monotonic()
            self._next_update = ended + max(CALM_S, CALM_SHARE * (ended - now))

    def _goes_on(self, indexer: Indexer, wait_s: float) -> bool:
        """Prints how many entries are left, and reads whether it should end."""
        try:
            os.write(1, b"%d\n" % indexer.behind)
        except OSError:
            self._is_over = True
        ready, _, _ = select.select([0], [], [], wait_s)
        if ready:
            said = os.read(0, 100)
            self._heard += said
            self._is_over = True
        return not self._is_over


def commit_after_s(*, is_calm: bool, took_s: float) -> float:
    """How long after a commit, which took so long itself, the next one comes."""
    return SOON_S if is_calm else max(EVERY_S, COMMIT_SHARE * took_s)


def main() -> None:
    os.nice(NICE)
    gc.freeze()
    gc.set_threshold(COLLECTED_AFTER)
    try:
        FollowerProcess(Path(sys.argv[1])).run()
    except IndexInUse:
        sys.exit(IN_USE)
    except StoreError as error:
        print(error, file=sys.stderr)  # noqa: T201
        sys.exit(StoreError.exit_code)
