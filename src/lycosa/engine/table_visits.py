"""Looking again by table (P7): of a page with volatile parts only its `.tvi` is fetched, and patched into the document.

A page is looked at so if the stored version has volatile parts and its host has such tables, as far as is known; the
first table that is missing settles that for the host. What comes out of a patch is proved by the digests in the table:
it is stored as the version that the host would have sent. Where the frame has changed as well, or a table is none, the
document is fetched whole: queued again at once, so that the host's pace is kept. It is fetched whole every so often
anyway: a table that nobody keeps up would hide for ever what became of its document.
Called by the outcomes with answers to tables, by the engine before a page is looked at.
"""

from collections.abc import Callable

import msgspec

from lycosa.engine.archive import Archive
from lycosa.engine.pages import PageRow, unpack_page
from lycosa.engine.reading import content
from lycosa.engine.shard import Shard
from lycosa.engine.tables import Known
from lycosa.engine.versions import document_at, headers_of
from lycosa.engine.visit_rows import VisitRow, visit_of
from lycosa.frontier.lease import Lease
from lycosa.records import Family, Request, Response
from lycosa.web import table, tvi
from lycosa.web.media import Kind, kind_of
from lycosa.web.table import Refusal
from lycosa.web.url import url_key

TABLE_VISITS_MOST = 7  # in a row, of a page: the next one asks for the document
_XML = (Kind.XML, Kind.FEED)
# These are about the bytes of one version, and would be wrong before another.
_OF_A_VERSION = frozenset({"etag", "last-modified", "content-encoding", "content-md5", "digest", "content-digest"})
_IN_VAIN = frozenset({Known.HAS_NONE, Known.LIES})

Patched = Callable[[Lease, Request, Response | None, str], None]
"""Settles a visit: lease, the request for the table, the document that the table gave (None: as before), its tag."""


class TableVisits:
    """See the module. `whole` are URLs to be fetched whole next time: those that are queued again."""

    def __init__(self, shard: Shard, archive: Archive, patched: Patched) -> None:
        self._shard, self._archive, self._patched = shard, archive, patched
        self._is_on = shard.settings.tables != "off"
        self._whole: set[str] = set()

    def __repr__(self) -> str:
        return f"<TableVisits whole={len(self._whole)}>"

    def table_of(self, lease: Lease) -> str | None:
        """The URL to ask for instead of the document; None: the document."""
        host, entry = lease.host, lease.entry
        if lease.url in self._whole:
            self._whole.discard(lease.url)
            return None
        if not self._is_on or host.row.volatile in _IN_VAIN or entry is None or entry.tries:
            return None
        row = self._row(lease)
        url = table.beside(lease.url, tvi.WORD) if row and row.volatile and row.status == 200 else None
        if url is not None and self._visit(lease).by_table >= TABLE_VISITS_MOST:
            return None
        rules = host.row.robots if self._shard.settings.robots else None
        is_allowed = url is not None and (rules is None or rules.allows(url[len(host.origin) :]))
        return url if is_allowed and not (row and row.truncated) else None

    def conditions(self, lease: Lease) -> tuple[tuple[str, str], ...]:
        """The header fields that ask for a table only if it changed."""
        etag = self._visit(lease).table_etag
        return (("If-None-Match", etag),) if etag and etag.isascii() and etag.isprintable() else ()

    def _visit(self, lease: Lease) -> VisitRow:
        return visit_of(self._shard.collection.state, url_key(lease.url)) or VisitRow()

    def settle(self, lease: Lease, request: Request, response: Response) -> None:
        """An answer to a table that is no failure of the host's, one way or the other."""
        shard, host = self._shard, lease.host
        self._archive.keep_answer(lease, request, response)
        etag = response.headers.get("etag", "")
        if response.status == 304:
            shard.counters.totals.tables["unchanged"] += 1
            self._patched(lease, request, None, etag or self._visit(lease).table_etag)
            return
        made = self._document(lease, response)
        shard.counters.totals.tables["patched" if isinstance(made, Response) else made] += 1
        if isinstance(made, Response):
            self._know(lease, Known.HAS)
            self._patched(lease, request, made, etag)
            return
        if made == Refusal.NOT_WHAT_IT_SAYS:
            self._know(lease, Known.LIES)
            shard.events.write("tables-not-trusted", host=host.origin, url=request.url)
        elif host.row.volatile == Known.NOTHING and made not in (Refusal.FRAME_CHANGED, Refusal.OTHER_DOCUMENT):
            self._know(lease, Known.HAS_NONE)  # where there are some, the page may be gone with its table
        self.failed(lease)
        shard.frontier.retry(lease, due_unix=shard.now_unix(), due=shard.now(), counts=False)

    def failed(self, lease: Lease) -> None:
        """The table could not be had: the next time the document is asked for."""
        self._whole.add(lease.url)

    def _document(self, lease: Lease, response: Response) -> Response | str:
        """The document of now, as an answer, or why the table does not give it."""
        if response.status != 200 or response.truncated is not None:
            return str(response.truncated or response.status)
        found = tvi.parse(content(response, table.MAX_BYTES + 1))
        if isinstance(found, Refusal):
            return found
        row = self._row(lease)
        stored = document_at(self._shard.collection, row.place) if row else None
        if stored is None or row is None or not table.is_of(found.of, lease.url):
            return Refusal.OTHER_DOCUMENT
        head, body = stored
        patched = tvi.patch(body, found, is_xml=kind_of(row.essence) in _XML)
        if isinstance(patched, Refusal):
            return patched
        headers = {name: value for name, value in headers_of(head).items() if name not in _OF_A_VERSION}
        return msgspec.structs.replace(
            response,
            url=lease.url,
            header_block=_without(head, _OF_A_VERSION),
            headers=headers | {"content-length": str(len(patched))},
            body=patched,
        )

    def _row(self, lease: Lease) -> PageRow | None:
        packed = self._shard.collection.state.get(Family.PAGE, url_key(lease.url))
        return unpack_page(packed) if packed else None

    def _know(self, lease: Lease, known: Known) -> None:
        if lease.host.row.volatile not in (known, Known.LIES):
            lease.host.row.volatile = known
            self._shard.frontier.shelf.touch(lease.host)


def _without(head: bytes, names: frozenset[str]) -> bytes:
    """A header block without the fields of these names."""
    first, *lines = head.split(b"\r\n")
    kept = [line for line in lines if line.partition(b":")[0].strip().lower().decode("latin-1") not in names]
    return b"\r\n".join([first, *kept])
