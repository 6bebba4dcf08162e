"""Each document once (P6): the 64-bit fingerprint finds a document, the 128-bit digest confirms it. What other shards
have is asked by `engine.copies`.

Reads the committed state and remembers what is in the batch that is not committed yet.
"""

from typing import TYPE_CHECKING

from lycosa.engine.pages import LinkRow, PageRow, doc_key, unpack_links, unpack_page
from lycosa.records import Family
from lycosa.store import Batch, State
from lycosa.web.digests import DIGEST_BYTES, document_digest

if TYPE_CHECKING:
    from lycosa.engine.copies import Copies

NOTHING = document_digest(b"")  # pages without a body are no copies of each other


class DocumentStore:
    """Documents by their fingerprint, pages and links by their key."""

    def __init__(self, state: State, copies: "Copies | None" = None) -> None:
        self._state, self._copies = state, copies
        self._docs: dict[bytes, bytes] = {}
        self._pages: dict[bytes, PageRow] = {}
        self._links: dict[bytes, LinkRow] = {}

    def first_with(self, fingerprint: int) -> tuple[bytes, bytes] | None:
        """(digest, url key) of the first page with a document of this fingerprint."""
        key = doc_key(fingerprint)
        row = self._docs.get(key) or self._state.get(Family.DOC, key)
        return (row[:DIGEST_BYTES], row[DIGEST_BYTES:]) if row else None

    def note(self, batch: Batch, key: bytes, row: PageRow, links: LinkRow) -> None:
        """A document seen for the first time, under `key`."""
        value = row.digest + key
        self._docs[doc_key(row.fingerprint)] = value
        self._pages[key], self._links[key] = row, links
        batch.put(Family.DOC, doc_key(row.fingerprint), value)

    def stored(self, url: str, row: PageRow) -> None:
        """A page was stored that is no copy as far as this shard knows: other shards may have the same document."""
        if self._copies is not None and row.digest != NOTHING and not row.original:
            self._copies.stored(url, row)

    def gone(self, batch: Batch, url: str, key: bytes, row: PageRow) -> None:
        """The page no longer has the document of its row: others that have it are no copies of this page."""
        if row.fingerprint and (first := self.first_with(row.fingerprint)) and first[1] == key:
            batch.delete(Family.DOC, doc_key(row.fingerprint))
        if self._copies is not None and row.digest and not row.original:
            self._copies.gone(url, row)

    def page(self, key: bytes) -> PageRow | None:
        if key in self._pages:
            return self._pages[key]
        row = self._state.get(Family.PAGE, key)
        return unpack_page(row) if row else None

    def links(self, key: bytes) -> LinkRow | None:
        if key in self._links:
            return self._links[key]
        row = self._state.get(Family.LINK, key)
        return unpack_links(row) if row else None

    def committed(self) -> None:
        """What was remembered is in the state now."""
        self._docs.clear()
        self._pages.clear()
        self._links.clear()
