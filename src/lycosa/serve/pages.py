"""The pages of the live view, rendered on the server: they can be read without scripts, which only keep them live.

Whatever came from a crawled page is text in a template that escapes it. The stored copy of a page is never shown here:
it is replayed on an origin of its own (`lycosa.replay`). The report is a document with a policy of its own.
"""

import re
import time
from collections.abc import Sequence
from importlib.resources import files
from typing import Any, Literal, Protocol
from urllib.parse import urlencode

import msgspec
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, RedirectResponse
from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from lycosa.errors import LycosaError, NoPage, SettingsError
from lycosa.inspect import NAME_COLUMNS, HostColumn, HostView, KnownUrlFilter, latest_events
from lycosa.report import html_pieces, make_report, page_policy
from lycosa.serve.access import copies_at
from lycosa.serve.live import LATEST_EVENTS, status_facts
from lycosa.serve.source import CollectionSource
from lycosa.serve.times import time_text
from lycosa.serve.views import (
    SettingView,
    change_list,
    change_page,
    copies_of,
    host_list,
    host_neighbourhood,
    host_page,
    limit_list,
    neighbourhood,
    ranked_list,
    search_page,
    setting_list,
    shard_page,
    url_list,
    url_page,
)
from lycosa.web import format_capture_time, format_timestamp, parse_url
from lycosa.wording import duration, rate, size

ROWS = 50
RESULTS = 10
HOST_COLUMNS: dict[HostColumn, str] = {
    "host": "host",
    "pages": "pages",
    "queued": "queued",
    "failed": "failed",
    "bytes": "received",
    "requests_per_s": "requests/s",
    "mean_s": "answers in",
    "delay_s": "delay",
    "next_s": "next request",
    "retries": "retries",
    "page_limit": "pages at most",
    "robots": "robots.txt",
    "address": "address",
    "shard": "shard",
    "waits": "state",
}
CHANGE_KINDS = ("text", "structure", "image", "new", "gone", "back", "redirect")
STATIC = {"live.css": "text/css; charset=utf-8", "live.js": "text/javascript; charset=utf-8"}
_CHANGED_WORDS = re.compile(r"\[-(.*?)-\]|\{\+(.*?)\+\}")  # as `recrawl.change.diff` writes them


def span_text(seconds: float) -> str:
    """`24 ms`, `1.5 s`, `3m 12s`."""
    return f"{1_000 * seconds:.0f} ms" if 0 < seconds < 1 else duration(seconds)


def next_request(host: HostView) -> Markup:
    """When a host may be asked again: at a time, at once, or not at all."""
    if host.gave_up or not (host.queued or host.requests):
        return Markup("–")
    return moment(host.next_s)


def moment(unix_s: float) -> Markup:
    """When something comes that waits for a time: then, or now where that has passed."""
    if unix_s <= time.time():
        return Markup("now")
    return Markup('<time datetime="{}">{}</time>').format(format_timestamp(unix_s), time_text(unix_s))


def folder_name(prefix: str) -> str:
    """The last part of the address of a folder."""
    return f"{prefix.rstrip('/').rpartition('/')[2]}/"


def marked_parts(text: str, places: Sequence[tuple[int, int]]) -> list[tuple[bool, str]]:
    """A text in parts, each with whether it is one of the places that are marked."""
    parts, end = list[tuple[bool, str]](), 0
    for start, stop in places:
        parts += [(False, text[end:start]), (True, text[start:stop])]
        end = stop
    return [part for part in (*parts, (False, text[end:])) if part[1]]


def link_to(page: str, **asked: object) -> str:
    """The address of a page with what it is asked."""
    given = {name: value for name, value in asked.items() if value not in ("", None)}
    return f"{page}?{urlencode(given)}" if given else page


def copy_link(url: str, at: str = "latest", kind: str = "view") -> str:
    """What leads to the stored copy of a page: below a banner, or alone as a `frame`."""
    return link_to("/copy", url=url, at=at, kind=kind)


class PageRenderer:
    """Renders pages of one collection."""

    def __init__(self, source: CollectionSource) -> None:
        self._source = source
        self._jinja = Environment(
            loader=PackageLoader("lycosa.serve"),
            autoescape=select_autoescape(default=True, default_for_string=True),
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._jinja.filters.update(
            size=size,
            rate=rate,
            when=time_text,
            span=span_text,
            number=lambda value: f"{value:,}",
            iso=format_timestamp,
            words=lambda name: name.replace("-", " "),
            folder=folder_name,
        )
        self._jinja.globals.update(
            changed_words=changed_words,
            marked=marked_parts,
            stamp=format_capture_time,
            next_request=next_request,
            moment=moment,
            wait_reason=lambda host: host.waits.partition(": ")[2],
            link=link_to,
            name=source.path.resolve().name,
            copy=copy_link,
            has_shards=lambda: bool(source.shards),
        )

    def render(self, template: str, *, code: int = 200, **values: Any) -> Response:
        return HTMLResponse(
            self._jinja.get_template(template).render(here=template.removesuffix(".html"), **values), code
        )

    def waiting(self, title: str, says: str, where: str = "") -> Response:
        """What stands in place of a page that takes long, until it is there: it asks again by itself, for itself or for
        what is at `where`."""
        return self.render("waiting.html", title=title, says=says, where=where)

    def report(self, *, anew: bool) -> str | None:
        """The site report as one document; None while it is being made."""

        def make() -> str:
            with make_report(self._source.path) as made:
                return "".join(html_pieces(made))

        return self._source.slow.ask("report", make, anew=anew)


def add_pages(app: FastAPI, source: CollectionSource, *, replay_at: str) -> None:
    """Adds the pages to the application; they are not part of the API's description. Stored copies are replayed at
    `replay_at`."""
    pages = PageRenderer(source)
    _add_crawl_pages(app, source, pages)
    _add_content_pages(app, source, pages)

    @app.get("/copy", include_in_schema=False)
    def copy(request: Request, url: str, at: str = "latest", kind: Literal["view", "frame"] = "view") -> Response:
        """Leads to a stored copy, on the origin where it is replayed for this viewer."""
        parsed, when = parse_url(url), at if at.isdecimal() else "latest"
        if parsed is None:
            raise SettingsError(f"{url!r} is no URL of a page")
        where = copies_at(replay_at, request.headers["host"])  # the URL as it is: quoted once more, it would be another
        return Response(status_code=303, headers={"location": f"{where}{kind}/{when}/{parsed.href}"})

    @app.get("/static/{name}", include_in_schema=False)
    def static(name: str) -> Response:
        if name not in STATIC:
            return Response("there is no such file\n", 404, media_type="text/plain")
        return Response((files("lycosa.serve") / "static" / name).read_bytes(), media_type=STATIC[name])

    add_problems(app, pages.render)


def _add_crawl_pages(app: FastAPI, source: CollectionSource, pages: PageRenderer) -> None:
    @app.get("/", include_in_schema=False)
    def overview() -> Response:
        facts = status_facts(source)
        limits = limit_list(source) if source.is_there else ()
        return pages.render(
            "overview.html", facts=facts, limits=limits, log=latest_events(source.path, most=LATEST_EVENTS)
        )

    @app.get("/shards", include_in_schema=False)
    def shards() -> Response:
        return pages.render("shards.html", page=shard_page(source))

    @app.get("/hosts", include_in_schema=False)
    def hosts(q: str = "", sort: str = "pages", up: bool = False, offset: int = 0) -> Response:
        column: Any = sort if sort in HOST_COLUMNS else "pages"
        found = host_list(source, words=q, sort=column, up=up, offset=max(offset, 0), limit=ROWS)
        values = {"q": q, "sort": column, "up": up, "columns": HOST_COLUMNS, "by_name": NAME_COLUMNS, "rows": ROWS}
        return pages.render("hosts.html", found=found, **values)

    @app.get("/host", include_in_schema=False)
    def host(host: str) -> Response:
        page = host_page(source, host)
        moments = [msgspec.structs.asdict(each) for each in page.timeline.moments]
        return pages.render("host.html", page=page, moments=moments)

    @app.get("/urls", include_in_schema=False)
    def urls(below: str = "", state: str = "", status: str = "", after: str = "") -> Response:
        states = (state,) if state else ()
        wanted = KnownUrlFilter(below=below, states=states, statuses=(status,) if status else ())
        found = url_list(source, wanted, after=after, limit=ROWS)
        return pages.render("urls.html", found=found, below=below, state=state, status=status, after=after)

    @app.get("/settings", include_in_schema=False)
    def settings() -> Response:
        groups = dict[str, list[SettingView]]()  # in the order of the schema
        for each in setting_list(source):
            groups.setdefault(each.group, []).append(each)
        return pages.render("settings.html", groups=groups, is_crawled=source.is_crawled)

    @app.get("/log", include_in_schema=False)
    def log() -> Response:
        return pages.render("log.html", log=latest_events(source.path, most=300))


def _add_content_pages(app: FastAPI, source: CollectionSource, pages: PageRenderer) -> None:
    @app.get("/url", include_in_schema=False)
    def url(url: str = "") -> Response:
        if not url.strip():
            return pages.render("message.html", title="Ask for a URL", says="Type any URL above, known or not.")
        return pages.render("url.html", page=url_page(source, url.strip()))

    @app.get("/copies", include_in_schema=False)
    def copies(url: str) -> Response:
        found = copies_of(source, url)
        if found is None:
            return pages.waiting("Copies", "The whole collection is read for it: some seconds for 100,000 pages.")
        return pages.render("copies.html", url=url, found=found)

    @app.get("/changes", include_in_schema=False)
    def changes(since: str = "", host: str = "", kind: str = "") -> Response:
        kinds = (kind,) if kind else ()
        found = change_list(source, since=since, until="", host=host, kinds=kinds, limit=200)
        return pages.render("changes.html", found=found, since=since, host=host, kind=kind, kinds=CHANGE_KINDS)

    @app.get("/change", include_in_schema=False)
    def change(url: str, old: int | None = None, new: int | None = None) -> Response:
        return pages.render("change.html", page=change_page(source, url, old, new))

    @app.get("/search", include_in_schema=False)
    def search(q: str = "", offset: int = 0, as_of: str = "", fold: bool = True) -> Response:
        found, problem = None, ""
        if q.strip():
            offset = min(max(offset, 0), 10_000)
            try:
                found = search_page(source, q, offset=offset, limit=RESULTS, as_of=as_of, facets=True, fold=fold)
            except SettingsError as error:  # the query is wrong: it stays in its box, to be put right
                problem = plain_text(str(error))
            if found is None and not problem:
                return pages.waiting("Search", "The index is being made: some minutes for a million pages.")
        values = {"found": found, "problem": problem, "as_of": as_of, "results": RESULTS, "fold": fold}
        return pages.render("search.html", code=400 if problem else 200, q=plain_text(q), **values)

    @app.get("/report", include_in_schema=False)
    def report(anew: bool = False) -> Response:
        # This page waits, and not the frame below: a sandboxed frame cannot ask a second time, having no cookie.
        if pages.report(anew=anew) is None:
            return pages.waiting("Report", "The report is being made: 100,000 pages take about a minute.", "/report")
        return pages.render("report.html")

    @app.get("/report/page", include_in_schema=False)
    def report_page() -> Response:
        # Its script filters the findings. It is named by its digest, and runs on an origin that may ask for nothing.
        made = pages.report(anew=False)
        policy = f"sandbox allow-popups allow-scripts; {page_policy()}; frame-ancestors 'self'"
        headers = {"Content-Security-Policy": policy}
        return HTMLResponse("Load the page again." if made is None else made, headers=headers)

    @app.get("/graph", include_in_schema=False)
    def graph(url: str = "", host: str = "") -> Response:
        if url or host:
            around = host_neighbourhood(source, host) if host else neighbourhood(source, url)
            if around is None:
                return pages.waiting("Graph", "The links between all hosts are counted.")
            return pages.render("graph.html", around=around, is_host=bool(host), ranked=(), ranks=(), pages=0)
        ranked = ranked_list(source)
        if ranked is None:
            return pages.waiting("Graph", "The ranks of all pages are computed: some seconds for a million pages.")
        values: dict[str, Any] = {"ranked": ranked.first, "ranks": _distribution(ranked.ranks)}
        return pages.render("graph.html", around=None, is_host=False, pages=len(ranked.ranks), **values)

    @app.get("/go", include_in_schema=False)
    def go(q: str = "") -> Response:
        """The box on top of every page: a URL leads to its page, words to a search."""
        is_url = "://" in q or ("." in q and " " not in q.strip() and "/" in q)
        return RedirectResponse(link_to("/url", url=q) if is_url else link_to("/search", q=q), 303)


def _distribution(values: Sequence[float]) -> list[tuple[float, float]]:
    """The share of pages at or above a rank, for a drawing with two logarithmic axes."""
    count = len(values)
    places = sorted({min(count, round(count ** (step / 60))) for step in range(61)} - {0}) if count else []
    return [(values[place - 1] * count, place / count) for place in places if values[place - 1] > 0]


def changed_words(line: str) -> list[tuple[str, str]]:
    """The parts of a line of a difference by words: "", "gone" or "new", and the text."""
    found, end = list[tuple[str, str]](), 0
    for match in _CHANGED_WORDS.finditer(line):
        found.append(("", line[end : match.start()]))
        found.append(("gone", match[1]) if match[1] is not None else ("new", match[2]))
        end = match.end()
    return [part for part in (*found, ("", line[end:])) if part[1]]


class MessagePage(Protocol):
    """Renders a page that says one thing."""

    def __call__(self, template: str, *, code: int, **values: Any) -> Response: ...


def add_problems(app: FastAPI, render: MessagePage) -> None:
    """Adds the answers to whatever goes wrong, in a sentence: as `{"detail": …}` to whoever asked the API, on a page to
    others."""

    def tell(request: Request, status: int, title: str, says: str, detail: object = None) -> Response:
        if request.url.path.startswith("/api/"):
            answer = msgspec.json.encode({"detail": detail or plain_text(says)})
            return Response(answer, status, media_type="application/json")
        return render("message.html", code=status, title=title, says=plain_text(says))

    @app.exception_handler(404)
    def missing(request: Request, _: Exception) -> Response:
        return tell(request, 404, "There is no such page", f"{request.url.path} is not a page of this server.")

    @app.exception_handler(RequestValidationError)
    def refuse(request: Request, error: RequestValidationError) -> Response:
        """Says what is wrong, without the input, which may hold anything."""
        found = [{"loc": [plain_text(str(name)) for name in e["loc"]], "msg": e["msg"]} for e in error.errors()]
        says = "; ".join(f"{each['loc'][-1]}: {each['msg']}" for each in found)
        return tell(request, 422, "This cannot be asked", says, found)

    @app.exception_handler(LycosaError)
    def explain(request: Request, error: LycosaError) -> Response:
        status = 404 if isinstance(error, NoPage) else 400 if isinstance(error, SettingsError) else 503
        return tell(request, status, "This cannot be shown", str(error))


def plain_text(text: str) -> str:
    """The text with its halves of characters, which UTF-8 cannot have, as escapes."""
    return text.encode("utf-8", "backslashreplace").decode()
