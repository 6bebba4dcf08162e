"""One shard among others: the port to the rest of the crawl, and how what comes from there is taken in.

The loop asks `OtherShards` whether it may go on, tells it of commits and lets it write into them; who owns what, how
URLs travel and who is alive is decided behind it. A crawl of one process has none. `move_hosts` takes hosts out of a
shard and into it between two commits, with nothing in flight at the hosts that leave; each known URL stays counted once
over all shards, and a host that came waits one full delay.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Protocol

from lycosa.crawl.copies import CopyClaim, DocumentOwners
from lycosa.crawl.shard import Shard
from lycosa.frontier import ForwardedUrl, HostRow, Origin, RequestKind, UrlForwarder, unpack_host
from lycosa.records import Response
from lycosa.store import Batch, activate_arrived_hosts, bucket_hosts, delete_bucket
from lycosa.web import Url, split_url

if TYPE_CHECKING:
    from lycosa.crawl.responses import ResponseHandler


class OtherShards(UrlForwarder, DocumentOwners, Protocol):
    """The rest of the crawl, as an engine sees it."""

    def may_ask(self, pages: int) -> bool:
        """May one more request be started, `pages` being fetched or under way already?"""
        ...

    def may_visit(self, address: str, host: str) -> bool:
        """May this address be asked now? If not, the engine hears of the host by `Engine.located`, later."""
        ...

    def may_end(self) -> bool:
        """Is the crawl over where nothing is queued here?"""
        ...

    def ask_robots(self, url: Url, then: Callable[[Response], None]) -> None:
        """Has a robots.txt fetched by the shard that owns its host; `then` hears what came back."""
        ...

    def write(self, batch: Batch) -> None:
        """Puts what has to last into a commit."""
        ...

    def committed(self) -> None:
        """That commit is on disk."""
        ...


def accept_parcels(
    shard: Shard, outcomes: "ResponseHandler", parcels: Sequence[ForwardedUrl | CopyClaim], *, now: float
) -> None:
    """Takes in what other shards found, as if it had been found here."""
    crossings = [one for one in parcels if isinstance(one, ForwardedUrl)]
    if len(crossings) < len(parcels) and outcomes.copies is not None:
        outcomes.copies.take([one for one in parcels if isinstance(one, CopyClaim)])
    frontier = shard.frontier
    is_ranked = frontier.policy.ranking is not None
    groups: dict[tuple[int, int, int, int, str], list[ForwardedUrl]] = defaultdict(list)
    for one in crossings:
        if not one.is_vouch:
            groups[one.depth, one.kind, one.hops, one.origin, one.source].append(one)
    for (depth, kind, hops, origin, source), some in groups.items():
        urls = [split_url(one.href) for one in some]
        if depth == 0 and kind == RequestKind.PAGE and origin in (Origin.SEED, Origin.REDIRECT):
            outcomes.widen(urls)  # asked for by the user, or where that leads
            if origin == Origin.SEED:
                outcomes.ask_again(urls)
        new = frontier.admit(
            urls,
            depth=depth,
            kind=RequestKind(kind),
            hops=hops,
            now=now,
            origin=Origin(origin),
            credits=[one.credit for one in some] if is_ranked else None,
            source=source,
        )
        if source and new:
            outcomes.traps.count_links(source, new)
    vouches = {one.href: one.credit for one in crossings if one.is_vouch}
    frontier.add_evidence(vouches, now)


def move_hosts(
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
    batch, leaving = Batch(), list[tuple[bytes, HostRow]]()
    for bucket in lost:
        leaving += [(key, unpack_host(packed)) for key, packed in bucket_hosts(shard.collection.state, bucket)]
        delete_bucket(batch, bucket)
    activate_arrived_hosts(batch, came)
    forget()
    shard.frontier.move_hosts(leaving, [unpack_host(packed) for _, packed in came], now=now, now_unix=now_unix)
    return batch
