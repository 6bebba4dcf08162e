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
from lycosa.crawl import STEERED_SETTINGS, is_crawled, load_timeline
from lycosa.duplicates import DuplicatePage
from lycosa.errors import NoPage, SettingsError
from lycosa.graph import UrlLinks
from lycosa.inspect import (
    Branch,
    ChangeView,
    HostView,
    KnownUrl,
    KnownUrlFilter,
    PageHistory,
    UrlView,
    host_retries,
    list_urls,
    open_to_read,
    page_history,
    stats_of,
    url_tree,
)
from lycosa.search import QueryError, SearchResults
from lycosa.serve.live import crawl_state
from lycosa.serve.source import CollectionSource
from lycosa.settings import SETTINGS

HostSort = Literal["pages", "queued", "failed", "bytes", "mean_s", "delay_s", "retries", "time_s", "host"]
LINKS_SHOWN = 100
LIMITS = ("pages", "time_s", "bytes", "depth", "pages_per_host", "host_depth")
RETRIES_SHOWN = 20
TREE_ROWS = 30
NEIGHBOURS = 24


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
    """One host: its numbers, its path tree by weight, its robots.txt as it is understood, and its next retries."""

    host: HostView
    tree: Sequence[Branch]
    robots: Sequence[str]
    retries: Sequence[HostRetry]


class ShardView(msgspec.Struct, frozen=True):
    """One shard of a collection: its counts, what sets its pace, and when it last counted."""

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
    """A page beside another one; `direction` is `in` for one that links there, `out` for one that it links to."""

    url: str
    anchor: str
    direction: Literal["in", "out"]


class Neighbourhood(msgspec.Struct, frozen=True):
    """The pages around one; `pages_in` and `pages_out` count all of them."""

    url: str
    pages_in: int
    pages_out: int
    neighbours: Sequence[Neighbour]


def host_list(source: CollectionSource, *, words: str, sort: HostSort, up: bool, offset: int, limit: int) -> HostList:
    """The hosts whose names hold `words`, sorted by a column."""
    wanted = words.strip().lower()
    found = [host for host in source.hosts() if wanted in host.host.lower()]
    if sort == "host":
        found.sort(key=lambda host: host.host.partition("://")[2].split(".")[::-1], reverse=up)
    else:
        found.sort(key=attrgetter(sort), reverse=not up)
    return HostList(len(found), offset, found[offset : offset + limit])


def host_page(source: CollectionSource, name: str) -> HostPage:
    """One host by its origin, such as `https://example.org`."""
    host = next((each for each in source.hosts() if each.host == name), None)
    if host is None:
        raise NoPage(f"{name} is not known to this collection")
    with open_to_read(source.path) as store:
        tree = url_tree(store, f"{name}/", rows=TREE_ROWS)
        entries = islice(host_retries(store, name), RETRIES_SHOWN)
        retries = [HostRetry(f"{name}{each.path}", each.tries, each.failed, each.due_unix) for each in entries]
    said = source.ask(lambda collection: collection.why(f"{name}/robots.txt"))
    return HostPage(host, tree, said.says, retries)


def shard_list(source: CollectionSource) -> list[ShardView]:
    """Every shard of the collection that is on this machine; none where it has no shards."""
    found = list[ShardView]()
    for path in source.shards:
        with open_to_read(path) as store:
            stats, samples = stats_of(store), load_timeline(store.state).samples
        running = is_crawled(path)
        found.append(
            ShardView(
                name=path.name,
                state=crawl_state(stats, is_running=running),
                pages=stats.pages,
                queued=stats.queued,
                failed=sum(stats.failed.values()),
                hosts=stats.hosts,
                pages_per_s=stats.pages_per_s if running else 0.0,
                bytes=stats.bytes,
                memory_bytes=stats.memory_bytes if running else 0,
                pace=stats.standing or stats.pace if running else "",
                seen_s=samples[-1].at_unix if samples else 0.0,
            )
        )
    return found


def copies_of(source: CollectionSource, url: str) -> Sequence[DuplicatePage]:
    """The cluster of copies and near-copies that a page is in; nothing where it is in none. It reads the whole
    collection: some seconds for a hundred thousand pages."""

    def ask(collection: Collection) -> Sequence[DuplicatePage]:
        wanted = collection.why(url).url
        for _, pages in groupby(collection.duplicates(), key=attrgetter("cluster")):
            found = list(pages)
            if any(page.url == wanted for page in found):
                return found[:LINKS_SHOWN]
        return ()

    return source.ask(ask)


def url_page(source: CollectionSource, url: str) -> UrlPage:
    """One URL, known or not."""

    def ask(collection: Collection) -> UrlPage:
        view = collection.why(url)
        return UrlPage(view, collection.links(view.url, most=LINKS_SHOWN), None)

    page = source.ask(ask)
    try:
        with open_to_read(source.path) as store:
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
    with open_to_read(source.path) as store:
        return page_history(store, url, old=old, new=new)


def search_page(
    source: CollectionSource, words: str, *, offset: int, limit: int, as_of: str, facets: bool = False
) -> SearchResults:
    """The pages that a query finds."""
    # A collection that may only be read is searched as it was indexed; a crawl with --index keeps its index itself.
    try:
        return source.ask(
            lambda collection: collection.search(words, most=limit, offset=offset, as_of=as_of, facets=facets)
        )
    except QueryError as error:
        raise SettingsError(str(error)) from error


def url_list(source: CollectionSource, wanted: KnownUrlFilter, *, offset: int, limit: int) -> list[KnownUrl]:
    """Known URLs in the order of hosts and paths."""
    with open_to_read(source.path) as store:
        return list(islice(list_urls(store, wanted), offset, offset + limit))


def tree_of(source: CollectionSource, prefix: str) -> Sequence[Branch]:
    """The known URLs below a prefix as a tree, the largest branches."""
    with open_to_read(source.path) as store:
        return url_tree(store, prefix, rows=TREE_ROWS)


def neighbourhood(source: CollectionSource, url: str) -> Neighbourhood:
    """The pages around one, as many as can be drawn."""
    links = source.ask(lambda collection: collection.links(url, most=NEIGHBOURS))
    around = [Neighbour(each.url, each.anchor, "in") for each in links.links_in]
    around += [Neighbour(each.url, each.anchor, "out") for each in links.links_out]
    return Neighbourhood(links.url, links.pages_in, links.pages_out, around)


def setting_list(source: CollectionSource) -> list[SettingView]:
    """Every setting of the collection."""
    values = source.settings().as_dict()
    return [
        SettingView(name, _plain(values[name]), about.help, about.group, name in STEERED_SETTINGS, about.choices)
        for name, about in SETTINGS.items()
    ]


def limit_list(source: CollectionSource) -> list[str]:
    """The limits of the crawl, as options."""
    values = source.settings().as_dict()
    set_ones = ((name, values[name]) for name in LIMITS if values[name])
    return [f"--{name.removesuffix('_s').replace('_', '-')} {value:,.10g}" for name, value in set_ones]


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
