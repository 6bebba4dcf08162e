"""The counts of a collection and the state of its hosts, read beside a running crawl or without one.

Reads the committed state only. The words for robots rules, waits and retries are those of `why`, too.
"""

import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from lycosa.crawl import CrawlStats, clock, load_counts, load_live_stats, sum_of_shards
from lycosa.errors import SettingsError
from lycosa.fetch import describe_next_try
from lycosa.frontier import HostRow, QueueEntry, retry_range, unpack_host
from lycosa.records import Family
from lycosa.settings import CrawlSettings, merge, read_file
from lycosa.store import CollectionStore, JoinedCollection, is_written, left_out_counts
from lycosa.web import url_from_key


class HostView(msgspec.Struct, frozen=True):
    """One host as it is shown. A host that was given up (`gave_up` says why) has nothing queued: its URLs have failed.
    `time_s` is from its first answer to its last, `busy_s` the time spent waiting for answers, `delay_s` the pause
    between two requests."""

    host: str
    queued: int
    pages: int
    requests: int
    failed: int
    bytes: int
    mean_s: float
    address: str
    robots: str
    waits: str
    gave_up: str
    retries: int = 0
    next_retry: str = ""
    delay_s: float = 0.0
    time_s: float = 0.0
    busy_s: float = 0.0
    first_s: float = 0.0
    last_s: float = 0.0


def hosts(collection: CollectionStore, *, now_unix: float | None = None) -> Iterator[HostView]:
    """Every host of a collection, in the order of their keys: those of a registrable domain together."""
    now = time.time() if now_unix is None else now_unix
    try:
        delay_s = settings_of(collection).delay_s
    except SettingsError:  # the next crawl reports them
        delay_s = 0.0
    for key, packed in collection.state.walk(Family.HOST):
        row = unpack_host(packed)
        yield HostView(
            host=url_from_key(key + b"\0"),
            queued=0 if row.gave_up else row.queued - row.revisits,
            pages=row.pages,
            requests=row.requests,
            failed=row.failed + (row.queued - row.revisits if row.gave_up else 0),
            bytes=row.bytes,
            mean_s=row.seconds / row.requests if row.requests else 0.0,
            address=row.address,
            robots=robots_words(row),
            waits=wait_words(row, now),
            gave_up=row.gave_up,
            retries=0 if row.gave_up else row.retries,
            next_retry=_next_retry(collection, key, now) if row.retries and not row.gave_up else "",
            delay_s=max(delay_s, (row.robots and row.robots.crawl_delay_s) or 0.0),
            time_s=row.last_asked - row.first_asked,
            busy_s=row.seconds,
            first_s=row.first_asked,
            last_s=row.last_asked,
        )


def _next_retry(collection: CollectionStore, host_key: bytes, now: float) -> str:
    """The first of a host's URLs that wait for a retry: when, which and what failed."""
    return next((f"{due_words(entry, now)}: {entry.path}" for entry in retry_entries(collection, host_key)), "")


def retry_entries(collection: CollectionStore, host_key: bytes) -> Iterator[QueueEntry]:
    """The URLs of a host that failed and wait for a retry, the earliest first."""
    start, end = retry_range(host_key)
    return (QueueEntry.unpack(key, row) for key, row in collection.state.walk(Family.QUEUE, start, end))


def due_words(entry: QueueEntry, now: float) -> str:
    """Which try comes next, and when."""
    at = entry.due_unix
    when = f"at {clock(at, now_unix=now)}" if at > now else "now"
    return f"{describe_next_try(entry.tries, entry.failed)}, {when}"


def robots_words(row: HostRow) -> str:
    """The rules of a host's robots.txt in a few words."""
    if row.robots is None:
        return "not known yet"
    rules = len(row.robots.allow) + len(row.robots.disallow)
    delay = f", Crawl-delay {row.robots.crawl_delay_s:g} s" if row.robots.crawl_delay_s else ""
    return (counted(rules, "rule") if rules else "no rules") + delay


def wait_words(row: HostRow, now: float) -> str:
    """Until when the host waits, and why; nothing if it does not."""
    if row.wait_until > now and not row.gave_up:
        return f"until {clock(row.wait_until, now_unix=now)}: {row.wait_reason}"
    return ""


def settings_of(collection: CollectionStore) -> CrawlSettings:
    """The settings of a collection."""
    return merge(read_file(collection.settings_path))


def counted(number: int, thing: str) -> str:
    """A number with its noun, in the singular or plural."""
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"


def open_to_read(path: Path) -> CollectionStore:
    """A collection as it is now, beside whoever writes it."""
    return CollectionStore.open(path, read_only=True)


def stats_of(collection: CollectionStore) -> CrawlStats:
    """The committed counts of a collection; while it is crawled, those that the crawl wrote a second ago."""
    if isinstance(collection, JoinedCollection):
        return sum_of_shards([stats_of(shard) for shard in collection.shards])
    stats = load_live_stats(collection.state)
    if stats is None or not is_written(collection.path):
        stats = load_counts(collection.state, CrawlStats)
    pages, size = left_out_counts(collection.state)
    return msgspec.structs.replace(stats, left_out=pages, left_out_bytes=size)
