"""The link graph of a collection: the feed of committed pages, the index of the links between them, and their ranks.

`LinkIndexer` numbers pages and writes the feed in the commit of the page itself, and brings links into the index after
it. `entries_after` gives the feed to whoever follows a crawl; a consumer says with `mark_covered` how far it has come.
`current_link_index` and `links_of` answer questions, `rank_pages` computes PageRank. The state is the truth: the index
and the ranks are derived from it, kept in files of their own under `graph/`, and catch up by the feed after any crash.
"""

from lycosa.graph.feed import covered_by, cut_feed, entries_after, key_of, last_sequence, mark_covered
from lycosa.graph.index import LINK_INDEX_FOLDER, LinkIndex
from lycosa.graph.indexer import LinkIndexer, redirect_link
from lycosa.graph.links import (
    Anchors,
    AnchorTexts,
    HostLinks,
    IncomingLinks,
    LinkView,
    Ranked,
    UrlLinks,
    current_link_index,
    host_links,
    incoming_links,
    links_of,
    outgoing_links,
    rank_hosts,
    rank_pages,
    ranked_pages,
    rebuild_link_index,
    referring_pages,
    stored_link_index,
)
from lycosa.graph.ranks import Ranks, load_ranks

__all__ = [
    "LINK_INDEX_FOLDER", "AnchorTexts", "Anchors", "HostLinks", "IncomingLinks", "LinkIndex", "LinkIndexer",
    "LinkView", "Ranked", "Ranks", "UrlLinks", "covered_by", "current_link_index", "cut_feed", "entries_after",
    "host_links", "incoming_links", "key_of", "last_sequence", "links_of", "load_ranks", "mark_covered",
    "outgoing_links", "rank_hosts", "rank_pages", "ranked_pages", "rebuild_link_index", "redirect_link",
    "referring_pages", "stored_link_index",
]  # fmt: skip
