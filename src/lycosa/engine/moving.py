"""Hosts leave a shard and come into it while it crawls: queues, what is known, rules and waits go with them.

What was *done* stays counted where it was done; what is queued, or failed with its host, is counted where it is now, so
that in every shard, and over all of them, each known URL is counted once. A host that came waits one full delay. Called
between two commits, with nothing under way at the hosts that leave.
"""

from collections.abc import Callable, Collection, Sequence

from lycosa.engine.shard import Shard
from lycosa.frontier.rows import unpack_host
from lycosa.frontier.shelf import Start
from lycosa.store import Batch
from lycosa.store.buckets import drop, hosts_of, raise_hosts


def move(
    shard: Shard,
    forget: Callable[[], None],
    *,
    lost: Collection[bytes],
    came: Sequence[tuple[bytes, bytes]],
    now: float,
    now_unix: float,
) -> Batch:
    """Takes buckets out and hosts in, in memory; returns the batch that does it on disk. `forget`: what is remembered
    of rows may be wrong."""
    frontier, batch = shard.frontier, Batch()
    for bucket in lost:
        for key, packed in hosts_of(shard.collection.state, bucket):
            _count(shard, packed, -1)
            frontier.shelf.remove(key)
        drop(batch, bucket)
    for _, packed in came:
        _count(shard, packed, 1)
    raise_hosts(batch, came)
    forget()
    frontier.shelf.begin_anew(Start(now, now_unix, is_restart=True))
    frontier.turns.begin_anew(now)
    return batch


def _count(shard: Shard, packed: bytes, sign: int) -> None:
    row, frontier = unpack_host(packed), shard.frontier
    frontier.shelf.count += sign
    frontier.known += sign * row.queued
    if row.gave_up:
        frontier.failed[row.gave_up] += sign * row.queued
    else:
        frontier.queued += sign * row.queued
