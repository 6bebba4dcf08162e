"""The rows of URLs, queue entries and hosts, and the two ports through which the frontier reads and writes them.

    url     bucket·host·NUL·path        → state and origin, reason, depth, position (of a queued URL that is ranked)
    queue   bucket·host·NUL·lane·order  → kind and origin, depth, tries, hops, what failed, path (if not the order)
    host    bucket·host                 → HostRow

A leased URL stays in `queue`; only the commit of its outcome removes it, so a crash loses nothing. The order is what
the policy sorts a lane by: a sequence (8 bytes) that grows with every URL of a host, or the path. In the lanes for what
is due and for retries it is the time the URL is due (milliseconds) and a counter. Fields, values and their order are
what collections on disk have: nothing here is renumbered or moved.
"""

import struct
from collections import Counter
from collections.abc import Sequence
from enum import IntEnum, StrEnum, unique
from functools import lru_cache
from typing import Protocol

import msgspec

from lycosa.records import Family
from lycosa.web import BUCKET_BYTES, Robots

KEY_END = b"\0"


class Rows(Protocol):
    """The committed state, as the frontier reads it."""

    def get(self, family: Family, key: bytes) -> bytes | None: ...

    def get_many(self, family: Family, keys: Sequence[bytes]) -> list[bytes | None]: ...

    def scan(
        self, family: Family, start: bytes = b"", end: bytes | None = None, *, limit: int
    ) -> list[tuple[bytes, bytes]]: ...

    def scan_back(self, family: Family, start: bytes, end: bytes, *, limit: int) -> list[tuple[bytes, bytes]]: ...


class Writes(Protocol):
    """The batch of the next commit, into which the frontier writes."""

    def put(self, family: Family, key: bytes, value: bytes) -> None: ...

    def delete(self, family: Family, key: bytes) -> None: ...


class UrlState(IntEnum):
    """Where a URL is. Values are stored: never renumber. That a URL is leased is known in memory only."""

    QUEUED = 1
    DONE = 2
    FAILED = 3
    DROPPED = 4


class Reason(StrEnum):
    """Why a URL was dropped or failed: shown by `why`, counted in the summary. Their order is stored."""

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
    GUESS = "guess-missed"
    PATTERN = "path-pattern"
    PARAMETER = "parameter-without-effect"
    PIPELINE = "by-pipeline"
    PREFERENCES = "preferences"


_REASONS = list(Reason)


@unique
class RequestKind(IntEnum):
    """What a queued URL is asked for. Values are stored: never renumber."""

    PAGE = 0
    SITEMAP = 1
    ROBOTS = 2  # never queued: robots.txt is asked for when a host needs it
    REVISIT = 3  # a URL that is finished, to be looked at again; it stays finished while it waits
    TABLE = 4  # never queued: a table of links is asked for beside its document
    REQUISITE = 5  # what a page needs to be shown; `hops` has how far it is from the page (`requisite_hops`)
    EXTERNAL = 6  # out of scope: it is checked, and neither kept nor followed
    LOGIN = 7  # never queued: a step of a login, asked for when a session needs it


@unique
class Origin(IntEnum):
    """How a URL became known. Values are stored: never renumber."""

    LINK = 0
    SEED = 1  # named by the user, before the crawl or while it runs
    REDIRECT = 2
    SITEMAP = 3
    ANCESTOR = 4  # guessed: a folder above a known URL
    SERIES = 5  # guessed: a neighbour in a numbered series
    LOST = 6  # it was done, but its record in the archive is lost
    IMPORT = 7  # it came, with its answer, from an archive

    @property
    def is_guess(self) -> bool:
        return Origin.ANCESTOR <= self <= Origin.SERIES


# Lanes 1 (the best) to MOST_BANDS are the bands of the policy. In the others URLs wait for a time: in the due lane
# those that go first when it has come, in the lane of retries those that have failed and go behind the others, so that
# a host that answers slowly or not at all for some URLs gives the rest of its pages meanwhile.
MOST_BANDS = 16
DUE_LANE = 0x80
RETRY_LANE = 0x81
# The order in a timed lane is the time in milliseconds and a counter, so that two URLs due at once have two keys.
DUE_COUNTER_BITS = 20


class QueuePosition(msgspec.Struct, frozen=True):
    """Where a queued URL is: its band, its order there, its credit (the evidence that the policy has gathered for it),
    and the number of links on its page where that is known."""

    band: int
    order: bytes
    credit: float = 0.0
    links: int | None = None

    def pack(self) -> bytes:
        start = _POSITION.pack(self.band | (self.links is not None) << 7, self.credit)
        return start + (b"" if self.links is None else min(self.links, 65_535).to_bytes(2)) + self.order

    @classmethod
    def unpack(cls, row: bytes) -> "QueuePosition":
        (band, credit), rest, links = _POSITION.unpack_from(row), row[_POSITION.size :], None
        if band & 128:
            band, links, rest = band & 127, int.from_bytes(rest[:2]), rest[2:]
        return cls(band, rest, credit, links)


class UrlRow(msgspec.Struct, frozen=True):
    """The `url` row: three bytes, two more where the depth is over 254, and the position where a policy ranks."""

    state: UrlState
    depth: int = 0
    reason: Reason = Reason.NONE
    origin: Origin = Origin.LINK
    position: QueuePosition | None = None

    def pack(self) -> bytes:
        start = _pack_url(self.state, self.depth, self.reason, self.origin)
        return start if self.position is None else start + self.position.pack()

    @classmethod
    def unpack(cls, row: bytes) -> "UrlRow":
        depth, rest = row[2], row[3:]
        if depth == 255:
            depth, rest = int.from_bytes(row[3:5]), row[5:]
        position = QueuePosition.unpack(rest) if rest else None
        return cls(UrlState(row[0] & 15), depth, _REASONS[row[1]], Origin(row[0] >> 4), position)


# There is one such row for every known URL, and the seen test reads them all the time: packed by hand into as few bytes
# as it takes. They differ in their depth, mostly.
@lru_cache(1_024)
def _pack_url(state: UrlState, depth: int, reason: Reason, origin: Origin) -> bytes:
    start = bytes((state | origin << 4, _REASONS.index(reason), min(depth, 255)))
    return start if depth < 255 else start + min(depth, 65_535).to_bytes(2)


def state_of(row: bytes) -> int:
    """Return the state in a packed `url` row, where nothing else of it is wanted."""
    return row[0] & 15


_KINDS, _ORIGINS = (
    list(RequestKind),
    list(Origin),
)  # by value: a call of an enumeration takes three times as long
_POSITION = struct.Struct(">Bd")
_ENTRY = struct.Struct(">BHBB")
_HAS_FAILED = 0x80  # beside the hops: the name of what failed and a NUL stand before the path
_OTHER_TRY = b"+"  # behind that name, one for each of the other tries; no name has it


class QueueEntry(msgspec.Struct, frozen=True):
    """A queued URL as its host's queue has it. `has_head`: the head of the page was read, to rank it by. `is_late`: it
    is in the due lane for the sake of its host's other URLs, and may come before its time if there are none. `failed`:
    what went wrong the last time, of one that is tried again. `tries` are those that ended like that: by our own doing,
    or not; `other_tries` are the others."""

    key: bytes
    path: str
    kind: RequestKind = RequestKind.PAGE
    depth: int = 0
    tries: int = 0
    hops: int = 0
    origin: Origin = Origin.LINK
    has_head: bool = False
    is_late: bool = False
    failed: str = ""
    other_tries: int = 0

    def pack(self) -> bytes:
        flags = self.kind | self.has_head << 3 | self.origin << 4 | self.is_late << 7
        path = self.path.encode()
        if self.failed:
            row = _ENTRY.pack(flags, min(self.depth, 65_535), self.tries, self.hops | _HAS_FAILED)
            return row + self.failed.encode() + _OTHER_TRY * self.other_tries + KEY_END + path
        row = _ENTRY.pack(flags, min(self.depth, 65_535), self.tries, self.hops)
        # Where a lane is sorted by path the key has it already.
        return row if self.key.endswith(path) and self.order == path else row + path

    @classmethod
    def unpack(cls, key: bytes, row: bytes) -> "QueueEntry":
        flags, depth, tries, hops = _ENTRY.unpack_from(row)
        path, failed = row[_ENTRY.size :] or order_of(key), b""
        if hops & _HAS_FAILED:
            hops ^= _HAS_FAILED
            failed, _, path = path.partition(KEY_END)
        others = len(failed) - len(failed.rstrip(_OTHER_TRY))
        kind, origin = _KINDS[flags & 7], _ORIGINS[flags >> 4 & 7]
        has_head, is_late, name = bool(flags & 8), bool(flags & 128), failed[: len(failed) - others].decode()
        return cls(key, path.decode(), kind, depth, tries, hops, origin, has_head, is_late, name, others)

    def of_other_kind(self) -> "QueueEntry":
        """Return the entry as the other tries have it."""
        return msgspec.structs.replace(self, tries=self.other_tries, other_tries=self.tries)

    @property
    def order(self) -> bytes:
        return order_of(self.key)

    @property
    def due_unix(self) -> float:
        """When an entry of a timed lane is due, by the wall clock."""
        return (int.from_bytes(self.order) >> DUE_COUNTER_BITS) / 1000

    @property
    def lane(self) -> int:
        return self.key[self.key.index(KEY_END, BUCKET_BYTES) + 1]


class HostRow(msgspec.Struct, array_like=True, omit_defaults=True):
    """What a collection knows of a host; changed by `frontier.hosts` and `frontier.queues` only. Times are of the wall
    clock: they may lengthen a wait, never shorten it."""

    # Rows of earlier versions are shorter: new fields go to the end, and have a default.
    tail: int = 0  # the next sequence
    lanes: dict[int, tuple[bytes, int]] = {}  # band → (order before which nothing lies, entries)
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
    waits: int = 0  # entries in the due lane, and how many of them are late
    late: int = 0
    links: int = 0  # found on its pages
    folders_tried: int = 0  # guesses of folders, and how many were there
    folders_found: int = 0
    revisits: int = 0  # entries, among those queued, of URLs that are finished
    misled: int = 0  # documents that did not have, in the end, what was taken from them early
    tables: int = 0  # what is known of its tables of links
    volatile: int = 0  # and of its tables of volatile information
    hints: int = 0  # pages that its sitemaps said had changed, and how many had
    hints_true: int = 0
    entered: int | None = None  # the least depth of its URLs: where it was entered
    retries: int = 0  # entries in the lane of retries
    failing: int = 0  # different URLs in a row, each asked for the first time, that it broke off or did not answer
    first_asked: float = 0.0  # when its first request ended, and its last
    last_asked: float = 0.0
    requisites: int = 0  # entries, among those queued, of what pages need to be shown
    hsts_until: float = 0.0  # until then it wants to be asked over https alone (Strict-Transport-Security)

    def take_out(self, entry: QueueEntry) -> None:
        """An entry is taken out of the queue of a host that nobody crawls now. A host that was given up keeps the
        count of its failures elsewhere (`UrlCounts`)."""
        self.queued -= 1
        self.revisits -= entry.kind is RequestKind.REVISIT
        self.requisites -= entry.kind is RequestKind.REQUISITE
        if entry.lane == DUE_LANE:
            self.waits -= 1
            self.late -= entry.is_late
        elif entry.lane == RETRY_LANE:
            self.retries -= 1
        elif entry.lane in self.lanes:
            order, entries = self.lanes[entry.lane]
            self.lanes = {**self.lanes, entry.lane: (order, max(0, entries - 1))}


pack_host = msgspec.msgpack.Encoder().encode
unpack_host = msgspec.msgpack.Decoder(HostRow).decode


# The hops of a REQUISITE: redirects, and above them how far it is from its page: 1, or 2 if a requisite names it.
_EMBED_SHIFT = 5


def pack_requisite_hops(embeds: int, redirects: int) -> int:
    return embeds << _EMBED_SHIFT | min(redirects, (1 << _EMBED_SHIFT) - 1)


def requisite_hops(hops: int) -> tuple[int, int]:
    """Return how far a requisite is from its page, and how many redirects led to it."""
    return hops >> _EMBED_SHIFT, hops & (1 << _EMBED_SHIFT) - 1


def lane_start(host_key: bytes, lane: int) -> bytes:
    return host_key + KEY_END + bytes((lane,))


def retry_range(host_key: bytes) -> tuple[bytes, bytes]:
    """Return the start and the end of a host's lane of retries."""
    return lane_start(host_key, RETRY_LANE), lane_start(host_key, RETRY_LANE + 1)


def order_of(queue_key: bytes) -> bytes:
    return queue_key[queue_key.index(KEY_END, BUCKET_BYTES) + 2 :]


class UrlCounts(msgspec.Struct):
    """How many URLs a collection knows, and what became of them."""

    known: int = 0  # whatever became of them
    queued: int = 0  # they wait for their first answer
    revisiting: int = 0  # queued to be looked at again; they are not among `queued`
    hosts: int = 0
    failed: Counter[str] = msgspec.field(default_factory=Counter)  # of hosts given up, by the host's reason
    dropped: Counter[str] = msgspec.field(default_factory=Counter)
    requisites: int = 0  # among `queued`: what pages need to be shown

    def move_host(self, row: HostRow, sign: int) -> None:
        """A host comes from another shard (+1), or goes there (-1): what waits is counted where it is, what is done
        where it was done, so that each known URL counts once over all shards."""
        waiting = sign * (row.queued - row.revisits)
        self.hosts += sign
        self.known += waiting
        if row.gave_up:
            self.failed[row.gave_up] += waiting
        else:
            self.queued += waiting
            self.requisites += sign * row.requisites
            self.revisiting += sign * row.revisits
