"""What a perfect crawler would find: the pages that links and sitemaps reach from the seeds, within scope and limits.

Pure, and independent of the product's code: it walks the layout, it does not crawl. `summarise` shows single pages.
Read by tests, experiments and `lycosa simweb --truth`.
"""

import heapq
import re
from collections.abc import Iterable, Iterator

import msgspec

from lycosa.errors import SettingsError
from lycosa.simweb.documents import FOLDERS_PER_SITEMAP
from lycosa.simweb.layout import PagePlace
from lycosa.simweb.network import check_time, has_dns_trouble
from lycosa.simweb.web import SimWeb, without_session

SCOPES = ("host", "domain", "prefix", "any")
MINING = ("off", "ancestors", "all")
HARMLESS = ("", "wrong-charset", "huge", "deep")  # trouble behind which the page's links are still whole


class TruthLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What a crawler asks for at all; the defaults are Lycosa's.

    Segments are those of the path; a run of them may follow upon itself `max_segment_repeats` times. Depth counts links
    from a seed: a redirect adds nothing, a page named by a sitemap has depth 1.
    """

    max_url_bytes: int = 2_048
    max_path_segments: int = 20
    max_segment_repeats: int = 2
    max_depth: int | None = None

    def allow(self, url: str, path: str) -> bool:
        path = path.partition("?")[0]
        segments, times = path.split("/")[1:-1], self.max_segment_repeats + 1
        is_repeated = any(
            segments[at : at + run] * times == segments[at : at + run * times]
            for run in range(1, len(segments) // times + 1)
            for at in range(len(segments) - run * times + 1)
        )
        count = len(segments) + (not path.endswith("/"))
        return len(url) <= self.max_url_bytes and count <= self.max_path_segments and not is_repeated


DEFAULT_TRUTH_LIMITS = TruthLimits()


class Truth(msgspec.Struct, frozen=True):
    """`pages` answer 200 with their document; `redirects` lead to one; `troubled` are pages that never come whole."""

    pages: frozenset[str]
    redirects: frozenset[str]
    troubled: dict[str, str]


def truth_of(
    web: SimWeb,
    seeds: Iterable[str],
    *,
    scope: str = "host",
    robots: bool = True,
    sitemaps: bool = True,
    mine: str = "off",
    limits: TruthLimits = DEFAULT_TRUTH_LIMITS,
    time_s: float = 0.0,
) -> Truth:
    """Everything reachable from `seeds` at simulated time `time_s`."""
    if scope not in SCOPES:
        raise SettingsError(f"--scope is {scope!r}, it must be one of {', '.join(SCOPES)}")
    if mine not in MINING:
        raise SettingsError(f"--mine is {mine!r}, it must be one of {', '.join(MINING)}")
    check_time("--at", time_s)
    walk = _Walk(web, scope=scope, robots=robots, sitemaps=sitemaps, mine=mine, limits=limits, time_s=time_s)
    walk.run(list(seeds))
    return Truth(frozenset(walk.pages), frozenset(walk.redirects), walk.troubled)


class _Walk:
    """A walk over (host, path), the fewest links from a seed first."""

    def __init__(
        self, web: SimWeb, *, scope: str, robots: bool, sitemaps: bool, mine: str, limits: TruthLimits, time_s: float
    ) -> None:
        self.web, self.scope, self.robots, self.sitemaps = web, scope, robots, sitemaps
        self.mine, self.limits, self.time_s = mine, limits, time_s
        self.pages: set[str] = set()
        self.redirects: set[str] = set()
        self.troubled: dict[str, str] = {}
        self._seeds: list[tuple[int, str]] = []
        self._depth: dict[tuple[int, str], int] = {}
        self._queue: list[tuple[int, int, str]] = []
        self._known_hosts: set[int] = set()

    def _seed(self, url: str) -> tuple[int, str]:
        host, target = self.web.address_of(url)
        return host, without_session(target) if self.web.traps.host_has(host, "session-ids") else target

    def run(self, seeds: list[str]) -> None:
        self._seeds = [self._seed(url) for url in seeds]
        for host, path in self._seeds:
            self._admit(0, host, path)
        while self._queue:
            depth, host, path = heapq.heappop(self._queue)
            if depth == self._depth[host, path]:
                self._visit(depth, host, path)

    def _admit(self, depth: int, host: int, path: str) -> None:
        known, most = self._depth.get((host, path)), self.limits.max_depth
        if known is not None and (most is None or known <= depth):  # only with a limit is a shorter way news
            return
        if (most is not None and depth > most) or not self._in_scope(host, path):
            return
        self._depth[host, path] = depth
        if has_dns_trouble(self.web, host, "servfail") or has_dns_trouble(self.web, host, "timeout"):
            return
        if self.sitemaps and host not in self._known_hosts:
            self._known_hosts.add(host)
            for place in self._sitemap_pages(host):
                self._admit(1, host, self.web.layout.path_of(place))
        is_allowed = not self.robots or self.web.robots.of(host).allows(path)
        if is_allowed and self.limits.allow(self.web.linker.origin(host) + path, path):
            heapq.heappush(self._queue, (depth, host, path))

    def _in_scope(self, host: int, path: str) -> bool:
        if self.scope == "any":
            return True
        if self.scope == "prefix":
            folders = [(h, seed.partition("?")[0].rpartition("/")[0] + "/") for h, seed in self._seeds]
            return any(host == h and path.startswith(folder) for h, folder in folders)
        return any(host == h for h, _ in self._seeds)  # every simulated host is a domain of its own

    def _sitemap_pages(self, host: int) -> Iterator[PagePlace]:
        if self.web.robots.of(host).sitemap:
            for number in range(-(-self.web.layout.folder_count(host) // FOLDERS_PER_SITEMAP)):
                yield from self.web.documents.linked_pages(host, number)

    def _visit(self, depth: int, host: int, path: str) -> None:
        web, url = self.web, self.web.linker.origin(host) + path
        if "?" in path:  # no page has a query
            return
        place = web.layout.locate(host, path)
        if place is None:
            for ending in (".html", "/"):
                if web.layout.locate(host, path + ending) and not path.endswith("/"):
                    self.redirects.add(url)
                    self._admit(depth, host, path + ending)
            return
        trouble = web.trouble_of(host, path)
        if web.state(place, self.time_s).gone:
            return
        if trouble not in HARMLESS:
            self.troubled[url] = trouble
            return
        self.pages.add(url)
        for href, _ in web.pages.all_links(web.pages.source(place)):
            self._admit(depth + 1, *self._resolve(host, path, href))
        for guess in self._mined(place, path):
            self._admit(depth + 1, host, guess)

    def _resolve(self, host: int, path: str, href: str) -> tuple[int, str]:
        """Joins the few forms in which the generator writes hrefs."""
        if "://" in href:
            origin, slash, rest = href.partition("/")[2].partition("/")[2].partition("/")
            return int(origin.partition(".")[0][1:]), slash + rest
        if href.startswith("/"):
            return host, href
        folder = path.rpartition("/")[0] + "/"
        while href.startswith("../"):
            href, folder = href[3:], folder[:-1].rpartition("/")[0] + "/"
        return host, folder + href.removeprefix("./")

    def _mined(self, place: PagePlace, path: str) -> Iterator[str]:
        if self.mine == "off":
            return
        folder = path.rstrip("/").rpartition("/")[0]
        while folder:
            yield folder + "/"
            folder = folder.rpartition("/")[0]
        yield "/"
        here = self.web.layout.folder(place.host, place.folder)
        if self.mine == "all" and place.page > here.articles:
            for page in range(here.articles + 1, here.articles + here.series + 1):
                yield here.path + here.name(page)


_TITLE = re.compile(rb"<title>(.*?)</title>")
_HREF = re.compile(rb'<a href="([^"]*)"')
LINKS_SHOWN = 4


class WebSummary(msgspec.Struct, frozen=True):
    """What a page answers, shortened."""

    url: str
    status: int
    content_type: str
    body: bytes

    def __str__(self) -> str:
        title = _TITLE.search(self.body)
        links = [href.decode() for href in _HREF.findall(self.body)]
        lines = [f"{self.status} {self.url}", f"    {self.content_type}, {len(self.body):,} bytes"]
        if title:
            lines.append(f"    {title[1].decode()}")
        if links:
            lines.append(f"    {len(links)} links: {'  '.join(links[-LINKS_SHOWN:])}  …")
        return "\n".join(lines)


def summarise(web: SimWeb, url: str) -> WebSummary:
    """What the web answers for a URL at time 0."""
    answer = web.answer(*web.address_of(url))
    return WebSummary(url, answer.status, answer.content_type, answer.body)


def example_pages(web: SimWeb) -> list[str]:
    """A front page, an article, a member of a series and a robots.txt, where they exist."""
    urls = [f"{web.linker.origin(0)}/", f"{web.linker.origin(0)}/robots.txt"]
    for host in range(min(3, web.settings.hosts)):
        folder = web.layout.folder(host, 0)
        if folder.articles:
            urls.append(web.url(PagePlace(host, 0, 1)))
        if folder.series:
            urls.append(web.url(PagePlace(host, 0, folder.articles + 1)))
    return urls
