"""The browsers' process: how it ends, and what becomes of pages when it or its driver is killed."""

import asyncio
import gc
import os
import signal
from collections.abc import Callable

import pytest

from lycosa.errors import PartError
from lycosa.render import browser_link
from lycosa.render.browser_link import BrowserLink, PageToRender, require_browser
from lycosa.render.messages import BrowserMissing, Subresource
from lycosa.render.processes import descendants, read_process

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]
PAGE = Subresource(200, {"content-type": "text/html"}, b"<p id=p>empty</p><script src=/filled.js></script>")
SCRIPT = Subresource(200, {"content-type": "text/javascript"}, b"p.textContent = 'filled'")


class Site:
    """Pages that need a script, which comes when `answer` is called, and at once from then on."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self._waiting: list[Callable[[Subresource | None], None]] = []
        self._is_open = False

    def fetch(self, url: str, done: Callable[[Subresource | None], None]) -> None:
        self._waiting.append(done)
        self.asked.set()
        if self._is_open:
            self.answer()

    def answer(self) -> None:
        self._is_open = True
        while self._waiting:
            self._waiting.pop()(SCRIPT)

    def page(self, number: int) -> PageToRender:
        return PageToRender(f"http://site{number}.test/", PAGE, self.fetch)


def link() -> BrowserLink:
    try:
        return BrowserLink(require_browser(), "tested")
    except PartError as error:
        pytest.skip(str(error))


def processes_of_browsers(*marks: bytes) -> list[int]:
    """What this process has started, and what that has, by parts of command lines."""
    found = {pid: read_process(pid, "cmdline") for pid in descendants(os.getpid())}
    return [pid for pid, line in found.items() if any(mark in line for mark in marks)]


def left_over() -> list[int]:
    return processes_of_browsers(b"lycosa-browser", b"run-driver", b"render.browser")


def test_end_amid_pages_ends_all_processes_and_leaves_nothing(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    async def main() -> None:
        site, browsers = Site(), link()
        pages = [browsers.submit(site.page(number)) for number in range(3)]
        await asyncio.wait_for(site.asked.wait(), 120)
        await browsers.finish()
        assert all(page.cancelled() for page in pages)

    asyncio.run(main())
    gc.collect()  # what was left behind would complain now
    assert left_over() == []
    assert (caplog.messages, capfd.readouterr().err) == ([], "")


@pytest.mark.parametrize("mark", [b"run-driver", b"render.browser"])
def test_pages_of_a_process_that_is_killed_are_rendered_by_the_next_one(
    mark: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        site, browsers = Site(), link()
        pages = [browsers.submit(site.page(number)) for number in range(2)]
        await asyncio.wait_for(site.asked.wait(), 120)
        [killed] = processes_of_browsers(mark)
        os.kill(killed, signal.SIGKILL)
        site.answer()
        rendered = await asyncio.wait_for(asyncio.gather(*pages), 120)
        assert all(b"filled" in each.html for each in rendered)
        assert browsers.replaced == 1
        await browsers.finish()

    asyncio.run(main())
    gc.collect()
    assert left_over() == []
    assert caplog.messages == []


def test_process_that_ends_at_once_each_time_is_said_to_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(browser_link, "PROCESS", "lycosa.there.is.none")

    async def main() -> None:
        page = BrowserLink("/usr/bin/true", "tested").submit(Site().page(1))
        with pytest.raises(BrowserMissing, match="ends at once"):
            await asyncio.wait_for(page, 120)

    asyncio.run(main())


def test_next_page_of_a_tab_sees_nothing_of_the_one_before() -> None:
    async def main() -> None:
        site, browsers = Site(), link()
        site.answer()
        first = site.page(1)._replace(document=PAGE._replace(body=b"<script>window.left = 1</script>"))
        second = site.page(1)._replace(
            document=PAGE._replace(body=b"<p id=p></p><script>p.textContent = String(window.left)</script>")
        )
        await asyncio.wait_for(browsers.submit(first), 120)
        assert b"undefined" in (await asyncio.wait_for(browsers.submit(second), 120)).html
        await browsers.finish()

    asyncio.run(main())
