"""The URL exchange of one shard: rows go out after each commit, and come in with one, acknowledged after it.

`UrlInbox` takes every row once and in order, and writes how far each sender has come in the same commit as its URLs
(rows: `in:` sender). `UrlExchange` sends one message at a time to each receiver; a receiver that cannot be reached, or
does not take it, gets the same message again later.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from lycosa.cluster.outbox import (
    START_POSITION,
    ExchangeItem,
    Message,
    Position,
    Reply,
    ReplyCode,
    UrlOutbox,
    pack_position,
    unpack_items,
    unpack_position,
)
from lycosa.errors import ClusterError
from lycosa.records import Family
from lycosa.store import Batch, State

RETRY_S = 0.5  # after a call that failed
# A commit takes less; the sender's call waits longer, so that it hears an answer.
COMMIT_TIMEOUT_S = 5.0
_PREFIX, _END = b"in:", b"in;"

SendMessage = Callable[[str, Message], Awaitable[Reply]]
AdmitItems = Callable[[Sequence[ExchangeItem]], bool]


class UrlInbox:
    """How far every sender's rows have come here: taken, committed, and covered by what would be restored.

    A sender hears two positions: it sends nothing that is committed, and forgets what is covered. Without checkpoints
    elsewhere every commit is covered; after `wait_for_checkpoints` only what `cover` says.
    """

    def __init__(self, state: State) -> None:
        self._is_restorable = False
        rows = state.walk(Family.META, _PREFIX, _END)
        self._taken = {key[len(_PREFIX) :].decode(): unpack_position(row) for key, row in rows}
        self._writing: dict[str, Position] = {}
        self._committed = dict(self._taken)
        self._covered = dict(self._taken)

    def __repr__(self) -> str:
        return f"<UrlInbox of {len(self._taken)} senders>"

    def new_items(self, message: Message) -> list[ExchangeItem] | None:
        """The items in those rows of a message that were not taken before; None if rows are missing in between."""
        taken = self._taken.get(message.sender, START_POSITION)
        if message.after > taken:
            return None
        items: list[ExchangeItem] = []
        for position, row in message.rows:
            if position > taken:
                items += unpack_items(row)
        return items

    def record(self, message: Message) -> None:
        """The items of a message are in the open batch."""
        if message.rows:
            last = message.rows[-1][0]
            if last > self._taken.get(message.sender, START_POSITION):
                self._taken[message.sender] = last
                self._writing[message.sender] = last

    def write(self, batch: Batch) -> None:
        # In one commit with the items: written before them they would be lost in a crash, after them taken twice.
        for sender, position in self._writing.items():
            batch.put(Family.META, _PREFIX + sender.encode(), pack_position(position))

    def on_committed(self) -> None:
        self._committed |= self._writing
        self._writing = {}
        if not self._is_restorable:
            self._covered = self._committed

    def wait_for_checkpoints(self) -> None:
        """From now on covered is what `cover` says, and no longer every commit."""
        self._is_restorable, self._covered = True, {}

    def positions(self) -> dict[str, Position]:
        """How far every sender's rows are on disk: what a checkpoint of now covers."""
        return dict(self._committed)

    def cover(self, positions: Mapping[str, Position]) -> None:
        """A checkpoint with these positions is what this shard would be restored from."""
        self._covered = dict(positions)

    def reply(self, sender: str, code: ReplyCode) -> Reply:
        return Reply(code, self._committed.get(sender, START_POSITION), self._covered.get(sender, START_POSITION))


class UrlExchange:
    """The exchange of one start of a shard; `send` hands a message to another one."""

    def __init__(self, outbox: UrlOutbox, inbox: UrlInbox, send: SendMessage) -> None:
        self.outbox, self.inbox, self._send = outbox, inbox, send
        self._received = 0
        # This shard has left: checkpoints of the others must have what it sent.
        self.is_leaving = False
        self.request_checkpoint: Callable[[], None] = lambda: None  # a shard that leaves waits for one of this shard
        self._sending: dict[str, asyncio.Task[None]] = {}
        self._commit: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def __repr__(self) -> str:
        return f"<UrlExchange {self.outbox!r} {self.inbox!r}>"

    @property
    def activity(self) -> int:
        """A number that changes with everything that goes out or comes in."""
        return self._received + self.outbox.messages_sent

    @property
    def unsent(self) -> int:
        """Rows that others do not have; once this shard has left, rows that no checkpoint of theirs has."""
        return self.outbox.unsent + (self.outbox.uncovered if self.is_leaving else 0)

    def sent(self) -> dict[str, int]:
        """What was sent since this start."""
        out = self.outbox
        return {"urls": out.urls_sent, "bytes": out.bytes_sent, "messages": out.messages_sent}

    def report(self) -> dict[str, Any]:
        """The exchange's part of an `AgentReport`."""
        return {f"sent_{what}": count for what, count in self.sent().items()}

    def tasks(self) -> "list[asyncio.Task[None]]":
        return list(self._sending.values())

    def write(self, batch: Batch) -> None:
        """Puts what has to last into a commit."""
        self.outbox.write(batch)
        self.inbox.write(batch)

    def on_committed(self) -> None:
        """The commit is on disk: senders are answered, and rows leave."""
        self.outbox.on_committed()
        self.inbox.on_committed()
        commit, self._commit = self._commit, asyncio.get_running_loop().create_future()
        commit.set_result(None)
        self.send_pending()

    async def next_commit(self) -> None:
        # Many wait for one commit: whoever is cancelled must not cancel it for the others.
        await asyncio.shield(self._commit)

    async def receive(self, message: Message, epoch: int, admit: AdmitItems) -> Reply:
        """Takes a message from another shard, gives its items to `admit`, and answers when they are on disk."""
        # By another table the host may be a third shard's: the sender routes it anew when it has the table.
        if message.epoch != epoch:
            return self.inbox.reply(message.sender, ReplyCode.EPOCH)
        items = self.inbox.new_items(message)
        if items is None:
            return self.inbox.reply(message.sender, ReplyCode.GAP)
        if not admit(items):
            return self.inbox.reply(message.sender, ReplyCode.BUSY)
        # Only now: a message that the disk refused comes again and must not look like a repeat.
        self.inbox.record(message)
        self._received += len(message.rows)
        try:
            # The sender forgets what is acknowledged, so nothing is before it is on disk.
            await asyncio.wait_for(self.next_commit(), COMMIT_TIMEOUT_S)
        except TimeoutError:
            return self.inbox.reply(message.sender, ReplyCode.BUSY)
        reply = self.inbox.reply(message.sender, ReplyCode.TAKEN)
        if message.is_leaving and reply.covered < reply.committed:
            self.request_checkpoint()
        return reply

    def admit_own(self, admit: AdmitItems) -> None:
        """Admits what was gathered for others and belongs to this shard itself by now."""
        own = self.outbox.take_own()
        if own:
            admit(own)

    def send_pending(self) -> None:
        """Sends what waits to be sent, to every receiver that is not being sent to already."""
        for receiver in self.outbox.receivers():
            if receiver not in self._sending:
                self._sending[receiver] = asyncio.get_running_loop().create_task(self._send_all(receiver))
        for receiver, message in self.outbox.leaving_messages() if self.is_leaving else ():
            if receiver not in self._sending:
                task = asyncio.get_running_loop().create_task(self._send_leaving(receiver, message))
                self._sending[receiver] = task

    async def _send_all(self, receiver: str) -> None:
        """Sends to one receiver until there is nothing left or it does not take it."""
        try:
            while (message := self.outbox.next_message(receiver)) is not None:
                try:
                    reply = await self._send(receiver, message)
                except ClusterError:
                    await asyncio.sleep(RETRY_S)
                    return
                self.outbox.on_reply(receiver, message, reply)
                if reply.code not in (ReplyCode.TAKEN, ReplyCode.GAP):
                    await asyncio.sleep(RETRY_S)
                    return
        finally:
            del self._sending[receiver]

    async def _send_leaving(self, receiver: str, message: Message) -> None:
        """Asks whether a checkpoint of the receiver has everything by now."""
        try:
            with contextlib.suppress(ClusterError):
                self.outbox.on_reply(receiver, message, await self._send(receiver, message))
            await asyncio.sleep(RETRY_S)
        finally:
            del self._sending[receiver]
