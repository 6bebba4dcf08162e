"""Built-in parts keep the contracts that a user's parts are tested with."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from lycosa.api.crawl import Crawl
from lycosa.errors import PartError
from lycosa.fetch.curl import CurlDownloader
from lycosa.frontier.rankings import InternalFirst, PValue, Rank, Relevance
from lycosa.mapping.mapper import CaresResolver
from lycosa.settings import CrawlSettings
from lycosa.simweb import SimSettings, SimWeb
from lycosa.simweb.memory import MemoryWeb
from lycosa.testing import (
    AnalyserContract,
    DownloaderContract,
    RankingContract,
    ResolverContract,
    StatisticsContract,
    UrlFilterContract,
)
from lycosa.web import named_part
from lycosa.web.document import Analyser, Page
from lycosa.web.html import analyse_html
from lycosa.web.relevance import Topic
from lycosa.web.scope import Scope, ScopeKind, ShapeFilter, UrlFilter, UrlLimits
from lycosa.web.url import parse_url
from tests.simweb.conftest import Ready, running_simweb

WEB = SimWeb(SimSettings(hosts=2, pages=100))


@pytest.fixture(scope="module")
def simweb() -> Iterator[Ready]:
    with running_simweb("--hosts", "2", "--pages", "100") as (ready, _):
        yield ready


class TestMemoryWebAsResolver(ResolverContract):
    def make(self) -> MemoryWeb:
        return MemoryWeb(WEB)


class TestMemoryWebAsDownloader(DownloaderContract):
    def make(self) -> MemoryWeb:  # type: ignore[override]
        return MemoryWeb(WEB)


class TestPValue(RankingContract):
    def make(self) -> PValue:
        return PValue()


class TestRank(RankingContract):
    def make(self) -> Rank:
        return Rank()


class TestInternalFirst(RankingContract):
    def make(self) -> InternalFirst:
        return InternalFirst()


class TestTopic(RankingContract):
    def make(self) -> Relevance:
        return Relevance(Topic.of_words("solar power storage"))


class TestCares(ResolverContract):
    @pytest.fixture(autouse=True)
    def _server(self, simweb: Ready) -> None:
        self.server = f"127.0.0.1:{simweb.dns_port}"

    def make(self) -> CaresResolver:
        return CaresResolver([self.server])


class TestCurl(DownloaderContract):
    @pytest.fixture(autouse=True)
    def _server(self, simweb: Ready) -> None:
        self.good = f"http://h0.sim:{simweb.port}/"
        self.bad = f"http://h0.sim:{simweb.port}/no/such/page"

    def make(self) -> CurlDownloader:
        return CurlDownloader()


class TestScope(UrlFilterContract):
    def make(self) -> UrlFilter:
        return Scope(ScopeKind.HOST, [url for url in [parse_url("http://a/")] if url])


class TestShape(UrlFilterContract):
    def make(self) -> UrlFilter:
        return ShapeFilter(UrlLimits())


class TestHtml(AnalyserContract):
    def make(self) -> Analyser:
        return analyse_html


class CountsTitles:
    """A statistics part as a user would write it."""

    def __init__(self, settings: object = None) -> None:
        self.titles = 0

    def page(self, page: Page, response: object) -> None:
        self.titles += page.title is not None


class TestStatistics(StatisticsContract):
    def make(self) -> CountsTitles:
        return CountsTitles()


def test_part_named_in_the_settings_is_used(tmp_path: Path) -> None:
    async def main() -> None:
        settings = CrawlSettings(
            seeds=("http://127.0.0.1:9/",), statistics=("tests.testing.test_contracts:CountsTitles",)
        )
        async with Crawl(into=tmp_path / "c", settings=settings) as crawl:
            assert isinstance(crawl.engine.pages.statistics[-1], CountsTitles)
            crawl.stop()

    asyncio.run(main())


@pytest.mark.parametrize(
    ("name", "words"),
    [("nobody", "there is cares"), ("no_such_module:x", "name its folder"), ("os:getcwd", "cannot be made")],
)
def test_part_that_cannot_be_had_is_told_with_its_name(name: str, words: str) -> None:
    with pytest.raises(PartError, match=words):
        named_part("resolver", name, CrawlSettings())
