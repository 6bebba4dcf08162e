"""Parts of one's own in a crawl: analysers by kind and media type, and the size of a crawl set."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from lycosa import Collection, Crawl, CrawledPage
from lycosa.errors import PartError, SettingsError
from lycosa.settings import CrawlSettings
from lycosa.simweb.memory import run_virtual
from lycosa.testing import AnalyserContract
from lycosa.web import page_of_text
from lycosa.web.document import Analyser, Document, Page
from lycosa.web.links import LinkCollector, LinkKind, Links
from tests.crawl.small_site import FIRST, Sent, SmallSite, crawl_site, links

NOTE = "title: A shopping list\nsee: c\napples and pears"
SITE = {
    FIRST: f"<title>Home</title>{links('a.note', 'b.pdf')}",
    f"{FIRST}a.note": Sent(NOTE, {"content-type": "application/x-note"}),
    f"{FIRST}b.pdf": Sent("%PDF-1.7 quinces", {"content-type": "application/pdf"}),
    f"{FIRST}c": "<title>C</title><p>Found through a note.",
}


def read_note(document: Document) -> Page:
    """An analyser as a user would write it: a title, links and text."""
    said, found = [], LinkCollector()
    title = None
    for line in document.body.decode("utf-8", "replace").splitlines():
        key, colon, value = line.partition(": ")
        if colon and key == "title":
            title = value
        elif colon and key == "see":
            found.add(value, LinkKind.A)
        else:
            said.append(line)
    return page_of_text(document, "\n".join(said), title=title, links=found.links())


def note_analyser(settings: CrawlSettings) -> Analyser:
    assert settings.agent == "lycosa"
    return read_note


class TestNote(AnalyserContract):
    def make(self) -> Analyser:
        return read_note


def pages_of(into: Path, **options: Any) -> dict[str, CrawledPage]:
    options = {"allow_private": ["127.0.0.0/8"], "mine": "off", "sitemaps": False, "tables": "off", **options}

    async def main() -> list[CrawledPage]:
        now = asyncio.get_running_loop().time
        return [page async for page in Crawl(FIRST, into=into, downloader=SmallSite(SITE.get), now=now, **options)]

    return {page.url.removeprefix(FIRST): page for page in run_virtual(main())}


def test_named_analyser_reads_titles_links_and_text_for_crawl_search_and_get(tmp_path: Path) -> None:
    pages = pages_of(tmp_path, analysers={"application/x-note": "tests.api.test_parts:note_analyser"})
    assert pages["a.note"].title == "A shopping list"
    assert pages["a.note"].text == "apples and pears"
    assert pages["c"].depth == 2
    with Collection(tmp_path) as collection:
        assert collection.get(f"{FIRST}a.note").text == "apples and pears"
        (found,) = collection.search("pears").results
        assert (found.title, found.snippet) == ("A shopping list", "apples and pears")


def test_analyser_given_as_an_object_is_for_a_kind(tmp_path: Path) -> None:
    pages = pages_of(tmp_path, analysers={"pdf": lambda document: page_of_text(document, "quinces", title="A PDF")})
    assert (pages["b.pdf"].title, pages["b.pdf"].text) == ("A PDF", "quinces")
    assert (pages["a.note"].title, pages["a.note"].text) == ("", "")
    assert "c" not in pages


def test_built_in_analysers_have_names(tmp_path: Path) -> None:
    pages = pages_of(tmp_path, analysers={"application/x-note": "text", "pdf": "html"})
    assert pages["a.note"].text == " ".join(NOTE.split())
    assert "quinces" in pages["b.pdf"].text


@pytest.mark.parametrize(
    ("named", "complaint"),
    [
        ("pdf=nobody", "there is no analyser called 'nobody'; there is html, text, xml"),
        ("letter=html", "there is no kind of document called 'letter'; there is html, xhtml, "),
        ("pdf", "analysers holds 'pdf', it must be a kind of documents and a part, such as pdf=my_parts:pdf"),
    ],
)
def test_wrong_name_of_an_analyser_is_told_before_anything_is_asked(tmp_path: Path, named: str, complaint: str) -> None:
    with pytest.raises((PartError, SettingsError)) as told:
        crawl_site(tmp_path / "c", SITE.get, settings=CrawlSettings(analysers=[named]))
    assert complaint in str(told.value)
    assert not (tmp_path / "c").exists()


@pytest.mark.parametrize(
    "bad",
    [
        {"title": "\ud800"},
        {"base_href": "http://a.example/\udc80"},
        {"headings": ((1, "\ud800"),)},
        {"links": Links(("\ud800",), b"\1", ("",), ("",))},
        {"links": Links(("/x",), b"\1", ("\ud800",), ("",))},
    ],
)
def test_analyser_that_gives_half_a_character_ends_the_crawl_in_a_sentence(tmp_path: Path, bad: dict[str, Any]) -> None:
    def read(document: Document) -> Page:
        return msgspec.structs.replace(page_of_text(document, "quinces"), **bad)

    with pytest.raises(PartError, match=r"the analyser of pdf gave text for .*b\.pdf that cannot be kept: '.*\\ud"):
        pages_of(tmp_path, analysers={"pdf": read})


def test_analyser_that_raises_ends_the_crawl_in_a_sentence_and_loses_nothing(tmp_path: Path) -> None:
    with pytest.raises(
        PartError, match=r"the analyser of pdf failed on http://127\.0\.0\.1:9/b\.pdf: ZeroDivisionError"
    ):
        pages_of(tmp_path, analysers={"pdf": lambda document: 1 / 0})
    assert pages_of(tmp_path, analysers={"pdf": read_note}).keys() == {"b.pdf"}


class Burst(SmallSite):
    """Counts the requests that are handed over in one turn of the event loop."""

    turns: list[int]
    _turn = 0

    def start(self, request: Any, done: Any) -> None:
        if not self._turn:
            self._loop.call_soon(self._over)
        self._turn += 1
        super().start(request, done)

    def _over(self) -> None:
        self.turns.append(self._turn)
        self._turn = 0


def test_crawl_set_is_as_large_as_the_setting_says(tmp_path: Path) -> None:
    seeds = [f"http://127.0.0.{host}:9/" for host in range(1, 41)]

    async def turns(batch: int) -> list[int]:
        site = Burst(lambda url: "<p>page")
        site.turns = []
        options: dict[str, Any] = {"allow_private": ["127.0.0.0/8"], "mine": "off", "sitemaps": False}
        now = asyncio.get_running_loop().time
        into = tmp_path / str(batch)
        async with Crawl(*seeds, into=into, downloader=site, now=now, crawl_batch=batch, **options) as crawl:
            assert (await crawl.finish()).pages == len(seeds)
        return site.turns

    assert max(run_virtual(turns(7))) == 7
    assert max(run_virtual(turns(64))) == len(seeds)
