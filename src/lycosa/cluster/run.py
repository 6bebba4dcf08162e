"""Crawls with several shards: on this machine (`--workers N`) or on a cluster of machines.

The driver holds the folder, starts or joins Ray, starts the coordinator, watches, and passes on Ctrl-C. The folder has
the settings, `cluster.json` and one collection per shard; the same command goes on with the same shards. On a cluster a
shard's files stay on one machine; with `is_shared` all machines see the same folder. Ray is imported lazily: it is the
extra `lycosa[cluster]`.
"""

import asyncio
import fcntl
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import msgspec

from lycosa.api import parts_from_settings
from lycosa.cluster.assignment import Scheme, place_ranges
from lycosa.cluster.coordinator import Coordinator
from lycosa.cluster.membership import NO_PLACES, load_cluster_state, missing_shards
from lycosa.cluster.ray import (
    connect,
    disconnect,
    machine_addresses,
    machine_places,
    require_ray,
    start_local,
    stop_local,
)
from lycosa.cluster.recrawl import divide_recrawl
from lycosa.crawl import CrawlStats, Recrawl, Totals
from lycosa.errors import ClusterError, SettingsError, StoreError
from lycosa.inspect import open_to_read, stats_of
from lycosa.settings import CREDENTIALS_FILE, CrawlSettings, save_secrets, save_settings, take_out_secrets
from lycosa.store import (
    SHARDS_FOLDER,
    CentralStore,
    CollectionStore,
    claim_store,
    is_claimed_store,
    is_collection,
    is_sharded,
    is_written,
    open_central_store,
    released_files,
    require_shareable_store,
    shard_paths,
    sharded_parent,
    store_urls,
)

LOCK_FILE = "lycosa.lock"
FIRST_FILES = (LOCK_FILE, CREDENTIALS_FILE)  # of a collection whose creation was interrupted
POLL_S = 0.25
AGENTS_TIMEOUT_S = 5.0  # agents that are being ended are waited for so long
END_TIMEOUT_S = 20.0  # agents that were told to end have so long

ShowStats = Callable[[CrawlStats], None]
Tell = Callable[[str], None]


class ShardedFolder:
    """The folder of a collection with shards, locked by this process."""

    def __init__(self, path: Path) -> None:
        self.path = path
        if (whole := sharded_parent(path)) is not None:
            raise SettingsError(f"{path} is a shard of {whole}: say --into {whole}")
        if is_collection(path):
            raise SettingsError(f"{path} was crawled by one process: go on without --workers, or choose another folder")
        if path.exists() and not path.is_dir():
            raise SettingsError(f"{path} is a file: a collection is a folder")
        if path.exists() and not is_sharded(path) and any(entry.name not in FIRST_FILES for entry in path.iterdir()):
            raise SettingsError(f"{path} is not empty and not a collection: choose another folder")
        try:
            (path / SHARDS_FOLDER).mkdir(parents=True, exist_ok=True)
            self._lock = os.open(path / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise StoreError(f"{path} cannot be made: {error.strerror}") from error
        try:
            # One driver at a time: two coordinators would give incarnations twice.
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(self._lock)
            raise SettingsError(f"{path} is in use by another process: wait for it to end") from error

    def hide_secrets(self, settings: CrawlSettings) -> CrawlSettings:
        """The settings with the names of secrets in place of secrets, which the shards read by themselves: nothing that
        goes through Ray holds one."""
        taken = take_out_secrets(settings, self.path)
        if settings.has_sessions:
            from lycosa.sessions import require_secrets  # lazy: for crawls that send credentials

            require_secrets(taken.settings, self.path, taken.secrets)
        save_secrets(self.path, taken.secrets)
        return taken.settings

    def prepare(
        self, settings: CrawlSettings, machines: Sequence[str] = (), places: Mapping[str, str] = NO_PLACES
    ) -> None:
        """Makes the shards of a new collection; in one that is there, as many as needed join or leave. `machines` are
        those that have files of their own, each as often as it has processors."""
        coordinator = Coordinator(self.path, settings)
        store = open_central_store(settings.store) if settings.store else None
        if store is not None:
            self._require_former_store(store, coordinator)
        if not coordinator.names:
            addresses = list(islice(cycle(machines or [""]), settings.workers))
            coordinator.create_members(addresses, scheme=Scheme(settings.assignment), places=places)
        else:
            coordinator.require_same_assignment(settings)
            coordinator.resize(settings.workers, machines, places)
        if store is not None:
            claim_store(store, coordinator.identity(), self.path)
            coordinator.register_store(store.url)
        # Last, and as a whole: settings in the folder are those of shards that exist.
        save_settings(self.path, settings)

    def _require_former_store(self, store: CentralStore, coordinator: Coordinator) -> None:
        """A store that has something of this collection must be there: a new one in its place would hide the loss."""
        if is_claimed_store(store):
            return
        files, is_known = 0, coordinator.has_used_store(store.url)
        for folder in shard_paths(self.path):
            if store.url in store_urls(folder / "warc"):
                is_known = True
                with CollectionStore.open(folder, read_only=True) as shard:
                    files += len(released_files(shard.state))
        if is_known:
            what = f"{files} archive file{'' if files == 1 else 's'}" if files else "what its shards brought"
            raise StoreError(f"{self.path} has {what} in {store.url}, which holds no store: is it mounted?")

    def shard_count(self) -> int:
        """The number of its shards; 0: it is new."""
        state = load_cluster_state(self.path)
        return len(state.next_members or state.members)

    def seconds(self) -> float:
        """Seconds that it has been crawled for before."""
        if not any(is_collection(shard) for shard in (self.path / SHARDS_FOLDER).iterdir()):
            return 0.0
        with open_to_read(self.path) as collection:
            return stats_of(collection).seconds

    def final_stats(self, reported: CrawlStats) -> CrawlStats:
        """The last report of a crawl, with the counts on disk: agents that were ended at once have committed since, or
        lost what they had not. As reported, where that cannot be read."""
        self._wait_for_agents()
        try:
            with open_to_read(self.path) as collection:
                stored = stats_of(collection)
        except (SettingsError, StoreError):
            return reported
        counts = {name: getattr(stored, name) for name in Totals.__struct_fields__ if name != "seconds"}
        for name in ("pages", "requests", "bytes"):
            more = getattr(stored, name) - getattr(reported, name)
            counts[f"run_{name}"] = max(0, getattr(reported, f"run_{name}") + more)
        return msgspec.structs.replace(reported, **counts, is_running=False)

    def _wait_for_agents(self) -> None:
        """Waits until nobody writes the shards any more."""
        deadline = time.monotonic() + AGENTS_TIMEOUT_S
        for lock in (self.path / SHARDS_FOLDER).glob(f"*/{LOCK_FILE}"):
            while is_written(lock.parent) and time.monotonic() < deadline:
                time.sleep(0.02)

    def close(self) -> None:
        os.close(self._lock)


class RunningCrawl:
    """A running crawl as its driver sees it. `stop` once ends it gently, twice at once."""

    def __init__(
        self,
        folder: ShardedFolder,
        settings: CrawlSettings,
        *,
        is_detached: bool = False,
        is_elastic: bool = False,
        recrawl: Recrawl | None = None,
    ) -> None:
        from lycosa.cluster.ray.coordinator import start_coordinator  # lazy: it needs Ray, which runs by now

        path, seconds = folder.path.absolute(), folder.seconds()
        parts = divide_recrawl(path, recrawl, settings) if recrawl is not None else None
        self._coordinator: Any = start_coordinator(
            path, settings, seconds, is_detached=is_detached, is_elastic=is_elastic, recrawl=parts
        )
        self._stops = 0
        self._reason = ""

    def stop(self, reason: str) -> None:
        self._stops, self._reason = self._stops + 1, reason

    def close(self) -> None:
        """Ends the actors."""
        from lycosa.cluster.ray.coordinator import end_crawl  # lazy: it needs Ray

        end_crawl(self._coordinator)

    async def watch(self, show: ShowStats, tell: Tell) -> tuple[CrawlStats, str]:
        """Shows its progress until it is over; returns its last stats and what ended it."""
        from lycosa.cluster.ray.agent import await_answer  # lazy: it needs Ray
        from lycosa.cluster.ray.coordinator import CrawlReport  # lazy: it needs Ray

        told = 0
        crawl = CrawlReport(stats=CrawlStats())
        deadline = float("inf")
        loop = asyncio.get_running_loop()
        while not crawl.has_ended and self._stops < 2 and loop.time() < deadline:
            if self._reason:
                await await_answer(self._coordinator.stop.remote(self._reason), whom="the coordinator")
            try:
                crawl = await await_answer(self._coordinator.crawl_report.remote(), whom="the coordinator")
            except ClusterError:  # it is being started again
                await asyncio.sleep(POLL_S)
                continue
            show(crawl.stats)
            for trouble in crawl.troubles[told:]:
                tell(trouble)
            told = len(crawl.troubles)
            # An agent that ends may have gigabytes to upload: for as long as it does, it is not given up.
            is_uploading = any(report.unstored and not report.ended for report in crawl.reports)
            if crawl.ended_by and (is_uploading or deadline == float("inf")):
                deadline = loop.time() + END_TIMEOUT_S
            if crawl.failure:
                raise (StoreError if crawl.is_store else ClusterError)(crawl.failure)
            await asyncio.sleep(0 if crawl.has_ended else POLL_S)
        return crawl.stats, crawl.ended_by or self._reason


async def crawl_on_this_machine(
    into: Path,
    settings: CrawlSettings,
    *,
    show: ShowStats,
    tell: Tell,
    on_start: Callable[[RunningCrawl], None] = lambda _: None,
    recrawl: Recrawl | None = None,
) -> tuple[CrawlStats, str]:
    """Crawls with `settings.workers` processes, or visits pages again; returns the stats and what ended the crawl."""
    require_ray("a crawl with --workers")
    if settings.places:
        raise SettingsError(
            "--places is for a cluster, whose nodes say where they are: lycosa cluster start --place NAME"
        )
    await _check_parts(settings)
    with closing(ShardedFolder(into)) as folder:
        for sentence in missing_shards(into):
            tell(sentence)
        settings = folder.hide_secrets(settings)
        folder.prepare(settings)
        start_local(settings.workers)
        try:
            crawl = RunningCrawl(folder, settings, recrawl=recrawl)
            on_start(crawl)
            reported, ended_by = await crawl.watch(show, tell)
        finally:
            stop_local()
        return folder.final_stats(reported), ended_by


async def crawl_on_cluster(
    into: Path,
    settings: CrawlSettings,
    *,
    address: str,
    token: str,
    is_shared: bool,
    show: ShowStats,
    tell: Tell,
    on_start: Callable[[RunningCrawl], None] = lambda _: None,
) -> tuple[CrawlStats, str]:
    """Crawls with the machines of the cluster at `address`: a shard a processor, unless the settings say how many.

    The coordinator runs on the machine of the driver, where `into` is. A shard's files are on one machine, under the
    same path, and stay there; with `is_shared` all machines see the same folder, and any of them takes a shard over.
    """
    require_ray("a cluster")
    await _check_parts(settings)
    with closing(ShardedFolder(into)) as folder:
        connect(address, token)
        try:
            machines, places = machine_addresses(), machine_places()
            is_elastic = not settings.workers and not is_shared
            settings = settings.replace(workers=settings.workers or folder.shard_count() or len(machines))
            _check_places(settings, places, is_shared=is_shared)
            settings = folder.hide_secrets(settings)
            folder.prepare(settings, [] if is_shared else machines, places)
            # Detached: it goes on when the driver's connection is lost, and the same command finds it again.
            crawl = RunningCrawl(folder, settings, is_detached=True, is_elastic=is_elastic)
            on_start(crawl)
            try:
                return await crawl.watch(show, tell)
            finally:
                crawl.close()
        finally:
            disconnect()


async def _check_parts(settings: CrawlSettings) -> None:
    """Refuses settings that name a missing part, or that nobody would read, before anything is made."""
    if settings.letters and settings.assignment != "letter-sum":
        raise SettingsError(f"letters are for --assignment letter-sum, not {settings.assignment}: leave them out")
    if settings.store:
        require_shareable_store(settings.store)
    parts = parts_from_settings(settings)
    await parts.downloader.close()
    await parts.resolver.close()


def _check_places(settings: CrawlSettings, places: Mapping[str, str], *, is_shared: bool) -> None:
    """Refuses places in which there is no machine: they are a slip."""
    wanted = set(place_ranges(settings).values())
    if wanted and is_shared:
        raise SettingsError("--places needs every shard to stay on its machine: leave --shared out")
    if wanted and not wanted & set(places.values()):
        names = ", ".join(sorted(wanted))
        raise SettingsError(
            f"no machine of the cluster is in {names}: lycosa cluster start --place NAME says where one is"
        )
