"""Responses that are watched while they arrive: what is shown, when, and what is never shown."""

import asyncio
from collections.abc import Callable
from itertools import pairwise

from rig import Rig, with_rig
from rough_server import Line, page

from lycosa.fetch.downloader import SchemeDownloader, Watchable
from lycosa.fetch.transfer import LOOK_FIRST_BYTES
from lycosa.records import Request, Response

HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 20000\r\nContent-Type: text/html\r\n"
HINTS = b"HTTP/1.1 103 Early Hints\r\nLink: </next>; rel=next\r\nLink: </a.css>; rel=preload\r\n\r\n"


def watched(rig: Rig) -> list[Response]:
    shown: list[Response] = []

    def watcher(request: Request, response: Response) -> None:
        assert request.url == response.url
        shown.append(response)

    downloader = SchemeDownloader({"http": rig.downloader})
    assert isinstance(downloader, Watchable)
    downloader.watch(watcher)
    return shown


async def until(is_so: Callable[[], bool]) -> None:
    """What a server waits for in the middle of an answer; without it the answer would never be whole."""
    while not is_so():  # noqa: ASYNC110 -- nobody tells
        await asyncio.sleep(0.01)


def test_slow_body_is_shown_in_growing_beginnings() -> None:
    async def work(rig: Rig) -> None:
        async def act(line: Line) -> None:
            await line.say(HEAD + b"\r\n")
            for letter in b"abcdefghij":
                await line.say(bytes((letter,)) * 2000)
                if letter in b"bdf":
                    looks.append(len(looks) + 1)
                    await until(lambda: len(shown) >= len(looks))

        looks: list[int] = []
        rig.server.acts["/slow"] = act
        shown = watched(rig)
        response = await rig.get("/slow")

        assert len(response.body) == 20_000
        sizes = [len(seen.body) for seen in shown]
        assert len(sizes) >= 3
        assert sizes[0] >= LOOK_FIRST_BYTES
        assert all(later >= 1.5 * before for before, later in pairwise(sizes))
        assert all(response.body.startswith(seen.body) for seen in shown)
        assert shown[0].headers == response.headers

    with_rig(work)


def test_body_that_comes_at_once_is_not_shown() -> None:
    async def work(rig: Rig) -> None:
        rig.server.acts["/quick"] = page(b"x" * 50_000, fields="Link: </next>; rel=next\r\n")
        shown = watched(rig)
        most: list[int] = []
        while len(most) < 5 and min(most, default=20) > 2:  # a look may fall into the moment in which one arrives
            shown.clear()
            for _ in range(20):
                await rig.get("/quick")
            most.append(len(shown))

        assert min(most) <= 2

    with_rig(work)


def test_early_hints_and_link_headers_are_shown_before_any_body() -> None:
    async def work(rig: Rig) -> None:
        async def act(line: Line) -> None:
            await line.say(HINTS)
            await until(lambda: len(shown) == 1)
            await line.say(HEAD + b"Link: </prev>; rel=prev\r\n\r\n")
            await until(lambda: len(shown) == 2)
            await line.say(b"x" * 20_000)

        rig.server.acts["/hints"] = act
        shown = watched(rig)
        response = await rig.get("/hints")

        assert [(seen.status, seen.hints, seen.headers.get("link"), seen.body) for seen in shown] == [
            (0, "</next>; rel=next, </a.css>; rel=preload", None, b""),
            (200, "</next>; rel=next, </a.css>; rel=preload", "</prev>; rel=prev", b""),
        ]
        assert (response.status, response.hints) == (200, shown[0].hints)

    with_rig(work)


def test_watcher_that_fails_harms_no_transfer() -> None:
    async def work(rig: Rig) -> None:
        async def act(line: Line) -> None:
            await line.say(HEAD + b"\r\n" + b"x" * 10_000)
            await until(lambda: bool(told))
            await line.say(b"x" * 10_000)

        def watcher(request: Request, response: Response) -> None:
            raise ValueError("no")

        told: list[object] = []
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: told.append(context["message"]))
        rig.server.acts["/slow"] = act
        rig.downloader.watch(watcher)
        assert len((await rig.get("/slow")).body) == 20_000

    with_rig(work)
