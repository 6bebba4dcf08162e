"""Tables of links in a crawl: the links of a document from the small file beside it, while the document is on its way.

`LinkTables` observes fetches and handles the requests for tables; a crawl with `tables = off` has none. Whether a host
has tables is found out once: a `Link` header says so, or the table of one document, of links or of volatile parts, is
tried and the answer remembered for both kinds. Automatic mode asks for a table beside its document, through a slot of
the host that is free when nothing else can be asked for; never on a host with a delay, where a table would cost a page,
nor with a ranking. `always` asks for the table first, in the turn of its document, which has the next turn of the host:
with any delay, any number of slots and any policy.

A table that differs from its document in the end lies: the tables of its host are not asked for any more. Links from
tables pass the filters, robots.txt and the guard as all others do. Memory: documents in flight or with a table in
flight.
"""

from collections.abc import Iterator
from enum import IntEnum
from typing import NamedTuple

from lycosa.crawl import (
    MAX_MISLED,
    FetchObserver,
    LeaseAnswer,
    PageHandler,
    ReadPage,
    RequestHandler,
    Shard,
    decoded_body,
    followed_links,
    header_hrefs,
    is_nofollow,
)
from lycosa.fetch import parse_retry_after
from lycosa.frontier import Host, Lease, RequestKind
from lycosa.records import Request, Response
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
from lycosa.web import FollowedLinks, Url, parse_link_header

BUSY = frozenset({429, 503})
BUSY_WAIT_S = 5.0
# A document this far on its way, by the host's usual time, arrives nearly as soon as its table would.
LATE_SHARE = 0.5
BUSY_MOST = 10_000  # hosts remembered whose first table did not come
NEXT_MOST = 10_000  # documents remembered whose table was read; nearly all have the next turn


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
    """What a table says of its document: the digest, the URLs of its links (None: there is no table), and whether it
    has volatile parts. `new` are those of the URLs that became known by the table."""

    document: str = ""
    urls: frozenset[str] | None = None
    has_parts: bool = False
    new: tuple[Url, ...] = ()


NO_TABLE = TableClaim()


class LinkTables(FetchObserver, RequestHandler):
    """Asks for tables, reads them, and compares them with their documents. What is known of documents in flight is kept
    by the ticket of their lease."""

    def __init__(self, shard: Shard, pages: PageHandler) -> None:
        self._shard, self._pages, self._admission = shard, pages, pages.admission
        self._goes_first = shard.settings.tables == "always"
        self._started_at: dict[int, float] = {}  # documents in flight
        self._untried: dict[int, Lease] = {}  # those whose table was not asked for
        self._claims: dict[int, TableClaim] = {}
        self._documents: dict[int, Lease] = {}  # by the ticket of their table's lease
        self._next: dict[str, TableClaim | None] = {}  # documents that have the next turn, and what their tables claim
        self._were_busy: set[bytes] = set()  # hosts whose first table did not come

    def __repr__(self) -> str:
        mode = "always" if self._goes_first else "auto"
        return f"<LinkTables {mode} documents={len(self._started_at)} asked={len(self._documents)}>"

    # asking

    def started(self, lease: Lease) -> Lease:
        """Returns the lease of a document's table if that goes first."""
        if lease.kind is not RequestKind.PAGE or lease.failure is not None:
            return lease
        if self._goes_first:
            return self._table_first(lease)
        if lease.host.slots.limit > 1 and self._may_have(lease) and self._admission.can_take_early(lease):
            self._started_at[lease.ticket] = self._shard.now()
            self._untried[lease.ticket] = lease
        return lease

    def _table_first(self, document: Lease) -> Lease:
        if document.url in self._next:  # its table was read: now it has its turn, with another lease
            if (claim := self._next.pop(document.url)) is not None:
                self._claims[document.ticket] = claim
            return document
        is_retry = document.entry is None or document.entry.tries > 0
        if document.is_head or is_retry or not self._may_have(document) or not self._admission.leads_on(document):
            return document
        url = table_url(document.url, TOL)
        lease = self._shard.frontier.leasing.in_place_of(document, RequestKind.TABLE, url) if url else None
        if lease is None:
            return document
        self._started_at[document.ticket] = self._shard.now()
        self._note_asked(document, lease)
        return lease

    def idle(self) -> Iterator[Lease]:
        """The tables of documents that were asked for a moment ago, the latest first: a table gains the time that its
        document still takes."""
        now = self._shard.now()
        for ticket, document in reversed(list(self._untried.items())):
            host = document.host
            usual_s = host.row.seconds / max(1, host.row.requests)
            if now - self._started_at[ticket] > LATE_SHARE * usual_s or not self._may_have(document):
                del self._untried[ticket]
            elif not (host.has_work or host.delay_s) and (lease := self._lease_beside(document)) is not None:
                del self._untried[ticket]
                yield lease

    def _lease_beside(self, document: Lease) -> Lease | None:
        url = table_url(document.url, TOL)
        leasing, now = self._shard.frontier.leasing, self._shard.now()
        lease = leasing.additional(document, RequestKind.TABLE, url, now) if url else None
        if lease is not None:
            self._note_asked(document, lease)
        return lease

    def _note_asked(self, document: Lease, lease: Lease) -> None:
        self._documents[lease.ticket] = document
        if document.host.row.tables == TableSupport.NOTHING:
            self._note_support(document.host, TableSupport.TRYING)

    def _may_have(self, document: Lease) -> bool:
        row = document.host.row
        if row.tables == TableSupport.NOTHING and row.volatile in IN_VAIN:  # one table in vain is enough
            return False
        return row.tables in _MAY_HAVE and _is_likely(document.url, TableSupport(row.tables))

    def request(self, lease: Lease) -> Request:
        return self._pages.requests.build(lease, body_limit_bytes=TABLE_MAX_BYTES, takes_any_type=True)

    # the answer to a table

    def handle(self, answer: LeaseAnswer) -> None:
        """Reads a table, and admits the links that it claims if its document is still on its way."""
        lease, response = answer.lease, answer.response
        document, shard = self._documents.pop(lease.ticket), self._shard
        self._pages.keeper.archive.keep_answer(lease, answer.request, response)
        found = self._read(document, response)
        shard.counters.table("read" if isinstance(found, Tol) else found)
        if isinstance(found, Tol):
            if lease.host.row.tables not in _HAS:
                self._note_support(lease.host, TableSupport.HAS)
            self._admit(document, found, response)
        elif found != TableRefusal.OTHER_DOCUMENT and not self._is_inconclusive(lease.host, response):
            self._note_missing(document)
        wait_s = 0.0
        if response.failure is None and response.status in BUSY:
            asked_for = parse_retry_after(response.headers.get("retry-after", ""), now_unix_s=shard.now_unix())
            wait_s = max(BUSY_WAIT_S, asked_for or 0.0)
        if self._goes_first:
            self._next[document.url] = self._forget(document)
            if len(self._next) > NEXT_MOST:
                del self._next[next(iter(self._next))]
            shard.frontier.outcomes.keep_as_next(document, len(found.links) if isinstance(found, Tol) else None)
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

    def _admit(self, document: Lease, found: Tol, response: Response) -> None:
        if document.ticket not in self._started_at or document.host.row.tables == TableSupport.LIES:
            return
        robots, rules = (found.robots,) if found.robots else (), self._shard.reader.rules
        is_closed = is_nofollow(robots, response, rules)
        links = FollowedLinks() if is_closed else followed_links(found, rules, document.url)
        new = tuple(self._admission.take_table(document, links))
        claim = TableClaim(found.document, frozenset(links.joined.values()), found.volatile > 0, new)
        self._claims[document.ticket] = claim

    def _is_inconclusive(self, host: Host, response: Response) -> bool:
        """Did no answer come, or only that the host is busy? A host without a table so far is tried twice."""
        if response.failure is None and response.status not in BUSY:
            return False
        if host.row.tables == TableSupport.TRYING:
            if host.key in self._were_busy:
                return False
            if len(self._were_busy) >= BUSY_MOST:
                self._were_busy.clear()
            self._were_busy.add(host.key)
            self._note_support(host, TableSupport.NOTHING)
        return True

    def _note_missing(self, document: Lease) -> None:
        """There is no table. A host that was tried has none; on one that has some, the document has to be HTML."""
        if document.host.row.tables == TableSupport.TRYING:
            self._note_support(document.host, TableSupport.HAS_NONE)
        elif document.ticket in self._started_at:
            self._claims[document.ticket] = NO_TABLE

    # the end of a document's fetch

    def ended(self, lease: Lease, response: Response, page: ReadPage | None) -> None:
        """Compares a document with what its table claims. A table whose request was cancelled was not handled: its
        document may have waited for it, and is put back."""
        cancelled = self._documents.pop(lease.ticket, None)
        if cancelled is not None and self._goes_first:
            self._forget(cancelled)
            self._shard.frontier.outcomes.return_to_queue(cancelled)
        claim = self._forget(lease)
        if page is None:
            return
        if "link" in response.headers:
            self._read_link_header(lease.host, response)
        if claim is None:
            return
        page.new += claim.new
        page.taken |= claim.urls or frozenset()
        page.row.volatile |= claim.has_parts
        self._compare(page, claim)

    def _forget(self, document: Lease) -> TableClaim | None:
        """A document is in flight no more; returns what its table claimed in time."""
        self._started_at.pop(document.ticket, None)
        self._untried.pop(document.ticket, None)
        return self._claims.pop(document.ticket, None)

    def _read_link_header(self, host: Host, response: Response) -> None:
        """Notes that a host has tables if the headers of a document say so."""
        value = response.headers["link"]
        told = TableSupport.HAS if _is_likely(response.url, TableSupport.NOTHING) else TableSupport.HAS_ALL
        is_news = host.row.tables in (TableSupport.NOTHING, TableSupport.HAS) and host.row.tables != told
        if is_news and TOL_REL in value and any(TOL_REL in link.rels for link in parse_link_header(value)):
            self._note_support(host, told)

    def _compare(self, page: ReadPage, claim: TableClaim) -> None:
        host, response = page.lease.host, page.response
        if claim.urls is None:  # one request in vain is enough; but feeds have none on hosts where pages do
            if "html" in response.headers.get("content-type", "html"):
                self._note_support(host, TableSupport.HAS_NONE)
            return
        wrong = claim.urls.symmetric_difference(page.joined.values())
        if not wrong or response.truncated is not None or wrong <= set(header_hrefs(response)):
            return
        body = decoded_body(response, self._shard.reader.max_decoded_bytes)
        if claim.document and claim.document != table_digest(body):
            host.count(misled=1)  # it may have changed since the table was made
            if host.row.misled < MAX_MISLED:
                return
        if host.row.tables != TableSupport.LIES:
            self._note_support(host, TableSupport.LIES)
            self._shard.events.write("tables-not-trusted", host=host.origin, url=page.lease.url, links=len(wrong))

    def _note_support(self, host: Host, support: TableSupport) -> None:
        if host.row.tables not in (support, TableSupport.LIES):
            host.note_tables(support)


def _is_likely(url: str, support: TableSupport) -> bool:
    """Is it likely a document with a table? What has no ending is often moved elsewhere, other endings are files."""
    name = url.partition("?")[0].rpartition("/")[2]
    _, dot, ending = name.rpartition(".")
    if not dot:
        return not name or support == TableSupport.HAS_ALL
    return ending.lower() in _ENDINGS
