"""The web over real sockets: HTTP, names, TLS, trouble, control, and the command that runs it."""

import http.client
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
from tests.simweb.conftest import Ready, running_simweb


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
    assert get(server.port, "/", host="h1.sim", If_None_Match=whole.headers["ETag"]).status == 304


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
