"""What becomes of rendered documents in a collection, with a browser that is made up."""

import asyncio
import threading
import time
from gzip import decompress
from pathlib import Path
from typing import Any

import pytest

from lycosa import Collection
from lycosa.crawl import Recrawl
from lycosa.removal import forget
from lycosa.render import rendering
from lycosa.render.browser_link import PageToRender
from lycosa.render.messages import RenderedDocument, RenderError
from tests.crawl.consistency import problems
from tests.crawl.small_site import FIRST, crawl_site, links

SHELL = "<title>App</title><div id=root></div><script>fill()</script>"
SITE = {FIRST: SHELL, f"{FIRST}a": SHELL, f"{FIRST}b": SHELL, f"{FIRST}led": SHELL}


class MadeUpBrowser:
    """Shows what `shown` has for a URL."""

    shown: dict[str, str] = {}  # noqa: RUF012
    led_to: dict[str, str] = {}  # noqa: RUF012

    def __init__(self, program: str, agent: str) -> None:
        self.replaced = 0

    def submit(self, page: PageToRender) -> "asyncio.Future[RenderedDocument]":
        found = asyncio.Future[RenderedDocument]()
        if page.url in self.shown:
            html = f"<html><head><title>Shown</title></head><body>{self.shown[page.url]}</body></html>".encode()
            found.set_result(RenderedDocument(html, tuple(filter(None, [self.led_to.get(page.url, "")]))))
        else:
            found.set_exception(RenderError("it hangs"))
        return found

    async def finish(self) -> None:
        return

    def close(self) -> None:
        return


@pytest.fixture(autouse=True)
def _made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rendering, "BrowserLink", MadeUpBrowser)
    monkeypatch.setattr("lycosa.render.browser_link.require_browser", lambda: "made-up")
    monkeypatch.setattr(MadeUpBrowser, "shown", {FIRST: links("a", "b"), f"{FIRST}a": "<p>seldom words</p>" * 20})
    monkeypatch.setattr(MadeUpBrowser, "led_to", {})


def archive(into: Path) -> bytes:
    return b"".join(decompress(file.read_bytes()) for file in sorted((into / "warc").iterdir()))


def test_documents_that_a_browser_shows_are_read_found_and_forgotten(tmp_path: Path) -> None:
    into = tmp_path / "c"
    asked, stats = crawl_site(into, SITE.get, render="auto")
    assert asked == [FIRST, f"{FIRST}a", f"{FIRST}b"]
    assert stats.pages == 3
    assert problems(into, sampled=1) == []
    with Collection(into) as collection:
        pages = {page.url: page for page in collection}
        assert "seldom words" in pages[f"{FIRST}a"].text
        assert pages[f"{FIRST}a"].title == "Shown"
        assert pages[f"{FIRST}b"].title == "App", "a page that could not be rendered is kept as it was fetched"
        assert [hit.url for hit in collection.search("seldom").results] == [f"{FIRST}a"]
    assert archive(into).count(b"WARC-Type: conversion") == 2
    assert archive(into).count(b"seldom words") == 20

    forget(into, [f"{FIRST}a"])
    assert b"seldom words" not in archive(into)


def test_large_document_is_read_beside_the_event_loop_and_kept_as_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = set[int]()
    read = rendering.Rendering._read

    def noted(*given: Any) -> Any:
        threads.add(threading.get_ident())
        return read(*given)

    monkeypatch.setattr(rendering.Rendering, "_read", noted)
    large = "<p>many words</p>" * (rendering.LARGE_BYTES // 10)
    monkeypatch.setattr(MadeUpBrowser, "shown", {FIRST: large + links("a")})
    _, stats = crawl_site(tmp_path / "c", SITE.get, render="auto")
    assert threads
    assert threading.get_ident() not in threads
    assert stats.pages == 2
    assert problems(tmp_path / "c", sampled=1) == []
    assert archive(tmp_path / "c").count(b"WARC-Type: conversion") == 1


def test_where_scripts_wanted_to_go_is_a_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MadeUpBrowser, "led_to", {FIRST: f"{FIRST}led"})
    asked, _ = crawl_site(tmp_path / "c", SITE.get, render="auto")
    assert f"{FIRST}led" in asked


def test_revisit_sees_what_has_changed_in_the_browser_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    crawl_site(tmp_path / "c", SITE.get, render="auto")
    shown: dict[str, Any] = {**MadeUpBrowser.shown, f"{FIRST}a": "<p>other words</p>" * 20}
    monkeypatch.setattr(MadeUpBrowser, "shown", shown)
    wall = time.time() + 86_400
    again = Recrawl(everything=True)
    _, stats = crawl_site(tmp_path / "c", SITE.get, render="auto", recrawl=again, wall=lambda: wall)
    assert stats.visits_changed == 1
    with Collection(tmp_path / "c") as collection:
        assert "other words" in collection.get(f"{FIRST}a").text
    assert problems(tmp_path / "c", sampled=1) == []
