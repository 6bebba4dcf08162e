"""The handover of buckets from one shard to another when the assignment changes.

While buckets move there are two tables: by the one in force a shard still has what leaves, by the next one it will have
what arrives. In between, nobody asks those hosts: the old owner has stopped, the new one has not started. The next
table is in force only when every transfer has arrived everywhere.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterator
from typing import Any

import msgspec
import zstandard

from lycosa.cluster.assignment import AssignmentTable
from lycosa.crawl import Engine
from lycosa.errors import ClusterError
from lycosa.store import (
    Batch,
    BucketRow,
    State,
    arriving_hosts,
    bucket_hosts,
    bucket_rows,
    buckets_with_rows,
    document_buckets,
    host_buckets,
    write_arriving,
)
from lycosa.web import BUCKET_BYTES

TRANSFER_BYTES = 1 << 20
ZSTD_LEVEL = 3
POLL_S = 0.1
RETRY_S = 0.5

_Contents = tuple[list[bytes], list[BucketRow], list[tuple[bytes, bytes]]]  # buckets that begin here, rows, host rows
_decoder = msgspec.msgpack.Decoder(_Contents)


class BucketTransfer(msgspec.Struct, frozen=True):
    """Rows for the shard that will own their buckets from `epoch` on, about a megabyte at a time.

    In every round all rows are handed over; the first transfer of a round, which may be empty, takes the place of all
    that came in rounds before.
    """

    sender: str
    epoch: int
    packed: bytes
    round: int = 0


SendTransfer = Callable[[str, BucketTransfer], Awaitable[bool]]
WaitForCommit = Callable[[], Awaitable[None]]


class OwnedHosts:
    """The hosts that the shard `me` owns, and their handover. `handed_over` is the epoch for which it is done."""

    def __init__(self, me: str, table: AssignmentTable, next_table: AssignmentTable | None) -> None:
        self._me, self.table, self.next_table = me, table, next_table
        self.handed_over = 0
        self.handover_round = 0
        self._rounds_of_others: dict[str, int] = {}
        self._handover: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        return f"<OwnedHosts {self._me} epoch={self.table.epoch}{' moving' if self.next_table else ''}>"

    def owns(self, host: str) -> bool:
        """Is a host this shard's, now and after what moves has arrived?"""
        is_mine = self.table.owner(host) == self._me
        return is_mine if self.next_table is None else is_mine and self.next_table.owner(host) == self._me

    def owns_document(self, digest: bytes) -> bool:
        """Is a document this shard's, now and after what moves has arrived?"""
        tables = [self.table] if self.next_table is None else [self.table, self.next_table]
        return all(table.owner_of_document(digest) == self._me for table in tables)

    def may_request(self, host: str) -> bool:
        """Hosts that leave are not asked any more: they are put aside until they are dropped."""
        return self.next_table is None or self.owns(host)

    @property
    def is_handing_over(self) -> bool:
        return self._handover is not None

    def report(self) -> dict[str, Any]:
        """The handover's part of an `AgentReport`."""
        epoch = self.next_table.epoch if self.next_table is not None and self.is_handing_over else 0
        numbers = {"epoch": self.table.epoch, "handed_over": self.handed_over, "round": self.handover_round}
        return {**numbers, "handing_over": epoch}

    def tasks(self) -> "list[asyncio.Task[None]]":
        return [self._handover] if self._handover else []

    def start_handover(
        self,
        engine: Engine,
        after: AssignmentTable,
        send: SendTransfer,
        next_commit: WaitForCommit,
        *,
        handover_round: int = 0,
    ) -> None:
        """Begins to hand over what leaves, or begins anew: a shard that was restored from a checkpoint meanwhile, here
        or there, has lost a part of it."""
        if self._handover is not None:
            self._handover.cancel()
        self.next_table, self.handed_over, self.handover_round = after, 0, handover_round
        self._handover = asyncio.get_running_loop().create_task(self._hand_over(engine, after, send, next_commit))

    async def _hand_over(
        self, engine: Engine, after: AssignmentTable, send: SendTransfer, next_commit: WaitForCommit
    ) -> None:
        """Lets what is in flight end, then sends the buckets that leave to their owners."""
        try:
            while any(not self.owns(host) for host in engine.hosts_in_flight()):  # noqa: ASYNC110 -- no event tells
                await asyncio.sleep(POLL_S)
            # The first commit may have begun before the last response was handled; the second one has it.
            for _ in range(2):
                await next_commit()
            state = engine.collection.state
            # Rows can be read beside the crawl now: nothing changes those of hosts that leave any more.
            leaving = self._leaving_buckets(state, after)
            others = [one.name for one in after.members if one.name != self._me] if self.handover_round else []
            for receiver, transfer in _transfers(state, self._me, after.epoch, leaving, others, self.handover_round):
                while not await _try_to_send(send, receiver, transfer):  # noqa: ASYNC110 -- it is not there yet
                    await asyncio.sleep(RETRY_S)
            self.handed_over = after.epoch
        except Exception as error:  # an agent that cannot hand over ends, and says why
            engine.fail(error)

    def _leaving_buckets(self, state: State, after: AssignmentTable) -> list[tuple[bytes, str]]:
        """The buckets with hosts or documents that this shard has and will not own, each with its next owner."""
        found = []
        for bucket in sorted({*host_buckets(state), *document_buckets(state)}):
            before, owner = self.table.owner_of_bucket(bucket), after.owner_of_bucket(bucket)
            if before == self._me and owner != self._me:
                found.append((bucket, owner))
        return found

    def receive(self, engine: Engine, transfer: BucketTransfer) -> bool:
        """Writes rows that will be this shard's, apart from its own; True when they are on disk."""
        if self.next_table is None or transfer.epoch != self.next_table.epoch:
            return False
        state, batch = engine.collection.state, Batch()
        latest = self._rounds_of_others.get(transfer.sender, 0)
        if transfer.round < latest:
            return False
        # The sender may have been restored from an older copy of itself: what it handed over before is then more than
        # it knows of now, and it will do those URLs again.
        if transfer.round > latest:
            for bucket in buckets_with_rows(state):
                if self.table.owner_of_bucket(bucket) == transfer.sender:
                    write_arriving(batch, [bucket], [], [])
            self._rounds_of_others[transfer.sender] = transfer.round
        # They lie apart from the shard's own rows until the table is in force, and a bucket that begins anew replaces
        # what came of it before: a transfer that comes twice, or a round that begins anew, leaves nothing to undo.
        contents: _Contents = _decoder.decode(zstandard.ZstdDecompressor().decompress(transfer.packed))
        write_arriving(batch, *contents)
        state.write(batch)
        return True

    def adopt(self, engine: Engine, table: AssignmentTable) -> bool:
        """The new table is in force: drops what left and raises what came; False: the disk refuses, try again."""
        # Lost and gained in one commit: a crash leaves the shard with the old table or with the new one.
        lost, came = self._lost(engine.collection.state, table), self._came(engine.collection.state, table)
        if not engine.move_hosts(leaving_buckets=lost, arriving_hosts=came):
            return False
        self.table, self.next_table, self._handover, self._rounds_of_others = table, None, None, {}
        return True

    def reconcile(self, engine: Engine) -> None:
        """After a start: hosts went to others, or came, while this shard was not there to hear of the table."""
        if not self.table.owners:  # a scheme with which nothing moves
            return
        lost, came = self._lost(engine.collection.state, self.table), self._came(engine.collection.state, self.table)
        if lost or came:
            engine.move_hosts(leaving_buckets=lost, arriving_hosts=came)

    def _lost(self, state: State, table: AssignmentTable) -> list[bytes]:
        buckets = set(host_buckets(state))
        # After a start in the middle of a move, documents of others are here that will be this shard's own.
        if self.next_table is None or table is not self.table:
            buckets.update(document_buckets(state))
        return sorted(bucket for bucket in buckets if table.owner_of_bucket(bucket) != self._me)

    def _came(self, state: State, table: AssignmentTable) -> list[tuple[bytes, bytes]]:
        return [row for row in arriving_hosts(state) if table.owner_of_bucket(row[0][:BUCKET_BYTES]) == self._me]


def _transfers(
    state: State, me: str, epoch: int, leaving: list[tuple[bytes, str]], others: Collection[str], handover_round: int
) -> Iterator[tuple[str, BucketTransfer]]:
    """(receiver, transfer) for everything that leaves; in rounds each of `others` hears that one begins."""

    def pack(contents: _Contents) -> BucketTransfer:
        packed = zstandard.ZstdCompressor(level=ZSTD_LEVEL).compress(msgspec.msgpack.encode(contents))
        return BucketTransfer(me, epoch, packed, handover_round)

    for receiver in sorted({owner for _, owner in leaving}.union(others)):
        contents: _Contents = ([], [], [])
        size = 0
        if handover_round:
            yield receiver, pack(contents)
        for bucket in (bucket for bucket, owner in leaving if owner == receiver):
            contents[0].append(bucket)
            for row in bucket_rows(state, bucket):
                contents[1].append(row)
                size += len(row[1]) + len(row[2])
                if size >= TRANSFER_BYTES:
                    yield receiver, pack(contents)
                    contents, size = ([], [], []), 0
            contents[2].extend(bucket_hosts(state, bucket))
        if any(contents):
            yield receiver, pack(contents)


async def _try_to_send(send: SendTransfer, receiver: str, transfer: BucketTransfer) -> bool:
    try:
        return await send(receiver, transfer)
    except ClusterError:
        return False
