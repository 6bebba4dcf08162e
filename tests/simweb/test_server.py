"""The web over real sockets: HTTP, names, TLS, trouble, control, and the command that runs it."""

import http.client
import signal
import socket
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
from tests.simweb.conftest import PATIENCE_S, Ready, connect, first_article, running_simweb

TICK_S = 0.002  # the server's event loop reads its clock in whole milliseconds, at both ends of a time
SEVEN = SimWeb(SimSettings(seed=7, hosts=12, pages=3000))


@pytest.fixture(scope="module")
def server() -> Iterator[Ready]:
    with running_simweb("--hosts", "12", "--pages", "3000", "--seed", "7") as (ready, _):
        yield ready


def get(port: int, path: str, *, host: str = "", method: str = "GET", **headers: str) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
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
        connection = http.client.HTTPConnection(address, server.port, timeout=PATIENCE_S)
        connection.request("GET", "/")
        assert connection.getresponse().read() == web.answer(0, "/").body


def test_connection_to_an_outer_address_is_turned_away(server: Ready) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing; only asks which address would be used
        except OSError:
            pytest.skip("this machine has no outer address")
        outer = probe.getsockname()[0]
    with pytest.raises(OSError), socket.create_connection((outer, server.port), timeout=PATIENCE_S) as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: h0.sim\r\n\r\n")
        if client.recv(100) == b"":
            raise ConnectionResetError


def test_http_features_work_over_the_wire(server: Ready) -> None:
    name = next(f"h{host}.sim" for host in range(12) if SEVEN.answer(host, "/").etag)
    whole = get(server.port, "/", host=name)
    body, length = whole.read(), whole.headers["Content-Length"]
    head = get(server.port, "/", host=name, method="HEAD")
    assert (head.headers["Content-Length"], head.read()) == (length, b"")
    part = get(server.port, "/", host=name, Range="bytes=10-19")
    assert (part.status, part.read()) == (206, body[10:20])
    packed = get(server.port, "/", host=name, Accept_Encoding="gzip")
    assert packed.headers["Content-Encoding"] == "gzip"
    assert get(server.port, "/", host="h99.sim").status == 421
    assert get(server.port, "/", host=name, method="POST").status == 405
    assert get(server.port, "/", host=name, If_None_Match=whole.headers["ETag"]).status == 304


def test_pipelined_requests_are_answered_in_order(server: Ready) -> None:
    paths = ["/feed.xml", "/", "/feed.xml", "/nope"]
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_S) as client:
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


def ask(server: Ready, name: str, kind: str = "A") -> dns.message.Message:
    return dns.query.udp(dns.message.make_query(name, kind), "127.0.0.1", port=server.dns_port, timeout=PATIENCE_S)


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
                assert dns.query.udp(query, "127.0.0.1", port=ready.dns_port, timeout=PATIENCE_S).rcode() == code
            if knob == "slow":
                assert time.monotonic() - began >= 1 - TICK_S


def test_changing_names_get_another_address_every_ttl() -> None:
    with running_simweb("--hosts", "8", "--pages", "100", "--dns", "changing=1", "--dns-ttl", "1") as (ready, _):
        first = str(ask(ready, "h0.sim").answer[0][0])
        time.sleep(1.1)
        assert str(ask(ready, "h0.sim").answer[0][0]) != first


@pytest.mark.slow
def test_round_trips_and_bandwidth_take_their_time() -> None:
    with running_simweb("--hosts", "1", "--pages", "40", "--rtt", "100", "--bandwidth", "20000") as (ready, _):
        connection = http.client.HTTPConnection("127.0.0.1", ready.port, timeout=PATIENCE_S)
        times = []
        for _ in range(2):
            began = time.monotonic()
            connection.request("GET", "/")
            size = len(connection.getresponse().read())
            times.append(time.monotonic() - began)
        expected = size / 20_000
        assert expected + 0.2 - 3 * TICK_S <= times[0]  # two round trips on a new connection
        assert expected + 0.1 - 3 * TICK_S <= times[1]


def test_log_has_a_line_a_request_with_its_times(tmp_path: Path) -> None:
    log = tmp_path / "requests.jsonl"
    shape = ("--hosts", "3", "--pages", "100", "--robots", "missing=0")
    with running_simweb(*shape, "--log", str(log)) as (ready, _):
        before = time.monotonic()
        for path in ("/", "/robots.txt", "/nope"):
            get(ready.port, path, host="h2.sim", User_Agent="tester").read()
        after = time.monotonic()
    settings, entries = read_log(log)
    found = list(entries)
    assert settings.hosts == 3
    assert [(e.path, e.status, e.host, e.agent) for e in found] == [
        ("/", 200, "h2.sim", "tester"),
        ("/robots.txt", 200, "h2.sim", "tester"),
        ("/nope", 404, "h2.sim", "tester"),
    ]
    assert all(before <= e.start <= min(after, e.end) for e in found)


@pytest.mark.skipif(not hasattr(socket, "TCP_INFO"), reason="the system does not say when a client was heard from")
def test_log_has_the_moment_at_which_a_client_hung_up_though_the_server_notices_late(tmp_path: Path) -> None:
    log = tmp_path / "requests.jsonl"
    shape = ("--hosts", "1", "--pages", "100", "--seed", "7", "--trouble", "drip=1")
    with running_simweb(*shape, "--log", str(log)) as (ready, process):
        path = first_article(seed=7, hosts=1, pages=100)
        client = connect(ready.port)
        client.sendall(f"GET {path} HTTP/1.1\r\nHost: h0.sim\r\n\r\n".encode())
        client.recv(1)  # it is being answered
        process.send_signal(signal.SIGSTOP)
        client.close()
        time.sleep(0.2)
        resumed = time.monotonic()
        process.send_signal(signal.SIGCONT)
    _, entries = read_log(log)
    assert [entry.path for entry in entries if entry.end < resumed] == [path]


def test_absolute_target_and_final_dot_name_their_host(server: Ready) -> None:
    expected = SimWeb(SimSettings(seed=7, hosts=12, pages=3000, port=server.port)).answer(2, "/").body
    assert get(server.port, f"http://h2.sim:{server.port}/", host="h1.sim").read() == expected
    assert get(server.port, "/", host=f"h2.sim.:{server.port}").read() == expected


@pytest.mark.slow
def test_clock_runs_at_the_scale_that_was_asked_for() -> None:
    with running_simweb("--hosts", "1", "--pages", "40", "--time-scale", "86400") as (ready, _):
        began, one = time.monotonic(), get(ready.port, "/.simweb/time").read()
        time.sleep(0.3)
        other, ended = get(ready.port, "/.simweb/time").read(), time.monotonic()
        passed = msgspec.json.decode(other)["time_s"] - msgspec.json.decode(one)["time_s"]
        assert (0.3 - TICK_S) * 86_400 <= passed <= (ended - began + TICK_S) * 86_400
        far = msgspec.json.decode(get(ready.port, "/.simweb/time?scale=3000000000", method="POST").read())
        time.sleep(1.1)
        assert msgspec.json.decode(get(ready.port, "/.simweb/time").read())["time_s"] == 100 * 365 * 86_400
        assert get(ready.port, "/").status == 200, far


@pytest.mark.slow
def test_two_transfers_of_a_host_share_its_bandwidth() -> None:
    with running_simweb("--hosts", "1", "--pages", "40", "--bandwidth", "40000") as (ready, _):
        size = len(get(ready.port, "/").read())
        began = time.monotonic()
        responses = [get_later(ready.port) for _ in range(2)]
        assert [len(response.getresponse().read()) for response in responses] == [size, size]
        assert 0.75 * 2 * size / 40_000 < time.monotonic() - began


def get_later(port: int) -> http.client.HTTPConnection:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    connection.request("GET", "/")
    return connection


@pytest.mark.slow
def test_retry_after_is_logged(tmp_path: Path) -> None:
    log = tmp_path / "log"
    knobs = ("--robots", "missing=0", "--trouble", "unavailable=1")
    with running_simweb("--hosts", "1", "--pages", "40", *knobs, "--log", str(log)) as (ready, _):
        busy = get(ready.port, "/")
        assert (busy.status, busy.headers["Retry-After"]) == (503, "3")
    assert [entry.retry_after_s for entry in read_log(log)[1]] == [3.0]
