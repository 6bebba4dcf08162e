"""The process that drives browsers for a crawl; started by `BrowserLink`.

The driver of the browsers is Python, too, and busy: in the crawl's process it would take turns with the event loop. It
yields to the crawl where there are not enough processors, and so do the browsers, which it starts. When its input ends,
the crawl is over or gone: it ends its browsers and leaves.
"""

import asyncio
import os
import sys
from typing import Any

from lycosa.render.browser import Browsers
from lycosa.render.messages import (
    Begin,
    BrowserMissing,
    MessagePipes,
    NotRendered,
    PageRequest,
    Render,
    Rendered,
    RenderError,
    RequestAnswer,
    Subresource,
    ToBrowser,
)
from lycosa.render.processes import BrowserLoop
from lycosa.render.tab import RenderJob

NICE = 10


class BrowserProcess:
    """The process: renders pages until its input ends."""

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
