"""What is live: the counts of this moment, sent to every viewer once a second, and now and then charts of the past and
the latest events.

One task asks for them while somebody is watching and hands the same bytes to all viewers. A viewer that does not
take them in time is dropped; its browser comes back by itself. The crawl never hears of viewers.
"""

import asyncio
import shlex
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from itertools import count, pairwise
from pathlib import Path

import msgspec

from lycosa.crawl import CrawlStats, Sample, crawl_state
from lycosa.errors import LycosaError
from lycosa.inspect import latest_events
from lycosa.serve.source import CollectionSource
from lycosa.serve.times import in_utc
from lycosa.wording import counted

EVERY_S = 1.0
CHARTS_EVERY = 5  # messages
CHART_POINTS = 300
MOST_BEHIND = 5  # messages that a viewer may leave unread
MOST_VIEWERS = 200
LATEST_EVENTS = 8

BEGINNING = "The crawl is about to begin: there is no collection in this folder yet."


class ChartPoint(msgspec.Struct, frozen=True):
    """A moment of a crawl as charts show it. Rates are since the point before; None where a run `begins`, since nobody
    crawled before it."""

    at_unix: float
    begins: bool
    pages: int
    queued: int
    hosts_active: int
    memory_bytes: int
    archive_bytes: int
    failed: int
    pages_per_s: float | None = None
    bytes_per_s: float | None = None
    errors_per_s: float | None = None


def chart_points(samples: Sequence[Sample], *, most: int) -> list[ChartPoint]:
    """The points of a chart, at most so many."""
    step, last = max(1, -(-len(samples) // max(most, 2))), len(samples) - 1
    kept = [each for place, each in enumerate(samples) if each.begins or place % step == 0 or place == last]
    points = [_point(each) for each in kept[:1]]
    for before, each in pairwise(kept):
        seconds = each.at_unix - before.at_unix
        if each.begins or seconds <= 0:
            points.append(_point(each))
            continue
        rates = ((getattr(each, name) - getattr(before, name)) / seconds for name in ("pages", "bytes", "failed"))
        points.append(_point(each, *(max(rate, 0.0) for rate in rates)))
    return points


def _point(sample: Sample, *rates: float) -> ChartPoint:
    return ChartPoint(
        sample.at_unix,
        sample.begins,
        sample.pages,
        sample.queued,
        sample.hosts_active,
        sample.memory_bytes,
        sample.archive_bytes,
        sample.failed,
        *rates,
    )


class Broadcast:
    """Sends the counts of the collection to its viewers."""

    def __init__(self, source: CollectionSource) -> None:
        self._source = source
        self._viewers: set[asyncio.Queue[bytes | None]] = set()
        self._task: asyncio.Task[None] | None = None
        self._charts = b""  # the last ones, for whoever comes between two

    def __repr__(self) -> str:
        return f"<Broadcast viewers={len(self._viewers)}>"

    @property
    def viewers(self) -> int:
        return len(self._viewers)

    async def view(self) -> AsyncIterator[bytes]:
        """The messages for one viewer, in the form of server-sent events."""
        if len(self._viewers) >= MOST_VIEWERS:
            return
        queue: asyncio.Queue[bytes | None] = asyncio.Queue(MOST_BEHIND)
        self._viewers.add(queue)
        if self._task is None:
            self._task = asyncio.create_task(self._run())
        try:
            yield b"retry: 2000\n\n" + self._charts
            while (message := await queue.get()) is not None:
                yield message
        finally:
            self._viewers.discard(queue)

    async def close(self) -> None:
        for queue in tuple(self._viewers):
            self._drop(queue)
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def _run(self) -> None:
        try:
            for number in count():
                if not self._viewers:
                    return
                message = await asyncio.to_thread(self._message, has_charts=number % CHARTS_EVERY == 0)
                for queue in tuple(self._viewers):
                    try:
                        queue.put_nowait(message)
                    except asyncio.QueueFull:
                        self._drop(queue)
                await asyncio.sleep(EVERY_S)
        finally:
            self._task, self._charts = None, b""

    def _drop(self, queue: "asyncio.Queue[bytes | None]") -> None:
        """Ends a viewer: it gets what is in its queue no more."""
        self._viewers.discard(queue)
        while not queue.empty():
            queue.get_nowait()
        queue.put_nowait(None)

    def _message(self, *, has_charts: bool) -> bytes:
        try:
            status = _event("status", status_facts(self._source))
            if has_charts and self._source.is_there:
                points = chart_points(self._source.timeline(), most=CHART_POINTS)
                log = latest_events(self._source.path, most=LATEST_EVENTS)
                self._charts = _event("timeline", points) + _event("log", log)
                return status + self._charts
            return status
        except LycosaError as error:
            return _event("problem", {"says": str(error)})


def _event(name: str, value: object) -> bytes:
    return f"event: {name}\ndata: ".encode() + msgspec.json.encode(value) + b"\n\n"


def status_facts(source: CollectionSource) -> dict[str, object]:
    """The counts as `lycosa status --json` has them, and the state of the crawl in a word."""
    if not source.is_there:
        return {"state": "beginning", "sentence": BEGINNING}
    stats = source.stats()
    running, shards = source.is_crawled, len(source.shards)
    state = crawl_state(stats, is_crawled=running)
    sentence = pace_sentence(stats, state, shards=shards, folder=source.path)
    return {"state": state, "is_crawled": running, "sentence": sentence, "shards": shards, **stats.as_facts()}


def pace_sentence(stats: CrawlStats, state: str, *, shards: int, folder: Path) -> str:
    """One sentence that says why the rate is what it is."""
    if state == "finished":
        return "Nothing is queued: every URL that is known was fetched, failed or was dropped."
    if state == "stopped":
        command = shlex.join(["lycosa", "crawl", "--into", str(folder)])
        return f"No crawl is running; {counted(stats.queued, 'URL')} in the queue: {command} continues."
    side_by_side = f"{shards} shards crawl side by side; the page Shards says what sets the pace of each"
    unsaid = side_by_side if shards else "it is fetching as fast as answers come"
    said = in_utc(stats.pace or stats.standing or unsaid)
    return f"{said[:1].upper()}{said[1:]}."
