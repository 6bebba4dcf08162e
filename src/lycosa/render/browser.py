"""Chromium, driven by Playwright on a thread of its own, without a way to the network.

`BrowserThread.submit` renders a page whose response is given; all that the page asks for goes through `Fetch`, and is
answered by `route.fulfill`. The ways around that are closed: service workers are blocked, web sockets closed, popups
and downloads refused, names resolve to nothing, and what would still connect goes to a proxy that is not there. Only
GET is answered: rendering a page must not change anything anywhere. Images are answered by a transparent one; fonts and
media are refused: none of them adds links or text.

A page has limits: time, requests, size. A browser is replaced after so many pages, when it has grown too large, when it
hangs, and when it is gone; its pages are tried again in the next one. The crawl's event loop is never held: it only
hears of results. Called by `render.rendering`.
"""

import asyncio
import contextlib
import os
import shutil
import signal
import threading
import uuid
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from lycosa.errors import PartError
from lycosa.render.gate import Subresource

if TYPE_CHECKING:
    from playwright.async_api import Browser, BrowserContext, Page, Playwright, Request, Route

PROGRAMS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
PATH_VARIABLE = "LYCOSA_CHROMIUM"
SWITCHES = (
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--proxy-server=http://127.0.0.1:9",
    "--proxy-bypass-list=<-loopback>",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-domain-reliability",
    "--disable-sync",
    "--no-pings",
    "--disable-gpu",
    "--js-flags=--max-old-space-size=512",
)
START_S = 20.0  # for a browser to start
TABS = 8  # pages at a time: most of them wait
# A page is ready when it has asked for nothing and got nothing for so long, and its document did not grow in another
# while: React reveals what it has up to 0.3 s late.
QUIET_S, GROWS_S, LOST_S = 0.25, 0.15, 2.0
_SIZE = "document.getElementsByTagName('*').length + ' ' + document.documentElement.textContent.length"
PAGE_S = 30.0  # of its own time, beside what it waits for its requests
WAITS_S = 300.0  # for its requests: at a delay of a second they take long
STEP_S = 10.0  # for what a step waits for
GONE_S = 1.0
READ_S = 10.0  # until the page has said what it shows, or is closed
MOST_REQUESTS = 300
MOST_HTML_CHARS = 2_000_000
PAGES_EACH = 400  # the driver grows with every page
MOST_BYTES = 1_500 << 20  # of a browser with all its processes
LOOKED_AT_EVERY = 20  # pages
TRIES = 12  # a page in whose time so many browsers ended is left as it is: it may be to blame
STARTS = 3  # that fail in a row: then there is no browser
MOST_CONTEXTS = 8
_TRANSPARENT = bytes.fromhex("47494638396101000100800000000000ffffff21f90401000000002c00000000010001000002024401003b")
_NOT_SENT = frozenset(
    "content-encoding content-length transfer-encoding connection set-cookie alt-svc strict-transport-security nel "
    "report-to reporting-endpoints".split()
)

Fetch = Callable[[str], "Future[Subresource | None]"]


def require_browser() -> str:
    """The path of Chromium; raises PartError that says what to install."""
    how = "pip install 'lycosa[render]', and apt-get install chromium"
    try:
        import playwright.async_api  # noqa: F401  # lazy: only where pages are rendered
    except ImportError as error:
        raise PartError(f"rendering needs Playwright and Chromium: {how}") from error
    named = os.environ.get(PATH_VARIABLE, "")
    found = shutil.which(named) if named else next(filter(None, map(shutil.which, PROGRAMS)), None)
    if found is None:
        wanted = f"{PATH_VARIABLE}={named}, which is no program" if named else f"none of {', '.join(PROGRAMS)}"
        raise PartError(f"rendering needs Chromium, and there is {wanted}: {how}, or set {PATH_VARIABLE}")
    return found


class RenderStep(NamedTuple):
    """What is done in a page: `wait` for a selector or milliseconds, `click` a selector, `scroll` so many times."""

    verb: str
    selector: str = ""
    number: int = 0


class RenderJob(NamedTuple):
    """A page to be rendered, as it was fetched; `fetch` gets what it asks for."""

    url: str
    document: Subresource
    fetch: Fetch
    steps: tuple[RenderStep, ...] = ()


class RenderedDocument(NamedTuple):
    """What a browser made of a page. `led_to` are URLs that its scripts wanted to go to instead."""

    html: str
    led_to: tuple[str, ...]
    requests: int


class RenderError(Exception):
    """A page could not be rendered."""


class BrowserMissing(RenderError):
    """No browser starts, however often it is tried."""


class _BrowserGone(Exception):
    """The browser ended, or hangs."""


class BrowserThread:
    """Renders pages, some at a time."""

    def __init__(self, program: str, agent: str) -> None:
        self._program, self._agent = program, agent
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="render", daemon=True)
        self._tabs, self._starting = asyncio.Semaphore(TABS), asyncio.Lock()
        self._chromium: _Chromium | None = None
        self._all: set[_Chromium] = set()
        self.replaced = self._failed_starts = 0
        self._start_error = ""
        self._left: set[asyncio.Task[RenderedDocument]] = set()
        self._thread.start()

    def __repr__(self) -> str:
        return f"<BrowserThread replaced={self.replaced}>"

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    def submit(self, job: RenderJob) -> "Future[RenderedDocument]":
        """Renders a page; the future raises RenderError where that cannot be done."""
        return asyncio.run_coroutine_threadsafe(self._render(job), self._loop)

    def pids(self) -> list[int]:
        """The process ids of the browsers that run now."""
        return [chromium.pid for chromium in list(self._all) if chromium.pid]

    def close(self) -> None:
        """Ends the browsers and the thread."""
        if self._loop.is_closed():
            return
        with contextlib.suppress(Exception):
            asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(10)
        for chromium in list(self._all):
            chromium.kill()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
        if not self._thread.is_alive():
            self._loop.close()

    async def _close(self) -> None:
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*(chromium.close() for chromium in list(self._all)), return_exceptions=True)

    async def _render(self, job: RenderJob) -> RenderedDocument:
        async with self._tabs:
            for _ in range(TRIES):
                try:
                    chromium = await self._ready()
                except _BrowserGone as error:
                    if self._failed_starts >= STARTS:
                        raise BrowserMissing(f"{self._program} does not start: {self._start_error}") from error
                    continue
                chromium.active += 1
                try:
                    return await self._in_one(chromium, job)
                except _BrowserGone:
                    self._replace(chromium, is_gone=True)
                finally:
                    chromium.active -= 1
                    self._end_if_left(chromium)
            raise RenderError("its browser ended or hung every time")

    async def _in_one(self, chromium: "_Chromium", job: RenderJob) -> RenderedDocument:
        """Renders a page in a browser; raises _BrowserGone where it ends meanwhile, or says nothing any more. Calls of
        the driver may never return then, so they are left behind."""
        task = self._loop.create_task(chromium.render(job))
        most_s = PAGE_S + WAITS_S + 3 * READ_S
        try:
            ends: set[asyncio.Future[Any]] = {task, chromium.gone}
            await asyncio.wait(ends, timeout=most_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            if not task.done():
                task.cancel()
                self._left.add(task)
                task.add_done_callback(self._left.discard)
        if task.done():
            return task.result()
        raise _BrowserGone

    async def _ready(self) -> "_Chromium":
        """The browser for the next page; a new one, where there is none or the last has done enough."""
        async with self._starting:
            current = self._chromium
            if current is not None and current.is_worn():
                self._replace(current)
            if self._chromium is None:
                made = _Chromium(self._program, self._agent)
                self._all.add(made)
                try:
                    async with asyncio.timeout(START_S):
                        await made.start()
                except Exception as error:
                    self._all.discard(made)
                    made.ending = self._loop.create_task(made.close())
                    self._failed_starts += 1
                    self._start_error = _first_line(error) or f"not within {START_S:g} s"
                    raise _BrowserGone from error
                self._failed_starts = 0
                self._chromium = made
            return self._chromium

    def _replace(self, chromium: "_Chromium", *, is_gone: bool = False) -> None:
        if is_gone:
            chromium.kill()
        if self._chromium is chromium:
            self._chromium = None
            self.replaced += 1

    def _end_if_left(self, chromium: "_Chromium") -> None:
        if self._chromium is not chromium and not chromium.active and chromium in self._all:
            self._all.discard(chromium)
            chromium.ending = self._loop.create_task(chromium.close())


class _Chromium:
    """One browser and its driver."""

    def __init__(self, program: str, agent: str) -> None:
        self._program, self._agent = program, agent
        self._mark = f"--lycosa-browser={uuid.uuid4().hex}"  # by which its processes are found
        self._playwright: Playwright | None = None
        self._browser: Browser | None = None
        self._contexts: OrderedDict[str, tuple[BrowserContext, int]] = OrderedDict()
        self.active = self.pages = self.pid = 0
        self.is_large = False
        self.gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.ending: asyncio.Task[None] | None = None

    async def start(self) -> None:
        from playwright.async_api import async_playwright  # lazy: only where pages are rendered

        self._playwright = await async_playwright().start()
        self._browser = await self._playwright.chromium.launch(
            executable_path=self._program,
            args=[*SWITCHES, self._mark],
            chromium_sandbox=os.geteuid() != 0,  # Chromium has none for root
            handle_sigint=False,
            handle_sigterm=False,
            handle_sighup=False,
        )
        self._browser.on("disconnected", self._on_gone)
        self.pid = _pid_with(self._mark)

    def _on_gone(self, _: object) -> None:
        if not self.gone.done():
            self.gone.set_result(None)

    def is_worn(self) -> bool:
        """Has it rendered enough pages, grown too large, or ended?"""
        if self._browser is None or not self._browser.is_connected():
            return True
        if self.pages and self.pages % LOOKED_AT_EVERY == 0:
            self.is_large = _resident_bytes(self.pid) > MOST_BYTES
        return self.pages >= PAGES_EACH or self.is_large

    async def close(self) -> None:
        with contextlib.suppress(Exception):
            async with asyncio.timeout(5):
                if self._browser is not None:
                    await self._browser.close()
                if self._playwright is not None:
                    await self._playwright.stop()
        self.kill()

    def kill(self) -> None:
        """Ends its processes; the driver ends with them, or when it is asked to."""
        self.pid = self.pid or _pid_with(self._mark)
        if self.pid:
            for pid in [*_descendants(self.pid), self.pid]:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            self.pid = 0

    async def render(self, job: RenderJob) -> RenderedDocument:
        from playwright.async_api import Error  # lazy: only where pages are rendered

        self.pages += 1
        origin = "/".join(job.url.split("/", 3)[:3])
        try:
            context = await self._context(origin)
            try:
                page = await context.new_page()
                try:
                    return await _Tab(page, job).render()
                finally:
                    with contextlib.suppress(Error, TimeoutError):
                        async with asyncio.timeout(READ_S):
                            await page.close()
            finally:
                await self._leave(origin)
        except Error as error:
            await asyncio.wait({self.gone}, timeout=GONE_S)  # its calls fail before it is known to be gone
            if self.gone.done():
                raise _BrowserGone from error
            raise RenderError(_first_line(error)) from error

    async def _context(self, origin: str) -> "BrowserContext":
        """The context of an origin, which its pages share: cookies and storage of one are not those of another."""
        assert self._browser is not None
        context, users = self._contexts.pop(origin, (None, 0))
        if context is None:
            context = await self._browser.new_context(
                user_agent=self._agent, service_workers="block", accept_downloads=False
            )
            await context.route("**/*", lambda route: route.abort())  # popups, and whatever belongs to no page
            await context.route_web_socket("**/*", lambda socket: socket.close())
        if origin in self._contexts:  # made meanwhile by another page
            await context.close()
            context, users = self._contexts.pop(origin)
        self._contexts[origin] = context, users + 1
        return context

    async def _leave(self, origin: str) -> None:
        if origin in self._contexts:
            context, users = self._contexts[origin]
            self._contexts[origin] = context, users - 1
        for name, (context, users) in list(self._contexts.items()):
            if len(self._contexts) > MOST_CONTEXTS and not users:
                del self._contexts[name]
                with contextlib.suppress(Exception):
                    await context.close()


class _Tab:
    """One page on its way: answers its requests, and knows when nothing more is to come."""

    def __init__(self, page: "Page", job: RenderJob) -> None:
        self._page, self._job = page, job
        self._loop = asyncio.get_running_loop()
        self._pending = self._requests = 0
        self._last = self._loop.time()
        self._waited_s = 0.0
        self._waits_since = 0.0
        self._is_answered = self._is_open = False
        self._led_to: dict[str, None] = {}

    async def render(self) -> RenderedDocument:
        page = self._page
        page.on("popup", lambda popup: asyncio.ensure_future(popup.close()))
        await page.route("**/*", self._answer)
        going = asyncio.ensure_future(page.goto(self._job.url, wait_until="domcontentloaded", timeout=0))
        going.add_done_callback(self._opened)
        page.on("domcontentloaded", self._opened)
        try:
            await self._settle(going)
            for step in self._job.steps:
                await self._do(step)
            try:
                async with asyncio.timeout(READ_S):
                    html = await page.content()
            except TimeoutError as error:
                raise RenderError(f"its scripts did not come to rest in {PAGE_S:g} s") from error
        finally:
            going.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await going
        if len(html) > MOST_HTML_CHARS:
            raise RenderError(f"it is larger than {MOST_HTML_CHARS:,} characters")
        return RenderedDocument(html, tuple(self._led_to), self._requests)

    def _opened(self, _: object) -> None:
        self._is_open, self._last = True, self._loop.time()

    async def _settle(self, going: "asyncio.Future[Any] | None" = None) -> None:
        """Waits until the page is there and nothing more comes, or it has had its time."""
        began, waited_before, size = self._loop.time(), self._waited_s, ""
        while True:
            now = self._loop.time()
            waited_s = self._waited_s - waited_before + (now - self._waits_since if self._pending else 0.0)
            # A page that wanted to go elsewhere at once may never be said to be there.
            quiet_s = QUIET_S if self._is_open else LOST_S if self._is_answered else PAGE_S
            if not self._pending and now - self._last >= quiet_s:
                before, size = size, await self._size()
                if size and size == before and not self._pending:
                    break
                await asyncio.sleep(GROWS_S)
            if now - began - waited_s > PAGE_S or waited_s > WAITS_S:
                break
            await asyncio.sleep(0.03)
        if going is not None and going.done() and not self._is_answered and (error := going.exception()) is not None:
            raise error  # after it was answered, it is a script that wanted to go elsewhere

    async def _size(self) -> str:
        """How large the document is; empty where its scripts are too busy to say."""
        try:
            async with asyncio.timeout(1.0):
                return str(await self._page.evaluate(_SIZE))
        except TimeoutError:
            return ""

    async def _do(self, step: RenderStep) -> None:
        from playwright.async_api import Error  # lazy: only where pages are rendered

        with contextlib.suppress(Error, TimeoutError):  # what is not there is not clicked
            async with asyncio.timeout(STEP_S):
                if step.verb == "scroll":
                    for _ in range(step.number):
                        await self._page.evaluate("window.scrollTo(0, document.documentElement.scrollHeight)")
                        self._last = self._loop.time()
                        await self._settle()
                elif step.verb == "click":
                    if await self._page.locator(step.selector).count():
                        await self._page.locator(step.selector).first.click(timeout=STEP_S * 1000)
                elif step.selector:
                    await self._page.wait_for_selector(step.selector, timeout=STEP_S * 1000)
                else:
                    await asyncio.sleep(step.number / 1000)
        self._last = self._loop.time()
        await self._settle()

    async def _answer(self, route: "Route") -> None:
        from playwright.async_api import Error  # lazy: only where pages are rendered

        with contextlib.suppress(Error):  # the page is closed meanwhile
            await self._answered(route, route.request)

    async def _answered(self, route: "Route", request: "Request") -> None:
        url, kind = request.url.partition("#")[0], request.resource_type
        is_own = url == self._job.url
        if request.is_navigation_request() and request.frame == self._page.main_frame:
            if is_own and not self._is_answered:
                self._is_answered = True
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
            return await asyncio.wrap_future(self._job.fetch(url))
        finally:
            self._pending -= 1
            self._last = self._loop.time()
            if not self._pending:
                self._waited_s += self._last - self._waits_since


async def _fulfill(route: "Route", found: Subresource) -> None:
    headers = {name: value for name, value in found.headers.items() if name not in _NOT_SENT}
    await route.fulfill(status=found.status, headers=headers, body=found.body)


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0][:200]


# processes


def _pid_with(mark: str) -> int:
    """The process that was started with a mark in its command line; 0 where there is none, or that cannot be known."""
    found = [pid for pid in _processes() if mark.encode() in _read(pid, "cmdline")]
    parents = {pid: _parent(pid) for pid in found}
    return next((pid for pid in found if parents[pid] not in parents), 0)


def _descendants(pid: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for process in _processes():
        children.setdefault(_parent(process), []).append(process)
    found, rest = list[int](), [pid]
    while rest:
        some = children.get(rest.pop(), [])
        found += some
        rest += some
    return found


def _resident_bytes(pid: int) -> int:
    """The memory of a process and its descendants that no other file backs."""
    if not pid:
        return 0
    total = 0
    for process in [pid, *_descendants(pid)]:
        fields = _read(process, "statm").split()
        total += (int(fields[1]) - int(fields[2])) * os.sysconf("SC_PAGE_SIZE") if len(fields) > 2 else 0
    return total


def _processes() -> Sequence[int]:
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdecimal()]  # noqa: PTH208 - names are enough
    except OSError:  # another system
        return []


def _parent(pid: int) -> int:
    fields = _read(pid, "stat").rpartition(b")")[2].split()
    return int(fields[1]) if len(fields) > 1 else 0


def _read(pid: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""
