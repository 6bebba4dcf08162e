"""The API: JSON over HTTP under /api/v1, described by OpenAPI at /api/v1/openapi.json.

Reading is by GET. Everything that changes something is a POST with a JSON body, goes through `crawl.steering` or the
inbox, and is written into the log of the collection with its origin. Errors are `{"detail": "a sentence"}`.
"""

import subprocess
import sys
from collections.abc import Callable
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, FastAPI, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field

from lycosa.cluster import require_whole_collection
from lycosa.crawl import Action, Inbox, log_added, log_order, refuse_forgotten, refuse_private, steer
from lycosa.errors import SettingsError
from lycosa.inspect import HostColumn, KnownUrlFilter, latest_events
from lycosa.serve.live import Broadcast, chart_points, status_facts
from lycosa.serve.metrics import prometheus_text
from lycosa.serve.source import CollectionSource
from lycosa.serve.views import (
    change_list,
    change_page,
    copies_of,
    host_list,
    host_neighbourhood,
    host_page,
    neighbourhood,
    search_page,
    setting_list,
    shard_page,
    tree_of,
    url_list,
    url_page,
)
from lycosa.settings import CrawlSettings
from lycosa.web import Url, parse_url
from lycosa.wording import counted

MOST_ROWS = 1_000
PAUSE_S = 86_400  # between two requests to a host that is paused: nothing of it is lost meanwhile
MOST_CHARS = 8_192  # of anything that is asked

Text = Annotated[str, Query(max_length=MOST_CHARS)]
Limit = Annotated[int, Query(ge=1, le=MOST_ROWS)]
Offset = Annotated[int, Query(ge=0, le=100_000_000)]


class SteerOrder(BaseModel):
    """An order for the running crawl; `settings` for `set`, by name, as in lycosa.toml."""

    action: Action
    settings: dict[str, str | int | float | bool | list[str] | None] = Field(default_factory=dict, max_length=100)


class SeedList(BaseModel):
    """URLs to be crawled, too."""

    urls: list[Annotated[str, Field(min_length=1, max_length=MOST_CHARS)]] = Field(min_length=1, max_length=10_000)


class HostChange(BaseModel):
    """What is to become of one host: asked less often, once a day at most, not at all, as the others again, or with a
    limit of pages of its own."""

    host: str = Field(min_length=1, max_length=MOST_CHARS)
    action: Annotated[str, Field(pattern="^(slow|pause|block|release|limit)$")]
    delay_s: float = Field(default=10.0, ge=0, le=86_400)
    pages: int = Field(default=1, ge=1, le=10**12)


class RecrawlOrder(BaseModel):
    """A recrawl that is to begin now; `everything`: due or not."""

    everything: bool = False


def add_api(app: FastAPI, source: CollectionSource, broadcast: Broadcast) -> None:
    """Adds all routes to the application."""
    api = APIRouter(prefix="/api/v1")
    _add_reading(api, source, broadcast)
    _add_steering(api, source)
    app.include_router(api)

    @app.get("/metrics", tags=["metrics"])
    def metrics() -> Response:
        """The counts for Prometheus."""
        text = prometheus_text(source.stats(), is_crawled=source.is_crawled, viewers=broadcast.viewers)
        return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")

    @app.get("/healthz", tags=["metrics"])
    def health() -> Response:
        """Says that the server runs."""
        return Response("ok\n", media_type="text/plain")


def _reply(value: object, *, status: int = 200) -> Response:
    return Response(msgspec.json.encode(value), status_code=status, media_type="application/json")


def _add_reading(api: APIRouter, source: CollectionSource, broadcast: Broadcast) -> None:
    def get(path: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        return api.get(path, tags=["reading"], responses={400: {}, 404: {}, 503: {}})

    @get("/status")
    def status() -> Response:
        """The counts of this moment, as `lycosa status --json` prints them."""
        return _reply(status_facts(source))

    @get("/events")
    async def events() -> StreamingResponse:
        """The same once a second, as server-sent events, and every five seconds the timeline and the latest events."""
        return StreamingResponse(broadcast.view(), media_type="text/event-stream")

    @get("/timeline")
    def timeline(points: Annotated[int, Query(ge=2, le=2_000)] = 300) -> Response:
        """The course of the crawl, for charts."""
        return _reply(chart_points(source.timeline(), most=points))

    @get("/hosts")
    def hosts(
        q: Text = "", sort: HostColumn = "pages", up: bool = False, offset: Offset = 0, limit: Limit = 100
    ) -> Response:
        """Hosts by name, sorted by a column."""
        return _reply(host_list(source, words=q, sort=sort, up=up, offset=offset, limit=limit))

    @get("/host")
    def host(host: Text) -> Response:
        """One host by its origin, such as https://example.org."""
        return _reply(host_page(source, host))

    @get("/shards")
    def shards() -> Response:
        """The shards of the collection: counts, and while it is crawled leases, moves and exchange."""
        return _reply(shard_page(source))

    @get("/copies")
    def copies(url: Text) -> Response:
        """The copies and near-copies of a page; null while the whole collection is being read: ask again."""
        return _reply(copies_of(source, url))

    @get("/url")
    def url(url: Text) -> Response:
        """Everything that is known of a URL."""
        return _reply(url_page(source, url))

    @get("/urls")
    def urls(
        below: Text = "",
        host: Text = "",
        state: Annotated[list[str] | None, Query()] = None,
        status: Annotated[list[str] | None, Query()] = None,
        after: Text = "",
        limit: Limit = 100,
    ) -> Response:
        """Known URLs in order; where the answer names a URL `after`, there may be more behind it."""
        wanted = KnownUrlFilter(below=below, host=host, states=tuple(state or ()), statuses=tuple(status or ()))
        return _reply(url_list(source, wanted, after=after, limit=limit))

    @get("/changes")
    def changes(
        since: Text = "",
        until: Text = "",
        host: Text = "",
        kind: Annotated[list[str] | None, Query()] = None,
        limit: Limit = 100,
    ) -> Response:
        """The latest changes, the newest first."""
        return _reply(change_list(source, since=since, until=until, host=host, kinds=kind or (), limit=limit))

    @get("/change")
    def change(
        url: Text, old: Annotated[int | None, Query(ge=1)] = None, new: Annotated[int | None, Query(ge=1)] = None
    ) -> Response:
        """The versions of a page and the difference of two of them, the last two unless they are named."""
        return _reply(change_page(source, url, old, new))

    @get("/search")
    def search(
        q: Text,
        offset: Annotated[int, Query(ge=0, le=10_000)] = 0,
        limit: Annotated[int, Query(ge=1, le=100)] = 10,
        as_of: Text = "",
        facets: bool = False,
        fold: bool = True,
    ) -> Response:
        """The pages that a query finds; with `facets`, all that match counted by host, language, type and year. Without
        `fold` copies and near-copies are results of their own. Null while the index is being made: ask again."""
        return _reply(search_page(source, q, offset=offset, limit=limit, as_of=as_of, facets=facets, fold=fold))

    @get("/tree")
    def tree(prefix: Text = "") -> Response:
        """Known URLs as a tree of hosts and folders; null while very many of them are being counted: ask again."""
        return _reply(tree_of(source, prefix))

    @get("/neighbours")
    def neighbours(url: Text = "", host: Text = "") -> Response:
        """The pages that link to one, and those that it links to; of a host the hosts, null while they are counted."""
        return _reply(host_neighbourhood(source, host) if host else neighbourhood(source, url))

    @get("/settings")
    def settings() -> Response:
        """Every setting of the collection with its value."""
        return _reply(setting_list(source))

    @get("/log")
    def log(limit: Limit = 100) -> Response:
        """The last events, the newest first."""
        return _reply(latest_events(source.path, most=limit))


def _add_steering(api: APIRouter, source: CollectionSource) -> None:
    def post(path: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        return api.post(path, tags=["steering"], responses={400: {}, 503: {}})

    def origin(request: Request) -> str:
        return f"live page, {request.client.host if request.client else 'unknown'}"

    def change(settings: dict[str, Any], request: Request) -> Response:
        before = source.settings().as_dict()
        says = steer(source.path, "set", settings, origin=origin(request))
        undo = {name: before[name] for name in settings if name in before}
        return _reply({"says": says, "undo": undo})

    @post("/steer")
    def steer_crawl(order: SteerOrder, request: Request) -> Response:
        """Pauses, resumes or stops the crawl, or changes its settings."""
        if order.action == "set":
            return change(order.settings, request)
        return _reply({"says": steer(source.path, order.action, origin=origin(request))})

    @post("/seeds")
    def add_seeds(seeds: SeedList, request: Request) -> Response:
        """Adds URLs to the crawl; a running one takes them in within a second."""
        urls = [parse_url(text if "://" in text else f"https://{text}") for text in seeds.urls]
        if None in urls:
            raise SettingsError(f"{seeds.urls[urls.index(None)]!r} is not an http or https URL")
        named = [url for url in urls if url is not None]
        refuse_private(named, source.settings(), source.path)
        refuse_forgotten(named, source.path)
        Inbox(source.path).put(url.href for url in named)
        log_added(source.path, [url.href for url in named], origin=origin(request))
        return _reply({"says": f"{counted(len(named), 'URL')} added"})

    @post("/hosts/steer")
    def steer_host(order: HostChange, request: Request) -> Response:
        """Has one host asked less often, not at all, with another limit of pages, or as the others again."""
        url = parse_url(order.host if "://" in order.host else f"https://{order.host}")
        if url is None:
            raise SettingsError(f"{order.host!r} is not a host")
        return change(_settings_of_host(source.settings(), url, order), request)

    begun = list[subprocess.Popen[bytes]]()

    @post("/recrawl")
    def recrawl(order: RecrawlOrder, request: Request) -> Response:
        """Begins a recrawl in a process of its own."""
        if source.is_crawled:
            raise SettingsError("a crawl is running: a recrawl can begin when it has ended")
        require_whole_collection(source.path)
        begun[:] = [process for process in begun if process.poll() is None]  # those that ended leave the process table
        words = [sys.executable, "-m", "lycosa", "recrawl", str(source.path), "--quiet"]
        nowhere = subprocess.DEVNULL
        begun.append(
            subprocess.Popen(
                [*words, "--all"] if order.everything else words,
                stdin=nowhere,
                stdout=nowhere,
                stderr=nowhere,
                start_new_session=True,
            )
        )
        log_order(source.path, "steered", origin=origin(request), action="recrawl", everything=order.everything)
        return _reply({"says": "the recrawl begins; its numbers appear within a few seconds"})


def _settings_of_host(settings: CrawlSettings, url: Url, order: HostChange) -> dict[str, Any]:
    """The settings that do to a host what is asked for, in place of what was set for it before."""
    limits = [each for each in settings.host_pages if not each.startswith(f"{url.host}=")]
    if order.action == "limit":
        return {"host_pages": [f"{url.host}={order.pages}", *limits]}
    pattern = f"{url.href.removesuffix(url.path)}/*"
    exclude = [each for each in settings.exclude if each != pattern]
    groups = [each for each in settings.groups if not each.startswith(f"{url.host}=")]
    if order.action == "block":
        exclude.append(pattern)
    elif order.action in ("slow", "pause"):
        groups.insert(0, f"{url.host}=1/{PAUSE_S if order.action == 'pause' else order.delay_s:g}s")
    changed = {"exclude": exclude, "groups": groups}
    return {**changed, "host_pages": limits} if order.action == "release" else changed
