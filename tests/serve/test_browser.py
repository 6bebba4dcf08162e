"""The live page in Chromium, against the simulated web: a crawl is watched, steered, searched and read."""

import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from proof.ground.browser import Browser, browser
from proof.ground.gallery import LAST, gallery
from proof.ground.servers import live_page
from tests.cli.command import ended, lycosa, simulated_web, started
from tests.serve.running import require_chromium

PATIENCE_S = 120.0


class Viewer:
    """Somebody who looks at the live page and clicks."""

    def __init__(self, page: Browser, link: str) -> None:
        self.page, parts = page, urlsplit(link)
        self._at = f"{parts.scheme}://{parts.netloc}"
        page.open(link, settle_s=0.1)

    def open(self, path: str) -> None:
        self.page.open(self._at + path, settle_s=0.1)

    def text(self, selector: str) -> str:
        return str(self.page.evaluate(f"document.querySelector({selector!r})?.textContent ?? ''"))

    def click(self, selector: str) -> None:
        self.page.wait(lambda: self.page.evaluate("document.readyState") == "complete", PATIENCE_S)  # buttons work now
        self.page.press(selector)

    def fill(self, setting: str, value: str) -> None:
        form = f"document.querySelector('[data-set={setting}]')"
        self.page.evaluate(f"{form}.elements.value.value = {value!r}; {form}.requestSubmit()")

    def wait_for_report(self) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while "<h1" not in "".join(text for url, text in self.page.texts().items() if url.endswith("/report/page")):
            assert time.monotonic() < deadline, "there is no report"
            self.page.wait(lambda: False, 0.2)

    def wait_for(self, selector: str, words: str) -> str:
        deadline = time.monotonic() + PATIENCE_S
        while words not in (found := self.text(selector)) or not found:
            assert time.monotonic() < deadline, f"{selector} is {found!r}, not {words!r}"
            self.page.wait(lambda: False, 0.1)
        return found


def is_visited(into: Path) -> bool:
    """Whether pages have been visited again, and nobody is at it any more."""
    facts = lycosa("status", into, "--json").facts
    return bool(facts["visits"]) and not facts["is_running"]


@pytest.mark.slow
def test_crawl_is_watched_steered_searched_and_read(tmp_path: Path) -> None:
    require_chromium()
    into = tmp_path / "c"
    web_words = ("--hosts", "2", "--pages", "40", "--robots", "missing=1", "--time-scale", "2000000")
    with simulated_web(tmp_path, *web_words) as web, browser() as page:
        crawl = started(*web.crawl(into, "--serve", delay="5"))  # slow enough for a slow machine
        assert crawl.stderr is not None
        link = next(line for line in crawl.stderr if "the live page is at" in line).split()[-1]
        viewer = Viewer(page, link)
        viewer.wait_for("[data-fact=state]", "running")
        viewer.click("[data-steer=pause]")
        viewer.wait_for("[data-fact=state]", "paused")

        viewer.open("/settings")
        viewer.fill("delay_s", "0")
        viewer.wait_for("#toast button", "Undo")
        viewer.fill("exclude", "*/nothing-is-here/*")
        viewer.wait_for("#toast", "continues with these settings")
        viewer.open("/settings")
        viewer.fill("scope", "domain")
        viewer.wait_for("#toast button", "Undo")
        viewer.open("/")
        viewer.click("[data-steer=resume]")
        assert page.problems == []
        said = ended(crawl)
        assert said.code == 0, said.err
        viewer.wait_for("[data-fact=state]", "not connected")
        viewer.wait_for("[data-fact=sentence]", "lycosa serve shows the collection again")
        kept = (into / "lycosa.toml").read_text()
        assert "nothing-is-here" in kept
        assert "delay_s = 0.0" in kept
        assert 'scope = "domain"' in kept

        with live_page(into) as second:
            viewer = Viewer(page, second.link)
            page.problems.clear()  # the server of before has ended with its crawl
            viewer.wait_for("[data-fact=state]", "finished")
            pages = lycosa("status", into, "--json").facts["pages"]
            assert viewer.text("[data-fact=pages]") == str(pages)
            viewer.click("[data-recrawl=all]")
            viewer.wait_for("#toast", "recrawl begins")
            page.wait(lambda: is_visited(into), PATIENCE_S)  # it may be over before the page says that it runs
            assert is_visited(into)
            viewer.wait_for("[data-fact=state]", "finished")
            viewer.open("/changes?kind=text")
            viewer.open(page.evaluate("document.querySelector('tbody th a').getAttribute('href')"))
            assert viewer.text(".diff ins, .diff del")
            viewer.open("/search?q=the")
            viewer.wait_for(".results li a", "")  # once the index is made
            viewer.open("/report?anew=1")  # takes longer than the page waits for it, or not
            viewer.wait_for_report()

            viewer.open("/settings")
            viewer.fill("depth", "7")
            viewer.wait_for("#toast button", "Undo")
            assert "depth = 7" in (into / "lycosa.toml").read_text()
            viewer.click("#toast button")
            viewer.wait_for("#toast", "next run uses these settings")
            page.wait(lambda: "depth = 7" not in (into / "lycosa.toml").read_text(), PATIENCE_S)
            assert "depth = 7" not in (into / "lycosa.toml").read_text()
            viewer.open("/")
            page.evaluate("document.querySelector('[data-seeds] input').value = 'https://added.example/'")
            page.evaluate("document.querySelector('[data-seeds]').requestSubmit()")
            viewer.wait_for("#toast", "1 URL added")
            assert page.dialogs[-1] == "Crawl these URLs, too?"
            viewer.open("/log")
            assert "live page, 127.0.0.1" in viewer.text(".events")
            assert page.problems == []


@pytest.mark.slow
def test_pictures_are_shown_before_and_after_in_frames_of_the_replay(tmp_path: Path) -> None:
    require_chromium()
    with gallery() as site:
        assert lycosa("crawl", site.url, "--into", tmp_path / "c", "--images", "--delay", "0").code == 0
        for site.version in range(2, LAST + 1):
            assert lycosa("recrawl", tmp_path / "c", "--all").code == 0
    with live_page(tmp_path / "c") as served, browser() as page:
        viewer = Viewer(page, served.link)
        viewer.open(f"/change?url={site.url}")
        viewer.wait_for(".diff ins", "")
        assert "table" in viewer.text("h2 + p code")
        frames = page.evaluate("[...document.querySelectorAll('.pictures iframe')].map(each => each.src)")
        assert len(frames) == 2

        def replayed() -> set[str]:
            live = urlsplit(served.link).netloc
            return {url for url in page.requests if "/frame/" in url and urlsplit(url).netloc != live}

        page.wait(lambda: len(replayed()) == 2, PATIENCE_S)
        assert [url.endswith("/sky.png") for url in replayed()] == [True, True]
        assert page.problems == []
