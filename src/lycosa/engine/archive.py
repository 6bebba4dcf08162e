"""From a request and its response to WARC members and rows in the open batch."""

from typing import NamedTuple

from lycosa.engine.documents import DocumentStore
from lycosa.engine.pages import PageRow
from lycosa.engine.shard import Shard
from lycosa.frontier.lease import Lease
from lycosa.records import Request, Response
from lycosa.store import Exchange, Original, RevisitProfile, Whole, exchange, patch_on_read, patched, revisit
from lycosa.web.digests import payload_sha1
from lycosa.web.page import Page
from lycosa.web.url import from_key, url_key


class FromTable(NamedTuple):
    """A document that was never sent as a whole: stored before, brought up to date by the `answer` that is its table.
    `whole`: the record it is made from whenever it is read; None: it is kept as it is now."""

    document: Response
    answer: Response
    whole: Whole | None = None


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
    ) -> Exchange:
        """The records of a body; `sha1` is its digest, where it is known, `fetched_s` the time of its row."""
        now = self._shard.now_unix() if fetched_s is None else fetched_s
        if self.is_off:
            return Exchange([], sha1 or payload_sha1(response.body), now)
        return exchange(request, response, fetched_s=now, metadata=_metadata(lease), payload_sha1=sha1)

    def revisit(
        self,
        lease: Lease,
        request: Request,
        response: Response,
        original: Original,
        profile: RevisitProfile = RevisitProfile.SAME_PAYLOAD,
    ) -> Exchange:
        """The records of a body that is stored already."""
        if self.is_off:
            return Exchange([], original.payload_sha1, self._shard.now_unix())
        return revisit(
            request,
            response,
            fetched_s=self._shard.now_unix(),
            original=original,
            profile=profile,
            metadata=_metadata(lease),
        )

    def patched(self, lease: Lease, request: Request, found: FromTable) -> Exchange:
        """The records of a version that a table gave; where it is made on reading, that table's records as well."""
        now, metadata = self._shard.now_unix(), {**_metadata(lease), "patched-by": request.url}
        if found.whole is None:
            return patched(found.document, fetched_s=now, metadata=metadata)
        return patch_on_read(request, found.answer, found.document, whole=found.whole, fetched_s=now, metadata=metadata)

    def version(
        self, lease: Lease, request: Request, response: Response, page: Page, documents: DocumentStore
    ) -> tuple[Exchange, str]:
        """The records of a new version; those of a copy, and whose, where another URL has the same document."""
        made = self.exchange(lease, request, response)
        first = documents.first_with(page.fingerprint)
        if first is None or first[0] != page.digest or first[1] == url_key(lease.url):
            return made, ""
        original, url = documents.page(first[1]), from_key(first[1])
        if original is None or original.payload_sha1 != made.payload_sha1:
            return made, ""
        known = Original(url, original.fetched_s, original.payload_sha1)
        return self.revisit(lease, request, response, known), url

    def keep(self, made: Exchange) -> int | None:
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
