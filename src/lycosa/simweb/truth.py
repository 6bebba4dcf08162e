"""What a perfect crawler would find: the pages reachable from given seeds, under the rules it was given.

Walks the layout's own link lists, not the HTML, and matches robots rules with a matcher of its own, so that a crawler
that reaches exactly this set has parsed, joined, filtered and obeyed correctly. Traps are not part of the truth.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from urllib.parse import urlsplit

import msgspec

from lycosa.errors import SettingsError
from lycosa.simweb.documents import FOLDERS_PER_SITEMAP
from lycosa.simweb.layout import Place
from lycosa.simweb.nameserver import has_dns_trouble
from lycosa.simweb.web import SimWeb

SCOPES = ("host", "domain", "prefix", "any")
MINING = ("off", "ancestors", "all")
HARMLESS = ("", "wrong-charset", "huge", "deep")  # trouble behind which the page's links are still whole


class Truth(msgspec.Struct, frozen=True):
    """`pages` answer 200 with their document; `redirects` lead to one; `troubled` are pages that never come whole."""

    pages: frozenset[str]
    redirects: frozenset[str]
    troubled: dict[str, str]


def truth(
    web: SimWeb,
    seeds: Iterable[str],
    *,
    scope: str = "host",
    robots: bool = True,
    sitemaps: bool = True,
    mine: str = "off",
    time_s: float = 0.0,
) -> Truth:
    """Everything reachable from `seeds` at simulated time `time_s`."""
    if scope not in SCOPES:
        raise SettingsError(f"--scope is {scope!r}, it must be one of {', '.join(SCOPES)}")
    if mine not in MINING:
        raise SettingsError(f"--mine is {mine!r}, it must be one of {', '.join(MINING)}")
    walk = _Walk(web, list(seeds), scope=scope, robots=robots, sitemaps=sitemaps, mine=mine, time_s=time_s)
    walk.run()
    return Truth(frozenset(walk.pages), frozenset(walk.redirects), walk.troubled)


class _Walk:
    """A breadth-first walk over (host, path)."""

    def __init__(
        self, web: SimWeb, seeds: list[str], *, scope: str, robots: bool, sitemaps: bool, mine: str, time_s: float
    ) -> None:
        self.web, self.scope, self.robots, self.sitemaps, self.mine, self.time_s = (
            web,
            scope,
            robots,
            sitemaps,
            mine,
            time_s,
        )
        self.pages: set[str] = set()
        self.redirects: set[str] = set()
        self.troubled: dict[str, str] = {}
        self._seeds = [self._seed(url) for url in seeds]
        self._seen: set[tuple[int, str]] = set()
        self._queue: deque[tuple[int, str]] = deque()
        self._known_hosts: set[int] = set()

    def _seed(self, url: str) -> tuple[int, str]:
        parts = urlsplit(url)
        host = self.web.layout.host_number(parts.hostname or "")
        if host is None:
            raise SettingsError(
                f"{url!r} is not a page of this web: its hosts are h0.sim to h{self.web.settings.hosts - 1}.sim"
            )
        return host, parts.path or "/"

    def run(self) -> None:
        for host, path in self._seeds:
            self._admit(host, path)
        while self._queue:
            self._visit(*self._queue.popleft())

    def _admit(self, host: int, path: str) -> None:
        if (host, path) in self._seen or not self._in_scope(host, path):
            return
        self._seen.add((host, path))
        if has_dns_trouble(self.web, host, "servfail") or has_dns_trouble(self.web, host, "timeout"):
            return
        if self.sitemaps and host not in self._known_hosts:
            self._known_hosts.add(host)
            for place in self._sitemap_pages(host):
                self._admit(host, self.web.layout.path_of(place))
        if not self.robots or self.web.robots.of(host).allows(path):
            self._queue.append((host, path))

    def _in_scope(self, host: int, path: str) -> bool:
        if self.scope == "any":
            return True
        if self.scope == "prefix":
            return any(host == h and path.startswith(seed.rpartition("/")[0] + "/") for h, seed in self._seeds)
        return any(host == h for h, _ in self._seeds)  # every simulated host is a domain of its own

    def _sitemap_pages(self, host: int) -> Iterator[Place]:
        if self.web.robots.of(host).sitemap:
            for number in range(-(-self.web.layout.folder_count(host) // FOLDERS_PER_SITEMAP)):
                yield from self.web.documents.linked_pages(host, number)

    def _visit(self, host: int, path: str) -> None:
        web, url = self.web, self.web.linker.origin(host) + path
        place = web.layout.locate(host, path)
        if place is None:
            for ending in (".html", "/"):
                if web.layout.locate(host, path + ending) and not path.endswith("/"):
                    self.redirects.add(url)
                    self._admit(host, path + ending)
            return
        trouble = web.trouble_of(host, path)
        if web.state(place, self.time_s).gone:
            return
        if trouble not in HARMLESS:
            self.troubled[url] = trouble
            return
        self.pages.add(url)
        for href, _ in web.pages.all_links(web.pages.source(place)):
            self._admit(*self._resolve(host, path, href))
        for guess in self._mined(place, path):
            self._admit(host, guess)

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

    def _mined(self, place: Place, path: str) -> Iterator[str]:
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
