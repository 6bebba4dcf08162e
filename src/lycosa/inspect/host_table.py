"""The hosts of a collection as they are shown: one of them, all of them, a list that is searched and sorted, or how one
was doing over time.

Read beside a running crawl or without one, from the committed state; in words as `inspect.status` puts them.
"""

import heapq
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Literal
from urllib.parse import urlsplit

import msgspec

from lycosa.errors import SettingsError
from lycosa.frontier import HostGroup, HostGroups, HostRow, PageLimits, Politeness, unpack_host
from lycosa.inspect.status import (
    due_words,
    retry_entries,
    robots_file_words,
    robots_words,
    settings_of,
    use_words,
    wait_words,
)
from lycosa.records import Family
from lycosa.settings import CrawlSettings, read_group, read_host_pages
from lycosa.store import CollectionStore, JoinedCollection, unpack_page
from lycosa.web import BUCKET_BYTES, host_key_of, parse_url, url_from_key, url_key

HostColumn = Literal[
    "host", "pages", "queued", "failed", "bytes", "requests_per_s", "mean_s", "delay_s", "next_s", "retries",
    "time_s", "page_limit", "robots", "address", "shard", "waits",
]  # fmt: skip
NAME_COLUMNS: tuple[HostColumn, ...] = ("host", "robots", "address", "shard", "waits")  # from A to Z


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
    return map(view_of, _host_entries(collection))


def host_named(collection: CollectionStore, origin: str) -> HostView | None:
    """One host by its origin, such as https://example.org; None where it is not known."""
    url = parse_url(f"{origin}/")
    key = host_key_of(url_key(url.href)) if url else b""
    view_of = _HostReader(collection, time.time()).view
    found = ((packed, name) for name, one in _shards(collection) if (packed := one.state.get(Family.HOST, key)))
    return next((view_of((key, packed, name)) for packed, name in found), None)


class KnownRobots(msgspec.Struct, frozen=True):
    """The robots.txt of a host as it is understood: `says` when it was read and when it is read again; the first rules
    that concern this crawler, and how many `rules` there are; and the first of the sitemaps that it names."""

    says: str
    rules: int = 0
    disallow: Sequence[str] = ()
    allow: Sequence[str] = ()
    crawl_delay_s: float | None = None
    sitemaps: Sequence[str] = ()


def robots_named(collection: CollectionStore, origin: str, *, most: int) -> KnownRobots:
    """The robots.txt of a host by its origin, with so many rules of each kind at most."""
    key = host_key_of(url_key(f"{origin}/"))
    packed = next((found for _, one in _shards(collection) if (found := one.state.get(Family.HOST, key))), None)
    row = unpack_host(packed) if packed else HostRow()
    says, robots = robots_file_words(collection, row), row.robots
    if robots is None:
        return KnownRobots(says)
    return KnownRobots(
        says,
        len(robots.allow) + len(robots.disallow),
        robots.disallow[:most],
        robots.allow[:most],
        robots.crawl_delay_s,
        robots.sitemaps[:most],
    )


# Key and row of a host, and its shard: what is kept of a hundred thousand of them, and unpacked when it is asked for.
HostEntry = tuple[bytes, bytes, str]


class HostTable:
    """The hosts of a collection at one moment, to be searched and sorted. Their rows stay packed: each order takes a
    look at every row, once, and only hosts that are shown become views."""

    def __init__(self, collection: CollectionStore) -> None:
        self._entries = list(_host_entries(collection))
        self._reader = _HostReader(collection, time.time())
        self._names: list[str] | None = None
        self._orders: dict[tuple[HostColumn, bool], list[int]] = {}

    def __repr__(self) -> str:
        return f"<HostTable {len(self._entries)}>"

    def find(self, words: str = "", *, sort: HostColumn, up: bool = False) -> list[HostEntry]:
        """The hosts whose names hold `words`, by a column: names and words from A to Z, numbers with the highest
        first, or with `up` the other way round."""
        order = self._orders.get((sort, up)) or self._order(sort, up)
        if wanted := words.strip().lower():
            if self._names is None:
                self._names = [_origin(key) for key, _, _ in self._entries]
            order = [place for place in order if wanted in self._names[place]]
        return [self._entries[place] for place in order]

    def _order(self, sort: HostColumn, up: bool) -> list[int]:
        value, reader = _VALUES[sort], self._reader
        values = [value(reader, entry, unpack_host(entry[1])) for entry in self._entries]
        order = sorted(range(len(values)), key=values.__getitem__, reverse=up if sort in NAME_COLUMNS else not up)
        self._orders[sort, up] = order
        return order


def host_views(collection: CollectionStore, entries: Iterable[HostEntry]) -> Iterator[HostView]:
    """What is shown of some hosts of a table."""
    return map(_HostReader(collection, time.time()).view, entries)


def _shards(collection: CollectionStore) -> list[tuple[str, CollectionStore]]:
    """The shards of a collection by their names; where it has none, it stands for itself without a name."""
    if isinstance(collection, JoinedCollection):
        return [(shard.path.name, shard) for shard in collection.shards]
    return [("", collection)]


def _host_entries(collection: CollectionStore) -> Iterator[HostEntry]:
    return heapq.merge(*map(_entries_of_shard, _shards(collection)))


def _entries_of_shard(shard: tuple[str, CollectionStore]) -> Iterator[HostEntry]:
    name, collection = shard
    return ((key, packed, name) for key, packed in collection.state.walk(Family.HOST))


def _origin(key: bytes) -> str:
    return url_from_key(key + b"\0")


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
        self._has_patterns = bool(patterns or groups)

    def view(self, entry: HostEntry) -> HostView:
        key, packed, shard = entry
        row = unpack_host(packed)
        return HostView(
            host=_origin(key),
            queued=_queued(row),
            pages=row.pages,
            requests=row.requests,
            failed=_failed(row),
            bytes=row.bytes,
            mean_s=_mean_s(row),
            address=row.address,
            robots=robots_words(row),
            waits=wait_words(row, self._now),
            gave_up=row.gave_up,
            retries=_retries(row),
            next_retry=self._next_retry(key) if _retries(row) else "",
            delay_s=self.delay_s(key, row),
            time_s=_time_s(row),
            busy_s=row.seconds,
            first_s=row.first_asked,
            last_s=row.last_asked,
            preferences=use_words(row),
            hsts_until=row.hsts_until,
            page_limit=self.page_limit(key),
            requests_per_s=_requests_per_s(row),
            next_s=self.next_s(key, row),
            shard=shard,
        )

    def delay_s(self, key: bytes, row: HostRow) -> float:
        """The pause between two requests: the longest of those of the settings, the host's group and its robots.txt."""
        group = self._groups.of(self._name(key))
        crawl_delay_s = row.robots.crawl_delay_s if row.robots else None
        return max(self._settings.delay_s, group.delay_s if group else 0.0, crawl_delay_s or 0.0)

    def next_s(self, key: bytes, row: HostRow) -> float:
        """When it may be asked again, as far as is known from outside; 0 where it never is, or never was."""
        if row.gave_up or not row.requests:
            return 0.0
        return max(row.wait_until, row.last_asked + self.delay_s(key, row))

    def page_limit(self, key: bytes) -> int | None:
        return self._limits.of(self._name(key))

    def waits(self, row: HostRow) -> tuple[bool, str, str]:
        """What hosts are sorted by where it is their state: those that are in trouble first."""
        waits = wait_words(row, self._now)
        return not (row.gave_up or waits), row.gave_up, waits

    def _name(self, key: bytes) -> str:
        """The name of a host, where a pattern may match it: reading it out of the key takes longer than the rest."""
        return urlsplit(_origin(key)).hostname or "" if self._has_patterns else ""

    def _next_retry(self, key: bytes) -> str:
        """The first of a host's URLs that wait for a retry: when, which and what failed."""
        entries = retry_entries(self._collection, key)
        return next((f"{due_words(entry, self._now)}: {entry.path}" for entry in entries), "")


def _queued(row: HostRow) -> int:
    return 0 if row.gave_up else row.queued - row.revisits


def _failed(row: HostRow) -> int:
    return row.failed + (row.queued - row.revisits if row.gave_up else 0)


def _retries(row: HostRow) -> int:
    return 0 if row.gave_up else row.retries


def _mean_s(row: HostRow) -> float:
    return row.seconds / row.requests if row.requests else 0.0


def _time_s(row: HostRow) -> float:
    return row.last_asked - row.first_asked


def _requests_per_s(row: HostRow) -> float:
    time_s = _time_s(row)
    return row.requests / time_s if time_s else 0.0


# What hosts are sorted by; of names and words what says nothing comes last. Keys stand in the order of domains.
_VALUES: dict[HostColumn, Callable[[_HostReader, HostEntry, HostRow], Any]] = {
    "host": lambda _, entry, row: entry[0][BUCKET_BYTES:],
    "pages": lambda _, entry, row: row.pages,
    "queued": lambda _, entry, row: _queued(row),
    "failed": lambda _, entry, row: _failed(row),
    "bytes": lambda _, entry, row: row.bytes,
    "requests_per_s": lambda _, entry, row: _requests_per_s(row),
    "mean_s": lambda _, entry, row: _mean_s(row),
    "delay_s": lambda reader, entry, row: reader.delay_s(entry[0], row),
    "next_s": lambda reader, entry, row: reader.next_s(entry[0], row),
    "retries": lambda _, entry, row: _retries(row),
    "time_s": lambda _, entry, row: _time_s(row),
    "page_limit": lambda reader, entry, row: -1 if (limit := reader.page_limit(entry[0])) is None else limit,
    "robots": lambda _, entry, row: (row.robots is None, robots_words(row)),
    "address": lambda _, entry, row: (not row.address, row.address),
    "shard": lambda _, entry, row: entry[2],
    "waits": lambda reader, entry, row: reader.waits(row),
}


SPANS = 60
MOST_URLS = 20_000  # looked at: a tenth of a second


class HostMoment(msgspec.Struct, frozen=True):
    """A span of time that ends at `at_unix`: what a host gave in it, and how long its answers took on average; None
    where there was none."""

    at_unix: float
    pages_per_s: float
    errors_per_s: float
    mean_s: float | None


class HostTimeline(msgspec.Struct, frozen=True):
    """A host over time in spans of equal length. `is_partial`: it has more URLs than were looked at."""

    moments: list[HostMoment]
    is_partial: bool


def host_timeline(collection: CollectionStore, host: str) -> HostTimeline:
    """How a host, given by its origin such as https://example.org, was doing over time, by what is stored of its URLs.

    A URL counts at the time when it was asked for last. Of very large hosts the first URLs by path stand for all.
    """
    start = host_key_of(url_key(f"{host}/")) + b"\0"
    packed = collection.state.walk(Family.PAGE, start, start[:-1] + b"\1")
    rows = [row for _, data in islice(packed, MOST_URLS) if (row := unpack_page(data)).fetched_s]
    if len(rows) < 2:
        return HostTimeline([], False)
    first, last = min(row.fetched_s for row in rows), max(row.fetched_s for row in rows)
    span_s = max((last - first) / SPANS, 0.001)
    pages, errors, answers, took_s = ([0.0] * SPANS for _ in range(4))
    for row in rows:
        place = min(SPANS - 1, int((row.fetched_s - first) / span_s))
        pages[place] += row.is_page and not row.has_failed
        errors[place] += row.has_failed
        answers[place] += row.took_ms > 0
        took_s[place] += row.took_ms / 1_000
    moments = [
        HostMoment(
            at_unix=first + (place + 1) * span_s,
            pages_per_s=pages[place] / span_s,
            errors_per_s=errors[place] / span_s,
            mean_s=took_s[place] / answers[place] if answers[place] else None,
        )
        for place in range(SPANS)
    ]
    return HostTimeline(moments, len(rows) == MOST_URLS)
