"""The assembly of a crawl: its parts, from the settings or as they are given, and the features that hang on its loop.

A part is an object, or named in the settings (`lycosa.web`'s `named_part`). A feature that the settings turn off is not
made: the loop depends only on `crawl.seams`. What a crawl is made of is to be read in this module.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from ipaddress import ip_network
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

import msgspec

from lycosa.crawl import (
    EarlyLinks,
    Engine,
    LeaseAnswer,
    OtherShards,
    Parts,
    Pipeline,
    ReadPage,
    Recrawl,
    RequestHandler,
    RequestWriter,
    Statistics,
    loop_parts,
)
from lycosa.errors import PartError
from lycosa.fetch import (
    AcceptsResponse,
    CurlDownloader,
    Downloader,
    SchemeDownloader,
    TransferLimits,
    Watchable,
    raise_descriptor_limit,
    response_media_type,
)
from lycosa.frontier import (
    WALKS,
    InternalFirst,
    Lease,
    Policy,
    PValue,
    Rank,
    Ranking,
    Relevance,
    RequestKind,
    parse_policy,
)
from lycosa.mapping import AddressGuard, CaresResolver, Resolver
from lycosa.records import Request
from lycosa.settings import CrawlSettings
from lycosa.store import CollectionStore
from lycosa.web import (
    Analyser,
    MediaKind,
    Page,
    Topic,
    UnknownPart,
    UrlFilter,
    analyse_page,
    matches_pattern,
    media_kind,
    named_analysers,
    named_part,
    pattern_pieces,
    reads_links_as_usual,
)

if TYPE_CHECKING:
    from lycosa.crawl import ExternalLinks, Requisites
    from lycosa.notify import Notifier
    from lycosa.recrawl import PageChange, Revisits

WITH_LINKS = frozenset((MediaKind.HTML, MediaKind.XHTML, MediaKind.XML, MediaKind.FEED))  # documents, by their kind
Handler = TypeVar("Handler", bound=RequestHandler)


def assemble_engine(
    collection: CollectionStore,
    settings: CrawlSettings,
    parts: Parts,
    *,
    is_restart: bool = False,
    recrawl: Recrawl | None = None,
) -> Engine:
    """The engine of a crawl with everything that its settings ask for. Needs the running event loop."""
    engine = Engine(loop_parts(collection, settings, parts, is_restart=is_restart, recrawl=recrawl))
    # In this order features are told of fetches and take part in commits.
    _follow_links_early(engine, parts)
    _log_requests(engine)
    _check_externals(engine)
    requisites = _fetch_requisites(engine)
    _render_pages(engine, requisites)
    notifier = _tell_of_changes(engine, parts)
    _visit_again(engine, parts, recrawl, notifier.take if notifier else None)
    _say_who_asks(engine)
    return engine


def _follow_links_early(engine: Engine, parts: Parts) -> None:
    """Links are followed before their page is there: those of a slow page, and those that a table of links names."""
    # A pipeline that drops a page has a say in its links: none may be followed before.
    if parts.pipelines:
        return
    settings, features, downloader = engine.settings, engine.features, parts.downloader
    is_ranked = parts.policy.ranking is not None  # by the page that links to a URL, which has to be there first
    is_watched = settings.eager and not is_ranked and reads_links_as_usual(parts.analysers)
    if is_watched and isinstance(downloader, Watchable):
        features.observe(EarlyLinks(engine.shard, engine.pages.admission))
        downloader.watch(engine.on_arriving)
    if settings.tables == "always" or (settings.tables == "auto" and not is_ranked and _may_ask_beside(settings)):
        from lycosa.tables import LinkTables  # lazy: for crawls that may ask for tables

        tables = LinkTables(engine.shard, engine.pages)
        features.observe(tables)
        features.handle(RequestKind.TABLE, tables)


def _may_ask_beside(settings: CrawlSettings) -> bool:
    """May a table of links ever be asked for beside its document? Most crawls are too polite for it: it takes a second
    slot of the host and no delay, where it would cost a page, as it would use up one of a limit."""
    has_page_limit = settings.pages_per_host is not None or bool(settings.host_pages)
    return settings.per_host > 1 and not settings.delay_s and not has_page_limit


def _log_requests(engine: Engine) -> None:
    if engine.settings.request_log:
        log = RequestWriter(Path(engine.settings.request_log), engine.shard)
        engine.features.observe(log)
        engine.committer.join(log)


def _check_externals(engine: Engine) -> None:
    def make() -> "ExternalLinks":
        from lycosa.crawl import ExternalLinks  # lazy: for crawls that check links out of scope

        return ExternalLinks(engine.shard, engine.pages)

    externals = LazyHandler(make)  # a run before may have left some
    engine.features.handle(RequestKind.EXTERNAL, externals)
    if engine.settings.external:
        engine.features.observe(externals.handler)


def _fetch_requisites(engine: Engine) -> "LazyHandler[Requisites]":
    def make() -> "Requisites":
        from lycosa.crawl import Requisites  # lazy: most crawls do without

        made = Requisites(engine.shard, engine.pages)
        engine.committer.join(made)
        return made

    requisites = LazyHandler(make)  # a run before may have left some
    engine.features.handle(RequestKind.REQUISITE, requisites)
    if engine.settings.requisites:
        if engine.settings.archive == "none":
            raise PartError("requisites are for an archive that shows pages: leave out --requisites or --archive none")
        engine.features.observe(requisites.handler)
    return requisites


def _render_pages(engine: Engine, requisites: "LazyHandler[Requisites]") -> None:
    if engine.settings.render != "never":
        from lycosa.render import Rendering, require_browser  # lazy: a browser, which most crawls do without

        rendering = Rendering(engine, requisites.handler, require_browser())
        engine.features.convert(rendering)
        engine.features.accompany(rendering)


def _tell_of_changes(engine: Engine, parts: Parts) -> "Notifier | None":
    if not (engine.settings.webhook or engine.settings.atom or engine.settings.apprise):
        return None
    from lycosa.notify import make_notifier  # lazy: only where somebody is to be told

    notifier = make_notifier(engine.shard, parts)
    engine.committer.join(notifier)
    engine.features.accompany(notifier)
    return notifier


def _visit_again(
    engine: Engine, parts: Parts, recrawl: Recrawl | None, on_change: "Callable[[PageChange], None] | None"
) -> None:
    def make() -> "Revisits":
        from lycosa.recrawl import Revisits  # lazy: change detection, which a first crawl can do without

        made = Revisits(engine.shard, engine.pages, engine.host_rules)
        made.recorder.on_change = on_change
        return made

    revisits = LazyHandler(make)
    engine.features.handle(RequestKind.REVISIT, revisits)
    if recrawl is not None or engine.settings.keep_fresh:
        from lycosa.recrawl import RevisitFeeder  # lazy: as above

        share = parts.other_shards.share if parts.other_shards is not None else lambda: 1.0
        feeder = RevisitFeeder(engine.shard, revisits.handler, recrawl, share)
        engine.features.add_source(feeder)
        engine.features.observe(feeder)
        engine.committer.join(feeder)


def _say_who_asks(engine: Engine) -> None:
    settings = engine.settings
    if settings.has_sessions:
        from lycosa.sessions import add_sessions  # lazy: for crawls that send credentials

        add_sessions(engine, settings)
    if settings.bot_key or settings.bot_agent:
        from lycosa.identity import sign_requests  # lazy: for crawls that sign their requests

        sign_requests(engine, settings)


class LazyHandler(Generic[Handler]):
    """Handles a kind of requests from the first one on: a crawl without any does not wait for its libraries."""

    def __init__(self, make: Callable[[], Handler]) -> None:
        self._make = make

    @cached_property
    def handler(self) -> Handler:
        return self._make()

    def request(self, lease: Lease) -> Request:
        return self.handler.request(lease)

    def handle(self, answer: LeaseAnswer) -> ReadPage | None:
        return self.handler.handle(answer)


def cares_resolver(settings: CrawlSettings) -> Resolver:
    """The resolver `cares`."""
    return CaresResolver(settings.dns)


def curl_downloader(settings: CrawlSettings) -> Downloader:
    """The downloader `curl`, for http and https."""
    raise_descriptor_limit()
    curl = CurlDownloader(
        _limits(settings),
        accepts=accepts(settings.types, settings.keep_types),
        verify_tls=settings.verify_tls,
        ca_file=settings.ca_file,
        use_http2=settings.http2,
    )
    return SchemeDownloader({"http": curl, "https": curl})


def parts_from_settings(
    settings: CrawlSettings,
    *,
    resolver: Resolver | None = None,
    downloader: Downloader | None = None,
    filters: Sequence[UrlFilter] = (),
    analysers: Mapping[str, Analyser] | None = None,
    statistics: Sequence[Statistics] = (),
    pipelines: Sequence[Pipeline] = (),
    policy: Policy | None = None,
    now: Callable[[], float] | None = None,
    wall: Callable[[], float] | None = None,
    other_shards: OtherShards | None = None,
) -> Parts:
    """The parts that the settings ask for, with those given in their place. Needs the running event loop."""
    return Parts(
        resolver=resolver or named_part("resolver", settings.resolver, settings),
        downloader=downloader or named_part("downloader", settings.downloader, settings),
        guard=AddressGuard(ip_network(network) for network in settings.allow_private),
        filters=[*filters, *(named_part("filter", name, settings) for name in settings.filters)],
        analysers=named_analysers(settings, analysers),
        statistics=[*statistics, *(named_part("statistics", name, settings) for name in settings.statistics)],
        pipelines=[*((_name(part), part) for part in pipelines), *named_pipelines(settings)],
        policy=policy or named_policy(settings),
        now=now,
        wall=wall,
        other_shards=other_shards,
        topic=topic_of(settings) if settings.store_relevance else None,
        content_digest=_content_digest_of(settings) if settings.lacks_bodies else None,
    )


def named_pipelines(settings: CrawlSettings) -> list[tuple[str, Pipeline]]:
    """The pipelines that the settings name."""
    found = list[tuple[str, Pipeline]]()
    for name in settings.pipelines:
        part = named_part("pipeline", name, settings)
        if not callable(part):
            raise PartError(f"the pipeline {name!r} made {type(part).__name__}, where something to call was due")
        found.append((name, part))
    return found


def _name(part: object) -> str:
    """The name of a part that was given as an object."""
    return getattr(part, "__qualname__", "") or type(part).__name__


def _content_digest_of(settings: CrawlSettings) -> Callable[[Page, bytes], bytes]:
    from lycosa.recrawl import IgnoreRules, digest_of_content  # lazy: change detection, only where no body is kept

    rules = IgnoreRules(settings.ignore)
    return lambda page, body: digest_of_content(page, body, rules.of(page.url))


def named_policy(settings: CrawlSettings) -> Policy:
    """The policy that the settings name, with the windows that they ask for; a topic ranks."""
    walks = {
        name: msgspec.structs.replace(
            walk,
            steps=settings.window_hosts if walk.steps else 0,
            leaves=settings.window_leaves if walk.alternates_direction else 0,
            children=settings.child_order if walk.by_path else "",
        )
        for name, walk in WALKS.items()
    }

    def ranking(name: str) -> Ranking:
        try:
            made: Ranking = named_part("policy", name, settings)
        except UnknownPart as unknown:
            raise PartError(f"{unknown}; without ranking there is {', '.join(walks)}") from None
        return made

    has_topic = settings.policy in walks and (settings.topic or settings.topic_pages)
    return parse_policy(f"topic+{settings.policy}" if has_topic else settings.policy, ranking, walks)


def pvalue_policy(_: CrawlSettings) -> Ranking:
    """The ranking `pvalue`."""
    return PValue()


def rank_policy(_: CrawlSettings) -> Ranking:
    """The ranking `rank`."""
    return Rank()


def internal_first_policy(_: CrawlSettings) -> Ranking:
    """The ranking `internal-first`."""
    return InternalFirst()


def topic_policy(settings: CrawlSettings) -> Ranking:
    """The ranking `topic`."""
    return Relevance(topic_of(settings))


def topic_of(settings: CrawlSettings) -> Topic:
    """The topic that the settings name, with nothing learned of it but the example pages."""
    pages = [_text(Path(name)) for name in settings.topic_pages]
    if not pages and not settings.topic:
        raise PartError("the policy topic needs words or an example page: --topic WORDS or --topic-page FILE")
    try:
        return Topic.of_pages(pages) if pages else Topic.of_words(settings.topic)
    except ValueError as error:
        what = "the example pages have none" if pages else f"{settings.topic[:40]!r} has none"
        raise PartError(f"a topic needs at least one word, {what}: write --topic 'heat pump'") from error


def _text(path: Path) -> str:
    """The words of an example page, whatever its format."""
    try:
        body = path.read_bytes()
    except OSError as error:
        raise PartError(f"the example page {path} cannot be read: {error.strerror}") from error
    page = analyse_page(body, url=path.absolute().as_uri())
    return f"{page.title or ''} {page.text}"


def accepts(types: Sequence[str], keep_types: Sequence[str] = ()) -> AcceptsResponse | None:
    """Which bodies are read, judged by their headers: all, or those whose media type matches one of the patterns. Where
    only some types are kept, others are read if they can have links."""
    if not types and not keep_types:
        return None
    patterns = [pattern_pieces(pattern.lower()) for pattern in types]
    kept = [pattern_pieces(pattern.lower()) for pattern in keep_types]

    def matches(patterns: Sequence[tuple[str, ...]], essence: str) -> bool:
        return not patterns or any(matches_pattern(pieces, essence, to_end=True) for pieces in patterns)

    def wants(status: int, headers: dict[str, str]) -> bool:
        essence = response_media_type(headers)
        if not 200 <= status < 300 or not essence:
            return True
        return matches(patterns, essence) and (matches(kept, essence) or media_kind(essence) in WITH_LINKS)

    return wants


def _limits(settings: CrawlSettings) -> TransferLimits:
    return TransferLimits(
        total_s=settings.total_s,
        body_bytes=settings.body_bytes,
        bandwidth_bytes_s=settings.bandwidth_bytes_s,
    )
