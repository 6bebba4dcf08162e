"""What leaves a shard: URLs and documents of others, in the commit of their page, kept until they are safe there.

A URL is gathered, written as part of a numbered row for its owner in the next commit, sent, and forgotten when what
would be *restored* of the receiver covers the row: until then it can be sent again. In memory are positions, not URLs;
a row is read when it is sent. When the table changes, rows for a member that is gone are routed anew.
Filled by the frontier through `send`, emptied by `covered`. Rows: `out:` receiver NUL position.
"""

from collections import deque
from collections.abc import Sequence

from lycosa.cluster.assignment import AssignmentTable
from lycosa.cluster.messages import (
    START_POSITION,
    ExchangeItem,
    Message,
    Position,
    Reply,
    ReplyCode,
    pack_items,
    pack_position,
    unpack_items,
    unpack_position,
)
from lycosa.crawl.copies import CopyClaim
from lycosa.frontier import ForwardedUrl, RecentUrls
from lycosa.records import Family
from lycosa.store import Batch, State
from lycosa.web import split_url

ROW_URLS = 1_000  # in one row
MESSAGE_ROWS, MESSAGE_BYTES = 64, 256 << 10  # in one message: it is taken in one go, between two pages
RECENTLY_SENT_URLS = 100_000  # sent a moment ago, in each of two generations: about 30 MB
_PREFIX, _END = b"out:", b"out;"


class _ReceiverQueue:
    """The rows for one receiver. `rows` are kept, in order; the first `sent` of them are committed there."""

    __slots__ = ("floor", "rows", "sent")

    def __init__(self) -> None:
        self.rows: deque[Position] = deque()
        self.sent = 0
        self.floor = START_POSITION  # rows up to here were kept and are covered


class UrlOutbox:
    """The outbox of the shard `me`. `table` says who owns what; `incarnation` is this start's."""

    def __init__(self, state: State, me: str, incarnation: int, table: AssignmentTable) -> None:
        self._state, self.me, self._incarnation, self.table = state, me, incarnation, table
        self._number = 0
        self._lanes: dict[str, _ReceiverQueue] = {}
        self._gathered: list[ExchangeItem] = []
        self._writing: list[tuple[str, Position]] = []
        self._gone: list[bytes] = []  # keys to be deleted with the next commit
        self._recent = RecentUrls(RECENTLY_SENT_URLS)
        self.urls_sent = self.bytes_sent = self.messages_sent = 0
        for key, _ in state.walk(Family.META, _PREFIX, _END):
            receiver, _, position = key[len(_PREFIX) :].partition(b"\0")
            self._lane(receiver.decode()).rows.append(unpack_position(position))
        self.route(table)

    def __repr__(self) -> str:
        return f"<Outbox {self.me} kept={self.kept} waiting={self.waiting}>"

    @property
    def kept(self) -> int:
        """Rows that are not covered yet."""
        return sum(len(lane.rows) for lane in self._lanes.values())

    @property
    def waiting(self) -> int:
        """Rows, and URLs not yet in one, that no receiver has committed."""
        rows = sum(len(lane.rows) - lane.sent for lane in self._lanes.values())
        return rows + len(self._gathered) + len(self._writing)

    # filling

    def owns(self, host: str) -> bool:
        return self.table.owner(host) == self.me

    def _owner(self, parcel: ExchangeItem) -> str:
        """A question about a document goes to the document's owner, all else to that of the page."""
        if isinstance(parcel, CopyClaim) and not parcel.original:
            return self.table.owner_of_document(parcel.digest)
        return self.table.owner(split_url(parcel.href).host)

    def send(self, crossings: Sequence[ForwardedUrl]) -> list[ForwardedUrl]:
        """Takes URLs of others; returns those that were not sent a moment ago. What brings credit is always sent."""
        is_new = self._recent.is_new
        fresh = [one for one in crossings if (not one.is_vouch and is_new(one.href)) or one.credit]
        self._gathered += fresh
        self.urls_sent += len(fresh)
        return [one for one in fresh if not one.is_vouch]

    def send_claims(self, claims: Sequence[CopyClaim]) -> None:
        """Takes claims of documents that others own, and answers to theirs."""
        self._gathered += claims

    def write(self, batch: Batch) -> None:
        """Puts what has gathered into a commit, and takes out what is covered."""
        gone, self._gone = self._gone, []
        for key in gone:
            batch.delete(Family.META, key)
        gathered, self._gathered = self._gathered, []
        by_owner: dict[str, list[ExchangeItem]] = {}
        for parcel in gathered:
            by_owner.setdefault(self._owner(parcel), []).append(parcel)
        self._gathered += by_owner.pop(self.me, [])  # until they are taken back
        for receiver, parcels in by_owner.items():
            for start in range(0, len(parcels), ROW_URLS):
                self._number += 1
                position = self._incarnation, self._number
                batch.put(Family.META, _key(receiver, position), pack_items(parcels[start : start + ROW_URLS]))
                self._writing.append((receiver, position))

    def committed(self) -> None:
        """The commit is on disk: its rows may be sent."""
        for receiver, position in self._writing:
            self._lane(receiver).rows.append(position)
        self._writing = []

    def _lane(self, receiver: str) -> _ReceiverQueue:
        lane = self._lanes.get(receiver)
        if lane is None:
            lane = self._lanes[receiver] = _ReceiverQueue()
        return lane

    # sending

    def receivers(self) -> list[str]:
        """Those for whom there is something to send."""
        return [name for name, lane in self._lanes.items() if len(lane.rows) > lane.sent and name != self.me]

    def next(self, receiver: str) -> Message | None:
        """The next message for a receiver, the same again until it was answered."""
        lane = self._lanes.get(receiver)
        if lane is None or len(lane.rows) <= lane.sent:
            return None
        positions = [lane.rows[at] for at in range(lane.sent, min(lane.sent + MESSAGE_ROWS, len(lane.rows)))]
        rows: list[tuple[Position, bytes]] = []
        size = 0
        for position, row in zip(positions, self._rows(receiver, positions), strict=True):
            if rows and size + len(row) > MESSAGE_BYTES:
                break
            rows.append((position, row))
            size += len(row)
        after = lane.rows[lane.sent - 1] if lane.sent else lane.floor
        return Message(self.me, self.table.epoch, after, tuple(rows))

    def parting(self) -> list[tuple[str, Message]]:
        """Messages without rows to all whose copies do not have everything yet: how far have they come?"""
        lanes = [(name, lane) for name, lane in self._lanes.items() if lane.rows and len(lane.rows) == lane.sent]
        return [(name, Message(self.me, self.table.epoch, lane.rows[-1], (), True)) for name, lane in lanes]

    def _rows(self, receiver: str, positions: Sequence[Position]) -> list[bytes]:
        rows = self._state.get_many(Family.META, [_key(receiver, position) for position in positions])
        return [row or b"" for row in rows]

    def answered(self, receiver: str, message: Message, reply: Reply) -> None:
        """The receiver has said how far it has come; it may be less than before, if it was restored from a copy."""
        lane = self._lane(receiver)
        if reply.word is ReplyCode.TAKEN:
            self.messages_sent += 1
            self.bytes_sent += sum(len(row) for _, row in message.rows)
        if reply.word in (ReplyCode.TAKEN, ReplyCode.GAP):
            lane.sent = sum(position <= reply.committed for position in lane.rows)
            if (
                reply.committed < lane.floor
            ):  # it lost what it had told was safe: all that is left is sent, from here on
                lane.floor = START_POSITION
        while lane.rows and lane.rows[0] <= reply.covered:
            lane.floor = lane.rows.popleft()
            self._gone.append(_key(receiver, lane.floor))
            lane.sent = max(0, lane.sent - 1)

    def restarted(self, receiver: str) -> None:
        """The receiver has begun anew, perhaps from an older copy of itself: all that is kept for it is sent again."""
        if receiver in self._lanes:
            self._lanes[receiver].sent = 0

    # tables

    def route(self, table: AssignmentTable) -> None:
        """There is a new table: what is kept for members that are gone goes elsewhere."""
        self.table = table
        names = {member.name for member in table.members} - {self.me}
        for receiver in [name for name in self._lanes if name not in names]:
            lane = self._lanes.pop(receiver)
            for row in self._rows(receiver, list(lane.rows)):
                self._gathered += unpack_items(row) if row else []
            self._gone += [_key(receiver, position) for position in lane.rows]

    def take_back(self) -> list[ExchangeItem]:
        """What has gathered and belongs to this shard itself, by the table of now."""
        own = [one for one in self._gathered if self._owner(one) == self.me]
        self._gathered = [one for one in self._gathered if self._owner(one) != self.me]
        return own


def _key(receiver: str, position: Position) -> bytes:
    return _PREFIX + receiver.encode() + b"\0" + pack_position(position)
