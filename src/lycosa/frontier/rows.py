"""How URLs, queue entries and hosts are written down, and the two ports through which the frontier reads and writes.

    url     bucket·host·NUL·path                     → state (1 byte), reason (1 byte), depth
    queue   bucket·host·NUL·lane·sequence (8 bytes)  → kind, depth, tries, hops, path
    host    bucket·host                              → HostRow

A URL given out stays in `queue`; only the outcome's commit removes it, so a crash loses nothing. The sequence grows
by one with every URL of a host; in the retry lane it is the time the URL is due (milliseconds) and a counter.
"""

import struct
from collections.abc import Sequence
from enum import IntEnum, StrEnum
from typing import Protocol

import msgspec

from lycosa.records import Family
from lycosa.web.robots import Robots

KEY_END = b"\0"


class Rows(Protocol):
    """What the frontier reads: the committed state."""

    def get(self, family: Family, key: bytes) -> bytes | None: ...

    def get_many(self, family: Family, keys: Sequence[bytes]) -> list[bytes | None]: ...

    def scan(
        self, family: Family, start: bytes = b"", end: bytes | None = None, *, limit: int
    ) -> list[tuple[bytes, bytes]]: ...


class Writes(Protocol):
    """Where the frontier writes: the batch of the next commit."""

    def put(self, family: Family, key: bytes, value: bytes) -> None: ...

    def delete(self, family: Family, key: bytes) -> None: ...


class UrlState(IntEnum):
    """Where a URL is. Values are stored: never renumber. `LEASED` lives in memory only."""

    QUEUED = 1
    DONE = 2
    FAILED = 3
    DROPPED = 4


class Reason(StrEnum):
    """Why a URL was not asked for, or given up: shown by `why`, counted in the summary. Their order is stored."""

    NONE = ""
    ROBOTS = "robots"
    ROBOTS_UNREACHABLE = "robots-unreachable"
    DEPTH = "depth"
    PAGES_PER_HOST = "pages-per-host"
    REDIRECTS = "too-many-redirects"
    HOST_GIVEN_UP = "host-given-up"
    STATUS = "status"
    FAILURE = "failure"
    MEDIA_TYPE = "media-type"


_REASONS = list(Reason)


class Kind(IntEnum):
    """What a queued URL is asked for. Values are stored: never renumber."""

    PAGE = 0
    SITEMAP = 1
    ROBOTS = 2  # never queued: robots.txt is asked for when a host needs it


class Lane(IntEnum):
    """The queues of a host. Values are stored: never renumber."""

    MAIN = 1
    RETRY = 2


_LANES = (Lane.MAIN, Lane.MAIN, Lane.RETRY)  # by number, faster than asking the enumeration


class UrlRow(msgspec.Struct, frozen=True):
    """The `url` row: three bytes, or four where the depth is over 255."""

    state: UrlState
    depth: int = 0
    reason: Reason = Reason.NONE

    def pack(self) -> bytes:
        return bytes((self.state, _REASONS.index(self.reason))) + _small(self.depth)

    @classmethod
    def unpack(cls, row: bytes) -> "UrlRow":
        return cls(UrlState(row[0]), int.from_bytes(row[2:]), _REASONS[row[1]])


class Entry(msgspec.Struct, frozen=True):
    """A queued URL as its host's queue has it."""

    key: bytes
    path: str
    kind: Kind = Kind.PAGE
    depth: int = 0
    tries: int = 0
    hops: int = 0

    def pack(self) -> bytes:
        return struct.pack(">BHBB", self.kind, min(self.depth, 65_535), self.tries, self.hops) + self.path.encode()

    @classmethod
    def unpack(cls, key: bytes, row: bytes) -> "Entry":
        kind, depth, tries, hops = struct.unpack_from(">BHBB", row)
        return cls(key, str(row[5:], "utf-8"), Kind(kind), depth, tries, hops)

    @property
    def sequence(self) -> int:
        return int.from_bytes(self.key[-8:])

    @property
    def lane(self) -> Lane:
        return _LANES[self.key[-9]]


class HostRow(msgspec.Struct, array_like=True, omit_defaults=True):
    """What a collection knows of a host. Times are of the wall clock: they may lengthen a wait, never shorten it."""

    tail: int = 0  # the next sequence
    head: int = 0  # no entry of the main lane lies before it
    queued: int = 0
    pages: int = 0
    requests: int = 0
    bytes: int = 0
    failed: int = 0
    seconds: float = 0.0  # spent waiting for responses
    robots: Robots | None = None
    robots_until: float = 0.0
    robots_tries: int = 0
    tries: int = 0  # failed attempts in a row that concern the whole host
    wait_until: float = 0.0
    wait_reason: str = ""
    gave_up: str = ""
    address: str = ""
    address_until: float = 0.0
    retries: int = 0  # entries in the retry lane


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(HostRow).decode


def pack_host(row: HostRow) -> bytes:
    return _encode(row)


def unpack_host(row: bytes) -> HostRow:
    return _decode(row)


def lane_start(host_key: bytes, lane: Lane) -> bytes:
    return host_key + KEY_END + bytes((lane,))


def queue_key(host_key: bytes, lane: Lane, sequence: int) -> bytes:
    return lane_start(host_key, lane) + sequence.to_bytes(8)


def _small(number: int) -> bytes:
    return number.to_bytes(1 if number < 256 else 2)
