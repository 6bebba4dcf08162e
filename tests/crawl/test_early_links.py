"""Links taken early: from any beginning of a document only what the whole has, and in the end the same crawl."""

import asyncio
import gzip
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from lycosa import Crawl
from lycosa.crawl.admission import links_so_far
from lycosa.crawl.reading import followed_links, read_page
from lycosa.inspect import open_to_read
from lycosa.records import Family, Request, Response
from lycosa.simweb import SimSettings, SimWeb
from lycosa.simweb.layout import PagePlace
from lycosa.simweb.memory import MemoryWeb, run_virtual
from lycosa.web import LinkRules

FOLLOWING = LinkRules(agent="lycosa")
PIECES = [
    '<a href="/a">A</a>',
    "<a href=/b?x=1&amp;y=2>",
    "<a href='/c' rel=nofollow>",
    '<a href="/c">',
    "<a title='>' href=\"/d\">",
    '<a\nhref="/e\n/f">',
    '<!-- <a href="/comment"> -->',
    "<!-- <a href=/open>",
    "<script>'<a href=\"/script\">'</script>",
    "<style><a href=/style></style>",
    "<textarea><a href=/textarea></textarea>",
    "<noscript><a href=/noscript></noscript>",
    "<template><a href=/template></template>",
    "<svg><a href=/svg></a><title><a href=/t></title></svg>",
    "<table><a href=/foster><tr><td>",
    "<iframe src=/frame></iframe>",
    "<area href=/area>",
    "<a href='/ümlaut'>",
    "<a href='/&uuml;'>",
    "<p>text",
    "</p>",
    "<title>x</title>",
    "<xmp><a href=/xmp></xmp>",
    "<a href=/unended",
    "<link rel=next href=/next>",
    "<meta http-equiv=refresh content='0;url=/refresh'>",
]
HEADS = [
    "<head></head>",
    "<base href=/base/><body>",
    "<head><meta charset=latin-1></head>",
    "<meta name=robots content=nofollow><body>",
]


URL = "http://h/dir/page"


def response(body: bytes, **headers: str) -> Response:
    return Response(URL, status=200, headers={"content-type": "text/html", **headers}, body=body)


def whole(body: bytes) -> Mapping[str, str]:
    page = read_page(response(body), body)
    if any("nofollow" in value for value in page.robots):
        return {}
    return followed_links(page, FOLLOWING, URL).joined


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(HEADS), st.lists(st.sampled_from(PIECES), max_size=8), st.data(), st.booleans())
def test_every_beginning_has_only_links_of_the_whole(head: str, pieces: list[str], data: Any, packed: bool) -> None:
    body = (head + "".join(pieces)).encode()
    sent, headers = (gzip.compress(body), {"content-encoding": "gzip"}) if packed else (body, {})
    cuts = data.draw(st.lists(st.integers(0, len(sent)), max_size=6))
    all_links = whole(body)
    for cut in (*cuts, len(sent)):
        urls = links_so_far(response(sent[:cut], **headers), FOLLOWING, URL)
        assert set(urls) <= set(all_links.values())
    assert set(urls) == {url for href, url in all_links.items() if href.isascii()}


def test_beginnings_of_long_pages_have_only_their_links() -> None:
    web = SimWeb(SimSettings(hosts=1, pages=50))
    for path in ("/", web.layout.path_of(PagePlace(0, 0, 1)), web.layout.path_of(PagePlace(0, 0, 2))):
        body = web.answer(0, path).body
        all_links = whole(body)
        found = [links_so_far(response(body[: len(body) * i // 20]), FOLLOWING, URL) for i in range(21)]
        assert all(set(urls) <= set(all_links.values()) for urls in found)
        assert len(found[10]) > len(all_links) // 4  # half of the page is not nothing


def test_bomb_is_not_read_early() -> None:
    body = b"<body><a href=/a>" + b"<p>" * 3_000_000
    packed = response(gzip.compress(body), **{"content-encoding": "gzip"})
    assert links_so_far(packed, FOLLOWING, URL) == []


def crawled(into: Path, web: SimWeb, **options: Any) -> tuple[set[str], dict[bytes, bytes]]:
    """The pages, and the rows of links."""

    async def main() -> set[str]:
        loop, memory = asyncio.get_running_loop(), MemoryWeb(web)
        parts: Any = {"resolver": memory, "downloader": memory, "now": loop.time}
        seed = web.linker.origin(0) + "/"
        usual = {"allow_private": ["127.0.0.0/8"], "delay_s": 0, "per_host": 8}
        async with Crawl(seed, into=into, **parts, **usual, **options) as crawl:
            return {page.url async for page in crawl}

    pages = run_virtual(main())
    with open_to_read(into) as collection:
        return pages, dict(collection.state.walk(Family.LINK))


def test_crawl_with_early_links_ends_as_one_without(tmp_path: Path) -> None:
    web = SimWeb(SimSettings(hosts=1, pages=80, rtt_ms=50, transfer_bytes_s=30_000))
    pages, links = crawled(tmp_path / "eager", web, eager=True)
    others, other_links = crawled(tmp_path / "plain", web, eager=False)
    assert pages == others
    assert links == other_links


class SlowWeb:
    """A downloader of one slow page and the page that it links to; `asked` tells when each was asked for."""

    def __init__(self, first: bytes, **headers: str) -> None:
        self.asked: dict[str, float] = {}
        self._first, self._headers, self._loop = first, headers, asyncio.get_running_loop()
        self._watcher: Any = None

    def watch(self, watcher: Any) -> None:
        self._watcher = watcher

    def start(self, request: Request, done: Any) -> None:
        now, path = self._loop.time(), request.url.partition("//")[2].partition("/")[2]
        self.asked[path] = now
        body = self._first if path == "" else b"" if path == "robots.txt" else b"<p>second"
        answer = Response(
            request.url,
            status=404 if path == "robots.txt" else 200,
            header_block=b"HTTP/1.1 200 OK\r\n\r\n",
            headers={"content-type": "text/html", **self._headers},
            body=body,
            started_s=now,
        )
        if path == "":
            self._loop.call_later(1, self._watcher, request, answer)
        self._loop.call_later(10 if path == "" else 0, lambda: done(answer))

    def cancel_all(self) -> None: ...

    async def close(self) -> None: ...

    async def resolve(self, name: str) -> Any: ...


def slow_crawl(into: Path, first: bytes, **headers: str) -> dict[str, float]:
    async def main() -> dict[str, float]:
        loop, web = asyncio.get_running_loop(), SlowWeb(first, **headers)
        parts: Any = {"downloader": web, "now": loop.time}
        async with Crawl("http://127.0.0.1:9/", into=into, **parts, delay_s=0, per_host=2, mine="off") as crawl:
            async for _ in crawl:
                pass
        return web.asked

    return run_virtual(main())


def test_link_of_a_slow_page_is_asked_for_before_its_end(tmp_path: Path) -> None:
    asked = slow_crawl(tmp_path / "c", b"<body><a href=/second>x</a>")
    assert asked["second"] < 2


def test_link_header_is_followed_before_the_end_of_the_page(tmp_path: Path) -> None:
    asked = slow_crawl(tmp_path / "c", b"text", link='</second>; rel="next", </style.css>; rel=preload')
    assert asked["second"] < 2
    assert "style.css" not in asked


def test_links_out_of_scope_and_of_nofollow_pages_are_not_taken_early(tmp_path: Path) -> None:
    asked = slow_crawl(tmp_path / "a", b"<body><a href=http://127.0.0.1:10/second>x</a>")
    assert "second" not in asked
    asked = slow_crawl(tmp_path / "b", b"<body><a href=/second>x</a>", **{"x-robots-tag": "nofollow"})
    assert "second" not in asked
