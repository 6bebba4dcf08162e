"""Cluster: many shards of one crawl, each with its own agent, and a coordinator that decides who owns what.

Every host belongs to one member of the crawl (`assignment`); URLs of other members travel to them in numbered rows and
are never lost (`outbox`, `exchange`); hosts change their owner without being asked by two (`transfer`); an agent that
nobody hears makes no request (`leases`); a shard whose machine is gone is restored (`checkpoints`). Only `cluster.ray`
knows Ray, which is the extra `lycosa[cluster]` and imported where it is needed; all else runs in one process as well.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lycosa.cluster.checkpoints import fetch_copies, unpack_archive
    from lycosa.cluster.locality import read_places_file
    from lycosa.cluster.membership import lost_shards, recrawl_command, require_one_process
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

# Name → module. Each is imported when it is first used: `lycosa status`, which asks for lost shards, does not wait
# for what a crawl needs.
_MODULES = {
    "fetch_copies": "checkpoints",
    "unpack_archive": "checkpoints",
    "read_places_file": "locality",
    "lost_shards": "membership",
    "recrawl_command": "membership",
    "require_one_process": "membership",
    "cluster_status": "ray",
    "host_and_port": "ray",
    "node_command": "ray",
    "prepare_environment": "ray",
    "require_own_address": "ray",
    "require_ray": "ray",
    "resize_crawl": "ray",
    "stop_crawls": "ray",
    "RunningCrawl": "run",
    "crawl_on_cluster": "run",
    "crawl_on_this_machine": "run",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'lycosa.cluster' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"lycosa.cluster.{_MODULES[name]}"), name)
    return value


__all__ = [
    "RunningCrawl", "cluster_status", "crawl_on_cluster", "crawl_on_this_machine", "fetch_copies", "host_and_port",
    "lost_shards", "node_command", "prepare_environment", "read_places_file", "recrawl_command",
    "require_one_process", "require_own_address", "require_ray", "resize_crawl", "stop_crawls", "unpack_archive",
]  # fmt: skip
