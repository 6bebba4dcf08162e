"""Errands between shards: a robots.txt that redirects to another shard's host is fetched by its owner, politely.

Who wants it asks the owner and hears what came back; a further redirect comes back as it is, and is followed from here.
The owner fetches it among its other requests to that host, in the host's own pace. An errand that is not done within
`ERRAND_S` has failed like a request that failed, and is tried again as such. Nothing of it has to last.
"""

import asyncio
from collections.abc import Callable
from typing import Protocol

import msgspec

from lycosa.cluster.part import Part
from lycosa.engine.engine import Engine
from lycosa.engine.host_rules import ROBOTS_BYTES
from lycosa.errors import ClusterError
from lycosa.records import Failure, Response
from lycosa.web.url import Url, parse

ERRAND_S = 60.0
AGAIN_S = 0.5


class Messengers(Protocol):
    """How an errand gets to its owner."""

    async def robots(self, receiver: str, href: str) -> Response:
        """What the URL gave, fetched by the receiver; ClusterError if it could not be asked."""
        ...


class Errands:
    """The errands of one agent: those it has others do, and those it does for others."""

    def __init__(self, part: Part, messengers: Messengers) -> None:
        self._part, self._messengers = part, messengers
        self._asked: set[asyncio.Task[None]] = set()
        self._doing: dict[str, asyncio.Future[Response]] = {}

    def __repr__(self) -> str:
        return f"<Errands asked={len(self._asked)} doing={len(self._doing)}>"

    def tasks(self) -> "list[asyncio.Task[None]]":
        return list(self._asked)

    def ask(self, engine: Engine, url: Url, then: Callable[[Response], None]) -> None:
        """Has a URL fetched by the owner of its host; `then` hears what came back."""
        task = asyncio.get_running_loop().create_task(self._ask(engine, url, then))
        self._asked.add(task)
        task.add_done_callback(self._asked.discard)

    async def _ask(self, engine: Engine, url: Url, then: Callable[[Response], None]) -> None:
        try:
            response = await self._messengers.robots(self._part.table.owner(url.host), url.href)
        except ClusterError as error:
            response = Response(url.href, failure=Failure.CONNECT, detail=str(error))
        while not engine.hear(lambda: then(response)):  # noqa: ASYNC110 -- the disk refuses, no event tells
            await asyncio.sleep(AGAIN_S)

    async def do(self, engine: Engine, href: str) -> Response:
        """Fetches a URL for another shard."""
        url = parse(href)
        if url is None or not self._part.owns(url.host):
            raise ClusterError(f"{href} is no longer asked for by this shard")
        done = self._doing.get(href)
        if done is None:
            done = self._doing[href] = asyncio.get_running_loop().create_future()
            answer = self._answer(href, done)
            if not engine.hear(lambda: engine.frontier.want_robots(b"", url, 0, engine.now(), answer)):
                del self._doing[href]
                raise ClusterError("the disk of this shard refuses")
        try:
            return await asyncio.wait_for(asyncio.shield(done), ERRAND_S)
        except TimeoutError as error:
            raise ClusterError(f"{href} could not be fetched in time") from error
        finally:
            self._doing.pop(href, None)

    @staticmethod
    def _answer(href: str, done: "asyncio.Future[Response]") -> Callable[[Response], None]:
        def answer(response: Response) -> None:
            if not done.done():
                body = response.body[:ROBOTS_BYTES]
                times = {"started_s": 0.0, "first_byte_s": 0.0, "ended_s": 0.0}  # another machine's clock
                done.set_result(msgspec.structs.replace(response, url=href, body=body, header_block=b"", **times))

        return answer
