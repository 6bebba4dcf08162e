"""The libcurl adapter over TLS: who is trusted, and HTTP/2."""

import asyncio
import ssl
from pathlib import Path

import pytest
import trustme
import uvloop
from rig import UNHURRIED, Rig, with_rig
from rough_server import RoughServer

from lycosa.errors import SettingsError
from lycosa.fetch.curl import CurlDownloader
from lycosa.records import Failure
from tests.nginx import nginx

AUTHORITY = trustme.CA()


def context_for(name: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    AUTHORITY.issue_cert(name).configure_cert(context)
    return context


@pytest.fixture
def ca_file(tmp_path: Path) -> str:
    AUTHORITY.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    return str(tmp_path / "ca.pem")


def test_tls_unknown_authority_is_refused() -> None:
    async def work(rig: Rig) -> None:
        response = await rig.get("/", scheme="https")

        assert response.failure is Failure.TLS
        assert "certificate" in response.detail
        assert rig.server.heads == []

    with_rig(work, tls=context_for("site.example"))


def test_tls_given_authority_is_trusted_for_the_name_in_the_url(ca_file: str) -> None:
    async def work(rig: Rig) -> None:
        right = await rig.get("/", scheme="https")
        wrong = await rig.get("/", scheme="https", host="other.example")

        assert (right.status, right.body) == (200, b"hello")
        assert wrong.failure is Failure.TLS

    with_rig(work, tls=context_for("site.example"), ca_file=ca_file)


def test_tls_unverified_when_asked_for() -> None:
    async def work(rig: Rig) -> None:
        assert (await rig.get("/", scheme="https")).status == 200

    with_rig(work, tls=context_for("other.example"), verify_tls=False)


def test_tls_plain_server_is_a_tls_failure() -> None:
    async def work(rig: Rig) -> None:
        async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read(100)
            writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            writer.close()

        server = await asyncio.start_server(refuse, "127.0.0.1", 0)
        response = await rig.get("/", scheme="https", port=server.sockets[0].getsockname()[1])
        server.close()

        assert response.failure is Failure.TLS

    with_rig(work)


@pytest.mark.parametrize("content", [None, "not a certificate"])
def test_tls_unusable_ca_file_is_a_settings_error(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "ca.pem"
    if content is not None:
        path.write_text(content)

    async def main() -> None:
        with pytest.raises(SettingsError, match="CA file"):
            CurlDownloader(ca_file=str(path))

    uvloop.run(main())


@pytest.mark.slow
def test_http2_requests_to_one_host_share_a_connection(tmp_path: Path, ca_file: str) -> None:
    certificate = AUTHORITY.issue_cert("site.example")
    certificate.private_key_and_cert_chain_pem.write_to_path(str(tmp_path / "site.pem"))
    (tmp_path / "page.html").write_text("x" * 50_000)

    async def main(port: int) -> None:
        downloader = CurlDownloader(UNHURRIED, ca_file=ca_file, use_http2=True)
        rig = Rig(RoughServer(), downloader)
        assert (await rig.get("/page.html", scheme="https", port=port)).failure is None
        before = downloader.stats().connections_opened
        responses = await asyncio.gather(*(rig.get("/page.html", scheme="https", port=port) for _ in range(50)))
        opened = downloader.stats().connections_opened - before
        await downloader.close()

        assert {response.header_block.split(b" ")[0] for response in responses} == {b"HTTP/2"}
        assert {len(response.body) for response in responses} == {50_000}
        assert opened == 0

    with nginx(tmp_path, tmp_path) as port:
        uvloop.run(main(port))
