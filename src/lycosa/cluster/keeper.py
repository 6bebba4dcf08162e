"""What an agent brings to the central store: archive files as they are finished, and copies of its state now and then.

Packing and bringing are done in a thread, which spends its time in zstd and in waiting; what changes the state is done
here, on the event loop. A store that fails is told of and tried again: meanwhile everything stays where it is. Other
shards hear that their URLs are safe (`Arrivals.cover`) when a copy with them counts, not before.
"""

import asyncio
import contextlib
import shutil
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Any, Protocol

from lycosa.cluster.arrivals import Arrivals
from lycosa.cluster.checkpoints import Manifest, latest, publish, tidy
from lycosa.engine.engine import Engine
from lycosa.engine.events import EventLog
from lycosa.engine.selection import Selection
from lycosa.errors import StoreError
from lycosa.settings import CrawlSettings
from lycosa.store import Collection
from lycosa.store.central import CentralStore, require_there
from lycosa.store.released import bring, left_out, packed_name, remember_store
from lycosa.store.warc_file import warc_path

LOOK_S = 0.5
AGAIN_S = 10.0  # after the store has failed
LAST_TRIES = 3  # at the end of a crawl
COPY, SCRATCH = "copy", "packing"  # folders of the shard

InThread = Callable[..., Awaitable[Any]]


class Kept(Protocol):
    """What a keeper needs to know of its agent. `has_lease`: nobody else can have its shard."""

    name: str
    incarnation: int
    settings: CrawlSettings

    def has_lease(self) -> bool: ...


class Keeper:
    """The keeper of an agent's shard. Without the setting `checkpoint_s` there are no copies of the state."""

    def __init__(
        self,
        agent: Kept,
        collection: Collection,
        arrivals: Arrivals,
        store: CentralStore,
        *,
        in_thread: InThread = asyncio.to_thread,
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
        self._choose = partial(Selection(agent.settings).choose, collection.state)
        self.left_out = left_out(collection.state)
        self.problem = ""
        self._settling = ((0, 0), 0)  # an epoch and round of moving, and the copy that settles it
        self._working: asyncio.Future[Any] | None = None
        self._tell: Callable[..., None] = lambda event, **fields: None

    def __repr__(self) -> str:
        return f"<Keeper {self._name} copies={self.copies} bytes={self.bytes_sent}>"

    @property
    def waiting(self) -> int:
        """What is still to be brought: archive files that are finished, and a copy of the state."""
        return len(self._collection.finished()) + (self.copies < self._begun)

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
                await asyncio.sleep(AGAIN_S)
            await asyncio.sleep(LOOK_S)

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
                    await asyncio.sleep(AGAIN_S)

    async def _make_ready(self) -> None:
        """After a start: what was finished before stays finished, and half copies of it go."""
        remember_store(self._collection.warc_folder, self._store.url)
        await self._cut()
        names = {packed_name(number).rpartition("/")[2] for number in self._collection.finished()}
        await self._work(self._store.sweep, "warc", names)
        self._last = await self._work(latest, self._store, self._name)
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
            await asyncio.sleep(LOOK_S)
        self._collection.warc.cut()

    async def _bring_all(self) -> None:
        """Brings every archive file that is finished, and lets it go."""
        for number, length in self._collection.finished().items():
            source = warc_path(self._collection.warc_folder, number)
            scratch = self._collection.path / SCRATCH
            await self._work(require_there, self._store)
            what = await self._work(bring, source, length, self._store, scratch, self._may_go_on, self._choose)
            self._collection.release(number, what)
            self.left_out = left_out(self._collection.state)
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
        await self._work(require_there, self._store)
        last, size = await self._work(publish, self._store, copy, bare, self._last, self._may_go_on)
        self._arrivals.cover(positions)
        self._last, self.copies, self.copied_s = last, self._begun, copied_s
        self.bytes_sent += size
        self._tell("copied", copy=self.copies, bytes=size, files=len(last.files))
        if self._interval_s is not None:
            self._next_s = self._now() + self._interval_s
        await self._work(shutil.rmtree, copy, True)
        await self._work(tidy, self._store, last)
