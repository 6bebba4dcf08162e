"""The crawl's side of the search index: starts the process that follows the crawl, and waits for it at the end.

The crawl never waits for the index while it runs. A process that dies is started again, a few times; one that finds the
index in use by another process, later. What was not indexed is in the feed, on disk. `follower_process` is the other
side; it is not imported here, since a crawl can do without tantivy.
"""

import asyncio
import contextlib
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from lycosa.processes import start_helper
from lycosa.search.text_log import IN_USE, TextLog

if TYPE_CHECKING:
    from lycosa.crawl import Engine

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
        self._texts: TextLog | None = None
        self.is_complete = False  # at the end: everything is in the index
        self.is_hurried = False  # the user wants to leave: do not wait

    def __repr__(self) -> str:
        return f"<IndexFollower {self._collection} behind={self.behind} starts={self._starts}>"

    def take_texts(self, engine: "Engine") -> None:
        """Hands the main texts of the crawl's pages to the process, which then need not read the archive."""
        self._texts = TextLog(self._collection, lambda: engine.linker.feed.last)
        engine.features.hand_texts(self._texts)

    def start(self) -> None:
        self._start_process()
        self._task = asyncio.get_running_loop().create_task(self._supervise())

    def _start_process(self) -> None:
        self._starts += 1
        try:
            self._process = start_helper("lycosa.search.follower_process", self._collection)
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
                if self._texts is not None:
                    self._texts.close()
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
