"""Links that leave the scope: checked by HEAD, by a byte where that is refused, never followed, and reported."""

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec

from lycosa import Crawl
from lycosa.crawl.stats import CrawlStats
from lycosa.inspect import explain_url, open_to_read
from lycosa.records import Request
from lycosa.report import make_report
from lycosa.simweb import SimSettings, SimWeb
from lycosa.simweb.log import AuditRules, audit
from lycosa.simweb.memory import run_virtual
from lycosa.store import page_at
from lycosa.web import url_key
from tests.crawl.consistency import problems
from tests.crawl.memory_crawl import crawl as memory_crawl
from tests.crawl.memory_crawl import front
from tests.crawl.small_site import FIRST, Sent, SmallSite, crawl_site, links
from tests.inspect.listing import list_urls

OTHER, THIRD = "http://127.0.0.2:9/", "http://127.0.0.3:9/"
TARGETS = [f"{OTHER}{name}" for name in ("fine", "gone", "no-head", "moved", "back", "no/secret")]
SITE: dict[str, Any] = {
    FIRST: f"<title>Home</title>{links('a', *TARGETS)}",
    f"{FIRST}a": f"<title>A</title>{links(OTHER + 'fine', OTHER + 'gone')}",
    f"{FIRST}b": "<title>B</title>",
    f"{OTHER}fine": f"<title>Other</title>{links(OTHER + 'never')}",
    f"{OTHER}no-head": "<title>No head</title>",
    f"{OTHER}moved": Sent("", {"location": f"{THIRD}new"}),
    f"{OTHER}back": Sent("", {"location": f"{FIRST}b"}),
    f"{THIRD}new": "<title>New</title>",
}
ROBOTS = "User-agent: *\nDisallow: /no/\n"


class CheckedSite(SmallSite):
    """Knows HEAD, refuses it for one URL, and answers redirects."""

    def __init__(self) -> None:
        super().__init__(SITE.get, ROBOTS)
        self.methods: list[tuple[str, str, bool]] = []

    def start(self, request: Request, done: Any) -> None:
        if not request.url.endswith("robots.txt"):
            self.methods.append((request.method, request.url, ("Range", "bytes=0-0") in request.headers))
        status = 405 if request.method == "HEAD" and request.url.endswith("no-head") else 0
        status = 301 if request.url.endswith(("moved", "back")) else status

        def answered(response: Any) -> None:
            done(msgspec.structs.replace(response, status=status or response.status))

        super().start(request, answered)


def crawl(into: Path, **settings: Any) -> tuple[CheckedSite, CrawlStats]:
    options = {"allow_private": ["127.0.0.0/8"], "mine": "off", "sitemaps": False, "tables": "off", **settings}

    async def main() -> tuple[CheckedSite, CrawlStats]:
        site = CheckedSite()
        now = asyncio.get_running_loop().time
        async with Crawl(FIRST, into=into, downloader=site, now=now, **options) as running:
            return site, await running.finish()

    return run_virtual(main())


def test_links_that_leave_the_scope_are_checked_once_and_not_followed(tmp_path: Path) -> None:
    site, stats = crawl(tmp_path / "c", external=True)

    methods = [(method, url.removeprefix("http://127.0.0."), is_byte) for method, url, is_byte in site.methods]
    outside = [entry for entry in methods if not entry[1].startswith("1:")]
    assert sorted(outside) == [
        ("GET", "2:9/gone", True),
        ("GET", "2:9/no-head", True),
        ("HEAD", "2:9/back", False),
        ("HEAD", "2:9/fine", False),
        ("HEAD", "2:9/gone", False),
        ("HEAD", "2:9/moved", False),
        ("HEAD", "2:9/no-head", False),
        ("HEAD", "3:9/new", False),
    ]
    assert ("GET", f"{FIRST}b", False) in site.methods  # a redirect leads back into the scope
    assert (stats.pages, stats.external, stats.redirects) == (3, 3, 2)
    assert stats.failed == {"404": 1} and stats.dropped == {"robots": 1}
    assert not problems(tmp_path / "c", sampled=1)


def test_urls_why_and_report_tell_of_them(tmp_path: Path) -> None:
    crawl(tmp_path / "c", external=True)
    with open_to_read(tmp_path / "c") as collection:
        known = {each.url: (each.state, each.status) for each in list_urls(collection)}
        said = "\n".join(explain_url(collection, f"{OTHER}fine"))
        row = page_at(collection.state, url_key(f"{OTHER}gone"))
    assert known[f"{OTHER}fine"] == ("done", 200) and known[f"{OTHER}gone"] == ("failed", 404)
    assert known[f"{OTHER}no-head"] == ("done", 200)
    assert "out of scope: it was checked because pages link to it (--external)" in said
    assert row is not None and row.is_external
    with make_report(tmp_path / "c") as report:
        found = {(each.page, each.target) for each in report.rows("broken-external-links")}
        assert found == {(FIRST, f"{OTHER}gone"), (f"{FIRST}a", f"{OTHER}gone")}
        assert not list(report.rows("broken-links"))


def test_crawl_that_checks_nothing_asks_for_nothing_outside(tmp_path: Path) -> None:
    site, stats = crawl(tmp_path / "c")
    assert {url for _, url, _ in site.methods} == {FIRST, f"{FIRST}a"} and stats.external == 0


def test_checks_that_are_asked_for_later_look_at_pages_that_are_there(tmp_path: Path) -> None:
    crawl(tmp_path / "c")
    site, stats = crawl(tmp_path / "c", external=True)
    assert not any(url == FIRST for _, url, _ in site.methods)
    assert stats.external == 3 and not problems(tmp_path / "c", sampled=1)


def test_wider_scope_makes_a_page_of_what_was_only_checked(tmp_path: Path) -> None:
    crawl(tmp_path / "c", external=True)
    site, stats = crawl(tmp_path / "c", external=True, scope="any")
    assert ("GET", f"{OTHER}fine", False) in site.methods
    assert stats.external == 0 and stats.pages >= 6 and not problems(tmp_path / "c", sampled=1)


def test_url_that_was_checked_becomes_a_page_when_it_is_asked_for(tmp_path: Path) -> None:
    crawl(tmp_path / "c", external=True)
    asked, stats = crawl_site(tmp_path / "c", SITE.get, FIRST, f"{OTHER}fine", external=False, scope="host")
    assert f"{OTHER}fine" in asked and stats.external == 1  # its host is in scope now


def test_checks_are_polite_and_each_url_outside_is_asked_for_once(tmp_path: Path) -> None:
    web = SimWeb(SimSettings(hosts=6, pages=300, seed=3, tables=0.0))
    result = memory_crawl(web, tmp_path / "c", front(web), scope="host", external=True, mine="off")

    found = audit(web.settings, result.entries, AuditRules())
    assert found.is_clean, found.broken()
    outside = [entry for entry in result.entries if entry.host != "h0.sim" and not entry.path.endswith("robots.txt")]
    assert result.stats.external and {entry.method for entry in outside} <= {"HEAD", "GET"}
    heads = Counter((entry.host, entry.path) for entry in outside if entry.method == "HEAD")
    assert len(heads) > 20 and set(heads.values()) == {1}
    fetched = Counter((entry.host, entry.path) for entry in outside if entry.method == "GET")
    assert set(fetched) <= set(heads)  # only where HEAD gave an error; no sitemaps of those hosts
    assert not problems(tmp_path / "c", sampled=1)
