"""Each document once (P6): the 64-bit fingerprint finds a document, the 128-bit digest confirms it.

Reads the committed state and remembers what is in the batch that is not committed yet.
"""

from lycosa.engine.pages import LinkRow, PageRow, doc_key, unpack_links, unpack_page
from lycosa.records import Family
from lycosa.store import Batch, State
from lycosa.web.digests import DIGEST_BYTES


class DocumentStore:
    """Documents by their fingerprint, pages and links by their key."""

    def __init__(self, state: State) -> None:
        self._state = state
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
