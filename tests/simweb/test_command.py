"""The command `lycosa simweb`: what it prints, how it ends, what it leaves behind."""

import os
import signal
import socket
import time
from pathlib import Path

import pytest

from lycosa.simweb import SimSettings, SimWeb
from tests.simweb.conftest import lycosa, running_simweb


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--hosts", "0"], "--hosts is 0"),
        (["--trouble", "hang=2"], "a share is between 0 and 1"),
        (["--trouble", "hang=much"], "NAME=SHARE"),
        (["--trouble", "fire=0.1"], "knows no 'fire'"),
        (["--fire", "0.1"], "No such option"),
        (["--hosts", "many"], "--hosts"),
        (["--log", "/nowhere/at/all"], "cannot write the log"),
        (["--port", "70000"], "between 0 and 65535"),
        (["audit", "/nowhere"], "cannot read the log"),
        (["truth", "http://example.org/"], "is not a page of this web"),
        (["truth"], "Missing argument"),
    ],
)
def test_bad_input_gives_one_sentence_and_exit_2(arguments: list[str], words: str) -> None:
    process = lycosa("simweb", *arguments)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 2
    assert words in err
    assert len(err.strip().splitlines()) == 1
    assert out == ""


def test_taken_port_gives_one_sentence_and_exit_2(server: Ready) -> None:
    for option, port in (("--port", server.port), ("--dns-port", server.dns_port)):
        free = "--dns-port" if option == "--port" else "--port"
        process = lycosa("simweb", option, str(port), free, "0")
        _, err = process.communicate(timeout=20)
        assert process.returncode == 2
        assert err.strip() == f"lycosa: port {port} is taken: choose another one with {option}, or 0 for a free one"


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_signal_stops_the_command_within_a_second(signum: int, tmp_path: Path) -> None:
    with (
        running_simweb("--trouble", "hang=1", "--log", str(tmp_path / "log")) as (ready, process),
        socket.create_connection(("127.0.0.1", ready.port)) as client,
    ):
        path = SimWeb(SimSettings()).layout.folder(0, 0).name(1)
        client.sendall(f"GET /{path} HTTP/1.1\r\nHost: h0.sim\r\n\r\n".encode())
        began = time.monotonic()
        os.kill(process.pid, signum)
        assert process.wait(timeout=5) == 0
        assert time.monotonic() - began < 1
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", ready.port), timeout=1)


def test_running_leaves_its_ports_free_afterwards() -> None:
    async def once() -> int:
        async with running(SimSettings(hosts=2, pages=10, port=0)) as web:
            return web.port

    port = asyncio.run(once())
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(("127.0.0.1", port))


def test_output_to_a_closed_pipe_is_no_error() -> None:
    process = lycosa("simweb", "truth", "http://h0.sim:8800/", "--scope", "any")
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.stderr is not None
    assert "Traceback" not in process.stderr.read()
    process.wait(timeout=30)
