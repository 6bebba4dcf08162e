"""What the pages and the API show, made from a collection: one function a view, each bounded in what it returns.

Views are records or plain values that become JSON; the pages render the same ones. What a viewer asks for that cannot
be is a `SettingsError`, and becomes an answer with status 400 or 404.
"""

from collections.abc import Sequence
from itertools import groupby, islice
from operator import attrgetter
from typing import Any, Literal

import msgspec

from lycosa.api import Collection
from lycosa.cluster import ShardReport, load_coordinator_status
from lycosa.crawl import crawl_state, is_crawled, load_timeline
from lycosa.duplicates import DuplicatePage
from lycosa.errors import NoPage, SettingsError
from lycosa.graph import Ranked, UrlLinks, host_links, rank_pages, ranked_pages
from lycosa.inspect import (
    Branch,
    ChangeView,
    HostColumn,
    HostTimeline,
    HostView,
    KnownRobots,
    KnownUrlFilter,
    PageHistory,
    UrlListing,
    UrlView,
    host_named,
    host_retries,
    host_timeline,
    host_views,
    list_urls_after,
    page_history,
    robots_named,
    stats_of,
    url_tree,
)
from lycosa.search import QueryError, SearchResults
from lycosa.serve.source import CollectionSource
from lycosa.serve.times import in_utc
from lycosa.settings import SETTINGS
from lycosa.store import CollectionStore, JoinedCollection
from lycosa.wording import counted, duration, size

LINKS_SHOWN = 100
RETRIES_SHOWN = 20
RULES_SHOWN = 100
TREE_ROWS = 30
NEIGHBOURS = 24
_DIRECTIONS: tuple[Literal["in", "out"], ...] = ("in", "out")
RANKED_SHOWN = 50


class HostList(msgspec.Struct, frozen=True):
    """Some of the hosts that match, in order, and how many there are."""

    total: int
    offset: int
    hosts: Sequence[HostView]


class HostRetry(msgspec.Struct, frozen=True):
    """A URL that failed and is tried again: how often it was tried, what failed, and when it is due."""

    url: str
    tries: int
    failed: str
    due_s: float


class HostPage(msgspec.Struct, frozen=True):
    """One host: its numbers, its course, its path tree by weight, its robots.txt as it is understood, and its next
    retries. The tree of a very large host is None while it is being counted."""

    host: HostView
    timeline: HostTimeline
    tree: Sequence[Branch] | None
    robots: KnownRobots
    retries: Sequence[HostRetry]


class ShardView(msgspec.Struct, frozen=True):
    """One shard of a collection: its counts, what sets its pace, when it last counted, and while it is crawled what the
    coordinator knows of it."""

    name: str
    state: str
    pages: int
    queued: int
    failed: int
    hosts: int
    pages_per_s: float
    bytes: int
    memory_bytes: int
    pace: str
    seen_s: float
    report: ShardReport | None


class UrlPage(msgspec.Struct, frozen=True):
    """One URL: what `why` knows, its links, and its versions."""

    view: UrlView
    links: UrlLinks
    history: PageHistory | None


class SettingView(msgspec.Struct, frozen=True):
    """A setting with its value, as it is written in TOML, and whether it can be changed here."""

    name: str
    value: Any
    help: str
    group: str
    can_change: bool
    choices: tuple[str, ...] = ()


class Neighbour(msgspec.Struct, frozen=True):
    """A page or a host beside another one; `direction` is `in` for one that links there, `out` for one that it links
    to. The `anchor` of a host says how many links there are."""

    url: str
    anchor: str
    direction: Literal["in", "out"]


class Neighbourhood(msgspec.Struct, frozen=True):
    """The pages around one, or the hosts; `pages_in` and `pages_out` count all of them."""

    url: str
    pages_in: int
    pages_out: int
    neighbours: Sequence[Neighbour]


def host_list(source: CollectionSource, *, words: str, sort: HostColumn, up: bool, offset: int, limit: int) -> HostList:
    """The hosts whose names hold `words`, sorted by a column."""
    found = source.hosts().find(words, sort=sort, up=up)
    with source.store() as store:
        return HostList(len(found), offset, list(host_views(store, found[offset : offset + limit])))


def host_page(source: CollectionSource, name: str) -> HostPage:
    """One host by its origin, such as `https://example.org`."""
    with source.store() as store:
        if (host := host_named(store, name)) is None:
            raise NoPage(f"{name} is not known to this collection")
        timeline = host_timeline(store, name)
        robots = robots_named(store, name, most=RULES_SHOWN)
        entries = islice(host_retries(store, name), RETRIES_SHOWN)
        retries = [HostRetry(f"{name}{each.path}", each.tries, each.failed, each.due_unix) for each in entries]
    tree = tree_of(source, f"{name}/")
    return HostPage(host, timeline, tree, robots, retries)


class ShardPage(msgspec.Struct, frozen=True):
    """All shards: those on this machine with their counts, and what moves between them."""

    shards: list[ShardView]
    epoch: int = 0
    move: str = ""
    elsewhere: Sequence[ShardReport] = ()


def shard_page(source: CollectionSource) -> ShardPage:
    """Every shard of the collection; none where it has no shards."""
    status = load_coordinator_status(source.path) if source.is_crawled else None
    reports = {each.name: each for each in status.shards} if status else {}
    if not source.shards:
        return ShardPage([])
    with source.store() as store:
        shards = store.shards if isinstance(store, JoinedCollection) else []
        found = [_shard_view(each, reports.pop(each.path.name, None)) for each in shards]
    if status is None:
        return ShardPage(found)
    return ShardPage(found, status.epoch, status.move, tuple(reports.values()))


def _shard_view(shard: CollectionStore, report: ShardReport | None) -> ShardView:
    stats, samples = stats_of(shard), load_timeline(shard.state).samples
    return ShardView(
        name=shard.path.name,
        state=crawl_state(stats, is_crawled=is_crawled(shard.path)),
        pages=stats.pages,
        queued=stats.queued,
        failed=sum(stats.failed.values()),
        hosts=stats.hosts,
        pages_per_s=stats.pages_per_s,
        bytes=stats.bytes,
        memory_bytes=stats.memory_bytes,
        pace=in_utc(stats.standing or stats.pace),
        seen_s=samples[-1].at_unix if samples else 0.0,
        report=report,
    )


def copies_of(source: CollectionSource, url: str) -> Sequence[DuplicatePage] | None:
    """The cluster of copies and near-copies that a page is in; nothing where it is in none, and None while the whole
    collection is being read: some seconds for a hundred thousand pages."""
    wanted = source.ask(lambda collection: collection.why(url).url)

    def ask(store: CollectionStore) -> Sequence[DuplicatePage]:
        from lycosa.duplicates import duplicate_pages  # lazy: NumPy, 0.1 s

        for _, pages in groupby(duplicate_pages(store.state), key=attrgetter("cluster")):
            found = list(pages)
            if any(page.url == wanted for page in found):
                return found[:LINKS_SHOWN]
        return ()

    return source.ask_slowly(f"copies {wanted}", ask)


def url_page(source: CollectionSource, url: str) -> UrlPage:
    """One URL, known or not."""

    def ask(collection: Collection) -> UrlPage:
        known = collection.why(url)
        view = msgspec.structs.replace(known, says=tuple(map(_in_utc, known.says)))
        return UrlPage(view, collection.links(view.url, most=LINKS_SHOWN), None)

    page = source.ask(ask)
    try:
        with source.store() as store:
            return msgspec.structs.replace(page, history=page_history(store, page.view.url))
    except SettingsError:  # it was never fetched
        return page


def change_list(
    source: CollectionSource, *, since: str, until: str, host: str, kinds: Sequence[str], limit: int
) -> Sequence[ChangeView]:
    """The latest changes, the newest first."""
    return source.ask(
        lambda collection: collection.changes(since=since, until=until, host=host, kinds=kinds, most=limit)
    )


def change_page(source: CollectionSource, url: str, old: int | None, new: int | None) -> PageHistory:
    """The versions of a page and the difference of two of them."""
    with source.store() as store:
        return page_history(store, url, old=old, new=new)


def search_page(
    source: CollectionSource, words: str, *, offset: int, limit: int, as_of: str, facets: bool, fold: bool
) -> SearchResults | None:
    """The pages that a query finds; None while the index, or that of a past time, is being made."""

    def ask() -> SearchResults:
        return source.ask(
            lambda collection: collection.search(
                words, most=limit, offset=offset, as_of=as_of, facets=facets, fold=fold
            )
        )

    try:
        if as_of:
            return source.slow.ask(f"search {(words, offset, limit, as_of, facets, fold)}", ask)
        return ask() if source.has_index() else None
    except QueryError as error:
        raise SettingsError(str(error)) from error


def url_list(source: CollectionSource, wanted: KnownUrlFilter, *, after: str, limit: int) -> UrlListing:
    """Known URLs in the order of hosts and paths, behind the URL `after`."""
    with source.store() as store:
        return list_urls_after(store, wanted, after, most=limit)


def tree_of(source: CollectionSource, prefix: str) -> Sequence[Branch] | None:
    """The known URLs below a prefix as a tree, the largest branches; None while they are being counted."""
    return source.ask_slowly(f"tree {prefix}", lambda store: url_tree(store, prefix, rows=TREE_ROWS))


class RankedPages(msgspec.Struct, frozen=True):
    """The most important pages, and the ranks of all of them, the highest first."""

    first: Sequence[Ranked]
    ranks: Sequence[float]


def ranked_list(source: CollectionSource) -> RankedPages | None:
    """The pages by rank; None while the ranks are being computed."""

    def ask(store: CollectionStore) -> RankedPages:
        ranks, _ = rank_pages(store, lambda _: None)  # saved or not, they are shown
        return RankedPages(
            list(ranked_pages(store, ranks, most=RANKED_SHOWN)), sorted(ranks.ranks.tolist(), reverse=True)
        )

    return source.ask_slowly("ranks", ask)


def neighbourhood(source: CollectionSource, url: str) -> Neighbourhood:
    """The pages around one, as many as can be drawn."""
    links = source.ask(lambda collection: collection.links(url, most=NEIGHBOURS))
    around = [Neighbour(each.url, each.anchor, "in") for each in links.links_in]
    around += [Neighbour(each.url, each.anchor, "out") for each in links.links_out]
    return Neighbourhood(links.url, links.pages_in, links.pages_out, around)


def host_neighbourhood(source: CollectionSource, name: str) -> Neighbourhood | None:
    """The hosts around one; None while all links are being read."""
    links = source.ask_slowly("host links", host_links)
    if links is None:
        return None
    sides = links.around(name)
    around = [
        Neighbour(host, counted(many, "link"), direction)
        for direction, side in zip(_DIRECTIONS, sides, strict=True)
        for host, many in side[:NEIGHBOURS]
    ]
    return Neighbourhood(name, len(sides[0]), len(sides[1]), around)


def setting_list(source: CollectionSource) -> list[SettingView]:
    """Every setting of the collection."""
    values = source.settings().as_dict()
    return [
        SettingView(name, _plain(values[name]), about.help, about.group, about.is_steered, about.choices)
        for name, about in SETTINGS.items()
    ]


def limit_list(source: CollectionSource) -> list[str]:
    """The limits of the crawl in words, with units."""
    values, group, found = source.settings().as_dict(), SETTINGS["pages"].group, list[str]()
    for name, about in SETTINGS.items():
        value = values[name]
        if about.group == group and value is not None and not isinstance(value, bool):
            each_one = value if isinstance(value, tuple) else (_limit(name, value),)
            found += [f"{name.removesuffix('_s').replace('_', ' ')} {each}" for each in each_one]
    return found


def _limit(name: str, value: float) -> str:
    return duration(value) if name.endswith("_s") else size(value) if name == "bytes" else f"{value:,}"


def _in_utc(line: str) -> str:
    return line if line.startswith("title: ") else in_utc(line)  # what others wrote stays as it is


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
