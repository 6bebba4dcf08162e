"""From a response to what it says: content decoded, digests, page analysed, links joined; and which links are wanted.

`PageReader` does all that an answer allows by itself, without the state of the crawl and without a clock; it is the
dearest part of a crawl. `ReaderThreads` has that done beside the event loop, where there is a second core for it. What
is known already, and so what becomes of the page, is decided afterwards, on the event loop and in the order of arrival,
by `crawl.keeper`. `LinkFilter` belongs to the state: it remembers what was seen a moment ago.
"""

import asyncio
import os
import tomllib
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from threading import Event, Thread
from typing import TYPE_CHECKING, NamedTuple, Protocol

import msgspec

from lycosa.errors import SettingsError
from lycosa.frontier import Lease, RecentUrls, RequestKind
from lycosa.records import Request, Response, Truncation
from lycosa.settings import CrawlSettings, merge, read_field, read_file
from lycosa.store import Fetched, HttpExchange, LinkRow, response_exchanges
from lycosa.web import (
    FOLLOWED_RELS,
    Analysers,
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
    analyse_page,
    base_url,
    document_digests,
    filter_urls,
    follow_links,
    join_map,
    named_analysers,
    native,
    parse_link_header,
    parse_url,
    robots_directives,
)

if TYPE_CHECKING:
    from lycosa.web import FieldExtractor

DECODED_FACTOR = 4  # a decoded body may be this many times the body limit
# A document with more bytes, or with more tags and so maybe as many links, would hold the event loop if it were taken
# in at once.
LARGE_BYTES, LARGE_TAGS = 256 * 1024, 4_000
BATCH_MOST = 16  # answers that go to a thread at once, so that those before them are not kept waiting
HELD_MOST_BYTES = 64 << 20  # bodies that wait for the threads
READ_LATELY = 50_000  # fingerprints of documents, about 4 MB


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


class PreparedPage(msgspec.Struct):
    """What an answer says by itself. `page` is None until the document is analysed, and what follows it is empty;
    `joined` says where the hrefs of `links` lead; `content` digests the main content, where no body is kept that it
    could be made from; `records` are those of the exchange, where they are made already. `is_cut`: not all of it was
    analysed, or not all of its links are here."""

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


class PageReader:
    """Reads answers. It holds nothing but the rules by which it reads: any thread may use it."""

    def __init__(
        self,
        settings: CrawlSettings,
        analysers: Analysers | None = None,
        content_digest: Callable[[Page, bytes], bytes] | None = None,
    ) -> None:
        self.analysers, self._content_digest = analysers, content_digest
        self.rules = LinkRules(agent=settings.agent, images=settings.images, obeys_nofollow=settings.nofollow)
        self.max_decoded_bytes = settings.body_bytes * DECODED_FACTOR
        self._has_archive = settings.archive != "none"
        self.wants_main = False  # somebody takes the main texts of pages

    def prepare(self, answers: Iterable[LeaseAnswer], is_worth_it: Callable[[int], bool]) -> None:
        """Reads documents ahead of their turn. Small ones that are most likely known, those that are not worth it by
        their fingerprint and the answers to revisits, are not analysed: `analyse` does it if they are new after all.
        What cannot be read is left as it is. Digests and records are made for all at once: for each it would be another
        time that a thread has to wait for its turn to run Python."""
        found = list[tuple[LeaseAnswer, bytes]]()
        for answer in answers:
            with suppress(Exception):
                found.append((answer, decoded_body(answer.response, self.max_decoded_bytes)))
        recorded, fetched = list[PreparedPage](), list[Fetched]()
        digests = document_digests([(answer.response.body, body) for answer, body in found])
        for (answer, body), numbers in zip(found, digests, strict=True):
            prepared = PreparedPage(body, *numbers)
            is_worth = answer.lease.kind is not RequestKind.REVISIT and is_worth_it(prepared.fingerprint)
            with suppress(Exception):
                if is_worth or prepared.is_large:
                    self.analyse(answer.response, prepared)
                answer.prepared = prepared
                if is_worth and self._has_archive and (request := answer.request) is not None:
                    metadata, sha1 = record_metadata(answer.lease), prepared.payload_sha1
                    fetched.append(Fetched(request, answer.response, answer.fetched_s, metadata, sha1))
                    recorded.append(prepared)
        for page, records in zip(recorded, response_exchanges(fetched), strict=True):
            page.records = records

    def digests(self, response: Response) -> PreparedPage:
        """The document of an answer with its digests, not analysed yet."""
        body = decoded_body(response, self.max_decoded_bytes)
        return PreparedPage(body, *document_digests([(response.body, body)])[0])

    def analyse(self, response: Response, prepared: PreparedPage) -> Page:
        """Analyses the document, unless that is done; adds what it says to robots, and its links and those of the
        header fields that are followed."""
        if prepared.page is not None:
            return prepared.page
        page = prepared.page = read_page(
            response,
            prepared.body,
            self.analysers,
            fingerprint=prepared.fingerprint,
            digest=prepared.digest,
            wants_main=self.wants_main,
            follow=self.rules,
        )
        prepared.is_cut = page.is_cut
        prepared.directives = page_directives(page.robots, response, self.rules.agent)
        if not (prepared.directives.nofollow and self.rules.obeys_nofollow):
            prepared.links, prepared.joined = followed_links(page, self.rules, response.url)
            if response.hints or "link" in response.headers:
                prepared.links = with_headers(prepared.links, response)
                prepared.joined = joined_links(prepared.links, response.url)
            prepared.is_cut |= len(prepared.links.hrefs) >= self.rules.most
        if self._content_digest is not None:
            prepared.content = self._content_digest(page, prepared.body)
        return page


def record_metadata(lease: Lease) -> dict[str, str]:
    """What a metadata record says of a page."""
    return {"depth": str(lease.depth)}


class _Batch(NamedTuple):
    """Answers that came in one turn of the event loop."""

    answers: list[LeaseAnswer]
    is_read: Event


class ReaderThreads:
    """Has documents read on threads, and hands all answers on, on the event loop and in the order in which they came.
    Without threads only large documents are read here, since they are taken in step by step.

    What comes in one turn of the event loop goes to a thread as a batch, and comes back with one call: an exchange an
    answer would cost as much as reading it. The request of an answer counts as in flight until it is handed on; where
    the bodies here become too many, the event loop waits. What cannot be read is left as it is: the event loop fails
    with it in its turn. `is_virtual`: the event loop waits for each answer, since no time may pass meanwhile.
    """

    def __init__(
        self, reader: PageReader, hand_on: Callable[[LeaseAnswer], None], *, threads: int, is_virtual: bool = False
    ) -> None:
        self._reader, self._hand_on, self._is_virtual = reader, hand_on, is_virtual
        self._loop = asyncio.get_running_loop()
        self._gathered: list[LeaseAnswer] = []  # in this turn of the event loop
        self._batches: deque[_Batch] = deque()  # with the threads, the oldest first
        self._work: SimpleQueue[_Batch | None] = SimpleQueue()
        self._held_bytes = 0
        self._read_lately: set[int] = set()  # fingerprints; no more than a guess at what is known
        self._threads = [Thread(target=self._run, name=f"reader {n}", daemon=True) for n in range(threads)]
        self._is_open = bool(threads)

    def __repr__(self) -> str:
        return f"<ReaderThreads {len(self._threads)} batches={len(self._batches)}>"

    def __bool__(self) -> bool:
        """Is anything under way?"""
        return bool(self._gathered or self._batches)

    def arrived(self, answer: LeaseAnswer) -> None:
        """Takes an answer; it is handed on at once where nothing has to be read beside the event loop before it."""
        if not self._is_open or not (self or answer.is_document):
            self._prepare([answer], lambda _: False)
            self._hand_on(answer)
            return
        self._gathered.append(answer)
        self._held_bytes += len(answer.response.body)
        if self._is_virtual or self._held_bytes > HELD_MOST_BYTES:
            self._submit()
            while self and (self._is_virtual or self._held_bytes > HELD_MOST_BYTES):
                self._batches[0].is_read.wait()
                self._hand_on_read()
        elif len(self._gathered) == 1:
            self._loop.call_soon(self._submit)
        elif len(self._gathered) >= BATCH_MOST:
            self._submit()

    def _submit(self) -> None:
        if not self._gathered:
            return
        batch, self._gathered = _Batch(self._gathered, Event()), []
        if len(self._read_lately) > READ_LATELY:
            self._read_lately.clear()
        self._batches.append(batch)
        if self._start():
            self._work.put(batch)
        else:
            batch.is_read.set()
            self._hand_on_read()

    def _start(self) -> bool:
        """Starts the threads that do not run yet. False: the system gives none, and the event loop reads by itself."""
        for thread in self._threads:
            if thread.ident is None:
                try:
                    thread.start()
                except RuntimeError:
                    self._threads = [each for each in self._threads if each.ident is not None]
                    self._is_open = bool(self._threads)
                    break
        return self._is_open

    def _run(self) -> None:
        while (batch := self._work.get()) is not None and self._is_open:
            try:
                self._prepare(batch.answers, self._is_news)
            finally:  # whatever happens, others wait behind it
                batch.is_read.set()
                if not self._is_virtual:
                    self._loop.call_soon_threadsafe(self._hand_on_read)

    def _prepare(self, answers: Iterable[LeaseAnswer], is_worth_it: Callable[[int], bool]) -> None:
        with suppress(BaseException):  # a panic of the kernel, too; it is raised again where it ends the crawl
            self._reader.prepare([answer for answer in answers if answer.is_document], is_worth_it)

    def _is_news(self, fingerprint: int) -> bool:
        if fingerprint in self._read_lately:
            return False
        self._read_lately.add(fingerprint)
        return True

    def _hand_on_read(self) -> None:
        while self._batches and self._batches[0].is_read.is_set():
            for answer in self._batches.popleft().answers:
                self._held_bytes -= len(answer.response.body)
                self._hand_on(answer)

    def close(self) -> None:
        """Ends the threads. What is not handed on is left, and its URL is still queued; what comes now goes on as it
        is."""
        self._is_open = False
        self._gathered.clear()
        self._batches.clear()
        for _ in self._threads:
            self._work.put(None)
        for thread in self._threads:
            if thread.ident is not None:
                thread.join()


def usual_threads(*, is_alone: bool) -> int:
    """How many threads read pages beside the event loop, unless the settings say so: one where it has a core of its
    own. The kernel lets others run while it reads; its twin does not."""
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return int(is_alone and cpus > 1 and native() is not None)


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
