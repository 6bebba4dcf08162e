"""What a collection says of itself: its counts, and the state of its hosts.

Read beside a running crawl or without one, from the committed state. Robots rules, waits and retries are put in words
here, for hosts and for URLs (`inspect.why`) alike.
"""

import heapq
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from lycosa.crawl import (
    CrawlStats,
    load_counts,
    load_live_stats,
    sum_of_shards,
)
from lycosa.errors import SettingsError
from lycosa.fetch import describe_next_try
from lycosa.frontier import HostGroup, HostGroups, HostRow, PageLimits, Politeness, QueueEntry, retry_range, unpack_host
from lycosa.inspect.pages import host_key_of
from lycosa.records import Family
from lycosa.settings import CrawlSettings, merge, read_file, read_group, read_host_pages
from lycosa.store import (
    CollectionStore,
    JoinedCollection,
    is_written,
    left_out_counts,
)
from lycosa.web import (
    host_statements,
    parse_url,
    url_from_key,
    url_key,
)
from lycosa.wording import clock, counted


class HostView(msgspec.Struct, frozen=True):
    """One host as it is shown. A host that was given up (`gave_up` says why) has nothing queued: its URLs have failed.
    `time_s` is from its first answer to its last, `busy_s` the time spent waiting for answers, `requests_per_s` how
    often it was asked meanwhile, `delay_s` the pause between two requests, by the settings, its group and its
    robots.txt. Before `next_s` it is not asked again, as far as is known from outside. `preferences` is what it says on
    the use of its content. Until `hsts_until`, if it is not 0, it wants to be asked over https alone
    (Strict-Transport-Security). At most `page_limit` of its pages are kept, where there is a limit. `shard` has it,
    where there are several."""

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
    preferences: str = ""
    hsts_until: float = 0.0
    page_limit: int | None = None
    requests_per_s: float = 0.0
    next_s: float = 0.0
    shard: str = ""


def hosts(collection: CollectionStore, *, now_unix: float | None = None) -> Iterator[HostView]:
    """Every host of a collection, in the order of their keys: those of a registrable domain together."""
    view_of = _HostReader(collection, time.time() if now_unix is None else now_unix).view
    return (view_of(key, packed, shard) for key, packed, shard in heapq.merge(*map(_host_rows, _shards(collection))))


def host_named(collection: CollectionStore, origin: str) -> HostView | None:
    """One host by its origin, such as https://example.org; None where it is not known."""
    url = parse_url(f"{origin}/")
    key = host_key_of(url_key(url.href)) if url else b""
    view_of = _HostReader(collection, time.time()).view
    found = ((packed, name) for name, one in _shards(collection) if (packed := one.state.get(Family.HOST, key)))
    return next((view_of(key, packed, name) for packed, name in found), None)


def _shards(collection: CollectionStore) -> list[tuple[str, CollectionStore]]:
    """The shards of a collection by their names; where it has none, it stands for itself without a name."""
    if isinstance(collection, JoinedCollection):
        return [(shard.path.name, shard) for shard in collection.shards]
    return [("", collection)]


def _host_rows(shard: tuple[str, CollectionStore]) -> Iterator[tuple[bytes, bytes, str]]:
    name, collection = shard
    return ((key, packed, name) for key, packed in collection.state.walk(Family.HOST))


class _HostReader:
    """Makes views of the hosts of a collection, by its settings."""

    def __init__(self, collection: CollectionStore, now: float) -> None:
        self._collection, self._now = collection, now
        try:
            self._settings = settings_of(collection)
        except SettingsError:  # the next crawl reports them
            self._settings = CrawlSettings(delay_s=0.0)
        patterns = [read_host_pages(text) for text in self._settings.host_pages]
        self._limits = PageLimits(self._settings.pages_per_host, patterns)
        groups = tuple(HostGroup(*read_group(text)) for text in self._settings.groups)
        self._groups = HostGroups(Politeness(groups=groups))

    def view(self, key: bytes, packed: bytes, shard: str) -> HostView:
        row, origin = unpack_host(packed), url_from_key(key + b"\0")
        name = urlsplit(origin).hostname or ""
        delay_s, time_s = self._delay_s(name, row), row.last_asked - row.first_asked
        return HostView(
            host=origin,
            queued=0 if row.gave_up else row.queued - row.revisits,
            pages=row.pages,
            requests=row.requests,
            failed=row.failed + (row.queued - row.revisits if row.gave_up else 0),
            bytes=row.bytes,
            mean_s=row.seconds / row.requests if row.requests else 0.0,
            address=row.address,
            robots=robots_words(row),
            waits=wait_words(row, self._now),
            gave_up=row.gave_up,
            retries=0 if row.gave_up else row.retries,
            next_retry=_next_retry(self._collection, key, self._now) if row.retries and not row.gave_up else "",
            delay_s=delay_s,
            time_s=time_s,
            busy_s=row.seconds,
            first_s=row.first_asked,
            last_s=row.last_asked,
            preferences=use_words(row),
            hsts_until=row.hsts_until,
            page_limit=self._limits.of(name),
            requests_per_s=row.requests / time_s if time_s else 0.0,
            next_s=0.0 if row.gave_up or not row.requests else max(row.wait_until, row.last_asked + delay_s),
            shard=shard,
        )

    def _delay_s(self, name: str, row: HostRow) -> float:
        """The pause between two requests: the longest of those of the settings, the host's group and its robots.txt."""
        group = self._groups.of(name)
        crawl_delay_s = row.robots.crawl_delay_s if row.robots else None
        return max(self._settings.delay_s, group.delay_s if group else 0.0, crawl_delay_s or 0.0)


def _next_retry(collection: CollectionStore, host_key: bytes, now: float) -> str:
    """The first of a host's URLs that wait for a retry: when, which and what failed."""
    return next((f"{due_words(entry, now)}: {entry.path}" for entry in retry_entries(collection, host_key)), "")


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


def stats_of(collection: CollectionStore) -> CrawlStats:
    """The committed counts of a collection; while it is crawled, those that the crawl wrote a second ago."""
    if isinstance(collection, JoinedCollection):
        return sum_of_shards([stats_of(shard) for shard in collection.shards])
    stats = load_live_stats(collection.state)
    if stats is None or not is_written(collection.path):
        stats = load_counts(collection.state, CrawlStats)
    pages, size = left_out_counts(collection.state)
    return msgspec.structs.replace(stats, left_out=pages, left_out_bytes=size)
