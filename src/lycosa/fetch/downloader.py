"""Getting one response: the `Downloader` port with its limits, a downloader for each scheme of URLs, and header fields.

Contract of a downloader: `start` returns at once and never raises for what the world or a URL is like; `done` is called
exactly once for each `start`, later, from the event loop, and may call `start` itself. Every outcome is a `Response`.
Called by the crawl loop only, from one event loop.

The functions on header fields, of requests and of responses, are pure. Field values are Latin-1 on the wire, both ways;
what goes out never contains a control character, so nothing from outside can start a line of its own. Called by the
crawl for requests, and by `fetch.transfer`.
"""

import asyncio
import re
from collections.abc import Callable, Iterable, Mapping
from time import monotonic
from typing import Protocol, runtime_checkable

import msgspec

from lycosa.errors import SettingsError
from lycosa.records import Failure, Request, Response
from lycosa.version import __version__

Fields = tuple[tuple[str, str], ...]
DoneCallback = Callable[[Response], None]
Watcher = Callable[[Request, Response], None]
AcceptsResponse = Callable[[int, dict[str, str]], bool]

OWN_NAME = "lycosa"
ACCEPT_PAGES = "text/html,application/xhtml+xml,application/xml;q=0.9,text/plain;q=0.8,*/*;q=0.1"
# What `fetch.decode` undoes. No deflate: servers disagree on what it means.
ACCEPT_ENCODING = "gzip, br, zstd"

# libcurl takes a tab for the space and 2000 for 200; a server that writes these does not speak HTTP.
_STATUS_LINE = re.compile(rb"HTTP/[0-9](?:\.[0-9])? ([1-9][0-9]{2})(?=[ \r\n]|\Z)")
_MAX_AGE = re.compile(r'(?:^|;)\s*max-age\s*=\s*"?([0-9]+)', re.I)


def user_agent(product: str, *, contact: str = "") -> str:
    """The User-Agent field: the product that crawls, by its own name with its version, and where its operators can be
    reached. Whoever needs the field calls this."""
    product = f"{product}/{__version__}" if product == OWN_NAME else product
    value = f"{product} (+{contact})" if contact else product
    if not is_field_value(value):
        raise SettingsError(f"user agent {value!r}: use plain characters on one line")
    return value


def request_fields(agent: str) -> Fields:
    """The fields that every request carries. They are made once a crawl: equal tuples are cheap to send again."""
    return (("User-Agent", agent), ("Accept", ACCEPT_PAGES), ("Accept-Encoding", ACCEPT_ENCODING))


def is_field_value(value: str) -> bool:
    """Whether `value` can be sent: Latin-1, no control characters but tabs, no space around it."""
    if not value.isascii() and any(character > "\xff" for character in value):
        return False
    plain = value.replace("\t", " ")
    return value == value.strip() and not any(character < " " or character == "\x7f" for character in plain)


def parse_status(block: bytes) -> int:
    """The status of a header block; 0 when its first line is no status line of HTTP."""
    found = _STATUS_LINE.match(block)
    return int(found[1]) if found else 0


def parse_fields(block: bytes) -> dict[str, str]:
    """The fields of a header block by lower-case name; repeated ones joined by ", ", folded lines unfolded."""
    fields: dict[str, str] = {}
    name = ""
    for line in block.decode("latin-1").split("\n")[1:]:
        if line[:1] in (" ", "\t"):
            if name and line.strip():
                fields[name] = f"{fields[name]} {line.strip()}"
            continue
        name, colon, value = line.partition(":")
        if not colon:
            name = ""
            continue
        name = name.strip().lower()
        value = value.strip()
        fields[name] = f"{fields[name]}, {value}" if name in fields else value
    return fields


def response_media_type(fields: Mapping[str, str]) -> str:
    """The media type of a response, lower-case and without parameters; "" when it names none."""
    return fields.get("content-type", "").partition(";")[0].partition(",")[0].strip().lower()


def hsts_age(response: Response) -> float | None:
    """For how many seconds a host wants to be asked over https alone (RFC 6797); None where it does not say so, or not
    over https."""
    said = response.headers.get("strict-transport-security", "") if response.url.startswith("https:") else ""
    found = _MAX_AGE.search(said)
    return float(found[1][:12]) if found else None


def curl_lines(fields: Iterable[tuple[str, str]]) -> list[bytes]:
    """The fields as libcurl takes them. Raises ValueError for one that cannot be sent."""
    lines = []
    names = set()
    for name, value in fields:
        if not is_field_value(value) or not _is_field_name(name):
            raise ValueError(f"header field {name!r} cannot be sent")
        # libcurl drops "Name:" and sends "Name;" as an empty field
        lines.append(f"{name}: {value}".encode("latin-1") if value else f"{name};".encode("latin-1"))
        names.add(name.lower())
    if "accept" not in names:
        lines.append(b"Accept:")  # libcurl would add one of its own
    return lines


def _is_field_name(name: str) -> bool:
    return (
        name.isascii()
        and bool(name)
        and all(character.isalnum() or character in "!#$%&'*+-.^_`|~" for character in name)
    )


class TransferLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of one transfer, and of all of them together.

    There are four clocks, since none alone is a limit: until connected, from there to the first byte, between any two
    bytes, and for the whole. `in_flight_bytes` is shared by all bodies larger than `small_bytes` that are on their way
    or not read yet, `unread_bytes` by those that have come and are not read; beyond either, transfers of such bodies
    pause. Beyond `eager_bytes` of them they come little by little.
    """

    connect_s: float = 10.0
    first_byte_s: float = 20.0
    idle_s: float = 20.0
    total_s: float = 120.0
    body_bytes: int = 10_000_000
    header_bytes: int = 256 * 1024
    in_flight_bytes: int = 256_000_000
    unread_bytes: int = 16_000_000
    eager_bytes: int = 4_000_000
    small_bytes: int = 160_000
    bandwidth_bytes_s: float | None = None


class DownloaderStats(msgspec.Struct, frozen=True):
    """Counts of what is under way now (the first three; of bodies the large ones), and of all since the start."""

    active: int
    paused: int
    in_flight_bytes: int
    started: int
    ended: int
    failed: int
    received_bytes: int
    connections_opened: int


class Downloader(Protocol):
    """The port through which a crawl sends requests; the contract is in the module's docstring."""

    def start(self, request: Request, done: DoneCallback) -> None: ...

    def cancel_all(self) -> None:
        """Ends every transfer now; each `done` hears CANCELLED before this returns."""

    async def close(self) -> None: ...

    def stats(self) -> DownloaderStats: ...


@runtime_checkable
class Watchable(Protocol):
    """A downloader that can show what it has of a response while the rest is on its way."""

    def watch(self, watcher: Watcher) -> None:
        """From now on `watcher` hears of slow responses: from the event loop, a few times a second at most, only of
        those with news since, never after their `done`. What it is shown is the beginning of what `done` will hear."""


class SchemeDownloader:
    """A downloader made of others, one for each scheme of URLs. One may serve several schemes."""

    def __init__(self, downloaders: Mapping[str, Downloader]) -> None:
        self._downloaders = dict(downloaders)
        self._each = list({id(part): part for part in downloaders.values()}.values())

    def __repr__(self) -> str:
        return f"SchemeDownloader({self._downloaders})"

    def start(self, request: Request, done: DoneCallback) -> None:
        downloader = self._downloaders.get(request.url.partition(":")[0].lower())
        if downloader is not None:
            downloader.start(request, done)
            return
        asyncio.get_running_loop().call_soon(
            done, refused_response(request, Failure.PROTOCOL, "no downloader for this scheme")
        )

    def watch(self, watcher: Watcher) -> None:
        for downloader in self._each:
            if isinstance(downloader, Watchable):
                downloader.watch(watcher)

    def set_fence(self, fence: Callable[[], bool]) -> None:
        """Sets the fence of those parts that can have one."""
        for downloader in self._each:
            if hasattr(downloader, "set_fence"):
                downloader.set_fence(fence)

    def cancel_all(self) -> None:
        for downloader in self._each:
            downloader.cancel_all()

    async def close(self) -> None:
        for downloader in self._each:
            await downloader.close()

    def stats(self) -> DownloaderStats:
        """The sums over the parts."""
        fields = DownloaderStats.__struct_fields__
        each = [downloader.stats() for downloader in self._each]
        return DownloaderStats(*(sum(getattr(stats, field) for stats in each) for field in fields))


def refused_response(request: Request, failure: Failure, detail: str) -> Response:
    """The response to a request that was never sent."""
    now_s = monotonic()
    return Response(request.url, started_s=now_s, ended_s=now_s, failure=failure, detail=detail)
