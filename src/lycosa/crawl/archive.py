"""The archive of a crawl: from a request and its response to WARC members in the next commit.

Where no archive is kept (`archive = none`) records have no members and no place, and what is known of a page stands in
its row alone. Called by whoever reads an answer.
"""

from typing import NamedTuple

from lycosa.crawl.shard import Shard
from lycosa.frontier import Lease
from lycosa.records import Request, Response
from lycosa.store import (
    HttpExchange,
    OriginalRecord,
    PageRow,
    PatchBase,
    RevisitProfile,
    patch_on_read_exchange,
    patched_exchange,
    response_exchange,
    revisit_exchange,
)
from lycosa.web import payload_sha1, url_key


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

    def keep(self, made: HttpExchange) -> int | None:
        """Hands the records over; returns a ticket for the response's place."""
        return self._committer.archive(made.members, made.RESPONSE if made.members else None)

    def keep_answer(
        self, lease: Lease, request: Request | None, response: Response, fetched_s: float | None = None
    ) -> int | None:
        """Keeps an answer that is no page; nothing where there was no answer. `fetched_s`: the time of its row."""
        if request is None or not response.header_block:
            self._committer.count_outcomes()
            return None
        return self.keep(self.exchange(lease, request, response, fetched_s=fetched_s))

    def put(self, lease: Lease, row: PageRow, ticket: int | None) -> None:
        """Writes the row of the lease's URL; `ticket` stands for the place of its record."""
        self._committer.page(url_key(lease.url), row, ticket)


def _metadata(lease: Lease) -> dict[str, str]:
    return {"depth": str(lease.depth)}
