"""A small simulated web shared by the tests, and a way to run the command for real."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from lycosa.simweb import SimSettings, SimWeb

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def web() -> SimWeb:
    return SimWeb(SimSettings(seed=7, hosts=12, pages=3000))


class Ready(msgspec.Struct):
    """What `lycosa simweb --json` prints when it is up."""

    port: int
    dns_port: int
    front_page: str
    hosts: int
    pages: int


def lycosa(*arguments: str, **options: object) -> "subprocess.Popen[str]":
    env = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    return subprocess.Popen(
        [sys.executable, "-m", "lycosa", *arguments],
        env=env,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **options,  # type: ignore[call-overload]
    )


@contextmanager
def running_simweb(*arguments: str) -> Iterator[tuple[Ready, "subprocess.Popen[str]"]]:
    """The command on free ports until the block ends."""
    process = lycosa("simweb", "--port", "0", "--dns-port", "0", "--json", *arguments)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, process.communicate()[1]
        yield msgspec.json.decode(line, type=Ready), process
    finally:
        process.terminate()
        process.communicate(timeout=10)
