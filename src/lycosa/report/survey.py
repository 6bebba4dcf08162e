"""Takes a collection in for its report: the rows of its URLs, the bodies of its pages, and the links that matter.

Three passes, each in the order in which its source lies on disk: the state (URLs and pages side by side), the archive
(by place, on all cores where there are enough pages), the link index (some thousand URLs at a time). The site are the
registrable domains of the seeds, and all of the collection where it has none: pages of others are external. Only reads;
what cannot be read is counted. Called by `report.making`.
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path

import msgspec
import numpy as np

from lycosa.duplicates import Relation, duplicate_pages
from lycosa.errors import LycosaError
from lycosa.frontier import KEY_END, Origin, Reason, UrlRow, UrlState, unpack_host
from lycosa.graph import current_link_index, incoming_links
from lycosa.inspect import settings_of
from lycosa.records import Family
from lycosa.recrawl import StoredDocuments
from lycosa.report.database import ReportDatabase, signed, uid
from lycosa.report.requisites import read_broken_requisites
from lycosa.search import reading_archive, serve, stored_message
from lycosa.store import CollectionStore, PageRow, page_at, unpack_page
from lycosa.web import (
    BUCKET_BYTES,
    LinkKind,
    MediaKind,
    PageAudit,
    audit_page,
    domain_of,
    media_kind,
    parse_url,
    read_sitemap,
    url_from_key,
    url_key,
)

AT_ONCE = 5_000  # rows that are written, and URLs whose links are read, at a time
COUNTED_AT_ONCE = 50_000  # URLs whose links are counted
_SET_LINKS = "update page set links = ? where id = ?"
FOLDER_CHARS = 80
REASONS = {
    "no-such-host": "the host does not exist",
    "dns": "the name of the host cannot be resolved",
    "connect": "no connection",
    "connect-timeout": "no connection in time",
    "first-byte-timeout": "no answer in time",
    "idle-timeout": "the answer stopped",
    "total-timeout": "the answer took too long",
    "tls": "the certificate or TLS failed",
    "reset": "the connection was reset",
    "protocol": "no valid HTTP answer",
    "bad-redirect": "redirects to nowhere",
    Reason.ROBOTS_UNREACHABLE: "robots.txt cannot be had, so the host was not asked",
}

Progress = Callable[[int, int], None]


class Survey(msgspec.Struct):
    """What was taken in, in figures. `unread` are pages whose bodies could not be read, `queued` URLs that are known
    and were not fetched. `first_s` and `last_s` are when the first and the last page came."""

    sites: tuple[str, ...] = ()
    pages: int = 0
    queued: int = 0
    unread: int = 0
    sitemaps: int = 0
    has_bodies: bool = True
    has_times: bool = False
    has_near: bool = False
    has_requisites: bool = False
    first_s: float = 0.0
    last_s: float = 0.0


def take_in(collection: CollectionStore, database: ReportDatabase, progress: Progress | None = None) -> Survey:
    """Fills the database with all that the rules look at."""
    survey = Survey()
    _StateReader(collection, database, survey).read()
    database.index_pages()
    _read_sitemaps(collection, database, survey)
    _read_clusters(collection, database, survey)
    _read_bodies(collection, database, survey, progress or (lambda done, pages: None))
    if survey.has_requisites and survey.has_bodies:
        read_broken_requisites(database, collection.warc_folders)
    _read_links(collection, database)
    return survey


# the state


class _HostFacts(msgspec.Struct):
    """What the URLs of a host share."""

    start: bytes
    is_internal: bool
    gave_up: str


class _StateReader:
    """Walks the URLs and the pages of a collection side by side."""

    def __init__(self, collection: CollectionStore, database: ReportDatabase, survey: Survey) -> None:
        self._collection, self._state, self._database, self._survey = collection, collection.state, database, survey
        self._domains = _domains(collection)
        self._host = _HostFacts(b"", False, "")
        survey.sites = tuple(sorted(self._domains))

    def read(self) -> None:
        rows = self._rows()
        while some := list(islice(rows, AT_ONCE)):
            self._database.add("page", some, len(some[0]))

    def _rows(self) -> Iterator[tuple[object, ...]]:
        pages = self._state.walk(Family.PAGE)
        page_key, packed_page = next(pages, (b"", b""))
        number = 0
        for key, packed in self._state.walk(Family.URL):
            while page_key and page_key < key:  # a page without a row of its URL: an imported one, perhaps
                number += 1
                yield self._row(number, page_key, None, unpack_page(packed_page))
                page_key, packed_page = next(pages, (b"", b""))
            page = None
            if page_key == key:
                page = unpack_page(packed_page)
                page_key, packed_page = next(pages, (b"", b""))
            row = UrlRow.unpack(packed)
            if page is not None or self._counts(key, row):
                number += 1
                yield self._row(number, key, row, page)
        while page_key:
            number += 1
            yield self._row(number, page_key, None, unpack_page(packed_page))
            page_key, packed_page = next(pages, (b"", b""))

    def _counts(self, key: bytes, row: UrlRow) -> bool:
        """Is a URL without a page one that the report speaks of: blocked, or failed, itself or with its host?"""
        if row.state is UrlState.QUEUED:
            has_failed = bool(self._host_of(key).gave_up)
            self._survey.queued += not has_failed
            return has_failed
        return row.state is UrlState.FAILED or row.reason is Reason.ROBOTS

    def _host_of(self, key: bytes) -> _HostFacts:
        if not self._host.start or not key.startswith(self._host.start):
            end = key.index(KEY_END, BUCKET_BYTES)
            packed = self._state.get(Family.HOST, key[:end])
            url = parse_url(url_from_key(key[: end + 1]))
            is_internal = not self._domains or (url is not None and domain_of(url.host) in self._domains)
            self._host = _HostFacts(key[: end + 1], is_internal, unpack_host(packed).gave_up if packed else "")
        return self._host

    def _row(self, number: int, key: bytes, known: UrlRow | None, page: PageRow | None) -> tuple[object, ...]:
        host, survey = self._host_of(key), self._survey
        page = page or PageRow(0, 0.0, known.depth if known else 0)
        url, origin = url_from_key(key), known.origin if known else Origin.LINK
        state, reason = _state(known, page, host.gave_up)
        survey.has_requisites |= bool(page.requisite)
        if state == "page" and host.is_internal:
            survey.pages += 1
            survey.has_times |= bool(page.took_ms)
            survey.has_near |= bool(page.simhash)
            survey.first_s = min(survey.first_s or page.fetched_s, page.fetched_s)
            survey.last_s = max(survey.last_s, page.fetched_s)
        return (
            number,
            uid(url),
            url,
            _folder(url),
            signed(page.file_num) if page.file_num else None,
            state,
            page.status,
            reason,
            media_kind(page.essence) in (MediaKind.HTML, MediaKind.XHTML),
            host.is_internal,
            origin is Origin.SEED,
            origin.name.lower(),
            page.location,
            uid(page.location) if page.location else None,
            page.depth,
            page.document_bytes or page.size_bytes,
            page.took_ms or None,
            page.noindex,
            page.title,
            page.digest if page.size_bytes else None,
            page.place or None,
            uid(page.original) if page.original else None,
            page.requisite > 0 and page.essence == "text/css" and page.status == 200,
            not media_kind(page.essence).is_part_of_pages,
        )


def _domains(collection: CollectionStore) -> frozenset[str]:
    """The registrable domains of the seeds."""
    try:
        seeds = settings_of(collection).seeds
    except LycosaError:  # the next crawl reports them
        return frozenset()
    return frozenset(domain_of(url.host) for text in seeds if (url := parse_url(text)))


def _state(known: UrlRow | None, page: PageRow, gave_up: str) -> tuple[str, str]:
    """What a URL is for the report, and why."""
    if page.is_sitemap and 200 <= page.status < 300:
        return "sitemap", ""
    if page.location and page.failure != "bad-redirect":
        return "redirect", str(page.status)
    if page.failure or page.status >= 400:
        return "broken", REASONS.get(page.failure, page.failure if not page.status else str(page.status))
    if page.status:
        return "page" if page.status < 300 and page.is_page else "other", ""
    if known is not None and known.reason is Reason.ROBOTS:
        return "blocked", "robots.txt"
    return "broken", REASONS.get(gave_up, gave_up.replace("-", " ")) or "no answer"


def _folder(url: str) -> str:
    """Host and first folder."""
    parts = url.split("/", 4)
    return f"{parts[2]}/{parts[3]}/"[:FOLDER_CHARS] if len(parts) > 4 else f"{parts[2]}/"[:FOLDER_CHARS]


def _read_clusters(collection: CollectionStore, database: ReportDatabase, survey: Survey) -> None:
    """Which pages are near-copies of others, each with the representative of its cluster."""
    if not survey.has_near:
        return
    pages = duplicate_pages(collection.state, relation=Relation.NEAR)
    rows = ((uid(page.url), uid(page.representative)) for page in pages)
    while some := list(islice(rows, AT_ONCE)):
        database.update(
            "insert or ignore into near select p.id, f.id from page as p, page as f where p.uid = ? and f.uid = ?", some
        )


# the archive


def read_audit(folders: Sequence[Path], url: str, place: bytes) -> PageAudit | None:
    """What the page says whose record is at `place`, as the page at `url`; None where it cannot be read like this."""
    stored = stored_message(folders, place)
    if stored is None:
        return None
    said = stored.field(b"content-type")
    return audit_page(stored.body, url=url, content_type=said, link_header=stored.field(b"link") or "")


def main() -> None:
    """The worker process."""
    serve(read_audit)


def _read_sitemaps(collection: CollectionStore, database: ReportDatabase, survey: Survey) -> None:
    """Which URLs sitemaps name; where no bodies are kept, those that became known by them."""
    documents = StoredDocuments(collection)
    for url, has_place in database.rows("select url, place is not null from page where state = 'sitemap'"):
        content = _content(collection, documents, url) if has_place else None
        if content is not None:
            survey.sitemaps += 1
            found = read_sitemap(content[1], url)
            database.add("listed", ((uid(entry.url),) for entry in found.entries if not found.is_index), 1)
    database.execute(
        "insert or ignore into listed select uid from page where origin = 'sitemap' and state <> 'sitemap'"
    )


def _content(collection: CollectionStore, documents: StoredDocuments, url: str) -> tuple[dict[str, str], bytes] | None:
    row = page_at(collection.state, url_key(url))
    if row is None or not row.place:
        return None
    with contextlib.suppress(LycosaError):  # a file of the archive is missing
        # Without the URL of its original: its payload is not searched for in the whole archive.
        return documents.read(msgspec.structs.replace(row, original="", is_elsewhere=False))
    return None


def _read_bodies(collection: CollectionStore, database: ReportDatabase, survey: Survey, progress: Progress) -> None:
    """Audits every HTML page of the site, in the order of the archive. A copy is read where its original lies."""
    wanted = "state = 'page' and is_internal and is_html"
    pages = database.value(f"select count(*) from page where {wanted}")
    survey.has_bodies = (
        bool(database.value(f"select 1 from page where {wanted} and place is not null limit 1")) or not pages
    )
    if not survey.has_bodies:
        return
    database.execute(
        "create temp table job as select page.id, page.url, coalesce(first.place, page.place) as at from page"
        " left join page as first on first.uid = page.original and first.place is not null"
        f" where page.{wanted.replace(' and ', ' and page.')} order by at"
    )
    jobs = (
        (url, place or b"")
        for url, place in database.rows("select url, at from job where at is not null order by rowid")
    )
    ids = database.rows("select id, url from job where at is not null order by rowid")
    documents, done = StoredDocuments(collection), 0
    with reading_archive(__name__, read_audit, list[PageAudit | None], collection.warc_folders, pages) as read:
        found = zip(ids, read(jobs), strict=True)
        while some := list(islice(found, AT_ONCE)):
            markup, alternates, named = [], [], []
            for (number, url), read_at_once in some:
                audit = read_at_once or _read_slowly(collection, documents, url)
                if audit is None:
                    survey.unread += 1
                    continue
                markup.append(_markup(number, audit))
                alternates += [(number, code, target, uid(target)) for code, target in audit.alternates]
                others = {*audit.canonicals, *(target for _, target in audit.alternates)} - {url}
                named += [(uid(target),) for target in others]
            database.add("markup", markup, 12)
            database.add("alternate", alternates, 4)
            database.add("named", named, 1)
            done += len(some)
            progress(done, pages)
    survey.unread += pages - done


def _read_slowly(collection: CollectionStore, documents: StoredDocuments, url: str) -> PageAudit | None:
    """By the state: for versions that a table made, and other records without a body of their own."""
    content = _content(collection, documents, url)
    if content is None:
        return None
    fields, body = content
    return audit_page(body, url=url, content_type=fields.get("content-type"), link_header=fields.get("link", ""))


def _markup(number: int, audit: PageAudit) -> tuple[object, ...]:
    canonical = audit.canonicals[0] if len(audit.canonicals) == 1 else None
    return (
        number,
        audit.title_problem if audit.is_html else "",
        audit.description,
        audit.description_problem if audit.is_html else "",
        audit.h1 if audit.is_html else 1,
        canonical,
        uid(canonical) if canonical else None,
        "\n".join(audit.canonicals) if len(audit.canonicals) > 1 else None,
        audit.without_alt,
        "\n".join(audit.images),
        audit.insecure_count,
        "\n".join(audit.insecure),
    )


# the links


def _read_links(collection: CollectionStore, database: ReportDatabase) -> None:
    """How many pages link to each page, and the links themselves where the target is worth a word."""
    index = current_link_index(collection)
    pages = database.rows("select id, url from page where state = 'page' and is_internal")
    while some := pages.fetchmany(COUNTED_AT_ONCE):
        counts = zip(index.counts([url for _, url in some]), some, strict=True)
        database.update(_SET_LINKS, ((count, number) for count, (number, _) in counts if count))
    # Pages that may be named by <link> elements only, as canonical URLs and alternates are: these do not count.
    named = database.rows(
        "select id, url from page where state = 'page' and is_internal and links > 0"
        " and links <= (select count(*) from named where target = page.uid)"
    )
    while some := named.fetchmany(AT_ONCE):
        links = incoming_links(index, [url for _, url in some])
        counts_of = np.bincount(links.place[links.kind != LinkKind.LINK], minlength=len(some)).tolist()
        database.update(_SET_LINKS, ((count, number) for count, (number, _) in zip(counts_of, some, strict=True)))
    told = database.rows(
        "select id, url from page where state = 'broken' or (is_internal and state in ('redirect', 'blocked'))"
    )
    while some := told.fetchmany(AT_ONCE):
        links = incoming_links(index, [url for _, url in some])
        columns = (column.tolist() for column in (links.place, links.source, links.kind, links.text))
        rows = zip(*columns, strict=True)
        database.add("link", ((some[at][0], signed(page), kind, links.words(text)) for at, page, kind, text in rows), 4)
