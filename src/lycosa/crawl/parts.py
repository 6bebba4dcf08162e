"""The exchangeable parts of a crawl, and how they are made from the settings when none are given.

Each part is a small Protocol: `Resolver`, `Downloader`, `UrlFilter`, `Analyser`, `Statistics`. They are passed as
objects, or named in the settings (`web.named_parts`).
"""

from collections.abc import Callable, Mapping, Sequence
from ipaddress import ip_network
from pathlib import Path
from typing import Protocol

import msgspec

from lycosa.crawl.other_shards import OtherShards
from lycosa.errors import PartError
from lycosa.fetch import (
    AcceptsResponse,
    CurlDownloader,
    Downloader,
    SchemeDownloader,
    TransferLimits,
    raise_descriptor_limit,
    response_media_type,
)
from lycosa.frontier import BREADTH, WALKS, InternalFirst, Policy, PValue, Rank, Ranking, Relevance, parse_policy
from lycosa.mapping import AddressGuard, CaresResolver, Resolver
from lycosa.records import Response
from lycosa.settings import CrawlSettings
from lycosa.web import (
    Analyser,
    Analysers,
    Page,
    Topic,
    UnknownPart,
    UrlFilter,
    analyse_page,
    matches_pattern,
    named_analysers,
    named_part,
    pattern_pieces,
)


class Statistics(Protocol):
    """Sees every analysed page, in the order of the commits (T7)."""

    def page(self, page: Page, response: Response) -> None: ...


def cares_resolver(settings: CrawlSettings) -> Resolver:
    """The resolver `cares`."""
    return CaresResolver(settings.dns)


def curl_downloader(settings: CrawlSettings) -> Downloader:
    """The downloader `curl`, for http and https."""
    raise_descriptor_limit()
    curl = CurlDownloader(
        _limits(settings),
        accepts=accepts(settings.types),
        proxy=settings.proxy,
        verify_tls=settings.verify_tls,
        ca_file=settings.ca_file,
    )
    return SchemeDownloader({"http": curl, "https": curl})


class Parts(msgspec.Struct, kw_only=True):
    """What an engine is made of. `now` replaces the monotonic clock, for virtual time, and `wall` the one that says
    which day it is, read when the crawl begins."""

    resolver: Resolver
    downloader: Downloader
    guard: AddressGuard
    filters: Sequence[UrlFilter] = ()
    analysers: Analysers | None = None
    statistics: Sequence[Statistics] = ()
    policy: Policy = BREADTH
    now: Callable[[], float] | None = None
    wall: Callable[[], float] | None = None
    outside: OtherShards | None = None  # the other shards, where there are any


def usual_parts(
    settings: CrawlSettings,
    *,
    resolver: Resolver | None = None,
    downloader: Downloader | None = None,
    filters: Sequence[UrlFilter] = (),
    analysers: Mapping[str, Analyser] | None = None,
    statistics: Sequence[Statistics] = (),
    policy: Policy | None = None,
    now: Callable[[], float] | None = None,
    wall: Callable[[], float] | None = None,
    outside: OtherShards | None = None,
) -> Parts:
    """The parts that the settings ask for, with those given in their place. Needs the running event loop."""
    return Parts(
        resolver=resolver or named_part("resolver", settings.resolver, settings),
        downloader=downloader or named_part("downloader", settings.downloader, settings),
        guard=AddressGuard(ip_network(network) for network in settings.allow_private),
        filters=[*filters, *(named_part("filter", name, settings) for name in settings.filters)],
        analysers=named_analysers(settings, analysers),
        statistics=[*statistics, *(named_part("statistics", name, settings) for name in settings.statistics)],
        policy=policy or named_policy(settings),
        now=now,
        wall=wall,
        outside=outside,
    )


def named_policy(settings: CrawlSettings) -> Policy:
    """The policy that the settings name, with the windows that they ask for; a topic ranks."""
    walks = {
        name: msgspec.structs.replace(
            walk,
            steps=settings.window_hosts if walk.steps else 0,
            leaves=settings.window_leaves if walk.swings else 0,
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


def accepts(types: Sequence[str]) -> AcceptsResponse | None:
    """Which bodies are read, judged by their headers: all, or those whose media type matches one of the patterns."""
    if not types:
        return None
    patterns = [pattern_pieces(pattern.lower()) for pattern in types]

    def wants(status: int, headers: dict[str, str]) -> bool:
        essence = response_media_type(headers)
        return not 200 <= status < 300 or not essence or any(matches_pattern(p, essence, to_end=True) for p in patterns)

    return wants


def _limits(s: CrawlSettings) -> TransferLimits:
    return TransferLimits(
        total_s=s.total_s,
        body_bytes=s.body_bytes,
        bandwidth_bytes_s=s.bandwidth_bytes_s,
    )
