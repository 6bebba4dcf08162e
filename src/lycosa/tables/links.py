"""Tables of links in a crawl (P4): a document's links from the small file beside it, while the document is on its way.

Whether a host has tables is found out once: a `Link` header says so, or the table of one document, whether of links or
of volatile parts, is tried and the answer remembered for both kinds. Automatic mode asks for a table beside its
document, through another slot of the host that is free now, when nothing else can be asked for; never on a host with a
delay, where a table would cost a page, nor with a ranking. `always` asks for the table first, in the turn of its
document, which has the next turn of the host: with any delay, any number of slots and any policy.
A table that differs from its document in the end lies: its host's tables are not asked for any more. Links from tables
pass the filters, robots.txt and the guard as all others do. Memory: documents in flight or with a table in flight.
"""

from collections.abc import Collection, Iterator
from enum import IntEnum
from typing import NamedTuple

from lycosa.crawl import (
    MISLED_MOST,
    PageHandler,
    ReadPage,
    Shard,
    decoded_body,
    followed_links,
    header_hrefs,
    is_nofollow,
)
from lycosa.fetch import parse_retry_after
from lycosa.frontier import Host, Lease, RequestKind
from lycosa.records import Request, Response
from lycosa.store import LinkRow
from lycosa.tables.formats import (
    TABLE_MAX_BYTES,
    TOL,
    TOL_REL,
    TableRefusal,
    Tol,
    is_table_of,
    parse_tol,
    table_digest,
    table_url,
)
from lycosa.web import Url, parse_link_header

BUSY = frozenset({429, 503})
BUSY_WAIT_S = 5.0
# A document this far on its way, by the host's usual time, is nearly as soon there as its table.
LATE_SHARE = 0.5
BUSY_MOST = 10_000  # hosts whose first table did not come that are remembered
NEXT_MOST = 10_000  # documents whose table was read; nearly all have the next turn


class TableSupport(IntEnum):
    """What is known of a host's tables. Values are stored: never renumber."""

    NOTHING = 0
    HAS = 1
    HAS_NONE = 2
    LIES = 3
    TRYING = 4  # asked once, no answer yet; after a restart it counts as none
    HAS_ALL = 5  # documents whose name has no ending have them, too


_HAS = frozenset({TableSupport.HAS, TableSupport.HAS_ALL})
_MAY_HAVE = _HAS | {TableSupport.NOTHING}
IN_VAIN = frozenset({TableSupport.HAS_NONE, TableSupport.LIES, TableSupport.TRYING})
_ENDINGS = frozenset(("html", "htm", "xhtml", "shtml", "xml", "php", "asp", "aspx", "jsp"))


class TableClaim(NamedTuple):
    """What a table says of its document: its digest, and the URLs of its links; None: there is no table."""

    document: str
    urls: frozenset[str] | None
    has_parts: bool = False


class TakenByTable(NamedTuple):
    """What was taken for one document: what its table claims, and the URLs that were new."""

    claim: TableClaim | None
    new: list[Url]


NO_TABLE = TableClaim("", None)
NOTHING_TAKEN = TakenByTable(None, [])


class LinkTables:
    """Observes fetches: asks for tables, reads them, and compares them with their documents."""

    def __init__(self, shard: Shard, pages: PageHandler) -> None:
        self._shard, self._pages, self._admission = shard, pages, pages.admission
        self._mode = shard.settings.tables
        self._goes_first = self._mode == "always"
        # All by the ticket of a lease.
        self._open: dict[int, float] = {}  # documents in flight, and when they began
        self._young: dict[int, Lease] = {}  # those whose table was not asked for
        self._asked: dict[int, Lease] = {}  # tables in flight, and the leases of their documents
        self._claims: dict[int, TableClaim] = {}
        self._new: dict[int, list[Url]] = {}  # the URLs that tables brought
        self._was_busy: set[bytes] = set()  # hosts whose first table did not come
        self._next: dict[str, TakenByTable] = {}  # documents that are next, and what their tables gave

    def __repr__(self) -> str:
        return f"<LinkTables {self._mode} documents={len(self._open)} asked={len(self._asked)}>"

    # asking

    def request(self, lease: Lease) -> Request:
        return self._pages.requests.build(lease, body_limit_bytes=TABLE_MAX_BYTES, takes_any_type=True)

    def started(self, lease: Lease) -> Lease:
        """A document is about to be asked for; returns the lease of its table, if that is asked for in its place."""
        if lease.kind is not RequestKind.PAGE or lease.failure is not None:
            return lease
        if self._goes_first:
            return self._first(lease) or lease
        if lease.host.slots.limit > 1 and self._may_have(lease) and self._admission.can_take_early(lease):
            self._open[lease.ticket] = self._shard.now()
            self._young[lease.ticket] = lease
        return lease

    def _first(self, document: Lease) -> Lease | None:
        if document.url in self._next:
            self._resume(document, self._next.pop(document.url))
            return None
        is_retry = document.entry is None or document.entry.tries > 0
        if document.is_head or is_retry or not self._may_have(document) or not self._admission.leads_on(document):
            return None
        url = table_url(document.url, TOL)
        lease = self._shard.frontier.lease_instead(document, RequestKind.TABLE, url) if url else None
        if lease is not None:
            self._open[document.ticket] = self._shard.now()
            self._ask(document, lease)
        return lease

    def _resume(self, document: Lease, taken: TakenByTable) -> None:
        """The document whose table was read has its turn, with another lease."""
        if taken.claim is not None or taken.new:
            self._open[document.ticket] = self._shard.now()
            self._new[document.ticket] = taken.new
        if taken.claim is not None:
            self._claims[document.ticket] = taken.claim

    def arriving(self, lease: Lease, response: Response) -> None:
        """Nothing to do: what arrives of a document is `crawl.early_links`' business."""

    def idle(self) -> Iterator[Lease]:
        """The tables of documents that were asked for a moment ago, the latest of them first: a table gains the time
        that its document still takes."""
        now = self._shard.now()
        for ticket, document in reversed(list(self._young.items())):
            host = document.host
            usual_s = host.row.seconds / max(1, host.row.requests)
            if now - self._open[ticket] > LATE_SHARE * usual_s or not self._may_have(document):
                del self._young[ticket]
            elif not (host.has_work or host.delay_s) and (lease := self._beside(document)) is not None:
                del self._young[ticket]
                yield lease

    def _may_have(self, document: Lease) -> bool:
        row = document.host.row
        if (
            row.tables == TableSupport.NOTHING and row.volatile in IN_VAIN
        ):  # one table was looked for in vain: that is enough
            return False
        return row.tables in _MAY_HAVE and _is_likely(document.url, TableSupport(row.tables))

    def _beside(self, document: Lease) -> Lease | None:
        url = table_url(document.url, TOL)
        lease = self._shard.frontier.lease_beside(document, RequestKind.TABLE, url, self._shard.now()) if url else None
        if lease is not None:
            self._ask(document, lease)
        return lease

    def _ask(self, document: Lease, lease: Lease) -> None:
        self._asked[lease.ticket] = document
        if document.host.row.tables == TableSupport.NOTHING:
            self._know(document.host, TableSupport.TRYING)

    # hearing

    def _hear(self, host: Host, response: Response) -> None:
        """The headers of a document: do they tell of a table?"""
        value = response.headers.get("link", "")
        told = TableSupport.HAS if _is_likely(response.url, TableSupport.NOTHING) else TableSupport.HAS_ALL
        may_be_news = host.row.tables in (TableSupport.NOTHING, TableSupport.HAS) and host.row.tables != told
        if may_be_news and TOL_REL in value and any(TOL_REL in link.rels for link in parse_link_header(value)):
            self._know(host, told)

    def handle(self, lease: Lease, request: Request | None, response: Response) -> None:
        """The answer to a table."""
        document, shard = self._asked.pop(lease.ticket), self._shard
        self._pages.keeper.archive.keep_answer(lease, request, response)
        found = self._read(document, response)
        shard.counters.table("read" if isinstance(found, Tol) else found)
        if isinstance(found, Tol):
            if lease.host.row.tables not in _HAS:
                self._know(lease.host, TableSupport.HAS)
            self._claim(document, found, response)
        elif found != TableRefusal.OTHER_DOCUMENT and not self._says_nothing(lease.host, response):
            self._missed(document)
        wait_s = 0.0
        if response.failure is None and response.status in BUSY:
            asked_for = parse_retry_after(response.headers.get("retry-after", ""), now_unix_s=shard.now_unix())
            wait_s = max(BUSY_WAIT_S, asked_for or 0.0)
        if self._goes_first:
            self._next[document.url] = self._taken(document)
            if len(self._next) > NEXT_MOST:
                del self._next[next(iter(self._next))]
            shard.frontier.wait_next(document, len(found.links) if isinstance(found, Tol) else None)
        shard.release(lease, response, wait_s=wait_s, reason=str(response.status) if wait_s else "")

    def _read(self, document: Lease, response: Response) -> Tol | str:
        """The table in an answer, or why there is none."""
        if response.failure is not None or response.truncated is not None:
            return str(response.failure or response.truncated)
        if response.status != 200:
            return str(response.status)
        found = parse_tol(decoded_body(response, TABLE_MAX_BYTES + 1))
        if isinstance(found, Tol) and not is_table_of(found.of, document.url):
            return TableRefusal.OTHER_DOCUMENT
        return found

    def _claim(self, document: Lease, found: Tol, response: Response) -> None:
        """Takes in what a table says of a document, if that is still on its way."""
        if document.ticket not in self._open or document.host.row.tables == TableSupport.LIES:
            return
        said = (found.robots,) if found.robots else ()
        is_followed = not is_nofollow(said, response, self._pages.keeper.rules)
        links = followed_links(found, self._pages.keeper.rules) if is_followed else LinkRow(())
        joined = self._shard.link_filter.joined(links, document.url)
        self._claims[document.ticket] = TableClaim(found.document, frozenset(joined.values()), found.volatile > 0)
        self._new.setdefault(document.ticket, []).extend(self._admission.take_table(document, links, joined))

    def _says_nothing(self, host: Host, response: Response) -> bool:
        """Did no answer come, or only that the host is busy? A host without a table so far is tried twice."""
        if response.failure is None and response.status not in BUSY:
            return False
        if host.row.tables == TableSupport.TRYING:
            if host.key in self._was_busy:
                return False
            if len(self._was_busy) >= BUSY_MOST:
                self._was_busy.clear()
            self._was_busy.add(host.key)
            self._know(host, TableSupport.NOTHING)
        return True

    def _missed(self, document: Lease) -> None:
        """There is no table. A host that was tried has none; on one that has some, the document has to be one."""
        if document.host.row.tables == TableSupport.TRYING:
            self._know(document.host, TableSupport.HAS_NONE)
        elif document.ticket in self._open:
            self._claims[document.ticket] = NO_TABLE

    # comparing

    def ended(self, lease: Lease, response: Response, page: ReadPage | None) -> None:
        """Compares a document with what its table gave, which counts with the page; puts the document of a table back
        whose request was cancelled."""
        document = self._asked.pop(lease.ticket, None)
        if document is not None and self._goes_first:
            self._taken(document)
            self._shard.frontier.put_back(document)
        claim, new = self._taken(lease)
        if page is None:
            return
        page.new += new
        if "link" in response.headers:
            self._hear(lease.host, response)
        if claim is not None:
            page.taken |= claim.urls or frozenset()
            page.row.volatile |= claim.has_parts
            self._compare(lease, claim, page.joined.values(), response)

    def _taken(self, document: Lease) -> TakenByTable:
        """What the table of a document gave in time; it is no longer held."""
        ticket = document.ticket
        if self._open.pop(ticket, None) is None:
            return NOTHING_TAKEN
        self._young.pop(ticket, None)
        return TakenByTable(self._claims.pop(ticket, None), self._new.pop(ticket, []))

    def _compare(self, document: Lease, claim: TableClaim, urls: Collection[str], response: Response) -> None:
        """The document is there: are its links those that its table has?"""
        host = document.host
        if claim.urls is None:  # one request in vain is enough; but feeds have none on hosts where pages do
            if "html" in response.headers.get("content-type", "html"):
                self._know(host, TableSupport.HAS_NONE)
            return
        wrong = claim.urls.symmetric_difference(urls)
        if not wrong or response.truncated is not None or wrong <= set(header_hrefs(response)):
            return
        if claim.document and claim.document != table_digest(
            decoded_body(response, self._pages.keeper.decoded_most_bytes)
        ):
            host.count(misled=1)  # it may have changed since the table was made
            if host.row.misled < MISLED_MOST:
                return
        if host.row.tables != TableSupport.LIES:
            self._know(host, TableSupport.LIES)
            self._shard.events.write("tables-not-trusted", host=host.origin, url=document.url, links=len(wrong))

    def _know(self, host: Host, known: TableSupport) -> None:
        if host.row.tables not in (known, TableSupport.LIES):
            host.note_tables(known)


def _is_likely(url: str, known: TableSupport) -> bool:
    """Is it likely a document with a table? What has no ending is often moved elsewhere, other endings are files."""
    name = url.partition("?")[0].rpartition("/")[2]
    _, dot, ending = name.rpartition(".")
    if not dot:
        return not name or known == TableSupport.HAS_ALL
    return ending.lower() in _ENDINGS
