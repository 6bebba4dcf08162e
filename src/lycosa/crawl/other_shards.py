"""One shard among others: how URLs, hosts and claims to documents that come from the other shards are taken in.

Who owns what, how it travels and who is alive is decided behind the port (`OtherShards`). `move_hosts` takes hosts out
of a shard and into it between two commits, with nothing in flight at the hosts that leave; each known URL stays counted
once over all shards, and a host that came waits one full delay.

`Copies` is about equal documents on different shards: every document has an owner, a shard that its digest chooses. A
shard that stores a document tells its owner, in the commit of the page. The owner keeps the first page that it was told
of and answers all others with it; whoever owns the page of the answer notes it there as the original. Both ways lead
through the exchange, so nothing is lost with a shard and what is told twice changes nothing. All of it is done once a
commit, for all documents together; no request waits for it, and every body is stored before its owner hears of it.
Rows: family `doc`, `claimed:` bucket · digest → payload digest · url key of the first page.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Sequence

from lycosa.crawl.committer import CommitParticipant
from lycosa.crawl.requeue import requeue_failed, write_via
from lycosa.crawl.seams import CopyClaim, DocumentOwners, Shard
from lycosa.frontier import ForwardedUrl, HostRow, Origin, RequestKind, UrlState, unpack_host
from lycosa.learning import TrapGuard
from lycosa.records import Family
from lycosa.store import (
    CLAIMED_PREFIX,
    Batch,
    PageRow,
    StoreSelection,
    activate_arrived_hosts,
    bucket_hosts,
    delete_bucket,
    document_bucket,
    pack_row,
    pages_at,
)
from lycosa.web import split_url, url_from_key, url_key


def accept_urls(shard: Shard, traps: TrapGuard, crossings: Sequence[ForwardedUrl]) -> None:
    """Takes in URLs that other shards found, as if they had been found here."""
    frontier, now = shard.frontier, shard.now()
    is_ranked = frontier.policy.ranking is not None
    groups: dict[tuple[int, int, int, int, str], list[ForwardedUrl]] = defaultdict(list)
    for one in crossings:
        if not one.is_evidence_only:
            groups[one.depth, one.kind, one.hops, one.origin, one.source].append(one)
    for (depth, kind, hops, origin, source), some in groups.items():
        urls = [split_url(one.href) for one in some]
        if depth == 0 and kind == RequestKind.PAGE and origin in (Origin.SEED, Origin.REDIRECT):
            shard.link_filter.widen(urls)  # asked for by the user, or where that leads
            if origin == Origin.SEED:
                requeue_failed(shard, urls)
        new = frontier.admit(
            urls,
            depth=depth,
            kind=RequestKind(kind),
            hops=hops,
            now=now,
            origin=Origin(origin),
            credits=[one.credit for one in some] if is_ranked else None,
            source=source,
            now_unix=shard.now_unix(),
        )
        if kind == RequestKind.REQUISITE:
            write_via(shard.committer.batch, new, source)
        elif source and new:
            traps.count_links(source, new)
    vouches = {one.href: one.credit for one in crossings if one.is_evidence_only}
    frontier.add_evidence(vouches, now)


def move_hosts(
    shard: Shard,
    traps: TrapGuard,
    *,
    leaving_buckets: Collection[bytes],
    arriving_hosts: Sequence[tuple[bytes, bytes]],
) -> Batch:
    """Takes buckets out and hosts in, in memory; returns the batch that does it on disk. What is remembered of rows may
    be wrong then, and is forgotten."""
    batch, leaving = Batch(), list[tuple[bytes, HostRow]]()
    for bucket in leaving_buckets:
        leaving += [(key, unpack_host(packed)) for key, packed in bucket_hosts(shard.collection.state, bucket)]
        delete_bucket(batch, bucket)
    activate_arrived_hosts(batch, arriving_hosts)
    traps.forget()
    shard.linker.feed.forget()
    arriving = [unpack_host(packed) for _, packed in arriving_hosts]
    shard.frontier.move_hosts(leaving, arriving, now=shard.now(), now_unix=shard.now_unix())
    return batch


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
