"""The crawl's side of the browsers: starts the process that drives them, and answers what their pages ask for.

All of it runs on the crawl's event loop, which hears of results and is never held. A process that ends before its time
is started again, and what it had is rendered by the next one. `render.browser` is the other side; it is not
imported here, so that a crawl has nothing of a browser in its memory. Called by `render.rendering`.
"""

import asyncio
import os
import shutil
import subprocess
from collections.abc import Callable
from importlib.util import find_spec
from itertools import count
from typing import NamedTuple

from lycosa.errors import PartError
from lycosa.processes import start_helper
from lycosa.render.messages import (
    Begin,
    BrowserMissing,
    FromBrowser,
    MessagePipes,
    PageRequest,
    Render,
    Rendered,
    RenderedDocument,
    RenderError,
    RenderLimits,
    RenderStep,
    RequestAnswer,
    Subresource,
)
from lycosa.render.processes import kill_tree

PROGRAMS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
PATH_VARIABLE = "LYCOSA_CHROMIUM"
LIMITS = RenderLimits()
CLOSE_S = 12.0  # for all browsers to end
STARTS = 3  # of processes that end before they have rendered a page
PROCESS = "lycosa.render.browser"

Fetch = Callable[[str, Callable[[Subresource | None], None]], None]


def require_browser() -> str:
    """The path of Chromium; raises PartError that says what to install."""
    how = "pip install 'lycosa[render]', and apt-get install chromium"
    if find_spec("playwright") is None:
        raise PartError(f"rendering needs Playwright and Chromium: {how}")
    named = os.environ.get(PATH_VARIABLE, "")
    found = shutil.which(named) if named else next(filter(None, map(shutil.which, PROGRAMS)), None)
    if found is None:
        wanted = f"{PATH_VARIABLE}={named}, which is no program" if named else f"none of {', '.join(PROGRAMS)}"
        raise PartError(f"rendering needs Chromium, and there is {wanted}: {how}, or set {PATH_VARIABLE}")
    return found


class PageToRender(NamedTuple):
    """A page as it was fetched; `fetch` gets what it asks for, and says so once to whom it is given."""

    url: str
    document: Subresource
    fetch: Fetch
    steps: tuple[RenderStep, ...] = ()


class _Submitted(NamedTuple):
    page: PageToRender
    future: "asyncio.Future[RenderedDocument]"


class BrowserLink:
    """Has pages rendered, in the process that it starts for the first of them. `replaced` counts browsers."""

    def __init__(self, program: str, agent: str) -> None:
        self._begin = Begin(program, agent, LIMITS)
        self._numbers = count(1)
        self._submitted: dict[int, _Submitted] = {}
        self._process: subprocess.Popen[bytes] | None = None
        self._pipes: MessagePipes[FromBrowser] | None = None
        self._task: asyncio.Task[None] | None = None
        self._rendered = self._replaced_before = 0
        self.replaced = 0
        self._is_over = False

    def __repr__(self) -> str:
        return f"<BrowserLink pages={len(self._submitted)} replaced={self.replaced}>"

    def submit(self, page: PageToRender) -> "asyncio.Future[RenderedDocument]":
        """Renders a page; the future raises RenderError where that cannot be done."""
        number, future = next(self._numbers), asyncio.get_running_loop().create_future()
        self._submitted[number] = _Submitted(page, future)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())
        elif self._pipes is not None:
            self._send(number)
        return future

    def _send(self, number: int) -> None:
        assert self._pipes is not None
        page = self._submitted[number].page
        self._pipes.send(Render(number, page.url, page.document, page.steps))

    async def _run(self) -> None:
        """Listens to the process; to another one where it ends before its time."""
        failed, said = 0, ""
        while failed < STARTS:
            rendered = self._rendered
            try:
                await self._listen()
            except OSError as error:
                said = f": {error.strerror}"
            finally:
                self._end_process()
            if self._is_over:
                return
            self.replaced += 1
            self._replaced_before = self.replaced
            failed = 0 if self._rendered > rendered else failed + 1
        for future in self._take_all():
            future.set_exception(BrowserMissing(f"the process that drives it ends at once{said}"))

    async def _listen(self) -> None:
        self._process = process = start_helper(PROCESS)
        assert process.stdin is not None
        assert process.stdout is not None
        self._pipes = await MessagePipes[FromBrowser].open(process.stdout, process.stdin, FromBrowser)
        self._pipes.send(self._begin)
        for number in self._submitted:
            self._send(number)
        while (message := await self._pipes.receive()) is not None:
            self._hear(self._pipes, message)

    def _hear(self, pipes: "MessagePipes[FromBrowser]", message: FromBrowser) -> None:
        if isinstance(message, PageRequest):
            submitted, request = self._submitted.get(message.page), message.request

            def answer(found: Subresource | None) -> None:
                pipes.send(RequestAnswer(request, found))

            if submitted is None:
                answer(None)
            else:
                submitted.page.fetch(message.url, answer)
            return
        self.replaced = self._replaced_before + message.replaced
        future = self._submitted.pop(message.page).future
        if future.cancelled():
            return
        if isinstance(message, Rendered):
            self._rendered += 1
            future.set_result(message.document)
        else:
            error = BrowserMissing if message.is_browser_missing else RenderError
            future.set_exception(error(message.reason))

    async def finish(self) -> None:
        """Ends the browsers in order; what was not rendered is cancelled."""
        self._is_over = True
        if self._task is not None and self._pipes is not None:
            self._pipes.close_sending()
            await asyncio.wait({self._task}, timeout=CLOSE_S)
        self.close()

    def close(self) -> None:
        """Ends at once what has not ended."""
        if self._task is not None:
            self._task.cancel()
        self._end_process()
        for future in self._take_all():
            future.cancel()

    def _take_all(self) -> "list[asyncio.Future[RenderedDocument]]":
        some, self._submitted = self._submitted, {}
        return [each.future for each in some.values() if not each.future.done()]

    def _end_process(self) -> None:
        if self._pipes is not None:
            self._pipes.close()
            self._pipes = None
        if self._process is not None:
            if self._process.poll() is None:
                kill_tree(self._process.pid)
                self._process.wait()
            self._process = None
