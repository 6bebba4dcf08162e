"""Buckets on their way from one shard to another: packed rows, a megabyte at a time. Pure but for reading the state."""

from collections.abc import Collection, Iterator

import msgspec
import zstandard

from lycosa.cluster.assignment import Table
from lycosa.store import State
from lycosa.store.buckets import Row, buckets_of, buckets_of_documents, hosts_of, rows_of

CARGO_BYTES = 1 << 20
LEVEL = 3

_Hosts = list[tuple[bytes, bytes]]
_Load = tuple[list[bytes], list[Row], _Hosts]
_decoder = msgspec.msgpack.Decoder(_Load)


class Cargo(msgspec.Struct, frozen=True):
    """Rows for the shard that will own their buckets from `epoch` on. In every round all of them are handed over; the
    first cargo of a round, which may have no rows, takes the place of all that came in rounds before."""

    sender: str
    epoch: int
    packed: bytes
    round: int = 0


def unpack_cargo(cargo: Cargo) -> _Load:
    """Buckets that begin here, rows, and host rows."""
    load: _Load = _decoder.decode(zstandard.ZstdDecompressor().decompress(cargo.packed))
    return load


def leaving(state: State, me: str, now: Table, after: Table) -> list[tuple[bytes, str]]:
    """The buckets with hosts or documents that this shard has and will not own, each with its owner to be."""
    found = []
    for bucket in sorted({*buckets_of(state), *buckets_of_documents(state)}):
        before, owner = now.owner_of_bucket(bucket), after.owner_of_bucket(bucket)
        if before == me and owner != me:
            found.append((bucket, owner))
    return found


def cargos(
    state: State,
    me: str,
    epoch: int,
    going: list[tuple[bytes, str]],
    others: Collection[str] = (),
    round: int = 0,
) -> Iterator[tuple[str, Cargo]]:
    """(receiver, cargo), everything of the buckets that go; in rounds each of `others` hears that one begins."""
    for receiver in sorted({owner for _, owner in going}.union(others)):
        load: _Load = ([], [], [])
        size = 0
        if round:
            yield receiver, _cargo(me, epoch, load, round)
        for bucket in (bucket for bucket, owner in going if owner == receiver):
            load[0].append(bucket)
            for row in rows_of(state, bucket):
                load[1].append(row)
                size += len(row[1]) + len(row[2])
                if size >= CARGO_BYTES:
                    yield receiver, _cargo(me, epoch, load, round)
                    load, size = ([], [], []), 0
            load[2].extend(hosts_of(state, bucket))
        if any(load):
            yield receiver, _cargo(me, epoch, load, round)


def _cargo(me: str, epoch: int, load: _Load, round: int) -> Cargo:
    return Cargo(me, epoch, zstandard.ZstdCompressor(level=LEVEL).compress(msgspec.msgpack.encode(load)), round)
