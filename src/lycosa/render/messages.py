"""What the crawl and the process of its browsers say to each other, and the pipes on which they do.

The crawl sends `Begin`, then `Render` for each page and `RequestAnswer` for each request of a page; it hears
`PageRequest` for such a request, and `Rendered` or `NotRendered` for each page, once. Every message is a frame: its
length and MessagePack. The end of a pipe means that the other side is gone. Spoken by
`render.browser_link` and `render.browser`.
"""

import asyncio
from typing import IO, Any, Generic, NamedTuple, TypeVar

import msgspec

LENGTH_BYTES = 4
BUFFERED_BYTES = 4 << 20  # that have come and are not read yet: then the other side waits

T = TypeVar("T")


class RenderError(Exception):
    """A page could not be rendered."""


class BrowserMissing(RenderError):
    """No browser starts, however often it is tried."""


class Subresource(NamedTuple):
    """What the browser is answered: the body has its content coding undone."""

    status: int
    headers: dict[str, str]
    body: bytes


class RenderStep(NamedTuple):
    """What is done in a page: `wait` for a selector or milliseconds, `click` a selector, `scroll` so many times."""

    verb: str
    selector: str = ""
    number: int = 0


class RenderLimits(NamedTuple):
    """Seconds that a page has: of its own time, for its requests, for what a step waits for, and until it has said what
    it shows or is closed."""

    page_s: float = 30.0
    waits_s: float = 300.0  # at a delay of a second its requests take long
    step_s: float = 10.0
    read_s: float = 10.0


class RenderedDocument(NamedTuple):
    """What a browser made of a page, in UTF-8. `led_to` are URLs that its scripts wanted to go to instead."""

    html: bytes
    led_to: tuple[str, ...] = ()


class Begin(msgspec.Struct, frozen=True, tag=True):
    """The program of the browser, what it calls itself, and what holds for all pages."""

    program: str
    agent: str
    limits: RenderLimits


class Render(msgspec.Struct, frozen=True, tag=True):
    """A page to be rendered, as it was fetched."""

    page: int
    url: str
    document: Subresource
    steps: tuple[RenderStep, ...]


class RequestAnswer(msgspec.Struct, frozen=True, tag=True):
    """The answer to a request of a page; None: it may not have it, or nothing came."""

    request: int
    found: Subresource | None


class PageRequest(msgspec.Struct, frozen=True, tag=True):
    """A request of a page."""

    request: int
    page: int
    url: str


class Rendered(msgspec.Struct, frozen=True, tag=True):
    """A page was rendered; `replaced` browsers were replaced up to now."""

    page: int
    document: RenderedDocument
    replaced: int


class NotRendered(msgspec.Struct, frozen=True, tag=True):
    """A page cannot be rendered; `is_browser_missing`: nor can any other."""

    page: int
    reason: str
    replaced: int
    is_browser_missing: bool = False


ToBrowser = Begin | Render | RequestAnswer
FromBrowser = PageRequest | Rendered | NotRendered


class MessagePipes(Generic[T]):
    """Two pipes: messages of type T come from the first. Sending never waits."""

    def __init__(
        self, reader: asyncio.StreamReader, reads: asyncio.BaseTransport, writes: asyncio.WriteTransport, of: Any
    ) -> None:
        self._reader, self._reads, self._writes = reader, reads, writes
        self._encoder = msgspec.msgpack.Encoder()
        self._decoder: msgspec.msgpack.Decoder[T] = msgspec.msgpack.Decoder(of)

    @classmethod
    async def open(cls, reads: IO[bytes], writes: IO[bytes], of: Any) -> "MessagePipes[T]":
        """The pipes on the running event loop, which closes both."""
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(BUFFERED_BYTES)
        coming, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), reads)
        going, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, writes)
        return cls(reader, coming, going, of)

    def send(self, message: msgspec.Struct) -> None:
        """Sends a message; where nobody reads any more it is lost."""
        if not self._writes.is_closing():
            data = self._encoder.encode(message)
            self._writes.write(len(data).to_bytes(LENGTH_BYTES, "little") + data)

    async def receive(self) -> T | None:
        """The next message; None: the other side has ended."""
        try:
            length = int.from_bytes(await self._reader.readexactly(LENGTH_BYTES), "little")
            return self._decoder.decode(await self._reader.readexactly(length))
        except (asyncio.IncompleteReadError, OSError):
            return None

    def close_sending(self) -> None:
        """Tells the other side that no more will come; what was sent still goes."""
        self._writes.close()

    def close(self) -> None:
        """Closes both."""
        if not self._writes.is_closing():
            self._writes.abort()
        self._reads.close()
