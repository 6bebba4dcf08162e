"""Servers on loopback, ended with the block that started them: nginx and the simulated web."""

import contextlib
import getpass
import json
import os
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import trustme

from lycosa.errors import LycosaError
from proof.ground.commands import lycosa
from proof.ground.peers import nginx

START_S = 10.0

# One worker: the other core belongs to whoever is measured. Connections are never closed for having been used often.
_NGINX = """
{user}
worker_processes 1;
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ worker_connections 1024; }}
http {{
  include /etc/nginx/mime.types;
  default_type application/octet-stream;
  log_format times '$msec $status $body_bytes_sent $request_uri';
  access_log {folder}/access.log times;
  client_body_temp_path {folder};
  proxy_temp_path {folder};
  fastcgi_temp_path {folder};
  uwsgi_temp_path {folder};
  scgi_temp_path {folder};
  sendfile on;
  tcp_nopush on;
  keepalive_requests 10000000;
  server {{ listen 127.0.0.1:{port}{tls}; root {root}; }}
}}
"""


class ServedPage(NamedTuple):
    """A response as nginx logged it. `ended_s` is when its last byte was handed over, Unix time in steps of 1 ms."""

    ended_s: float
    status: int
    size_bytes: int
    path: str


class Nginx:
    """A running nginx; `served` reads its log on from where the last call ended.

    `ca` is the file of the authority that signed its certificate; None without TLS.
    """

    def __init__(self, port: int, log: Path, ca: Path | None = None) -> None:
        self.port, self._log, self._read_bytes = port, log, 0
        self.ca = ca
        self.origin = f"{'https' if ca else 'http'}://127.0.0.1:{port}"

    def served(self) -> list[ServedPage]:
        with self._log.open("rb") as file:
            file.seek(self._read_bytes)
            lines = file.read().splitlines()
            self._read_bytes = file.tell()
        rows = (line.decode().split(" ", 3) for line in lines)
        return [ServedPage(float(ended), int(status), int(size), path) for ended, status, size, path in rows]


@contextlib.contextmanager
def nginx_of(root: Path, folder: Path, *, tls: bool = False) -> Iterator[Nginx]:
    """nginx serving `root`; keeps its log, pid file and certificate in `folder`."""
    port = free_port()
    folder.mkdir(parents=True, exist_ok=True)
    ca = _certificate(folder) if tls else None
    listen = f" ssl; ssl_certificate {folder}/server.pem; ssl_certificate_key {folder}/server.pem" if tls else ""
    user = f"user {getpass.getuser()};" if os.geteuid() == 0 else ""  # else its worker may not read the files
    (folder / "nginx.conf").write_text(_NGINX.format(user=user, folder=folder, port=port, tls=listen, root=root))
    command = [nginx(), "-p", str(folder), "-e", str(folder / "error.log"), "-c", str(folder / "nginx.conf")]
    server = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    try:
        await_server(port, server)
        yield Nginx(port, folder / "access.log", ca)
    finally:
        server.terminate()
        server.wait(timeout=START_S)


def _certificate(folder: Path) -> Path:
    """Writes a certificate for 127.0.0.1 with its key into `folder`; the file of the authority that signed it."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(str(folder / "server.pem"))
    return folder / "ca.pem"


class ServedWeb(NamedTuple):
    """A running simulated web."""

    pid: int
    port: int
    dns_port: int
    log: Path

    def options(self) -> list[str]:
        """What tells a crawl to ask this web's name server, and that its addresses are allowed."""
        return ["--dns", f"127.0.0.1:{self.dns_port}", "--allow-private", "127.0.0.0/8"]

    def front_page(self, host: int = 0) -> str:
        return f"http://h{host}.sim:{self.port}/"

    def served(self) -> int:
        """How many requests it has answered."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/.simweb/stats") as answer:
            return int(json.load(answer)["requests"])


@contextlib.contextmanager
def simulated_web(
    log: Path, *options: str, port: int = 0, dns_port: int = 0, inside: Sequence[str] = ()
) -> Iterator[ServedWeb]:
    """`lycosa simweb` with its log in a file; `inside` is a command that runs another, as in a network namespace."""
    ports = ["--port", str(port), "--dns-port", str(dns_port)]
    command = [*inside, *lycosa("simweb", *options, *ports, "--log", log, "--json")]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert server.stdout is not None
    try:
        if not (line := server.stdout.readline()):
            taken = f": is port {port} taken, by one that is still running?" if port else ""
            raise LycosaError(f"the simulated web did not start{taken}")
        ready = json.loads(line)
        yield ServedWeb(server.pid, ready["port"], ready["dns_port"], log)
    finally:
        server.terminate()
        server.wait(timeout=START_S)
        server.stdout.close()


class LivePage(NamedTuple):
    """A running `lycosa serve`; `link` is what to open."""

    pid: int
    link: str


@contextlib.contextmanager
def live_page(path: Path) -> Iterator[LivePage]:
    """`lycosa serve` of a collection."""
    server = subprocess.Popen(
        lycosa("serve", path, "--port", "0"), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert server.stdout is not None
    try:
        link = server.stdout.readline().strip()
        if not link:
            raise LycosaError(f"lycosa serve {path} did not start")
        yield LivePage(server.pid, link)
    finally:
        server.terminate()
        server.wait(timeout=START_S)
        server.stdout.close()


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def await_server(port: int, server: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        if server.poll() is not None:
            raise LycosaError(f"nginx ended with {server.returncode}: see its error log above")
        with contextlib.suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port)):
            return
        time.sleep(0.02)
    raise LycosaError("nginx did not start in time")
