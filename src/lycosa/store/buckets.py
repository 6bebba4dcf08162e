"""The rows of a bucket, a part of the web: read to be sent to another shard, written there, deleted here.

The keys of most families begin with the bucket; in `meta` and `doc` it follows a name. Host rows travel apart from
the others: a shard crawls every host that it has a row of, so arriving ones are written under another name first, and
become active when everything is there. Used by shards that hand buckets to each other.
"""

from collections.abc import Collection, Iterable, Iterator

from lycosa.records import Family
from lycosa.store.state import Batch, State
from lycosa.web import BUCKET_BYTES

BY_BUCKET = (Family.URL, Family.QUEUE, Family.PAGE, Family.LINK, Family.FILE)
CLAIMED_PREFIX = b"claimed:"  # longer than a fingerprint, with which the other keys of `doc` begin
# Rows whose names go on with a bucket.
NAMED = (
    *((Family.META, name) for name in (b"mind:", b"plain:", b"copy:", b"file:", b"drop:", b"every:", b"jar:", b"via:")),
    (Family.DOC, CLAIMED_PREFIX),
)
ARRIVING = b"arriving:"  # host rows that are not active yet

BucketRow = tuple[str, bytes, bytes]  # family, key, value


def bucket_end(bucket: bytes) -> bytes:
    """The end of the range of all keys that begin with the bucket: what follows it there is a name or a small
    number."""
    number = int.from_bytes(bucket) + 1
    return number.to_bytes(BUCKET_BYTES) if number < 1 << 8 * BUCKET_BYTES else bucket + b"\xff"


def document_bucket(digest: bytes) -> bytes:
    """The bucket that a document belongs to, and moves with; only 256 have any, so that they are soon found."""
    return digest[:1] + b"\0"


def host_buckets(state: State) -> list[bytes]:
    """The buckets in which the state has hosts."""
    return _buckets(state, Family.HOST)


def document_buckets(state: State) -> list[bytes]:
    """The buckets in which the state knows the first page of a document."""
    return _buckets(state, Family.DOC, CLAIMED_PREFIX)


def buckets_with_rows(state: State) -> list[bytes]:
    """The buckets that the state has any rows of: hosts of its own, arriving hosts, documents or URLs."""
    coming = {key[:BUCKET_BYTES] for key, _ in arriving_hosts(state)}
    return sorted({*host_buckets(state), *document_buckets(state), *_buckets(state, Family.URL), *coming})


def _buckets(state: State, family: Family, name: bytes = b"") -> list[bytes]:
    """The buckets in a family whose keys begin with `name`; one seek each."""
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
    """All rows of a bucket but those of its hosts."""
    for family in BY_BUCKET:
        for key, value in state.walk(family, bucket, bucket_end(bucket)):
            yield family.value, key, value
    for family, name in NAMED:
        for key, value in state.walk(family, name + bucket, name + bucket_end(bucket)):
            yield family.value, key, value


def bucket_hosts(state: State, bucket: bytes) -> list[tuple[bytes, bytes]]:
    """The host rows of a bucket."""
    return list(state.walk(Family.HOST, bucket, bucket_end(bucket)))


def delete_bucket(batch: Batch, bucket: bytes) -> None:
    """Deletes all rows of a bucket."""
    for family in (*BY_BUCKET, Family.HOST):
        batch.delete_range(family, bucket, bucket_end(bucket))
    for family, name in NAMED:
        batch.delete_range(family, name + bucket, name + bucket_end(bucket))


def write_arriving(
    batch: Batch, cleared: Iterable[bytes], rows: Iterable[BucketRow], hosts: Iterable[tuple[bytes, bytes]]
) -> None:
    """Writes the rows that arrive. `cleared` are buckets that begin here: an earlier try may have left rows of them."""
    for bucket in cleared:
        delete_bucket(batch, bucket)
        batch.delete_range(Family.META, ARRIVING + bucket, ARRIVING + bucket_end(bucket))
    for family, key, value in rows:
        batch.put(Family(family), key, value)
    for key, value in hosts:
        batch.put(Family.META, ARRIVING + key, value)


def arriving_hosts(state: State) -> list[tuple[bytes, bytes]]:
    """The host rows that have arrived and are not active yet."""
    rows = state.walk(Family.META, ARRIVING, ARRIVING[:-1] + b";")
    return [(key[len(ARRIVING) :], value) for key, value in rows]


def activate_arrived_hosts(batch: Batch, hosts: Collection[tuple[bytes, bytes]]) -> None:
    """Makes arrived host rows active: from now on this shard crawls the hosts."""
    for key, value in hosts:
        batch.put(Family.HOST, key, value)
        batch.delete(Family.META, ARRIVING + key)
