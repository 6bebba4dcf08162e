"""Which pages of a collection an export takes, and in which order it gets them: by host, then by path.

Hosts are ranges of keys, so a filter on one host reads the rows of that host alone; a path is compared with the key
before the row is decoded; everything else is in the row. `PageSelection.read` makes a selection of what a user writes.
`select` gives each page with its cursor, and goes on behind a cursor: that is how an export is resumed.
"""

import re
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import compress, islice
from pathlib import Path
from typing import NamedTuple

import msgspec

from lycosa.errors import SettingsError
from lycosa.frontier import unpack_host
from lycosa.inspect import StoredPage, StoredPages, TypeFilter, change_time, key_prefixes, read_type, stats_of
from lycosa.records import Family, FieldRule
from lycosa.recrawl import UNCHANGED, split_change_key, unpack_change
from lycosa.search import QueryMatcher, parse_query
from lycosa.store import CollectionStore, PageRow, State, unpack_page
from lycosa.web import (
    Purpose,
    key_prefix_end,
    matches_pattern,
    pattern_pieces,
    three_letters,
    url_from_key,
)

_KEY_PATH = b"\0"
_BUCKET_BYTES = 2
_STATUS = re.compile(r"([1-5])(\d\d|xx)(?:-([1-5]\d\d))?")
_TAG = re.compile(r"[A-Za-z]{2,3}([-_][A-Za-z0-9]{1,8})*")
_NEVER = float("inf")

ASKED_AT_ONCE = 4_000  # rows about which the index is asked

Test = Callable[[PageRow], bool]
Rows = Iterator[tuple[bytes, PageRow]]


class PageSelection(msgspec.Struct, frozen=True, kw_only=True):
    """The pages that are asked for; empty fields stand for all. Times are Unix times of fetches. `versions`: every
    stored version of a page, the oldest first, in place of the newest alone. `purpose`: pages whose publishers forbid
    that are left out."""

    hosts: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    since_s: float = 0.0
    until_s: float = _NEVER
    types: tuple[str, ...] = ()
    statuses: tuple[tuple[int, int], ...] = ()
    languages: tuple[str, ...] = ()
    query: str = ""
    changed_since_s: float = 0.0
    versions: bool = False
    purpose: Purpose | None = None

    @classmethod
    def read(
        cls,
        *,
        host: Sequence[str] = (),
        path: Sequence[str] = (),
        since: str = "",
        until: str = "",
        type: Sequence[str] = (),
        status: Sequence[str | int] = (),
        language: Sequence[str] = (),
        query: str = "",
        changed_since: str = "",
        versions: bool = False,
        purpose: str = "",
    ) -> "PageSelection":
        """A selection as a user writes it; raises SettingsError for what cannot be understood."""
        if query.strip():
            parse_query(query)  # says what is wrong before any work is done
        return cls(
            hosts=_texts(host, "host"),
            paths=tuple(map(_path, _texts(path, "path"))),
            since_s=_time(since, "since"),
            until_s=_time(until, "until", is_end=True) if until else _NEVER,
            types=tuple(map(read_type, _texts(type, "type"))),
            statuses=tuple(_statuses(str(word)) for word in ([status] if isinstance(status, int) else status)),
            languages=tuple(map(_language, _texts(language, "language"))),
            query=query.strip(),
            changed_since_s=_time(changed_since, "changed-since"),
            versions=versions,
            purpose=_purpose(purpose),
        )

    @property
    def is_everything(self) -> bool:
        """Whether nothing was asked for in particular."""
        return self == PageSelection()


def expected_pages(collection: CollectionStore, wanted: PageSelection) -> int:
    """How many pages a selection has, where that is known without a look at each: all, or those of some hosts; else
    0."""
    if wanted.is_everything:
        stats = stats_of(collection)
        return stats.pages - stats.followed_only
    if wanted != PageSelection(hosts=wanted.hosts):  # a purpose may leave any of them out
        return 0
    ranges = _ranges(collection.state, wanted.hosts, None, keeps_last=False)
    rows = (row for start, end in ranges for _, row in collection.state.walk(Family.HOST, start, end))
    return sum(unpack_host(row).pages for row in rows)


class Cursor(NamedTuple):
    """How far an export has come: the key of the last URL, and how many versions of it are done."""

    key: bytes
    versions: int = 0


class Selected(NamedTuple):
    """A page that is to be exported, and where the export stands once that is done."""

    page: StoredPage
    cursor: Cursor


def select(
    collection: CollectionStore,
    wanted: PageSelection,
    *,
    takes_answers: bool = False,
    after: Cursor | None = None,
    fields: Sequence[FieldRule] | None = None,
) -> Iterator[Selected]:
    """The pages that are asked for, in the order of their keys, behind `after`. Without statuses in `wanted` these are
    documents, with `takes_answers` all that was answered. `fields` are those of the pages, in place of those that the
    collection names."""
    contents = StoredPages(collection, fields=fields)
    rows = _rows(collection.state, wanted, takes_answers, after)
    if wanted.query:
        rows = _found(rows, collection.path, wanted.query)
    for key, row in rows:
        page = contents.page(url_from_key(key), row)
        if wanted.languages and not row.language and not _speaks(page.language, wanted.languages):
            continue  # it declares none, and its text is in another
        if not wanted.versions:
            yield Selected(page, Cursor(key))
            continue
        done = after.versions if after and after.key == key else 0
        for number, version in enumerate((*page.versions, page), 1):
            if number > done and wanted.since_s <= version.row.fetched_s <= wanted.until_s:
                yield Selected(version, Cursor(key, number))


def _rows(state: State, wanted: PageSelection, takes_answers: bool, after: Cursor | None) -> Rows:
    tests = _tests(wanted, takes_answers)
    paths = [
        partial(matches_pattern, pattern_pieces(path.removesuffix("$")), to_end=path.endswith("$"))
        for path in wanted.paths
    ]
    for start, end in _ranges(state, wanted.hosts, after, keeps_last=wanted.versions):
        changes = _LastChanges(state, start, end) if wanted.changed_since_s else None
        for key, packed in state.walk(Family.PAGE, start, end):
            if paths:
                path = str(key[key.index(_KEY_PATH, _BUCKET_BYTES) + 1 :], "ascii")
                if not any(matches(path) for matches in paths):
                    continue
            row = unpack_page(packed)
            if all(test(row) for test in tests) and (changes is None or changes.of(key, row) >= wanted.changed_since_s):
                yield key, row


def _found(rows: Rows, path: Path, query: str) -> Rows:
    """Those of the rows that a search finds; the index is asked about some thousand at a time."""
    matcher = QueryMatcher(path, query)
    try:
        while some := list(islice(rows, ASKED_AT_ONCE)):
            yield from compress(some, matcher.found([row for _, row in some]))
    finally:
        matcher.close()


def _ranges(
    state: State, hosts: Sequence[str], after: Cursor | None, *, keeps_last: bool
) -> list[tuple[bytes, bytes | None]]:
    """The ranges of keys of these hosts, in order and apart from each other, behind a cursor."""
    prefixes = sorted({prefix for host in hosts for prefix in key_prefixes(state, host)}) if hosts else [b""]
    apart: list[bytes] = []
    for prefix in prefixes:
        if not apart or not prefix.startswith(apart[-1]):
            apart.append(prefix)
    behind = b"" if after is None else after.key if keeps_last else after.key + b"\0"
    ranges = [(max(prefix, behind), key_prefix_end(prefix)) for prefix in apart]
    return [(start, end) for start, end in ranges if end is None or start < end]


def _tests(wanted: PageSelection, takes_answers: bool) -> list[Test]:
    tests: list[Test] = []
    if wanted.statuses:
        tests.append(lambda row: any(low <= row.status <= high for low, high in wanted.statuses))
    elif takes_answers:
        tests.append(lambda row: row.status > 0)
    else:
        tests.append(lambda row: row.is_stored_page)
    if (wanted.since_s or wanted.until_s < _NEVER) and not wanted.versions:
        tests.append(lambda row: wanted.since_s <= row.fetched_s <= wanted.until_s)
    if wanted.types:
        types = TypeFilter(wanted.types)
        tests.append(lambda row: types.has(row.essence))
    if wanted.languages:
        tests.append(lambda row: not row.language or _speaks(row.language, wanted.languages))
    return tests


def _speaks(language: str, wanted: Sequence[str]) -> bool:
    said = language.lower().replace("_", "-")
    names = (said, three_letters(said))
    return any(word in names or said.startswith(f"{word}-") for word in wanted)


class _LastChanges:
    """When each page of a range changed last: its history is read beside the pages, since it has the same order."""

    def __init__(self, state: State, start: bytes, end: bytes | None) -> None:
        self._rows = state.walk(Family.CHANGE, start, end)
        self._next: tuple[bytes, bytes] | None = next(self._rows, None)

    def of(self, key: bytes, row: PageRow) -> float:
        """The time of the last change; for a page without a history that of its fetch. Asked in the order of keys."""
        last = 0.0
        while self._next is not None:
            found, at_s = split_change_key(self._next[0])
            if found > key:
                break
            if found == key and unpack_change(self._next[1]).kind not in UNCHANGED:
                last = max(last, at_s)
            self._next = next(self._rows, None)
        return last or row.fetched_s


def _texts(words: Sequence[str], name: str) -> tuple[str, ...]:
    found = (words,) if isinstance(words, str) else tuple(words)
    if any(not word.strip() for word in found):
        raise SettingsError(f"--{name} is empty: give a value, or leave the option out")
    return tuple(word.strip() for word in found)


def _path(text: str) -> str:
    if not text.startswith(("/", "*")):
        raise SettingsError(f"--path is {text!r}: a path begins with /, such as /docs/ or /*/news/*.html$")
    return text


def _language(text: str) -> str:
    if not _TAG.fullmatch(text):
        raise SettingsError(f"--language is {text!r}: give a code such as en, de-AT or deu")
    return text.lower().replace("_", "-")


def _time(text: str, name: str, *, is_end: bool = False) -> float:
    return change_time(text, f"--{name}", now_s=time.time(), is_end=is_end) if text else 0.0


def _purpose(text: str) -> Purpose | None:
    if text and text not in set(Purpose):
        raise SettingsError(f"--purpose is {text!r}: it is one of {', '.join(Purpose)}")
    return Purpose(text) if text else None


def _statuses(text: str) -> tuple[int, int]:
    found = _STATUS.fullmatch(text.strip().lower())
    if found is None or (found[3] and found[2] == "xx"):
        raise SettingsError(f"--status is {text!r}: give a status such as 404, a class such as 4xx, or 400-499")
    if found[2] == "xx":
        return int(found[1]) * 100, int(found[1]) * 100 + 99
    return int(found[1] + found[2]), int(found[3] or found[1] + found[2])
