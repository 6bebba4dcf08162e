"""Revisits by table: of a page with volatile parts only its `.tvi` is fetched, and patched into the stored document.

A page is visited so if the stored version has volatile parts and its host has such tables, as far as is known; the
first table that is missing decides that for the host. The digests in the table prove what comes out of a patch: it is
the version that the host would have sent, stored as such or, with `patch = "read"`, as the table alone, and made again
whenever it is read. If more than the volatile parts has changed, or there is no table, the document is fetched whole:
it is queued again at once, so that the host's delay is kept. It is fetched whole every so often anyway: a table that
nobody keeps up would hide for ever what became of its document. Called by `recrawl.revisits`.
"""

from collections.abc import Callable

import msgspec

from lycosa.crawl import Archive, PatchedDocument, Shard, decoded_body
from lycosa.frontier import Lease
from lycosa.records import Request, Response
from lycosa.recrawl.versions import StoredVersion, VisitRow, headers_of, stored_at, visit_of
from lycosa.store import PageRow, PatchBase, page_at
from lycosa.tables import (
    IN_VAIN,
    TABLE_MAX_BYTES,
    TVI,
    TableRefusal,
    TableSupport,
    Tvi,
    has_xml_parts,
    is_table_of,
    parse_tvi,
    patch_document,
    table_url,
)
from lycosa.web import document_digest, url_key

# In a row, of a page; the next visit asks for the document. A table that has changed was made by somebody who keeps it
# up, one that is as it was may have been left behind.
TABLE_VISITS_MOST, SAME_TABLES_MOST = 50, 7
# These are about the bytes of one version, and would be wrong before another.
_OF_A_VERSION = frozenset({"etag", "last-modified", "content-encoding", "content-md5", "digest", "content-digest"})

Patched = Callable[[Lease, Request, PatchedDocument | None, str], None]
"""Ends a visit: lease, the request for the table, the document that the table gave (None: as before), its ETag."""


class TableRevisits:
    """Asks for tables in place of pages. `_whole` are the URLs to be fetched whole next time, which are queued again;
    `_missing` are those among them that have no table."""

    def __init__(self, shard: Shard, archive: Archive, patched: Patched) -> None:
        self._shard, self._archive, self._patched = shard, archive, patched
        self._is_on = shard.settings.tables != "off"
        self._on_read = shard.settings.patch == "read"
        self._whole: set[str] = set()
        self._missing: set[str] = set()

    def __repr__(self) -> str:
        return f"<TableVisits whole={len(self._whole)}>"

    def table_of(self, lease: Lease) -> str | None:
        """The URL of the table to ask for in place of the document; None: the document itself."""
        host, entry = lease.host, lease.entry
        if lease.url in self._whole:
            self._whole.discard(lease.url)
            return None
        is_vain = host.row.volatile in IN_VAIN or (
            host.row.volatile == TableSupport.NOTHING and host.row.tables in IN_VAIN
        )
        if not self._is_on or is_vain or entry is None or entry.tries:
            return None
        row = self._row(lease)
        is_patchable = row is not None and row.volatile and row.status == 200 and bool(row.place)
        url = table_url(lease.url, TVI) if is_patchable else None
        if url is not None and is_doubtful(self._visit(lease)):
            return None
        rules = host.row.robots if self._shard.settings.robots else None
        is_allowed = url is not None and (rules is None or rules.allows(url[len(host.origin) :]))
        return url if is_allowed and not (row and row.truncated) else None

    def conditions(self, lease: Lease) -> tuple[tuple[str, str], ...]:
        """The header fields that ask for a table only if it has changed."""
        etag = self._visit(lease).table_etag
        return (("If-None-Match", etag),) if etag and etag.isascii() and etag.isprintable() else ()

    def _visit(self, lease: Lease) -> VisitRow:
        return visit_of(self._shard.collection.state, url_key(lease.url)) or VisitRow()

    def handle(self, lease: Lease, request: Request, response: Response) -> None:
        """Reads the answer to a table that is no failure of the host's."""
        shard, host = self._shard, lease.host
        made = self._document(lease, response) if response.status != 304 else None
        is_kept_with_version = isinstance(made, PatchedDocument) and made.base_record is not None
        if not is_kept_with_version:
            self._archive.keep_answer(lease, request, response)
        if made is None or isinstance(made, PatchedDocument):
            shard.counters.table("patched" if made else "unchanged")
            if response.status != 304:
                self._note_support(lease, TableSupport.HAS)
            etag = response.headers.get("etag", "") or (self._visit(lease).table_etag if response.status == 304 else "")
            self._patched(lease, request, made, etag)
            return
        shard.counters.table(made)
        if made == TableRefusal.NOT_WHAT_IT_SAYS:
            self._note_support(lease, TableSupport.LIES)
            shard.events.write("tables-not-trusted", host=host.origin, url=request.url)
        elif host.row.volatile == TableSupport.NOTHING and made not in (
            TableRefusal.FRAME_CHANGED,
            TableRefusal.OTHER_DOCUMENT,
        ):
            self._note_support(lease, TableSupport.HAS_NONE)  # else the page may be gone with its table
        self.fetch_whole(lease)
        if made not in (TableRefusal.FRAME_CHANGED, TableRefusal.OTHER_DOCUMENT):
            self._missing.add(lease.url)
        shard.frontier.outcomes.retry(lease, due_unix=shard.now_unix(), due=shard.now(), counts=False)

    def fetch_whole(self, lease: Lease) -> None:
        """Has the document itself asked for next time."""
        self._whole.add(lease.url)

    def has_parts(self, lease: Lease, before: PageRow) -> bool:
        """May a page that was fetched whole still have a table, of parts that it does not mark itself?"""
        is_missing = lease.url in self._missing
        self._missing.discard(lease.url)
        return before.volatile and not is_missing

    def _document(self, lease: Lease, response: Response) -> PatchedDocument | str | None:
        """The document as it is now; None if it is as stored; or why the table does not give it."""
        if response.status != 200 or response.truncated is not None:
            return str(response.truncated or response.status)
        found = parse_tvi(decoded_body(response, TABLE_MAX_BYTES + 1))
        if isinstance(found, TableRefusal):
            return found
        row = self._row(lease)
        stored = stored_at(self._shard.collection, row.place) if row else None
        if stored is None or row is None or not is_table_of(found.of, lease.url):
            return TableRefusal.OTHER_DOCUMENT
        patched = _patch(stored, found)
        if isinstance(patched, TableRefusal):
            return patched
        if document_digest(patched) == row.digest:
            return None
        headers = {name: value for name, value in headers_of(stored.head).items() if name not in _OF_A_VERSION}
        document = msgspec.structs.replace(
            response,
            url=lease.url,
            header_block=_without(stored.head, _OF_A_VERSION),
            headers=headers | {"content-length": str(len(patched))},
            body=patched,
        )
        whole = self._patchable(stored, row.place, found, patched) if self._on_read else None
        return PatchedDocument(document, response, whole)

    def _patchable(self, stored: StoredVersion, place: bytes, found: Tvi, patched: bytes) -> PatchBase | None:
        """The record with a body from which the same document can be made later on; None if there is none."""
        at = stored.whole.place.pack()
        if at == place:
            return stored.whole
        last_whole = stored_at(self._shard.collection, at)
        return stored.whole if last_whole is not None and _patch(last_whole, found) == patched else None

    def _row(self, lease: Lease) -> PageRow | None:
        return page_at(self._shard.collection.state, url_key(lease.url))

    def _note_support(self, lease: Lease, support: TableSupport) -> None:
        if lease.host.row.volatile not in (support, TableSupport.LIES):
            lease.host.note_volatile(support)


def is_doubtful(visit: VisitRow) -> bool:
    """Is it time to see the document itself again?"""
    return visit.by_table >= TABLE_VISITS_MOST or visit.same_tables >= SAME_TABLES_MOST


def _without(head: bytes, names: frozenset[str]) -> bytes:
    """A header block without the fields of these names."""
    first, *lines = head.split(b"\r\n")
    kept = [line for line in lines if line.partition(b":")[0].strip().lower().decode("latin-1") not in names]
    return b"\r\n".join([first, *kept])


def _patch(stored: StoredVersion, found: Tvi) -> bytes | TableRefusal:
    is_xml = has_xml_parts(stored.body, headers_of(stored.head).get("content-type"))
    return patch_document(stored.body, found, is_xml=is_xml)
