"""Every URL that a collection knows: where it is and why, what came of it, and which pages link to it.

Read from the `url` family in the order of its keys, so that a URL prefix, a host and a domain are ranges. Rows of
pages, of hosts and of retries and the link index are read beside it, where a column or a filter asks for them.
Nothing is kept of one piece when the next is read. The states are those that `status` counts: what is queued at a host
that was given up has failed. Used by `lycosa urls`, `lycosa.Collection`, the live page and the table `urls`.
"""

from collections.abc import Collection as Names
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import lru_cache, partial
from itertools import islice
from typing import NamedTuple

import msgspec

from lycosa.errors import SettingsError
from lycosa.frontier import KEY_END, Origin, UrlRow, UrlState, unpack_host
from lycosa.graph import LinkIndex, current_link_index, referring_pages
from lycosa.inspect.changes import host_range
from lycosa.inspect.status import retry_entries
from lycosa.inspect.tree import LAST_KEY, parts_of
from lycosa.inspect.why import failure_words, reason_of_failure
from lycosa.records import Family
from lycosa.store import CollectionStore, State, unpack_head, unpack_page
from lycosa.web import (
    BUCKET_BYTES,
    MediaKind,
    key_prefix_end,
    matches_pattern,
    media_kind,
    parse_url,
    pattern_pieces,
    split_url,
    url_from_key,
    url_key,
)

_KINDS = tuple(map(str, MediaKind))
_MOST_KNOWN = 10_000


def read_type(text: str) -> str:
    """A media type (`text/html`), a pattern (`image/*`) or a kind of media (`pdf`) as a user writes it after `--type`;
    raises SettingsError for what is none."""
    word = text.strip().lower()
    if "/" not in word and word not in _KINDS:
        raise SettingsError(
            f"--type is {text!r}: give a media type such as text/html or image/*, or {', '.join(_KINDS)}"
        )
    return word


class TypeFilter:
    """Tells whether a media type is one of those that are asked for by `--type`; remembers its answers."""

    def __init__(self, types: Sequence[str]) -> None:
        self._patterns = [partial(matches_pattern, pattern_pieces(word), to_end=True) for word in types if "/" in word]
        self._kinds = {word for word in types if "/" not in word}
        if "html" in self._kinds:
            self._kinds.add("xhtml")
        self._known: dict[str, bool] = {}

    def __repr__(self) -> str:
        return f"<TypeFilter kinds={sorted(self._kinds)} patterns={len(self._patterns)}>"

    def has(self, essence: str) -> bool:
        found = self._known.get(essence)
        if found is None:
            found = str(media_kind(essence)) in self._kinds or any(fits(essence) for fits in self._patterns)
            if len(self._known) < _MOST_KNOWN:
                self._known[essence] = found
        return found


FIRST_READ, MOST_READ = 1_000, 50_000  # URLs at a time: few, so that the first lines come at once, then more
MOST_LOOKED_THROUGH = 100_000  # for one page of a listing: some tenths of a second
NAMED_READ = 5_000  # where the pages that link are named: all links to the URLs of a piece are in memory
FEW_PAGES = 8  # one page in so many is asked for by its key; more are read in one go with the others
MOST_RETRIES = 100_000  # of one host, kept while its URLs are listed
STATES = {state.name.lower(): state for state in UrlState}
_STATE_NAMES = {state: name for name, state in STATES.items()}
_ORIGINS = {origin: origin.name.lower() for origin in Origin}
_FROM_PAGES = frozenset({"status", "type", "fetched"})
_DEEP = 255  # the depth stands in two bytes more


class KnownUrl(msgspec.Struct):
    """One known URL. `state` is queued, done, failed or dropped, and `reason` says why it failed, was dropped, or has
    to be tried again. `type` is the media type, `depth` the number of links from a seed, `origin` how it became known,
    `tries` the number of requests for one that failed. `referrers` is how many pages link to it, `linked_from` names
    the first of them where that was asked for. What was not asked for is empty."""

    url: str
    state: str
    status: int | None = None
    type: str = ""
    depth: int = 0
    host: str = ""
    origin: str = ""
    reason: str = ""
    tries: int = 0
    fetched: datetime | None = None
    referrers: int = 0
    linked_from: tuple[str, ...] = ()


class UrlListing(msgspec.Struct, frozen=True):
    """Some known URLs in order. The listing goes on behind the URL `after`, which may not be among them; empty: that
    were all."""

    urls: list[KnownUrl]
    after: str


COLUMNS = frozenset(KnownUrl.__struct_fields__) - {"linked_from"}


class NumberRanges(msgspec.Struct, frozen=True):
    """Ranges of numbers, each with both its ends."""

    ranges: tuple[tuple[int, int], ...]

    def __contains__(self, number: int) -> bool:
        return any(low <= number <= high for low, high in self.ranges)

    @classmethod
    def read(cls, texts: Sequence[str], *, name: str) -> "NumberRanges":
        """Reads `404`, `400-499`, `4xx` and lists of them; raises SettingsError, which has the `name`, for others."""
        words = [word.strip().lower() for text in texts for word in text.split(",")]
        return cls(tuple(_range(word, name) for word in words))


def _range(word: str, name: str) -> tuple[int, int]:
    low, dash, high = word.partition("-")
    if len(word) == 3 and word.endswith("xx") and word[0] in "12345":
        return int(word[0]) * 100, int(word[0]) * 100 + 99
    if low.isdecimal() and (high.isdecimal() if dash else not high) and len(word) < 20:
        return int(low), int(high or low)
    raise SettingsError(f"{name} is {word!r}: give a number, a range such as 400-499, or a list with commas")


class KnownUrlFilter(msgspec.Struct, frozen=True, kw_only=True):
    """The URLs that are asked for; empty fields stand for all. `below` is the beginning of a URL, a host or a domain
    with its hosts; `host` is one host, with every port unless one is named. `statuses` and `depths` are texts such as
    `404`, `4xx` and `2-5`; `types` are media types, with `*`, or kinds such as `pdf`."""

    below: str = ""
    host: str = ""
    states: Names[str] = ()
    statuses: Sequence[str] = ()
    types: Sequence[str] = ()
    depths: Sequence[str] = ()


def url_batches(
    collection: CollectionStore,
    wanted: KnownUrlFilter | None = None,
    *,
    columns: Names[str] | None = None,
    referrers: int = 0,
) -> Iterator[list[KnownUrl]]:
    """Every URL that is asked for, in lists, in the order of hosts and paths. Only the named
    `columns` are filled, or all; so many `referrers` of each URL are named."""
    return _UrlReader(
        collection, wanted or KnownUrlFilter(), frozenset(COLUMNS if columns is None else columns), referrers
    ).batches()


def list_urls_after(collection: CollectionStore, wanted: KnownUrlFilter, after: str, *, most: int) -> UrlListing:
    """At most so many URLs behind the URL `after`, or the first ones. It looks through `MOST_LOOKED_THROUGH` URLs and
    no more: where few are wanted, it may find none and still not be at the end."""
    url = parse_url(after)
    if after and url is None:
        raise SettingsError(f"{after!r} is no URL: the listing goes on behind the one that the last answer named")
    return _UrlReader(collection, wanted, COLUMNS, 0).listing(url_key(url.href) if url else b"", most)


class _KnownHost:
    """What the URLs of one host share while they are read."""

    __slots__ = ("gave_up", "name", "origin", "retries", "size", "start")

    def __init__(self, collection: CollectionStore, key: bytes, *, has_row: bool) -> None:
        self.start = key + KEY_END
        self.size = len(self.start)
        self.origin = url_from_key(self.start)
        self.name = split_url(f"{self.origin}/").host
        self.gave_up = ""
        self.retries: dict[str, tuple[int, str]] = {}
        packed = collection.state.get(Family.HOST, key) if has_row else None
        if packed is None:
            return
        row = unpack_host(packed)
        if row.gave_up:
            self.gave_up = f"its host was given up ({failure_words(row.gave_up)})"
        elif row.retries:
            entries = islice(retry_entries(collection, key), MOST_RETRIES)
            self.retries = {entry.path: (entry.tries, failure_words(entry.failed)) for entry in entries}


class _Chosen(NamedTuple):
    """The row of a URL that is asked for; `state` is the one that counts."""

    host: _KnownHost
    key: bytes
    row: UrlRow
    state: UrlState


class _UrlReader:
    """One listing of a collection's URLs."""

    def __init__(
        self, collection: CollectionStore, wanted: KnownUrlFilter, columns: frozenset[str], named: int
    ) -> None:
        self._collection, self._state, self._columns, self._named = collection, collection.state, columns, named
        self._ranges = _key_ranges(self._state, wanted)
        if unknown := [state for state in wanted.states if state not in STATES]:
            raise SettingsError(f"--state is {unknown[0]!r}: choose from {', '.join(STATES)}")
        self._states = frozenset(STATES[state] for state in wanted.states or STATES)
        self._depths = NumberRanges.read(wanted.depths, name="depth") if wanted.depths else None
        self._statuses = NumberRanges.read(wanted.statuses, name="status") if wanted.statuses else None
        self._types = TypeFilter([read_type(word) for word in wanted.types]) if wanted.types else None
        self._judges_pages = bool(wanted.statuses or wanted.types)
        self._needs_pages = self._judges_pages or bool(columns & _FROM_PAGES)
        self._needs_reasons = bool(columns & {"reason", "tries"})
        # Whether a queued URL has failed is known from its host.
        asks_state = "state" in columns or self._states != frozenset(UrlState)
        self._needs_hosts = self._needs_reasons or asks_state
        self._host: _KnownHost | None = None
        self._index: LinkIndex | None = None

    def listing(self, after: bytes, most: int) -> UrlListing:
        found, looked_through = list[KnownUrl](), 0
        for low, high in self._ranges:
            at = max(low, after + b"\0")
            while at < high and (pairs := self._state.scan(Family.URL, at, high, limit=FIRST_READ)):
                found += self._read(pairs)
                looked_through += len(pairs)
                at = pairs[-1][0] + b"\0"
                if len(found) > most:
                    return UrlListing(self._with_referrers(found[:most]), found[most - 1].url)
                if looked_through >= MOST_LOOKED_THROUGH:
                    return UrlListing(self._with_referrers(found), url_from_key(pairs[-1][0]))
        return UrlListing(self._with_referrers(found), "")

    def batches(self) -> Iterator[list[KnownUrl]]:
        if not (self._named or "referrers" in self._columns):
            yield from self._pieces()
            return
        # The link index opens much of itself for every question: it is asked about many URLs at once.
        gathered, enough, most = list[KnownUrl](), FIRST_READ, NAMED_READ if self._named else MOST_READ
        for found in self._pieces():
            gathered += found
            if len(gathered) >= enough:
                yield self._with_referrers(gathered)
                gathered, enough = [], min(2 * enough, most)
        if gathered:
            yield self._with_referrers(gathered)

    def _pieces(self) -> Iterator[list[KnownUrl]]:
        read = FIRST_READ
        for low, high in self._ranges:
            at = low
            while pairs := self._state.scan(Family.URL, at, high, limit=read):
                if found := self._read(pairs):
                    yield found
                at, read = pairs[-1][0] + b"\0", min(2 * read, MOST_READ)

    def _read(self, pairs: list[tuple[bytes, bytes]]) -> list[KnownUrl]:
        chosen = self._chosen(pairs)
        pages = self._pages(pairs, chosen)
        if self._judges_pages:
            chosen = [one for one in chosen if (row := pages.get(one.key)) is not None and self._is_wanted(row)]
        return [_known(*one, pages.get(one.key)) for one in chosen]

    def _chosen(self, pairs: list[tuple[bytes, bytes]]) -> list[_Chosen]:
        """The rows in the wanted states and depths, each with its host and its state."""
        chosen, states, depths, host = [], self._states, self._depths, self._host
        is_all = depths is None and len(states) == len(UrlState)
        for key, packed in pairs:
            if host is None or not key.startswith(host.start):
                host = _KnownHost(self._collection, key[: key.index(KEY_END, BUCKET_BYTES)], has_row=self._needs_hosts)
            row = _row(packed[:3] if packed[2] != _DEEP else packed[:5])
            state = UrlState.FAILED if host.gave_up and row.state is UrlState.QUEUED else row.state
            if is_all or (state in states and (depths is None or row.depth in depths)):
                chosen.append(_Chosen(host, key, row, state))
        self._host = host
        return chosen

    def _pages(self, pairs: list[tuple[bytes, bytes]], chosen: list[_Chosen]) -> dict[bytes, bytes]:
        """The packed rows of those that were asked for, by key, where they are needed."""
        if self._needs_pages:
            keys = [one.key for one in chosen if one.state is not UrlState.QUEUED]
        elif self._needs_reasons:
            keys = [one.key for one in chosen if one.state is UrlState.FAILED]
        else:
            return {}
        if len(keys) * FEW_PAGES < len(pairs):
            rows = zip(keys, self._state.get_many(Family.PAGE, keys) if keys else (), strict=True)
            return {key: row for key, row in rows if row}
        return dict(self._state.walk(Family.PAGE, pairs[0][0], pairs[-1][0] + b"\0"))

    def _is_wanted(self, packed: bytes) -> bool:
        page = unpack_head(packed)
        if self._statuses is not None and page.status not in self._statuses:
            return False
        return self._types is None or self._types.has(page.essence)

    def _with_referrers(self, found: list[KnownUrl]) -> list[KnownUrl]:
        self._index = self._index or current_link_index(self._collection)
        urls = [known.url for known in found]
        for known, count in zip(found, self._index.counts(urls), strict=True):
            known.referrers = count
        if self._named:
            pages = referring_pages(self._state, self._index, urls, most=self._named)
            for known, named in zip(found, pages, strict=True):
                known.linked_from = named
        return found


def _known(host: _KnownHost, key: bytes, row: UrlRow, state: UrlState, page: bytes | None) -> KnownUrl:
    path = str(key[host.size :], "ascii")
    reason, tries, status, essence, fetched_s = "", 0, 0, "", 0.0
    if page is not None and state is UrlState.FAILED:
        whole = unpack_page(page)
        status, essence, fetched_s, tries = whole.status, whole.essence, whole.fetched_s, whole.tries
        reason = reason_of_failure(row, whole)
    elif page is not None:
        head = unpack_head(page)
        status, essence, fetched_s = head.status, head.essence, head.fetched_s
    if state is UrlState.QUEUED:
        tries, reason = host.retries.get(path, (0, ""))
    elif not reason and state is not UrlState.DONE:
        reason = row.reason.replace("-", " ") or host.gave_up
    return KnownUrl(
        host.origin + path,
        _STATE_NAMES[state],
        status or None,
        essence,
        row.depth,
        host.name,
        _ORIGINS[row.origin],
        reason,
        tries,
        datetime.fromtimestamp(int(fetched_s), UTC) if fetched_s else None,
    )


def _key_ranges(state: State, wanted: KnownUrlFilter) -> list[tuple[bytes, bytes]]:
    """The ranges of keys that hold the URLs asked for, in order."""
    low, high = host_range(wanted.host) if wanted.host else (b"", LAST_KEY)
    for part in parts_of(state, wanted.below):
        cut = ((max(low, start), min(high, key_prefix_end(start) or LAST_KEY)) for start in part.starts)
        ranges = [(start, end) for start, end in cut if start < end]
        if any(state.scan(Family.URL, start, end, limit=1) for start, end in ranges):
            break
    return ranges


@lru_cache(1_024)
def _row(start: bytes) -> UrlRow:
    """A `url` row without its position: there are few different ones."""
    return UrlRow.unpack(start)
