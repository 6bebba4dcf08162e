"""The seams of the loop: the parts that a crawl is made of, and the features that hang on it.

The loop depends only on these protocols. `api.assembly` decides from the settings which objects implement them; a
feature that is off is not there at all, and the loop has no branch for it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

import msgspec

from lycosa.crawl.other_shards import OtherShards
from lycosa.crawl.pipeline import Pipeline
from lycosa.crawl.reading import LeaseAnswer
from lycosa.fetch import Downloader
from lycosa.frontier import BREADTH, Lease, Policy, RequestKind
from lycosa.mapping import AddressGuard, Resolver
from lycosa.records import Request, Response
from lycosa.store import LinkRow, PageRow
from lycosa.web import Analysers, Page, Topic, Url, UrlFilter


class Statistics(Protocol):
    """A part that sees every analysed page, in the order of the commits."""

    def page(self, page: Page, response: Response) -> None: ...


class Parts(msgspec.Struct, kw_only=True):
    """The exchangeable parts of a crawl. `now` replaces the monotonic clock, for virtual time, and `wall` the one that
    says which day it is, read when the crawl begins; `answered_at` gives the time of each answer, where answers of the
    past are taken in. `topic` judges how relevant a page is, where the central store asks for that; `content_digest`
    digests a page's main content, where no body is kept that it could be made from. `pipelines` see each page before it
    is kept, in this order; each has a name, for messages."""

    resolver: Resolver
    downloader: Downloader
    guard: AddressGuard
    filters: Sequence[UrlFilter] = ()
    analysers: Analysers | None = None
    statistics: Sequence[Statistics] = ()
    policy: Policy = BREADTH
    now: Callable[[], float] | None = None
    wall: Callable[[], float] | None = None
    answered_at: Callable[[], float] | None = None
    other_shards: OtherShards | None = None  # None: a crawl of one process
    topic: Topic | None = None
    content_digest: Callable[[Page, bytes], bytes] | None = None
    pipelines: Sequence[tuple[str, Pipeline]] = ()


class ReadPage(msgspec.Struct):
    """A page that was read and kept; its links are not admitted yet.

    `joined` says where its hrefs lead. `page` is None for a copy, a document that is known under another URL; then
    `original` is the row of that one. `ticket` stands for its place in the archive. `taken` are URLs that observers
    have admitted while the page was on its way, `new` all those that became known by it, early or late.
    """

    lease: Lease
    response: Response
    row: PageRow
    links: LinkRow
    joined: Mapping[str, str]
    page: Page | None = None
    original: PageRow | None = None
    ticket: int | None = None
    taken: frozenset[str] = frozenset()
    new: list[Url] = []


class Fetch(NamedTuple):
    """A lease in flight, and when it was started."""

    lease: Lease
    started_s: float


class RequestHandler(Protocol):
    """The handler of one kind of request: it makes the requests and reads the answers."""

    def request(self, lease: Lease) -> Request:
        """The request that goes out for a lease."""
        ...

    def handle(self, answer: LeaseAnswer) -> ReadPage | None:
        """Reads an answer, whatever it is, and keeps it. A new page is returned, and its lease is still held; in all
        other cases the URL is finished or retried and the lease released."""
        ...


class RequestHook(Protocol):
    """Has a say in what every request carries: credentials, signatures. It is called for all kinds of requests, those
    of robots.txt, sitemaps and tables included, and anew for each hop of a redirect, which is a request of its own."""

    def prepare(self, request: Request, kind: RequestKind) -> Request:
        """The request as it is sent: the same one, or a copy with more header fields. What stands in its `headers` is
        also written into the archive."""
        ...


class FetchObserver(Protocol):
    """An observer of every fetch: tables of links, links taken early, pages that are new in a recrawl. Nothing is
    abstract: an observer writes what it wants to hear of."""

    def started(self, lease: Lease) -> Lease:
        """A lease is about to be fetched; returns it, or the lease of something that goes first."""
        return lease

    def arriving(self, lease: Lease, response: Response) -> None:
        """A part of a slow response has come, as much as `response` holds."""
        return

    def ended(self, lease: Lease, response: Response, page: ReadPage | None) -> None:
        """The fetch has ended; `page` is what was read, before its links are admitted, None if it was no new page."""
        return

    def idle(self) -> Iterator[Lease]:
        """Nothing else can be fetched now: what may be fetched in the slots that would stand idle."""
        return iter(())


class AnswerConverter(Protocol):
    """Turns answers into others before they are read, in its own time: pages into what a browser makes of them."""

    @property
    def waiting(self) -> int:
        """How many answers it holds."""
        ...

    @property
    def is_full(self) -> bool:
        """Does it hold as many as it can?"""
        ...

    def take(self, answer: LeaseAnswer) -> bool:
        """Takes an answer and hands it on later (`Engine.on_converted`), which may be much later; False: it does not
        want it. The slots of its request are free from now on."""
        ...

    def cancel_all(self) -> None:
        """The crawl ends: what is held is handed on before this returns, as cancelled."""
        ...


class RunCompanion(Protocol):
    """Whoever works beside the loop for as long as it runs, and has something to end when it is over."""

    def begin(self) -> None:
        """Called once, before anything is fetched."""
        ...

    async def finish(self, *, is_hurried: bool) -> None:
        """Called after the last commit; returns soon if `is_hurried`: the user wants to leave."""
        ...

    def hurry(self) -> None:
        """The user wants to leave at once."""
        ...

    def close(self) -> None:
        """Called at the end, whatever has happened."""
        ...

    def leftover(self) -> str:
        """A sentence about what is left to do; nothing if there is none."""
        ...


class UrlSource(Protocol):
    """A source of URLs beside those that pages link to: what is due to be visited again."""

    @property
    def is_exhausted(self) -> bool:
        """Does it have nothing more to bring in this run?"""
        ...

    async def begin(self) -> None:
        """Called once, before anything is fetched."""
        ...

    def feed(self) -> None:
        """Queues what there is room for; called before every commit by the clock."""
        ...

    def intervals_set(self) -> None:
        """The user has said how often some URLs are to be visited; it is in the open commit."""
        return  # not abstract: not every source plans visits

    def close(self) -> None: ...
