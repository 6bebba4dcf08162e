"""The thread of the browser: how it ends, and what becomes of pages when its driver is killed."""

import gc
import os
import signal
import threading
from concurrent.futures import Future

import pytest

from lycosa.errors import PartError
from lycosa.render.browser import BrowserThread, require_browser
from lycosa.render.gate import Subresource
from lycosa.render.processes import descendants, read_process
from lycosa.render.tab import RenderJob

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]
PAGE = Subresource(200, {"content-type": "text/html"}, b"<p id=p>empty</p><script src=/filled.js></script>")
SCRIPT = Subresource(200, {"content-type": "text/javascript"}, b"p.textContent = 'filled'")


class Site:
    """Pages that need a script, which comes when `answer` is called, and at once from then on."""

    def __init__(self) -> None:
        self.asked = threading.Event()
        self._waiting: list[Future[Subresource | None]] = []
        self._is_open = False

    def fetch(self, url: str) -> "Future[Subresource | None]":
        future = Future[Subresource | None]()
        self._waiting.append(future)
        self.asked.set()
        if self._is_open:
            self.answer()
        return future

    def answer(self) -> None:
        self._is_open = True
        while self._waiting:
            if not (future := self._waiting.pop()).done():
                future.set_result(SCRIPT)

    def job(self, number: int) -> RenderJob:
        return RenderJob(f"http://site{number}.test/", PAGE, self.fetch)


@pytest.fixture
def thread() -> BrowserThread:
    try:
        return BrowserThread(require_browser(), "tested")
    except PartError as error:
        pytest.skip(str(error))


def processes_of_browsers() -> list[bytes]:
    lines = [read_process(pid, "cmdline") for pid in descendants(os.getpid())]
    return [line for line in lines if b"lycosa-browser" in line or b"run-driver" in line]


def test_end_amid_pages_waits_for_the_driver_and_leaves_nothing(
    thread: BrowserThread, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    site = Site()
    pages = [thread.submit(site.job(number)) for number in range(3)]
    assert site.asked.wait(30)
    thread.close()
    gc.collect()  # what was left behind would complain now
    assert all(page.cancelled() for page in pages)
    assert processes_of_browsers() == []
    assert (caplog.messages, capfd.readouterr().err) == ([], "")


def test_pages_of_a_driver_that_is_killed_are_rendered_by_the_next_one(
    thread: BrowserThread, caplog: pytest.LogCaptureFixture
) -> None:
    site = Site()
    pages = [thread.submit(site.job(number)) for number in range(2)]
    assert site.asked.wait(30)
    [driver] = [pid for pid in descendants(os.getpid()) if b"run-driver" in read_process(pid, "cmdline")]
    os.kill(driver, signal.SIGKILL)
    site.answer()
    assert all("filled" in page.result(60).html for page in pages)
    assert thread.replaced == 1
    thread.close()
    gc.collect()
    assert caplog.messages == []


def test_next_page_of_a_tab_sees_nothing_of_the_one_before(thread: BrowserThread) -> None:
    site = Site()
    site.answer()
    first = site.job(1)._replace(document=PAGE._replace(body=b"<script>window.left = 1</script>"))
    second = site.job(1)._replace(
        document=PAGE._replace(body=b"<p id=p></p><script>p.textContent = String(window.left)</script>")
    )
    thread.submit(first).result(60)
    assert "undefined" in thread.submit(second).result(60).html
    thread.close()
