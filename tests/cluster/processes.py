"""Crawls in processes of their own, and how to wait for them."""

import subprocess
import time
from collections.abc import Callable
from pathlib import Path

NOT_PAGES = ("robots.txt", ".xml", ".gz")
LONGEST_S = 600.0  # a crawl that takes this long hangs


def wait_for(there: Callable[[], bool], process: "subprocess.Popen[str]") -> None:
    deadline = time.monotonic() + LONGEST_S
    while not there():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)


def logged(log: Path) -> int:
    """How many requests the simulated web has got."""
    return log.read_bytes().count(b"\n") if log.exists() else 0


def holder(into: Path, shard: str) -> int:
    """The process that writes a shard."""
    return int((into / "shards" / shard / "lycosa.lock").read_text())
