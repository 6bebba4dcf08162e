"""Chooses what of a shard's archive travels to the central store (M2): by media type, by relevance, each document once.

A page whose media type or relevance is not wanted stays with its shard. Of a document that another shard has under
another URL, a revisit record travels in place of the response. Both are still done, with all that the state knows of
them. Judged by the page's row as it is when its archive file travels; an older version of a page travels.
Called by the keeper of an agent, and for `why`.
"""

from collections.abc import Sequence
from functools import partial

from lycosa.records import Family
from lycosa.settings import CrawlSettings
from lycosa.store.packed import Capture, Left
from lycosa.store.page_rows import PageRow, unpack_page
from lycosa.store.state import State
from lycosa.web import matches_pattern, pattern_pieces, url_key

MEDIA_TYPE, RELEVANCE, COPY = "media-type", "relevance", "copy"


class StoreSelection:
    """The choice that the settings of a crawl make."""

    def __init__(self, settings: CrawlSettings) -> None:
        self._least, self._types = settings.store_relevance, settings.store_types
        self._wanted = [
            partial(matches_pattern, pattern_pieces(pattern.lower()), to_end=True) for pattern in self._types
        ]

    def __repr__(self) -> str:
        return f"<Selection types={self._types} relevance={self._least}>"

    def choose(self, state: State, captures: Sequence[Capture]) -> dict[int, Left]:
        """Those of the records that stay here, or are copies, by their number."""
        rows = state.get_many(Family.PAGE, [url_key(capture.url) for capture in captures])
        found: dict[int, Left] = {}
        for capture, packed in zip(captures, rows, strict=True):
            row = unpack_page(packed) if packed else None
            if row is None or row.place != capture.place.pack() or not (reason := self.reason(row)):
                continue
            if reason != COPY:
                found[capture.number] = Left(reason, row.size_bytes)
            elif row.is_elsewhere or capture.is_revisit:
                found[capture.number] = Left(reason, row.size_bytes, row.original)
        return found

    def reason(self, row: PageRow) -> str:
        """Why a page does not travel; empty if it does."""
        if not row.is_page or not 200 <= row.status < 300:
            return ""
        if self._wanted and row.essence and not any(is_wanted(row.essence) for is_wanted in self._wanted):
            return MEDIA_TYPE
        if row.relevance is not None and row.relevance < self._least:
            return RELEVANCE
        return COPY if row.original else ""

    def words(self, row: PageRow) -> list[str]:
        """What a user is told of it."""
        lines = [] if row.relevance is None else [f"relevance to the topic: {row.relevance:.2f}"]
        reason, stays = self.reason(row), "not for the central store, its body is in the archive of its shard"
        if reason == MEDIA_TYPE:
            lines.append(f"{stays}: {row.essence} is none of --store-type {','.join(self._types)}")
        elif reason == RELEVANCE:
            lines.append(f"{stays}: less relevant than --store-relevance {self._least:g}")
        elif reason == COPY and row.is_elsewhere:
            lines.append(f"{stays}: the store has the document as that of {row.original}")
        return lines
