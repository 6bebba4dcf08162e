"""HTTP/2 as an option of a crawl, and what a host says of https, by a server that offers both."""

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from lycosa.inspect import hosts, open_to_read
from lycosa.store.warc_read import WarcReader
from tests.sessions.recording_server import crawl

NGINX = """
user root; daemon off; pid {folder}/nginx.pid; worker_processes 1; error_log stderr crit;
events {{ worker_connections 64; }}
http {{
  access_log off; client_body_temp_path {folder}/a; proxy_temp_path {folder}/b; fastcgi_temp_path {folder}/c;
  uwsgi_temp_path {folder}/d; scgi_temp_path {folder}/e; default_type text/html;
  server {{
    listen 127.0.0.1:{port} ssl http2; root {folder}/site;
    ssl_certificate {folder}/site.pem; ssl_certificate_key {folder}/site.pem;
    add_header Strict-Transport-Security "max-age=3600; includeSubDomains" always;
  }}
}}
"""


@pytest.fixture
def site(tmp_path: Path) -> Iterator[str]:
    nginx = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if nginx is None:
        pytest.skip("nginx is not installed")
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(str(tmp_path / "site.pem"))
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "index.html").write_text("<title>hello</title>")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    (tmp_path / "nginx.conf").write_text(NGINX.format(folder=tmp_path, port=port))
    server = subprocess.Popen([nginx, "-p", str(tmp_path), "-e", "stderr", "-c", str(tmp_path / "nginx.conf")])
    try:
        for _ in range(100):
            with socket.socket() as probe:
                if not probe.connect_ex(("127.0.0.1", port)):
                    break
            time.sleep(0.02)
        yield f"https://127.0.0.1:{port}/"
    finally:
        server.terminate()
        server.wait(5)


@pytest.mark.parametrize(("http2", "protocol"), [(False, None), (True, "h2")])
def test_http2_is_spoken_if_asked_for_and_named_in_the_archive(
    tmp_path: Path, site: str, http2: bool, protocol: str | None
) -> None:
    stats = crawl(tmp_path / "c", site, http2=http2, ca_file=str(tmp_path / "ca.pem"))

    assert stats.pages == 1
    (archive,) = (tmp_path / "c" / "warc").iterdir()
    records = [record for record in WarcReader(archive) if record.type in ("request", "response")]
    assert {record.header("WARC-Protocol") for record in records} == {protocol}
    assert {record.block.split(b" ")[0] for record in records if record.type == "response"} == {b"HTTP/1.1"}
    with open_to_read(tmp_path / "c") as collection:
        (host,) = hosts(collection)
    assert 3_500 < host.hsts_until - time.time() <= 3_600
