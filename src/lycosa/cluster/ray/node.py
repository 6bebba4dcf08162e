"""Ray on this machine: found, started and stopped with the settings that a crawl wants.

One named interface, token authentication on, no usage statistics, no dashboard, a small object store: URLs travel in
messages, documents do not travel at all. Imports Ray, and says how to install it where it is missing.
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

from lycosa.errors import ClusterError, MissingExtra, SettingsError

LOOPBACK = "127.0.0.1"
CONNECT_TIMEOUT_S = 3.0
MAX_PORT = 65535
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
_aside = contextlib.ExitStack()  # Ray prints on standard output, which is for what was asked for: it goes to the other


def require_ray(what: str) -> None:
    """`MissingExtra` where Ray is not installed."""
    if importlib.util.find_spec("ray") is None:
        raise MissingExtra.of("cluster", what=what)


def prepare_environment(token: str | None = None) -> None:
    """What every process of a cluster needs to find in its environment, before Ray is imported."""
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    os.environ.setdefault("RAY_AUTH_TOKEN", token or secrets.token_hex(32))


def start_local(workers: int) -> None:
    """Ray for this process alone: on loopback only, and it ends with it, however it ends."""
    prepare_environment()
    # Read when Ray is imported: without it Ray takes the machine's own address for 127.0.0.1, and all interfaces.
    os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    import ray

    _aside.enter_context(contextlib.redirect_stdout(sys.stderr))
    global _folder
    _folder = tempfile.mkdtemp(prefix="lycosa-ray-")
    try:
        ray.init(
            address="local",
            num_cpus=workers + 1,
            num_gpus=0,
            include_dashboard=False,
            object_store_memory=OBJECT_STORE_BYTES,
            _node_ip_address=LOOPBACK,
            namespace="lycosa",
            _temp_dir=_folder,
            log_to_driver=False,
            configure_logging=True,
            logging_level=logging.ERROR,
        )
    except Exception as error:  # whatever Ray stumbles over, it is one sentence for the user
        _aside.close()
        raise ClusterError(f"Ray could not be started: {_first_line(error)}") from error


def stop_local() -> None:
    import ray

    ray.shutdown()
    _aside.close()
    shutil.rmtree(_folder, ignore_errors=True)


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def connect(address: str, token: str) -> None:
    """Joins a cluster that runs, as its user."""
    _require_listener(address)
    prepare_environment(token)
    import ray

    _aside.enter_context(contextlib.redirect_stdout(sys.stderr))
    try:
        ray.init(address=address, namespace="lycosa", log_to_driver=False, logging_level=logging.ERROR)
    except Exception as error:  # whatever Ray stumbles over, it is one sentence for the user
        _aside.close()
        raise ClusterError(
            f"no cluster answers at {address}: check the address and the token, and that `lycosa cluster start --head`"
            f" runs there ({_first_line(error)})"
        ) from error


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


def disconnect() -> None:
    import ray

    ray.shutdown()
    _aside.close()


def addresses() -> list[str]:
    """The addresses of the cluster's machines, each as often as it has processors."""
    import ray

    alive = [node for node in ray.nodes() if node["Alive"]]  # type: ignore[no-untyped-call]
    return [node["NodeManagerAddress"] for node in alive for _ in range(max(1, int(node["Resources"].get("CPU", 1))))]


def places_of_machines() -> dict[str, str]:
    """The places of the machines that have one, by address."""
    import ray

    found = {}
    for node in ray.nodes():  # type: ignore[no-untyped-call]
        names = [name.removeprefix(PLACE_RESOURCE) for name in node["Resources"] if name.startswith(PLACE_RESOURCE)]
        if node["Alive"] and names:
            found[node["NodeManagerAddress"]] = names[0]
    return found


def require_own_address(address: str, port: int | None) -> None:
    """Is the address one of this machine, and is the head's port free?"""
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
