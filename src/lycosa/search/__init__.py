"""The search index of a collection: making it, keeping it up to date beside a crawl, and searching it.

The state is the truth; the index is derived from it, kept under `index/`, and catches up by the feed of commits after
any crash. A crawl starts an `IndexFollower` and never waits for it; `make_index` and `update_index` do the same work
without a crawl; `SearchView` answers queries.
"""

from typing import TYPE_CHECKING

from lycosa.doors import open_lazily

if TYPE_CHECKING:
    from lycosa.search.compile import BM25_ALONE, Weights
    from lycosa.search.follower import IndexFollower
    from lycosa.search.making import MadeIndex, is_index_behind, make_index, unread_words, update_index
    from lycosa.search.past import delete_index, delete_past_indexes, end_of_date, past_time, row_as_of
    from lycosa.search.query import QueryError, parse_query
    from lycosa.search.retrieval import MOST_SHOWN, Facets, FacetValue
    from lycosa.search.snippet import Snippet, highlighted
    from lycosa.search.view import QueryMatcher, SearchResult, SearchResults, SearchView
    from lycosa.search.workers import reading_archive, serve, stored_message

# Module → names. Each is imported when it is first used: a crawl starts its follower without tantivy.
__getattr__ = open_lazily(
    __name__,
    {
        "compile": "BM25_ALONE Weights",
        "follower": "IndexFollower",
        "making": "MadeIndex is_index_behind make_index unread_words update_index",
        "past": "delete_index delete_past_indexes end_of_date past_time row_as_of",
        "query": "QueryError parse_query",
        "retrieval": "MOST_SHOWN FacetValue Facets",
        "snippet": "Snippet highlighted",
        "view": "QueryMatcher SearchResult SearchResults SearchView",
        "workers": "reading_archive serve stored_message",
    },
)


__all__ = [
    "BM25_ALONE", "MOST_SHOWN", "FacetValue", "Facets", "IndexFollower", "MadeIndex", "QueryError",
    "QueryMatcher", "SearchResult", "SearchResults", "SearchView", "Snippet", "Weights", "delete_index",
    "delete_past_indexes", "end_of_date", "highlighted", "is_index_behind", "make_index",
    "parse_query", "past_time", "reading_archive", "row_as_of", "serve", "stored_message", "unread_words",
    "update_index",
]  # fmt: skip
