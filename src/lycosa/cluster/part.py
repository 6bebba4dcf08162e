"""The part of the web that a shard owns, and how buckets leave it and come into it.

While buckets move there are two tables: by the one in force a shard still has what leaves, by the one to come it will
have what arrives. In between neither is its own: what leaves is asked no more, what arrives is not asked yet. The new
table is in force only when everything has arrived everywhere, so the old owner has stopped before the new one starts.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from lycosa.cluster.assignment import Table
from lycosa.cluster.cargo import Cargo, cargos, leaving, unpack_cargo
from lycosa.engine.engine import Engine
from lycosa.errors import ClusterError
from lycosa.store import Batch, State
from lycosa.store.buckets import arriving, buckets_of, buckets_of_documents, buckets_with_rows, put_down
from lycosa.web.url import BUCKET_BYTES

LOOK_S = 0.1
AGAIN_S = 0.5

Carry = Callable[[str, Cargo], Awaitable[bool]]


class Part:
    """What the shard `me` owns. `shipped` is the epoch for which everything that leaves has been handed over."""

    def __init__(self, me: str, table: Table, moving: Table | None) -> None:
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
        self, engine: Engine, after: Table, carry: Carry, commit: Callable[[], Awaitable[None]], *, round: int = 0
    ) -> None:
        """Begins to hand over what leaves, or begins anew: whoever was restored from a copy meanwhile, here or there,
        has lost a part of it. `commit` waits for the engine's next one."""
        if self._carrying is not None:
            self._carrying.cancel()
        self.moving, self.shipped, self.round = after, 0, round
        self._carrying = asyncio.get_running_loop().create_task(self._carry(engine, after, carry, commit))

    async def _carry(self, engine: Engine, after: Table, carry: Carry, commit: Callable[[], Awaitable[None]]) -> None:
        """Lets what is under way end, then hands the buckets that leave to their owners."""
        try:
            while any(not self.owns(host) for host in engine.hosts_in_flight()):  # noqa: ASYNC110 -- no event tells
                await asyncio.sleep(LOOK_S)
            for _ in range(2):  # the second one has begun after the last of them was settled
                await commit()
            state = engine.collection.state
            going = leaving(state, self._me, self.table, after)
            others = [one.name for one in after.members if one.name != self._me] if self.round else []
            for receiver, cargo in cargos(state, self._me, after.epoch, going, others, self.round):
                while not await _hand_over(carry, receiver, cargo):  # noqa: ASYNC110 -- the other one is not there yet
                    await asyncio.sleep(AGAIN_S)
            self.shipped = after.epoch
        except Exception as error:  # an agent that cannot hand over ends, and says why
            engine.fail(error)

    def load(self, engine: Engine, cargo: Cargo) -> bool:
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
                    put_down(batch, [bucket], [], [])
            self._rounds[cargo.sender] = cargo.round
        put_down(batch, *unpack_cargo(cargo))
        state.write(batch)
        return True

    def adopt(self, engine: Engine, table: Table) -> bool:
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

    def _lost(self, state: State, table: Table) -> list[bytes]:
        buckets = set(buckets_of(state))
        if self.moving is None or table is not self.table:  # else documents of others are here and will be its own
            buckets.update(buckets_of_documents(state))
        return sorted(bucket for bucket in buckets if table.owner_of_bucket(bucket) != self._me)

    def _came(self, engine: Engine, table: Table) -> list[tuple[bytes, bytes]]:
        rows = arriving(engine.collection.state)
        return [row for row in rows if table.owner_of_bucket(row[0][:BUCKET_BYTES]) == self._me]


async def _hand_over(carry: Carry, receiver: str, cargo: Cargo) -> bool:
    try:
        return await carry(receiver, cargo)
    except ClusterError:
        return False
