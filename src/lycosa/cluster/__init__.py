"""Cluster: many shards of one crawl, each with its own agent, and a coordinator that decides who owns what.

Every host belongs to one member of the crawl (`assignment`); URLs of other members travel to them in numbered rows and
are never lost (`outbox`, `exchange`); hosts change their owner without being asked by two (`transfer`); an agent that
nobody hears makes no request (`leases`); a shard whose machine is gone is restored (`checkpoints`). Only `cluster.ray`
knows Ray, which is the extra `lycosa[cluster]` and imported where it is needed; all else runs in one process as well.
"""

from typing import TYPE_CHECKING

from lycosa.doors import open_lazily

if TYPE_CHECKING:
    from lycosa.cluster.assignment import read_places_file
    from lycosa.cluster.checkpoints import fetch_copies, unpack_archive
    from lycosa.cluster.membership import lost_shards, recrawl_command, require_whole_collection
    from lycosa.cluster.ray import (
        cluster_status,
        host_and_port,
        node_command,
        prepare_environment,
        require_own_address,
        require_ray,
        resize_crawl,
        stop_crawls,
    )
    from lycosa.cluster.run import RunningCrawl, crawl_on_cluster, crawl_on_this_machine
    from lycosa.cluster.status_file import CoordinatorStatus, ShardReport, load_coordinator_status

# Name → module. Each is imported when it is first used: `lycosa status`, which asks for lost shards, does not wait
# for what a crawl needs.
__getattr__ = open_lazily(
    __name__,
    {
        "assignment": "read_places_file",
        "checkpoints": "fetch_copies unpack_archive",
        "membership": "lost_shards recrawl_command require_whole_collection",
        "ray": "cluster_status host_and_port node_command prepare_environment require_own_address require_ray "
        "resize_crawl stop_crawls",
        "run": "RunningCrawl crawl_on_cluster crawl_on_this_machine",
        "status_file": "CoordinatorStatus ShardReport load_coordinator_status",
    },
)


__all__ = [
    "CoordinatorStatus", "RunningCrawl", "ShardReport", "cluster_status", "crawl_on_cluster",
    "crawl_on_this_machine", "fetch_copies", "host_and_port", "load_coordinator_status", "lost_shards",
    "node_command", "prepare_environment", "read_places_file", "recrawl_command", "require_own_address",
    "require_ray", "require_whole_collection", "resize_crawl", "stop_crawls", "unpack_archive",
]  # fmt: skip
