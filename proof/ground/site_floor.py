"""The floor of the benchmark `site`: what fetching, parsing, joining and compressing the same pages takes, no more.

python -m proof.ground.site_floor CONNECTIONS < URLs: libcurl's multi interface fetches them, lexbor parses, `a[href]`
is selected, distinct hrefs without their fragments are joined by the C functions beneath ada's `join_url`, without its
checks and objects; isal compresses the body. Nothing is tested, kept, counted or written. Prints one JSON object; CPU
seconds are without the start of Python and the imports.
"""

import json
import select
import sys
import time
from collections.abc import Iterable, Iterator

import pycurl
from ada_url._ada_wrapper import ffi, lib
from isal import isal_zlib
from selectolax.lexbor import LexborHTMLParser

from proof.ground.commands import own_cpu_s

GZIP_LEVEL, GZIP_MEMBER = 2, 31


def join(base: str, hrefs: Iterable[str]) -> int:
    """How many hrefs lead somewhere."""
    raw_base = base.encode()
    base_size = len(raw_base)
    joined = 0
    for href in hrefs:
        raw = href.encode()
        found = lib.ada_parse_with_base(raw, len(raw), raw_base, base_size)
        text = lib.ada_get_href(found)
        joined += bool(ffi.unpack(text.data, text.length).decode()) if text.length else 0
        lib.ada_free(found)
    return joined


def work(url: str, body: bytes) -> tuple[int, int]:
    """One page; returns the number of joined links and of compressed bytes."""
    hrefs = {
        href.partition("#")[0]
        for node in LexborHTMLParser(body).css("a[href]")
        if (href := node.attributes["href"]) is not None
    }
    joined = join(url, hrefs)
    press = isal_zlib.compressobj(GZIP_LEVEL, isal_zlib.DEFLATED, GZIP_MEMBER)
    return joined, len(press.compress(body)) + len(press.flush())


class FloorFetcher:
    """Asks for URLs one after the other over a number of handles, and hands each body to `work`."""

    def __init__(self, urls: list[str], connections: int) -> None:
        self._urls: Iterator[str] = iter(urls)
        self._multi = pycurl.CurlMulti()
        self._multi.setopt(pycurl.M_SOCKETFUNCTION, self._on_socket)
        self._epoll = select.epoll()
        self._chunks: dict[pycurl.Curl, list[bytes]] = {}
        self._url: dict[pycurl.Curl, str] = {}
        self.pages = self.links = self.size_bytes = self.packed_bytes = 0
        for _ in range(connections):
            curl = pycurl.Curl()
            self._chunks[curl] = []
            curl.setopt(pycurl.BUFFERSIZE, 64 * 1024)
            curl.setopt(pycurl.WRITEFUNCTION, self._chunks[curl].append)
            self._begin(curl)

    def _begin(self, curl: pycurl.Curl) -> None:
        url = next(self._urls, None)
        if url is None:
            return
        self._url[curl] = url
        self._chunks[curl].clear()
        curl.setopt(pycurl.URL, url)
        self._multi.add_handle(curl)

    def _on_socket(self, what: int, fd: int, _multi: object, _assigned: object) -> None:
        if what in (pycurl.POLL_REMOVE, pycurl.POLL_NONE):
            return  # a kept connection stays in the set
        events = select.EPOLLIN if what == pycurl.POLL_IN else select.EPOLLIN | select.EPOLLOUT
        try:
            self._epoll.modify(fd, events)
        except FileNotFoundError:
            self._epoll.register(fd, events)

    def run(self) -> None:
        while self._url:
            self._multi.socket_action(pycurl.SOCKET_TIMEOUT, 0)
            self._collect()
            for fd, events in self._epoll.poll(0.01):
                mask = pycurl.CSELECT_IN if events & select.EPOLLIN else 0
                self._multi.socket_action(fd, mask | (pycurl.CSELECT_OUT if events & select.EPOLLOUT else 0))
                self._collect()

    def _collect(self) -> None:
        _, good, bad = self._multi.info_read()
        if bad:
            sys.exit(f"{self._url[bad[0][0]]}: {bad[0][2]}")
        for curl in good:
            self._multi.remove_handle(curl)
            body, url = b"".join(self._chunks[curl]), self._url.pop(curl)
            links, packed = work(url, body)
            self.pages += 1
            self.links += links
            self.size_bytes += len(body)
            self.packed_bytes += packed
            self._begin(curl)


def main() -> None:
    urls = sys.stdin.read().split()
    began_s, began_cpu_s = time.monotonic(), own_cpu_s()
    fetcher = FloorFetcher(urls, int(sys.argv[1]))
    fetcher.run()
    spent = {"wall_s": time.monotonic() - began_s, "cpu_s": own_cpu_s() - began_cpu_s}
    counts = {"pages": fetcher.pages, "links": fetcher.links, "bytes": fetcher.size_bytes}
    print(json.dumps(spent | counts | {"packed": fetcher.packed_bytes}))


if __name__ == "__main__":
    main()
