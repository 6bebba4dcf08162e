"""Tables of links in a crawl: asked for where they help, compared with documents, never a way around the rules."""

import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from lycosa import Crawl
from lycosa.frontier import RequestKind
from lycosa.frontier.rankings import PValue, Rank
from lycosa.frontier.rows import unpack_host
from lycosa.inspect import open_to_read
from lycosa.records import Family, Request, Response
from lycosa.simweb import SimSettings, SimWeb
from lycosa.simweb.log import AuditRules, LoggedRequest, audit
from lycosa.simweb.memory import run_virtual
from lycosa.simweb.truth import truth_of
from lycosa.tables.formats import table_digest, table_url
from lycosa.tables.links import TableSupport
from tests.crawl.memory_crawl import Result, crawl, front

SLOW = {"rtt_ms": 50, "transfer_bytes_s": 30_000}
FAST = {"delay_s": 0, "per_host": 8, "eager": False}


def web_with(tables: float = 1.0, **settings: Any) -> SimWeb:
    return SimWeb(SimSettings(**{"hosts": 1, "pages": 150, "seed": 4, "tables": tables, **SLOW, **settings}))


def tables_asked(result: Result) -> list[str]:
    return [entry.path for entry in result.entries if entry.path.endswith(".tol")]


@pytest.mark.parametrize("mode", ["auto", "always"])
def test_crawl_with_tables_reaches_the_truth_politely(tmp_path: Path, mode: str) -> None:
    web = web_with(hosts=3, pages=240, seed=7)
    result = crawl(web, tmp_path / "c", front(web), tables=mode, **FAST)
    assert set(result.fetched()) == truth_of(web, [front(web)], scope="any", mine="ancestors").pages
    assert set(result.fetched().values()) == {1}
    assert audit(web.settings, result.entries, AuditRules(delay_s=0, per_host=8, per_ip=8)).is_clean
    assert result.stats.tables["read"] > 0
    stats = result.stats
    settled = stats.pages + stats.redirects + stats.sitemaps + sum(stats.failed.values()) + sum(stats.dropped.values())
    assert stats.known == settled + stats.queued


def test_host_without_tables_is_asked_for_one_at_most(tmp_path: Path) -> None:
    web = web_with(tables=0.0)
    result = crawl(web, tmp_path / "c", front(web), tables="always", **FAST)
    assert len(tables_asked(result)) == 1
    again = crawl(web, tmp_path / "c", front(web), f"{web.linker.origin(0)}/feed.xml", tables="always", **FAST)
    assert tables_asked(again) == []


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"policy": "rank"},
        {"policy": "pvalue+leaf-window"},
        {"policy": "topic", "topic": "river"},
        {"policy": "top-window", "per_host": 2},
        {"pages_per_host": 99},
    ],
    ids=str,
)
def test_always_reads_each_table_before_its_document_with_any_delay_and_policy(
    tmp_path: Path, settings: dict[str, Any]
) -> None:
    web = web_with(hosts=3, pages=90, seed=7)
    result = crawl(web, tmp_path / "c", front(web), tables="always", mine="off", **{"delay_s": 1.0, **settings})
    assert set(result.fetched()) == truth_of(web, [front(web)], scope="any", mine="off").pages
    assert audit(web.settings, result.entries, AuditRules(delay_s=1.0, per_host=settings.get("per_host", 1))).is_clean
    ends = {(entry.host, entry.path): entry.end for entry in result.entries}
    pages = [entry for entry in result.entries if entry.path.endswith((".html", "/"))]
    asked = [(e, ends.get((e.host, table_path))) for e in pages if (table_path := allowed_table(web, e)) is not None]
    assert [e.path for e, end in asked if end is None or end > e.start] == []
    assert len(asked) > 80


def allowed_table(web: SimWeb, page: LoggedRequest) -> str | None:
    """The path of the table beside a page, if robots.txt allows to ask for it."""
    path = urlsplit(table_url(f"http://{page.host}{page.path}", "tol") or "").path
    return path if web.robots.of(web.layout.host_number(page.host) or 0).allows(path, page.agent) else None


def test_host_that_is_busy_now_and_then_keeps_its_tables(tmp_path: Path) -> None:
    web = web_with(pages=60, trouble={"unavailable": 1.0})
    result = crawl(web, tmp_path / "c", front(web), tables="always", mine="off")
    assert result.stats.tables["503"] > 1  # the first that is tried among them
    assert result.stats.tables["read"] > 0.7 * result.stats.pages
    assert audit(web.settings, result.entries, AuditRules()).is_clean


def test_crawl_stopped_between_a_table_and_its_document_loses_nothing(tmp_path: Path) -> None:
    web = web_with(pages=30)
    options: dict[str, Any] = {"tables": "always", "policy": "rank", "delay_s": 1.0, "mine": "off"}
    stops = [(17, 1), (12, 2), (13, 2), (0, 0)]  # after so many requests, once or twice: that cancels
    fetched: Counter[str] = Counter()
    for after, times in stops:

        def act(running: Crawl, times: int = times) -> None:
            for _ in range(times):
                running.engine.stop()

        fetched += crawl(web, tmp_path / "c", front(web), act=act, after=after, **options).fetched()
    assert set(fetched) == truth_of(web, [front(web)], mine="off").pages
    assert set(fetched.values()) == {1}


@pytest.mark.parametrize("policy", ["pvalue", "rank"])
def test_link_in_a_table_and_in_its_document_counts_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, policy: str
) -> None:
    counted: Counter[tuple[str, str]] = Counter()
    ranking = {"pvalue": PValue, "rank": Rank}[policy]
    real = ranking.fetched

    def fetched(self: Any, source: Any, urls: Any, anchors: Any) -> Any:
        counted.update((source.url, url) for url in urls)
        return real(self, source, urls, anchors)

    monkeypatch.setattr(ranking, "fetched", fetched)
    web = web_with(pages=60)
    crawl(web, tmp_path / "off", front(web), policy=policy, mine="off", tables="off")
    by_documents, _ = dict(counted), counted.clear()
    crawl(web, tmp_path / "always", front(web), policy=policy, mine="off", tables="always")
    assert dict(counted) == by_documents


def test_links_of_a_table_are_asked_for_before_its_document_is_there(tmp_path: Path) -> None:
    table = b"# tol 1\nexternal\thttp://127.0.0.1:10/b.html\n"
    for policy in ("breadth", "rank", "pvalue"):
        asked = asked_with(
            tmp_path / policy,
            table,
            page=b"<a href=http://127.0.0.1:10/b.html>b</a>",
            options={
                "delay_s": 3.0,
                "per_host": 1,
                "scope": "any",
                "policy": policy,
                "allow_private": ("127.0.0.0/8",),
            },
        )
        assert asked[:2] == ["/robots.txt", "/index.tol"]
        assert asked.index("http://127.0.0.1:10/robots.txt") < asked.index("/")


@pytest.mark.parametrize("settings", [{"per_host": 1}, {"delay_s": 0.5}, {"policy": "rank"}, {"pages_per_host": 99}])
def test_automatic_mode_asks_for_none_where_it_would_cost_a_page(tmp_path: Path, settings: dict[str, Any]) -> None:
    web = web_with()
    assert tables_asked(crawl(web, tmp_path / "c", front(web), **FAST | settings)) == []


def test_automatic_mode_leaves_full_slots_to_pages(tmp_path: Path) -> None:
    web = web_with()
    result = crawl(web, tmp_path / "c", front(web), **FAST | {"per_host": 3})
    ends = {entry.path: entry.end for entry in result.entries}
    found = [entry for entry in result.entries if entry.path.endswith(".tol")]
    last_page = max(ends.values())
    assert 0 < len(found) < 10
    assert all(entry.start < 3 or entry.start > last_page - 5 for entry in found)  # at the beginning and at the end


def test_lying_tables_are_noticed_and_not_asked_for_again(tmp_path: Path) -> None:
    web = web_with(trouble={"lying-table": 1.0})
    result = crawl(web, tmp_path / "c", front(web), tables="always", **FAST)
    assert truth_of(web, [front(web)], mine="ancestors").pages <= set(result.fetched())
    assert len(tables_asked(result)) < 20
    events = [json.loads(line) for line in (tmp_path / "c" / "log.jsonl").read_text().splitlines()]
    assert [event["host"] for event in events if event["event"] == "tables-not-trusted"] == [web.linker.origin(0)]
    with open_to_read(tmp_path / "c") as collection:
        (row,) = [unpack_host(row) for _, row in collection.state.walk(Family.HOST)]
    assert row.tables == TableSupport.LIES


def test_tables_save_time_where_slots_are_idle(tmp_path: Path) -> None:
    web = web_with(pages=40)
    off, auto = (crawl(web, tmp_path / mode, front(web), tables=mode, **FAST) for mode in ("off", "auto"))
    assert max(entry.end for entry in auto.entries) < max(entry.end for entry in off.entries)


class TableWeb:
    """A host with one slow page, and a table beside it that a test makes up. `asked` is in order."""

    def __init__(self, table: bytes, robots: bytes, page: bytes, status: int, link: str) -> None:
        self.asked: list[str] = []
        self._link = {"link": link} if link else {}
        self._table, self._robots, self._page, self._status = table, robots, page, status
        self._loop = asyncio.get_running_loop()

    def start(self, request: Request, done: Any) -> None:
        path = request.url.removeprefix("http://127.0.0.1:9")
        self.asked.append(path)
        bodies = {"/": self._page, "/index.tol": self._table, "/robots.txt": self._robots}
        status = self._status if path == "/index.tol" else 200 if path in bodies else 404
        answer = Response(
            request.url,
            status=status,
            header_block=b"HTTP/1.1 200 OK\r\n\r\n",
            headers={"content-type": "text/html" if path == "/" else "text/plain", **self._link},
            body=bodies.get(path, b""),
            started_s=self._loop.time(),
            ended_s=self._loop.time() + (took_s := 5.0 if path == "/" else 0.1),
        )
        self._loop.call_later(took_s, lambda: done(answer))

    def cancel_all(self) -> None: ...

    async def close(self) -> None: ...


PAGE = b"<a href=/a>A</a>"


def asked_with(
    into: Path,
    table: bytes,
    *,
    robots: bytes = b"",
    page: bytes = PAGE,
    status: int = 200,
    link: str = "",
    options: dict[str, Any] | None = None,
) -> list[str]:
    async def main() -> list[str]:
        web = TableWeb(table, robots, page, status, link)
        parts: Any = {"downloader": web, "now": asyncio.get_running_loop().time}
        settings: Any = {"delay_s": 0, "per_host": 4, "mine": "off", "tables": "always", **(options or {})}
        async with Crawl("http://127.0.0.1:9/", into=into, **parts, **settings) as crawl:
            async for _ in crawl:
                pass
        return web.asked

    return run_virtual(main())


@pytest.mark.parametrize(
    ("settings", "may_ask"),
    [
        ({"delay_s": 0, "per_host": 2}, True),
        ({"delay_s": 0, "per_host": 2, "tables": "off"}, False),
        ({"delay_s": 0, "per_host": 1}, False),
        ({"delay_s": 0.5, "per_host": 2}, False),
        ({"delay_s": 0, "per_host": 2, "policy": "rank"}, False),
        ({"delay_s": 0, "per_host": 2, "host_pages": ("127.0.0.1=9",)}, False),
        ({"delay_s": 1.0, "per_host": 1, "tables": "always"}, True),
    ],
    ids=str,
)
def test_crawl_that_may_never_ask_for_a_table_does_without_the_feature(
    tmp_path: Path, settings: dict[str, Any], may_ask: bool
) -> None:
    async def main() -> bool:
        web = TableWeb(b"", b"", PAGE, 200, "")
        parts: Any = {"downloader": web, "now": asyncio.get_running_loop().time}
        async with Crawl("http://127.0.0.1:9/", into=tmp_path / "c", **parts, **settings) as crawl:
            return RequestKind.TABLE in crawl.engine.features.handlers

    assert run_virtual(main()) is may_ask


def known_of(into: Path) -> int:
    with open_to_read(into) as collection:
        (row,) = [unpack_host(row) for _, row in collection.state.walk(Family.HOST)]
    return row.tables


def test_table_is_read_before_its_document(tmp_path: Path) -> None:
    asked = asked_with(tmp_path / "c", b"# tol 1\n# of: index.html\ninternal\t/a\tA\n")
    assert asked == [
        "/robots.txt",
        "/index.tol",
        "/",
        "/a",
    ]  # what has no ending is often moved, so /a.tol is not tried
    assert known_of(tmp_path / "c") == TableSupport.HAS


@pytest.mark.parametrize(
    "row",
    [
        b"external\thttp://other.example/a\n",
        b"internal\thttp://other.example/a\n",  # whatever the table says
        b"internal\thttp://127.0.0.1:10/a\n",
        b"internal\tfile:///etc/passwd\n",
        b"internal\t/forbidden\n",
        b"internal\t/a\t\tnofollow\n",
        b"internal\t/style.css\t\tstylesheet\tlink\n",
    ],
)
def test_table_leads_nowhere_that_a_document_would_not(tmp_path: Path, row: bytes) -> None:
    robots = b"User-agent: *\nDisallow: /forbidden\n"
    asked = asked_with(tmp_path / "c", b"# tol 1\n" + row, robots=robots, page=b"<p>none")
    assert asked == ["/robots.txt", "/index.tol", "/"]


@pytest.mark.parametrize(
    ("table", "status"),
    [
        (b"", 200),
        (b"<html>Not found", 200),
        (b"# tol 9\n", 200),
        (b"# tol 1\n\xff\xfe\n", 200),
        (b"# tol 1\ninternal\t/b", 200),
        (b"# tol 1\n" + b"internal\t/b\n" * 60_000, 200),
        (b"# tol 1\n" + b"#" * 4_000_000, 200),
        (b"# tol 1\ninternal\t/b\n", 404),
        (b"# tol 1\ninternal\t/b\n", 500),
        (b"# tol 1\ninternal\t/b\n", 301),
    ],
)
def test_what_is_no_table_is_ignored_and_remembered(tmp_path: Path, table: bytes, status: int) -> None:
    asked = asked_with(tmp_path / "c", table, status=status)
    assert asked == ["/robots.txt", "/index.tol", "/", "/a"]
    assert known_of(tmp_path / "c") == TableSupport.HAS_NONE


def test_table_that_robots_forbid_is_not_asked_for(tmp_path: Path) -> None:
    asked = asked_with(tmp_path / "c", b"# tol 1\n", robots=b"User-agent: *\nDisallow: /*.tol\n")
    assert asked == ["/robots.txt", "/", "/a"]


def test_link_header_tells_of_tables(tmp_path: Path) -> None:
    link, robots = '<x.tol>; rel="table-of-links"', b"User-agent: *\nDisallow: /index.tol\n"
    asked_with(tmp_path / "c", b"", robots=robots, link=link)
    assert known_of(tmp_path / "c") == TableSupport.HAS


def test_stale_table_is_forgiven_and_a_lie_is_not(tmp_path: Path) -> None:
    stale = f"# tol 1\n# document: {table_digest(b'as it was')}\ninternal\t/b\n".encode()
    asked_with(tmp_path / "stale", stale)
    assert known_of(tmp_path / "stale") == TableSupport.HAS
    lie = f"# tol 1\n# document: {table_digest(PAGE)}\ninternal\t/a\ninternal\t/b\n".encode()
    asked_with(tmp_path / "lie", lie)
    assert known_of(tmp_path / "lie") == TableSupport.LIES


def test_table_that_points_to_itself_or_to_tables_ends(tmp_path: Path) -> None:
    asked = asked_with(tmp_path / "c", b"# tol 1\ninternal\t/index.tol\ninternal\t/\ninternal\t/a\n")
    assert len(asked) < 8
