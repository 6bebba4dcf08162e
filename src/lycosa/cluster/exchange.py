"""The URL exchange of one shard: rows go out after each commit, and come in with one, acknowledged after it.

`UrlInbox` takes every row once and in order, and remembers how far each sender has come in the same commit as its URLs
(rows: `in:` sender). `UrlExchange` sends one message at a time to each receiver; a receiver that cannot be reached, or
does not take it, gets the same message again later.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from lycosa.cluster.messages import (
    START_POSITION,
    ExchangeItem,
    Message,
    Position,
    Reply,
    ReplyCode,
    pack_position,
    unpack_items,
    unpack_position,
)
from lycosa.cluster.outbox import UrlOutbox
from lycosa.errors import ClusterError
from lycosa.records import Family
from lycosa.store import Batch, State

_PREFIX, _END = b"in:", b"in;"


class UrlInbox:
    """How far every sender has come. `is_restorable`: covered is what `cover` says, and no longer every commit."""

    def __init__(self, state: State, *, is_restorable: bool = False) -> None:
        self._is_restorable = is_restorable
        rows = state.walk(Family.META, _PREFIX, _END)
        self._taken = {key[len(_PREFIX) :].decode(): unpack_position(row) for key, row in rows}
        self._writing: dict[str, Position] = {}
        self._committed = dict(self._taken)
        self._covered: dict[str, Position] = {} if is_restorable else dict(self._taken)
        self.rows_taken = 0

    def __repr__(self) -> str:
        return f"<Arrivals from {len(self._taken)} rows={self.rows_taken}>"

    def open(self, message: Message) -> list[ExchangeItem] | None:
        """What is in those rows of a message that were not taken before; None if rows are missing in between."""
        taken = self._taken.get(message.sender, START_POSITION)
        if message.after > taken:
            return None
        parcels: list[ExchangeItem] = []
        for position, row in message.rows:
            if position > taken:
                parcels += unpack_items(row)
        return parcels

    def note(self, message: Message) -> None:
        """The URLs of a message are in the open batch."""
        if message.rows:
            last = message.rows[-1][0]
            if last > self._taken.get(message.sender, START_POSITION):
                self._taken[message.sender] = last
                self._writing[message.sender] = last
                self.rows_taken += 1

    def write(self, batch: Batch) -> None:
        for sender, position in self._writing.items():
            batch.put(Family.META, _PREFIX + sender.encode(), pack_position(position))

    def committed(self) -> None:
        self._committed |= self._writing
        self._writing = {}
        if not self._is_restorable:
            self._covered = self._committed

    def wait_for_copies(self) -> None:
        """From now on covered is what `cover` says, and no longer every commit."""
        self._is_restorable, self._covered = True, {}

    def positions(self) -> dict[str, Position]:
        """How far every sender's rows are on disk: what a checkpoint of now covers."""
        return dict(self._committed)

    def cover(self, positions: Mapping[str, Position]) -> None:
        """A checkpoint with these positions is where it would be restored from."""
        self._covered = dict(positions)

    def reply(self, sender: str, word: ReplyCode) -> Reply:
        return Reply(word, self._committed.get(sender, START_POSITION), self._covered.get(sender, START_POSITION))


RETRY_S = 0.5  # after a call that failed
COMMIT_TIMEOUT_S = 5.0  # a commit takes less, and a call more

SendMessage = Callable[[str, Message], Awaitable[Reply]]
AdmitItems = Callable[[Sequence[ExchangeItem]], bool]


class UrlExchange:
    """What leaves and what comes in, of one start of a shard; `tell` hands a message over."""

    def __init__(self, outbox: UrlOutbox, arrivals: UrlInbox, tell: SendMessage) -> None:
        self.outbox, self.arrivals, self._tell_other = outbox, arrivals, tell
        self.received = 0
        self.is_parting = False  # this shard has left: copies of the others must have what it sent
        self.want_copy: Callable[[], None] = lambda: None  # somebody who leaves waits for a copy of this shard
        self._telling: dict[str, asyncio.Task[None]] = {}
        self._commit: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def __repr__(self) -> str:
        return f"<Exchange {self.outbox!r} {self.arrivals!r}>"

    @property
    def activity(self) -> int:
        """A number that moves with everything that goes out or comes in."""
        return self.received + self.outbox.messages_sent

    @property
    def unsent(self) -> int:
        """Rows that others do not have; once this shard has left, those that no copy of theirs has."""
        return self.outbox.waiting + (self.outbox.kept if self.is_parting else 0)

    def sent(self) -> dict[str, int]:
        """What was sent since this start."""
        out = self.outbox
        return {"urls": out.urls_sent, "bytes": out.bytes_sent, "messages": out.messages_sent}

    def report(self) -> dict[str, Any]:
        """What the coordinator is told (`Report`)."""
        return {f"sent_{what}": count for what, count in self.sent().items()}

    def tasks(self) -> "list[asyncio.Task[None]]":
        return list(self._telling.values())

    def write(self, batch: Batch) -> None:
        """Puts what has to last into a commit."""
        self.outbox.write(batch)
        self.arrivals.write(batch)

    def committed(self) -> None:
        """The commit is on disk."""
        self.outbox.committed()
        self.arrivals.committed()
        commit, self._commit = self._commit, asyncio.get_running_loop().create_future()
        commit.set_result(None)
        self.tell_all()

    async def next_commit(self) -> None:
        await asyncio.shield(self._commit)

    async def take(self, message: Message, epoch: int, receive: AdmitItems) -> Reply:
        """URLs from another shard, given to `receive`; answered when they are on disk."""
        if message.epoch != epoch:
            return self.arrivals.reply(message.sender, ReplyCode.EPOCH)
        parcels = self.arrivals.open(message)
        if parcels is None:
            return self.arrivals.reply(message.sender, ReplyCode.GAP)
        if not receive(parcels):
            return self.arrivals.reply(message.sender, ReplyCode.BUSY)
        self.arrivals.note(message)
        self.received += len(message.rows)
        try:
            await asyncio.wait_for(self.next_commit(), COMMIT_TIMEOUT_S)
        except TimeoutError:
            return self.arrivals.reply(message.sender, ReplyCode.BUSY)
        reply = self.arrivals.reply(message.sender, ReplyCode.TAKEN)
        if message.is_parting and reply.covered < reply.committed:
            self.want_copy()
        return reply

    def take_back(self, receive: AdmitItems) -> None:
        """What was kept for others and is this shard's own by now."""
        own = self.outbox.take_back()
        if own:
            receive(own)

    def tell_all(self) -> None:
        """Sends what waits to be sent, to everyone who is not being told already."""
        for receiver in self.outbox.receivers():
            if receiver not in self._telling:
                self._telling[receiver] = asyncio.get_running_loop().create_task(self._tell(receiver))
        for receiver, message in self.outbox.parting() if self.is_parting else ():
            if receiver not in self._telling:
                self._telling[receiver] = asyncio.get_running_loop().create_task(self._part(receiver, message))

    async def _part(self, receiver: str, message: Message) -> None:
        """Asks whether a copy of the receiver has everything by now."""
        try:
            with contextlib.suppress(ClusterError):
                self.outbox.answered(receiver, message, await self._tell_other(receiver, message))
            await asyncio.sleep(RETRY_S)
        finally:
            del self._telling[receiver]

    async def _tell(self, receiver: str) -> None:
        """Sends to one receiver until there is nothing left or it does not take them."""
        try:
            while (message := self.outbox.next(receiver)) is not None:
                try:
                    reply = await self._tell_other(receiver, message)
                except ClusterError:
                    await asyncio.sleep(RETRY_S)
                    return
                self.outbox.answered(receiver, message, reply)
                if reply.word not in (ReplyCode.TAKEN, ReplyCode.GAP):
                    await asyncio.sleep(RETRY_S)
                    return
        finally:
            del self._telling[receiver]


def busy_reply() -> Reply:
    """What a shard says that is not open, or whose hosts are moving."""
    return Reply(ReplyCode.BUSY, START_POSITION, START_POSITION)
