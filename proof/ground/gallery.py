"""A page with two pictures on loopback, in three versions: first its text and elements change, then a picture."""

import io
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from PIL import Image, ImageDraw

SIZE = (320, 200)
LAST = 3
SKIES = {1: ("#7fb2e5", (40, 40, 120, 120)), 2: ("#7fb2e5", (40, 40, 120, 120)), 3: ("#e58f4f", (180, 60, 290, 170))}
LAKE = ("#3f7f9f", (40, 40, 120, 120))
NEW = "<li>three</li></ul><table><tr><td>4</td></table>"
PARTS = {1: "morning.</p><ul><li>one</li></ul>", 2: f"evening.</p><ul><li>one</li>{NEW}"}


def drawn(colour: str, circle: tuple[int, int, int, int]) -> bytes:
    picture = Image.new("RGB", SIZE, colour)
    ImageDraw.Draw(picture).ellipse(circle, fill="#f4e04d")
    out = io.BytesIO()
    picture.save(out, "PNG")
    return out.getvalue()


class GallerySite(ThreadingHTTPServer):
    """The site; `version` is the one that it shows now."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.version = 1

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/"

    def answer(self, path: str) -> tuple[str, bytes] | None:
        if path == "/":
            pictures = "".join(f"<img src=/{name}.png alt={name} width=320>" for name in ("sky", "lake"))
            text = f"<h1>Gallery</h1><p>The lake in the {PARTS[min(self.version, 2)]}"
            return "text/html", f"<!doctype html><title>Gallery</title><main>{text}{pictures}</main>".encode()
        shown = {"/sky.png": SKIES[self.version], "/lake.png": LAKE}.get(path)
        return ("image/png", drawn(*shown)) if shown else None


class _Handler(BaseHTTPRequestHandler):
    server: GallerySite

    def do_GET(self) -> None:
        found = self.server.answer(self.path)
        kind, body = found or ("text/plain", b"")
        self.send_response(200 if found else 404)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def gallery() -> Iterator[GallerySite]:
    """The site while the block runs."""
    with GallerySite() as site:
        thread = threading.Thread(target=site.serve_forever, daemon=True)
        thread.start()
        try:
            yield site
        finally:
            site.shutdown()
            thread.join()
