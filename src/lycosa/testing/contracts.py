"""What every part of a kind promises, as tests that pytest finds in a subclass.

A subclass says how its part is made, and for parts that ask the world, what there is to ask. Nothing here needs more
than the part's own world: no sockets, no clock.
"""

import asyncio
import math
from typing import Any

from lycosa.fetch import Downloader
from lycosa.frontier import MOST_BANDS, HostRow, LinkSource, Ranking
from lycosa.mapping import Resolver
from lycosa.records import Failure, Request, Response
from lycosa.web import (
    Analyser,
    Document,
    Media,
    MediaKind,
    Page,
    Url,
    UrlFilter,
    document_digest,
    document_fingerprint,
    parse_url,
)

ODD_BODIES = (b"", b"\0" * 100, b"<" * 1000, b"\xff\xfe\xfd", "ü<p>é".encode("latin-1"), b"<a href='x'>" * 500)
ODD_URLS = ("http://a/", "https://example.org:8443/a/b?c=d%20e", "http://[::1]/", "http://xn--bcher-kva.example/ä")


class ResolverContract:
    """A resolver answers every name, good or bad, and never raises for what the world is like."""

    known = "h0.sim"
    unknown = "no-such-host.invalid"

    def make(self) -> Resolver:
        """Called inside a running event loop."""
        raise AssertionError("say how the resolver is made")

    def _ask(self, name: str) -> Any:
        async def main() -> Any:
            resolver = self.make()
            try:
                return await resolver.resolve(name)
            finally:
                await resolver.close()

        return asyncio.run(main())

    def test_known_name_has_addresses_and_a_ttl(self) -> None:
        answer = self._ask(self.known)
        assert answer.failure is None
        assert answer.addresses
        assert answer.ttl_s >= 0
        assert answer.name == self.known

    def test_unknown_name_is_an_answer_not_an_exception(self) -> None:
        answer = self._ask(self.unknown)
        assert answer.failure in (Failure.NO_SUCH_HOST, Failure.DNS)
        assert answer.addresses == ()

    def test_odd_names_are_answers_too(self) -> None:
        for name in ("a" * 300, "..", "ü.example", "a b"):
            assert self._ask(name).failure is not None


class DownloaderContract:
    """`done` is called exactly once for each `start`, later, with a `Response`; whatever happens is in it."""

    good = "http://h0.sim:8800/"
    bad = "http://h0.sim:8800/no/such/page"

    def make(self) -> Downloader:
        """Called inside a running event loop."""
        raise AssertionError("say how the downloader is made")

    def request(self, url: str) -> Request:
        """How a URL is asked for."""
        parsed = parse_url(url)
        assert parsed is not None
        return Request(url, parsed.host, parsed.port, "127.1.0.1", (("User-Agent", "lycosa-contract"),))

    async def _fetch(self, downloader: Downloader, *urls: str) -> list[Response]:
        answers: list[Response] = []
        finished = asyncio.Event()

        def done(response: Response) -> None:
            answers.append(response)
            if len(answers) == len(urls):
                finished.set()

        for url in urls:
            downloader.start(self.request(url), done)
        assert answers == [], "done was called inside start"
        await asyncio.wait_for(finished.wait(), 60)
        await asyncio.sleep(0.01)
        assert len(answers) == len(urls), "done was called more than once"
        return answers

    def _run(self, *urls: str) -> list[Response]:
        async def main() -> list[Response]:
            downloader = self.make()
            try:
                return await self._fetch(downloader, *urls)
            finally:
                await downloader.close()

        return asyncio.run(main())

    def test_page_comes_with_status_headers_body_and_times(self) -> None:
        (response,) = self._run(self.good)
        assert (response.failure, response.status) == (None, 200)
        assert response.header_block.startswith(b"HTTP/")
        assert response.header_block.endswith(b"\r\n\r\n")
        assert all(name == name.lower() for name in response.headers)
        assert response.body
        assert response.started_s <= response.first_byte_s <= response.ended_s

    def test_error_status_is_a_response(self) -> None:
        (response,) = self._run(self.bad)
        assert (response.failure, response.status) == (None, 404)

    def test_many_at_a_time_are_all_answered(self) -> None:
        assert len(self._run(*[self.good] * 20)) == 20

    def test_cancelled_transfers_are_told_before_cancel_returns(self) -> None:
        async def main() -> list[Response]:
            downloader, answers = self.make(), list[Response]()
            downloader.start(self.request(self.good), answers.append)
            downloader.cancel_all()
            assert len(answers) == 1
            await downloader.close()
            return answers

        (response,) = asyncio.run(main())
        assert response.failure is Failure.CANCELLED


class UrlFilterContract:
    """A filter is a pure function of the URL and answers at once, for any URL."""

    def make(self) -> UrlFilter:
        raise AssertionError("say how the filter is made")

    def test_same_url_gets_the_same_answer(self) -> None:
        one, other = self.make(), self.make()
        for url in self._urls():
            assert one.reason(url) == one.reason(url) == other.reason(url)

    def test_reason_is_a_word_or_none(self) -> None:
        for url in self._urls():
            reason = self.make().reason(url)
            assert reason is None or (isinstance(reason, str) and reason.strip())

    def _urls(self) -> list[Url]:
        return [url for text in ODD_URLS if (url := parse_url(text))]


class AnalyserContract:
    """An analyser gives a page for any bytes, the same for the same, and never raises."""

    kind = MediaKind.HTML

    def make(self) -> Analyser:
        raise AssertionError("say how the analyser is made")

    def _pages(self) -> list[Page]:
        media, where = Media(self.kind, "text/html"), "http://a.example/"
        return [
            self.make()(Document(body, where, media, "utf-8", document_fingerprint(body), document_digest(body)))
            for body in ODD_BODIES
        ]

    def test_any_bytes_give_a_page(self) -> None:
        assert all(isinstance(page, Page) for page in self._pages())

    def test_same_bytes_give_the_same_page(self) -> None:
        assert self._pages() == self._pages()


class StatisticsContract:
    """A statistics part takes every page and changes nothing."""

    def make(self) -> Any:
        raise AssertionError("say how the part is made")

    def test_pages_of_all_kinds_are_taken(self) -> None:
        part = self.make()
        for kind in MediaKind:
            page = Page(url="http://a.example/", media=Media(kind, "x/y"), charset=None, fingerprint=0, digest=b"")
            assert part.page(page, Response("http://a.example/", 200)) is None


class RankingContract:
    """A ranking gives every URL a credit and a band, whatever a page says, and goes on from what it has learned."""

    def make(self) -> Ranking:
        raise AssertionError("say how the ranking is made")

    def _sources(self) -> list[LinkSource]:
        return [
            LinkSource("http://a.example/", 0),
            LinkSource("http://a.example/b?c", 7, 1e9, "A title", "Some text. " * 200),
            LinkSource("http://ä.example/", 65_535, -1.0, "\0", "\ud83d\ude00" * 50),
        ]

    def test_every_link_gets_a_finite_credit(self) -> None:
        ranking = self.make()
        for source in self._sources():
            for urls in ([], list(ODD_URLS), [f"http://b.example/{i}" for i in range(300)]):
                credits = ranking.fetched(source, urls, ["some words", ""] * (len(urls) // 2) + [""] * (len(urls) % 2))
                assert len(credits) == len(urls)
                assert all(math.isfinite(credit) for credit in credits)

    def test_bands_are_between_one_and_the_last(self) -> None:
        ranking = self.make()
        assert 1 <= ranking.bands <= MOST_BANDS
        assert set(ranking.takes) <= set(range(1, ranking.bands + 1))
        for step in range(50):
            for credit in (0.0, 1e-30, 0.5, 1.0, 1e6, -1e6, ranking.combine(0.3, 0.3)):
                assert 1 <= ranking.band(credit, HostRow(pages=step, links=step * 7)) <= ranking.bands
            ranking.matured(step, step * 3)

    def test_what_was_learned_survives(self) -> None:
        first, second = self.make(), self.make()
        for source in self._sources():
            first.fetched(source, list(ODD_URLS), [""] * len(ODD_URLS))
        first.matured(3, 10)
        second.load(first.dump())
        second.matured(3, 10)
        rows = [HostRow(pages=3, links=60), HostRow()]
        for credit in (0.0, 0.1, 1.0, 10.0):
            assert [first.band(credit, row) for row in rows] == [second.band(credit, row) for row in rows]
