"""What a replay asks a collection: the captures of a URL, the one nearest to a time, and lists of URLs.

The collection is opened for reading and sees what a crawl beside it has committed whenever it is asked. A list is read
in bounded steps, so that a question about words in URLs does not read all of a large collection at once.
"""

import calendar
import time
from pathlib import Path
from typing import NamedTuple

from lycosa.crawl import CrawlStats
from lycosa.errors import SettingsError
from lycosa.inspect import StoredPage, StoredPages, asked_url, key_prefixes, open_to_read, stats_of, url_view
from lycosa.records import Family
from lycosa.store import CollectionStore, JoinedCollection, PageRow, shard_paths, unpack_page
from lycosa.web import (
    MediaKind,
    format_capture_time,
    host_key_of,
    key_prefix_end,
    media_kind,
    parse_url,
    url_from_key,
    url_key,
)

LATEST, LATEST_S = "latest", 1e12
LISTED = 100  # URLs of one page of a list
SCANNED = 50_000  # rows that one question about words reads
_DOCUMENTS = frozenset((MediaKind.HTML, MediaKind.XHTML, MediaKind.PDF, MediaKind.TEXT))
NEIGHBOURS = 8  # on each side of a URL that is not there


class ListedUrl(NamedTuple):
    """A URL that can be replayed, as far as its row says."""

    url: str
    row: PageRow


class UrlList(NamedTuple):
    """A part of a list. `after` is the URL behind which it goes on, empty at its end."""

    urls: list[ListedUrl]
    after: str


class Captures:
    """The captures of the collection at `path`. Asked from one thread; close it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._open()

    def __repr__(self) -> str:
        return f"<Captures of {self.path}>"

    def _open(self) -> None:
        self._store: CollectionStore = open_to_read(self.path)
        self._pages = StoredPages(self._store)

    def refresh(self) -> None:
        """Sees what was committed up to now."""
        if isinstance(self._store, JoinedCollection) and self._store.paths != shard_paths(self.path):  # it has grown
            self._store.close()
            self._open()
        else:
            self._store.state.refresh()

    def close(self) -> None:
        self._store.close()

    def stats(self) -> CrawlStats:
        return stats_of(self._store)

    def of(self, text: str) -> list[StoredPage]:
        """Every capture of a URL, the oldest first."""
        return self._pages.captures(asked_url(self._store, text).href)

    def meant(self, text: str) -> str:
        """The normalised URL that a text means; raises SettingsError if it means none."""
        return asked_url(self._store, text).href

    def says(self, url: str) -> tuple[str, ...]:
        """Sentences about a URL of which there is no capture, where the collection knows it."""
        is_known = self._store.state.get(Family.URL, url_key(url)) is not None
        return url_view(self._store, url).says if is_known else ()

    def find(self, query: str, after: str = "") -> UrlList:
        """What is archived: URLs of a host, a domain or the beginning of a URL, else those with all these words in
        them; without a query those of documents, without images and style sheets."""
        words = query.lower().split()
        can_be = _can_be_shown if query else _is_document
        starts, behind = [b""], url_key(parsed.href) if (parsed := parse_url(after)) else b""
        if len(words) == 1 and (prefixes := self._prefixes(words[0])):
            starts, words = prefixes, []
        found: list[ListedUrl] = []
        scanned = 0
        for start in sorted(starts):
            begin = max(start, behind + b"\0") if behind else start
            for key, packed in self._store.state.walk(Family.PAGE, begin, key_prefix_end(start)):
                url, row = url_from_key(key), unpack_page(packed)
                scanned += 1
                if can_be(row) and all(word in url.lower() for word in words):
                    found.append(ListedUrl(url, row))
                if len(found) == LISTED or scanned == SCANNED:
                    return UrlList(found, url)
        return UrlList(found, "")

    def _prefixes(self, word: str) -> list[bytes]:
        """The keys that a host, a domain or the beginning of a URL stands for; none if nothing is stored there."""
        try:
            starts = key_prefixes(self._store.state, word)
        except SettingsError:
            return []
        has_any = any(self._store.state.scan(Family.PAGE, each, key_prefix_end(each), limit=1) for each in starts)
        return starts if has_any else []

    def neighbours(self, url: str) -> list[ListedUrl]:
        """What is stored next to a URL, on the same host."""
        key = url_key(url)
        start = host_key_of(key) + b"\0"
        state = self._store.state
        rows = state.scan_back(Family.PAGE, start, key, limit=NEIGHBOURS)[::-1]
        rows += state.scan(Family.PAGE, key, key_prefix_end(start), limit=NEIGHBOURS)
        listed = (ListedUrl(url_from_key(found), unpack_page(packed)) for found, packed in rows)
        return [each for each in listed if _can_be_shown(each.row)]


def _can_be_shown(row: PageRow) -> bool:
    return bool(row.place) and not row.is_sitemap


def _is_document(row: PageRow) -> bool:
    return _can_be_shown(row) and media_kind(row.essence) in _DOCUMENTS


def nearest(captures: list[StoredPage], moment: str) -> int:
    """The number of the capture that is nearest to a time, the earlier of two."""
    at_s = time_of(moment)
    return min(range(len(captures)), key=lambda number: abs(captures[number].row.fetched_s - at_s))


def time_of(moment: str) -> float:
    """The time of 4 to 14 digits, `20260131120000`, of which the missing ones are the first of their kind."""
    if moment == LATEST:
        return LATEST_S
    filled = moment + "00000101000000"[len(moment) :]
    try:
        return float(calendar.timegm(time.strptime(filled, "%Y%m%d%H%M%S")))
    except ValueError as error:
        raise SettingsError(f"{moment!r} is no time: give a date such as 20260131") from error


def moment_of(page: StoredPage) -> str:
    """The time of a capture in 14 digits."""
    return format_capture_time(page.row.fetched_s)
