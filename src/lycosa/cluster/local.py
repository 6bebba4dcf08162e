"""`--workers N`: a crawl of several shards on one machine. The driver starts Ray, watches, and hands on Ctrl-C.

The folder has the settings, `cluster.json` and one collection a shard. The same command goes on with the same shards.
"""

import asyncio
import fcntl
import os
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import msgspec

from lycosa.cluster.assignment import Scheme
from lycosa.cluster.coordinator import Coordinator
from lycosa.cluster.kept import load, missing
from lycosa.cluster.membership import NOWHERE
from lycosa.cluster.ray_node import require_ray, start_local, stop_local
from lycosa.engine.parts import usual_parts
from lycosa.engine.stats import CrawlStats, Totals
from lycosa.engine.views import open_to_read, stats_of
from lycosa.errors import ClusterError, SettingsError, StoreError
from lycosa.settings import CrawlSettings
from lycosa.settings.toml import to_toml
from lycosa.store import Collection, is_collection, is_written
from lycosa.store.central import CentralStore, claim, is_claimed, open_store, require_shareable
from lycosa.store.joined import SHARDS, is_sharded, shard_paths, sharded_above
from lycosa.store.released import store_urls, stored

LOCK, SETTINGS_FILE = "lycosa.lock", "lycosa.toml"
LOOK_S = 0.25
WRITTEN_S = 5.0  # so long is waited for agents that are being ended
END_S = 20.0  # agents that were told to end have this long

Show = Callable[[CrawlStats], None]


class ShardedFolder:
    """The folder of a collection with shards, held by this process."""

    def __init__(self, path: Path) -> None:
        self.path = path
        if (whole := sharded_above(path)) is not None:
            raise SettingsError(f"{path} is a shard of {whole}: say --into {whole}")
        if is_collection(path):
            raise SettingsError(f"{path} was crawled by one process: go on without --workers, or choose another folder")
        if path.exists() and not path.is_dir():
            raise SettingsError(f"{path} is a file: a collection is a folder")
        if path.exists() and not is_sharded(path) and any(entry.name != LOCK for entry in path.iterdir()):
            raise SettingsError(f"{path} is not empty and not a collection: choose another folder")
        try:
            (path / SHARDS).mkdir(parents=True, exist_ok=True)
            self._lock = os.open(path / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise StoreError(f"{path} cannot be made: {error.strerror}") from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(self._lock)
            raise SettingsError(f"{path} is in use by another process: wait for it to end") from error

    def found(self, settings: CrawlSettings, machines: Sequence[str] = (), places: Mapping[str, str] = NOWHERE) -> None:
        """Makes the shards of a new collection; of one that is there, as many as are wanted join or leave. `machines`
        are those that have files of their own, each as often as it has processors."""
        coordinator = Coordinator(self.path, settings)
        store = open_store(settings.store) if settings.store else None
        if store is not None:
            self._require_there(store, coordinator)
        if not coordinator.names:
            addresses = list(islice(cycle(machines or [""]), settings.workers))
            coordinator.found(addresses, scheme=Scheme(settings.assignment), places=places)
        else:
            coordinator.require_same(settings)
            coordinator.resize(settings.workers, machines, places)
        if store is not None:
            claim(store, coordinator.identity(), self.path)
            coordinator.uses(store.url)
        (self.path / f"{SETTINGS_FILE}.new").write_text(to_toml(settings))
        (self.path / f"{SETTINGS_FILE}.new").replace(self.path / SETTINGS_FILE)

    def _require_there(self, store: CentralStore, coordinator: Coordinator) -> None:
        """A store that has something of this collection must be there: a new one in its place would hide the loss."""
        if is_claimed(store):
            return
        files, is_known = 0, coordinator.has_used(store.url)
        for folder in shard_paths(self.path):
            if store.url in store_urls(folder / "warc"):
                is_known = True
                with Collection.open(folder, read_only=True) as shard:
                    files += len(stored(shard.state))
        if is_known:
            what = f"{files} archive file{'' if files == 1 else 's'}" if files else "what its shards brought"
            raise StoreError(f"{self.path} has {what} in {store.url}, which holds no store: is it mounted?")

    def shards(self) -> int:
        """How many shards it has; 0: it is new."""
        kept = load(self.path)
        return len(kept.after or kept.members)

    def seconds(self) -> float:
        """Seconds that it has been crawled for before."""
        if not any(is_collection(shard) for shard in (self.path / SHARDS).iterdir()):
            return 0.0
        with open_to_read(self.path) as collection:
            return stats_of(collection).seconds

    def as_kept(self, told: CrawlStats) -> CrawlStats:
        """What was told of a crawl that is over, with the counts that are kept: agents that were ended at once have
        committed since, or lost what they had not. As it was told where that cannot be read."""
        self._wait_for_agents()
        try:
            with open_to_read(self.path) as collection:
                kept = stats_of(collection)
        except (SettingsError, StoreError):
            return told
        since = {f"run_{name}": getattr(kept, name) - getattr(told, name) for name in ("pages", "requests", "bytes")}
        counts = {name: getattr(kept, name) for name in Totals.__struct_fields__ if name != "seconds"}
        runs = {name: max(0, getattr(told, name) + more) for name, more in since.items()}
        return msgspec.structs.replace(told, **counts, **runs, is_running=False)

    def _wait_for_agents(self) -> None:
        """Until nobody writes the shards any more, or for so long."""
        deadline = time.monotonic() + WRITTEN_S
        for lock in (self.path / SHARDS).glob(f"*/{LOCK}"):
            while is_written(lock.parent) and time.monotonic() < deadline:
                time.sleep(0.02)

    def close(self) -> None:
        os.close(self._lock)


def require_one_process(path: Path) -> None:
    """Refuses to look again at the pages of shards, which only a crawl of all of them does."""
    whole = path if is_sharded(path) else sharded_above(path)
    if whole is not None:
        is_it = "has shards" if whole == path else f"is a shard of {whole}"
        raise SettingsError(
            f"recrawl is for a collection of one process, and {path} {is_it}:"
            f" {looking_again(whole)} looks at its pages again"
        )


def looking_again(path: Path) -> str:
    """The command that looks at the pages of a collection again."""
    if not is_sharded(path):
        return f"lycosa recrawl {path}"
    of_machines = any(member.address for member in load(path).members)
    return f"lycosa {'cluster ' if of_machines else ''}crawl --into {path} --keep-fresh"


def lost_shards(path: Path) -> list[str]:
    """Says which folders of shards are gone; those of a crawl that runs are its own business."""
    return [] if is_written(path) else missing(path)


class LocalCluster:
    """A running crawl. `stop` once: gently; twice: at once."""

    def __init__(
        self, folder: ShardedFolder, settings: CrawlSettings, *, is_detached: bool = False, is_elastic: bool = False
    ) -> None:
        from lycosa.cluster.actors import make_coordinator

        path = folder.path.absolute()
        self._coordinator: Any = make_coordinator(
            path, settings, folder.seconds(), is_detached=is_detached, is_elastic=is_elastic
        )
        self._stops = 0
        self._reason = ""

    def stop(self, reason: str) -> None:
        self._stops, self._reason = self._stops + 1, reason

    def close(self) -> None:
        """Ends the actors."""
        from lycosa.cluster.actors import end_crawl

        end_crawl(self._coordinator)

    async def watch(self, show: Show, tell: Callable[[str], None]) -> tuple[CrawlStats, str]:
        """Shows how it goes until it is over."""
        from lycosa.cluster.actors import Seen
        from lycosa.cluster.ray_lines import answer

        told = 0
        seen = Seen(stats=CrawlStats())
        deadline = float("inf")
        loop = asyncio.get_running_loop()
        while not seen.has_ended and self._stops < 2 and loop.time() < deadline:
            if self._reason:
                await answer(self._coordinator.stop.remote(self._reason), whom="the coordinator")
            try:
                seen = await answer(self._coordinator.seen.remote(), whom="the coordinator")
            except ClusterError:  # it is being started again
                await asyncio.sleep(LOOK_S)
                continue
            show(seen.stats)
            for trouble in seen.troubles[told:]:
                tell(trouble)
            told = len(seen.troubles)
            is_bringing = any(report.unstored and not report.ended for report in seen.reports)
            if seen.ended_by and (is_bringing or deadline == float("inf")):
                deadline = loop.time() + END_S
            if seen.failure:
                break
            await asyncio.sleep(0 if seen.has_ended else LOOK_S)
        if seen.failure:
            raise (StoreError if seen.is_store else ClusterError)(seen.failure)
        return seen.stats, seen.ended_by or self._reason


async def crawl(
    into: Path,
    settings: CrawlSettings,
    *,
    show: Show,
    tell: Callable[[str], None],
    on_start: Callable[[LocalCluster], None] = lambda _: None,
) -> tuple[CrawlStats, str]:
    """Crawls with `settings.workers` processes; returns how it went and what ended it."""
    require_ray("a crawl with --workers")
    if settings.places:
        raise SettingsError(
            "--places is for a cluster, whose nodes say where they are: lycosa cluster start --place NAME"
        )
    await check_parts(settings)
    folder = ShardedFolder(into)
    try:
        for words in missing(into):
            tell(words)
        folder.found(settings)
        start_local(settings.workers)
        try:
            cluster = LocalCluster(folder, settings)
            on_start(cluster)
            told, ended_by = await cluster.watch(show, tell)
        finally:
            stop_local()
        return folder.as_kept(told), ended_by
    finally:
        folder.close()


async def check_parts(settings: CrawlSettings) -> None:
    """Settings that name a part which is not there, or that nobody would ask, leave nothing behind."""
    if settings.letters and settings.assignment != "letter-sum":
        raise SettingsError(f"letters are for --assignment letter-sum, not {settings.assignment}: leave them out")
    if settings.store:
        require_shareable(settings.store)
    parts = usual_parts(settings)
    await parts.downloader.close()
    await parts.resolver.close()
