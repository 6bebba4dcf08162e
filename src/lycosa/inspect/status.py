"""What a collection says of itself: its settings, counts and latest events, and what is known of a host, in words.

Read beside a running crawl or without one, from the committed state. Robots rules, waits and retries are put in words
here, for hosts (`inspect.host_table`) and for URLs (`inspect.why`) alike.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from lycosa.crawl import (
    CrawlStats,
    Sample,
    load_counts,
    load_live_stats,
    load_timeline,
    sum_of_shards,
    sum_of_timelines,
)
from lycosa.fetch import describe_next_try
from lycosa.frontier import HostRow, QueueEntry, retry_range
from lycosa.records import Family
from lycosa.settings import CrawlSettings, merge, read_file
from lycosa.store import (
    LOG_FILE,
    CollectionStore,
    JoinedCollection,
    is_written,
    left_out_counts,
    shard_paths,
)
from lycosa.web import format_date, host_key_of, host_statements, url_key
from lycosa.wording import clock, counted


def retry_entries(collection: CollectionStore, host_key: bytes) -> Iterator[QueueEntry]:
    """The URLs of a host that failed and wait for a retry, the earliest first."""
    start, end = retry_range(host_key)
    return (QueueEntry.unpack(key, row) for key, row in collection.state.walk(Family.QUEUE, start, end))


def host_retries(collection: CollectionStore, host: str) -> Iterator[QueueEntry]:
    """The same of a host by its origin, such as https://example.org."""
    return retry_entries(collection, host_key_of(url_key(f"{host}/")))


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


def robots_file_words(collection: CollectionStore, row: HostRow) -> str:
    """The state of a host's robots.txt: it is no page, and its host keeps it."""
    from lycosa.crawl import ROBOTS_FOR_S  # lazy: 0.03 s, which `lycosa status` does without

    if row.robots is not None and row.robots_until:
        asked, again = format_date(row.robots_until - ROBOTS_FOR_S), format_date(row.robots_until)
        return f"read {asked}: {robots_words(row)}; it is asked for again when the host is needed after {again}"
    if row.robots_tries:
        return f"asked for {counted(row.robots_tries, 'time')}, and no answer that can be used has come"
    return "not asked for yet" if settings_of(collection).robots else "not asked for: robots is switched off"


def use_words(row: HostRow) -> str:
    """What a host says on the use of its content as a whole, and on how many of its paths it says something else."""
    if row.robots is None or not row.robots.speaks_of_use:
        return ""
    paths = {path for path, _ in (*row.robots.usages, *row.robots.reservations, *row.robots.terms)} - {"/"}
    more = [f"and of {counted(len(paths), 'path')} something else"] if paths else []
    return "; ".join([*host_statements(row.robots, "/"), *more])


def wait_words(row: HostRow, now: float) -> str:
    """Until when the host waits, and why; nothing if it does not."""
    if row.wait_until > now and not row.gave_up:
        return f"until {clock(row.wait_until, now_unix=now)}: {row.wait_reason}"
    return ""


def settings_of(collection: CollectionStore) -> CrawlSettings:
    """The settings of a collection."""
    return merge(read_file(collection.settings_path))


def open_to_read(path: Path) -> CollectionStore:
    """A collection as it is now, beside whoever writes it."""
    return CollectionStore.open(path, read_only=True)


def samples_of(collection: CollectionStore) -> list[Sample]:
    """What the crawls of a collection counted at some moments, the oldest first, over all its shards."""
    stores = collection.shards if isinstance(collection, JoinedCollection) else [collection]
    return sum_of_timelines([load_timeline(each.state).samples for each in stores])


def stats_of(collection: CollectionStore) -> CrawlStats:
    """The committed counts of a collection; while it is crawled, those that the crawl wrote a second ago."""
    if isinstance(collection, JoinedCollection):
        return sum_of_shards([stats_of(shard) for shard in collection.shards])
    stats = load_live_stats(collection.state)
    if stats is None or not is_written(collection.path):
        stats = load_counts(collection.state, CrawlStats)
    pages, size = left_out_counts(collection.state)
    return msgspec.structs.replace(stats, left_out=pages, left_out_bytes=size)


LOOKED_THROUGH_BYTES = 256 << 10  # of the end of each log


def latest_events(path: Path, *, most: int) -> list[dict[str, Any]]:
    """The last events that crawls wrote into `log.jsonl`, the newest first; those of shards say which one wrote
    them."""
    found = list[dict[str, Any]]()
    for folder in (path, *shard_paths(path)):  # beside the shards stands what was ordered of all of them
        for line in _last_lines(folder / LOG_FILE):
            try:
                event = msgspec.json.decode(line)
            except msgspec.DecodeError:  # the first line may be cut, the last on its way
                continue
            if isinstance(event, dict):
                found.append(event if folder == path else {**event, "shard": folder.name})
    return sorted(found, key=lambda event: event.get("time", 0.0), reverse=True)[:most]


def _last_lines(path: Path) -> Sequence[bytes]:
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, 2) - LOOKED_THROUGH_BYTES))
            return file.read().splitlines()
    except OSError:  # a collection may be without a log
        return ()
