"""One Ray for all tests of a run that can share it: they are in one group, and so in one worker of xdist."""

import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.cluster.processes import LONGEST_S, wait_for
from tests.simweb.conftest import lycosa


class RayCluster(NamedTuple):
    """A cluster of one node. `at` are the words by which a command finds it."""

    port: int
    at: tuple[str, ...]


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def _listens(port: int) -> bool:
    with socket.socket() as asker:
        return asker.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture(scope="session")
def ray_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RayCluster]:
    token: Path = tmp_path_factory.mktemp("ray") / "token"
    for _ in range(3):  # another process may take the port before the node does
        port = free_port()
        node = lycosa(
            "cluster", "--token-file", str(token), "start", "--head", "--port", str(port), "--processors", "2"
        )
        while not (_listens(port) or node.poll() is not None):
            time.sleep(0.05)
        if node.poll() is None:
            break
    try:
        wait_for(lambda: _listens(port), node)
        yield RayCluster(port, ("--token-file", str(token), "--at", f"127.0.0.1:{port}"))
    finally:
        node.terminate()
        node.communicate(timeout=LONGEST_S)
