"""The backup of a shard: its finished archive files and checkpoints of its state go to the central store.

Packing and uploading run in a thread; whatever changes the state runs on the event loop. A store that fails is
reported and tried again: meanwhile everything stays where it is. Other shards hear that their URLs are safe
(`UrlInbox.cover`) when a checkpoint with them counts, not before.
"""

import asyncio
import contextlib
import shutil
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from lycosa.cluster.checkpoints import Manifest, delete_old_checkpoints, latest_checkpoint, publish_checkpoint
from lycosa.cluster.exchange import UrlInbox
from lycosa.crawl.events import EventLog
from lycosa.crawl.inbox import FOLDER, Inbox
from lycosa.crawl.loop import Engine
from lycosa.errors import ClusterError, StoreError
from lycosa.settings import CrawlSettings
from lycosa.store import (
    CentralStore,
    CollectionStore,
    StoreSelection,
    left_out_counts,
    packed_name,
    remember_store,
    require_store,
    upload_warc,
    warc_path,
)

POLL_S = 0.5
STORE_RETRY_S = 10.0  # after the store has failed
LAST_TRIES = 3  # at the end of a crawl
COPY, SCRATCH = "copy", "packing"  # folders of the shard

RunInThread = Callable[..., Awaitable[Any]]


class BackedUpAgent(Protocol):
    """What a keeper needs to know of its agent. `has_lease`: nobody else can have its shard."""

    name: str
    incarnation: int
    settings: CrawlSettings

    def has_lease(self) -> bool: ...


class ShardBackup:
    """The keeper of an agent's shard. Without the setting `checkpoint_s` there are no copies of the state."""

    def __init__(
        self,
        agent: BackedUpAgent,
        collection: CollectionStore,
        arrivals: UrlInbox,
        store: CentralStore,
        *,
        in_thread: RunInThread = asyncio.to_thread,
    ) -> None:
        self._name, self._incarnation, self._may_go_on = agent.name, agent.incarnation, agent.has_lease
        self._interval_s, self._now = agent.settings.checkpoint_s, asyncio.get_running_loop().time
        self._collection, self._arrivals, self._store, self._in_thread = collection, arrivals, store, in_thread
        self.has_copies = self._interval_s is not None
        if self.has_copies:
            arrivals.wait_for_copies()
        self._last: Manifest | None = None
        self._next_s = self._now()
        self._wanted = 0  # the copy that someone waits for
        self._begun = self.copies = 0  # the last copy that was begun, the last one that counts
        self.copied_s = float("-inf")  # by the loop's clock, the moment of the copy that counts
        self.bytes_sent = 0
        self._choose = partial(
            StoreSelection(agent.settings.store_types, agent.settings.store_relevance).choose, collection.state
        )
        self.left_out = left_out_counts(collection.state)
        self.problem = ""
        self._settling = ((0, 0), 0)  # an epoch and round of moving, and the copy that settles it
        self._working: asyncio.Future[Any] | None = None
        self._tell: Callable[..., None] = lambda event, **fields: None

    def __repr__(self) -> str:
        return f"<Keeper {self._name} copies={self.copies} bytes={self.bytes_sent}>"

    @property
    def waiting(self) -> int:
        """What is still to be brought: archive files that are finished, and a copy of the state."""
        return len(self._collection.finished_files()) + (self.copies < self._begun)

    def report(self) -> dict[str, Any]:
        """What the coordinator is told (`Report`)."""
        moved, copy = self._settling
        return {
            "stored_bytes": self.bytes_sent,
            "unstored": self.waiting,
            "settled": moved if self.copies >= copy else (0, 0),
            "trouble": self.problem,
        }

    def settle(self, moved: tuple[int, int]) -> None:
        """Everything that moves for an epoch has arrived in this round: others forget it when a copy has it."""
        if moved != self._settling[0]:
            self._settling = moved, self.want()

    def want(self) -> int:
        """Asks for a copy of the state as it is now or later; it counts when `copies` has come to the number returned.
        Where there are no copies it counts at once."""
        if self._interval_s is None:
            return 0
        self._wanted = self._begun + 1
        return self._wanted

    def want_soon(self) -> None:
        """Asks for a copy, unless one that was asked for is still to come."""
        if self._wanted <= self.copies:
            self.want()

    def begin(self, engine: Engine) -> "list[asyncio.Task[None]]":
        """Begins to bring what there is to be brought, until it is cancelled; the engine's log hears of it."""
        return [asyncio.get_running_loop().create_task(self._run(engine))]

    async def _run(self, engine: Engine) -> None:
        try:
            await self._keep(engine.events)
        except Exception as error:  # a mistake: others would wait for copies for ever
            engine.fail(error)

    async def _keep(self, events: EventLog) -> None:
        self._tell = events.write
        is_ready = False
        while True:
            try:
                if not is_ready:
                    await self._make_ready()
                    is_ready = True
                await self._bring_all()
                if self._interval_s is not None and (self._now() >= self._next_s or self._wanted > self.copies):
                    await self._copy()
                self.problem = ""
            except StoreError as error:
                self.problem = str(error)
                self._tell("store-failed", error=self.problem)
                await asyncio.sleep(STORE_RETRY_S)
            await asyncio.sleep(POLL_S)

    @contextlib.asynccontextmanager
    async def finishing(self) -> "AsyncIterator[asyncio.Task[None]]":
        """The crawl has ended: a task that brings everything."""
        task = asyncio.get_running_loop().create_task(self._finish())
        try:
            yield task
            await task
        finally:
            task.cancel()

    async def _finish(self) -> None:
        if self._working is not None:  # what was under way when the crawl ended
            await asyncio.wait([self._working])
        for left in reversed(range(LAST_TRIES)):
            try:
                await self._cut()
                await self._bring_all()
                if self._interval_s is not None:
                    await self._copy()
                self.problem = ""
                return
            except StoreError as error:
                self.problem = str(error)
                if left:
                    await asyncio.sleep(STORE_RETRY_S)

    async def _make_ready(self) -> None:
        """After a start: what was finished before stays finished, and half copies of it go."""
        remember_store(self._collection.warc_folder, self._store.url)
        await self._cut()
        names = {packed_name(number).rpartition("/")[2] for number in self._collection.finished_files()}
        await self._work(self._store.sweep, "warc", names)
        self._last = await self._work(latest_checkpoint, self._store, self._name)
        if self._last is not None and self._interval_s is not None:
            self._next_s = self._now() + self._interval_s

    async def _work(self, call: Callable[..., Any], *words: Any) -> Any:
        """Calls it in the thread, one at a time; whoever is cancelled leaves it to its end."""
        self._working = asyncio.ensure_future(self._in_thread(call, *words))
        self._working.add_done_callback(lambda done: done.cancelled() or done.exception())
        return await asyncio.shield(self._working)

    async def _cut(self) -> None:
        """The open archive file is finished, once no commit is half done."""
        while self._collection.warc.lengths:  # noqa: ASYNC110 -- no event tells
            await asyncio.sleep(POLL_S)
        self._collection.warc.finish_file()

    async def _bring_all(self) -> None:
        """Brings every archive file that is finished, and lets it go."""
        for number, length in self._collection.finished_files().items():
            source = warc_path(self._collection.warc_folder, number)
            scratch = self._collection.path / SCRATCH
            await self._work(require_store, self._store)
            what = await self._work(upload_warc, source, length, self._store, scratch, self._may_go_on, self._choose)
            self._collection.release(number, what)
            self.left_out = left_out_counts(self._collection.state)
            self.bytes_sent += what.bytes
            self._tell("archive-stored", file=source.name, bytes=what.bytes, of=what.gzip_bytes)

    async def _copy(self) -> None:
        """One copy of the state. It is of some moment after `positions` was read and before the open archive file is
        cut, so it has at least those, and all archive bytes that it names are finished and brought."""
        self._begun += 1
        copy = self._collection.path / COPY
        await self._work(shutil.rmtree, copy, True)
        copied_s, copied_unix = self._now(), time.time()
        positions = self._arrivals.positions()
        await self._work(self._collection.state.checkpoint, copy)
        await self._cut()
        await self._bring_all()
        bare = Manifest(self._name, self._incarnation, self._begun, copied_unix, {}, positions)
        await self._work(require_store, self._store)
        last, size = await self._work(publish_checkpoint, self._store, copy, bare, self._last, self._may_go_on)
        self._arrivals.cover(positions)
        self._last, self.copies, self.copied_s = last, self._begun, copied_s
        self.bytes_sent += size
        self._tell("copied", copy=self.copies, bytes=size, files=len(last.files))
        if self._interval_s is not None:
            self._next_s = self._now() + self._interval_s
        await self._work(shutil.rmtree, copy, True)
        await self._work(delete_old_checkpoints, self._store, last)


ADDED_POLL_S = 0.1
ADDED_TIMEOUT_S = 8.0  # less than the limit of a call


class AddedUrls:
    """What was added to the shard in `folder` and is in no copy yet: URL → the copy that will have it."""

    def __init__(self, folder: Path, keeper: ShardBackup) -> None:
        self._folder, self._keeper = folder, keeper
        self._copies: dict[str, int] = {}

    def __repr__(self) -> str:
        return f"<Added {len(self._copies)}>"

    async def put(self, urls: Sequence[str]) -> None:
        """Returns when a copy has them all; ClusterError if that takes too long: then the same again, later."""
        try:
            async with asyncio.timeout(ADDED_TIMEOUT_S):
                new = [url for url in urls if url not in self._copies]
                if new:
                    Inbox(self._folder).put(new)
                    while any((self._folder / FOLDER).glob("*.urls")):  # noqa: ASYNC110 -- until a commit has them
                        await asyncio.sleep(ADDED_POLL_S)
                    self._copies |= dict.fromkeys(new, self._keeper.want())
                last = max((self._copies[url] for url in urls), default=0)
                while self._keeper.copies < last:  # noqa: ASYNC110 -- no event tells
                    await asyncio.sleep(ADDED_POLL_S)
        except TimeoutError as error:
            raise ClusterError("no copy of the shard has the URLs yet") from error
        for url in urls:
            self._copies.pop(url, None)
