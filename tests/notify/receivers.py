"""A site whose pages a test edits, and receivers of changes that remember what they were sent."""

import base64
import hmac
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

PLUGIN = """
import os
from apprise.decorators import notify

@notify(on="keep", name="Keep in a file")
def keep(body, title, notify_type, *args, **named):
    with open(os.environ["KEPT_IN"], "a") as file:
        file.write(title + "\\n" + body + "\\n\\n")
    return not os.path.exists(os.environ["KEPT_IN"] + ".refuse")
"""


class Site:
    """Pages by path; `asked` are the requests, `answer` may do something else with one."""

    def __init__(self) -> None:
        self.pages: dict[str, str] = {}
        self.asked: list[str] = []
        self.received: list[tuple[dict[str, str], bytes]] = []
        self.answer: Callable[[BaseHTTPRequestHandler], None] | None = None
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def changes(self) -> list[dict[str, Any]]:
        """The changes in all webhooks."""
        return [change for _, body in self.received for change in json.loads(body)["data"]["changes"]]


@contextmanager
def site(port: int = 0) -> Iterator[Site]:
    """A web server on loopback that serves pages, and takes webhooks with POST."""
    state = Site()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            state.asked.append(self.path)
            text = state.pages.get(self.path)
            kind = "text/html"
            if text is not None and text.startswith("<?xml"):
                kind = "application/xml"
            self.reply(404 if text is None else 200, (text or "").encode(), kind)

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if state.answer is not None:
                state.answer(self)
                return
            state.received.append(({name.lower(): value for name, value in self.headers.items()}, body))
            self.reply(204, b"", "text/plain")

        def reply(self, status: int, body: bytes, kind: str) -> None:
            self.send_response(status)
            self.send_header("Content-Type", f"{kind}; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    state.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()


def page(title: str, *pieces: str) -> str:
    return (
        f"<html><head><title>{title}</title></head><body>{''.join(f'<p>{each}</p>' for each in pieces)}</body></html>"
    )


def is_signed(secret: str, fields: dict[str, str], body: bytes) -> bool:
    """Whether a message is genuine, as a receiver that knows only docs/watching.md finds out."""
    key = base64.b64decode(secret.strip().removeprefix("whsec_"))
    signed = f"{fields['webhook-id']}.{fields['webhook-timestamp']}.".encode() + body
    wanted = base64.b64encode(hmac.new(key, signed, sha256).digest()).decode()
    is_recent = abs(time.time() - int(fields["webhook-timestamp"])) < 300
    return is_recent and hmac.compare_digest(fields["webhook-signature"], f"v1,{wanted}")


class AppriseFile(NamedTuple):
    """Apprise URLs for `--apprise`, and the file that the service behind them writes to."""

    urls: Path
    kept: Path

    @property
    def messages(self) -> list[str]:
        return self.kept.read_text().strip().split("\n\n") if self.kept.exists() else []


@contextmanager
def apprise_file(folder: Path) -> Iterator[AppriseFile]:
    """A service of Apprise that writes what it is told to a file."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "keep_plugin.py").write_text(PLUGIN)
    made = AppriseFile(folder / "urls", folder / "kept")
    made.urls.touch(0o600)
    made.urls.write_text("# where to\nkeep://here\n")
    before = dict(os.environ)
    os.environ.update({"APPRISE_PLUGIN_PATH": str(folder), "KEPT_IN": str(made.kept)})
    try:
        yield made
    finally:
        os.environ.clear()
        os.environ.update(before)


def wait_for(is_so: Callable[[], bool], *, most_s: float = 120.0) -> None:
    """Waits until something is so; the test fails if it never is."""
    end = time.monotonic() + most_s
    while not is_so():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)
