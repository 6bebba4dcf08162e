"""A small simulated web shared by the tests, and a way to run the command for real."""

import os
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO
from urllib.request import urlopen

import msgspec
import pytest

from lycosa.simweb import SimSettings, SimWeb

ROOT = Path(__file__).parents[2]
PATIENCE_S = 120.0  # what takes no time at all may take this long on a machine with other things to do


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


def lycosa(
    *arguments: str, env: Mapping[str, str] = {}, script: str = "", stdout: IO[str] | int = subprocess.PIPE
) -> "subprocess.Popen[str]":
    """The command as a process; `script` is what to run instead of its usual beginning."""
    return subprocess.Popen(
        [sys.executable, *(["-c", script] if script else ["-m", "lycosa"]), *arguments],
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")} | dict(env),
        text=True,
        stdout=stdout,
        stderr=subprocess.PIPE,
    )


def connect(port: int, *, ca: Path | None = None, name: str = "h0.sim") -> socket.socket:
    """A connection to the web; with `ca` over TLS, asking for `name`."""
    plain = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)
    if ca is None:
        return plain
    context = ssl.create_default_context(cafile=str(ca))
    return context.wrap_socket(plain, server_hostname=name, suppress_ragged_eofs=False)


def wait_until_read(port: int) -> None:
    """Returns when the web has read all that was sent to it before: it reads in turn, and answers this request, which
    is not logged."""
    with urlopen(f"http://127.0.0.1:{port}/.simweb/stats", timeout=PATIENCE_S) as answer:
        answer.read()


def first_article(**shape: object) -> str:
    """The path of an article near the root of `h0.sim`."""
    return "/" + SimWeb(SimSettings(**shape)).layout.folder(0, 0).name(1)  # type: ignore[arg-type]


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
        process.communicate(timeout=PATIENCE_S)
