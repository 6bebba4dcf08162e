"""The libcurl adapter over TLS: who is trusted, and HTTP/2."""

import asyncio
import shutil
import socket
import ssl
import subprocess
from pathlib import Path

import pytest
import trustme
import uvloop
from rig import QUICK, Rig, with_rig
from rough_server import RoughServer

from lycosa.errors import SettingsError
from lycosa.fetch.curl import CurlDownloader
from lycosa.records import Failure

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
    nginx = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if nginx is None:
        pytest.skip("nginx is not installed")
    certificate = AUTHORITY.issue_cert("site.example")
    certificate.private_key_and_cert_chain_pem.write_to_path(str(tmp_path / "site.pem"))
    (tmp_path / "page.html").write_text("x" * 50_000)
    port = free_port()
    (tmp_path / "nginx.conf").write_text(NGINX.format(folder=tmp_path, port=port))
    server = subprocess.Popen([nginx, "-p", str(tmp_path), "-e", "stderr", "-c", str(tmp_path / "nginx.conf")])

    async def main() -> None:
        downloader = CurlDownloader(QUICK, ca_file=ca_file, use_http2=True)
        rig = Rig(RoughServer(), downloader)
        for _ in range(50):
            if (await rig.get("/page.html", scheme="https", port=port)).failure is None:
                break
            await asyncio.sleep(0.05)
        before = downloader.stats().connections_opened
        responses = await asyncio.gather(*(rig.get("/page.html", scheme="https", port=port) for _ in range(50)))
        opened = downloader.stats().connections_opened - before
        await downloader.close()

        assert {response.header_block.split(b" ")[0] for response in responses} == {b"HTTP/2"}
        assert {len(response.body) for response in responses} == {50_000}
        assert opened == 0

    try:
        uvloop.run(main())
    finally:
        server.terminate()
        server.wait(5)


NGINX = """
user root; daemon off; pid {folder}/nginx.pid; worker_processes 1; error_log stderr crit;
events {{ worker_connections 64; }}
http {{
  access_log off; client_body_temp_path {folder}/a; proxy_temp_path {folder}/b; fastcgi_temp_path {folder}/c;
  uwsgi_temp_path {folder}/d; scgi_temp_path {folder}/e;
  server {{
    listen 127.0.0.1:{port} ssl http2; root {folder};
    ssl_certificate {folder}/site.pem; ssl_certificate_key {folder}/site.pem;
  }}
}}
"""


def free_port() -> int:

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
