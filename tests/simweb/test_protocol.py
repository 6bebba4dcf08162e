"""What happens on the wire, with and without TLS: trouble, slow readers, long bodies, stopping."""

import os
import signal
import socket
import ssl
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from lycosa.simweb.log import LoggedRequest, read_log
from tests.simweb.conftest import PATIENCE_S, connect, first_article, running_simweb

SHAPE = ("--hosts", "1", "--pages", "40")
ARTICLE = first_article(hosts=1, pages=40)
KERNEL_TICK_S = 0.011  # the kernel says in ticks, of ten milliseconds at most, when it heard of a client
over_both = pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])


def options(tmp_path: Path, *, tls: bool) -> tuple[list[str], Path | None]:
    ca = tmp_path / "ca.pem" if tls else None
    return ["--log", str(tmp_path / "log"), *(["--tls", "--ca-file", str(ca)] if ca else [])], ca


def entries(tmp_path: Path) -> list[LoggedRequest]:
    return list(read_log(tmp_path / "log")[1])


def wait_for_entries(tmp_path: Path, count: int) -> list[LoggedRequest]:
    """The entries of a log that is being written, once there are so many: it is written four times a second."""
    until = time.monotonic() + PATIENCE_S
    while len(found := entries(tmp_path)) < count:
        assert time.monotonic() < until, found
        time.sleep(0.02)
    return found


def ask(client: socket.socket, path: str, *, method: str = "GET", more: str = "") -> None:
    client.sendall(f"{method} {path} HTTP/1.1\r\nHost: h0.sim\r\n{more}\r\n".encode())


def wait_until_read(port: int, ca: Path | None = None) -> None:
    """Returns when the server has read all that was sent to it before: it reads in turn, and answers this request."""
    with connect(port, ca=ca) as client:
        ask(client, "/robots.txt")
        assert client.recv(1)


def never(received: bytes) -> bool:
    return False


def listen(
    client: socket.socket,
    seconds: float = PATIENCE_S,
    *,
    most: int = 3_000_000,
    enough: Callable[[bytes], bool] = never,
) -> bytes:
    """Everything that comes in `seconds`, or in a moment after `enough` has come, and how it ended."""
    received, until, is_enough = b"", time.monotonic() + seconds, False
    try:
        while time.monotonic() < until and len(received) < most:
            if not is_enough and enough(received):
                is_enough, until = True, time.monotonic() + 0.3
            client.settimeout(max(0.01, until - time.monotonic()))
            data = client.recv(65536)
            if not data:
                return received + b"<closed>"
            received += data
    except TimeoutError:
        return received + b"<open>"
    except (ConnectionResetError, ssl.SSLEOFError):  # over TLS Python tells a reset as an end without good-bye
        return received + b"<reset>"
    return received + b"<more>"


def length_of(head: bytes) -> int:
    return int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])


def is_answered(received: bytes) -> bool:
    """Whether an answer has come with as many bytes as it says."""
    head, end, body = received.partition(b"\r\n\r\n")
    return bool(end) and len(body) >= length_of(head)


def has_begun(received: bytes) -> bool:
    """Whether the first byte of a body has come."""
    return bool(received.partition(b"\r\n\r\n")[2])


@pytest.mark.slow
@over_both
@pytest.mark.parametrize(
    ("trouble", "start", "end", "length", "enough"),
    [
        ("hang", b"<open>", b"<open>", None, lambda _: True),
        ("drip", b"HTTP/1.1 200", b"<open>", None, has_begun),
        ("reset", b"HTTP/1.1 200", b"<reset>", lambda said: said // 2, never),
        ("truncated", b"HTTP/1.1 200", b"<closed>", lambda said: said // 2, never),
        ("wrong-length", b"HTTP/1.1 200", b"<closed>", lambda said: 2 * said, never),
        ("endless", b"HTTP/1.1 200", b"<more>", None, never),
        ("header-flood", b"HTTP/1.1 200", b"<more>", None, never),
        ("redirect-loop", b"HTTP/1.1 301", b"<open>", lambda said: said, is_answered),
        ("bomb", b"HTTP/1.1 200", b"<open>", lambda said: said, is_answered),
        ("huge", b"HTTP/1.1 200", b"<more>", None, never),
        ("deep", b"HTTP/1.1 200", b"<open>", lambda said: said, is_answered),
    ],
)
def test_trouble_on_the_second_request_looks_like_trouble(
    trouble: str,
    start: bytes,
    end: bytes,
    length: Callable[[int], int] | None,
    enough: Callable[[bytes], bool],
    tls: bool,
    tmp_path: Path,
) -> None:
    more, ca = options(tmp_path, tls=tls)
    with (
        running_simweb(*SHAPE, *more, "--trouble", f"{trouble}=1") as (ready, _),
        connect(ready.port, ca=ca) as client,
    ):
        ask(client, "/robots.txt")
        assert client.recv(65536).startswith(b"HTTP/1.1 ")
        began = time.monotonic()
        ask(client, ARTICLE)
        if trouble == "hang":
            wait_until_read(ready.port, ca)
        received = listen(client, enough=enough)
        took_s = time.monotonic() - began
    assert received.startswith(start)
    assert received.endswith(end)
    head, _, body = received.partition(b"\r\n\r\n")
    if length is not None:
        assert abs(len(body) - len(end) - length(length_of(head))) <= 1  # half of an odd number
    if trouble == "drip":
        assert 1 <= len(body) - len(end) <= took_s + 0.1  # one a second
    assert [entry.path for entry in entries(tmp_path) if entry.path == ARTICLE] == [ARTICLE]
    assert {entry.path for entry in entries(tmp_path)} == {"/robots.txt", ARTICLE}


@pytest.mark.slow
@over_both
def test_log_ends_when_a_slow_reader_has_the_last_byte(tls: bool, tmp_path: Path) -> None:
    more, ca = options(tmp_path, tls=tls)
    with (
        running_simweb(*SHAPE, *more, "--trouble", "huge=1") as (ready, _),
        connect(ready.port, ca=ca) as client,
    ):
        ask(client, ARTICLE, more="Connection: close\r\n")
        began, received = time.monotonic(), 0
        while data := client.recv(1 << 20):
            if received < 5_000_000 <= received + len(data):
                time.sleep(1.0)
            received += len(data)
        took = time.monotonic() - began
    (entry,) = entries(tmp_path)
    assert took > 1
    assert entry.end - entry.start > 1
    assert entry.bytes == received > 30_000_000


@pytest.mark.slow
@over_both
def test_log_of_short_answers_waits_for_a_reader_who_does_not_read(tls: bool, tmp_path: Path) -> None:
    more, ca = options(tmp_path, tls=tls)
    with (
        running_simweb(*SHAPE, *more, "--trouble", "deep=1", "--no-gzip") as (ready, _),
        connect(ready.port, ca=ca) as client,
    ):
        for _ in range(40):  # 9 MB, more than the buffers between the two hold
            ask(client, ARTICLE)
        wait_for_entries(tmp_path, 1)
        time.sleep(0.5)
        reading = time.monotonic()
        while len(entries(tmp_path)) < 40:
            assert listen(client, 0.1).endswith((b"<open>", b"<more>"))
    found = entries(tmp_path)
    assert len(found) == 40
    assert found[0].end < reading < found[-1].end
    assert all(before.end <= after.end + KERNEL_TICK_S for before, after in pairwise(found))


@over_both
def test_head_of_a_page_in_trouble_has_no_body(tls: bool, tmp_path: Path) -> None:
    more, ca = options(tmp_path, tls=tls)
    with (
        running_simweb(*SHAPE, *more, "--trouble", "endless=1") as (ready, _),
        connect(ready.port, ca=ca) as client,
    ):
        ask(client, ARTICLE, method="HEAD")
        received = listen(client, enough=lambda received: b"\r\n\r\n" in received)
    assert received.startswith(b"HTTP/1.1 200")
    assert received.endswith(b"\r\n\r\n<open>")


@pytest.mark.slow
@over_both
@pytest.mark.parametrize("trouble", ["hang", "drip", "endless", "header-flood", "huge"])
def test_stopping_soon_logs_what_is_under_way(trouble: str, tls: bool, tmp_path: Path) -> None:
    more, ca = options(tmp_path, tls=tls)
    with running_simweb(*SHAPE, *more, "--trouble", f"{trouble}=1") as (ready, process):
        clients = [connect(ready.port, ca=ca) for _ in range(8)]
        for client in clients:
            ask(client, ARTICLE)
        if trouble != "hang":
            assert all(client.recv(10) for client in clients)
        wait_until_read(ready.port, ca)
        os.kill(process.pid, signal.SIGINT)
        assert process.wait(timeout=30) == 0  # a request that hangs does so for ten minutes
        assert process.stderr is not None
        assert process.stderr.read().strip().endswith("served 9 requests")
        for client in clients:
            client.close()
    assert [entry.path for entry in entries(tmp_path) if entry.path != "/robots.txt"] == [ARTICLE] * 8
    assert all(entry.end >= entry.start for entry in entries(tmp_path))


@pytest.mark.slow
def test_start_is_the_first_byte_of_a_request_that_comes_in_pieces(tmp_path: Path) -> None:
    more, _ = options(tmp_path, tls=False)
    with running_simweb(*SHAPE, *more) as (ready, _), connect(ready.port) as client:
        asked = time.monotonic()
        client.sendall(b"GET / HTTP/1.1\r\nHost: ")
        wait_until_read(ready.port)
        read = time.monotonic()
        time.sleep(0.1)
        client.sendall(b"h0.sim\r\nConnection: close\r\n\r\n")
        listen(client)
    (entry,) = [entry for entry in entries(tmp_path) if entry.path == "/"]
    assert asked <= entry.start <= read < entry.end


def test_request_that_the_client_gives_up_ends_when_it_hangs_up(tmp_path: Path) -> None:
    more, _ = options(tmp_path, tls=False)
    with running_simweb(*SHAPE, *more, "--trouble", "hang=1") as (ready, _):
        with connect(ready.port) as client:
            ask(client, ARTICLE)
            wait_until_read(ready.port)
            assert listen(client, 0.3) == b"<open>"
            waited = time.monotonic()
        logged = wait_for_entries(tmp_path, 2)  # the server is still running
    (entry,) = [entry for entry in logged if entry.path == ARTICLE]
    assert entry.start < waited < entry.end + KERNEL_TICK_S
    assert entry.status == 0


def test_bad_and_pipelined_requests_of_a_dropped_connection_are_logged(tmp_path: Path) -> None:
    more, _ = options(tmp_path, tls=False)
    with running_simweb(*SHAPE, *more, "--trouble", "hang=1") as (ready, _):
        with connect(ready.port) as client:
            client.sendall(b"\x16\x03\x01 this is not HTTP\r\n\r\n")
            received = listen(client)
        assert received.startswith(b"HTTP/1.1 400")
        assert received.endswith(b"<closed>")
        with connect(ready.port) as client:
            for path in (ARTICLE, "/", "/robots.txt"):
                ask(client, path)
            assert listen(client, 0.2) == b"<open>"
        wait_for_entries(tmp_path, 4)
    found = [(entry.path, entry.status) for entry in entries(tmp_path)]
    assert found == [("", 400), (ARTICLE, 0), ("/", 0), ("/robots.txt", 0)]
    assert entries(tmp_path)[0].bytes == len(received) - len("<closed>")


# names and certificates


@pytest.mark.slow
def test_tls_is_trusted_with_the_authority_it_writes(tmp_path: Path) -> None:
    more, ca = options(tmp_path, tls=True)
    with running_simweb("--hosts", "3", "--pages", "100", *more) as (ready, _):
        for name in ("h0.sim", "h2.sim", "localhost", "127.0.0.1"):
            with connect(ready.port, ca=ca, name=name) as client:
                ask(client, "/", more="Connection: close\r\n")
                received = listen(client)
            assert received.startswith(b"HTTP/1.1 200")
            assert received.endswith(b"<closed>")
            assert b"https://h" in received
        assert ready.front_page == f"https://127.0.0.1:{ready.port}/"


@pytest.mark.slow
def test_certificate_without_a_name_is_for_the_address_that_was_called(tmp_path: Path) -> None:
    more, ca = options(tmp_path, tls=True)
    with running_simweb(*SHAPE, *more) as (ready, _):
        plain = socket.create_connection(("127.7.8.9", ready.port), timeout=PATIENCE_S)
        context = ssl.create_default_context(cafile=str(ca))
        with context.wrap_socket(plain, server_hostname="127.7.8.9") as client:
            ask(client, "/")
            assert client.recv(12) == b"HTTP/1.1 200"


def test_odd_names_and_plain_http_are_refused_quietly_over_tls(tmp_path: Path) -> None:
    more, ca = options(tmp_path, tls=True)
    with running_simweb(*SHAPE, *more) as (ready, process):
        for name in ("under_score.sim", "-.sim", "xn--a.sim"):
            with pytest.raises(ssl.SSLError, match="UNRECOGNIZED_NAME"):
                connect(ready.port, ca=ca, name=name)
        with connect(ready.port) as client:
            ask(client, "/")
            assert b"HTTP/1.1" not in listen(client, 2)
        with connect(ready.port) as client:
            client.sendall(_hello_for(b"h\xff.sim"))
            assert client.recv(1) == b"\x15"  # an alert
        with connect(ready.port, ca=ca) as client:
            ask(client, "/")
            assert client.recv(12) == b"HTTP/1.1 200"
        process.terminate()
        process.wait(timeout=60)
        assert process.stderr is not None
        assert "Traceback" not in process.stderr.read()


def _hello_for(name: bytes) -> bytes:
    """A client's first bytes that ask for a name no client would send."""
    outgoing, stand_in = ssl.MemoryBIO(), b"x" * (len(name) - 4) + b".sim"
    tls = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname=stand_in.decode())
    with pytest.raises(ssl.SSLWantReadError):
        tls.do_handshake()
    return outgoing.read().replace(stand_in, name)
