"""A part of the web as rows: all that a state knows of a bucket, to be carried elsewhere, put down, or dropped.

The keys of most families begin with the bucket; in `meta` and `doc` it stands behind a name. Host rows come apart from
the others: a shard asks whoever has a row there, so they are put down under another name first, and raised when
everything is there.
Used by shards that hand buckets to each other.
"""

from collections.abc import Collection, Iterable, Iterator

from lycosa.records import Family
from lycosa.store.state import Batch, State

BUCKET_BYTES = 2
BY_BUCKET = (Family.URL, Family.QUEUE, Family.PAGE, Family.LINK, Family.FILE)
CLAIMED_PREFIX = b"claimed:"  # longer than a fingerprint, with which the other keys of `doc` begin
# Rows whose names go on with a bucket.
NAMED = (*((Family.META, name) for name in (b"mind:", b"plain:", b"copy:", b"file:")), (Family.DOC, CLAIMED_PREFIX))
ARRIVING = b"arriving:"  # host rows that are not raised yet

BucketRow = tuple[str, bytes, bytes]  # family, key, value


def bucket_end(bucket: bytes) -> bytes:
    """Behind all keys that begin with the bucket: what follows it is a name or a small number."""
    number = int.from_bytes(bucket) + 1
    return number.to_bytes(BUCKET_BYTES) if number < 1 << 8 * BUCKET_BYTES else bucket + b"\xff"


def document_bucket(digest: bytes) -> bytes:
    """The bucket that a document belongs to, and moves with; only 256 of them have any, so that they are soon found."""
    return digest[:1] + b"\0"


def host_buckets(state: State) -> list[bytes]:
    """The buckets in which the state has hosts."""
    return _buckets(state, Family.HOST)


def document_buckets(state: State) -> list[bytes]:
    """The buckets in which the state knows who was first to have a document."""
    return _buckets(state, Family.DOC, CLAIMED_PREFIX)


def buckets_with_rows(state: State) -> list[bytes]:
    """The buckets of which the state knows anything: hosts of its own, hosts that arrive, or URLs."""
    coming = {key[:BUCKET_BYTES] for key, _ in arriving_hosts(state)}
    return sorted({*host_buckets(state), *document_buckets(state), *_buckets(state, Family.URL), *coming})


def _buckets(state: State, family: Family, name: bytes = b"") -> list[bytes]:
    """The buckets in a family, behind a name; one seek each."""
    found: list[bytes] = []
    start = b""
    while rows := state.scan(family, name + start, limit=1):
        key = rows[0][0]
        if not key.startswith(name):
            break
        found.append(key[len(name) :][:BUCKET_BYTES])
        start = bucket_end(found[-1])
        if len(start) > BUCKET_BYTES:
            break
    return found


def bucket_rows(state: State, bucket: bytes) -> Iterator[BucketRow]:
    """Everything of a bucket but its hosts."""
    for family in BY_BUCKET:
        for key, value in state.walk(family, bucket, bucket_end(bucket)):
            yield family.value, key, value
    for family, name in NAMED:
        for key, value in state.walk(family, name + bucket, name + bucket_end(bucket)):
            yield family.value, key, value


def bucket_hosts(state: State, bucket: bytes) -> list[tuple[bytes, bytes]]:
    return list(state.walk(Family.HOST, bucket, bucket_end(bucket)))


def delete_bucket(batch: Batch, bucket: bytes) -> None:
    """Everything of a bucket goes."""
    for family in (*BY_BUCKET, Family.HOST):
        batch.delete_range(family, bucket, bucket_end(bucket))
    for family, name in NAMED:
        batch.delete_range(family, name + bucket, name + bucket_end(bucket))


def write_arriving(
    batch: Batch, cleared: Iterable[bytes], rows: Iterable[BucketRow], hosts: Iterable[tuple[bytes, bytes]]
) -> None:
    """Writes what arrives; `cleared` are buckets that begin here, of which an earlier try may have left something."""
    for bucket in cleared:
        delete_bucket(batch, bucket)
        batch.delete_range(Family.META, ARRIVING + bucket, ARRIVING + bucket_end(bucket))
    for family, key, value in rows:
        batch.put(Family(family), key, value)
    for key, value in hosts:
        batch.put(Family.META, ARRIVING + key, value)


def arriving_hosts(state: State) -> list[tuple[bytes, bytes]]:
    """The host rows that have arrived and are not raised."""
    rows = state.walk(Family.META, ARRIVING, ARRIVING[:-1] + b";")
    return [(key[len(ARRIVING) :], value) for key, value in rows]


def activate_arrived_hosts(batch: Batch, hosts: Collection[tuple[bytes, bytes]]) -> None:
    """From now on they are hosts of this shard."""
    for key, value in hosts:
        batch.put(Family.HOST, key, value)
        batch.delete(Family.META, ARRIVING + key)
