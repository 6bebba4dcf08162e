"""What the loop works with, made for one collection: the shard, the handlers of answers, the participants in commits.

Everything is made once, before the crawl begins, each part after those that it uses. `Features` takes those that can be
off: `api.assembly` decides from the settings which there are, and one that is off is not registered and costs nothing.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from lycosa.crawl.addresses import HostAddresses
from lycosa.crawl.admission import Admission, RankedAdmission
from lycosa.crawl.committer import Committer, TextTaker
from lycosa.crawl.documents import Copies, DocumentStore
from lycosa.crawl.events import EventLog
from lycosa.crawl.host_rules import HostRules, RobotsHandler, SitemapHandler
from lycosa.crawl.intake import Inbox
from lycosa.crawl.keeper import Archive, Listener, PageKeeper
from lycosa.crawl.link_filter import LinkFilter
from lycosa.crawl.pages import FailureHandler, HeadLooks, PageHandler, RequestBuilder
from lycosa.crawl.pipeline import Pipelines
from lycosa.crawl.progress import LimitChecker, ProgressReporter, Recrawl, effective_limits
from lycosa.crawl.reader_threads import usual_threads
from lycosa.crawl.reading import PageReader
from lycosa.crawl.seams import (
    AnswerConverter,
    BackgroundWork,
    Fetch,
    FetchObserver,
    FrontierRows,
    Parts,
    RequestHandler,
    RequestHook,
    RunCompanion,
    Shard,
    UrlSource,
    wall_clock,
)
from lycosa.crawl.stats import Counters, Totals, load_counts
from lycosa.errors import StoreError
from lycosa.frontier import Frontier, HostGroup, Politeness, ProcessStart, RequestKind, UrlCounts
from lycosa.graph import LinkIndexer
from lycosa.learning import HostProfiles, MiningLevel, TrapGuard, UrlMining
from lycosa.settings import CrawlSettings, read_field, read_group, read_host_pages
from lycosa.store import CollectionStore, Forgotten
from lycosa.web import Purpose, Url, parse_url

if TYPE_CHECKING:
    from lycosa.duplicates import KnownTexts


class Features:
    """Who handles which kind of request, and who else takes part in the crawl of one shard. Features are registered
    before it begins, and the loop calls them by the protocols of `crawl.seams`."""

    def __init__(
        self, shard: Shard, pages: PageHandler, limits: LimitChecker, handlers: dict[RequestKind, RequestHandler]
    ) -> None:
        self._shard, self._pages, self._limits = shard, pages, limits
        self.handlers = handlers
        self.observers: list[FetchObserver] = []
        self.sources: list[UrlSource] = []
        self.companions: list[RunCompanion] = []
        self.converter: AnswerConverter | None = None

    def handle(self, kind: RequestKind, handler: RequestHandler) -> None:
        """Register the handler of a kind of request, in place of the one before."""
        self.handlers[kind] = handler

    def wrap_handlers(self, wrap: Callable[[RequestHandler], RequestHandler]) -> None:
        """Put something before the handlers of all kinds of requests that are registered."""
        for kind, handler in self.handlers.items():
            self.handlers[kind] = wrap(handler)

    def observe(self, observer: FetchObserver) -> None:
        """Register an observer of every fetch from now on."""
        self.observers.append(observer)

    def convert(self, converter: AnswerConverter) -> None:
        """Register what turns answers into others before they are read."""
        self.converter = self._limits.converter = converter

    def prepare_requests(self, hook: RequestHook) -> None:
        """Register a hook that has its say in every request from now on."""
        self._pages.requests.hooks.append(hook)

    def add_source(self, source: UrlSource) -> None:
        """Register a source of URLs beside those that pages link to."""
        self.sources.append(source)

    def accompany(self, companion: RunCompanion) -> None:
        """Register who works beside the loop for as long as it runs."""
        self.companions.append(companion)

    def leftovers(self) -> tuple[str, ...]:
        """Sentences about what the companions have left to do; for when the crawl is over."""
        return tuple(left for companion in self.companions if (left := companion.leftover()))

    def listen(self, listener: Listener) -> None:
        """Register a listener, called for every page once it is committed."""
        self._pages.keeper.listeners.append(listener)
        self._shard.reader.wants_main = True

    def hand_texts(self, taker: TextTaker) -> None:
        """Register who takes the main texts of pages, as far as they cost no second parse."""
        self._pages.keeper.text_taker = taker
        self._shard.reader.wants_main = True
        self._shard.committer.join(taker)


class LoopParts(NamedTuple):
    """What the loop works with. `in_flight` has the fetches under way by ticket, the oldest first; `threads` read pages
    beside the event loop; `is_endless`: pages become due again, so that the crawl does not end by itself."""

    given: Parts
    shard: Shard
    seeds: list[Url]
    addresses: HostAddresses
    pages: PageHandler
    host_rules: HostRules
    features: Features
    traps: TrapGuard
    copies: Copies | None
    inbox: Inbox
    in_flight: dict[int, Fetch]
    limits: LimitChecker
    reporter: ProgressReporter
    threads: int
    is_endless: bool


def loop_parts(
    collection: CollectionStore,
    settings: CrawlSettings,
    given: Parts,
    *,
    is_restart: bool = False,
    recrawl: Recrawl | None = None,
) -> LoopParts:
    """Makes what the loop works with. Needs the running event loop."""
    now = given.now or time.monotonic
    start = ProcessStart(now(), (given.wall or time.time)(), is_restart=is_restart)
    seeds = [url for seed in settings.seeds if (url := parse_url(seed))]
    shard, addresses = _open_shard(collection, settings, given, start, seeds, recrawl)
    limits = LimitChecker(
        effective_limits(settings, recrawl, shard.counters.totals.seconds),
        shard.counters,
        start.now,
        shard.frontier,
        now,
        visits=recrawl.most if recrawl else None,
        other_shards=given.other_shards,
    )
    in_flight: dict[int, Fetch] = {}
    reporter = ProgressReporter(shard, limits, in_flight, began=start.now)
    mining, traps = _learning_of(shard)
    copies = Copies(shard, given.other_shards) if given.other_shards is not None else None
    documents = DocumentStore(collection.state, shard.committer.batch, copies)
    archive, requests, inbox = Archive(shard), RequestBuilder(settings), Inbox(collection.path)
    ranking, head_reader = given.policy.ranking, given.policy.head_reader
    ranked = RankedAdmission(shard, traps, ranking) if ranking is not None else None
    keeper = PageKeeper(shard, given, archive, documents)
    failures = FailureHandler(shard, archive, addresses, mining, is_past=given.answered_at is not None)
    fields = [read_field(entry) for entry in settings.fields]
    pipelines = Pipelines(given.pipelines, fields, shard.reader) if given.pipelines else None
    admission = ranked or Admission(shard, traps)
    pages = PageHandler(shard, given, keeper, admission, failures, requests, traps, mining, pipelines)
    host_rules = HostRules(shard, archive, addresses, requests, in_flight, given.other_shards)
    # The order matters: `mining` is before `traps`, which writes the profiles that it changes; it and `ranked` are
    # before the frontier's rows; what changes counts is before the reporter, what sends before `other_shards`.
    participants = copies, documents, shard.linker, mining, traps, ranked, FrontierRows(shard), reporter
    shard.committer.join(*(one for one in (*participants, given.other_shards, inbox) if one is not None))
    threads = usual_threads(is_alone=given.other_shards is None) if settings.threads is None else settings.threads
    handlers: dict[RequestKind, RequestHandler] = {
        RequestKind.PAGE: pages if head_reader is None else HeadLooks(shard, pages, head_reader),
        RequestKind.ROBOTS: RobotsHandler(host_rules),
        RequestKind.SITEMAP: SitemapHandler(host_rules, pages),
    }
    return LoopParts(
        given=given,
        shard=shard,
        seeds=seeds,
        addresses=addresses,
        pages=pages,
        host_rules=host_rules,
        features=Features(shard, pages, limits, handlers),
        traps=traps,
        copies=copies,
        inbox=inbox,
        in_flight=in_flight,
        limits=limits,
        reporter=reporter,
        threads=threads if given.analysers is None else 0,  # those of users need not bear threads
        is_endless=settings.keep_fresh and recrawl is None,
    )


def _learning_of(shard: Shard) -> tuple[UrlMining, TrapGuard]:
    """What guesses URLs and what guards from traps; both know the hosts by the same profiles."""
    collection, settings = shard.collection, shard.settings
    profiles = HostProfiles(collection.state)
    mining = UrlMining(
        shard.frontier,
        profiles,
        MiningLevel(settings.mine),
        sift=shard.link_filter.sift,
        most_depth=settings.depth,
        now=shard.now,
    )
    traps = TrapGuard(
        shard.frontier,
        collection.state,
        profiles,
        limits_domains=settings.scope == "any",
        log=shard.events.write,
        now_unix=shard.now_unix,
        open_texts=lambda: _known_texts(collection.path),
    )
    return mining, traps


def _open_shard(
    collection: CollectionStore,
    settings: CrawlSettings,
    given: Parts,
    start: ProcessStart,
    seeds: list[Url],
    recrawl: Recrawl | None,
) -> tuple[Shard, HostAddresses]:
    now = given.now or time.monotonic
    now_unix = given.answered_at or wall_clock(now, start)

    def note_failure(error: StoreError, tries: int) -> None:
        events.write("commit-failed", error=str(error), tries=tries)

    events, counters = EventLog(collection.log_path, now_unix), Counters(load_counts(collection.state, Totals))
    totals = counters.totals
    committer = Committer(collection, syncs=settings.durability == "power", on_failure=note_failure)
    addresses = HostAddresses(settings, given, now=now, now_unix=now_unix)
    forgotten = Forgotten.of(collection.path)
    frontier = Frontier(
        collection.state,
        committer.batch,
        _politeness(settings),
        start,
        locate=addresses.locate,
        policy=given.policy,
        forwarder=given.other_shards,
        counts=UrlCounts(
            totals.known,
            totals.queued,
            totals.revisiting,
            totals.hosts,
            totals.failed,
            totals.dropped,
            totals.requisites_queued,
        ),
        # What was never asked for is left to the crawl.
        only_due=recrawl is not None and (recrawl.only_due or totals.queued > 0 or bool(recrawl.urls)),
        is_forgotten=forgotten.has if forgotten else None,
    )
    shard = Shard(
        collection,
        settings,
        frontier,
        counters,
        committer,
        events,
        PageReader(settings, given.analysers, given.content_digest),
        LinkFilter(settings, seeds, given.filters, counters.ignored),
        LinkIndexer(collection),
        BackgroundWork(committer),
        now,
        now_unix,
    )
    return shard, addresses


def _known_texts(path: Path) -> "KnownTexts":
    from lycosa.duplicates import INDEX_FOLDER, KnownTexts  # lazy: NumPy, which small crawls can do without

    return KnownTexts(path / INDEX_FOLDER)


def _politeness(settings: CrawlSettings) -> Politeness:
    return Politeness(
        delay_s=settings.delay_s,
        per_host=settings.per_host,
        ip_delay_s=settings.ip_delay_s,
        per_ip=settings.parallel_per_ip,
        groups=tuple(HostGroup(*read_group(text)) for text in settings.groups),
        pages_per_host=settings.pages_per_host,
        host_pages=tuple(map(read_host_pages, settings.host_pages)),
        host_depth=settings.host_depth,
        robots=settings.robots,
        purpose=Purpose(settings.purpose),
    )
