"""The tables of a collection: `pages`, `links`, `hosts`, `changes`, `urls` and, where fields are extracted, `fields`.

A table is a name, its columns and a reader of its records, a list at a time; a column makes its value of a record. The
columns of content (headers, body, text …) read the archive when they are asked for, and only then. Nothing here knows
Arrow or DuckDB: `inspect.arrow` makes batches of these tables, for `lycosa sql`, `Collection.frame` and `.arrow`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from lycosa.crawl import extractor_of
from lycosa.errors import SettingsError, StoreError
from lycosa.graph import outgoing_links
from lycosa.inspect.changes import ChangeFilter, ChangeView, all_changes
from lycosa.inspect.host_table import HostView, hosts
from lycosa.inspect.pages import StoredPage, StoredPages
from lycosa.inspect.urls import KnownUrl, url_batches
from lycosa.records import Family
from lycosa.store import ArchiveUnavailable, CollectionStore, PageRow, WarcLocation, unpack_page, warc_path
from lycosa.web import domain_of, split_url, url_from_key

FIRST_RECORDS, MOST_RECORDS = 256, 4_096  # read at a time: few first, since many a question wants the first rows only

T = TypeVar("T")
Wanted = frozenset[str]


class TableColumn(NamedTuple):
    """A column: its name, the name of its Arrow type, what it is, and how it is made of a record. `is_content`: it is
    read from the archive, and is no usual column."""

    name: str
    type: str
    about: str
    value: Callable[[Any], Any]
    is_content: bool = False


class CollectionTable(NamedTuple):
    """A table; `read` gives its records in lists, with what the wanted columns need. `is_of_content`: its columns of
    content are what it is for, so they are usual."""

    name: str
    about: str
    columns: tuple[TableColumn, ...]
    read: Callable[[CollectionStore, Wanted], Iterable[list[Any]]]
    is_of_content: bool = False

    @property
    def usual(self) -> tuple[str, ...]:
        """The columns that are meant where none is named: all but the content, and all of a table that is about it."""
        return tuple(column.name for column in self.columns if self.is_of_content or not column.is_content)

    def chosen(self, names: Iterable[str]) -> tuple[TableColumn, ...]:
        """The columns of these names, in that order; raises SettingsError for one that there is not."""
        known = {column.name: column for column in self.columns}
        if unknown := [name for name in names if name not in known]:
            raise SettingsError(f"the table {self.name} has no column {unknown[0]!r}: it has {', '.join(known)}")
        return tuple(known[name] for name in names)


def tables_of(collection: CollectionStore) -> dict[str, CollectionTable]:
    """All tables of a collection, by name."""
    found = [PAGES, LINKS, HOSTS, CHANGES, URLS]
    if extractor := extractor_of(collection.path):
        found.append(_fields_table(extractor.lists))
    return {table.name: table for table in found}


def table_named(collection: CollectionStore, name: str) -> CollectionTable:
    """The table of this name; raises SettingsError if there is none."""
    tables = tables_of(collection)
    if name not in tables:
        hint = "; it has fields once a crawl has --field" if name == "fields" else ""
        raise SettingsError(f"there is no table {name!r}: {', '.join(tables)}{hint}")
    return tables[name]


def gathered(records: Iterable[T]) -> Iterator[list[T]]:
    """Records in lists, small ones first."""
    rest, size = iter(records), FIRST_RECORDS
    while some := list(islice(rest, size)):
        yield some
        size = min(2 * size, MOST_RECORDS)


def _host(url: str) -> str:
    return split_url(url).host


def _ms(unix_s: float) -> int | None:
    """A time as Arrow's timestamps have it; None where there is none."""
    return int(unix_s * 1000) if unix_s else None


# pages


class PageRecord:
    """A stored page by its row; its content is read when it is first asked for. `page` is None where nothing of it is
    kept or its record is damaged."""

    def __init__(self, url: str, row: PageRow, pages: StoredPages) -> None:
        self.url, self.row, self._pages = url, row, pages

    @cached_property
    def page(self) -> StoredPage | None:
        if not self.row.place:
            return None
        page = self._pages.page(self.url, self.row)
        try:
            assert page.headers is not None  # read now
        except ArchiveUnavailable:
            raise
        except StoreError:
            return None
        return page

    @cached_property
    def place(self) -> WarcLocation | None:
        return WarcLocation.unpack(self.row.place) if self.row.place else None


def _read_pages(collection: CollectionStore, _: Wanted) -> Iterator[list[PageRecord]]:
    pages = StoredPages(collection)
    rows = ((key, unpack_page(packed)) for key, packed in collection.state.walk(Family.PAGE))
    return gathered(PageRecord(url_from_key(key), row, pages) for key, row in rows if row.is_stored_page)


def _warc_name(record: PageRecord) -> str | None:
    return warc_path(Path(), record.place.file_number).name if record.place else None


def _usage(purpose: str) -> Callable[[PageRecord], str | None]:
    return lambda record: record.row.usage(now=record.row.fetched_s).get(purpose)


def _metadata(name: str) -> Callable[[PageRecord], str | None]:
    return lambda record: (getattr(record.page.metadata, name) or None) if record.page else None


def _column(name: str, type: str, about: str, value: Callable[[PageRecord], Any]) -> TableColumn:
    return TableColumn(name, type, about, value, is_content=True)


PAGES = CollectionTable(
    "pages",
    "the stored pages: documents with a status from 200 to 299",
    (
        TableColumn("url", "string", "its URL", lambda r: r.url),
        TableColumn("host", "string", "its host", lambda r: _host(r.url)),
        TableColumn("domain", "string", "the registrable domain of the host", lambda r: domain_of(_host(r.url))),
        TableColumn("status", "int16", "the status of the answer", lambda r: r.row.status),
        TableColumn("fetched", "timestamp[ms]", "when it was fetched, UTC", lambda r: _ms(r.row.fetched_s)),
        TableColumn("content_type", "string", "its media type", lambda r: r.row.essence),
        TableColumn("charset", "string", "its character encoding", lambda r: r.row.charset or None),
        TableColumn("language", "string", "its language, ISO 639-1", lambda r: r.row.language or None),
        TableColumn("title", "string", "its title", lambda r: r.row.title or None),
        TableColumn("depth", "int32", "links from a seed", lambda r: r.row.depth),
        TableColumn("bytes", "int64", "the size of its body as sent", lambda r: r.row.size_bytes),
        TableColumn("document_bytes", "int64", "the size decoded", lambda r: r.row.document_bytes or None),
        TableColumn("took_ms", "int32", "how long its request took", lambda r: r.row.took_ms or None),
        TableColumn("links", "int32", "how many links it has", lambda r: r.row.links),
        TableColumn("duplicate_of", "string", "the URL that had its document first", lambda r: r.row.original or None),
        TableColumn("digest", "string", "SHA-1 of its body, hexadecimal", lambda r: r.row.payload_sha1.hex() or None),
        TableColumn("etag", "string", "its ETag", lambda r: r.row.etag or None),
        TableColumn("last_modified", "string", "its Last-Modified, as sent", lambda r: r.row.last_modified or None),
        TableColumn("noindex", "bool", "whether it asks not to be indexed", lambda r: r.row.noindex),
        TableColumn("preferences", "string", "what its publisher says on its use", lambda r: r.row.preferences or None),
        TableColumn("usage_search", "string", "whether search may use it: y, n or nothing", _usage("search")),
        TableColumn("usage_ai_train", "string", "whether AI training may", _usage("ai-train")),
        TableColumn("usage_ai_input", "string", "whether AI may take it as input", _usage("ai-input")),
        TableColumn("truncated", "string", "why its body is cut off", lambda r: r.row.truncated or None),
        TableColumn("warc_filename", "string", "the archive file of its record", _warc_name),
        TableColumn("warc_offset", "int64", "where the record begins", lambda r: r.place.offset if r.place else None),
        TableColumn("warc_length", "int64", "its bytes, packed", lambda r: r.place.length if r.place else None),
        _column("text", "string", "its readable text", lambda r: r.page.text if r.page else None),
        _column("markdown", "string", "the same in Markdown", lambda r: r.page.markdown if r.page else None),
        _column("description", "string", "its description", _metadata("description")),
        _column("author", "string", "its author", _metadata("author")),
        _column("published", "string", "when it was published, as it says", _metadata("published")),
        _column("modified", "string", "when it was changed, as it says", _metadata("modified")),
        _column("canonical", "string", "the URL it calls canonical", _metadata("canonical")),
        _column("headers", "map<string>", "header fields by lower-case name", lambda r: _items(r.page)),
        _column("body", "binary", "its body, decoded", lambda r: r.page.body if r.page else None),
    ),
    _read_pages,
)


def _items(page: StoredPage | None) -> list[tuple[str, str]] | None:
    return list(page.headers.items()) if page else None


# links


class LinkRecord(NamedTuple):
    """A link of a page; `position` counts from 0, in the order of the page."""

    source: str
    target: str
    kind: str
    anchor: str
    position: int


def _read_links(collection: CollectionStore, _: Wanted) -> Iterator[list[LinkRecord]]:
    return gathered(
        LinkRecord(url, link.url, link.kind, link.anchor, position)
        for key, packed in collection.state.walk(Family.LINK)
        for url in (url_from_key(key),)
        for position, link in enumerate(outgoing_links(packed, url))
    )


LINKS = CollectionTable(
    "links",
    "the links that are followed, each target once a page; redirects are links of the kind redirect",
    (
        TableColumn("source", "string", "the URL of the page it is on", lambda r: r.source),
        TableColumn("target", "string", "the URL it leads to", lambda r: r.target),
        TableColumn("kind", "string", "its element: a, link, frame, redirect …", lambda r: r.kind),
        TableColumn("anchor", "string", "its words", lambda r: r.anchor or None),
        TableColumn("position", "int32", "its place on the page, from 0", lambda r: r.position),
        TableColumn("source_host", "string", "the host of the page", lambda r: _host(r.source)),
        TableColumn("target_host", "string", "the host it leads to", lambda r: _host(r.target)),
    ),
    _read_links,
)


# hosts


def _read_hosts(collection: CollectionStore, _: Wanted) -> Iterator[list[HostView]]:
    return gathered(hosts(collection))


HOSTS = CollectionTable(
    "hosts",
    "the hosts, each with its scheme and port",
    (
        TableColumn("origin", "string", "scheme, host and port", lambda r: r.host),
        TableColumn("host", "string", "the host alone", lambda r: _host(f"{r.host}/")),
        TableColumn("domain", "string", "its registrable domain", lambda r: domain_of(_host(f"{r.host}/"))),
        TableColumn("pages", "int64", "pages kept", lambda r: r.pages),
        TableColumn("queued", "int64", "URLs queued", lambda r: r.queued),
        TableColumn("failed", "int64", "URLs that failed", lambda r: r.failed),
        TableColumn("requests", "int64", "requests made", lambda r: r.requests),
        TableColumn("retries", "int64", "URLs that wait for another try", lambda r: r.retries),
        TableColumn("bytes", "int64", "bytes received", lambda r: r.bytes),
        TableColumn("mean_s", "float64", "mean response time, seconds", lambda r: r.mean_s),
        TableColumn("delay_s", "float64", "pause between two requests", lambda r: r.delay_s),
        TableColumn("address", "string", "its address", lambda r: r.address or None),
        TableColumn("robots", "string", "its robots.txt in words", lambda r: r.robots),
        TableColumn("preferences", "string", "what it says on the use of its content", lambda r: r.preferences or None),
        TableColumn("gave_up", "string", "why it was given up", lambda r: r.gave_up or None),
        TableColumn("first_asked", "timestamp[ms]", "first answer, UTC", lambda r: _ms(r.first_s)),
        TableColumn("last_asked", "timestamp[ms]", "last answer, UTC", lambda r: _ms(r.last_s)),
    ),
    _read_hosts,
)


# changes


def _read_changes(collection: CollectionStore, _: Wanted) -> Iterator[list[ChangeView]]:
    return gathered(all_changes(collection, ChangeFilter()))


CHANGES = CollectionTable(
    "changes",
    "what recrawls found changed",
    (
        TableColumn("url", "string", "the page", lambda r: r.url),
        TableColumn("seen", "timestamp[ms]", "when the change was seen, UTC", lambda r: _ms(r.at_s)),
        TableColumn("kind", "string", "text, structure, image, moved, gone, back, new …", lambda r: str(r.kind)),
        TableColumn("word", "string", "new, changed or removed", lambda r: str(r.word)),
        TableColumn("details", "string", "where on the page, in words", lambda r: r.where or None),
        TableColumn("size", "int64", "how much changed", lambda r: r.size),
        TableColumn("status", "int16", "the status of the answer", lambda r: r.status or None),
        TableColumn("content_type", "string", "its media type", lambda r: r.content_type or None),
        TableColumn("bytes", "int64", "the size of the new body as sent", lambda r: r.sent_bytes),
        TableColumn("is_archived", "bool", "whether the version was archived", lambda r: r.archived),
    ),
    _read_changes,
)


# urls


def _read_urls(collection: CollectionStore, wanted: Wanted) -> Iterator[list[KnownUrl]]:
    return url_batches(collection, columns=wanted)


def _fetched_ms(known: KnownUrl) -> int | None:
    return int(known.fetched.timestamp()) * 1000 if known.fetched else None


URLS = CollectionTable(
    "urls",
    "every known URL, fetched or not",
    (
        TableColumn("url", "string", "the URL", lambda r: r.url),
        TableColumn("state", "string", "queued, done, failed or dropped", lambda r: r.state),
        TableColumn("status", "int16", "the status of the answer", lambda r: r.status),
        TableColumn("type", "string", "its media type", lambda r: r.type or None),
        TableColumn("depth", "int32", "links from a seed", lambda r: r.depth),
        TableColumn("host", "string", "its host", lambda r: r.host),
        TableColumn("origin", "string", "how it became known: seed, link, sitemap …", lambda r: r.origin),
        TableColumn("reason", "string", "why it failed or was dropped", lambda r: r.reason or None),
        TableColumn("tries", "int32", "requests for one that failed", lambda r: r.tries or None),
        TableColumn("fetched", "timestamp[ms]", "when it was asked for last, UTC", _fetched_ms),
        TableColumn("referrers", "int64", "how many pages link to it", lambda r: r.referrers),
    ),
    _read_urls,
)


# fields


def _fields_table(lists: Mapping[str, bool]) -> CollectionTable:
    """The table of extracted fields, one column a field; `lists` says of each whether it is a list."""
    columns = (
        _column(name, "list<string>" if is_list else "string", "a field of the crawl", _field(name))
        for name, is_list in lists.items()
    )
    url = TableColumn("url", "string", "the page", lambda r: r.url)
    # A field may have any name; the URL of the page keeps its own.
    kept = (column for column in columns if column.name != url.name)
    return CollectionTable("fields", "the fields extracted from each page (--field)", (url, *kept), _read_pages, True)


def _field(name: str) -> Callable[[PageRecord], Any]:
    return lambda record: record.page.fields.get(name) if record.page else None
