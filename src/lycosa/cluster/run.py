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
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import msgspec

from lycosa.cluster.assignment import Scheme
from lycosa.cluster.coordinator import Coordinator
from lycosa.cluster.locality import place_ranges
from lycosa.cluster.membership import NO_PLACES, load_cluster_state, missing_shards
from lycosa.cluster.ray.node import (
    addresses,
    connect,
    disconnect,
    places_of_machines,
    require_ray,
    start_local,
    stop_local,
)
from lycosa.crawl.parts import usual_parts
from lycosa.crawl.stats import CrawlStats, Totals
from lycosa.errors import ClusterError, LycosaError, SettingsError, StoreError
from lycosa.inspect import open_to_read, stats_of
from lycosa.settings import CrawlSettings, to_toml
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

LOCK, SETTINGS_FILE = "lycosa.lock", "lycosa.toml"
POLL_S = 0.25
AGENTS_TIMEOUT_S = 5.0  # so long is waited for agents that are being ended
END_TIMEOUT_S = 20.0  # agents that were told to end have this long

ShowStats = Callable[[CrawlStats], None]


class ShardedFolder:
    """The folder of a collection with shards, held by this process."""

    def __init__(self, path: Path) -> None:
        self.path = path
        if (whole := sharded_parent(path)) is not None:
            raise SettingsError(f"{path} is a shard of {whole}: say --into {whole}")
        if is_collection(path):
            raise SettingsError(f"{path} was crawled by one process: go on without --workers, or choose another folder")
        if path.exists() and not path.is_dir():
            raise SettingsError(f"{path} is a file: a collection is a folder")
        if path.exists() and not is_sharded(path) and any(entry.name != LOCK for entry in path.iterdir()):
            raise SettingsError(f"{path} is not empty and not a collection: choose another folder")
        try:
            (path / SHARDS_FOLDER).mkdir(parents=True, exist_ok=True)
            self._lock = os.open(path / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise StoreError(f"{path} cannot be made: {error.strerror}") from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(self._lock)
            raise SettingsError(f"{path} is in use by another process: wait for it to end") from error

    def found(
        self, settings: CrawlSettings, machines: Sequence[str] = (), places: Mapping[str, str] = NO_PLACES
    ) -> None:
        """Makes the shards of a new collection; of one that is there, as many as are wanted join or leave. `machines`
        are those that have files of their own, each as often as it has processors."""
        coordinator = Coordinator(self.path, settings)
        store = open_central_store(settings.store) if settings.store else None
        if store is not None:
            self._require_there(store, coordinator)
        if not coordinator.names:
            addresses = list(islice(cycle(machines or [""]), settings.workers))
            coordinator.found(addresses, scheme=Scheme(settings.assignment), places=places)
        else:
            coordinator.require_same(settings)
            coordinator.resize(settings.workers, machines, places)
        if store is not None:
            claim_store(store, coordinator.identity(), self.path)
            coordinator.uses(store.url)
        (self.path / f"{SETTINGS_FILE}.new").write_text(to_toml(settings))
        (self.path / f"{SETTINGS_FILE}.new").replace(self.path / SETTINGS_FILE)

    def _require_there(self, store: CentralStore, coordinator: Coordinator) -> None:
        """A store that has something of this collection must be there: a new one in its place would hide the loss."""
        if is_claimed_store(store):
            return
        files, is_known = 0, coordinator.has_used(store.url)
        for folder in shard_paths(self.path):
            if store.url in store_urls(folder / "warc"):
                is_known = True
                with CollectionStore.open(folder, read_only=True) as shard:
                    files += len(released_files(shard.state))
        if is_known:
            what = f"{files} archive file{'' if files == 1 else 's'}" if files else "what its shards brought"
            raise StoreError(f"{self.path} has {what} in {store.url}, which holds no store: is it mounted?")

    def shards(self) -> int:
        """How many shards it has; 0: it is new."""
        kept = load_cluster_state(self.path)
        return len(kept.after or kept.members)

    def seconds(self) -> float:
        """Seconds that it has been crawled for before."""
        if not any(is_collection(shard) for shard in (self.path / SHARDS_FOLDER).iterdir()):
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
        deadline = time.monotonic() + AGENTS_TIMEOUT_S
        for lock in (self.path / SHARDS_FOLDER).glob(f"*/{LOCK}"):
            while is_written(lock.parent) and time.monotonic() < deadline:
                time.sleep(0.02)

    def close(self) -> None:
        os.close(self._lock)


def require_one_process(path: Path) -> None:
    """Refuses to look again at the pages of shards, which only a crawl of all of them does."""
    whole = path if is_sharded(path) else sharded_parent(path)
    if whole is not None:
        is_it = "has shards" if whole == path else f"is a shard of {whole}"
        raise SettingsError(
            f"recrawl is for a collection of one process, and {path} {is_it}:"
            f" {recrawl_command(whole)} looks at its pages again"
        )


def recrawl_command(path: Path) -> str:
    """The command that looks at the pages of a collection again."""
    if not is_sharded(path):
        return f"lycosa recrawl {path}"
    of_machines = any(member.address for member in load_cluster_state(path).members)
    return f"lycosa {'cluster ' if of_machines else ''}crawl --into {path} --keep-fresh"


def lost_shards(path: Path) -> list[str]:
    """Says which folders of shards are gone; those of a crawl that runs are its own business."""
    return [] if is_written(path) else missing_shards(path)


class RunningCrawl:
    """A running crawl. `stop` once: gently; twice: at once."""

    def __init__(
        self, folder: ShardedFolder, settings: CrawlSettings, *, is_detached: bool = False, is_elastic: bool = False
    ) -> None:
        from lycosa.cluster.ray.coordinator import start_coordinator

        path = folder.path.absolute()
        self._coordinator: Any = start_coordinator(
            path, settings, folder.seconds(), is_detached=is_detached, is_elastic=is_elastic
        )
        self._stops = 0
        self._reason = ""

    def stop(self, reason: str) -> None:
        self._stops, self._reason = self._stops + 1, reason

    def close(self) -> None:
        """Ends the actors."""
        from lycosa.cluster.ray.coordinator import end_crawl

        end_crawl(self._coordinator)

    async def watch(self, show: ShowStats, tell: Callable[[str], None]) -> tuple[CrawlStats, str]:
        """Shows how it goes until it is over."""
        from lycosa.cluster.ray.client import await_answer
        from lycosa.cluster.ray.coordinator import CrawlReport

        told = 0
        seen = CrawlReport(stats=CrawlStats())
        deadline = float("inf")
        loop = asyncio.get_running_loop()
        while not seen.has_ended and self._stops < 2 and loop.time() < deadline:
            if self._reason:
                await await_answer(self._coordinator.stop.remote(self._reason), whom="the coordinator")
            try:
                seen = await await_answer(self._coordinator.seen.remote(), whom="the coordinator")
            except ClusterError:  # it is being started again
                await asyncio.sleep(POLL_S)
                continue
            show(seen.stats)
            for trouble in seen.troubles[told:]:
                tell(trouble)
            told = len(seen.troubles)
            is_bringing = any(report.unstored and not report.ended for report in seen.reports)
            if seen.ended_by and (is_bringing or deadline == float("inf")):
                deadline = loop.time() + END_TIMEOUT_S
            if seen.failure:
                break
            await asyncio.sleep(0 if seen.has_ended else POLL_S)
        if seen.failure:
            raise (StoreError if seen.is_store else ClusterError)(seen.failure)
        return seen.stats, seen.ended_by or self._reason


async def crawl_on_this_machine(
    into: Path,
    settings: CrawlSettings,
    *,
    show: ShowStats,
    tell: Callable[[str], None],
    on_start: Callable[[RunningCrawl], None] = lambda _: None,
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
        for words in missing_shards(into):
            tell(words)
        folder.found(settings)
        start_local(settings.workers)
        try:
            cluster = RunningCrawl(folder, settings)
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
        require_shareable_store(settings.store)
    parts = usual_parts(settings)
    await parts.downloader.close()
    await parts.resolver.close()


CALL_TIMEOUT_S = 10.0


class ClusterNode(msgspec.Struct, frozen=True):
    """One machine of a cluster."""

    address: str
    is_alive: bool
    processors: int


class CrawlStatus(msgspec.Struct, frozen=True):
    """One crawl on a cluster, and its shards as (name, pages, queued, silent or not)."""

    name: str
    stats: CrawlStats
    epoch: int
    shards: tuple[tuple[str, int, int], ...]
    troubles: tuple[str, ...]
    sent_bytes: int
    sent_messages: int
    stored_bytes: int = 0
    unstored: int = 0


class ClusterStatus(msgspec.Struct, frozen=True):
    """A cluster as it is now."""

    nodes: tuple[ClusterNode, ...]
    crawls: tuple[CrawlStatus, ...]


async def crawl_on_cluster(
    into: Path,
    settings: CrawlSettings,
    *,
    address: str,
    token: str,
    is_shared: bool,
    show: ShowStats,
    tell: Callable[[str], None],
    on_start: Callable[[RunningCrawl], None] = lambda _: None,
) -> tuple[CrawlStats, str]:
    """Crawls with the machines of the cluster at `address`: a shard a processor, unless the settings say how many."""
    require_ray("a cluster")
    await check_parts(settings)
    folder = ShardedFolder(into)
    try:
        connect(address, token)
        try:
            machines, places = addresses(), places_of_machines()
            is_elastic = not settings.workers and not is_shared
            count = settings.workers or folder.shards() or len(machines)
            settings = settings.replace(workers=count)
            _require_places(settings, places, is_shared=is_shared)
            folder.found(settings, [] if is_shared else machines, places)
            cluster = RunningCrawl(folder, settings, is_detached=True, is_elastic=is_elastic)
            on_start(cluster)
            try:
                return await cluster.watch(show, tell)
            finally:
                cluster.close()
        finally:
            disconnect()
    finally:
        folder.close()


def _require_places(settings: CrawlSettings, places: Mapping[str, str], *, is_shared: bool) -> None:
    """Places that nobody is in are a slip."""
    wanted = set(place_ranges(settings).values())
    if wanted and is_shared:
        raise SettingsError("--places needs every shard to stay on its machine: leave --shared out")
    if wanted and not wanted & set(places.values()):
        names = ", ".join(sorted(wanted))
        raise SettingsError(
            f"no machine of the cluster is in {names}: lycosa cluster start --place NAME says where one is"
        )


def cluster_status(address: str, token: str) -> ClusterStatus:
    """Machines and crawls of the cluster at `address`."""
    require_ray("a cluster")
    connect(address, token)
    try:
        import ray

        from lycosa.cluster.ray.coordinator import running_crawls

        nodes = tuple(
            ClusterNode(node["NodeManagerAddress"], node["Alive"], int(node["Resources"].get("CPU", 0)))
            for node in ray.nodes()  # type: ignore[no-untyped-call]
        )
        crawls = []
        for name, coordinator in running_crawls().items():
            seen = ray.get(coordinator.seen.remote(), timeout=CALL_TIMEOUT_S)
            crawls.append(
                CrawlStatus(
                    name=name,
                    stats=seen.stats,
                    epoch=seen.epoch,
                    shards=tuple((r.name, r.stats.pages, r.stats.queued) for r in seen.reports),
                    troubles=seen.troubles,
                    sent_bytes=sum(report.sent_bytes for report in seen.reports),
                    sent_messages=sum(report.sent_messages for report in seen.reports),
                    stored_bytes=sum(report.stored_bytes for report in seen.reports),
                    unstored=sum(report.unstored for report in seen.reports),
                )
            )
        return ClusterStatus(nodes, tuple(crawls))
    except LycosaError:
        raise
    except Exception as error:
        raise ClusterError(f"the cluster at {address} does not answer: {type(error).__name__}") from error
    finally:
        disconnect()


def resize_crawl(address: str, token: str, *, join: int = 0, leave: Sequence[str] = ()) -> list[str]:
    """Members join the crawl that runs on the cluster, wherever there is room, or leave it; returns its name."""
    require_ray("a cluster")
    connect(address, token)
    try:
        import ray

        from lycosa.cluster.ray.coordinator import running_crawls

        crawls = _require_any(running_crawls(), address)
        for coordinator in crawls.values():
            words = ray.get(coordinator.resize.remote(join, list(leave)), timeout=CALL_TIMEOUT_S)
            if words:
                raise ClusterError(words)
        return list(crawls)
    finally:
        disconnect()


def stop_crawls(address: str, token: str) -> int:
    """Ends all crawls of the cluster gently: each commits and can be gone on with; returns how many."""
    require_ray("a cluster")
    connect(address, token)
    try:
        import ray

        from lycosa.cluster.ray.coordinator import running_crawls

        crawls = _require_any(running_crawls(), address)
        for coordinator in crawls.values():
            ray.get(coordinator.stop.remote("stopped"), timeout=CALL_TIMEOUT_S)
        return len(crawls)
    finally:
        disconnect()


def _require_any(crawls: dict[str, Any], address: str) -> dict[str, Any]:
    if not crawls:
        raise ClusterError(f"no crawl is running on the cluster at {address}")
    return crawls
