"""Servers on loopback that write down what they were sent, header fields and bodies, and a crawl of them."""

import asyncio
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

from lycosa import Crawl
from lycosa.crawl.stats import CrawlStats
from lycosa.store.warc_read import WarcReader


class Asked(NamedTuple):
    """A request as the server got it."""

    method: str
    path: str
    fields: dict[str, str]
    body: str
    came_s: float
    has_certificate: bool  # that of a client

    def __contains__(self, text: object) -> bool:
        return isinstance(text, str) and any(text in part for part in (self.path, self.body, *self.fields.values()))


class Reply(NamedTuple):
    status: int = 200
    body: str = ""
    fields: tuple[tuple[str, str], ...] = ()


def page(*hrefs: str, text: str = "") -> Reply:
    return Reply(body=f"<title>t</title><p>{text}" + "".join(f"<a href='{href}'>x</a>" for href in hrefs))


def redirect(to: str) -> Reply:
    return Reply(302, "", (("Location", to),))


class RecordingServer:
    """One origin; `answer` makes the replies. Use `with running(...)`."""

    def __init__(self, answer: Callable[[Asked], Reply], host: str, tls: ssl.SSLContext | None) -> None:
        self.asked: list[Asked] = []
        outer, lock = self, threading.Lock()

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = 1 << 16  # an answer is one packet
            disable_nagle_algorithm = True

            def _reply(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
                shown = bool(isinstance(self.connection, ssl.SSLSocket) and self.connection.getpeercert())
                asked = Asked(
                    self.command,
                    self.path,
                    {k.lower(): v for k, v in self.headers.items()},
                    body,
                    time.monotonic(),
                    shown,
                )
                with lock:
                    outer.asked.append(asked)
                    reply = Reply(404) if asked.path == "/robots.txt" and answer is not outer.robots else answer(asked)
                self.send_response(reply.status)
                data = reply.body.encode()
                if not any(name.lower() == "content-type" for name, _ in reply.fields):
                    self.send_header("Content-Type", "text/html; charset=utf-8")
                for name, value in reply.fields:
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = _reply

            def log_message(self, format: str, *args: object) -> None: ...

        self.robots: object = None
        self._server = ThreadingHTTPServer((host, 0), Handler)
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self.port = self._server.server_address[1]
        self.origin = f"{'https' if tls else 'http'}://{host}:{self.port}"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def paths(self) -> list[str]:
        return [asked.path for asked in self.asked]

    def got(self, text: str) -> list[str]:
        """The paths of the requests that have the text anywhere."""
        return [asked.path for asked in self.asked if text in asked]


@contextmanager
def running(
    answer: Callable[[Asked], Reply],
    *,
    host: str = "127.0.0.1",
    tls: ssl.SSLContext | None = None,
    robots: bool = False,
) -> Iterator[RecordingServer]:
    """`robots`: the answer function is asked for robots.txt, too; otherwise there is none."""
    server = RecordingServer(answer, host, tls)
    if robots:
        server.robots = answer
    try:
        yield server
    finally:
        server.close()


def crawl(into: Path, *seeds: str, **settings: Any) -> CrawlStats:
    """A crawl over real sockets to its end."""
    options = {
        "allow_private": ["127.0.0.0/8"],
        "scope": "any",
        "delay_s": 0.0,
        "mine": "off",
        "tables": "off",
        "sitemaps": False,
        **settings,
    }

    async def main() -> CrawlStats:
        async with Crawl(*seeds, into=into, **options) as running_crawl:
            return await running_crawl.finish()

    return asyncio.run(main())


def written_bytes(folder: Path, *, but: tuple[str, ...] = ()) -> bytes:
    """Everything that is in the files of a collection, archives unpacked."""
    found = []
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name not in but:
            found.append(path.read_bytes())
            if path.name.endswith(".warc.gz"):
                found += [record.block for record in WarcReader(path)]
    return b"\n".join(found)


def request_records(folder: Path) -> list[str]:
    """The request records of a collection's archive."""
    files = sorted((folder / "warc").glob("*.warc.gz"))
    return [record.block.decode() for file in files for record in WarcReader(file) if record.type == "request"]
