"""The crawl over real sockets and real names, and the library's face."""

import asyncio
from pathlib import Path

import pytest

import lycosa
from lycosa.api.crawl import CrawledPage
from lycosa.errors import SettingsError
from lycosa.records import Response
from lycosa.settings import CrawlSettings, merge, read_file
from lycosa.simweb import SimSettings, SimWeb
from lycosa.simweb.log import AuditRules, audit_log, read_log
from lycosa.simweb.truth import truth_of
from lycosa.web.document import Page
from tests.simweb.conftest import Ready, running_simweb

SHAPE = ("--hosts", "8", "--pages", "600", "--seed", "3")


def options(ready: Ready) -> dict[str, object]:
    return {"scope": "any", "delay_s": 0.01, "dns": [f"127.0.0.1:{ready.dns_port}"], "allow_private": ["127.0.0.0/8"]}


@pytest.mark.slow
def test_crawl_over_sockets_reaches_the_truth_politely(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with running_simweb(*SHAPE, "--log", str(log)) as (ready, _):
        seed = f"http://h0.sim:{ready.port}/"

        async def main() -> list[CrawledPage]:
            async with lycosa.Crawl(seed, into=tmp_path / "c", **options(ready)) as crawl:
                return [page async for page in crawl]

        pages = asyncio.run(main())
    web = SimWeb(SimSettings(hosts=8, pages=600, seed=3, port=ready.port))
    html = {page.url for page in pages if page.content_type == "text/html"}
    assert html == truth_of(web, [seed], scope="any", mine="ancestors").pages
    assert len(pages) == len({page.url for page in pages})
    assert audit_log(log, AuditRules(delay_s=0.01)).is_clean
    front = next(page for page in pages if page.url == seed)
    assert (front.status, front.depth) == (200, 0)
    assert front.title.startswith("Host 0 – ")
    assert front.links


@pytest.mark.slow
def test_types_that_are_not_wanted_are_not_read(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with running_simweb(*SHAPE, "--log", str(log)) as (ready, _):
        seed = f"http://h0.sim:{ready.port}/"

        async def main() -> lycosa.Crawl:
            crawl = lycosa.Crawl(seed, into=tmp_path / "c", types=["application/*"], **options(ready))
            async with crawl:
                await crawl.finish()
            return crawl

        stats = asyncio.run(main()).stats()
    assert stats.pages == 0
    assert stats.dropped["media-type"] >= 1
    assert {entry.path for entry in read_log(log)[1]} <= {"/", "/robots.txt", "/sitemap.xml"} | {
        entry.path for entry in read_log(log)[1] if entry.path.endswith(".html")
    }


@pytest.mark.slow
def test_leaving_the_block_early_stops_and_commits(tmp_path: Path) -> None:
    with running_simweb(*SHAPE) as (ready, _):
        seed = f"http://h0.sim:{ready.port}/"

        async def some() -> int:
            async with lycosa.Crawl(seed, into=tmp_path / "c", **options(ready)) as crawl:
                async for _ in crawl:
                    break
            return crawl.stats().pages

        async def rest() -> int:
            async with lycosa.Crawl(seed, into=tmp_path / "c", **options(ready)) as crawl:
                return (await crawl.finish()).pages

        before, after = asyncio.run(some()), asyncio.run(rest())
    web = SimWeb(SimSettings(hosts=8, pages=600, seed=3, port=ready.port))
    assert 0 < before < after
    assert after >= len(truth_of(web, [seed], scope="any", mine="ancestors").pages)


def test_statistics_and_filters_of_ones_own_are_asked(tmp_path: Path) -> None:
    class Sizes:
        total = 0

        def page(self, page: Page, response: Response) -> None:
            self.total += len(response.body)

    class OnlyHostZero:
        def reason(self, url: object) -> str | None:
            return None if url.host == "h0.sim" else "filter"  # type: ignore[attr-defined]

    sizes = Sizes()
    with running_simweb(*SHAPE) as (ready, _):
        seed = f"http://h0.sim:{ready.port}/"

        async def main() -> set[str]:
            parts = {"statistics": [sizes], "filters": [OnlyHostZero()]}
            async with lycosa.Crawl(seed, into=tmp_path / "c", **parts, **options(ready)) as crawl:  # type: ignore[arg-type]
                return {page.url.split("/")[2] async for page in crawl}

        hosts = asyncio.run(main())
    assert hosts == {f"h0.sim:{ready.port}"}
    assert sizes.total > 10_000


def test_url_that_is_none_is_refused_with_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="ftp"):
        lycosa.Crawl("ftp://example.org/", into=tmp_path / "c")


def test_crawl_into_a_collection_keeps_its_settings_but_for_those_named(tmp_path: Path) -> None:
    into = tmp_path / "c"
    manners = {"delay_s": 0.5, "exclude": ["/private/*"], "contact": "crawl@example.org"}

    async def begin(crawl: lycosa.Crawl) -> None:
        async with crawl:
            pass

    asyncio.run(begin(lycosa.Crawl("http://127.0.0.1:9/", into=into, pages=2, **manners)))  # type: ignore[arg-type]
    again = lycosa.Crawl("http://127.0.0.1:9/a", into=into, pages=3)
    asyncio.run(begin(again))

    kept = merge(read_file(into / "lycosa.toml"))
    assert kept == again.settings
    assert (kept.delay_s, kept.exclude, kept.contact) == (0.5, ("/private/*",), "crawl@example.org")
    assert (kept.pages, kept.seeds) == (3, ("http://127.0.0.1:9/", "http://127.0.0.1:9/a"))
    assert kept.typed_hosts == ("127.0.0.1:9",)


def test_settings_given_whole_stand_in_place_of_those_kept(tmp_path: Path) -> None:
    (tmp_path / "lycosa.toml").write_text("delay_s = 0.5\n")
    assert lycosa.Crawl(into=tmp_path, settings=CrawlSettings(pages=2), per_host=2).settings == CrawlSettings(
        pages=2, per_host=2
    )
