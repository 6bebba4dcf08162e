"""The live page over TLS: nothing of it, and no stored copy, goes over the network in the clear."""

import http.client
import ssl
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import trustme

from lycosa.errors import SettingsError
from lycosa.serve.server import ServeOptions, serve_collection
from tests.cli.command import started


def ask(link: str, authority: trustme.CA, **headers: str) -> tuple[int, str]:
    """The status, and where the answer leads or what it is."""
    parts, context = urlsplit(link), ssl.create_default_context()
    authority.configure_trust(context)
    connection = http.client.HTTPSConnection(parts.netloc, timeout=60, context=context)
    connection.request("GET", f"{parts.path}{parts.query and '?'}{parts.query}", headers=headers)
    found = connection.getresponse()
    return found.status, found.getheader("Location") or found.read().decode()


@pytest.mark.slow
def test_stored_copies_are_sent_over_tls_as_the_live_page_is(collection: Path, front_page: str, tmp_path: Path) -> None:
    authority = trustme.CA()
    own = authority.issue_cert("127.0.0.1")
    own.private_key_pem.write_to_path(tmp_path / "key.pem")
    own.cert_chain_pems[0].write_to_path(tmp_path / "cert.pem")
    files = ("--certificate", tmp_path / "cert.pem", "--key", tmp_path / "key.pem")
    process = started("serve", collection, "--port", "0", "--token", "a-token-for-tests", *files)
    assert process.stdout is not None
    try:
        link = next(word for word in process.stdout.readline().split() if word.startswith("https"))
        asked = f"{link.partition('?')[0]}copy?url={front_page}"
        status, copy = ask(asked, authority, Authorization="Bearer a-token-for-tests")
        assert status == 303
        assert copy.startswith("https://127.0.0.1:")
        assert ask(copy, authority)[0] == 200
        plain = http.client.HTTPConnection(urlsplit(copy).netloc, timeout=10)
        with pytest.raises((http.client.HTTPException, OSError)):
            plain.request("GET", urlsplit(copy).path)
            plain.getresponse()
    finally:
        process.terminate()
        process.communicate(timeout=120)


def test_certificate_that_cannot_be_used_is_said_in_a_sentence(collection: Path, tmp_path: Path) -> None:
    (tmp_path / "cert.pem").write_text("nothing")
    options = ServeOptions(port=0, certificate=str(tmp_path / "cert.pem"), key=str(tmp_path / "cert.pem"))
    with pytest.raises(SettingsError, match=r"cannot use .*cert\.pem"):
        serve_collection(collection, options, lambda link: None)
