"""The seams of the loop: the parts that a crawl is made of, the features that hang on it, and the shard they work on.

The loop depends only on these protocols. `api.assembly` decides from the settings which objects implement them; a
feature that is off is not there at all, and the loop has no branch for it. `OtherShards` is the port to the rest of a
crawl of many processes: the loop asks it whether it may go on, tells it of commits and lets it write into them. A crawl
of one process has none.

`Shard` is what everybody who reads answers or writes into the next commit needs; `crawl.assembly` makes it. Its
`BackgroundWork` is long work beside the crawl: a large sitemap or robots.txt is read in steps, and between them the
event loop turns. Work begins at once and is over at once if it is short; what takes longer goes on in turns of a few
steps, by their number, not by the clock, so that a crawl on virtual time is the same every time. The oldest few take
turns, and the others wait for them. While the disk refuses, nothing goes on.
"""

import asyncio
import random
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple, Protocol

import msgspec

from lycosa.crawl.committer import CommitParticipant, Committer
from lycosa.crawl.events import EventLog
from lycosa.crawl.link_filter import LinkFilter
from lycosa.crawl.pipeline import Pipeline
from lycosa.crawl.reading import LeaseAnswer, PageReader
from lycosa.crawl.stats import Counters
from lycosa.fetch import Downloader
from lycosa.frontier import BREADTH, Frontier, Lease, Policy, ProcessStart, RequestKind, UrlForwarder
from lycosa.graph import LinkIndexer
from lycosa.mapping import AddressGuard, Resolver
from lycosa.records import Request, Response
from lycosa.settings import CrawlSettings
from lycosa.store import Batch, CollectionStore, PageRow
from lycosa.web import Analysers, FollowedLinks, Page, Steps, Topic, Url, UrlFilter


class CopyClaim(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A page `href` has the document `digest`, stored as the payload `payload_sha1`; `is_gone`: it has it no more;
    `is_copy`: it is noted as a copy, and asks whether it still is one. The answer names the `original`, the first page
    with this document, which may be `href` itself, and that page's payload."""

    href: str
    digest: bytes
    payload_sha1: bytes = b""
    original: str = ""
    is_gone: bool = False
    is_copy: bool = False


class DocumentOwners(Protocol):
    """The rest of the crawl, as far as documents are concerned."""

    def owns(self, host: str) -> bool:
        """Does the host belong to this shard?"""
        ...

    def owns_document(self, digest: bytes) -> bool:
        """Does the document belong to this shard?"""
        ...

    def send_claims(self, claims: Sequence[CopyClaim]) -> None:
        """Takes what others have to know, to leave with the next commit."""
        ...


class OtherShards(UrlForwarder, DocumentOwners, CommitParticipant, Protocol):
    """The rest of the crawl, as one shard sees it. It takes part in commits, with what has to last."""

    def may_ask(self, pages: int) -> bool:
        """May one more request be started, `pages` being fetched or under way already? Visits, where these count."""
        ...

    def may_visit(self, address: str, host: str) -> bool:
        """May this address be asked now? If not, the engine hears of the host by `Engine.on_located`, later."""
        ...

    def share(self) -> float:
        """The part of the collection's pages that is here, from 0 to 1."""
        ...

    def may_end(self) -> bool:
        """Is the crawl over where nothing is queued here?"""
        ...

    def ask_robots(self, url: Url, then: Callable[[Response], None]) -> None:
        """Has a robots.txt fetched by the shard that owns its host; `then` hears what came back."""
        ...


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

    `page` is None for a copy, a document that is known under another URL; then
    `original` is the row of that one. `ticket` stands for its place in the archive. `taken` are URLs that observers
    have admitted while the page was on its way, `new` all those that became known by it, early or late.
    """

    lease: Lease
    response: Response
    row: PageRow
    links: FollowedLinks
    page: Page | None = None
    original: PageRow | None = None
    ticket: int | None = None
    taken: frozenset[str] = frozenset()
    new: list[Url] = []

    @property
    def joined(self) -> Mapping[str, str]:
        """Where its hrefs lead."""
        return self.links.joined


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


STEPS_PER_TURN = 2  # of a few milliseconds each; then the loop gets a turn
AT_ONCE = 4  # pieces of work that take turns: what each has unpacked is in memory until it is over
HELD_S = 0.1  # how soon it is tried again while the disk refuses


class BackgroundWork:
    """The work under way; while a commit has failed nothing may be written. `on_turn_done` hears of each turn."""

    def __init__(self, committer: Committer) -> None:
        self._committer = committer
        self.on_turn_done: Callable[[Exception | None], None] = lambda _: None
        self._work: deque[tuple[str, Steps[None]]] = deque()
        self._handle: asyncio.Handle | None = None

    def __repr__(self) -> str:
        return f"<BackgroundWork {len(self._work)} under way>"

    def __bool__(self) -> bool:
        return bool(self._work)

    @property
    def hosts(self) -> set[str]:
        """The hosts whose files are being read."""
        return {host for host, _ in self._work}

    def start(self, steps: Steps[None], host: str) -> None:
        """Begins with work for a host. It is called where an answer is handled, so it may write."""
        if not self._has_ended(steps):
            self._work.append((host, steps))
            self._plan()

    def close(self) -> None:
        """The crawl is over: what is not finished is left, and its URL is still queued."""
        self._work.clear()
        if self._handle is not None:
            self._handle.cancel()

    def _plan(self) -> None:
        if self._handle is None:
            loop = asyncio.get_running_loop()
            self._handle = (
                loop.call_later(HELD_S, self._turn) if self._committer.has_failed else loop.call_soon(self._turn)
            )

    def _turn(self) -> None:
        """One turn for one of the oldest, that whose last turn was longest ago."""
        self._handle = None
        if not self._committer.has_failed:
            host, steps = self._work.popleft()
            try:
                if not self._has_ended(steps):
                    self._work.insert(AT_ONCE - 1, (host, steps))
            except Exception as error:  # the event loop would only log it
                self.on_turn_done(error)
                return
            self.on_turn_done(None)
        if self._work:
            self._plan()

    @staticmethod
    def _has_ended(steps: Steps[None]) -> bool:
        return sum(1 for _ in islice(steps, STEPS_PER_TURN)) < STEPS_PER_TURN


class Shard(NamedTuple):
    """One shard, open. `now` is the monotonic clock, `now_unix` the wall clock, `roll` gives the jitter of waits.
    `reader` is that of the event loop."""

    collection: CollectionStore
    settings: CrawlSettings
    frontier: Frontier
    counters: Counters
    committer: Committer
    events: EventLog
    reader: PageReader
    link_filter: LinkFilter
    linker: LinkIndexer
    background: BackgroundWork
    now: Callable[[], float]
    now_unix: Callable[[], float]
    roll: Callable[[], float] = random.random

    def release(self, lease: Lease, response: Response, *, wait_s: float = 0.0, reason: str = "") -> None:
        """The request of a lease has ended: its slots go back."""
        self.frontier.outcomes.release(
            lease, response.ended_s, self.now(), wait_s=wait_s, reason=reason, now_unix=self.now_unix()
        )


class FrontierRows(CommitParticipant):
    """The frontier's part in commits; it takes the time as an argument."""

    def __init__(self, shard: Shard) -> None:
        self._shard = shard

    def before_commit(self, batch: Batch, *, is_last: bool) -> None:
        self._shard.frontier.before_commit()

    def on_committed(self) -> None:
        self._shard.frontier.on_committed(self._shard.committer.batch, self._shard.now())


def wall_clock(now: Callable[[], float], start: ProcessStart) -> Callable[[], float]:
    """The time of day by the monotonic clock: it never goes back, whatever becomes of the machine's."""
    offset_s = start.now_unix - start.now
    return lambda: now() + offset_s
