"""The outbox of a shard: URLs and claims of documents for other shards, kept until they are safe there.

An item is gathered, written as part of a numbered row for its owner in the next commit, sent in a `Message`, and
forgotten when what would be *restored* of the receiver covers the row: until then it can be sent again. A `Reply` says
how far the receiver has come. Only positions are in memory; a row is read when it is sent. When the table changes, rows
for a member that is gone are routed anew. Filled by the frontier through `send`, emptied by `on_reply`. Rows: `out:`
receiver NUL position.

A position is the sender's incarnation and a number that grows; rows are sent and taken in that order. The incarnation
comes from the coordinator and is never given twice, so a sender that was restored from an older copy of itself never
uses a position for other URLs than before.

Why rows for a receiver, and not for a bucket: a bucket's rows could simply follow it to a new owner, but with 65,536
buckets a row would hold one URL. When a bucket moves nothing is renumbered; what reaches the old owner afterwards is
forwarded like any link that it finds itself.
"""

import struct
from collections import deque
from collections.abc import Sequence
from enum import StrEnum

import msgspec
import zstandard

from lycosa.cluster.assignment import AssignmentTable
from lycosa.crawl import CopyClaim
from lycosa.frontier import ForwardedUrl, RecentUrls
from lycosa.records import Family
from lycosa.store import Batch, State
from lycosa.web import split_url

ZSTD_LEVEL = 3
ROW_ITEMS = 1_000
MESSAGE_ROWS, MESSAGE_BYTES = 64, 256 << 10  # the receiver takes a message in one go, between two pages
# In each of two generations, about 30 MB: most links repeat those of the page before.
RECENTLY_SENT_URLS = 100_000
_PREFIX, _END = b"out:", b"out;"

Position = tuple[int, int]
START_POSITION: Position = (0, 0)
ExchangeItem = ForwardedUrl | CopyClaim

_POSITION = struct.Struct(">QQ")


def pack_position(position: Position) -> bytes:
    """Sixteen bytes that sort as positions do."""
    return _POSITION.pack(*position)


def unpack_position(packed: bytes) -> Position:
    incarnation, number = _POSITION.unpack(packed)
    return incarnation, number


class Message(msgspec.Struct, frozen=True):
    """Rows for one receiver, in order.

    `after` is the position of the row before the first one: a receiver that has not got that far must not take them.
    `epoch` is that of the table by which they were sent. `is_leaving`: the sender leaves for good once a checkpoint of
    the receiver has what it sent.
    """

    sender: str
    epoch: int
    after: Position
    rows: tuple[tuple[Position, bytes], ...]
    is_leaving: bool = False


class ReplyCode(StrEnum):
    """A receiver's answer to a message."""

    TAKEN = "taken"
    GAP = "gap"  # rows are missing: go on from `committed`
    EPOCH = "epoch"  # one of the two has an old table
    # The disk refuses, or the shard is not open: send the same again, later.
    BUSY = "busy"


class Reply(msgspec.Struct, frozen=True):
    """How far the receiver has come with this sender's rows.

    `committed` is on its disk: nothing up to there has to be sent. `covered` is in what would be restored of it: the
    sender may forget what is up to there.
    """

    code: ReplyCode
    committed: Position
    covered: Position


def busy_reply() -> Reply:
    """The answer of a shard that is not open, or whose hosts are moving."""
    return Reply(ReplyCode.BUSY, START_POSITION, START_POSITION)


class _ItemColumns(msgspec.Struct, array_like=True, omit_defaults=True):
    """The items of a row, column by column: like values lie together, and zstd finds them. The order of the fields is
    the format of rows on disk."""

    hrefs: list[str]
    depths: list[int]
    kinds: bytes
    hops: bytes
    origins: bytes
    credits: list[float]
    sources: list[str]
    vouches: bytes
    claims: list[CopyClaim] = []


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(_ItemColumns)


def pack_items(items: Sequence[ExchangeItem]) -> bytes:
    """The URLs as bytes, sorted, and the claims as they come."""
    urls = sorted((item for item in items if isinstance(item, ForwardedUrl)), key=lambda url: url.href)
    columns = _ItemColumns(
        [url.href for url in urls],
        [url.depth for url in urls],
        bytes(url.kind for url in urls),
        bytes(min(url.hops, 255) for url in urls),
        bytes(url.origin for url in urls),
        [url.credit for url in urls] if any(url.credit for url in urls) else [],
        [url.source for url in urls],
        bytes(url.is_evidence_only for url in urls),
        [item for item in items if isinstance(item, CopyClaim)],
    )
    return zstandard.ZstdCompressor(level=ZSTD_LEVEL).compress(_encoder.encode(columns))


def unpack_items(packed: bytes) -> list[ExchangeItem]:
    """The items that `pack_items` was given."""
    row = _decoder.decode(zstandard.ZstdDecompressor().decompress(packed))
    credits, vouches = row.credits or [0.0] * len(row.hrefs), map(bool, row.vouches)
    columns = row.hrefs, row.depths, row.kinds, row.hops, row.origins, credits, row.sources, vouches
    return [*(ForwardedUrl(*fields) for fields in zip(*columns, strict=True)), *row.claims]


class _ReceiverQueue(msgspec.Struct):
    """The rows for one receiver. `rows` are not covered yet, in order; the first `sent` of them are committed there."""

    rows: deque[Position] = msgspec.field(default_factory=deque)
    sent: int = 0
    floor: Position = START_POSITION  # rows up to here are covered


class UrlOutbox:
    """The outbox of the shard `me`. `table` says who owns what; `incarnation` is this start's."""

    def __init__(self, state: State, me: str, incarnation: int, table: AssignmentTable) -> None:
        self._state, self._me, self._incarnation, self.table = state, me, incarnation, table
        # Numbers begin anew at every start: with an incarnation that nobody had they cannot repeat a position.
        self._last_number = 0
        self._queues: dict[str, _ReceiverQueue] = {}
        self._gathered: list[ExchangeItem] = []
        self._writing: list[tuple[str, Position]] = []
        self._deleted: list[bytes] = []  # keys to delete with the next commit
        self._recent = RecentUrls(RECENTLY_SENT_URLS)
        self.urls_sent = self.bytes_sent = self.messages_sent = 0
        for key, _ in state.walk(Family.META, _PREFIX, _END):
            receiver, _, position = key[len(_PREFIX) :].partition(b"\0")
            self._queue(receiver.decode()).rows.append(unpack_position(position))
        self.route(table)

    def __repr__(self) -> str:
        return f"<UrlOutbox {self._me} uncovered={self.uncovered} unsent={self.unsent}>"

    @property
    def uncovered(self) -> int:
        """Rows that a receiver could lose with its disk."""
        return sum(len(queue.rows) for queue in self._queues.values())

    @property
    def unsent(self) -> int:
        """Rows, and items not yet in one, that no receiver has committed."""
        rows = sum(len(queue.rows) - queue.sent for queue in self._queues.values())
        return rows + len(self._gathered) + len(self._writing)

    # filling

    def owns(self, host: str) -> bool:
        return self.table.owner(host) == self._me

    def _owner(self, item: ExchangeItem) -> str:
        """A question about a document goes to the document's owner, all else to that of the page."""
        if isinstance(item, CopyClaim) and not item.original:
            return self.table.owner_of_document(item.digest)
        return self.table.owner(split_url(item.href).host)

    def send(self, urls: Sequence[ForwardedUrl]) -> list[ForwardedUrl]:
        """Takes URLs of others; returns those that were not sent a moment ago. What brings credit is always sent."""
        is_new = self._recent.is_new
        fresh = [url for url in urls if (not url.is_evidence_only and is_new(url.href)) or url.credit]
        self._gathered += fresh
        self.urls_sent += len(fresh)
        return [url for url in fresh if not url.is_evidence_only]

    def send_claims(self, claims: Sequence[CopyClaim]) -> None:
        """Takes claims of documents that others own, and answers to theirs."""
        self._gathered += claims

    def write(self, batch: Batch) -> None:
        """Puts what was gathered into a commit, and takes out what is covered."""
        # In the commit of the page that has the link: a page that is done has its links known here or in the outbox,
        # and after a crash the page is done again with all of them.
        deleted, self._deleted = self._deleted, []
        for key in deleted:
            batch.delete(Family.META, key)
        gathered, self._gathered = self._gathered, []
        by_owner: dict[str, list[ExchangeItem]] = {}
        for item in gathered:
            by_owner.setdefault(self._owner(item), []).append(item)
        self._gathered += by_owner.pop(self._me, [])  # until they are taken back
        for receiver, items in by_owner.items():
            for start in range(0, len(items), ROW_ITEMS):
                self._last_number += 1
                position = self._incarnation, self._last_number
                batch.put(Family.META, _key(receiver, position), pack_items(items[start : start + ROW_ITEMS]))
                self._writing.append((receiver, position))

    def on_committed(self) -> None:
        """The commit is on disk: its rows may be sent."""
        for receiver, position in self._writing:
            self._queue(receiver).rows.append(position)
        self._writing = []

    def _queue(self, receiver: str) -> _ReceiverQueue:
        queue = self._queues.get(receiver)
        if queue is None:
            queue = self._queues[receiver] = _ReceiverQueue()
        return queue

    # sending

    def receivers(self) -> list[str]:
        """The members for whom there is something to send."""
        return [name for name, queue in self._queues.items() if len(queue.rows) > queue.sent and name != self._me]

    def next_message(self, receiver: str) -> Message | None:
        """The next message for a receiver, the same again until it was answered."""
        queue = self._queues.get(receiver)
        if queue is None or len(queue.rows) <= queue.sent:
            return None
        positions = [queue.rows[at] for at in range(queue.sent, min(queue.sent + MESSAGE_ROWS, len(queue.rows)))]
        rows: list[tuple[Position, bytes]] = []
        size = 0
        for position, row in zip(positions, self._rows(receiver, positions), strict=True):
            if rows and size + len(row) > MESSAGE_BYTES:
                break
            rows.append((position, row))
            size += len(row)
        # The receiver compares it with what it has: a row that was lost on the way is a gap, and never skipped.
        after = queue.rows[queue.sent - 1] if queue.sent else queue.floor
        return Message(self._me, self.table.epoch, after, tuple(rows))

    def leaving_messages(self) -> list[tuple[str, Message]]:
        """Messages without rows to all whose checkpoints do not have everything yet: how far have they come?"""
        queues = [(name, queue) for name, queue in self._queues.items() if queue.rows and len(queue.rows) == queue.sent]
        return [(name, Message(self._me, self.table.epoch, queue.rows[-1], (), True)) for name, queue in queues]

    def _rows(self, receiver: str, positions: Sequence[Position]) -> list[bytes]:
        rows = self._state.get_many(Family.META, [_key(receiver, position) for position in positions])
        return [row or b"" for row in rows]

    def on_reply(self, receiver: str, message: Message, reply: Reply) -> None:
        """The receiver has said how far it has come; less far than before, if it was restored from a checkpoint."""
        queue = self._queue(receiver)
        if reply.code is ReplyCode.TAKEN:
            self.messages_sent += 1
            self.bytes_sent += sum(len(row) for _, row in message.rows)
        if reply.code in (ReplyCode.TAKEN, ReplyCode.GAP):
            queue.sent = sum(position <= reply.committed for position in queue.rows)
            # It lost what it had said was safe: with the old floor it would see a gap for ever, so all rows that are
            # left are sent, and it goes on from there.
            if reply.committed < queue.floor:
                queue.floor = START_POSITION
        while queue.rows and queue.rows[0] <= reply.covered:
            queue.floor = queue.rows.popleft()
            self._deleted.append(_key(receiver, queue.floor))
            queue.sent = max(0, queue.sent - 1)

    def on_receiver_restarted(self, receiver: str) -> None:
        """The receiver has begun anew, perhaps from an older copy of itself: all rows for it are sent again."""
        if receiver in self._queues:
            self._queues[receiver].sent = 0

    # tables

    def route(self, table: AssignmentTable) -> None:
        """There is a new table: rows for members that are gone go elsewhere."""
        self.table = table
        # Only rows of members that are gone: a bucket that moved between two that are there is forwarded by its old
        # owner.
        names = {member.name for member in table.members} - {self._me}
        for receiver in [name for name in self._queues if name not in names]:
            queue = self._queues.pop(receiver)
            for row in self._rows(receiver, list(queue.rows)):
                self._gathered += unpack_items(row) if row else []
            self._deleted += [_key(receiver, position) for position in queue.rows]

    def take_own(self) -> list[ExchangeItem]:
        """Takes out what was gathered and belongs to this shard itself, by the table of now."""
        own = [item for item in self._gathered if self._owner(item) == self._me]
        self._gathered = [item for item in self._gathered if self._owner(item) != self._me]
        return own


def _key(receiver: str, position: Position) -> bytes:
    return _PREFIX + receiver.encode() + b"\0" + pack_position(position)
