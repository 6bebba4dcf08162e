"""The changes of a collection: lists with filters, one page's versions, its pictures, how fresh each host is.

Reads the committed state and the archive only, beside a running crawl or without one.
"""

import heapq
import time
from collections.abc import Collection as Names
from collections.abc import Iterator
from math import exp, log1p

import msgspec

from lycosa.crawl import analysers_of
from lycosa.errors import SettingsError
from lycosa.inspect.why import explain_url
from lycosa.notebook import html_facts
from lycosa.records import Family
from lycosa.recrawl import (
    DAY_S,
    UNCHANGED,
    ChangedImage,
    ChangeKind,
    ChangeRow,
    Diff,
    Presence,
    VisitRow,
    diff_versions,
    document_at,
    history,
    image_value,
    no_bodies,
    opening,
    split_change_key,
    structure_digest,
    unpack_change,
    unpack_visit,
    version_at,
    visit_of,
)
from lycosa.search import end_of_date
from lycosa.settings import SettingsSource, merge
from lycosa.store import CollectionStore, page_at
from lycosa.web import TextCodes, host_key_of, parse_date, parse_url, url_from_key, url_key


class PictureVersion(msgspec.Struct, frozen=True):
    """One version of a picture. `value` is written out in digits, it may be longer than any number elsewhere; it, the
    `digest` of the pixels in hexadecimal and the sides are empty where the picture cannot be decoded."""

    at_s: float
    kind: ChangeKind
    status: int
    content_type: str
    size_bytes: int
    archived: bool
    width: int = 0
    height: int = 0
    value: str = ""
    digest: str = ""


class PictureChange(msgspec.Struct, frozen=True):
    """A picture before and after a change; None where its history has no such version."""

    url: str
    before: PictureVersion | None
    after: PictureVersion | None


def picture_change(collection: CollectionStore, picture: ChangedImage) -> PictureChange:
    rows = [row for row in history(collection.state, url_key(picture.url)) if row[0] <= picture.at_s]
    before = next((row for row in reversed(rows[:-1]) if row[1].size_bytes), None)  # what stood there, archived or not
    return PictureChange(
        picture.url,
        _version(collection, *before) if before else None,
        _version(collection, *rows[-1]) if rows else None,
    )


def _version(collection: CollectionStore, at_s: float, row: ChangeRow) -> PictureVersion:
    document = document_at(collection, row.place) if row.place else None
    if document is None:
        return PictureVersion(at_s, row.kind, row.status, row.essence, row.size_bytes, archived=False)
    body, found = document[1], image_value(document[1])
    seen = (found.width, found.height, str(found.value), found.digest.hex()) if found else ()
    return PictureVersion(at_s, row.kind, row.status, row.essence, len(body), True, *seen)


class CodesView(msgspec.Struct, frozen=True):
    """The change parameters of a version: how many tags it has and 64 bits of each structure string, and both text
    codes with the numbers of characters, and of distinct ones, that they come from."""

    tags: int
    structure: tuple[str, str]
    text_code_1: float
    text_code_2: float
    characters: int
    distinct: int

    @classmethod
    def of(cls, structure: tuple[int, int, int], codes: tuple[int, int, int, int]) -> "CodesView | None":
        """The codes of a row; None where it has none: no document, or a row of an earlier version of Lycosa."""
        if not structure[0] and not codes[3]:
            return None
        text, (tags, *hashes) = TextCodes(*codes), structure
        first, last = (f"{number:016x}" for number in hashes)
        return cls(tags, (first, last), text.mean_per_symbol, text.root_of_squares, text.length, text.distinct)

    def __str__(self) -> str:
        strings = " ".join(self.structure)
        return f"structure {strings} of {self.tags:,} tags, text codes {self.text_code_1:.6g} {self.text_code_2:.6g}"


class ChangeView(msgspec.Struct, frozen=True):
    """One change as it is shown. `at_s` is Unix time; `archived`: the version that it brought can be read; `is_kept`:
    its body was kept at all. `sent_bytes` is the size of its body as sent, or of the document that a table made,
    `document_bytes` that of the decoded body, 0 where it is not known. `pictures` are the URLs of the page's images
    that changed."""

    url: str
    at_s: float
    kind: ChangeKind
    word: str
    where: str
    size: int
    also: tuple[ChangeKind, ...]
    status: int
    content_type: str
    sent_bytes: int
    document_bytes: int
    archived: bool
    is_kept: bool
    codes: CodesView | None = None
    pictures: tuple[str, ...] = ()


class ChangeFilter(msgspec.Struct, frozen=True, kw_only=True):
    """The changes that are asked for; empty fields stand for all."""

    since_s: float = 0.0
    until_s: float = float("inf")
    host: str = ""
    kinds: Names[str] = ()


class PageHistory(msgspec.Struct, frozen=True):
    """The versions of one page, the oldest first, how often it changes, and the last difference. `pictures` are the
    images that changed last, before and after."""

    url: str
    versions: tuple[ChangeView, ...]
    visits: int
    changes: int
    changes_per_day: float
    checked_s: float
    due_s: float
    presence: str
    compared: tuple[float, float] | None = None
    diff: Diff | None = None
    pictures: tuple[PictureChange, ...] = ()


class UrlView(msgspec.Struct, frozen=True):
    """The answer of `lycosa why`: its sentences, and for a page the sizes and change parameters of the stored
    version, with both structure strings in full; what its publisher says on its use, and what that allows (`y`) and
    forbids (`n`)."""

    url: str
    says: tuple[str, ...]
    status: int = 0
    content_type: str = ""
    fetched_s: float = 0.0
    sent_bytes: int = 0
    document_bytes: int = 0
    structure: tuple[str, str] = ("", "")
    codes: CodesView | None = None
    preferences: tuple[str, ...] = ()
    usage: dict[str, str] = {}

    def __str__(self) -> str:
        return "\n  ".join((self.url, *self.says))

    def _repr_html_(self) -> str:
        return html_facts(self.url, {"why": "\n".join(self.says)})


class HostFreshness(msgspec.Struct, frozen=True):
    """How fresh the revisited pages of a host are; visits of its redirects and sitemaps count as visits, but not as
    pages. `fresh` is the expected share of pages that are still as stored, `age_days` their mean age since the last
    visit, `cost` the mean harmonic cost at this moment."""

    host: str
    pages: int
    gone: int
    fresh: float
    age_days: float
    cost: float
    visits: int
    changes: int
    saved_bytes: int
    due: int


def _view(url: str, at_s: float, row: ChangeRow) -> ChangeView:
    return ChangeView(
        url,
        at_s,
        row.kind,
        row.word,
        row.where,
        row.size,
        row.also,
        row.status,
        row.essence,
        row.size_bytes,
        row.document_bytes,
        bool(row.place),
        bool(row.place),
        CodesView.of(row.structure, row.codes),
        tuple(picture.url for picture in row.pictures),
    )


def change_time(text: str, name: str, *, now_s: float, is_end: bool = False) -> float:
    """A date in UTC or a year, its beginning or its end, or a time so long ago; `name` is what the user calls it."""
    text = text.strip()
    is_date = "-" in text or (len(text) == len("2026") and text.isdigit())
    if is_date and (found := parse_date(text)) is not None:
        return end_of_date(text) if is_end else found
    if not text:
        raise SettingsError(f"{name} is empty: write 2h, 3d or a date such as 2026-05-31")
    days = text.lower().removesuffix("d")
    if days != text.lower() and days.replace(".", "", 1).isdigit():
        return now_s - float(days) * DAY_S
    try:
        return now_s - (merge(SettingsSource({"time_s": text}, lambda _: name)).time_s or 0.0)
    except SettingsError:
        raise SettingsError(f"{name} is {text!r}: write 2h, 3d or a date such as 2026-05-31") from None


def list_changes(collection: CollectionStore, wanted: ChangeFilter, *, most: int) -> list[ChangeView]:
    """The latest changes, the newest first; the first version of a page is none, unless a recrawl found the page."""
    return heapq.nlargest(most, all_changes(collection, wanted), key=lambda view: (view.at_s, view.url))


def all_changes(collection: CollectionStore, wanted: ChangeFilter) -> Iterator[ChangeView]:
    """The same as they are found, in the order of hosts and paths."""
    start, end = host_range(wanted.host) if wanted.host else (b"", None)
    for found, packed in collection.state.walk(Family.CHANGE, start, end):
        key, at_s = split_change_key(found)
        if not wanted.since_s <= at_s <= wanted.until_s:
            continue
        row = unpack_change(packed)
        if (
            row.kind is ChangeKind.NEW and not row.size
        ):  # the opening of a history: the page is as old as the collection
            continue
        is_change = row.kind not in UNCHANGED  # new values from a table are a version, but no change
        if row.kind in wanted.kinds or (is_change and (not wanted.kinds or row.word in wanted.kinds)):
            yield _view(url_from_key(key), at_s, row)


def url_view(collection: CollectionStore, text: str) -> UrlView:
    """The answer of `explain_url` as a record."""
    url, *says = explain_url(collection, text)
    parsed = parse_url(url)
    row = page_at(collection.state, url_key(parsed.href)) if parsed else None
    if row is None:
        return UrlView(url, tuple(says))
    return UrlView(
        url,
        tuple(says),
        row.status,
        row.essence,
        row.fetched_s,
        row.size_bytes,
        row.document_bytes,
        row.structure,
        CodesView.of(structure_digest(row.structure), row.codes),
        tuple(row.preferences.splitlines()),
        row.usage(now=time.time()) if row.is_page else {},
    )


def knows_host(collection: CollectionStore, host: str) -> bool:
    """Is the host known, under any port unless one is named?"""
    return next(iter(collection.state.walk(Family.HOST, *host_range(host))), None) is not None


def host_range(host: str) -> tuple[bytes, bytes]:
    """The keys of a host, of all its ports unless one is named."""
    url = parse_url(f"http://{host}/")
    if url is None or "/" in host:
        raise SettingsError(f"{host!r} is not the name of a host")
    key = url_key(url.href)
    site = host_key_of(key)
    prefix = site.rsplit(b":", 1 if ":" in host.rpartition("]")[2] else 2)[0]
    return prefix + b":", prefix + b";"


def page_history(
    collection: CollectionStore, text: str, *, old: int | None = None, new: int | None = None
) -> PageHistory:
    """The versions of a URL and the difference of two of them, by number from 1; without numbers the last two."""
    url = parse_url(text)
    key = url_key(url.href) if url else b""
    page = page_at(collection.state, key) if url else None
    if url is None or page is None:
        raise SettingsError(f"{text!r} was never fetched into this collection")
    rows = list(history(collection.state, key))
    if not rows:  # it never changed: its one version is the page
        rows = [(page.fetched_s, opening(page))]
    visit = visit_of(collection.state, key) or VisitRow()
    compared, found = _difference(collection, url.href, rows, old, new)
    return PageHistory(
        url.href,
        tuple(_read(collection, _view(url.href, at_s, row), row) for at_s, row in rows),
        visit.visits,
        visit.changes,
        visit.rate,
        visit.checked_s or page.fetched_s,
        visit.due_s,
        visit.presence,
        compared,
        found,
        tuple(picture_change(collection, picture) for picture in _pictures(url.href, rows[:new])),
    )


def _pictures(url: str, rows: list[tuple[float, ChangeRow]]) -> tuple[ChangedImage, ...]:
    """The images that changed last; an image is its own."""
    for at_s, row in reversed(rows):
        if row.pictures or (row.kind is ChangeKind.IMAGE and row.essence.startswith("image/")):
            return row.pictures or (ChangedImage(url, at_s),)
    return ()


def _read(collection: CollectionStore, view: ChangeView, row: ChangeRow) -> ChangeView:
    """The view with the size of the document from the archive, and whether it is there: older rows lack that size."""
    if not row.place:
        return view
    document = document_at(collection, row.place)
    if document is None:
        return msgspec.structs.replace(view, archived=False)
    return msgspec.structs.replace(view, document_bytes=len(document[1]))


def _difference(
    collection: CollectionStore, url: str, rows: list[tuple[float, ChangeRow]], old: int | None, new: int | None
) -> tuple[tuple[float, float] | None, Diff | None]:
    archived = [number for number, (_, row) in enumerate(rows, start=1) if row.place]
    if not archived and old is None and new is None:
        return None, None
    if new is None:
        new = archived[-1] if archived else None
    if old is None:
        old = next((number for number in reversed(archived) if new is not None and number < new), None)
    if old is None or new is None:
        return None, None
    if not archived:
        raise SettingsError(f"versions of {url} can only be told apart by their codes: {no_bodies(collection.path)}")
    for number in (old, new):
        if number not in archived:
            raise SettingsError(f"version {number} of {url} is not in the archive: choose from {archived}")
    analysers = analysers_of(collection.path)
    versions = [version_at(collection, rows[number - 1][1].place, url, analysers) for number in (old, new)]
    if versions[0] is None or versions[1] is None:
        return None, None
    return (rows[old - 1][0], rows[new - 1][0]), diff_versions(versions[0], versions[1])


def freshness(collection: CollectionStore) -> Iterator[HostFreshness]:
    """The freshness of every host that has pages to revisit."""
    now = time.time()
    host, rows = b"", list[tuple[VisitRow, bool]]()
    for key, packed in collection.state.walk(Family.VISIT):
        here = host_key_of(key)
        if here != host and rows:
            yield _host(host, rows, now)
            rows = []
        host = here
        page = page_at(collection.state, key)
        rows.append((unpack_visit(packed), page is not None and page.is_page))
        if len(rows) >= 100_000:  # a host this large is reported in parts
            yield _host(host, rows, now)
            rows = []
    if rows:
        yield _host(host, rows, now)


def _host(host: bytes, visits: list[tuple[VisitRow, bool]], now: float) -> HostFreshness:
    """The freshness of a host from its visit rows, each with whether it is of a page."""
    rows, pages = [row for row, _ in visits], [row for row, is_page in visits if is_page]
    seen = [row for row in pages if row.presence is not Presence.GONE]
    # A page that was never visited again was seen when it was fetched: an interval, more or less, before it is due.
    ages = [max(0.0, now - (row.checked_s or row.due_s - row.interval * DAY_S)) / DAY_S for row in seen]
    pairs = list(zip(seen, ages, strict=True))
    count = max(len(seen), 1)
    return HostFreshness(
        url_from_key(host + b"\0"),
        len(seen),
        len(pages) - len(seen),
        sum(exp(-row.rate * age) for row, age in pairs) / count,
        sum(ages) / count,
        sum(log1p(row.rate * age) for row, age in pairs) / count,
        sum(row.visits for row in rows),
        sum(row.changes for row in rows),
        sum(row.saved for row in rows),
        sum(row.due_s <= now for row in rows),
    )
