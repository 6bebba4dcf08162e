"""A real web server that speaks HTTP/2, for tests of what a simulated one does not do."""

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

PATIENCE_S = 60.0
CONFIG = """
user root; daemon off; pid {folder}/nginx.pid; worker_processes 1; error_log stderr crit;
events {{ worker_connections 64; }}
http {{
  access_log off; client_body_temp_path {folder}/a; proxy_temp_path {folder}/b; fastcgi_temp_path {folder}/c;
  uwsgi_temp_path {folder}/d; scgi_temp_path {folder}/e; default_type text/html;
  server {{
    listen 127.0.0.1:{port} ssl http2; root {root};
    ssl_certificate {folder}/site.pem; ssl_certificate_key {folder}/site.pem;
    add_header Strict-Transport-Security "max-age=3600; includeSubDomains" always;
  }}
}}
"""


@contextmanager
def nginx(folder: Path, root: Path) -> Iterator[int]:
    """The port at which nginx serves the files below `root`, with the key and the certificate of `folder`/site.pem."""
    program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if program is None:
        pytest.skip("nginx is not installed")
    until = time.monotonic() + PATIENCE_S
    while True:
        port = free_port()
        (folder / "nginx.conf").write_text(CONFIG.format(folder=folder, root=root, port=port))
        server = subprocess.Popen([program, "-p", str(folder), "-e", "stderr", "-c", str(folder / "nginx.conf")])
        try:
            while server.poll() is None and not listens(port):
                assert time.monotonic() < until, "nginx does not listen"
                time.sleep(0.02)
            if server.poll() is None:
                yield port
                return
            assert time.monotonic() < until, "nginx does not start"  # another process took the port: the next one
        finally:
            server.terminate()
            server.wait(PATIENCE_S)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return not probe.connect_ex(("127.0.0.1", port))
