"""A tab of the browser: renders one page after the other, answers their requests, and knows when no more is to come.

`Tab.render` is given a page whose response is there already; all that the page asks for goes through `RenderJob.fetch`,
and is answered by `route.fulfill`. Only GET is answered: rendering a page must not change anything anywhere. Images are
answered by a transparent one; fonts and media are refused: none of them adds links or text. A page has limits: time,
requests, size. A tab is used again, since a new one costs a process; between two pages it is empty. Called by
`render.browser`.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from playwright.async_api import BrowserContext, Error, Page, Request, Route

from lycosa.render.messages import RenderedDocument, RenderError, RenderLimits, RenderStep, Subresource

# A page is ready when it has asked for nothing and got nothing for so long, and its document did not grow in another
# while: React reveals what it has up to 0.3 s late.
QUIET_S, GROWS_S, LOST_S = 0.25, 0.15, 2.0
_SIZE = "document.getElementsByTagName('*').length + ' ' + document.documentElement.textContent.length"
MOST_REQUESTS = 300
MOST_HTML_CHARS = 2_000_000
PAGES_A_TAB = 10  # then there is a new one: scripts and documents before it fill the memory of the last
_EMPTY = "about:blank"
_TRANSPARENT = bytes.fromhex("47494638396101000100800000000000ffffff21f90401000000002c00000000010001000002024401003b")
_NOT_SENT = frozenset(
    "content-encoding content-length transfer-encoding connection set-cookie alt-svc strict-transport-security nel "
    "report-to reporting-endpoints".split()
)

Fetch = Callable[[str], Awaitable[Subresource | None]]


class RenderJob(NamedTuple):
    """A page to be rendered, as it was fetched; `fetch` gets what it asks for."""

    url: str
    document: Subresource
    fetch: Fetch
    steps: tuple[RenderStep, ...] = ()


class Tab:
    """A tab of a context."""

    def __init__(self, page: Page, limits: RenderLimits) -> None:
        self._page, self._limits, self._rendered = page, limits, 0
        self._visit: _Visit | None = None
        page.on("popup", lambda popup: asyncio.ensure_future(popup.close()))
        page.on("domcontentloaded", self._opened)

    @classmethod
    async def open(cls, context: BrowserContext, limits: RenderLimits) -> "Tab":
        """A new tab."""
        page = await context.new_page()
        tab = cls(page, limits)
        await page.route("**/*", tab._answer)
        return tab

    async def render(self, job: RenderJob) -> RenderedDocument:
        """Renders a page; after an error the tab has to be closed."""
        self._rendered += 1
        visit = self._visit = _Visit(self._page, job, self._limits)
        try:
            return await visit.render()
        finally:
            self._visit = None  # what its scripts ask for from now on is refused

    async def clear(self) -> bool:
        """Empties the tab; False: it has to be closed."""
        if self._rendered < PAGES_A_TAB:
            with contextlib.suppress(Error):
                await self._page.goto(_EMPTY, timeout=self._limits.read_s * 1000)
                return True
        return False

    async def close(self) -> None:
        """Closes the tab, whatever its page is busy with."""
        with contextlib.suppress(Error, TimeoutError):
            async with asyncio.timeout(self._limits.read_s):
                await self._page.close()

    def _opened(self, _: object) -> None:
        if self._visit is not None and self._visit.is_answered:  # else it is the empty page before it
            self._visit.opened()

    async def _answer(self, route: Route) -> None:
        with contextlib.suppress(Error):  # the page is closed meanwhile
            await (self._visit.answer(route, route.request) if self._visit is not None else route.abort())


class _Visit:
    """One page on its way."""

    def __init__(self, page: Page, job: RenderJob, limits: RenderLimits) -> None:
        self._page, self._job, self._limits = page, job, limits
        self._loop = asyncio.get_running_loop()
        self._pending = self._requests = 0
        self._last = self._loop.time()
        self._waited_s = 0.0
        self._waits_since = 0.0
        self.is_answered = self._is_open = False
        self._led_to: dict[str, None] = {}

    async def render(self) -> RenderedDocument:
        page = self._page
        going = asyncio.ensure_future(page.goto(self._job.url, wait_until="domcontentloaded", timeout=0))
        going.add_done_callback(self.opened)
        try:
            await self._wait_until_idle(going)
            for step in self._job.steps:
                await self._do(step)
            try:
                async with asyncio.timeout(self._limits.read_s):
                    html = await page.content()
            except TimeoutError as error:
                raise RenderError(f"its scripts did not come to rest in {self._limits.page_s:g} s") from error
        finally:
            going.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await going
        if len(html) > MOST_HTML_CHARS:
            raise RenderError(f"it is larger than {MOST_HTML_CHARS:,} characters")
        return RenderedDocument(html.encode("utf-8", "replace"), tuple(self._led_to))

    def opened(self, _: object = None) -> None:
        """The document is there, or will not come."""
        self._is_open, self._last = True, self._loop.time()

    async def _wait_until_idle(self, going: "asyncio.Future[Any] | None" = None) -> None:
        """Waits until the page is there and nothing more comes, or it has had its time."""
        began, waited_before, size = self._loop.time(), self._waited_s, ""
        while True:
            now = self._loop.time()
            waited_s = self._waited_s - waited_before + (now - self._waits_since if self._pending else 0.0)
            # A page that wanted to go elsewhere at once may never be said to be there.
            quiet_s = QUIET_S if self._is_open else LOST_S if self.is_answered else self._limits.page_s
            if not self._pending and now - self._last >= quiet_s:
                before, size = size, await self._size()
                if size and size == before and not self._pending:
                    break
                await asyncio.sleep(GROWS_S)
            if now - began - waited_s > self._limits.page_s or waited_s > self._limits.waits_s:
                break
            await asyncio.sleep(0.03)
        if going is not None and going.done() and not self.is_answered and (error := going.exception()) is not None:
            raise error  # after it was answered, it is a script that wanted to go elsewhere

    async def _size(self) -> str:
        """How large the document is; empty where its scripts are too busy to say."""
        try:
            async with asyncio.timeout(1.0):
                return str(await self._page.evaluate(_SIZE))
        except TimeoutError:
            return ""

    async def _do(self, step: RenderStep) -> None:
        with contextlib.suppress(Error, TimeoutError):  # what is not there is not clicked
            async with asyncio.timeout(self._limits.step_s):
                if step.verb == "scroll":
                    for _ in range(step.number):
                        await self._page.evaluate("window.scrollTo(0, document.documentElement.scrollHeight)")
                        self._last = self._loop.time()
                        await self._wait_until_idle()
                elif step.verb == "click":
                    if await self._page.locator(step.selector).count():
                        await self._page.locator(step.selector).first.click(timeout=self._limits.step_s * 1000)
                elif step.selector:
                    await self._page.wait_for_selector(step.selector, timeout=self._limits.step_s * 1000)
                else:
                    await asyncio.sleep(step.number / 1000)
        self._last = self._loop.time()
        await self._wait_until_idle()

    async def answer(self, route: Route, request: Request) -> None:
        """Answers a request of the page."""
        url, kind = request.url.partition("#")[0], request.resource_type
        is_own = url == self._job.url
        if request.is_navigation_request() and request.frame == self._page.main_frame:
            if is_own and not self.is_answered:
                self.is_answered = True
                await _fulfill(route, self._job.document)
            else:
                if not is_own:
                    self._led_to[url] = None
                await route.abort("aborted")  # other errors would put a page of their own in its place
        elif request.method not in ("GET", "HEAD") or kind in ("font", "media", "websocket", "eventsource"):
            await route.abort()
        elif kind == "image":
            await route.fulfill(status=200, content_type="image/gif", body=_TRANSPARENT)
        elif is_own:
            await _fulfill(route, self._job.document)
        else:
            found = await self._fetched(url)
            await (_fulfill(route, found) if found is not None else route.abort())
            self._last = self._loop.time()

    async def _fetched(self, url: str) -> Subresource | None:
        self._requests += 1
        if self._requests > MOST_REQUESTS or not url.startswith(("http://", "https://")):
            return None
        if not self._pending:
            self._waits_since = self._loop.time()
        self._pending += 1
        try:
            return await self._job.fetch(url)
        finally:
            self._pending -= 1
            self._last = self._loop.time()
            if not self._pending:
                self._waited_s += self._last - self._waits_since


async def _fulfill(route: Route, found: Subresource) -> None:
    headers = {name: value for name, value in found.headers.items() if name not in _NOT_SENT}
    await route.fulfill(status=found.status, headers=headers, body=found.body)
