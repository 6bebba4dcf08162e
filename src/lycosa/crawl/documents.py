"""Which documents are known already: in this shard, and in the others.

`DocumentStore` finds the first page of this shard that has a document, so that each is kept once.

`Copies` is about equal documents on different shards: every document has an owner, a shard that its digest chooses. A
shard that stores a document tells its owner, in the commit of the page. The owner keeps the first page that it was told
of and answers all others with it; whoever owns the page of the answer notes it there as the original. Both ways lead
through the exchange, so nothing is lost with a shard and what is told twice changes nothing. All of it is done once a
commit, for all documents together; no request waits for it, and every body is stored before its owner hears of it.
Rows: family `doc`, `claimed:` bucket · digest → payload digest · url key of the first page.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from lycosa.crawl.committer import CommitParticipant
from lycosa.crawl.seams import CopyClaim, DocumentOwners, Shard
from lycosa.frontier import UrlState
from lycosa.records import Family
from lycosa.store import (
    CLAIMED_PREFIX,
    Batch,
    LinkRow,
    PageRow,
    State,
    StoreSelection,
    doc_key,
    document_bucket,
    link_row,
    pack_row,
    page_at,
    pages_at,
    unpack_links,
)
from lycosa.web import DIGEST_BYTES, FollowedLinks, document_digest, split_url, url_from_key, url_key

EMPTY_DIGEST = document_digest(b"")  # pages without a body are no copies of each other
_SHA1_BYTES = 20
_STAYS = bytes(_SHA1_BYTES)


class Copies(CommitParticipant):
    """The claims of one shard: its own, those of documents that it owns, and answers for its pages."""

    def __init__(self, shard: Shard, owners: DocumentOwners) -> None:
        self._shard, self._owners, settings = shard, owners, shard.settings
        self._selection = StoreSelection(settings.store_types, settings.store_relevance)
        self._claims: list[CopyClaim] = []

    def __repr__(self) -> str:
        return f"<Copies waiting={len(self._claims)}>"

    def stored(self, url: str, row: PageRow) -> None:
        """A page was stored, and no page of this shard is known to have the same document. One that does not travel to
        the central store claims no payload: a copy of it has to travel itself."""
        self._claims.append(CopyClaim(url, row.digest, _STAYS if self._selection.reason(row) else row.payload_sha1))

    def gone(self, url: str, row: PageRow) -> None:
        """A page no longer has the document of its row."""
        self._claims.append(CopyClaim(url, row.digest, is_gone=True))

    def verify(self, url: str, row: PageRow) -> None:
        """A copy was found unchanged: does its original still have the document? Its own body may be with the original
        only, so that it claims no payload."""
        self._claims.append(CopyClaim(url, row.digest, _STAYS, is_copy=True))

    def take(self, claims: Sequence[CopyClaim]) -> None:
        """Claims and answers of other shards."""
        self._claims += claims

    def before_commit(self, batch: Batch, *, is_last: bool) -> None:
        """Deals with all claims that came since the last commit, in the one that is made now."""
        if not self._claims:
            return
        claims = list(self._claims)
        answers = [claim for claim in claims if claim.original]
        asked, leaving = _parted([claim for claim in claims if not claim.original], self._owns_document)
        answers, away = _parted(answers + self._answers(asked, batch), self._owns_page)
        self._note(answers)
        if leaving or away:
            self._owners.send_claims(leaving + away)
        del self._claims[: len(claims)]  # only now: if a row cannot be read, the next commit tries all of it again

    def _owns_document(self, claim: CopyClaim) -> bool:
        return self._owners.owns_document(claim.digest)

    def _owns_page(self, claim: CopyClaim) -> bool:
        return self._owners.owns(split_url(claim.href).host)

    def _answers(self, claims: Sequence[CopyClaim], batch: Batch) -> list[CopyClaim]:
        """Keeps first claims, in their order; returns answers to the others."""
        keys = [CLAIMED_PREFIX + document_bucket(claim.digest) + claim.digest for claim in claims]
        distinct = list(dict.fromkeys(keys))
        rows = dict(zip(distinct, self._shard.collection.state.get_many(Family.DOC, distinct), strict=True))
        answers = list[CopyClaim]()
        for key, claim in zip(keys, claims, strict=True):
            page, row = url_key(claim.href), rows[key]
            if claim.is_gone:
                if row is not None and row[_SHA1_BYTES:] == page:
                    rows[key] = None
                    batch.delete(Family.DOC, key)
                continue
            if row is None:
                row = rows[key] = claim.payload_sha1 + page
                batch.put(Family.DOC, key, row)
            if row[_SHA1_BYTES:] != page or claim.is_copy:
                answers.append(CopyClaim(claim.href, claim.digest, row[:_SHA1_BYTES], url_from_key(row[_SHA1_BYTES:])))
        return answers

    def _note(self, answers: Sequence[CopyClaim]) -> None:
        """Notes originals with the pages that are copies of them, unless those have another document by now. A page
        that is its own original is a copy no more."""
        if not answers:
            return
        committer, keys = self._shard.committer, [url_key(answer.href) for answer in answers]
        pending = committer.pending(set(keys))
        stored = pages_at(self._shard.collection.state, keys)
        urls = self._shard.frontier.rows_of(keys)
        for key, known, answer, url in zip(keys, stored, answers, urls, strict=True):
            row = pending.get(key) or known
            original = answer.original if answer.original != answer.href else ""
            if row is None or row.digest != answer.digest or row.original == original:
                continue
            if url is not None and url.state is UrlState.QUEUED:  # its record is lost: it is counted when it is back
                continue
            self._shard.counters.remove(row)
            if not row.original:
                row.is_elsewhere = row.payload_sha1 == answer.payload_sha1
            row.original = original
            self._shard.counters.add(row)
            if key not in pending:
                committer.batch.put(Family.PAGE, key, pack_row(row))
                pending[key] = row


def _parted(
    claims: Sequence[CopyClaim], is_own: Callable[[CopyClaim], bool]
) -> tuple[list[CopyClaim], list[CopyClaim]]:
    """Those that are this shard's, and the others."""
    own = [claim for claim in claims if is_own(claim)]
    return own, [claim for claim in claims if not is_own(claim)] if len(own) < len(claims) else []


class KnownDocument(NamedTuple):
    """The digest of a document, and the key of the first URL that had it."""

    digest: bytes
    key: bytes


class DocumentStore(CommitParticipant):
    """Finds documents by their 64-bit fingerprint and confirms them by their 128-bit digest. It reads the committed
    state and remembers what is in the open batch; documents of other shards are found by `copies`."""

    def __init__(self, state: State, batch: Batch, copies: Copies | None = None) -> None:
        self._state, self._batch, self._copies = state, batch, copies
        self._docs: dict[bytes, bytes] = {}
        self._pages: dict[bytes, PageRow] = {}
        self._links: dict[bytes, FollowedLinks | LinkRow] = {}

    def first_with(self, fingerprint: int) -> KnownDocument | None:
        """The document of this fingerprint, with the first page that has it."""
        key = doc_key(fingerprint)
        row = self._docs.get(key) or self._state.get(Family.DOC, key)
        return KnownDocument(row[:DIGEST_BYTES], row[DIGEST_BYTES:]) if row else None

    def record_first(self, key: bytes, row: PageRow, links: FollowedLinks | LinkRow) -> None:
        """A document seen for the first time, under `key`."""
        value = row.digest + key
        self._docs[doc_key(row.fingerprint)] = value
        self._pages[key], self._links[key] = row, links
        self._batch.put(Family.DOC, doc_key(row.fingerprint), value)

    def on_stored(self, url: str, row: PageRow) -> None:
        """A page was stored that is no copy as far as this shard knows: other shards may have the same document."""
        if self._copies is not None and row.digest != EMPTY_DIGEST and not row.original:
            self._copies.stored(url, row)

    def on_replaced(self, url: str, key: bytes, row: PageRow) -> None:
        """The page no longer has the document of its row: others that have it are no copies of this page."""
        if row.fingerprint and (first := self.first_with(row.fingerprint)) and first.key == key:
            self._batch.delete(Family.DOC, doc_key(row.fingerprint))
        if self._copies is not None and row.digest and not row.original:
            self._copies.gone(url, row)

    def verify_copy(self, url: str, key: bytes, row: PageRow) -> None:
        """A copy was found unchanged. If its original belongs to another shard, that is asked whether it still is."""
        first = self.first_with(row.fingerprint)
        if self._copies is not None and first is not None and first.key == key:
            self._copies.verify(url, row)

    def page(self, key: bytes) -> PageRow | None:
        if key in self._pages:
            return self._pages[key]
        return page_at(self._state, key)

    def links(self, key: bytes) -> LinkRow | None:
        if key in self._links:
            return link_row(self._links[key])
        row = self._state.get(Family.LINK, key)
        return unpack_links(row) if row else None

    def on_committed(self) -> None:
        self._docs.clear()
        self._pages.clear()
        self._links.clear()
