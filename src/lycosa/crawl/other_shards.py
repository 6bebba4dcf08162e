"""One shard among others: how URLs and hosts that come from the other shards are taken in.

Who owns what, how it travels and who is alive is decided behind the port (`OtherShards`). `move_hosts` takes hosts out
of a shard and into it between two commits, with nothing in flight at the hosts that leave; each known URL stays counted
once over all shards, and a host that came waits one full delay.
"""

from collections import defaultdict
from collections.abc import Collection, Sequence

from lycosa.crawl.requeue import requeue_failed, write_via
from lycosa.crawl.seams import Shard
from lycosa.frontier import ForwardedUrl, HostRow, Origin, RequestKind, unpack_host
from lycosa.learning import TrapGuard
from lycosa.store import Batch, activate_arrived_hosts, bucket_hosts, delete_bucket
from lycosa.web import split_url


def accept_urls(shard: Shard, traps: TrapGuard, crossings: Sequence[ForwardedUrl]) -> None:
    """Takes in URLs that other shards found, as if they had been found here."""
    frontier, now = shard.frontier, shard.now()
    is_ranked = frontier.policy.ranking is not None
    groups: dict[tuple[int, int, int, int, str], list[ForwardedUrl]] = defaultdict(list)
    for one in crossings:
        if not one.is_evidence_only:
            groups[one.depth, one.kind, one.hops, one.origin, one.source].append(one)
    for (depth, kind, hops, origin, source), some in groups.items():
        urls = [split_url(one.href) for one in some]
        if depth == 0 and kind == RequestKind.PAGE and origin in (Origin.SEED, Origin.REDIRECT):
            shard.link_filter.widen(urls)  # asked for by the user, or where that leads
            if origin == Origin.SEED:
                requeue_failed(shard, urls)
        new = frontier.admit(
            urls,
            depth=depth,
            kind=RequestKind(kind),
            hops=hops,
            now=now,
            origin=Origin(origin),
            credits=[one.credit for one in some] if is_ranked else None,
            source=source,
            now_unix=shard.now_unix(),
        )
        if kind == RequestKind.REQUISITE:
            write_via(shard.committer.batch, new, source)
        elif source and new:
            traps.count_links(source, new)
    vouches = {one.href: one.credit for one in crossings if one.is_evidence_only}
    frontier.add_evidence(vouches, now)


def move_hosts(
    shard: Shard,
    traps: TrapGuard,
    *,
    leaving_buckets: Collection[bytes],
    arriving_hosts: Sequence[tuple[bytes, bytes]],
) -> Batch:
    """Takes buckets out and hosts in, in memory; returns the batch that does it on disk. What is remembered of rows may
    be wrong then, and is forgotten."""
    batch, leaving = Batch(), list[tuple[bytes, HostRow]]()
    for bucket in leaving_buckets:
        leaving += [(key, unpack_host(packed)) for key, packed in bucket_hosts(shard.collection.state, bucket)]
        delete_bucket(batch, bucket)
    activate_arrived_hosts(batch, arriving_hosts)
    traps.forget()
    shard.linker.feed.forget()
    arriving = [unpack_host(packed) for _, packed in arriving_hosts]
    shard.frontier.move_hosts(leaving, arriving, now=shard.now(), now_unix=shard.now_unix())
    return batch
