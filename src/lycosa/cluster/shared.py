"""A crawl on a cluster of machines: the driver connects to Ray by address, begins or goes on with a crawl, and watches.

The coordinator lives on the machine of the driver, where `--into` is. A shard's files are on one machine, under the
same path, and stay there: its agent is started where they are, and if that machine is gone it waits for it. With
`is_shared` all machines see the same folder, and whoever is left takes a shard over.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from lycosa.cluster.local import LocalCluster, ShardedFolder, Show, check_parts
from lycosa.cluster.places import ranges_of
from lycosa.cluster.ray_node import addresses, connect, disconnect, places_of_machines, require_ray
from lycosa.engine.stats import CrawlStats
from lycosa.errors import ClusterError, LycosaError, SettingsError
from lycosa.settings import CrawlSettings

CALL_S = 10.0


class Node(msgspec.Struct, frozen=True):
    """One machine of a cluster."""

    address: str
    is_alive: bool
    processors: int


class Crawling(msgspec.Struct, frozen=True):
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


class Status(msgspec.Struct, frozen=True):
    """A cluster as it is now."""

    nodes: tuple[Node, ...]
    crawls: tuple[Crawling, ...]


async def crawl(
    into: Path,
    settings: CrawlSettings,
    *,
    address: str,
    token: str,
    is_shared: bool,
    show: Show,
    tell: Callable[[str], None],
    on_start: Callable[[LocalCluster], None] = lambda _: None,
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
            settings = settings.model_copy(update={"workers": count})
            _require_places(settings, places, is_shared=is_shared)
            folder.found(settings, [] if is_shared else machines, places)
            cluster = LocalCluster(folder, settings, is_detached=True, is_elastic=is_elastic)
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
    wanted = set(ranges_of(settings).values())
    if wanted and is_shared:
        raise SettingsError("--places needs every shard to stay on its machine: leave --shared out")
    if wanted and not wanted & set(places.values()):
        names = ", ".join(sorted(wanted))
        raise SettingsError(
            f"no machine of the cluster is in {names}: lycosa cluster start --place NAME says where one is"
        )


def status(address: str, token: str) -> Status:
    """Machines and crawls of the cluster at `address`."""
    require_ray("a cluster")
    connect(address, token)
    try:
        import ray

        from lycosa.cluster.actors import running_crawls

        nodes = tuple(
            Node(node["NodeManagerAddress"], node["Alive"], int(node["Resources"].get("CPU", 0)))
            for node in ray.nodes()  # type: ignore[no-untyped-call]
        )
        crawls = []
        for name, coordinator in running_crawls().items():
            seen = ray.get(coordinator.seen.remote(), timeout=CALL_S)
            crawls.append(
                Crawling(
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
        return Status(nodes, tuple(crawls))
    except LycosaError:
        raise
    except Exception as error:
        raise ClusterError(f"the cluster at {address} does not answer: {type(error).__name__}") from error
    finally:
        disconnect()


def resize(address: str, token: str, *, join: int = 0, leave: Sequence[str] = ()) -> list[str]:
    """Members join the crawl that runs on the cluster, wherever there is room, or leave it; returns its name."""
    require_ray("a cluster")
    connect(address, token)
    try:
        import ray

        from lycosa.cluster.actors import running_crawls

        crawls = _require_any(running_crawls(), address)
        for coordinator in crawls.values():
            words = ray.get(coordinator.resize.remote(join, list(leave)), timeout=CALL_S)
            if words:
                raise ClusterError(words)
        return list(crawls)
    finally:
        disconnect()


def stop(address: str, token: str) -> int:
    """Ends all crawls of the cluster gently: each commits and can be gone on with; returns how many."""
    require_ray("a cluster")
    connect(address, token)
    try:
        import ray

        from lycosa.cluster.actors import running_crawls

        crawls = _require_any(running_crawls(), address)
        for coordinator in crawls.values():
            ray.get(coordinator.stop.remote("stopped"), timeout=CALL_S)
        return len(crawls)
    finally:
        disconnect()


def _require_any(crawls: dict[str, Any], address: str) -> dict[str, Any]:
    if not crawls:
        raise ClusterError(f"no crawl is running on the cluster at {address}")
    return crawls
