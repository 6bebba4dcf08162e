"""Whether a host has tables is found out with one request in vain at most, whichever kind of table comes first."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

import lycosa
from lycosa.crawl.progress import Recrawl

PAGES = 12
FAST = {"delay_s": 0, "per_host": 4, "per_ip": 4, "eager": False, "mine": "off"}


class Counting(BaseHTTPRequestHandler):
    """Pages with volatile parts, and no tables. Remembers every path that is asked for."""

    asked: list[str]
    with_link_header = False
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.asked.append(self.path)
        is_page = self.path == "/" or self.path.endswith(".html")
        links = "".join(f'<a href="/p{i}.html">{i}</a>' for i in range(PAGES))
        body = f"<p>{self.path}</p>{links}<span data-vol=n>{len(self.asked)}</span>".encode() if is_page else b""
        self.send_response(200 if is_page else 404)
        self.send_header("Content-Type", "text/html")
        if is_page and self.with_link_header:
            self.send_header("Link", '<page.tol>; rel="table-of-links"')
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Nothing is printed."""


@contextmanager
def counting(*, with_link_header: bool = False) -> Iterator[tuple[str, list[str]]]:
    """A server for the block: its front page, and the paths that were asked for."""
    asked: list[str] = []
    handler = type("Handler", (Counting,), {"asked": asked, "with_link_header": with_link_header})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/", asked
    finally:
        server.shutdown()
        server.server_close()


def crawl(into: Path, *seeds: str, recrawl: Recrawl | None = None, **settings: Any) -> None:
    async def main() -> None:
        options = {**FAST, "allow_private": ["127.0.0.0/8"], **settings}
        async with lycosa.Crawl(*seeds, into=into, recrawl=recrawl, **options) as running:
            await running.finish()

    asyncio.run(main())


def tables(asked: list[str]) -> list[str]:
    return [path for path in asked if path.endswith((".tol", ".tvi")) or "well-known" in path]


@pytest.mark.slow
@pytest.mark.parametrize("with_link_header", [False, True])
def test_crawl_and_recrawl_of_a_host_without_tables_ask_for_one_in_all(tmp_path: Path, with_link_header: bool) -> None:
    with counting(with_link_header=with_link_header) as (seed, asked):
        crawl(tmp_path / "c", seed, tables="always")
        for _ in range(2):
            crawl(tmp_path / "c", recrawl=Recrawl(everything=True), tables="always")
    assert len(tables(asked)) == 1
    assert tables(asked)[0].endswith(".tol")
    assert asked.count("/p1.html") == 3  # and every page was looked at, each time


@pytest.mark.slow
def test_host_that_has_no_volatile_table_is_not_asked_for_links(tmp_path: Path) -> None:
    with counting() as (seed, asked):
        crawl(tmp_path / "c", seed, per_host=1)  # no slot for a table
        assert tables(asked) == []
        crawl(tmp_path / "c", recrawl=Recrawl(everything=True), per_host=1)
        assert len(tables(asked)) == 1
        assert tables(asked)[0].endswith(".tvi")
        crawl(tmp_path / "c", f"{seed}more.html", tables="always")
    assert "/more.html" in asked
    assert len(tables(asked)) == 1
