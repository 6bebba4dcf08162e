"""Where the live page listens, who is let in, and what is said when it cannot start."""

import http.client
import socket
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

import pytest

from lycosa.errors import MissingExtra, SettingsError
from lycosa.serve.server import ServeOptions, serve_collection
from tests.cli.command import started


def test_missing_extra_is_told_with_how_to_install_it(collection: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lycosa.serve.server.find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"pip install 'lycosa\[serve\]'"):
        serve_collection(collection, ServeOptions(port=0), lambda link: None)


def test_port_that_is_taken_is_told(collection: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(SettingsError, match=f"cannot listen on port {port} .*choose another --port"):
            serve_collection(collection, ServeOptions(port=port), lambda link: None)


@pytest.mark.slow
@pytest.mark.parametrize("is_taken", [False, True])
def test_stored_copies_are_on_the_next_port_unless_it_is_taken(
    is_taken: bool, collection: Path, front_page: str
) -> None:
    port = two_free_ports()
    taken = socket.create_server(("127.0.0.1", port + 1)) if is_taken else None
    process = started("serve", collection, "--port", str(port))
    assert process.stdout is not None
    try:
        link = urlsplit(process.stdout.readline().strip())
        assert link.port == port
        copy = where_copies_are(link.netloc, link.query, front_page)
        assert (copy.port == port + 1) != is_taken
        connection = http.client.HTTPConnection(copy.netloc, timeout=60)
        connection.request("GET", copy.path)
        assert connection.getresponse().status == 200
    finally:
        process.terminate()
        process.communicate(timeout=120)
        if taken is not None:
            taken.close()


@pytest.mark.parametrize("bind", ["0.0.0.0", "::", "192.0.2.1", "machine.example"])
def test_other_machines_are_let_in_with_tls_or_by_a_waiver_only(bind: str, collection: Path) -> None:
    with pytest.raises(SettingsError, match="lets other machines in: give --certificate and --key, or say --insecure"):
        serve_collection(collection, ServeOptions(port=0, bind=bind), lambda link: None)
    with pytest.raises(SettingsError, match="belong together"):
        serve_collection(collection, ServeOptions(port=0, bind=bind, certificate="c.pem"), lambda link: None)


@pytest.mark.slow
def test_waiver_lets_other_machines_in_and_the_link_has_an_address(collection: Path, front_page: str) -> None:
    process = started("serve", collection, "--port", "0", "--bind", "0.0.0.0", "--insecure")
    assert process.stdout is not None
    try:
        link = urlsplit(process.stdout.readline().strip())
        assert link.hostname == "127.0.0.1"
        copy = where_copies_are(f"127.0.0.2:{link.port}", link.query, front_page)  # another address of this machine
        assert copy.hostname == "127.0.0.2"
        connection = http.client.HTTPConnection(copy.netloc, timeout=60)
        connection.request("GET", copy.path)
        assert connection.getresponse().status == 200
    finally:
        process.terminate()
        process.communicate(timeout=120)


def two_free_ports() -> int:
    """A port that is free, as the next one is."""
    while True:
        with socket.create_server(("127.0.0.1", 0)) as first:
            port: int = first.getsockname()[1]
            try:
                socket.create_server(("127.0.0.1", port + 1)).close()
            except OSError:
                continue
            return port


def where_copies_are(netloc: str, query: str, url: str) -> SplitResult:
    """Where the live page sends whoever wants to see a stored copy."""
    connection = http.client.HTTPConnection(netloc, timeout=60)
    token = {"Authorization": f"Bearer {query.removeprefix('token=')}"}
    connection.request("GET", f"/copy?url={url}", headers=token)
    return urlsplit(connection.getresponse().getheader("Location", ""))
