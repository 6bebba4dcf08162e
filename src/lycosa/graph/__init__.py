"""The link graph of a collection: numbers for pages, the feed of commits, who points where, and ranks.

The state is the truth; everything here is derived from it, kept in files of its own under `graph/`, and catches up by
the feed after any crash.
"""

from lycosa.graph.feed import FEED_FOLDER, consumers, entries_after, key_of, last_sequence, mark_covered
from lycosa.graph.index import LinkIndex
from lycosa.graph.indexer import LinkIndexer, redirect_row
from lycosa.graph.links import (
    Anchors,
    AnchorTexts,
    LinkView,
    Ranked,
    UrlLinks,
    current_link_index,
    links_of,
    rank_hosts,
    rank_pages,
    ranked_pages,
    stored_link_index,
)
from lycosa.graph.processes import start_helper
from lycosa.graph.ranks import Ranks, load_ranks

__all__ = [
    "FEED_FOLDER",
    "AnchorTexts",
    "Anchors",
    "LinkIndex",
    "LinkIndexer",
    "LinkView",
    "Ranked",
    "Ranks",
    "UrlLinks",
    "consumers",
    "current_link_index",
    "entries_after",
    "key_of",
    "last_sequence",
    "links_of",
    "load_ranks",
    "mark_covered",
    "rank_hosts",
    "rank_pages",
    "ranked_pages",
    "redirect_row",
    "start_helper",
    "stored_link_index",
]
