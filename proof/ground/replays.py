"""Archives replayed by the tools of others, and by ours: each is a server on loopback that ends with its block."""

import contextlib
import gzip
import http.client
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from lycosa.errors import LycosaError
from proof.ground.commands import lycosa
from proof.ground.peers import pywb, replaywebpage
from proof.ground.servers import Nginx, free_port, nginx_of

START_S = 60.0
REPLAYED = "20"  # the beginning of a time: the capture nearest to it, of which there is one
_EMBEDDED = """<!doctype html><meta charset=utf-8><title>{name}</title><script src="ui.js"></script>
<style>replay-web-page {{ display: block; height: 95vh }}</style>
<replay-web-page source="{name}" url="{url}" replayBase="./replay/" embed="replayonly"></replay-web-page>
"""


@contextlib.contextmanager
def replayed_by_pywb(folder: Path, *archives: Path) -> Iterator[int]:
    """pywb with these archives in its collection `t`, at the port that is given."""
    python = pywb()
    folder.mkdir(parents=True, exist_ok=True)
    for words in (["init", "t"], ["add", "t", *archives]):
        subprocess.run([python.with_name("wb-manager"), *words], cwd=folder, check=True, capture_output=True)
    port = free_port()
    command = [str(python.with_name("wayback")), "--bind", "127.0.0.1", "--port", str(port)]
    server = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait_for(port, server, "pywb")
        yield port
    finally:
        server.terminate()
        server.wait(10)


@contextlib.contextmanager
def replayed_by_lycosa(collection: Path) -> Iterator[str]:
    """`lycosa replay`; gives its link."""
    words = [str(word) for word in lycosa("replay", collection, "--port", "0")]
    server = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert server.stdout is not None
    try:
        yield server.stdout.readline().strip()
    finally:
        server.terminate()
        server.wait(10)
        server.stdout.close()


@contextlib.contextmanager
def wacz_in_a_page(folder: Path, wacz: Path) -> Iterator[Nginx]:
    """A WACZ file beside ReplayWeb.page, served by nginx; `embed` names the page that shows a URL of it."""
    root, package = folder / "root", replaywebpage()
    (root / "replay").mkdir(parents=True)
    shutil.copy(package / "ui.js", root)
    shutil.copy(package / "sw.js", root / "replay")
    (root / "site.wacz").hardlink_to(wacz)
    with nginx_of(root, folder / "nginx") as server:
        yield server


def embed(folder: Path, server: Nginx, number: int, url: str) -> str:
    """The address of a page that replays `url` out of the WACZ file."""
    (folder / "root" / f"{number}.html").write_text(_EMBEDDED.format(name="site.wacz", url=url))
    return f"{server.origin}/{number}.html"


def body_of(port: int, target: str) -> tuple[int, bytes]:
    """Status and body of an answer, its content coding undone."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", quote(target, safe="%/:?#[]@!$&'()*+,;=-._~|"), headers={"Accept-Encoding": "gzip"})
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, gzip.decompress(body) if answer.headers.get("Content-Encoding") == "gzip" else body


def _wait_for(port: int, server: "subprocess.Popen[bytes]", name: str) -> None:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and server.poll() is None:
        with contextlib.suppress(OSError):
            http.client.HTTPConnection("127.0.0.1", port, timeout=1).connect()
            return
        time.sleep(0.1)
    raise LycosaError(f"{name} did not start")
