"""The backup of a shard: its finished archive files and checkpoints of its state go to the central store.

Packing and uploading run in a thread; whatever changes the state runs on the event loop. A store that fails is
reported and tried again: meanwhile everything stays where it is. Other shards hear that their URLs are safe
(`UrlInbox.cover`) when a checkpoint with them counts, not before.
"""

import asyncio
import shutil
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from lycosa.cluster.checkpoints import Manifest, delete_old_checkpoints, latest_checkpoint, publish_checkpoint
from lycosa.cluster.exchange import UrlInbox
from lycosa.cluster.heartbeat import NO_MOVE, MoveRound
from lycosa.crawl import INBOX_FOLDER, Engine, Inbox
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
COPY_FOLDER, SCRATCH_FOLDER = "copy", "packing"  # of the shard

ADDED_POLL_S = 0.1
ADDED_TIMEOUT_S = 8.0  # less than the limit of a call, so that the caller hears why

RunInThread = Callable[..., Awaitable[Any]]


class BackedUpAgent(Protocol):
    """What a backup needs to know of its agent."""

    name: str
    incarnation: int
    settings: CrawlSettings

    def has_lease(self) -> bool:
        """Can nobody else have its shard?"""


class ShardBackup:
    """The backup of an agent's shard. Without the setting `checkpoint_s` only archive files are uploaded."""

    def __init__(
        self,
        agent: BackedUpAgent,
        collection: CollectionStore,
        inbox: UrlInbox,
        store: CentralStore,
        *,
        in_thread: RunInThread = asyncio.to_thread,
    ) -> None:
        self._name, self._incarnation, self._has_lease = agent.name, agent.incarnation, agent.has_lease
        self._interval_s, self._now = agent.settings.checkpoint_s, asyncio.get_running_loop().time
        self._collection, self._inbox, self._store, self._in_thread = collection, inbox, store, in_thread
        self.has_checkpoints = self._interval_s is not None
        # From here on senders keep their rows until a checkpoint of this shard has them.
        if self.has_checkpoints:
            inbox.wait_for_checkpoints()
        self._latest: Manifest | None = None
        self._next_s = self._now()
        self._requested = 0  # the checkpoint that someone waits for
        # The last checkpoint that was begun, the last one that counts.
        self._begun = self.published = 0
        # By the loop's clock, the moment of the checkpoint that counts.
        self.covers_s = float("-inf")
        self.bytes_sent = 0
        self._choose = partial(
            StoreSelection(agent.settings.store_types, agent.settings.store_relevance).choose, collection.state
        )
        self.left_out = left_out_counts(collection.state)
        self._trouble = ""
        # A move of hosts, and the checkpoint that has all that came with it.
        self._move = (NO_MOVE, 0)
        self._working: asyncio.Future[Any] | None = None
        self._log: Callable[..., None] = lambda event, **fields: None

    def __repr__(self) -> str:
        return f"<ShardBackup {self._name} checkpoints={self.published} bytes={self.bytes_sent}>"

    def report(self) -> dict[str, Any]:
        """The backup's part of an `AgentReport`."""
        move, checkpoint = self._move
        return {
            "stored_bytes": self.bytes_sent,
            "unstored": len(self._collection.finished_files()) + (self.published < self._begun),
            "backed_up": move if self.published >= checkpoint else NO_MOVE,
            "trouble": self._trouble,
        }

    def back_up_move(self, move: MoveRound) -> None:
        """Everything that moves has arrived: those who had it before forget it once a checkpoint has it."""
        if move != self._move[0]:
            self._move = move, self.request_checkpoint()

    def request_checkpoint(self) -> int:
        """Asks for a checkpoint of the state as it is now or later; it counts when `published` has come to the number
        returned. Where there are no checkpoints it counts at once."""
        if self._interval_s is None:
            return 0
        self._requested = self._begun + 1
        return self._requested

    def request_checkpoint_once(self) -> None:
        """Asks for a checkpoint, unless one that was asked for is still to come."""
        if self._requested <= self.published:
            self.request_checkpoint()

    async def run(self, engine: Engine) -> None:
        """Uploads what there is to upload, until it is cancelled; the engine's log hears of it."""
        self._log = engine.events.write
        try:
            await self._run()
        except Exception as error:  # a mistake: others would wait for checkpoints for ever
            engine.fail(error)

    async def _run(self) -> None:
        is_prepared = False
        while True:
            try:
                if not is_prepared:
                    await self._prepare()
                    is_prepared = True
                await self._upload_archives()
                if self._interval_s is not None and (self._now() >= self._next_s or self._requested > self.published):
                    await self._publish_checkpoint()
                self._trouble = ""
            except StoreError as error:
                self._trouble = str(error)
                self._log("store-failed", error=self._trouble)
                await asyncio.sleep(STORE_RETRY_S)
            await asyncio.sleep(POLL_S)

    async def finish(self) -> None:
        """The crawl has ended: uploads everything, or says why that cannot be."""
        if self._working is not None:  # what was under way when the crawl ended
            await asyncio.wait([self._working])
        for left in reversed(range(LAST_TRIES)):
            try:
                await self._finish_archive()
                await self._upload_archives()
                if self._interval_s is not None:
                    await self._publish_checkpoint()
                self._trouble = ""
                return
            except StoreError as error:
                self._trouble = str(error)
                if left:
                    await asyncio.sleep(STORE_RETRY_S)

    async def _prepare(self) -> None:
        """After a start: archive files that were finished stay finished, and half uploads of them go."""
        remember_store(self._collection.warc_folder, self._store.url)
        await self._finish_archive()
        names = {packed_name(number).rpartition("/")[2] for number in self._collection.finished_files()}
        await self._work(self._store.sweep, "warc", names)
        self._latest = await self._work(latest_checkpoint, self._store, self._name)
        if self._latest is not None and self._interval_s is not None:
            self._next_s = self._now() + self._interval_s

    async def _work(self, call: Callable[..., Any], *arguments: Any) -> Any:
        """Calls in the thread, one call at a time; a cancelled caller leaves the call to its end."""
        # A thread cannot be cancelled: its call goes on, and `finish` waits for it.
        self._working = asyncio.ensure_future(self._in_thread(call, *arguments))
        self._working.add_done_callback(lambda done: done.cancelled() or done.exception())
        return await asyncio.shield(self._working)

    async def _finish_archive(self) -> None:
        """Finishes the open archive file, once no commit is half done."""
        while self._collection.warc.lengths:  # noqa: ASYNC110 -- no event tells
            await asyncio.sleep(POLL_S)
        self._collection.warc.finish_file()

    async def _upload_archives(self) -> None:
        """Uploads every archive file that is finished, and deletes it here once it was read back."""
        for number, length in self._collection.finished_files().items():
            source = warc_path(self._collection.warc_folder, number)
            scratch = self._collection.path / SCRATCH_FOLDER
            await self._work(require_store, self._store)
            what = await self._work(upload_warc, source, length, self._store, scratch, self._has_lease, self._choose)
            # Only after it was read back from the store: from now on that is the only copy.
            self._collection.release(number, what)
            self.left_out = left_out_counts(self._collection.state)
            self.bytes_sent += what.bytes
            self._log("archive-stored", file=source.name, bytes=what.bytes, of=what.gzip_bytes)

    async def _publish_checkpoint(self) -> None:
        # The order is what makes it safe. The checkpoint is of a moment after `positions` was read, so it has at least
        # those rows; and of one before the open archive file is finished, so every archive byte that it names is in a
        # finished file, and uploaded before the manifest.
        self._begun += 1
        copy = self._collection.path / COPY_FOLDER
        await self._work(shutil.rmtree, copy, True)
        covers_s, covers_unix = self._now(), time.time()
        positions = self._inbox.positions()
        await self._work(self._collection.state.checkpoint, copy)
        await self._finish_archive()
        await self._upload_archives()
        bare = Manifest(self._name, self._incarnation, self._begun, covers_unix, {}, positions)
        await self._work(require_store, self._store)
        latest, size = await self._work(publish_checkpoint, self._store, copy, bare, self._latest, self._has_lease)
        self._inbox.cover(positions)
        self._latest, self.published, self.covers_s = latest, self._begun, covers_s
        self.bytes_sent += size
        self._log("copied", copy=self.published, bytes=size, files=len(latest.files))
        if self._interval_s is not None:
            self._next_s = self._now() + self._interval_s
        await self._work(shutil.rmtree, copy, True)
        await self._work(delete_old_checkpoints, self._store, latest)


class AddedUrls:
    """URLs that the user adds to a shard with checkpoints: whoever brought them keeps them until one has them.

    They go into the shard's inbox, from there into its state, and from there into a checkpoint, which is asked for at
    once. A caller that cannot wait so long asks again with the same URLs; those under way are not put a second time.
    """

    def __init__(self, folder: Path, backup: ShardBackup) -> None:
        self._folder, self._backup = folder, backup
        self._checkpoints: dict[str, int] = {}  # URL → the checkpoint that will have it

    def __repr__(self) -> str:
        return f"<AddedUrls {len(self._checkpoints)}>"

    async def put(self, urls: Sequence[str]) -> None:
        """Returns when a checkpoint has them all; ClusterError if that takes too long: then the same again, later."""
        try:
            async with asyncio.timeout(ADDED_TIMEOUT_S):
                new = [url for url in urls if url not in self._checkpoints]
                if new:
                    # Through the same inbox as `lycosa add` to a crawl of one process: it has its own guarantee against
                    # crashes.
                    Inbox(self._folder).put(new)
                    while any((self._folder / INBOX_FOLDER).glob("*.urls")):  # noqa: ASYNC110 -- until a commit has them
                        await asyncio.sleep(ADDED_POLL_S)
                    self._checkpoints |= dict.fromkeys(new, self._backup.request_checkpoint())
                last = max((self._checkpoints[url] for url in urls), default=0)
                while self._backup.published < last:  # noqa: ASYNC110 -- no event tells
                    await asyncio.sleep(ADDED_POLL_S)
        except TimeoutError as error:
            raise ClusterError("no checkpoint of the shard has the URLs yet") from error
        for url in urls:
            self._checkpoints.pop(url, None)
