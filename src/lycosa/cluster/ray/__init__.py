"""Ray: started and stopped on this machine, joined by address, and asked which machines and crawls a cluster has.

One named interface, token authentication on, no usage statistics, no dashboard, a small object store: URLs travel in
messages, documents do not travel at all. Ray is the extra `lycosa[cluster]`; `require_ray` says how to install it. This
module imports it lazily, `ray.agent` and `ray.coordinator` at the top: they are imported where Ray runs already.
"""

import contextlib
import errno
import importlib.util
import json
import logging
import os
import secrets
import shutil
import socket
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec

from lycosa.crawl import CrawlStats
from lycosa.errors import ClusterError, LycosaError, MissingExtra, SettingsError, first_line

NAMESPACE = "lycosa"
LOOPBACK = "127.0.0.1"
CONNECT_TIMEOUT_S = 3.0
# A call over a connection that was cut never returns: one that takes longer has failed.
CALL_TIMEOUT_S = 10.0
MAX_PORT = 65535
# Nothing of ours is in it: URLs travel as arguments of calls, documents not at all.
OBJECT_STORE_BYTES = 80 << 20  # Ray's least is 75 MB
PLACE_RESOURCE = "place:"  # a node tells its place by a resource of that name
ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_AUTH_MODE": "token",
    "RAY_DEDUP_LOGS": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    # A node that is gone is noticed within some three seconds instead of fifteen.
    "RAY_health_check_initial_delay_ms": "1000",
    "RAY_health_check_period_ms": "1000",
    "RAY_health_check_timeout_ms": "1000",
    "RAY_health_check_failure_threshold": "3",
}

_folder = ""  # of Ray's sockets and logs, for as long as it runs
# Ray prints on standard output, which is for what the user asked for: while it runs, that goes to standard error.
_redirected = contextlib.ExitStack()


def require_ray(what: str) -> None:
    """Raises `MissingExtra` where Ray is not installed."""
    if importlib.util.find_spec("ray") is None:
        raise MissingExtra.of("cluster", what=what)


def prepare_environment(token: str | None = None) -> None:
    """Sets what every process of a cluster needs to find in its environment, before Ray is imported."""
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    # Without a token anyone who reaches the port could run code here.
    os.environ.setdefault("RAY_AUTH_TOKEN", token or secrets.token_hex(32))


def start_local(workers: int) -> None:
    """Starts Ray for this process alone: on loopback only, and it ends with the process, however that ends."""
    prepare_environment()
    # Read when Ray is imported: without it Ray takes the machine's own address for 127.0.0.1, and all interfaces.
    os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    global _folder
    _folder = tempfile.mkdtemp(prefix="lycosa-ray-")
    try:
        _init(
            address="local",
            num_cpus=workers + 1,
            num_gpus=0,
            include_dashboard=False,
            object_store_memory=OBJECT_STORE_BYTES,
            _node_ip_address=LOOPBACK,
            _temp_dir=_folder,
            configure_logging=True,
        )
    except Exception as error:  # whatever Ray stumbles over, it is one sentence for the user
        raise ClusterError(f"Ray could not be started: {first_line(error)}") from error


def stop_local() -> None:
    disconnect()
    shutil.rmtree(_folder, ignore_errors=True)


def connect(address: str, token: str) -> None:
    """Joins a running cluster as its user."""
    _require_listener(address)
    prepare_environment(token)
    try:
        _init(address=address)
    except Exception as error:  # whatever Ray stumbles over, it is one sentence for the user
        raise ClusterError(
            f"no cluster answers at {address}: check the address and the token, and that `lycosa cluster start --head`"
            f" runs there ({first_line(error)})"
        ) from error


def _init(**options: Any) -> None:
    import ray

    _redirected.enter_context(contextlib.redirect_stdout(sys.stderr))
    try:
        ray.init(namespace=NAMESPACE, log_to_driver=False, logging_level=logging.ERROR, **options)
    except BaseException:
        _redirected.close()
        raise


def disconnect() -> None:
    import ray

    ray.shutdown()
    _redirected.close()


# addresses and nodes


def host_and_port(address: str) -> tuple[str, int]:
    """The two halves of a cluster's address; SettingsError if it is none."""
    host, _, port = address.rpartition(":")
    if not host or not (port.isascii() and port.isdecimal()):
        raise SettingsError(f"{address!r} is no address of a cluster: write HOST:PORT, such as 192.0.2.1:6379")
    if len(port) > 5 or not 0 < int(port) <= MAX_PORT:
        raise SettingsError(f"{address!r} has no such port: ports go from 1 to {MAX_PORT}")
    return host.strip("[]"), int(port)


def _require_listener(address: str) -> None:
    """Ray tries for a minute to reach an address at which nobody listens; a look beforehand takes no time."""
    try:
        socket.create_connection(host_and_port(address), timeout=CONNECT_TIMEOUT_S).close()
    except (OSError, UnicodeError) as error:  # UnicodeError: a host that no name server could be asked for
        raise ClusterError(
            f"nobody listens at {address}: check the address, and that `lycosa cluster start --head` runs there"
        ) from error


def require_own_address(address: str, port: int | None) -> None:
    """Refuses an address that is not this machine's, and a port of the head that is not free."""
    try:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        with socket.socket(family, socket.SOCK_STREAM) as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((address, port or 0))
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise SettingsError(f"port {port} at {address} is in use: choose another with --port") from error
        raise SettingsError(
            f"{address} is no address of this machine: --address takes the one at which the others reach it"
        ) from error


def node_command(
    *, address: str, head_port: int | None, join: str, processors: int | None, place: str = ""
) -> list[str]:
    """The command that runs one node until it ends: the head of a new cluster, or a node of one at `join`."""
    words = [sys.executable, "-m", "ray.scripts.scripts", "start", "--block", "--disable-usage-stats"]
    words += ["--node-ip-address", address, "--object-store-memory", str(OBJECT_STORE_BYTES), "--num-gpus", "0"]
    words += ["--num-cpus", str(processors)] if processors else []
    words += ["--resources", json.dumps({PLACE_RESOURCE + place: 1})] if place else []
    if head_port is not None:
        return [*words, "--head", "--port", str(head_port), "--include-dashboard", "false"]
    return [*words, "--address", join]


def _nodes() -> list[dict[str, Any]]:
    import ray

    nodes: list[dict[str, Any]] = ray.nodes()  # type: ignore[no-untyped-call]
    return nodes


def machine_addresses() -> list[str]:
    """The addresses of the cluster's machines, each as often as it has processors."""
    alive = [node for node in _nodes() if node["Alive"]]
    return [node["NodeManagerAddress"] for node in alive for _ in range(max(1, int(node["Resources"].get("CPU", 1))))]


def machine_places() -> dict[str, str]:
    """The places of the machines that have one, by address."""
    found = {}
    for node in _nodes():
        names = [name.removeprefix(PLACE_RESOURCE) for name in node["Resources"] if name.startswith(PLACE_RESOURCE)]
        if node["Alive"] and names:
            found[node["NodeManagerAddress"]] = names[0]
    return found


# the crawls of a cluster


class ClusterNode(msgspec.Struct, frozen=True):
    """One machine of a cluster."""

    address: str
    is_alive: bool
    processors: int


class CrawlStatus(msgspec.Struct, frozen=True):
    """One crawl on a cluster, and its shards as (name, pages, queued)."""

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


def cluster_status(address: str, token: str) -> ClusterStatus:
    """The machines and crawls of the cluster at `address`."""
    with _coordinators(address, token) as coordinators:
        nodes = [ClusterNode(n["NodeManagerAddress"], n["Alive"], int(n["Resources"].get("CPU", 0))) for n in _nodes()]
        crawls = []
        for name, coordinator in coordinators.items():
            crawl = _call(coordinator.crawl_report)
            crawls.append(
                CrawlStatus(
                    name=name,
                    stats=crawl.stats,
                    epoch=crawl.epoch,
                    shards=tuple((r.name, r.stats.pages, r.stats.queued) for r in crawl.reports),
                    troubles=crawl.troubles,
                    sent_bytes=sum(report.sent_bytes for report in crawl.reports),
                    sent_messages=sum(report.sent_messages for report in crawl.reports),
                    stored_bytes=sum(report.stored_bytes for report in crawl.reports),
                    unstored=sum(report.unstored for report in crawl.reports),
                )
            )
        return ClusterStatus(tuple(nodes), tuple(crawls))


def resize_crawl(address: str, token: str, *, join: int = 0, leave: Sequence[str] = ()) -> list[str]:
    """Shards join the crawls that run on the cluster, wherever there is room, or leave them; returns their names."""
    with _coordinators(address, token, require=True) as coordinators:
        for coordinator in coordinators.values():
            if refusal := _call(coordinator.resize, join, list(leave)):
                raise ClusterError(refusal)
        return list(coordinators)


def stop_crawls(address: str, token: str) -> int:
    """Ends all crawls of the cluster gently: each commits and can be gone on with; returns how many."""
    with _coordinators(address, token, require=True) as coordinators:
        for coordinator in coordinators.values():
            _call(coordinator.stop, "stopped")
        return len(coordinators)


@contextmanager
def _coordinators(address: str, token: str, *, require: bool = False) -> Iterator[dict[str, Any]]:
    """The coordinators of all crawls on the cluster at `address`, by the crawl's name."""
    require_ray("a cluster")
    connect(address, token)
    try:
        import ray.util

        actors = [one for one in ray.util.list_named_actors(all_namespaces=True) if one["namespace"] == NAMESPACE]
        names = [actor["name"] for actor in actors if actor["name"].endswith("/coordinator")]
        if require and not names:
            raise ClusterError(f"no crawl is running on the cluster at {address}")
        yield {name.partition("/")[0]: ray.get_actor(name, namespace=NAMESPACE) for name in names}
    except LycosaError:
        raise
    except Exception as error:
        raise ClusterError(f"the cluster at {address} does not answer: {type(error).__name__}") from error
    finally:
        disconnect()


def _call(method: Any, *arguments: Any) -> Any:
    import ray

    return ray.get(method.remote(*arguments), timeout=CALL_TIMEOUT_S)
