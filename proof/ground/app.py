"""A small single-page application on loopback: its pages are empty without scripts. Its log says what was asked for.

Every page is the same shell with an empty `#root`. Its script reads `/api/PATH` and makes text and links of it: page n
links to 3n+1, 3n+2 and 3n+3. `extra` is markup that every shell has beside, for those who try the ways out.
"""

import json
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

BUNDLE_BYTES = 150_000
BUNDLE = """
const root = document.getElementById("root");
fetch("/api" + location.pathname).then(answer => answer.json()).then(page => {
  document.title = page.title;
  root.innerHTML = `<h1>${page.title}</h1><p>${page.text}</p>` +
    page.links.map(link => `<a href="${link}">${link}</a>`).join(" ");
});
"""
STYLE = "body { font: 16px sans-serif } h1 { color: #336 }"


class AskedFor(NamedTuple):
    """One request, as the server saw it."""

    method: str
    path: str
    started_s: float
    ended_s: float
    is_browser: bool  # it has header fields that a browser sends by itself


class AppServer(ThreadingHTTPServer):
    """The application; `asked` is its log. `robots` is its robots.txt."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(
        self,
        pages: int,
        *,
        robots: str = "",
        extra: str = "",
        bundle_bytes: int = BUNDLE_BYTES,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.pages, self.robots, self.extra = pages, robots, extra
        self.bundle = BUNDLE + "/*" + "x" * max(0, bundle_bytes - len(BUNDLE)) + "*/"
        self.files: dict[str, tuple[int, str, str]] = {}  # path → status, media type and text, beside what it has
        self.shell = ""  # the page of another application, in place of its own
        self.asked: list[AskedFor] = []
        self.origin = f"{'https' if tls else 'http'}://127.0.0.1:{self.server_address[1]}"
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_side=True)

    def answer(self, path: str) -> tuple[int, str, str]:
        """Status, media type and text."""
        if path in self.files:
            return self.files[path]
        if path == "/robots.txt":
            return (200, "text/plain", self.robots) if self.robots else (404, "text/plain", "")
        if path == "/assets/bundle.js":
            return 200, "text/javascript", self.bundle
        if path == "/assets/style.css":
            return 200, "text/css", STYLE
        if path.startswith("/api/"):
            return self._api(path.removeprefix("/api"))
        if path == "/" or self._number(path) is not None:
            return 200, "text/html", self._shell()
        return 404, "text/plain", "not found"

    def _shell(self) -> str:
        if self.shell:
            return self.shell
        head = "<!doctype html><title>App</title><link rel=stylesheet href=/assets/style.css>"
        return f"{head}<div id=root></div><script src=/assets/bundle.js></script>{self.extra}"

    def _number(self, path: str) -> int | None:
        word = path.removeprefix("/item/")
        return int(word) if path.startswith("/item/") and word.isdecimal() and int(word) < self.pages else None

    def _api(self, path: str) -> tuple[int, str, str]:
        number = 0 if path == "/" else self._number(path)
        if number is None:
            return 404, "application/json", "{}"
        links = [f"/item/{other}" for other in range(3 * number + 1, 3 * number + 4) if other < self.pages]
        text = f"The words of page {number}. " * 10
        page: Mapping[str, object] = {"title": f"Item {number}", "text": text, "links": links}
        return 200, "application/json", json.dumps(page)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: AppServer

    def do_GET(self) -> None:
        began = time.monotonic()
        status, essence, text = self.server.answer(self.path)
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", essence)
        self.send_header("Content-Length", str(len(body)))
        if status in (301, 302):
            self.send_header("Location", text)
        is_browser = any(name.lower().startswith("sec-") for name in self.headers)
        # Noted first: who has the last byte may go on before this thread has its turn again.
        self.server.asked.append(AskedFor(self.command, self.path, began, time.monotonic(), is_browser))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_POST = do_PUT = do_OPTIONS = do_HEAD = do_GET

    def log_message(self, format: str, *args: object) -> None:
        return


@contextmanager
def served_app(pages: int, **options: Any) -> Iterator[AppServer]:
    """The application, served until the block ends; `options` are those of `AppServer`."""
    with AppServer(pages, **options) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield server
        finally:
            server.shutdown()
