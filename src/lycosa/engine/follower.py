"""The process that keeps the search index of a crawl up to date: `python -m lycosa.engine.follower DIR`.

It looks into the feed twice a second and takes in what was committed; that can be found two seconds later where little
comes, else four, and more where the crawl and others leave it no time. Names and ranks are settled now and then. It
says on its standard output how many entries are left. The queue between the crawl and it is the feed, on disk: a crawl
never waits for it, and whoever of the two is killed goes on from what is on disk. "end" on its standard input: take in
the rest, settle names and ranks, and leave. An input that ends without it: the crawl is gone, commit what was taken in,
and leave. Where the archive cannot be read it lets go of the index, waits, longer each time, and begins again from what
is committed.
"""

import os
import select
import sys
import time
from pathlib import Path

from lycosa.engine.indexer import Indexer
from lycosa.engine.processes import IN_USE
from lycosa.errors import StoreError
from lycosa.search.index import IndexInUse
from lycosa.store import ArchiveAway, Collection

EVERY_S = 4.0  # between two commits; fewer and larger ones are less to join
SOON_S, FEW = 2.0, 100  # the same where few entries of the feed wait: a slow crawl is found soon
LOOK_S = 0.5
SETTLE_S = 60.0  # at the least between two looks whether links have doubled
CALM_S, CALM_SHARE = 5.0, 20  # where few entries come names are settled sooner, but for a twentieth of the time at most
AWAY_S, AWAY_MOST_S = 5.0, 600.0  # until an archive that cannot be read is tried again, first and at most
NICE = 10  # the crawl goes first


class Follower:
    """Follows one collection until it is told to end."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._heard = b""
        self._is_over = False
        self._next_look = time.monotonic() + SETTLE_S
        self._next_settling = time.monotonic() + CALM_S

    def run(self) -> None:
        with Collection.open(self._path, read_only=True) as collection:
            indexer, wait_s = self._indexer(collection), AWAY_S
            while True:
                try:
                    return self._follow(collection, indexer)
                except ArchiveAway:
                    if self._is_over:
                        raise  # whoever asks the index next tries again
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

    def _follow(self, collection: Collection, indexer: Indexer) -> None:
        committed = time.monotonic()
        while not self._is_over:
            collection.state.refresh()
            indexer.take(goes_on=lambda: self._goes_on(indexer, 0.0))
            if self._is_over:
                break
            since_s = time.monotonic() - committed
            is_calm = indexer.uncommitted <= FEW
            if since_s >= (SOON_S if is_calm else EVERY_S):
                indexer.commit()
                committed = time.monotonic()
                self._settle_if_due(indexer, is_calm=is_calm)
            if not self._goes_on(indexer, LOOK_S):
                break
        if self._heard.startswith(b"end"):
            indexer.is_alone = True  # all cores are free for what is left
            collection.state.refresh()
            indexer.catch_up()
            indexer.settle()
        else:
            indexer.commit()

    def _wait(self, indexer: Indexer, wait_s: float) -> None:
        until = time.monotonic() + wait_s
        while not self._is_over and time.monotonic() < until:
            self._goes_on(indexer, LOOK_S)

    def _indexer(self, collection: Collection) -> Indexer:
        try:
            return Indexer(collection, follows=True)
        except IndexInUse:
            raise
        except StoreError:  # damaged: it is made anew
            return Indexer(collection, anew=True, follows=True)

    def _settle_if_due(self, indexer: Indexer, *, is_calm: bool) -> None:
        """Names and ranks, where links have doubled, or where much has come and little comes now."""
        now = time.monotonic()
        is_due = is_calm and now >= self._next_settling and indexer.are_names_due()
        if now >= self._next_look:
            self._next_look = now + SETTLE_S
            is_due = is_due or indexer.links_have_doubled()
        if is_due:
            indexer.settle()
            ended = time.monotonic()
            self._next_settling = ended + max(CALM_S, CALM_SHARE * (ended - now))

    def _goes_on(self, indexer: Indexer, wait_s: float) -> bool:
        """Says how far it is, and hears whether that is all."""
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


def main() -> None:
    os.nice(NICE)
    try:
        Follower(Path(sys.argv[1])).run()
    except IndexInUse:
        sys.exit(IN_USE)
    except StoreError as error:
        print(error, file=sys.stderr)  # noqa: T201
        sys.exit(StoreError.exit_code)


if __name__ == "__main__":
    main()
