"""The exchange of one shard with the others: URLs go out after each commit, and come in with one, answered after it.

A message at a time to each receiver. Whoever cannot be reached, or does not take them, gets the same again later.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from lycosa.cluster.arrivals import Arrivals
from lycosa.cluster.messages import START, Message, Reply, Word
from lycosa.cluster.outbox import Outbox
from lycosa.cluster.packing import Parcel
from lycosa.errors import ClusterError
from lycosa.store import Batch

AGAIN_S = 0.5  # after a call that failed
COMMITS_S = 5.0  # a commit takes less, and a call more

Tell = Callable[[str, Message], Awaitable[Reply]]
Receive = Callable[[Sequence[Parcel]], bool]


class Exchange:
    """What leaves and what comes in, of one start of a shard; `tell` hands a message over."""

    def __init__(self, outbox: Outbox, arrivals: Arrivals, tell: Tell) -> None:
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

    async def take(self, message: Message, epoch: int, receive: Receive) -> Reply:
        """URLs from another shard, given to `receive`; answered when they are on disk."""
        if message.epoch != epoch:
            return self.arrivals.reply(message.sender, Word.EPOCH)
        parcels = self.arrivals.open(message)
        if parcels is None:
            return self.arrivals.reply(message.sender, Word.GAP)
        if not receive(parcels):
            return self.arrivals.reply(message.sender, Word.BUSY)
        self.arrivals.note(message)
        self.received += len(message.rows)
        try:
            await asyncio.wait_for(self.next_commit(), COMMITS_S)
        except TimeoutError:
            return self.arrivals.reply(message.sender, Word.BUSY)
        reply = self.arrivals.reply(message.sender, Word.TAKEN)
        if message.is_parting and reply.covered < reply.committed:
            self.want_copy()
        return reply

    def take_back(self, receive: Receive) -> None:
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
            await asyncio.sleep(AGAIN_S)
        finally:
            del self._telling[receiver]

    async def _tell(self, receiver: str) -> None:
        """Sends to one receiver until there is nothing left or it does not take them."""
        try:
            while (message := self.outbox.next(receiver)) is not None:
                try:
                    reply = await self._tell_other(receiver, message)
                except ClusterError:
                    await asyncio.sleep(AGAIN_S)
                    return
                self.outbox.answered(receiver, message, reply)
                if reply.word not in (Word.TAKEN, Word.GAP):
                    await asyncio.sleep(AGAIN_S)
                    return
        finally:
            del self._telling[receiver]


def busy() -> Reply:
    """What a shard says that is not open, or whose hosts are moving."""
    return Reply(Word.BUSY, START, START)
