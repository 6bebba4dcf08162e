"""What a crawl keeps of documents: WARC records of every answer, and each document only once.

`DocumentStore` finds a document by its 64-bit fingerprint and confirms it by its 128-bit digest; it reads the committed
state and remembers what is in the open batch. `Archive` turns a request and its response into WARC members and rows.
Documents of other shards are the business of `crawl.copies`. Called by whoever handles a response.
"""

from typing import TYPE_CHECKING, NamedTuple

from lycosa.crawl.shard import Shard
from lycosa.frontier import Lease
from lycosa.records import Family, Request, Response
from lycosa.store import (
    Batch,
    HttpExchange,
    LinkRow,
    OriginalRecord,
    PageRow,
    PatchBase,
    RevisitProfile,
    State,
    doc_key,
    patch_on_read_exchange,
    patched_exchange,
    response_exchange,
    revisit_exchange,
    unpack_links,
    unpack_page,
)
from lycosa.web import DIGEST_BYTES, Page, document_digest, payload_sha1, url_from_key, url_key

if TYPE_CHECKING:
    from lycosa.crawl.copies import Copies


EMPTY_DIGEST = document_digest(b"")  # pages without a body are no copies of each other


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
        if self._copies is not None and row.digest != EMPTY_DIGEST and not row.original:
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


class PatchedDocument(NamedTuple):
    """A document that was never sent as a whole: stored before, brought up to date by the `answer` that is its table.
    `whole`: the record it is made from whenever it is read; None: it is kept as it is now."""

    document: Response
    answer: Response
    whole: PatchBase | None = None


class Archive:
    """Keeps what came back; where no archive is kept (`is_off`), nothing but what stands in the rows."""

    def __init__(self, shard: Shard) -> None:
        self._shard, self._committer = shard, shard.committer
        self.is_off = shard.settings.archive == "none"  # nothing is written: records have no members and no place

    def exchange(
        self,
        lease: Lease,
        request: Request,
        response: Response,
        sha1: bytes | None = None,
        fetched_s: float | None = None,
    ) -> HttpExchange:
        """The records of a body; `sha1` is its digest, where it is known, `fetched_s` the time of its row."""
        now = self._shard.now_unix() if fetched_s is None else fetched_s
        if self.is_off:
            return HttpExchange([], sha1 or payload_sha1(response.body), now)
        return response_exchange(request, response, fetched_s=now, metadata=_metadata(lease), payload_sha1=sha1)

    def revisit(
        self,
        lease: Lease,
        request: Request,
        response: Response,
        original: OriginalRecord,
        profile: RevisitProfile = RevisitProfile.SAME_PAYLOAD,
    ) -> HttpExchange:
        """The records of a body that is stored already."""
        if self.is_off:
            return HttpExchange([], original.payload_sha1, self._shard.now_unix())
        return revisit_exchange(
            request,
            response,
            fetched_s=self._shard.now_unix(),
            original=original,
            profile=profile,
            metadata=_metadata(lease),
        )

    def patched(self, lease: Lease, request: Request, found: PatchedDocument) -> HttpExchange:
        """The records of a version that a table gave; where it is made on reading, that table's records as well."""
        now, metadata = self._shard.now_unix(), {**_metadata(lease), "patched-by": request.url}
        if found.whole is None:
            return patched_exchange(found.document, fetched_s=now, metadata=metadata)
        return patch_on_read_exchange(
            request, found.answer, found.document, whole=found.whole, fetched_s=now, metadata=metadata
        )

    def version(
        self, lease: Lease, request: Request, response: Response, page: Page, documents: DocumentStore
    ) -> tuple[HttpExchange, str]:
        """The records of a new version; those of a copy, and whose, where another URL has the same document."""
        made = self.exchange(lease, request, response)
        first = documents.first_with(page.fingerprint)
        if first is None or first[0] != page.digest or first[1] == url_key(lease.url):
            return made, ""
        original, url = documents.page(first[1]), url_from_key(first[1])
        if original is None or original.payload_sha1 != made.payload_sha1:
            return made, ""
        known = OriginalRecord(url, original.fetched_s, original.payload_sha1)
        return self.revisit(lease, request, response, known), url

    def keep(self, made: HttpExchange) -> int | None:
        """Hands the records over; returns a ticket for the response's place."""
        return self._committer.archive(made.members, made.RESPONSE if made.members else None)

    def keep_answer(
        self, lease: Lease, request: Request | None, response: Response, fetched_s: float | None = None
    ) -> int | None:
        """Keeps an answer that is no page; nothing where there was no answer. `fetched_s`: the time of its row."""
        if request is None or not response.header_block:
            self._committer.waiting += 1
            return None
        return self.keep(self.exchange(lease, request, response, fetched_s=fetched_s))

    def put(self, lease: Lease, row: PageRow, ticket: int | None) -> None:
        self._committer.page(url_key(lease.url), row, ticket)


def _metadata(lease: Lease) -> dict[str, str]:
    return {"depth": str(lease.depth)}
