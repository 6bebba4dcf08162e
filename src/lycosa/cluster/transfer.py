"""The handover of buckets from one shard to another when the assignment changes.

While buckets move there are two tables: by the one in force a shard still has what leaves, by the one to come it will
have what arrives. In between, nobody asks those hosts: the old owner has stopped, the new one has not started. The new
table is in force only when every transfer has arrived everywhere.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterator
from typing import Any

import msgspec
import zstandard

from lycosa.cluster.assignment import AssignmentTable
from lycosa.crawl.loop import Engine
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

_HostRows = list[tuple[bytes, bytes]]
_Contents = tuple[list[bytes], list[BucketRow], _HostRows]
_decoder = msgspec.msgpack.Decoder(_Contents)


class BucketTransfer(msgspec.Struct, frozen=True):
    """Rows for the shard that will own their buckets from `epoch` on. In every round all of them are handed over; the
    first cargo of a round, which may have no rows, takes the place of all that came in rounds before."""

    sender: str
    epoch: int
    packed: bytes
    round: int = 0


def unpack_transfer(cargo: BucketTransfer) -> _Contents:
    """Buckets that begin here, rows, and host rows."""
    load: _Contents = _decoder.decode(zstandard.ZstdDecompressor().decompress(cargo.packed))
    return load


def leaving_buckets(state: State, me: str, now: AssignmentTable, after: AssignmentTable) -> list[tuple[bytes, str]]:
    """The buckets with hosts or documents that this shard has and will not own, each with its owner to be."""
    found = []
    for bucket in sorted({*host_buckets(state), *document_buckets(state)}):
        before, owner = now.owner_of_bucket(bucket), after.owner_of_bucket(bucket)
        if before == me and owner != me:
            found.append((bucket, owner))
    return found


def bucket_transfers(
    state: State,
    me: str,
    epoch: int,
    going: list[tuple[bytes, str]],
    others: Collection[str] = (),
    round: int = 0,
) -> Iterator[tuple[str, BucketTransfer]]:
    """(receiver, cargo), everything of the buckets that go; in rounds each of `others` hears that one begins."""
    for receiver in sorted({owner for _, owner in going}.union(others)):
        load: _Contents = ([], [], [])
        size = 0
        if round:
            yield receiver, _pack_transfer(me, epoch, load, round)
        for bucket in (bucket for bucket, owner in going if owner == receiver):
            load[0].append(bucket)
            for row in bucket_rows(state, bucket):
                load[1].append(row)
                size += len(row[1]) + len(row[2])
                if size >= TRANSFER_BYTES:
                    yield receiver, _pack_transfer(me, epoch, load, round)
                    load, size = ([], [], []), 0
            load[2].extend(bucket_hosts(state, bucket))
        if any(load):
            yield receiver, _pack_transfer(me, epoch, load, round)


def _pack_transfer(me: str, epoch: int, load: _Contents, round: int) -> BucketTransfer:
    return BucketTransfer(
        me, epoch, zstandard.ZstdCompressor(level=ZSTD_LEVEL).compress(msgspec.msgpack.encode(load)), round
    )


POLL_S = 0.1
RETRY_S = 0.5

SendTransfer = Callable[[str, BucketTransfer], Awaitable[bool]]


class OwnedHosts:
    """What the shard `me` owns. `shipped` is the epoch for which everything that leaves has been handed over."""

    def __init__(self, me: str, table: AssignmentTable, moving: AssignmentTable | None) -> None:
        self._me, self.table, self.moving = me, table, moving
        self.shipped = 0
        self.round = 0  # of what is handed over; all of it is, again, in every round
        self._rounds: dict[str, int] = {}  # of what others hand over
        self._carrying: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        return f"<Part {self._me} epoch={self.table.epoch}{' moving' if self.moving else ''}>"

    def owns(self, host: str) -> bool:
        """Is a host this shard's, now and after what is moving has arrived?"""
        is_mine = self.table.owner(host) == self._me
        return is_mine if self.moving is None else is_mine and self.moving.owner(host) == self._me

    def owns_document(self, digest: bytes) -> bool:
        """The same of a document."""
        tables = [self.table] if self.moving is None else [self.table, self.moving]
        return all(table.owner_of_document(digest) == self._me for table in tables)

    def may_visit(self, host: str) -> bool:
        """Hosts that leave are not asked any more: they are put aside until they are dropped."""
        return self.moving is None or self.owns(host)

    @property
    def is_carrying(self) -> bool:
        return self._carrying is not None

    @property
    def carrying(self) -> int:
        """The epoch for which it hands over what leaves; 0: it does not."""
        return self.moving.epoch if self.moving is not None and self.is_carrying else 0

    def report(self) -> dict[str, Any]:
        """What the coordinator is told (`Report`)."""
        numbers = {"epoch": self.table.epoch, "shipped": self.shipped, "round": self.round}
        return {**numbers, "carrying": self.carrying}

    def tasks(self) -> "list[asyncio.Task[None]]":
        return [self._carrying] if self._carrying else []

    def begin(
        self,
        engine: Engine,
        after: AssignmentTable,
        carry: SendTransfer,
        commit: Callable[[], Awaitable[None]],
        *,
        round: int = 0,
    ) -> None:
        """Begins to hand over what leaves, or begins anew: whoever was restored from a copy meanwhile, here or there,
        has lost a part of it. `commit` waits for the engine's next one."""
        if self._carrying is not None:
            self._carrying.cancel()
        self.moving, self.shipped, self.round = after, 0, round
        self._carrying = asyncio.get_running_loop().create_task(self._carry(engine, after, carry, commit))

    async def _carry(
        self, engine: Engine, after: AssignmentTable, carry: SendTransfer, commit: Callable[[], Awaitable[None]]
    ) -> None:
        """Lets what is under way end, then hands the buckets that leave to their owners."""
        try:
            while any(not self.owns(host) for host in engine.hosts_in_flight()):  # noqa: ASYNC110 -- no event tells
                await asyncio.sleep(POLL_S)
            for _ in range(2):  # the second one has begun after the last of them was settled
                await commit()
            state = engine.collection.state
            going = leaving_buckets(state, self._me, self.table, after)
            others = [one.name for one in after.members if one.name != self._me] if self.round else []
            for receiver, cargo in bucket_transfers(state, self._me, after.epoch, going, others, self.round):
                while not await _try_to_send(carry, receiver, cargo):  # noqa: ASYNC110 -- the other one is not there yet
                    await asyncio.sleep(RETRY_S)
            self.shipped = after.epoch
        except Exception as error:  # an agent that cannot hand over ends, and says why
            engine.fail(error)

    def load(self, engine: Engine, cargo: BucketTransfer) -> bool:
        """Puts down rows that will be this shard's; True when they are on disk."""
        if self.moving is None or cargo.epoch != self.moving.epoch:
            return False
        state, batch = engine.collection.state, Batch()
        latest = self._rounds.get(cargo.sender, 0)
        if cargo.round < latest:
            return False
        if cargo.round > latest:  # what it handed over before, it may know no more
            for bucket in buckets_with_rows(state):
                if self.table.owner_of_bucket(bucket) == cargo.sender:
                    write_arriving(batch, [bucket], [], [])
            self._rounds[cargo.sender] = cargo.round
        write_arriving(batch, *unpack_transfer(cargo))
        state.write(batch)
        return True

    def adopt(self, engine: Engine, table: AssignmentTable) -> bool:
        """The new table is in force: what left is dropped, what came is raised; False: the disk refuses, once more."""
        if not engine.move_hosts(lost=self._lost(engine.collection.state, table), came=self._came(engine, table)):
            return False
        self.table, self.moving, self._carrying, self._rounds = table, None, None, {}
        return True

    def put_right(self, engine: Engine) -> None:
        """After a start: hosts went to others, or came, while this shard was not there to hear of the table."""
        if not self.table.owners:  # a scheme with which nothing moves
            return
        lost, came = self._lost(engine.collection.state, self.table), self._came(engine, self.table)
        if lost or came:
            engine.move_hosts(lost=lost, came=came)

    def _lost(self, state: State, table: AssignmentTable) -> list[bytes]:
        buckets = set(host_buckets(state))
        if self.moving is None or table is not self.table:  # else documents of others are here and will be its own
            buckets.update(document_buckets(state))
        return sorted(bucket for bucket in buckets if table.owner_of_bucket(bucket) != self._me)

    def _came(self, engine: Engine, table: AssignmentTable) -> list[tuple[bytes, bytes]]:
        rows = arriving_hosts(engine.collection.state)
        return [row for row in rows if table.owner_of_bucket(row[0][:BUCKET_BYTES]) == self._me]


async def _try_to_send(carry: SendTransfer, receiver: str, cargo: BucketTransfer) -> bool:
    try:
        return await carry(receiver, cargo)
    except ClusterError:
        return False
