"""The server of a replay, over sockets, and the command that starts it."""

import asyncio
import contextlib
import http.client
import signal
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lycosa.importing import import_archives
from lycosa.replay import HttpServer, ReplayAnswer
from lycosa.replay.http import is_own_host
from tests.cli.command import lycosa, started
from tests.importing.foreign import answer, page, record, write


@contextlib.contextmanager
def served(body: bytes = b"0123456789") -> Iterator[int]:
    """A server that answers everything with `body`, at the port that is given."""
    ready, loop = threading.Event(), asyncio.new_event_loop()
    server = HttpServer(lambda request: ReplayAnswer(200, body, (("X-Target", request.target),)))

    async def main() -> None:
        await server.start("127.0.0.1", 0)
        ready.set()

    loop.run_until_complete(main())
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield server.port
    finally:
        asyncio.run_coroutine_threadsafe(server.close(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


def ask(port: int, target: str = "/", method: str = "GET", **headers: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request(method, target, headers=headers)
    found = connection.getresponse()
    return found.status, found.read()


def test_connection_is_used_again_and_ranges_are_answered() -> None:
    with served() as port:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        for asked, status, body in (
            ("", 200, b"0123456789"),
            ("bytes=2-4", 206, b"234"),
            ("bytes=-3", 206, b"789"),
            ("bytes=8-", 206, b"89"),
            ("bytes=20-", 416, b""),
            ("bytes=1-2,4-5", 200, b"0123456789"),
            (f"bytes={'9' * 5_000}-", 200, b"0123456789"),
        ):
            connection.request("GET", "/x?y", headers={"Range": asked} if asked else {})
            found = connection.getresponse()
            assert (found.status, found.read()) == (status, body)
        connection.close()
        assert ask(port, method="HEAD") == (200, b"")


def test_large_body_is_sent_whole() -> None:
    with served(bytes(5_000_000)) as port:
        assert len(ask(port)[1]) == 5_000_000


def test_many_large_answers_at_once_are_sent_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lycosa.replay.http.LARGE_ANSWERS", 1)
    with served(bytes(6_000_000)) as port, ThreadPoolExecutor(5) as threads:
        assert [len(body) for _, body in threads.map(lambda _: ask(port), range(5))] == [6_000_000] * 5


@pytest.mark.parametrize(
    ("host", "is_own"),
    [
        ("127.0.0.1:8470", True),
        ("localhost", True),
        ("LOCALHOST:1", True),
        ("[::1]:8470", True),
        ("192.168.1.7", True),
        ("books.example:80", True),
        ("evil.example", False),
        ("127.0.0.1.evil.example", False),
        ("localhost.evil.example", False),
        ("", False),
        ("127.0.0.1; script-src *", False),
        ("127.0.0.1\n", False),
    ],
)
def test_host_must_be_an_address_or_a_name_of_ours(host: str, is_own: bool) -> None:
    assert is_own_host(host, "books.example") is is_own


def test_other_hosts_methods_and_nonsense_are_refused() -> None:
    with served() as port:
        assert ask(port, Host="evil.example")[0] == 421
        assert ask(port, method="POST")[0] == 405
        for sent in (b"GET\r\n\r\n", b"\x16\x03\x01\r\n\r\n", b"GET http://x/ HTTP/1.1\r\n\r\n"):
            with socket.create_connection(("127.0.0.1", port), 10) as connection:
                connection.sendall(sent)
                assert connection.recv(100).startswith(b"HTTP/1.1 400 ")
        with socket.create_connection(("127.0.0.1", port), 10) as connection:
            with contextlib.suppress(OSError):
                connection.sendall(b"GET / HTTP/1.1\r\nX: " + b"x" * 100_000)
            with contextlib.suppress(ConnectionResetError):
                assert connection.recv(100) == b"", "a head without end is not read"
        assert ask(port)[0] == 200


@pytest.fixture(scope="module")
def small_archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("archive")
    made = record("response", "https://site.example/", answer(page("Words")))
    import_archives([write(folder / "a.warc.gz", made)], folder / "c")
    return folder / "c"


@pytest.mark.slow
def test_command_prints_a_link_that_works_until_it_is_interrupted(small_archive: Path) -> None:
    process = started("replay", small_archive, "--port", "0")
    assert process.stdout is not None
    try:
        link = process.stdout.readline().strip()
        port, path = int(link.split(":")[2].partition("/")[0]), link.partition("//")[2].partition("/")[2]
        assert len(path) >= 24, "a token that nobody guesses"
        status, body = ask(port, f"/{path}page/latest/https://site.example/")
        assert (status, b"<h1>Words</h1>" in body) == (200, True)
        assert ask(port)[0] == 403
        again = lycosa("replay", small_archive, "--port", str(port))
        assert again.code == 2
        assert "choose another --port" in again.err
    finally:
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=120)
    assert process.returncode == 0
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--token", "a/b"], "8 to 128"),
        (["--port", "99999"], "99999"),
        (["--bind", "192.0.2.1"], "cannot listen"),
    ],
)
def test_wrong_options_are_said(small_archive: Path, words: list[str], said: str) -> None:
    found = lycosa("replay", small_archive, *words)

    assert found.code == 2
    assert said in found.err


def test_port_that_is_taken_is_said_in_plain_words(small_archive: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        found = lycosa("replay", small_archive, "--port", str(taken.getsockname()[1]))
    assert found.code == 2
    assert found.err.endswith("of 127.0.0.1 (Address already in use): choose another --port\n")


def test_folder_without_a_collection_is_said(tmp_path: Path) -> None:
    found = lycosa("replay", tmp_path)

    assert found.code == 2
    assert "Traceback" not in found.err
