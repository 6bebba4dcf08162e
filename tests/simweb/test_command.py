"""The command `lycosa simweb`: what it prints, how it ends, what it leaves behind."""

import asyncio
import contextlib
import http.client
import os
import signal
import socket
import time
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest

from lycosa.simweb import SimSettings, SimWeb
from lycosa.simweb.log import read_log
from lycosa.simweb.server import serve_web
from lycosa.simweb.settings import DNS, ROBOTS, TROUBLE
from lycosa.simweb.truth import TruthLimits, truth_of
from tests.simweb.conftest import PATIENCE_S, lycosa, running_simweb


def run(*arguments: str, env: Mapping[str, str] = {}) -> tuple[int, str, str]:
    """(exit code, output, complaints) of a command that ends by itself."""
    process = lycosa("simweb", *arguments, env=env)
    out, err = process.communicate(timeout=PATIENCE_S)
    return process.returncode, out, err


@pytest.mark.slow
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
        (["--port", "-5", "show"], "between 0 and 65535"),
        (["--port", "0", "show"], "--port is 0"),
        (["--hosts", "1", "--pages", "2000000000", "show"], "a host has at most 1073741824"),
        (["--time-scale", "nan"], "--time-scale is nan"),
        (["--time-scale", "1e25"], "--time-scale is 1e+25"),
        (["audit", "--delay", "nan", "/dev/null"], "a delay is a number of seconds"),
        (["show", "http://[bad/"], "is not a URL"),
        (["truth", "http://[bad/"], "is not a URL"),
        (["truth", "http://h0.sim/"], "its URLs begin with http://h0.sim:8800/"),
        (["truth", "https://h0.sim:8800/"], "its URLs begin with http://h0.sim:8800/"),
        (["truth", "--at", "nan", "http://h0.sim:8800/"], "--at is nan"),
        (["truth", "--at", "1e30", "http://h0.sim:8800/"], "--at is 1e+30"),
        (["truth", "http://example.org/"], "is not a page of this web"),
        (["truth"], "Missing argument"),
    ],
)
def test_bad_input_gives_one_sentence_and_exit_2(arguments: list[str], words: str) -> None:
    process = lycosa("simweb", *arguments)
    out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 2
    assert words in err
    assert len(err.strip().splitlines()) == 1
    assert out == ""


@pytest.mark.slow
def test_taken_port_gives_one_sentence_and_leaves_nothing_behind(tmp_path: Path) -> None:
    ca, log = tmp_path / "ca.pem", tmp_path / "log"
    with running_simweb("--hosts", "2", "--pages", "100") as (ready, _):
        for option, port in (("--port", ready.port), ("--dns-port", ready.dns_port)):
            free = "--dns-port" if option == "--port" else "--port"
            code, _, err = run(option, str(port), free, "0", "--tls", "--ca-file", str(ca), "--log", str(log))
            assert code == 2
            assert err.strip() == f"lycosa: port {port} is taken: choose another one with {option}, or 0 for a free one"
    assert not ca.exists()
    assert not log.exists()


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_signal_stops_the_command_soon(signum: int, tmp_path: Path) -> None:
    with (
        running_simweb("--trouble", "hang=1", "--log", str(tmp_path / "log")) as (ready, process),
        socket.create_connection(("127.0.0.1", ready.port)) as client,
    ):
        path = SimWeb(SimSettings()).layout.folder(0, 0).name(1)
        client.sendall(f"GET /{path} HTTP/1.1\r\nHost: h0.sim\r\n\r\n".encode())
        os.kill(process.pid, signum)
        assert process.wait(timeout=30) == 0  # a request that hangs does so for ten minutes
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", ready.port), timeout=1)


def test_running_leaves_its_ports_free_afterwards() -> None:
    async def once() -> int:
        async with serve_web(SimSettings(hosts=2, pages=10, port=0)) as web:
            return web.port

    def is_free(port: int) -> bool:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with contextlib.suppress(OSError):
                probe.bind(("127.0.0.1", port))
                return True
        return False

    assert any(is_free(asyncio.run(once())) for _ in range(3))  # another process may have taken one meanwhile


@pytest.mark.slow
def test_output_to_a_closed_pipe_is_no_error() -> None:
    process = lycosa("simweb", "truth", "http://h0.sim:8800/", "--scope", "any")
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.stderr is not None
    assert "Traceback" not in process.stderr.read()
    assert process.wait(timeout=PATIENCE_S) == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_output_to_a_full_disk_is_one_sentence_and_exit_4() -> None:
    with Path("/dev/full").open("w") as full:
        process = lycosa("simweb", "truth", "http://h0.sim:8800/", stdout=full)
        _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 4
    assert err.strip().splitlines()[-1] == "lycosa: cannot write the output: no space left"
    assert "Traceback" not in err


def test_show_prints_pages_to_any_terminal() -> None:
    code, out, _ = run("--pages", "100", "--hosts", "1", "show", env={"PYTHONIOENCODING": "ascii"})
    assert code == 0
    assert out.startswith("200 http://h0.sim:8800/\n")
    assert "\\u2013" in out
    code, out, _ = run("--pages", "100", "--hosts", "1", "show", "--body", "http://h0.sim:8800/")
    assert out == SimWeb(SimSettings(pages=100, hosts=1)).answer(0, "/").body.decode()


def test_troubles_lists_every_knob_with_its_meaning() -> None:
    code, out, _ = run("troubles")
    assert code == 0
    for knobs in (TROUBLE, ROBOTS, DNS):
        for name, meaning in knobs.items():
            assert f"  {name:<14} {meaning}" in out


def test_truth_prints_what_the_library_finds() -> None:
    code, out, err = run("--hosts", "3", "--pages", "300", "truth", "http://h1.sim:8800/", "--depth", "1")
    web = SimWeb(SimSettings(hosts=3, pages=300))
    expected = truth_of(web, ["http://h1.sim:8800/"], limits=TruthLimits(max_depth=1)).pages
    assert code == 0
    assert out.split() == sorted(expected)
    assert err.startswith(f"{len(expected)} pages, ")


# log and audit


def crawl_politely(port: int, paths: list[str], pause_s: float) -> None:
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    for path in paths:
        line.request("GET", path, headers={"Host": f"h0.sim:{port}", "User-Agent": "tester"})
        line.getresponse().read()
        time.sleep(pause_s)


@pytest.mark.slow
def test_audit_of_a_real_log_exits_0_when_polite_and_1_when_not(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with running_simweb("--hosts", "2", "--pages", "100", "--robots", "rules=0", "--log", str(log)) as (ready, _):
        crawl_politely(ready.port, ["/robots.txt", "/", "/feed.xml"], 0.6)  # the server may see one late
    code, out, _ = run("audit", str(log), "--delay", "0.1")
    assert (code, out.splitlines()[-1]) == (0, "3 requests, 1 host, 1 address: clean")
    code, out, _ = run("audit", str(log), "--delay", "600")
    assert (code, out.splitlines()[-1]) == (1, "3 requests, 1 host, 1 address: BROKEN")
    assert "h0.sim: 2 requests too early" in out
    code, out, _ = run("audit", str(log), "--json")
    assert code == 1
    assert msgspec.json.decode(out)["clean"] is False


def test_log_that_is_there_already_is_kept(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("evidence\n")
    code, _, err = run("--log", str(log), "--port", "0", "--dns-port", "0")
    assert code == 2
    assert err.strip() == f"lycosa: the log {log} is there already: remove it, or choose another name with --log"
    assert log.read_text() == "evidence\n"


def test_disk_that_fills_up_stops_the_server_with_whole_lines_in_the_log(tmp_path: Path) -> None:
    log = tmp_path / "log"
    limited = "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)); import signal; "
    limited += "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); from lycosa.cli.commands import main; main()"
    arguments = ["simweb", "--hosts", "1", "--pages", "40", "--port", "0", "--dns-port", "0", "--json"]
    process = lycosa(*arguments, "--log", str(log), script=limited)
    assert process.stdout is not None
    port = msgspec.json.decode(process.stdout.readline())["port"]
    with contextlib.suppress(OSError, http.client.HTTPException):  # the server ends when it writes its log
        crawl_politely(port, ["/feed.xml"] * 40, 0)
    _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 4
    assert err.strip().splitlines()[-1].startswith(f"lycosa: cannot write the log {log}: ")
    assert "Traceback" not in err
    assert log.read_bytes().endswith(b"}\n")
    assert 5 < len(list(read_log(log)[1])) < 40
