"""A collection for programs that read it: what it holds, asked in Python.

    with lycosa.Collection("my-crawl") as collection:
        for page in collection.search('solar "heat pump"').results:
            print(page.score, page.url, page.title)

Works beside a running crawl; sees what came meanwhile.
"""

from pathlib import Path

from lycosa.engine.known import KnownUrls, known_urls
from lycosa.engine.link_views import UrlLinks, links_of
from lycosa.engine.search_views import Document, Results, SearchView, document_of, past_of, update_index
from lycosa.engine.stats import CrawlStats
from lycosa.engine.views import open_to_read, stats_of
from lycosa.search.weights import Weights
from lycosa.store import Collection as Opened


class Collection:
    """The collection at `path`. Nothing is open until it is asked; close it, or use it as a context manager."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._view: SearchView | None = None
        self._reader: Opened | None = None

    def __repr__(self) -> str:
        return f"<Collection {self.path}>"

    def __enter__(self) -> "Collection":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._view is not None:
            self._view.close()
            self._view = None
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    def search(
        self,
        query: str,
        *,
        most: int = 10,
        offset: int = 0,
        weights: Weights | None = None,
        update: bool = True,
        as_of: str = "",
    ) -> Results:
        """The pages that a query finds, the best first, from `offset` on. With `update` the index is first brought up
        to date, unless a crawl keeps it so; else it is asked as it was when this collection was first searched. `as_of`
        is a date: the pages as they were then."""
        if past_of(as_of) is not None:
            with SearchView(self.path, as_of=as_of) as view:
                return view.search(query, most=most, offset=offset, weights=weights)
        if update:
            update_index(self.path)
        if self._view is None:
            self._view = SearchView(self.path)
        elif update:
            self._view.refresh()
        return self._view.search(query, most=most, offset=offset, weights=weights)

    def get(self, url: str, *, as_of: str = "") -> Document:
        """A page as the archive holds it, or as it was at a date."""
        return document_of(self.path, url, as_of=as_of)

    def links(self, url: str, *, most: int | None = None) -> UrlLinks:
        """Who points to a URL, with what words, and where it points."""
        with open_to_read(self.path) as collection:
            return links_of(collection, url, most=most)

    def known(self, below: str = "", *, state: str = "") -> KnownUrls:
        """The URLs known now, as a sorted set: below the beginning of a URL, of a host or a domain, or all; with
        `state` only those that are `queued`, `done`, `failed` or `dropped`. They are read from the state, for as long
        as this collection is open; a new call sees what a crawl has found meanwhile."""
        if self._reader is None:
            self._reader = open_to_read(self.path)
        else:
            self._reader.state.refresh()
        return known_urls(self._reader.state, below, in_state=state)

    def stats(self) -> CrawlStats:
        """The counts of the collection, as far as they are committed."""
        with open_to_read(self.path) as collection:
            return stats_of(collection)
