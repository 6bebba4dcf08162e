"""Looking into a collection: counts and hosts, why a URL is where it is, the tree of URLs, stored pages and changes.

Everything here only reads, beside a running crawl or without one, and sees what was committed when the collection was
opened or refreshed last. The results are records; the command line and `lycosa.Collection` show them.
"""

from typing import TYPE_CHECKING

from lycosa.doors import open_lazily

if TYPE_CHECKING:
    from lycosa.inspect.arrow import arrow_reader
    from lycosa.inspect.cells import safe_cell
    from lycosa.inspect.changes import (
        ChangeFilter,
        ChangeView,
        HostFreshness,
        PageHistory,
        UrlView,
        change_time,
        freshness,
        knows_host,
        list_changes,
        page_history,
        url_view,
    )
    from lycosa.inspect.pages import StoredPage, StoredPages, asked_url, page_of
    from lycosa.inspect.sql import SqlQuery
    from lycosa.inspect.status import (
        HostView,
        explain_url,
        host_retries,
        hosts,
        known_before,
        open_to_read,
        settings_of,
        size_words,
        stats_of,
    )
    from lycosa.inspect.tables import CollectionTable, table_named, tables_of
    from lycosa.inspect.tree import Branch, KnownUrls, key_prefixes, known_urls, url_tree
    from lycosa.inspect.urls import KnownUrl, KnownUrlFilter, list_urls, url_batches

# Module → names. Each is imported when it is first used: `lycosa status` does not wait for what compares pages.
__getattr__ = open_lazily(
    __name__,
    {
        "arrow": "arrow_reader",
        "cells": "safe_cell",
        "changes": "ChangeFilter ChangeView HostFreshness PageHistory UrlView change_time freshness knows_host "
        "list_changes page_history url_view",
        "pages": "StoredPage StoredPages asked_url page_of",
        "sql": "SqlQuery",
        "status": "HostView host_retries hosts open_to_read settings_of stats_of explain_url known_before size_words",
        "tables": "CollectionTable table_named tables_of",
        "tree": "Branch KnownUrls key_prefixes known_urls url_tree",
        "urls": "KnownUrl KnownUrlFilter list_urls url_batches",
    },
)


__all__ = [
    "Branch", "ChangeFilter", "ChangeView", "CollectionTable", "HostFreshness", "HostView", "KnownUrl",
    "KnownUrlFilter", "KnownUrls", "PageHistory", "SqlQuery", "StoredPage", "StoredPages", "UrlView", "arrow_reader",
    "asked_url", "change_time", "explain_url", "freshness", "host_retries", "hosts", "key_prefixes", "known_before",
    "known_urls", "knows_host", "list_changes", "list_urls", "open_to_read", "page_history", "page_of", "safe_cell",
    "settings_of", "size_words", "stats_of", "table_named", "tables_of", "url_batches", "url_tree", "url_view",
]  # fmt: skip
