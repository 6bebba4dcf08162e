"""The web over real sockets: HTTP, names, TLS, trouble, control, and the command that runs it."""

import asyncio
import http.client
import os
import signal
import socket
import ssl
import time
from collections.abc import Iterator
from pathlib import Path

import dns.message
import dns.query
import dns.rcode
import msgspec
import pytest

from lycosa.simweb import SimSettings, SimWeb
from lycosa.simweb.log import read_log
from lycosa.simweb.serve import running
from tests.simweb.conftest import Ready, lycosa, running_simweb


@pytest.fixture(scope="module")
def server() -> Iterator[Ready]:
    with running_simweb("--hosts", "12", "--pages", "3000", "--seed", "7") as (ready, _):
        yield ready


def get(port: int, path: str, *, host: str = "", method: str = "GET", **headers: str) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request(
        method, path, headers=({"Host": host} if host else {}) | {k.replace("_", "-"): v for k, v in headers.items()}
    )
    return connection.getresponse()


def test_server_sends_the_generators_bytes(server: Ready) -> None:
    web = SimWeb(SimSettings(seed=7, hosts=12, pages=3000, port=server.port))
    for host in range(12):
        response = get(server.port, "/", host=f"h{host}.sim:{server.port}")
        assert response.read() == web.answer(host, "/").body


def test_request_by_number_gets_host_0_on_every_loopback_address(server: Ready) -> None:
    web = SimWeb(SimSettings(seed=7, hosts=12, pages=3000, port=server.port))
    for address in ("127.0.0.1", "127.1.0.1", "127.200.3.4"):
        connection = http.client.HTTPConnection(address, server.port, timeout=10)
        connection.request("GET", "/")
        assert connection.getresponse().read() == web.answer(0, "/").body


def test_connection_to_an_outer_address_is_turned_away(server: Ready) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing; only asks which address would be used
        except OSError:
            pytest.skip("this machine has no outer address")
        outer = probe.getsockname()[0]
    with pytest.raises(OSError), socket.create_connection((outer, server.port), timeout=5) as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: h0.sim\r\n\r\n")
        if client.recv(100) == b"":
            raise ConnectionResetError


def test_http_features_work_over_the_wire(server: Ready) -> None:
    whole = get(server.port, "/", host="h1.sim")
    body, length = whole.read(), whole.headers["Content-Length"]
    head = get(server.port, "/", host="h1.sim", method="HEAD")
    assert (head.headers["Content-Length"], head.read()) == (length, b"")
    part = get(server.port, "/", host="h1.sim", Range="bytes=10-19")
    assert (part.status, part.read()) == (206, body[10:20])
    packed = get(server.port, "/", host="h1.sim", Accept_Encoding="gzip")
    assert packed.headers["Content-Encoding"] == "gzip"
    assert get(server.port, "/", host="h99.sim").status == 421
    assert get(server.port, "/", host="h1.sim", method="POST").status == 405
    tag = whole.headers["ETag"]
    if tag:
        assert get(server.port, "/", host="h1.sim", If_None_Match=tag).status == 304


def test_pipelined_requests_are_answered_in_order(server: Ready) -> None:
    paths = ["/feed.xml", "/", "/feed.xml", "/nope"]
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as client:
        client.sendall(b"".join(f"GET {path} HTTP/1.1\r\nHost: h1.sim\r\n\r\n".encode() for path in paths[:-1]))
        client.sendall(f"GET {paths[-1]} HTTP/1.1\r\nHost: h1.sim\r\nConnection: close\r\n\r\n".encode())
        received = b"".join(iter(lambda: client.recv(65536), b""))
    kinds = [line for line in received.split(b"\r\n") if line.startswith(b"Content-Type")]
    assert [kind.split(b" ")[1].rstrip(b";") for kind in kinds] == [
        b"application/rss+xml",
        b"text/html",
        b"application/rss+xml",
        b"text/html",
    ]


def test_garbage_is_answered_with_400(server: Ready) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as client:
        client.sendall(b"\x16\x03\x01 this is not HTTP\r\n\r\n")
        assert client.recv(100).startswith(b"HTTP/1.1 400")


def ask(server: Ready, name: str, kind: str = "A") -> dns.message.Message:
    return dns.query.udp(dns.message.make_query(name, kind), "127.0.0.1", port=server.dns_port, timeout=5)


def test_names_resolve_with_a_ttl_and_unknown_ones_do_not_exist(server: Ready) -> None:
    answer = ask(server, "h5.sim").answer[0]
    assert answer.ttl == 300
    assert str(answer[0]) == SimWeb(SimSettings(seed=7, hosts=12, pages=3000)).layout.address_of(5)
    assert ask(server, "h5.sim", "AAAA").rcode() == dns.rcode.NOERROR
    assert not ask(server, "h5.sim", "AAAA").answer
    for name in ("h12.sim", "example.org", "www.h1.sim"):
        assert ask(server, name).rcode() == dns.rcode.NXDOMAIN


def test_clock_is_set_through_the_control_endpoint(server: Ready) -> None:
    moved = msgspec.json.decode(get(server.port, "/.simweb/time?set=864000", method="POST").read())
    assert moved["time_s"] == 864000
    later = get(server.port, "/", host="h1.sim").headers["Date"]
    assert later.startswith("Sun, 11 Jan 2026")
    assert get(server.port, "/.simweb/time?set=abc", method="POST").status == 400
    assert get(server.port, "/.simweb/time?set=0", method="POST").status == 200


@pytest.mark.slow
def test_names_in_trouble_fail_as_asked() -> None:
    for knob, code in (("servfail", dns.rcode.SERVFAIL), ("timeout", None), ("slow", dns.rcode.NOERROR)):
        with running_simweb("--hosts", "2", "--pages", "10", "--dns", f"{knob}=1") as (ready, _):
            query, began = dns.message.make_query("h0.sim", "A"), time.monotonic()
            if code is None:
                with pytest.raises(dns.exception.Timeout):
                    dns.query.udp(query, "127.0.0.1", port=ready.dns_port, timeout=0.5)
            else:
                assert dns.query.udp(query, "127.0.0.1", port=ready.dns_port, timeout=5).rcode() == code
            if knob == "slow":
                assert time.monotonic() - began >= 1


def test_changing_names_get_another_address_every_ttl() -> None:
    web = SimWeb(SimSettings(hosts=8, pages=100, dns={"changing": 1.0}))
    assert web.layout.address_of(0, turn=1) != web.layout.address_of(0)


def raw(port: int, path: str, seconds: float) -> bytes:
    """Everything that comes in `seconds`, then hang up."""
    with socket.create_connection(("127.0.0.1", port), timeout=seconds) as client:
        client.sendall(f"GET {path} HTTP/1.1\r\nHost: h0.sim\r\n\r\n".encode())
        received, until = b"", time.monotonic() + seconds
        try:
            while time.monotonic() < until and len(received) < 3_000_000:
                client.settimeout(max(0.01, until - time.monotonic()))
                data = client.recv(65536)
                if not data:
                    return received + b"<closed>"
                received += data
        except TimeoutError:
            return received + b"<open>"
        except ConnectionResetError:
            return received + b"<reset>"
        return received + b"<more>"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("trouble", "start", "end"),
    [
        ("hang", b"<open>", b"<open>"),
        ("drip", b"HTTP/1.1 200", b"<open>"),
        ("reset", b"HTTP/1.1 200", b"<reset>"),
        ("truncated", b"HTTP/1.1 200", b"<closed>"),
        ("wrong-length", b"HTTP/1.1 200", b"<closed>"),
        ("endless", b"HTTP/1.1 200", b"<more>"),
        ("header-flood", b"HTTP/1.1 200", b"<more>"),
        ("redirect-loop", b"HTTP/1.1 301", b"<open>"),
        ("bomb", b"HTTP/1.1 200", b"<open>"),
        ("huge", b"HTTP/1.1 200", b"<more>"),
        ("deep", b"HTTP/1.1 200", b"<open>"),
    ],
)
def test_trouble_on_the_wire_looks_like_trouble(trouble: str, start: bytes, end: bytes) -> None:
    with running_simweb("--hosts", "1", "--pages", "40", "--trouble", f"{trouble}=1") as (ready, _):
        path = "/" + SimWeb(SimSettings(hosts=1, pages=40)).layout.folder(0, 0).name(1)
        received = raw(ready.port, path, 1.5)
        assert received.startswith(start)
        assert received.endswith(end)
        head, _, body = received.partition(b"\r\n\r\n")
        if trouble in ("truncated", "reset", "wrong-length"):
            length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
            sent = len(body) - len(end)
            assert sent == (2 * length if trouble == "wrong-length" else length // 2) or abs(sent - 2 * length) <= 1


@pytest.mark.slow
def test_round_trips_and_bandwidth_take_their_time() -> None:
    with running_simweb("--hosts", "1", "--pages", "40", "--rtt", "100", "--bandwidth", "20000") as (ready, _):
        connection = http.client.HTTPConnection("127.0.0.1", ready.port, timeout=10)
        times = []
        for _ in range(2):
            began = time.monotonic()
            connection.request("GET", "/")
            size = len(connection.getresponse().read())
            times.append(time.monotonic() - began)
        expected = size / 20_000
        assert expected + 0.15 < times[0] < expected + 0.6  # two round trips on a new connection
        assert expected + 0.05 < times[1] < times[0]


def test_tls_is_trusted_with_the_authority_it_writes(tmp_path: Path) -> None:
    ca = tmp_path / "ca.pem"
    with running_simweb("--hosts", "3", "--pages", "100", "--tls", "--ca-file", str(ca)) as (ready, _):
        context = ssl.create_default_context(cafile=str(ca))
        for name in ("h0.sim", "h2.sim"):
            with (
                socket.create_connection(("127.0.0.1", ready.port), timeout=10) as plain,
                context.wrap_socket(plain, server_hostname=name) as client,
            ):
                client.sendall(f"GET / HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n\r\n".encode())
                received = b"".join(iter(lambda: client.recv(65536), b""))
                assert received.startswith(b"HTTP/1.1 200")
                assert b"https://h" in received


def test_log_has_a_line_a_request_with_its_times(tmp_path: Path) -> None:
    log = tmp_path / "requests.jsonl"
    with running_simweb("--hosts", "3", "--pages", "100", "--log", str(log)) as (ready, _):
        before = time.monotonic()
        for path in ("/", "/robots.txt", "/nope"):
            get(ready.port, path, host="h2.sim", User_Agent="tester").read()
        after = time.monotonic()
    settings, entries = read_log(log)
    found = list(entries)
    assert settings.hosts == 3
    assert [(e.path, e.status, e.host, e.agent) for e in found] == [
        ("/", 200, "h2.sim", "tester"),
        ("/robots.txt", 200 if found[1].status == 200 else 404, "h2.sim", "tester"),
        ("/nope", 404, "h2.sim", "tester"),
    ]
    assert all(before <= e.start <= e.end <= after + 0.1 for e in found)  # the client may be first to know


def test_request_that_the_client_gives_up_ends_when_it_hangs_up(tmp_path: Path) -> None:
    log = tmp_path / "requests.jsonl"
    with running_simweb("--hosts", "1", "--pages", "40", "--trouble", "hang=1", "--log", str(log)) as (ready, _):
        path = "/" + SimWeb(SimSettings(hosts=1, pages=40)).layout.folder(0, 0).name(1)
        raw(ready.port, path, 0.3)
    entry = next(read_log(log)[1])
    assert 0.25 < entry.end - entry.start < 3


# the command


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
