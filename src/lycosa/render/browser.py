"""Chromium, driven by Playwright, without a way to the network.

`Browsers.render` renders a page whose response is given, in a tab (`render.tab`); all that the page asks for is
answered there. The ways around that are closed: service workers are blocked, web sockets closed, popups and downloads
refused, names resolve to nothing, and what would still connect goes to a proxy that is not there.

A browser is replaced after so many pages, when it has grown too large, when it hangs, and when it is gone; its pages
are tried again in the next one.

Everything here runs in a process of its own, which `BrowserLink` starts: the driver of the browsers is Python, too, and
busy, and in the crawl's process it would take turns with the event loop. It yields to the crawl where there are not
enough processors, and so do the browsers. When its input ends, the crawl is over or gone.
"""

import asyncio
import contextlib
import os
import sys
import uuid
from collections import OrderedDict
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import msgspec
from playwright.async_api import Browser, BrowserContext, Error, Playwright, async_playwright

from lycosa.render.messages import (
    Begin,
    BrowserMissing,
    MessagePipes,
    NotRendered,
    PageRequest,
    Render,
    Rendered,
    RenderedDocument,
    RenderError,
    RenderLimits,
    RequestAnswer,
    Subresource,
    ToBrowser,
)
from lycosa.render.processes import BrowserLoop, kill_tree, pid_with, resident_bytes
from lycosa.render.tab import RenderJob, Tab

SWITCHES = (
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--proxy-server=http://127.0.0.1:9",
    "--proxy-bypass-list=<-loopback>",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",  # its name in earlier versions
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-domain-reliability",
    "--disable-sync",
    "--no-pings",
    "--disable-gpu",
    "--js-flags=--max-old-space-size=512",
)
START_S, CLOSE_S = 20.0, 10.0  # for a browser to start, for all to end
TABS = 8  # pages at a time: most of them wait
GONE_S = 1.0
PAGES_EACH = 400  # the driver grows with every page
MOST_BYTES = 1_500 << 20  # of a browser with all its processes
LOOKED_AT_EVERY = 20  # pages
TRIES = 12  # a page in whose time so many browsers ended is left as it is: it may be to blame
STARTS = 3  # that fail in a row: then there is no browser
MOST_CONTEXTS = 8
NICE = 10

T = TypeVar("T")


class _BrowserGone(Exception):
    """The browser ended, or hangs."""


class Browsers:
    """Renders pages, some at a time, in one browser after the other. `replaced` counts those that were replaced."""

    def __init__(self, program: str, agent: str, limits: RenderLimits) -> None:
        self._program, self._agent, self._limits = program, agent, limits
        self._tabs, self._starting = asyncio.Semaphore(TABS), asyncio.Lock()
        self._chromium: _Chromium | None = None
        self._all: set[_Chromium] = set()
        self.replaced = self._failed_starts = 0
        self._start_error = ""
        self._tasks: set[asyncio.Task[Any]] = set()

    def __repr__(self) -> str:
        return f"<Browsers replaced={self.replaced}>"

    async def close(self) -> None:
        """Ends what was begun here, then the browsers. The driver's own tasks end with the driver: if they were
        cancelled before, nobody would wait for it."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*(chromium.close() for chromium in list(self._all)))

    def _start(self, work: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
        """Begins with something that ends with the browsers at the latest."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def render(self, job: RenderJob) -> RenderedDocument:
        """Renders a page; raises RenderError where that cannot be done."""
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
        task = self._start(chromium.render(job))
        limits = self._limits
        most_s = limits.page_s + limits.waits_s + 3 * limits.read_s
        try:
            ends: set[asyncio.Future[Any]] = {task, chromium.gone}
            await asyncio.wait(ends, timeout=most_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            if not task.done():
                task.cancel()
        if task.done():
            return task.result()
        raise _BrowserGone

    async def _ready(self) -> "_Chromium":
        """The browser for the next page; a new one, where there is none or the last has done enough."""
        async with self._starting:
            current = self._chromium
            if current is not None and current.needs_replacing():
                self._replace(current)
            if self._chromium is None:
                made = _Chromium(self._program, self._agent, self._limits)
                self._all.add(made)
                try:
                    async with asyncio.timeout(START_S):
                        await made.start()
                except Exception as error:
                    self._start(self._end(made))
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
        if self._chromium is not chromium and not chromium.active and not chromium.is_ending:
            self._start(self._end(chromium))

    async def _end(self, chromium: "_Chromium") -> None:
        chromium.is_ending = True
        await chromium.close()
        self._all.discard(chromium)


class _Origin(msgspec.Struct):
    """The context of an origin, its empty tabs, and how many pages are using it."""

    context: Any
    idle: list[Tab] = []
    users: int = 0


class _Chromium:
    """One browser and its driver."""

    def __init__(self, program: str, agent: str, limits: RenderLimits) -> None:
        self._program, self._agent, self._limits = program, agent, limits
        self._driver: asyncio.SubprocessTransport | None = None
        self._mark = f"--lycosa-browser={uuid.uuid4().hex}"  # by which its processes are found
        self._playwright: Playwright | None = None
        self._browser: Browser | None = None
        self._origins: OrderedDict[str, _Origin] = OrderedDict()
        self.active = self.pages = self.pid = 0
        self.is_large = self.is_ending = False
        self.gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def start(self) -> None:
        self._playwright = await async_playwright().start()
        loop = asyncio.get_running_loop()
        assert isinstance(loop, BrowserLoop)
        self._driver = loop.driver
        self._browser = await self._playwright.chromium.launch(
            executable_path=self._program,
            args=[*SWITCHES, self._mark],
            chromium_sandbox=os.geteuid() != 0,  # Chromium has none for root
            handle_sigint=False,
            handle_sigterm=False,
            handle_sighup=False,
        )
        self._browser.on("disconnected", self._on_gone)
        self.pid = pid_with(self._mark)

    def _on_gone(self, _: object) -> None:
        if not self.gone.done():
            self.gone.set_result(None)

    def needs_replacing(self) -> bool:
        """Has it rendered enough pages, grown too large, or ended?"""
        if self._has_ended():
            return True
        if self.pages and self.pages % LOOKED_AT_EVERY == 0:
            self.is_large = resident_bytes(self.pid) > MOST_BYTES
        return self.pages >= PAGES_EACH or self.is_large

    def _has_ended(self) -> bool:
        """Has the browser ended, or its driver? Of a driver that is killed the browser's own object hears nothing."""
        is_connected = self._browser is not None and self._browser.is_connected() and not self.gone.done()
        return not is_connected or self._driver is None or self._driver.get_returncode() is not None

    async def close(self) -> None:
        """Ends the browser and its driver."""
        for end in (self._browser and self._browser.close, self._playwright and self._playwright.stop):
            if end:
                with contextlib.suppress(Exception):
                    async with asyncio.timeout(CLOSE_S / 3):
                        await end()
        self.kill()

    def kill(self) -> None:
        """Ends its processes; the driver ends with them, or when it is asked to."""
        self.pid = self.pid or pid_with(self._mark)
        if self.pid:
            kill_tree(self.pid)
            self.pid = 0

    async def render(self, job: RenderJob) -> RenderedDocument:
        self.pages += 1
        try:
            async with self._origin("/".join(job.url.split("/", 3)[:3])) as origin:
                tab = origin.idle.pop() if origin.idle else await Tab.open(origin.context, self._limits)
                is_clear = False
                try:
                    rendered = await tab.render(job)
                    is_clear = await tab.clear()
                    return rendered
                finally:
                    if is_clear:
                        origin.idle.append(tab)
                    else:
                        await tab.close()
        except Error as error:
            await asyncio.wait({self.gone}, timeout=GONE_S)  # its calls fail before it is known to be gone
            if self._has_ended():
                raise _BrowserGone from error
            raise RenderError(_first_line(error)) from error

    @asynccontextmanager
    async def _origin(self, name: str) -> AsyncIterator["_Origin"]:
        """What the pages of an origin share: cookies and storage of one are not those of another."""
        if name not in self._origins:
            context = await self._new_context()
            if name in self._origins:  # made meanwhile for another page
                await context.close()
            else:
                self._origins[name] = _Origin(context)
        origin = self._origins[name]
        self._origins.move_to_end(name)
        origin.users += 1
        try:
            yield origin
        finally:
            origin.users -= 1
            for other, unused in list(self._origins.items()):
                if len(self._origins) > MOST_CONTEXTS and not unused.users:
                    del self._origins[other]
                    with contextlib.suppress(Exception):
                        await unused.context.close()

    async def _new_context(self) -> BrowserContext:
        assert self._browser is not None
        context = await self._browser.new_context(
            user_agent=self._agent, service_workers="block", accept_downloads=False
        )
        await context.route("**/*", lambda route: route.abort())  # popups, and whatever belongs to no page
        await context.route_web_socket("**/*", lambda socket: socket.close())
        return context


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0][:200]


class BrowserProcess:
    """What the process does: it renders pages until its input ends, then it ends its browsers and leaves."""

    def __init__(self, pipes: MessagePipes[ToBrowser]) -> None:
        self._pipes = pipes
        self._asked: dict[int, asyncio.Future[Subresource | None]] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._requests = 0

    async def run(self) -> None:
        begin = await self._pipes.receive()
        if not isinstance(begin, Begin):
            return
        browsers = Browsers(begin.program, begin.agent, begin.limits)
        while (message := await self._pipes.receive()) is not None:
            if isinstance(message, Render):
                task = asyncio.create_task(self._render(browsers, message))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
            elif isinstance(message, RequestAnswer) and not (asked := self._asked.pop(message.request)).done():
                asked.set_result(message.found)
        for task in self._tasks:
            task.cancel()
        await browsers.close()

    async def _render(self, browsers: Browsers, wanted: Render) -> None:
        async def fetch(url: str) -> Subresource | None:
            return await self._fetch(wanted.page, url)

        try:
            document = await browsers.render(RenderJob(wanted.url, wanted.document, fetch, wanted.steps))
        except RenderError as error:
            reason, is_missing = (
                str(error).encode("utf-8", "backslashreplace").decode(),
                isinstance(error, BrowserMissing),
            )
            self._pipes.send(NotRendered(wanted.page, reason, browsers.replaced, is_missing))
        else:
            self._pipes.send(Rendered(wanted.page, document, browsers.replaced))

    async def _fetch(self, page: int, url: str) -> Subresource | None:
        self._requests += 1
        asked = self._asked[self._requests] = asyncio.Future[Subresource | None]()
        self._pipes.send(PageRequest(self._requests, page, url))
        return await asked


async def _serve() -> None:
    pipes = await MessagePipes[ToBrowser].open(sys.stdin.buffer, sys.stdout.buffer, ToBrowser)
    await BrowserProcess(pipes).run()


def main() -> None:
    os.nice(NICE)
    with asyncio.Runner(loop_factory=BrowserLoop) as runner:
        runner.run(_serve())
