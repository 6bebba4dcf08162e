"""A collection for programs that read it: what it holds, asked in Python.

    with lycosa.open("my-crawl") as collection:
        for page in collection:
            print(page.url, page.title, page.text)
        for found in collection.search('solar "heat pump"').results:
            print(found.score, found.url, found.title)

Works beside a running crawl, on a folder that may only be read, and with or without `with`: it is opened when it is
first asked, stays open, and sees what came meanwhile. `lycosa.open` opens at once, so that what is no collection is
said there. Ask it from one thread.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from lycosa.crawl import CrawlStats
from lycosa.errors import MissingExtra, SettingsError
from lycosa.export import ExportJob, ExportReport, PageSelection, export_pages
from lycosa.graph import LinkIndex, UrlLinks, current_link_index, links_of
from lycosa.inspect import (
    ChangeFilter,
    ChangeView,
    HostView,
    KnownUrls,
    StoredPage,
    StoredPages,
    UrlView,
    asked_url,
    change_time,
    known_urls,
    list_changes,
    open_to_read,
    stats_of,
    table_named,
    url_view,
)
from lycosa.inspect import hosts as host_views
from lycosa.notebook import ROWS_SHOWN, html_facts, html_table
from lycosa.search import SearchResults, SearchView, Weights, past_time, update_index
from lycosa.settings import field_rules
from lycosa.store import CollectionStore as Store
from lycosa.store import JoinedCollection as JoinedStore
from lycosa.store import is_written, shard_paths
from lycosa.web import format_date

if TYPE_CHECKING:
    import pyarrow as pa

    from lycosa.duplicates import DuplicatePage

HOSTS_SHOWN = 10  # in a notebook
# To see what a crawl has written takes a tenth of a millisecond, as much as reading a page: `get` in a loop does it now
# and then.
LOOK_EVERY_S = 0.02


def open_collection(path: str | Path) -> "Collection":
    """Opens the collection at `path` for reading; raises `SettingsError` where there is none."""
    collection = Collection(path)
    collection.refresh()
    return collection


class ChangeList(tuple[ChangeView, ...]):
    """Changes, the newest first, which a notebook shows as a table."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        rows = ((format_date(each.at_s), each.word, each.kind, each.url, each.where) for each in self[:ROWS_SHOWN])
        return html_table(f"{len(self):,} changes", ("time", "", "kind", "URL", "where"), rows)


class Collection:
    """The collection at `path`. Nothing is open until it is asked; close it, or use it as a context manager."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._view: SearchView | None = None
        self._store: Store | None = None
        self._pages: StoredPages | None = None
        self._index: LinkIndex | None = None
        self._looked_s = 0.0

    def __repr__(self) -> str:
        return f"<Collection {self.path}>"

    def _repr_html_(self) -> str:
        stats, hosts = self.stats(), list(islice(self.hosts(), HOSTS_SHOWN))
        more = [f"and {stats.hosts - len(hosts):,} more"] if stats.hosts > len(hosts) else []
        facts = {
            "state": "a crawl is writing it" if self.is_crawled else f"at rest, {stats.queued:,} URLs queued",
            "pages": f"{stats.pages:,}, {stats.duplicates:,} of them copies of another",
            "failed": sum(stats.failed.values()),
            "received": f"{stats.bytes:,} bytes",
            "hosts": "\n".join([*(f"{host.host} {host.pages:,} pages" for host in hosts), *more]),
        }
        return html_facts(str(self.path), facts)

    @property
    def is_crawled(self) -> bool:
        """Whether a crawl is writing it now."""
        return any(is_written(path) for path in (self.path, *shard_paths(self.path)))

    def __enter__(self) -> "Collection":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes what is open; whoever asks again opens it again."""
        for opened in (self._view, self._store):
            if opened is not None:
                opened.close()
        self._view = self._store = self._pages = self._index = None

    def refresh(self) -> None:
        """Sees what a crawl has committed up to now. Every question begins with it; `get` and `in` do it fifty times a
        second at most."""
        self.store()

    def store(self) -> Store:
        """What the collection is read from, as it is now, for questions that this class does not answer. It is closed
        with the collection."""
        if isinstance(self._store, JoinedStore) and self._store.paths != shard_paths(self.path):  # it has grown
            self.close()
        if self._store is None:
            self._store = open_to_read(self.path)
        elif self._store.state.refresh():
            self._index = None
        self._looked_s = time.monotonic()
        return self._store

    def _stored(self, *, patience_s: float = 0.0) -> StoredPages:
        """The stored pages, as they were at most so long ago."""
        if self._pages is not None and time.monotonic() - self._looked_s < patience_s:
            return self._pages
        store = self.store()
        if self._pages is None:
            self._pages = StoredPages(store)
        return self._pages

    def __iter__(self) -> Iterator[StoredPage]:
        """Every page that is stored, in the order of hosts and paths. A page's content is read when it is asked for."""
        return self._stored().all()

    def __len__(self) -> int:
        """The number of stored pages."""
        return self.stats().pages

    def __contains__(self, url: object) -> bool:
        """Whether a page is stored under this URL."""
        return isinstance(url, str) and self._stored(patience_s=LOOK_EVERY_S).has(url)

    def search(
        self,
        query: str,
        *,
        most: int = 10,
        offset: int = 0,
        weights: Weights | None = None,
        update: bool = True,
        as_of: str = "",
        facets: bool = False,
        fold: bool = True,
    ) -> SearchResults:
        """The pages that a query finds, the best first, from `offset` on. With `update` the index is first brought up
        to date, unless a crawl keeps it so; else it is asked as it was when this collection was first searched. `as_of`
        is a date: the pages as they were then. With `facets` all matches are counted by host, language, type and
        year. Without `fold` pages that say what a better one says are results of their own."""
        if past_time(as_of) is not None:
            with SearchView(self.path, as_of=as_of) as view:
                return view.search(query, most=most, offset=offset, weights=weights, facets=facets, fold=fold)
        if update:
            update_index(self.path)
        if self._view is None:
            self._view = SearchView(self.path)
        elif update:
            self._view.refresh()
        return self._view.search(query, most=most, offset=offset, weights=weights, facets=facets, fold=fold)

    def get(self, url: str, *, as_of: str = "") -> StoredPage:
        """A page as the archive holds it, or as it was at a date; raises `NoPage`, a LookupError, if it has none."""
        return self._stored(patience_s=LOOK_EVERY_S).get(url, as_of=as_of)

    def links(self, url: str, *, most: int | None = None) -> UrlLinks:
        """Who points to a URL, with what words, and where it points."""
        store = self.store()
        self._index = self._index or current_link_index(store)
        return links_of(store, asked_url(store, url).href, most=most, index=self._index)

    def changes(
        self, *, since: str = "", until: str = "", host: str = "", kinds: Sequence[str] = (), most: int = 1_000
    ) -> ChangeList:
        """The latest changes, the newest first: since a time such as `2d` ago or `2026-05-31`, of one host, of some
        kinds (`text`, `gone`, …)."""
        now = time.time()
        wanted = ChangeFilter(
            since_s=change_time(since, "since", now_s=now) if since else 0.0,
            until_s=change_time(until, "until", now_s=now, is_end=True) if until else float("inf"),
            host=host,
            kinds=tuple(kinds),
        )
        return ChangeList(list_changes(self.store(), wanted, most=most))

    def duplicates(self, *, host: str = "", relation: Literal["", "exact", "near"] = "") -> "Iterator[DuplicatePage]":
        """The pages that are copies or near-copies of each other, cluster by cluster, the largest first and in each the
        representative; with `host` the clusters with a page of it, with `relation` those with such copies."""
        from lycosa.duplicates import Relation, duplicate_pages  # lazy: NumPy, 0.1 s

        if relation not in ("", "exact", "near"):
            raise SettingsError(f"there are exact copies and near ones, not {relation!r}")
        wanted = Relation(relation) if relation else None
        return duplicate_pages(self.store().state, host=host.lower(), relation=wanted)

    def hosts(self) -> Iterator[HostView]:
        """Every host that is known, those of a registrable domain together."""
        return host_views(self.store())

    def why(self, url: str) -> UrlView:
        """Where a URL is and for what reason, whether it is known or not; `says` has the sentences."""
        return url_view(self.store(), url)

    def known(self, below: str = "", *, state: str = "") -> KnownUrls:
        """The URLs known now, as a sorted set: below the beginning of a URL, of a host or a domain, or all; with
        `state` only those that are `queued`, `done`, `failed` or `dropped`. They are read from the state, for as long
        as this collection is open; a new call sees what a crawl has found meanwhile."""
        return known_urls(self.store().state, below, in_state=state)

    def arrow(self, table: str = "pages", columns: Sequence[str] | None = None) -> "pa.RecordBatchReader":
        """A table as a stream of Arrow batches: `pages`, `links`, `hosts`, `changes`, `urls` or `fields`, with the
        named columns. Without names it has all but those that are read from the archive, such as `text` and `body`.
        docs/tables.md lists the columns. Needs `lycosa[tables]`."""
        store = self.store()
        from lycosa.inspect import arrow_reader  # lazy: pyarrow is an extra, and takes a tenth of a second

        return arrow_reader(store, table_named(store, table), columns)

    def frame(
        self,
        table: str = "pages",
        columns: Sequence[str] | None = None,
        *,
        engine: Literal["pandas", "polars"] = "pandas",
    ) -> Any:
        """The same table as a data frame of pandas or polars, all of it in memory."""
        if engine not in ("pandas", "polars"):
            raise SettingsError(f"there are frames of pandas and of polars, not of {engine!r}")
        if find_spec(engine) is None:
            raise MissingExtra(f"a frame of {engine} needs {engine}: pip install {engine}")
        rows = self.arrow(table, columns).read_all()
        if engine == "pandas":
            return rows.to_pandas()
        import polars  # lazy: asked for by name

        return polars.from_arrow(rows)

    def sql(self, query: str) -> "pa.Table":
        """The answer to a query in DuckDB's SQL over the same tables, as an Arrow table: `.to_pandas()`,
        `.to_pylist()`. Needs `lycosa[tables]`."""
        store = self.store()
        from lycosa.inspect import SqlQuery  # lazy: DuckDB and pyarrow are an extra

        with SqlQuery(store, query) as asked:
            return asked.table()

    def stats(self) -> CrawlStats:
        """The counts of the collection, as far as they are committed."""
        return stats_of(self.store())

    def export(
        self,
        format: str,
        out: str | Path,
        *,
        host: Sequence[str] = (),
        path: Sequence[str] = (),
        since: str = "",
        until: str = "",
        changed_since: str = "",
        type: Sequence[str] = (),
        status: Sequence[str | int] = (),
        language: Sequence[str] = (),
        query: str = "",
        versions: bool = False,
        purpose: str = "",
        ignore_preferences: bool = False,
        since_last: bool = False,
        fields: Mapping[str, Any] | Sequence[str] | None = None,
        restart: bool = False,
        skip_missing: bool = False,
        **options: str | bool,
    ) -> ExportReport:
        """Writes pages in a format to a file, a folder or an fsspec URL, as `lycosa export` does; `options` are those
        of the format, such as `content="markdown"` for jsonl. `fields` are selectors by name, `{"price": ".price"}`, in
        place of those that the collection names."""
        selection = PageSelection.read(
            host=host,
            path=path,
            since=since,
            until=until,
            changed_since=changed_since,
            type=type,
            status=status,
            language=language,
            query=query,
            versions=versions,
            purpose=purpose,
        )
        given = {name: "yes" if value is True else str(value) for name, value in options.items() if value}
        job = ExportJob(
            format,
            str(out),
            selection,
            given,
            restart,
            skip_missing,
            since_last,
            None if fields is None else tuple(field_rules(fields)),
            ignore_preferences,
        )
        return export_pages(self.path, job)
