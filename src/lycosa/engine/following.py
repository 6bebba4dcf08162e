"""The crawl's side of the search index: starts the process that follows it, looks after it, waits for it at the end.

The crawl never waits for the index while it runs. A follower that dies is started again, a few times; what it had not
taken in is in the feed. Called by `Crawl`.
"""

import asyncio
import contextlib
import os
import subprocess
from pathlib import Path

from lycosa.engine.processes import IN_USE, start

LOOK_EVERY_S = 1.0
STARTS = 5  # a follower that keeps dying will not get better
_POLL_S = 0.05
_STOP_S = 2.0


class IndexFollowing:
    """One follower at a time. `behind` is what it said last: entries of the feed that are not in the index."""

    def __init__(self, collection: Path) -> None:
        self._collection = collection
        self._process: subprocess.Popen[bytes] | None = None
        self._starts = 0
        self._task: asyncio.Task[None] | None = None
        self.behind = 0
        self.is_hurried = False  # the user wants to leave: nothing is waited for

    def __repr__(self) -> str:
        return f"<IndexFollowing {self._collection} behind={self.behind} starts={self._starts}>"

    def begin(self) -> None:
        self._start()
        self._task = asyncio.get_running_loop().create_task(self._look_after())

    def _start(self) -> None:
        self._starts += 1
        try:
            self._process = start("lycosa.engine.follower", self._collection)
        except OSError:  # no processes left: the index catches up another time
            self._process = None
            return
        assert self._process.stdout is not None
        os.set_blocking(self._process.stdout.fileno(), False)

    async def _look_after(self) -> None:
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            self._hear()
            if self._process is not None and self._process.poll() is not None:
                if self._process.returncode == IN_USE or self._starts >= STARTS:
                    return
                self._let_go()
                self._start()

    def _hear(self) -> None:
        if self._process is None or self._process.stdout is None:
            return
        said = (self._process.stdout.read() or b"").split()
        if said and said[-1].isdigit():
            self.behind = int(said[-1])

    async def finish(self) -> None:
        """Waits until all is in the index; with `is_hurried` the process is ended, and goes on from there next time."""
        if self._task is not None:
            self._task.cancel()
        process = self._process
        if process is None:
            return
        if process.poll() is None and not self.is_hurried:
            self._tell_to_end(process)
        while process.poll() is None and not self.is_hurried:
            self._hear()
            await asyncio.sleep(_POLL_S)
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._let_go()

    def _tell_to_end(self, process: "subprocess.Popen[bytes]") -> None:
        assert process.stdin is not None
        with contextlib.suppress(OSError):  # it has just died
            process.stdin.write(b"end\n")
            process.stdin.flush()

    def _let_go(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
