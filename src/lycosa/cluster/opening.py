"""Opening a shard's folder: restored from the central store if need be, waited for while another process holds it."""

import asyncio
import time
from pathlib import Path

from lycosa import __version__
from lycosa.cluster.homes import make_home
from lycosa.cluster.keeper import InThread
from lycosa.errors import LycosaError, StoreError
from lycosa.settings import CrawlSettings
from lycosa.store import Collection
from lycosa.store.central import CentralStore

LOCK_PATIENCE_S = 60.0  # a killed process holds its folder a moment longer, one that is cut off until it ends
STORE_PATIENCE_S = 60.0  # a store may be away for a moment
LOCK_AGAIN_S, STORE_AGAIN_S = 0.5, 10.0


async def find_home(
    folder: Path, shard: str, generation: int, store: CentralStore, warcs: range, in_thread: InThread
) -> None:
    """The shard's folder, restored if need be; a store that does not answer is asked again for a while."""
    deadline = time.monotonic() + STORE_PATIENCE_S
    while True:
        try:
            await in_thread(make_home, folder, shard, generation, store, warcs)
            return
        except StoreError:
            if time.monotonic() > deadline:
                raise
            await asyncio.sleep(STORE_AGAIN_S)


async def open_shard(folder: Path, warc_bytes: int, warc_first: int) -> Collection:
    """The shard's collection, made or gone on with, once nobody else has it."""
    info = {"software": f"lycosa/{__version__}", "format": "WARC File Format 1.1"}
    deadline = time.monotonic() + LOCK_PATIENCE_S
    while True:
        try:
            return Collection.create(folder, warc_info=info, warc_bytes=warc_bytes, warc_first=warc_first)
        except LycosaError as error:
            if "in use" not in str(error) or time.monotonic() > deadline:
                raise
            await asyncio.sleep(LOCK_AGAIN_S)


def shard_settings(settings: CrawlSettings) -> CrawlSettings:
    """The settings of one shard: limits over the whole are the coordinator's to watch."""
    return settings.model_copy(update={"pages": None, "bytes": None, "time_s": None})
