"""Looking into a collection: counts and hosts, why a URL is where it is, the tree of URLs, stored pages and changes.

Everything here only reads, beside a running crawl or without one, and sees what was committed when the collection was
opened or refreshed last. The results are records; the command line and `lycosa.Collection` show them.
"""

from typing import TYPE_CHECKING

from lycosa.doors import open_lazily

if TYPE_CHECKING:
    from lycosa.inspect.arrow import arrow_reader
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
    from lycosa.inspect.host_table import (
        NAME_COLUMNS,
        HostColumn,
        HostMoment,
        HostTable,
        HostTimeline,
        HostView,
        KnownRobots,
        host_named,
        host_timeline,
        host_views,
        hosts,
        robots_named,
    )
    from lycosa.inspect.pages import StoredPage, StoredPages, asked_url, page_of
    from lycosa.inspect.sql import SqlQuery
    from lycosa.inspect.status import host_retries, latest_events, open_to_read, samples_of, settings_of, stats_of
    from lycosa.inspect.tables import CollectionTable, table_named, tables_of
    from lycosa.inspect.tree import Branch, KnownUrls, key_prefixes, known_urls, url_tree
    from lycosa.inspect.urls import (
        KnownUrl,
        KnownUrlFilter,
        TypeFilter,
        UrlListing,
        list_urls_after,
        read_type,
        url_batches,
    )
    from lycosa.inspect.why import explain_url, known_before, size_words

# Module → names. Each is imported when it is first used: `lycosa status` does not wait for what compares pages.
__getattr__ = open_lazily(
    __name__,
    {
        "arrow": "arrow_reader",
        "changes": "ChangeFilter ChangeView HostFreshness PageHistory UrlView change_time freshness knows_host "
        "list_changes page_history url_view",
        "host_table": "NAME_COLUMNS HostColumn HostMoment HostTable HostTimeline HostView KnownRobots host_named "
        "host_timeline host_views hosts robots_named",
        "pages": "StoredPage StoredPages asked_url page_of",
        "sql": "SqlQuery",
        "status": "host_retries latest_events open_to_read samples_of settings_of stats_of",
        "tables": "CollectionTable table_named tables_of",
        "tree": "Branch KnownUrls key_prefixes known_urls url_tree",
        "urls": "KnownUrl KnownUrlFilter TypeFilter UrlListing list_urls_after read_type url_batches",
        "why": "explain_url known_before size_words",
    },
)


__all__ = [
    "NAME_COLUMNS", "Branch", "ChangeFilter", "ChangeView", "CollectionTable", "HostColumn", "HostFreshness",
    "HostMoment", "HostTable", "HostTimeline", "HostView", "KnownRobots", "KnownUrl", "KnownUrlFilter", "KnownUrls",
    "PageHistory", "SqlQuery", "StoredPage", "StoredPages", "TypeFilter", "UrlListing", "UrlView", "arrow_reader",
    "asked_url", "change_time", "explain_url", "freshness", "host_named", "host_retries", "host_timeline", "host_views",
    "hosts", "key_prefixes", "known_before", "known_urls", "knows_host", "latest_events", "list_changes",
    "list_urls_after", "open_to_read", "page_history", "page_of", "read_type", "robots_named",
    "samples_of", "settings_of", "size_words", "stats_of", "table_named", "tables_of", "url_batches", "url_tree",
    "url_view",
]  # fmt: skip
