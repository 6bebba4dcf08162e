"""Debian's Chromium without a window, driven by Playwright.

`Browser` opens a page and tells what it asked for, what it shows in all its frames, and how it looks.
"""

import contextlib
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from playwright.sync_api import ConsoleMessage, Dialog, Error, Page, sync_playwright

from lycosa.errors import LycosaError

NAMES = ("chromium", "chromium-browser", "google-chrome")
SWITCHES = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update")
WIDTH, HEIGHT = 1200, 800
ANSWER_S = 60.0
FRAME_S = 5.0
LOOK_S = 0.1  # between two looks at something that is waited for


def chromium() -> str:
    """The path of Chromium."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        raise LycosaError("there is no Chromium on the path: apt-get install chromium")
    return found


class Browser:
    """One page of a running Chromium. `requests` are the URLs that it and its frames asked for, `problems` what the
    page complained of: errors, refusals of its policy, failed requests. `dialogs` are all confirmed."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self.requests: list[str] = []
        self.problems: list[str] = []
        self.dialogs: list[str] = []
        page.set_default_timeout(ANSWER_S * 1000)
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("console", self._complain)
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("dialog", self._confirm)

    def _complain(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.problems.append(f"{message.text} {message.location['url']}")

    def _confirm(self, dialog: Dialog) -> None:
        self.dialogs.append(dialog.message)
        dialog.accept()

    def wait(self, is_done: Callable[[], object], seconds: float) -> bool:
        """Lets the page go on until `is_done`, or until so long has passed; returns whether it is done."""
        while not is_done():
            if seconds <= 0:
                return False
            self._page.wait_for_timeout(min(LOOK_S, seconds) * 1000)
            seconds -= LOOK_S
        return True

    def open(self, url: str, *, settle_s: float = 0.5) -> None:
        """Goes to a URL, and waits until it is loaded and nothing more is asked for."""
        self._page.goto(url)
        self.settle(settle_s)

    def settle(self, seconds: float = 0.5) -> None:
        """Waits until nothing was asked for in so long."""
        seen = -1
        while len(self.requests) != seen:
            seen = len(self.requests)
            self._page.wait_for_timeout(seconds * 1000)

    @property
    def url(self) -> str:
        return self._page.url

    def texts(self) -> dict[str, str]:
        """The markup of the page and of each of its frames as it is now, by URL."""
        found: dict[str, str] = {}
        for frame in self._page.frames:
            with contextlib.suppress(Error):  # a frame that has gone, or was refused and never has a document
                found[frame.url] = frame.locator(":root").evaluate("root => root.outerHTML", timeout=FRAME_S * 1000)
        return found

    def evaluate(self, expression: str) -> Any:
        """The value of an expression in the page; again in the next one where the page goes elsewhere meanwhile."""
        while True:
            try:
                return self._page.evaluate(expression)
            except Error as error:
                if "context was destroyed" not in error.message:
                    raise
                self._page.wait_for_load_state()

    def press(self, selector: str) -> None:
        """A click on an element, once it can be clicked."""
        self._page.click(selector)

    def click(self, x: int, y: int) -> None:
        """A click of a reader, with whatever it leads to."""
        self._page.mouse.click(x, y)
        self.settle()

    def resize(self, width: int, height: int = HEIGHT, *, is_dark: bool = False) -> None:
        """The size of the window in CSS pixels, and the theme that the page is asked for."""
        self._page.set_viewport_size({"width": width, "height": height})
        self._page.emulate_media(color_scheme="dark" if is_dark else "light")

    def screenshot(self, path: Path) -> None:
        self._page.screenshot(path=path)


@contextlib.contextmanager
def browser() -> Iterator[Browser]:
    """A Chromium of its own, ended with the block."""
    with sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=chromium(), args=SWITCHES)
        try:
            yield Browser(running.new_page(viewport={"width": WIDTH, "height": HEIGHT}))
        finally:
            running.close()
