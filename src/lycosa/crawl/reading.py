"""From a response to what it says: content decoded, digests, page analysed, links joined; and which links are wanted.

`PageReader` does all that an answer allows by itself, without the state of the crawl and without a clock; it is the
dearest part of a crawl. What is known already, and so what becomes of the page, is decided afterwards, on the event
loop and in the order of arrival, by `crawl.keeper`. `LinkFilter` belongs to the state: it remembers what was seen a
moment ago.

`ReaderThreads` has documents read beside the event loop, where there is a second core for it, and hands them on in the
order of arrival. The page kernel reads on threads of its own, which run no Python: two threads that take turns at
running Python cost more than a second core gives. What the kernel cannot do alone is left to the event loop, in its
turn: other kinds of documents than HTML, and those that need a tree. Large ones of these are read on a thread of
Python, so that the event loop is not held up. The loop calls it with every answer.
"""

import asyncio
import os
import tomllib
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import msgspec

from lycosa.errors import SettingsError
from lycosa.frontier import Lease, Reason, RecentUrls, RequestKind
from lycosa.records import Request, Response, Truncation
from lycosa.settings import CrawlSettings, merge, read_field, read_file
from lycosa.store import Fetched, HttpExchange, LinkRow, member_writer, response_parts
from lycosa.web import (
    FOLLOWED_RELS,
    Analysers,
    Document,
    DropReason,
    LinkKind,
    LinkRules,
    Links,
    Page,
    RobotsDirectives,
    Scope,
    ScopeKind,
    ShapeFilter,
    Url,
    UrlFilter,
    UrlLimits,
    UrlPatterns,
    analyse_page,
    base_url,
    document_digests,
    filter_urls,
    follow_links,
    header_statements,
    host_statements,
    html_document,
    join_map,
    kernel_arguments,
    matches_pattern,
    named_analysers,
    native,
    pack_statements,
    page_from_kernel,
    page_statements,
    parse_link_header,
    parse_url,
    pattern_pieces,
    robots_directives,
    split_url,
)

if TYPE_CHECKING:
    from lycosa.web import FieldExtractor


DECODED_FACTOR = 4  # a decoded body may be this many times the body limit
# A document with more bytes, or with more tags and so maybe as many links, would hold the event loop if it were taken
# in at once.
LARGE_BYTES, LARGE_TAGS = 256 * 1024, 4_000


def filters_of(s: CrawlSettings, seeds: Sequence[Url]) -> list[UrlFilter]:
    """The filters that the settings ask for: scope first, then shape."""
    limits = UrlLimits(
        include=tuple(s.include),
        exclude=tuple(s.exclude),
        skip_extensions=frozenset(s.skip_extensions),
    )
    return [Scope(ScopeKind(s.scope), seeds), ShapeFilter(limits)]


def redirect_location(response: Response) -> str:
    """Where a redirect leads, as written: header bytes are UTF-8 if they can be, Latin-1 else."""
    text = response.headers.get("location", "")
    try:
        return text.encode("latin-1").decode()
    except UnicodeError:
        return text


def decoded_body(response: Response, cap_bytes: int) -> bytes:
    """The body with its content coding undone."""
    coding = response.headers.get("content-encoding", "")
    if not coding:
        return response.body
    from lycosa.fetch import decode_body  # lazy: its libraries need not be there before the first request is out

    return decode_body(response.body, coding, cap_bytes=cap_bytes).body


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


def followed_links(page: HasLinks, rules: LinkRules, url: str) -> tuple[LinkRow, dict[str, str]]:
    """The links of the page at `url` that are followed, and where they lead: href → URL."""
    found = page.followed if isinstance(page, Page) else None
    found = found or follow_links(page.links, base_url(url, page.base_href), rules)
    return LinkRow(found.hrefs, page.base_href or "", found.kinds, found.anchors), found.joined


def joined_links(links: LinkRow, url: str) -> dict[str, str]:
    """Where the links of the document at `url` lead: href → URL."""
    return join_map(base_url(url, links.base_href), links.hrefs)


class PageVerdict(NamedTuple):
    """What pipelines, or its publisher's preferences, say of a page: the fields that pipelines add, packed; why it is
    dropped, or nothing; whether its links are followed; and who dropped it."""

    fields: bytes = b""
    dropped: str = ""
    follows: bool = True
    reason: Reason = Reason.PIPELINE


class PreparedPage(msgspec.Struct):
    """What an answer says by itself. `page` is None until the document is analysed, and what follows it is empty;
    `joined` says where the hrefs of `links` lead; `content` digests the main content, where no body is kept that it
    could be made from; `records` are those of the exchange, where they are made already. `is_cut`: not all of it was
    analysed, or not all of its links are here. `verdict` is that of the pipelines, once they have seen it."""

    body: bytes
    fingerprint: int
    payload_sha1: bytes
    digest: bytes
    page: Page | None = None
    directives: RobotsDirectives = RobotsDirectives()
    links: LinkRow = msgspec.field(default_factory=partial(LinkRow, ()))
    joined: Mapping[str, str] = {}
    content: bytes = b""
    records: HttpExchange | None = None
    is_cut: bool = False
    verdict: PageVerdict | None = None

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

    @property
    def is_encoded(self) -> bool:
        """Does its body have a content coding?"""
        return "content-encoding" in self.response.headers

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

    def is_kept(self, url: str, essence: str) -> bool:
        """Is a document to be kept, rather than only read for its links?"""
        return self._keep_rules is None or self._keep_rules.keeps(url, essence)

    @property
    def keeps_all(self) -> bool:
        return self._keep_rules is None

    def prepare(self, answer: LeaseAnswer) -> None:
        """Reads a large document ahead of its turn, and makes the digests of others. What cannot be read is left as it
        is."""
        if answer.is_document:
            with suppress(Exception):
                prepared = self.digests(answer.response)
                if prepared.is_large:
                    self.analyse(answer.response, prepared)
                answer.prepared = prepared

    def digests(self, response: Response) -> PreparedPage:
        """The document of an answer with its digests, not analysed yet."""
        body = decoded_body(response, self.max_decoded_bytes)
        return PreparedPage(body, *document_digests([(response.body, body)])[0])

    def analyse(self, response: Response, prepared: PreparedPage) -> Page:
        """Analyses the document, unless that is done."""
        if prepared.page is not None:
            return prepared.page
        page = read_page(
            response,
            prepared.body,
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
        prepared.page, prepared.is_cut = page, page.is_cut
        prepared.directives = page_directives(page.robots, response, self.rules.agent)
        if not (prepared.directives.nofollow and self.rules.obeys_nofollow):
            prepared.links, prepared.joined = followed_links(page, self.rules, response.url)
            if response.hints or "link" in response.headers:
                prepared.links = with_headers(prepared.links, response)
                prepared.joined = joined_links(prepared.links, response.url)
            prepared.is_cut |= len(prepared.links.hrefs) >= self.rules.most
        if self._content_digest is not None:
            prepared.content = self._content_digest(page, prepared.body)


def answer_statements(lease: Lease, response: Response, agent: str) -> list[str]:
    """What a host and the header fields of its answer say on the use of a document (`web.preferences`)."""
    rules, lines = lease.host.row.robots, list[str]()
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


class LinkFilter:
    """Keeps the URLs that are wanted and were not seen a moment ago. `ignored` counts the others by reason;
    `scope_seeds` are the URLs whose hosts, folders or domains are the scope, which only grows."""

    def __init__(
        self,
        settings: CrawlSettings,
        seeds: Sequence[Url],
        more: Sequence[UrlFilter] = (),
        ignored: "Counter[str] | None" = None,
    ) -> None:
        self.scope_seeds, self.filters = list(seeds), [*filters_of(settings, seeds), *more]
        self.unseen = RecentUrls().unseen  # notes URLs and returns those that were not seen a moment ago
        self.ignored = Counter[str]() if ignored is None else ignored

    def widen(self, urls: Iterable[Url]) -> None:
        """Makes the hosts (or folders, or domains) of these URLs part of the scope."""
        for i, url_filter in enumerate(self.filters):
            if isinstance(url_filter, Scope):
                wider = [url for url in urls if url_filter.reason(url) is DropReason.OUT_OF_SCOPE]
                if wider:
                    self.scope_seeds.extend(wider)
                    self.filters[i] = Scope(url_filter.kind, self.scope_seeds)

    def has_host(self, host: str, port: int) -> bool:
        """Can pages of this host be in scope? Others are asked for what pages need, or to check links."""
        return all(one.has_host(host, port) for one in self.filters if isinstance(one, Scope))

    def wanted(self, urls: Iterable[str], *, counts: bool = True) -> list[Url]:
        """Those of a document's URLs that may be new. `counts`: what is left out is counted as ignored."""
        fresh = self.unseen(list(urls))
        return self.sift(fresh, counts=counts) if fresh else []

    def sift(self, hrefs: Sequence[str], *, counts: bool = True) -> list[Url]:
        """Those of the URLs that pass the filters."""
        kept, dropped = filter_urls(hrefs, self.filters)
        if counts:
            for _, reason in dropped:
                self.ignored[reason] += 1
        return kept


HELD_MOST_BYTES = 64 << 20  # bodies that wait for the threads
DECODED_AT_ONCE_BYTES = 1 << 20  # what the event loop decodes by itself


class _Waiting(msgspec.Struct, eq=False):
    """An answer that is to be handed on in its turn; `body` and `document` are what the kernel is reading."""

    answer: LeaseAnswer
    is_read: bool
    body: bytes = b""
    document: Document | None = None


class ReaderThreads:
    """Has documents read on threads, and hands all answers on, on the event loop and in the order in which they came.
    Without threads only large documents are read here, since they are taken in step by step.

    The request of an answer counts as in flight until it is handed on; where the bodies here become too many, the event
    loop waits. What cannot be read is left as it is: the event loop fails with it in its turn. `is_virtual`: the event
    loop waits for each answer, since no time may pass meanwhile.
    """

    def __init__(
        self, reader: PageReader, hand_on: Callable[[LeaseAnswer], None], *, threads: int, is_virtual: bool = False
    ) -> None:
        self._reader, self._hand_on, self._is_virtual = reader, hand_on, is_virtual
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[_Waiting] = deque()  # the oldest first
        self._with_kernel: dict[int, _Waiting] = {}
        self._number = self._held_bytes = 0
        self._threads = _kernel_threads(threads)
        if self._threads is not None:
            self._loop.add_reader(self._threads.fileno(), self._take)

    def __repr__(self) -> str:
        return f"<ReaderThreads waiting={len(self._waiting)}>"

    def __bool__(self) -> bool:
        """Is anything under way?"""
        return bool(self._waiting)

    def arrived(self, answer: LeaseAnswer) -> None:
        """Takes an answer; it is handed on at once where nothing has to be read beside the event loop before it."""
        if self._threads is None or not (self._waiting or answer.is_document):
            self._reader.prepare(answer)
            self._hand_on(answer)
            return
        waiting = _Waiting(answer, is_read=not answer.is_document)
        self._waiting.append(waiting)
        self._held_bytes += len(answer.response.body)
        if not (waiting.is_read or self._submit(waiting)):
            self._read_in_python(waiting)
        while self._with_kernel and (self._is_virtual or self._held_bytes > HELD_MOST_BYTES):
            self._take(waits=True)

    def _submit(self, waiting: _Waiting) -> bool:
        """Hands a document to the kernel's threads. False: it is none for them, or it is long to decode."""
        answer, reader = waiting.answer, self._reader
        lease, request, response = answer.lease, answer.request, answer.response
        try:
            body = decoded_body(response, min(reader.max_decoded_bytes, DECODED_AT_ONCE_BYTES))
            headers, is_known = response.headers, lease.kind is RequestKind.REVISIT
            document = html_document(
                body,
                url=response.url,
                content_type=headers.get("content-type"),
                content_language=headers.get("content-language"),
                wants_main=reader.wants_main,
                wants_simhash=reader.wants_simhash,
                follow=reader.rules,
            )
            if (body is not response.body and len(body) >= DECODED_AT_ONCE_BYTES) or document is None:
                return False
            html = None if is_known and len(body) <= LARGE_BYTES else kernel_arguments(document)
            parts = None
            is_kept = reader.is_kept(response.url, document.media.essence)
            if reader.has_archive and is_kept and not is_known and request is not None:
                metadata = record_metadata(lease, response, reader.rules.agent)
                parts = response_parts(Fetched(request, response, answer.fetched_s, metadata, b""))
            self._number += 1
            assert self._threads is not None
            self._threads.submit(self._number, response.body, body, html, parts, len(body) > LARGE_BYTES)
        except Exception:  # it comes again, where it ends the crawl
            return False
        waiting.body, waiting.document = body, document
        self._with_kernel[self._number] = waiting
        return True

    def _read_in_python(self, waiting: _Waiting) -> None:
        def done() -> None:
            waiting.is_read = True
            self._hand_on_read()

        if self._is_virtual or (len(waiting.answer.response.body) <= LARGE_BYTES and not waiting.answer.is_encoded):
            self._reader.prepare(waiting.answer)
            done()
        else:
            reading = self._loop.run_in_executor(None, self._reader.prepare, waiting.answer)
            reading.add_done_callback(lambda _: done())

    def _take(self, *, waits: bool = False) -> None:
        """Takes what the kernel has read."""
        assert self._threads is not None
        for number, digests, is_read, found, members in self._threads.take(waits):
            waiting = self._with_kernel.pop(number)
            if is_read and found is None and len(waiting.body) > LARGE_BYTES:
                self._read_in_python(waiting)
            else:
                with suppress(Exception):
                    self._complete(waiting, PreparedPage(waiting.body, *digests), is_read, found, members)
                waiting.is_read = True
        self._hand_on_read()

    def _complete(
        self, waiting: _Waiting, prepared: PreparedPage, is_read: bool, found: Any, members: list[bytes] | None
    ) -> None:
        answer = waiting.answer
        if is_read and waiting.document is not None:
            digests = {"fingerprint": prepared.fingerprint, "digest": prepared.digest}
            page = page_from_kernel(msgspec.structs.replace(waiting.document, **digests), found)
            self._reader.complete(answer.response, prepared, page)
        if members is not None:
            prepared.records = HttpExchange(members, prepared.payload_sha1, answer.fetched_s)
        answer.prepared = prepared

    def _hand_on_read(self) -> None:
        while self._waiting and self._waiting[0].is_read:
            answer = self._waiting.popleft().answer
            self._held_bytes -= len(answer.response.body)
            self._hand_on(answer)

    def close(self) -> None:
        """Ends the threads. What is not handed on is left, and its URL is still queued; what comes now goes on as it
        is."""
        self._waiting.clear()
        self._with_kernel.clear()
        if self._threads is not None:
            self._loop.remove_reader(self._threads.fileno())
            self._threads.close()
            self._threads = None


def _kernel_threads(threads: int) -> Any:
    """The kernel's threads; None where none are wanted, or there is no kernel, or the system gives none."""
    kernel = native()
    if kernel is None or threads == 0:
        return None
    try:
        return kernel.Readers(threads, member_writer())
    except OSError:
        return None


def usual_threads(*, is_alone: bool) -> int:
    """How many threads read pages beside the event loop, unless the settings say so: one where it has a core of its
    own."""
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return int(is_alone and cpus > 1)
