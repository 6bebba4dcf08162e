"""Keeps the search index of a crawl up to date: the process that follows the feed, and the crawl's side of it.

`IndexFollower` starts `FollowerProcess`, starts it again a few times where it dies, and waits for it at the end; the
crawl never waits for the index while it runs. The process looks into the feed twice a second and takes in what was
committed; that can be found two seconds later where little comes, else four. It prints how many entries are left. The
queue between the two is the feed, on disk: whichever of them is killed goes on from there. "end" on its standard input
means: take in the rest, update anchors and ranks, and leave. An input that ends without it means that the crawl is
gone: commit what was taken in, and leave. Where the archive cannot be read the process lets go of the index,
waits, longer each time, and begins again from what is committed.
"""

import asyncio
import contextlib
import os
import select
import subprocess
import sys
import time
from pathlib import Path

from lycosa.errors import StoreError
from lycosa.graph import start_helper
from lycosa.search.anchors import is_anchor_update_due
from lycosa.search.index import IndexInUse
from lycosa.search.indexer import Indexer
from lycosa.store import ArchiveUnavailable, CollectionStore

IN_USE = 3  # exit code: another process writes the index
LOOK_EVERY_S = 1.0
STARTS = 5  # a follower that keeps dying will not get better
IN_USE_S = 10.0  # until an index that another process writes is tried again
_POLL_S = 0.05
_STOP_S = 2.0


class IndexFollower:
    """The crawl's side: one follower process at a time. `behind` is the number of feed entries that are not in the
    index, as the process said last."""

    def __init__(self, collection: Path) -> None:
        self._collection = collection
        self._process: subprocess.Popen[bytes] | None = None
        self._starts = 0
        self._task: asyncio.Task[None] | None = None
        self.behind = 0
        self.is_complete = False  # at the end: everything is in the index
        self.is_hurried = False  # the user wants to leave: do not wait

    def __repr__(self) -> str:
        return f"<IndexFollower {self._collection} behind={self.behind} starts={self._starts}>"

    def start(self) -> None:
        self._start_process()
        self._task = asyncio.get_running_loop().create_task(self._supervise())

    def _start_process(self) -> None:
        self._starts += 1
        try:
            self._process = start_helper("lycosa.search.follower", self._collection)
        except OSError:  # no processes left: the index catches up another time
            self._process = None
            return
        assert self._process.stdout is not None
        os.set_blocking(self._process.stdout.fileno(), False)

    async def _supervise(self) -> None:
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            self._read_behind()
            if self._process is not None and self._process.poll() is not None:
                if self._process.returncode == IN_USE:
                    self._starts -= 1
                    await asyncio.sleep(IN_USE_S)
                if self._starts >= STARTS:
                    return
                self._release()
                self._start_process()

    def _read_behind(self) -> None:
        if self._process is None or self._process.stdout is None:
            return
        said = (self._process.stdout.read() or b"").split()
        if said and said[-1].isdigit():
            self.behind = int(said[-1])

    async def finish(self) -> None:
        """Waits until all is in the index. A process that ends before is started again; with `is_hurried` it is ended,
        and the next search goes on from there."""
        if self._task is not None:
            self._task.cancel()
        while True:
            if self._process is not None:
                self.is_complete = await self._ended(self._process) == 0 and not self.is_hurried
                self._release()
            if self.is_complete or self.is_hurried or self._starts >= STARTS:
                return
            await asyncio.sleep(_POLL_S)
            self._start_process()

    async def _ended(self, process: "subprocess.Popen[bytes]") -> int:
        """Tells the process to take in the rest; returns its exit code."""
        if process.poll() is None and not self.is_hurried:
            self._tell_to_end(process)
        while process.poll() is None and not self.is_hurried:
            self._read_behind()
            await asyncio.sleep(_POLL_S)
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        return process.wait()

    def _tell_to_end(self, process: "subprocess.Popen[bytes]") -> None:
        assert process.stdin is not None
        with contextlib.suppress(OSError):  # it has just died
            process.stdin.write(b"end\n")
            process.stdin.flush()

    def _release(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()


EVERY_S = 4.0  # between two commits; fewer and larger ones are less to join
SOON_S, FEW = 2.0, 100  # the same where few entries of the feed wait: a slow crawl is found soon
LOOK_S = 0.5
LINKS_LOOK_S = 60.0  # at the least between two looks whether links have doubled
CALM_S, CALM_SHARE = 5.0, 20  # where few entries come anchors are updated sooner, a twentieth of the time at most
AWAY_S, AWAY_MOST_S = 5.0, 600.0  # until an archive that cannot be read is tried again, first and at most
NICE = 10  # the crawl goes first


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

    def _follow(self, collection: CollectionStore, indexer: Indexer) -> None:
        committed = time.monotonic()
        while not self._is_over:
            collection.state.refresh()
            indexer.index_feed(goes_on=lambda: self._goes_on(indexer, 0.0))
            if self._is_over:
                break
            since_s = time.monotonic() - committed
            is_calm = indexer.uncommitted <= FEW
            if since_s >= (SOON_S if is_calm else EVERY_S):
                indexer.commit()
                committed = time.monotonic()
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


def main() -> None:
    os.nice(NICE)
    try:
        FollowerProcess(Path(sys.argv[1])).run()
    except IndexInUse:
        sys.exit(IN_USE)
    except StoreError as error:
        print(error, file=sys.stderr)  # noqa: T201
        sys.exit(StoreError.exit_code)
