"""What everybody who reads answers or writes into the next commit needs of one shard: log, background work, clocks.

`EventLog` is `log.jsonl`: what happened, one JSON object a line, for people and scripts; the state is the truth.
`BackgroundWork` is long work beside the crawl: a large sitemap or robots.txt is read in steps, and between them the
event loop turns. Work begins at once and is over at once if it is short; what takes longer goes on in turns of a few
steps, by their number, not by the clock, so that a crawl on virtual time is the same every time. While the disk
refuses, nothing goes on. `Shard` is made by `crawl.assembly`.
"""

import asyncio
import random
from collections import deque
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import BinaryIO, NamedTuple

import msgspec

from lycosa.crawl.committer import Committer
from lycosa.crawl.reading import LinkFilter, PageReader
from lycosa.crawl.stats import Counters
from lycosa.errors import StoreError
from lycosa.frontier import Frontier, Lease
from lycosa.graph import LinkIndexer
from lycosa.records import Response
from lycosa.settings import CrawlSettings
from lycosa.store import CollectionStore
from lycosa.web import Steps

STEPS_PER_TURN = 2  # of a few milliseconds each; then the loop gets a turn
HELD_S = 0.1  # how soon it is tried again while the disk refuses


class EventLog:
    """Appends events; lines are buffered until `flush`. A log that cannot be written does not stop a crawl."""

    def __init__(self, path: Path, now_unix: Callable[[], float]) -> None:
        self._now_unix = now_unix
        self._lines: list[bytes] = []
        try:
            self._file: BinaryIO | None = path.open("ab", buffering=0)
        except OSError as error:
            raise StoreError(f"cannot write {path}: {error.strerror}") from error

    def write(self, event: str, **fields: object) -> None:
        self._lines.append(msgspec.json.encode({"time": round(self._now_unix(), 3), "event": event, **fields}) + b"\n")

    def flush(self) -> None:
        if self._file is None or not self._lines:
            return
        lines, self._lines = b"".join(self._lines), []
        try:
            self._file.write(lines)
        except OSError:
            self._lines = []  # no space for the log: the commit will say so

    def close(self) -> None:
        self.flush()
        if self._file is not None:
            self._file.close()
            self._file = None


class BackgroundWork:
    """The work under way. `is_blocked`: nothing may be written now. `on_turn_done` is called after each turn."""

    def __init__(self, *, is_blocked: Callable[[], bool]) -> None:
        self._is_blocked = is_blocked
        self.on_turn_done: Callable[[Exception | None], None] = lambda _: None
        self._work: deque[tuple[str, Steps[None]]] = deque()
        self._handle: asyncio.Handle | None = None

    def __repr__(self) -> str:
        return f"<BackgroundWork {len(self._work)} under way>"

    def __bool__(self) -> bool:
        return bool(self._work)

    @property
    def hosts(self) -> set[str]:
        """The hosts whose files are being read."""
        return {host for host, _ in self._work}

    def start(self, steps: Steps[None], host: str) -> None:
        """Begins with work for a host. It is called where a response is settled, so it may write."""
        if not self._has_ended(steps):
            self._work.append((host, steps))
            self._plan()

    def close(self) -> None:
        """The crawl is over: what is not finished is left, and its URL is still queued."""
        self._work.clear()
        if self._handle is not None:
            self._handle.cancel()

    def _plan(self) -> None:
        if self._handle is None:
            loop = asyncio.get_running_loop()
            self._handle = loop.call_later(HELD_S, self._turn) if self._is_blocked() else loop.call_soon(self._turn)

    def _turn(self) -> None:
        """One turn for the work that has waited longest."""
        self._handle = None
        if not self._is_blocked():
            host, steps = self._work.popleft()
            try:
                if not self._has_ended(steps):
                    self._work.append((host, steps))
            except Exception as error:  # the event loop would only log it
                self.on_turn_done(error)
                return
            self.on_turn_done(None)
        if self._work:
            self._plan()

    @staticmethod
    def _has_ended(steps: Steps[None]) -> bool:
        return sum(1 for _ in islice(steps, STEPS_PER_TURN)) < STEPS_PER_TURN


class Shard(NamedTuple):
    """One shard, open. `now` is the monotonic clock, `now_unix` the wall clock, `roll` gives the jitter of waits.
    `reader` is that of the event loop."""

    collection: CollectionStore
    settings: CrawlSettings
    frontier: Frontier
    counters: Counters
    committer: Committer
    events: EventLog
    reader: PageReader
    link_filter: LinkFilter
    linker: LinkIndexer
    background: BackgroundWork
    now: Callable[[], float]
    now_unix: Callable[[], float]
    roll: Callable[[], float] = random.random

    def release(self, lease: Lease, response: Response, *, wait_s: float = 0.0, reason: str = "") -> None:
        """The request of a lease has ended: its slots go back."""
        self.frontier.release(
            lease, response.ended_s, self.now(), wait_s=wait_s, reason=reason, now_unix=self.now_unix()
        )
