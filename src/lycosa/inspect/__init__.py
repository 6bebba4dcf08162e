"""Looking into a collection: counts and hosts, why a URL is where it is, the tree of URLs, stored pages and changes.

Everything here only reads, beside a running crawl or without one, and sees what was committed when the collection was
opened or refreshed last. The results are records; the command line and `lycosa.Collection` show them.
"""

from typing import TYPE_CHECKING

from lycosa.doors import open_lazily

if TYPE_CHECKING:
    from lycosa.inspect.changes import (
        ChangeFilter,
        ChangeView,
        HostFreshness,
        PageHistory,
        UrlView,
        freshness,
        knows_host,
        list_changes,
        page_history,
        url_view,
    )
    from lycosa.inspect.pages import StoredPage, StoredPages, asked_url, page_of
    from lycosa.inspect.status import HostView, explain_url, hosts, open_to_read, settings_of, size_words, stats_of
    from lycosa.inspect.tree import Branch, KnownUrls, key_prefixes, known_urls, url_tree

# Module → names. Each is imported when it is first used: `lycosa status` does not wait for what compares pages.
__getattr__ = open_lazily(
    __name__,
    {
        "changes": "ChangeFilter ChangeView HostFreshness PageHistory UrlView freshness knows_host list_changes "
        "page_history url_view",
        "pages": "StoredPage StoredPages asked_url page_of",
        "status": "HostView hosts open_to_read settings_of stats_of explain_url size_words",
        "tree": "Branch KnownUrls key_prefixes known_urls url_tree",
    },
)


__all__ = [
    "Branch", "ChangeFilter", "ChangeView", "HostFreshness", "HostView", "KnownUrls", "PageHistory", "StoredPage",
    "StoredPages", "UrlView", "asked_url", "explain_url", "freshness", "hosts", "key_prefixes", "known_urls",
    "knows_host", "list_changes", "open_to_read", "page_history", "page_of", "settings_of", "size_words", "stats_of",
    "url_tree", "url_view",
]  # fmt: skip
