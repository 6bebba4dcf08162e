"""From a response to what it says: content decoded, digests, page analysed, links joined.

`PageReader` does all that an answer allows by itself, without the state of the crawl and without a clock; it is the
dearest part of a crawl. What is known already, and so what becomes of the page, is decided afterwards, on the event
loop and in the order of arrival, by `crawl.keeper`. `crawl.reader_threads` has documents read beside the event loop.
"""

import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

import msgspec

from lycosa.errors import SettingsError
from lycosa.frontier import Lease, Reason, RequestKind
from lycosa.records import Request, Response, Truncation
from lycosa.settings import CrawlSettings, merge, read_field, read_file
from lycosa.store import HttpExchange, LinkRow, link_row, recorded_response, response_exchange
from lycosa.web import (
    FOLLOWED_RELS,
    SNIFF_BYTES,
    Analysers,
    FollowedLinks,
    LinkKind,
    LinkRules,
    Links,
    Page,
    RobotsDirectives,
    UrlPatterns,
    analyse_page,
    base_url,
    beginning_read,
    document_digests,
    follow_links,
    header_statements,
    host_statements,
    identify_media,
    join_map,
    matches_pattern,
    named_analysers,
    pack_statements,
    page_statements,
    parse_link_header,
    parse_url,
    pattern_pieces,
    robots_directives,
    split_url,
)

if TYPE_CHECKING:
    from lycosa.web import FieldExtractor


DECODED_FACTOR = 2  # a decoded body may be this many times the body limit
# A document with more bytes, or with more tags and so maybe as many links, would hold the event loop if it were taken
# in at once.
LARGE_BYTES, LARGE_TAGS = 256 * 1024, 4_000
VAST_BYTES = 4_000_000  # decoded; so many that it is asked whether all of them are read


def redirect_location(response: Response) -> str:
    """Where a redirect leads, as written: header bytes are UTF-8 if they can be, Latin-1 else."""
    text = response.headers.get("location", "")
    try:
        return text.encode("latin-1").decode()
    except UnicodeError:
        return text


def decoded_answer(response: Response, cap_bytes: int) -> tuple[bytes, bool]:
    """The body with its content coding undone, and whether it was cut for that."""
    coding = response.headers.get("content-encoding", "")
    if not coding:
        return response.body, False
    from lycosa.fetch import decode_body  # lazy: its libraries need not be there before the first request is out

    decoded = decode_body(response.body, coding, cap_bytes=cap_bytes)
    return decoded.body, decoded.is_cut


def decoded_body(response: Response, cap_bytes: int) -> bytes:
    """The body with its content coding undone."""
    return decoded_answer(response, cap_bytes)[0]


def decoded_pieces(response: Response, cap_bytes: int) -> Iterable[bytes]:
    """As `decoded_body`, in pieces that are made when they are asked for."""
    coding = response.headers.get("content-encoding", "")
    if not coding:
        return (response.body,)
    from lycosa.fetch import decode_pieces  # lazy: its libraries need not be there before the first request is out

    return decode_pieces(response.body, coding, cap_bytes=cap_bytes)


def read_page(
    response: Response,
    body: bytes,
    analysers: Analysers | None = None,
    *,
    fingerprint: int | None = None,
    digest: bytes | None = None,
    wants_main: bool = False,
    wants_simhash: bool = False,
    follow: LinkRules | None = None,
) -> Page:
    """The analysed page; `fingerprint` and `digest` are of the body, where they are known, and `follow` is asked for
    where its links are wanted."""
    headers = response.headers
    return analyse_page(
        body,
        url=response.url,
        content_type=headers.get("content-type"),
        content_language=headers.get("content-language"),
        analysers=analysers,
        fingerprint=fingerprint,
        digest=digest,
        wants_main=wants_main,
        wants_simhash=wants_simhash,
        follow=follow,
    )


def analysers_of(collection: Path) -> Analysers | None:
    """The analysers of the collection at a path, as its settings name them; None: the usual ones."""
    try:
        with (collection / "lycosa.toml").open("rb") as file:
            has_some = bool(tomllib.load(file).get("analysers"))
    except (OSError, ValueError):  # a shard, or settings for the next crawl to complain of
        return None
    return named_analysers(merge(read_file(collection / "lycosa.toml"))) if has_some else None


def extractor_of(collection: Path) -> "FieldExtractor":
    """The extractor of the fields that the settings of the collection at a path name; without any it is empty."""
    from lycosa.web import FieldExtractor  # lazy: its libraries need not be there before the first request is out

    try:
        settings = merge(read_file(collection / "lycosa.toml"))
    except SettingsError:  # a shard, or settings for the next crawl to complain of
        settings = CrawlSettings()
    return FieldExtractor([read_field(entry) for entry in settings.fields])


def page_directives(robots: tuple[str, ...], response: Response, agent: str) -> RobotsDirectives:
    """What a page (the contents of its `<meta name=robots>`) and its headers say to robots."""
    tag = response.headers.get("x-robots-tag")
    values = (*robots, tag) if tag else robots
    return robots_directives(values, agent) if values else RobotsDirectives()


class HasLinks(Protocol):
    """A page, or as much of one as its links."""

    @property
    def links(self) -> Links: ...

    @property
    def base_href(self) -> str | None: ...


def header_hrefs(response: Response) -> list[str]:
    """The URLs that the headers of a response, or the hints before it, link to with a relation that is followed."""
    values = [value for value in (response.headers.get("link"), response.hints) if value]
    links = [link for value in values for link in parse_link_header(value) if not FOLLOWED_RELS.isdisjoint(link.rels)]
    return list(dict.fromkeys(url.href for link in links if (url := parse_url(link.href, response.url))))


def with_headers(row: LinkRow, response: Response) -> LinkRow:
    """The links of a document and of its headers."""
    known = set(row.hrefs)
    hrefs = [href for href in header_hrefs(response) if href not in known]
    if not hrefs:
        return row
    kinds = row.kinds + bytes((LinkKind.LINK,)) * len(hrefs)
    return LinkRow((*row.hrefs, *hrefs), row.base_href, kinds, (*row.anchors, *([""] * len(hrefs))))


def followed_links(page: HasLinks, rules: LinkRules, url: str) -> FollowedLinks:
    """The links of the page at `url` that are followed, and where they lead."""
    if isinstance(page, Page) and page.followed is not None:
        return page.followed
    return follow_links(page.links, base_url(url, page.base_href), rules, page.base_href or "")


def joined_links(links: LinkRow, url: str) -> FollowedLinks:
    """The links of the document at `url`, and where they lead."""
    joined = join_map(base_url(url, links.base_href), links.hrefs)
    return FollowedLinks(links.hrefs, links.kinds, links.anchors, joined, links.base_href)


class PageVerdict(NamedTuple):
    """What pipelines, or its publisher's preferences, say of a page: the fields that pipelines add, packed; why it is
    dropped, or nothing; whether its links are followed; and who dropped it."""

    fields: bytes = b""
    dropped: str = ""
    follows: bool = True
    reason: Reason = Reason.PIPELINE


class PreparedPage(msgspec.Struct):
    """What an answer says by itself. `page` is None until the document is analysed, and what follows it is empty;
    `content` digests the main content, where no body is kept that it could be made from; `records` are those of the
    exchange, where they are made already. `is_cut`: not all of it was analysed, or not all of its links are here.
    `verdict` is that of the pipelines, once they have seen it. `packed` is what a body that is not held is decoded from
    again: the answer, the cap, and the size that it then has."""

    held_body: bytes
    fingerprint: int
    payload_sha1: bytes
    digest: bytes
    page: Page | None = None
    directives: RobotsDirectives = RobotsDirectives()
    links: FollowedLinks = msgspec.field(default_factory=FollowedLinks)
    content: bytes = b""
    records: HttpExchange | None = None
    is_cut: bool = False
    verdict: PageVerdict | None = None
    packed: tuple[Response, int, int] | None = None

    @property
    def body(self) -> bytes:
        return self.held_body if self.packed is None else decoded_body(*self.packed[:2])

    def beginning(self, size: int | None) -> bytes:
        """The body, or, where it is not held, so many bytes of it."""
        if self.packed is None or size is None:
            return self.body
        return decoded_body(self.packed[0], min(size, self.packed[1]))

    @property
    def size_bytes(self) -> int:
        return len(self.held_body) if self.packed is None else self.packed[2]

    def hold_packed(self, response: Response, cap_bytes: int) -> None:
        """Lets the body of the answer go where it is another one than came: it may be a thousand times larger."""
        if self.packed is None and response.headers.get("content-encoding"):
            self.held_body, self.packed = b"", (response, cap_bytes, len(self.held_body))

    @property
    def joined(self) -> Mapping[str, str]:
        """Where the hrefs of `links` lead."""
        return self.links.joined

    @property
    def is_large(self) -> bool:
        """Does it have to be taken in step by step?"""
        return len(self.body) > LARGE_BYTES or self.body.count(b"<") > LARGE_TAGS


class LeaseAnswer(msgspec.Struct):
    """What came back for a lease at `fetched_s`, Unix time; `request` is None where none was sent. `prepared` is the
    page as it was read beside the event loop; None: it is read when it is handled."""

    lease: Lease
    request: Request | None
    response: Response
    fetched_s: float
    prepared: PreparedPage | None = None

    def let_go(self) -> None:
        """What came of it stands in the next commit: its body, and what was read of it, need no memory any more."""
        self.response, self.prepared = Response(self.response.url, self.response.status), None

    def hold_packed(self, cap_bytes: int) -> None:
        """Of a long document that is read no more is held than its record, or else than its body as it was sent. The
        record may be a tenth of that; it counts as the body all the same, since that may be asked for again."""
        if (prepared := self.prepared) is None:
            return
        prepared.hold_packed(self.response, cap_bytes)
        if prepared.records is not None and prepared.records.members:
            size_bytes, self.response = prepared.size_bytes, recorded_response(self.response, prepared.records)
            prepared.held_body, prepared.packed = b"", (self.response, cap_bytes, size_bytes)

    @property
    def is_document(self) -> bool:
        """Is it a document in answer to a request for one?"""
        lease, response = self.lease, self.response
        return (
            lease.kind in (RequestKind.PAGE, RequestKind.REVISIT)
            and self.request is not None
            and self.request.url == lease.url  # not a table in its place
            and response.failure is None
            and response.truncated is not Truncation.UNWANTED
            and 200 <= response.status < 300
            and not (lease.is_head and response.status == 206)
        )


class KeepRules:
    """Says which documents are kept, where others are only read for their links: those whose URL matches one of the
    patterns, if there are any, and whose media type matches one of the types, if there are any."""

    def __init__(self, patterns: Sequence[str], types: Sequence[str]) -> None:
        self._urls = UrlPatterns(patterns) if patterns else None
        self._types = [pattern_pieces(pattern.lower()) for pattern in types]

    def keeps(self, url: str, essence: str) -> bool:
        if self._urls is not None and not self._urls.match(split_url(url)):
            return False
        return not self._types or any(matches_pattern(pieces, essence, to_end=True) for pieces in self._types)

    @classmethod
    def of(cls, settings: CrawlSettings) -> "KeepRules | None":
        """The rules of a crawl; None: everything is kept."""
        return cls(settings.keep, settings.keep_types) if settings.keep or settings.keep_types else None


class PageReader:
    """Reads answers. It holds nothing but the rules by which it reads: any thread may use it."""

    wants_simhash = True  # what they cost is measured by benchmarks

    def __init__(
        self,
        settings: CrawlSettings,
        analysers: Analysers | None = None,
        content_digest: Callable[[Page, bytes], bytes] | None = None,
    ) -> None:
        self.analysers, self._content_digest = analysers, content_digest
        self.rules = LinkRules(agent=settings.agent, images=settings.images, obeys_nofollow=settings.nofollow)
        self.max_decoded_bytes = settings.body_bytes * DECODED_FACTOR
        self.has_archive, self._keep_rules = settings.archive != "none", KeepRules.of(settings)
        self.wants_main = False  # somebody takes the main texts of pages
        self.has_pipelines = False  # which look at bodies

    def is_kept(self, url: str, essence: str) -> bool:
        """Is a document to be kept, rather than only read for its links?"""
        return self._keep_rules is None or self._keep_rules.keeps(url, essence)

    @property
    def keeps_all(self) -> bool:
        return self._keep_rules is None

    def prepare(self, answer: LeaseAnswer) -> None:
        """Reads a large document ahead of its turn and makes its records; of others it makes the digests. What cannot
        be read is left as it is."""
        if answer.is_document:
            with suppress(Exception):
                prepared = self.digests(answer.response)
                if prepared.is_large:
                    # What the analysis finds takes more than the records; of a packed document its body goes before.
                    if self.analysers is None and not answer.response.headers.get("content-encoding"):
                        prepared.records = self._records(answer, prepared)
                    # a revisit compares the body several times, and pipelines are shown it
                    if answer.lease.kind is RequestKind.REVISIT or self.has_pipelines:
                        self.analyse(answer.response, prepared)
                    else:
                        self._analyse_packed(answer.response, prepared)
                    prepared.records = prepared.records or self._records(answer, prepared)
                answer.prepared = prepared

    def _analyse_packed(self, response: Response, prepared: PreparedPage) -> None:
        """Analyses a document whose decoded body need not be held; of a vast one that is no more than what is read."""
        read = size = prepared.size_bytes
        if size > VAST_BYTES and self.analysers is None and not self.wants_main:
            read = beginning_read(prepared.body, response.headers.get("content-type"))
        if read <= size // 2:  # else it is not worth to decode it again
            prepared.hold_packed(response, self.max_decoded_bytes)
        self.analyse(response, prepared, read_bytes=read)
        prepared.hold_packed(response, self.max_decoded_bytes)

    def _records(self, answer: LeaseAnswer, prepared: PreparedPage) -> HttpExchange | None:
        """The records of a document that is new and will be kept; None: they are made when that is known."""
        lease, request, response = answer.lease, answer.request, answer.response
        if not self.has_archive or request is None or lease.kind is RequestKind.REVISIT:
            return None
        content_type = response.headers.get("content-type")
        media = prepared.page.media if prepared.page else identify_media(content_type, prepared.body[:SNIFF_BYTES])
        if not self.is_kept(response.url, media.essence):
            return None
        metadata = record_metadata(lease, response, self.rules.agent)
        return response_exchange(
            request, response, fetched_s=answer.fetched_s, metadata=metadata, payload_sha1=prepared.payload_sha1
        )

    def digests(self, response: Response) -> PreparedPage:
        """The document of an answer with its digests, not analysed yet."""
        body, is_cut = decoded_answer(response, self.max_decoded_bytes)
        return PreparedPage(body, *document_digests(response.body, body), is_cut=is_cut)

    def analyse(self, response: Response, prepared: PreparedPage, *, read_bytes: int | None = None) -> Page:
        """Analyses the document, unless that is done; `read_bytes` of it, where the others would change nothing."""
        if prepared.page is not None:
            return prepared.page
        page = read_page(
            response,
            prepared.beginning(read_bytes),
            self.analysers,
            fingerprint=prepared.fingerprint,
            digest=prepared.digest,
            wants_main=self.wants_main,
            wants_simhash=self.wants_simhash,
            follow=self.rules,
        )
        self.complete(response, prepared, page)
        return page

    def complete(self, response: Response, prepared: PreparedPage, page: Page) -> None:
        """Adds what an analysed page says to robots, and its links and those of the header fields that are followed."""
        prepared.page, prepared.is_cut = page, prepared.is_cut or page.is_cut
        prepared.directives = page_directives(page.robots, response, self.rules.agent)
        if not (prepared.directives.nofollow and self.rules.obeys_nofollow):
            prepared.links = followed_links(page, self.rules, response.url)
            if response.hints or "link" in response.headers:
                prepared.links = joined_links(with_headers(link_row(prepared.links), response), response.url)
            prepared.is_cut |= len(prepared.links) >= self.rules.most
        if self._content_digest is not None:
            prepared.content = self._content_digest(page, prepared.body)


def answer_statements(lease: Lease, response: Response, agent: str) -> list[str]:
    """What a host and the header fields of its answer say on the use of a document (`web.preferences`)."""
    lines: list[str] = []  # `list[str]()` takes ten times as long, twice a page
    rules = lease.host.row.robots
    if rules is not None and rules.speaks_of_use:
        lines += host_statements(rules, lease.entry.path if lease.entry else split_url(lease.url).path)
    fields = response.headers
    if (  # in turn, which takes half the time of a set of names
        "x-robots-tag" in fields
        or ("link" in fields and "rsl+xml" in fields["link"].lower())
        or "content-usage" in fields
        or "content-signal" in fields
        or "tdm-reservation" in fields
    ):
        lines += header_statements(fields, agent)
    return lines


def document_statements(lease: Lease, response: Response, page: Page, agent: str) -> str:
    """All that is said on the use of an analysed document, packed."""
    lines = answer_statements(lease, response, agent)
    if page.robots:
        lines += page_statements(page.robots, agent)
    return pack_statements(lines) if lines else ""


def record_metadata(lease: Lease, response: Response, agent: str) -> dict[str, str]:
    """What a metadata record says of a page. What the page itself says on its use is in its body."""
    fields = {"depth": str(lease.depth)}
    if lines := answer_statements(lease, response, agent):
        fields["preferences"] = "; ".join(lines)
    return fields
