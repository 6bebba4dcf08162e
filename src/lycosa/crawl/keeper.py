"""The page keeper stores pages, those of first visits and new versions found by revisits: records, rows, documents.

A page is decoded, compared with the documents that are known, analysed only if its document is new, and kept: its WARC
records (`Archive`), its row and its links in the next commit, each document once (`crawl.documents`). Reading a page is
the most expensive part of a crawl. Where no archive is kept (`archive = none`) records have no members and no place,
and what is known of a page stands in its row alone. `PageKeeper` is called by `crawl.pages` for first visits and by
`recrawl` for revisits, `Archive` also by the handlers of other requests; nothing here decides what is fetched.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

from lycosa.crawl.committer import TextTaker
from lycosa.crawl.documents import DocumentStore
from lycosa.crawl.reading import (
    LeaseAnswer,
    PreparedPage,
    answer_statements,
    decoded_body,
    document_statements,
    joined_links,
    page_directives,
    read_page,
    record_metadata,
    with_headers,
)
from lycosa.crawl.seams import Parts, ReadPage, Shard
from lycosa.frontier import Lease
from lycosa.records import Request, Response
from lycosa.store import (
    SELF_CANONICAL,
    HttpExchange,
    LinkRow,
    OriginalRecord,
    PageRow,
    PatchBase,
    RevisitProfile,
    patch_on_read_exchange,
    patched_exchange,
    response_exchange,
    revisit_exchange,
)
from lycosa.web import (
    FollowedLinks,
    MediaKind,
    Page,
    Readable,
    StatementPlace,
    base_url,
    pack_statements,
    parse_url,
    payload_sha1,
    url_from_key,
    url_key,
)


class CommittedPage(NamedTuple):
    """A page as listeners hear of it: `text` is what is for reading in it, `body` has its content coding undone."""

    url: str
    row: PageRow
    page: Page
    text: str
    headers: Mapping[str, str]
    body: bytes


Listener = Callable[[CommittedPage], None]


class PatchedDocument(NamedTuple):
    """A document that was never sent as a whole: stored before, brought up to date by the `answer` that is its table.
    `base_record`: the record it is made from whenever it is read; None: it is kept as it is now."""

    document: Response
    answer: Response
    base_record: PatchBase | None = None


class Archive:
    """Keeps what came back; where no archive is kept (`is_off`), nothing but what stands in the rows."""

    def __init__(self, shard: Shard) -> None:
        self._shard, self._committer, self._agent = shard, shard.committer, shard.settings.agent
        self.is_off = shard.settings.archive == "none"  # nothing is written: records have no members and no place

    def exchange(
        self,
        lease: Lease,
        request: Request,
        response: Response,
        sha1: bytes | None = None,
        fetched_s: float | None = None,
        about: Mapping[str, str] | None = None,
    ) -> HttpExchange:
        """The records of a body; `sha1` is its digest, where it is known, `fetched_s` the time of its row, `about` what
        the metadata record says beside the usual."""
        now = self._shard.now_unix() if fetched_s is None else fetched_s
        if self.is_off:
            return HttpExchange([], sha1 or payload_sha1(response.body), now)
        metadata = {**record_metadata(lease, response, self._agent), **(about or {})}
        return response_exchange(request, response, fetched_s=now, metadata=metadata, payload_sha1=sha1)

    def revisit(
        self,
        lease: Lease,
        request: Request,
        response: Response,
        original: OriginalRecord,
        profile: RevisitProfile = RevisitProfile.SAME_PAYLOAD,
        *,
        fetched_s: float | None = None,
    ) -> HttpExchange:
        """The records of a body that is stored already."""
        now = self._shard.now_unix() if fetched_s is None else fetched_s
        if self.is_off:
            return HttpExchange([], original.payload_sha1, now)
        return revisit_exchange(
            request,
            response,
            fetched_s=now,
            original=original,
            profile=profile,
            metadata=record_metadata(lease, response, self._agent),
        )

    def patched(self, lease: Lease, request: Request, found: PatchedDocument) -> HttpExchange:
        """The records of a version that a table gave; where it is made on reading, that table's records as well."""
        now = self._shard.now_unix()
        metadata = {**record_metadata(lease, found.document, self._agent), "patched-by": request.url}
        if found.base_record is None:
            return patched_exchange(found.document, fetched_s=now, metadata=metadata)
        return patch_on_read_exchange(
            request, found.answer, found.document, whole=found.base_record, fetched_s=now, metadata=metadata
        )

    def add_records(self, made: HttpExchange) -> int | None:
        """Hands the records over; returns a ticket for the response's place."""
        return self._committer.archive(made.members, made.RESPONSE if made.members else None)

    def keep_answer(
        self, lease: Lease, request: Request | None, response: Response, fetched_s: float | None = None
    ) -> int | None:
        """Keeps an answer that is no page; nothing where there was no answer. `fetched_s`: the time of its row."""
        if request is None or not response.header_block:
            self._committer.count_outcomes()
            return None
        return self.add_records(self.exchange(lease, request, response, fetched_s=fetched_s))

    def write_row(self, lease: Lease, row: PageRow, ticket: int | None) -> None:
        """Writes the row of the lease's URL; `ticket` stands for the place of its record."""
        self._committer.page(url_key(lease.url), row, ticket)


class PageKeeper:
    """Reads pages and keeps their records, rows and links. `listeners` are called for a page once it is committed."""

    def __init__(self, shard: Shard, parts: Parts, archive: Archive, documents: DocumentStore) -> None:
        self._shard, self.archive, self.documents, self._reader = shard, archive, documents, shard.reader
        self._topic = parts.topic
        self.listeners: list[Listener] = []
        self.text_taker: TextTaker | None = None

    # first visits

    def read(self, answer: LeaseAnswer) -> ReadPage:
        """Reads and keeps a page that was fetched for the first time."""
        lease, request, response = answer.lease, answer.request, answer.response
        assert request is not None
        prepared = answer.prepared or self._reader.digests(response)
        if not (self._reader.keeps_all or self._is_kept(response, prepared)):
            made = HttpExchange([], prepared.payload_sha1, answer.fetched_s)
            return self._store(lease, response, prepared, made, is_known=False)
        first = self.documents.first_with(prepared.fingerprint)
        if (
            first is not None
            and prepared.size_bytes
            and first.key != url_key(lease.url)
            and first.digest == prepared.digest
        ):
            if (original := self.documents.page(first.key)) is not None:
                return self._copy(answer, request, prepared, first.key, original)
            first = None  # its host belongs to another shard by now
        self._reader.analyse(response, prepared)
        if prepared.is_cut:
            self._shard.events.write("page-cut", url=lease.url, size_bytes=prepared.size_bytes)
        made = self._records(answer, request, prepared)
        return self._store(lease, response, prepared, made, is_known=first is not None)

    def _is_kept(self, response: Response, prepared: PreparedPage) -> bool:
        page = self._reader.analyse(response, prepared)
        return self._reader.is_kept(response.url, page.media.essence)

    def _records(self, answer: LeaseAnswer, request: Request, prepared: PreparedPage) -> HttpExchange:
        return prepared.records or self.archive.exchange(
            answer.lease, request, answer.response, prepared.payload_sha1, answer.fetched_s
        )

    def _copy(
        self, answer: LeaseAnswer, request: Request, prepared: PreparedPage, key: bytes, original: PageRow
    ) -> ReadPage:
        """The document is known under another URL: a revisit record, no second parse, but its links from here."""
        lease, response, sha1 = answer.lease, answer.response, prepared.payload_sha1
        original_url = url_from_key(key)
        if original.payload_sha1 == sha1:
            known = OriginalRecord(original_url, original.fetched_s, sha1)
            made = self.archive.revisit(lease, request, response, known, fetched_s=answer.fetched_s)
        else:
            made = self._records(answer, request, prepared)
        row = PageRow(
            response.status,
            made.fetched_s,
            lease.depth,
            essence=original.essence,
            size_bytes=response.size_bytes,
            payload_sha1=sha1,
            original=original.original or original_url,
            title=original.title,
            language=original.language,
            etag=response.headers.get("etag", ""),
            last_modified=response.headers.get("last-modified", ""),
            fingerprint=original.fingerprint,
            digest=original.digest,
            links=original.links,
            text_digest=original.text_digest,
            structure=original.structure,
            codes=original.codes,
            document_bytes=original.document_bytes,
            content=original.content,
            relevance=original.relevance,
            fields=_fields(prepared),
            took_ms=response.took_ms,
            simhash=original.simhash,
            canonical=_moved_canonical(original.canonical, original_url, lease.url),
        )
        agent = self._reader.rules.agent
        row.apply_directives(original.directives | page_directives((), response, agent))
        of_page = (line for line in original.preferences.split("\n") if line.startswith(StatementPlace.PAGE))
        row.preferences = pack_statements((*answer_statements(lease, response, agent), *of_page))
        ticket = self.archive.add_records(made)
        self.archive.write_row(lease, row, ticket)
        links = with_headers(self.documents.links(key) or LinkRow(()), response)
        read = self.index_links(lease, response, row, joined_links(links, lease.url))
        read.original, read.ticket = original, ticket
        return read

    # new versions

    def store_version(
        self, lease: Lease, request: Request, response: Response, prepared: PreparedPage, *, before: PageRow
    ) -> ReadPage:
        """Keeps another version of a page than that of its row `before`; a copy, where another URL has the document."""
        made = prepared.records or self.archive.exchange(lease, request, response, prepared.payload_sha1)
        first, copied = self.documents.first_with(prepared.fingerprint), ""
        if first is not None and first.digest == prepared.digest and first.key != url_key(lease.url):
            original = self.documents.page(first.key)
            if original is not None and original.payload_sha1 == made.payload_sha1:
                copied = url_from_key(first.key)
                known = OriginalRecord(copied, original.fetched_s, original.payload_sha1)
                made = self.archive.revisit(lease, request, response, known)
        return self.store_records(lease, response, prepared, made, before=before, copied=copied)

    def store_records(
        self,
        lease: Lease,
        response: Response,
        prepared: PreparedPage,
        made: HttpExchange,
        *,
        before: PageRow,
        copied: str = "",
    ) -> ReadPage:
        """Keeps a version whose records are made already; `copied` is the URL that it is a copy of."""
        self.documents.on_replaced(lease.url, url_key(lease.url), before)
        is_known = self.documents.first_with(prepared.fingerprint) is not None
        return self._store(lease, response, prepared, made, is_known=is_known, copied=copied)

    def _store(
        self,
        lease: Lease,
        response: Response,
        prepared: PreparedPage,
        made: HttpExchange,
        *,
        is_known: bool,
        copied: str = "",
    ) -> ReadPage:
        page, links = self._reader.analyse(response, prepared), prepared.links
        is_kept = self._reader.keeps_all or self._is_kept(response, prepared)
        if not is_kept:
            made, copied = HttpExchange([], made.payload_sha1, made.fetched_s), ""
        row = self._row(lease, response, page, made, prepared)
        row.apply_directives(prepared.directives)
        row.preferences = document_statements(lease, response, page, self._reader.rules.agent)
        row.original, row.is_followed_only = copied, not is_kept
        ticket = self.archive.add_records(made)
        self.archive.write_row(lease, row, ticket)
        if is_kept:
            if self.text_taker is not None and page.readable is not None:
                self.text_taker.add(row, page.readable)
            if not is_known:
                self.documents.record_first(url_key(lease.url), row, links)
            self.documents.on_stored(lease.url, row)
        read = self.index_links(lease, response, row, links, page)
        read.ticket = ticket
        return read

    def index_links(
        self,
        lease: Lease,
        response: Response,
        row: PageRow,
        links: FollowedLinks,
        page: Page | None = None,
    ) -> ReadPage:
        """Puts the links of a page into the link index; what is returned can be admitted."""
        self._shard.linker.page(lease.url, url_key(lease.url), row, links)
        return ReadPage(lease, response, row, links, page)

    def _row(self, lease: Lease, response: Response, page: Page, made: HttpExchange, prepared: PreparedPage) -> PageRow:
        codes = page.codes
        return PageRow(
            response.status,
            made.fetched_s,
            lease.depth,
            essence=page.media.essence,
            size_bytes=response.size_bytes,
            payload_sha1=made.payload_sha1,
            fingerprint=page.fingerprint,
            digest=page.digest,
            text_digest=page.text_digest,
            etag=response.headers.get("etag", ""),
            last_modified=response.headers.get("last-modified", ""),
            title=page.title or "",
            language=page.language or "",
            charset=page.charset or "",
            links=len(page.links),
            truncated=response.truncated or "",
            structure=(page.structure_first, page.structure_last),
            codes=(codes.total, codes.squares, codes.distinct, codes.length),
            volatile=page.is_volatile,
            document_bytes=prepared.size_bytes,
            content=prepared.content,
            fields=_fields(prepared),
            relevance=self._topic.page(title=page.title or "", text=page.text) if self._topic else None,
            took_ms=response.took_ms,
            simhash=page.simhash,
            canonical=_canonical(page, lease.url) if page.canonical else "",
        )

    # listeners

    def announce(self, read: ReadPage) -> None:
        """Has the listeners told of a page once it is committed; a copy is analysed for them."""
        if not self.listeners or read.row.is_followed_only:
            return
        from lycosa.web import extract_readable  # lazy: its libraries need not be there before the first request is out

        response, url, row, reader = read.response, read.lease.url, read.row, self._reader
        body = decoded_body(response, reader.max_decoded_bytes)
        page = read.page or read_page(response, body, reader.analysers, wants_main=True)
        said = response.headers.get("content-type")
        found = page.readable
        if found is None and page.media.kind is MediaKind.PDF:  # it would hold the event loop for too long
            found = Readable()
        found = found or extract_readable(body, url=url, content_type=said, analysers=reader.analysers)
        committed = CommittedPage(url, row, page, found.text, response.headers, body)
        for listener in self.listeners:
            self._shard.committer.announce(partial(listener, committed))


def _canonical(page: Page, url: str) -> str:
    """What the row of the page at `url` says of the canonical URL that it names."""
    if page.canonical == url:
        return SELF_CANONICAL
    named = parse_url(page.canonical or "", base_url(url, page.base_href))
    return "" if named is None else SELF_CANONICAL if named.href == url else named.href


def _moved_canonical(named: str, original: str, url: str) -> str:
    """What a row at `url` says where that of a page with the same document, at `original`, says `named`."""
    named = original if named == SELF_CANONICAL else named
    return SELF_CANONICAL if named == url else named


def _fields(prepared: PreparedPage) -> bytes:
    """What pipelines have added to a page."""
    return prepared.verdict.fields if prepared.verdict is not None else b""
