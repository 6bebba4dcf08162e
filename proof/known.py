"""A simulated web as one who knows it all sees it: every page that can be reached, topics and ranks.

The measure for crawls of that web. A page is what `simweb.truth` says: reachable from the seeds by links and sitemaps,
allowed by robots.txt. Ranks are PageRank over the links between those pages. Used by experiments.
"""

from urllib.parse import urljoin

import numpy as np

from lycosa.graph.ranks import F64, LinkGraph, pagerank
from lycosa.simweb import SimWeb
from lycosa.simweb.truth import truth


class KnownWeb:
    """The pages of a web by number, with what each is worth. `seeds` are the front pages it is crawled from."""

    def __init__(self, web: SimWeb, *, seed_hosts: int = 1) -> None:
        self.web = web
        self.seeds = [f"{web.linker.origin(host)}/" for host in range(seed_hosts)]
        self.pages = sorted(truth(web, self.seeds, scope="any").pages)  # sorted: a set of strings has no order
        self._numbers = {url: number for number, url in enumerate(self.pages)}
        self.ranks = self._ranks()

    def __repr__(self) -> str:
        return f"<KnownWeb {self.web!r} reachable={len(self.pages)}>"

    def __len__(self) -> int:
        return len(self.pages)

    def number(self, url: str) -> int | None:
        """The number of a page, if it is one."""
        return self._numbers.get(url)

    def topic_of(self, url: str) -> int | None:
        """The topic of a page, reachable or not; None where there is no page."""
        place = self.web.layout.locate(*self.web.address_of(url))
        return self.web.layout.folder(place.host, place.folder).topic if place else None

    def best_masses(self) -> F64:
        """The PageRank of the n best pages, for each n: nobody who fetches n pages gets more."""
        return np.cumsum(np.sort(self.ranks)[::-1])

    def _ranks(self) -> F64:
        sources: list[int] = []
        targets: list[int] = []
        for number, url in enumerate(self.pages):
            found = self._targets(url)
            sources += [number] * len(found)
            targets += found
        size = len(self.pages)
        return pagerank(LinkGraph.of(np.array(sources, np.int64), np.array(targets, np.int64), size))[0]

    def _targets(self, url: str) -> list[int]:
        """The pages that a page's links lead to, also by the redirect of a URL without its ending."""
        host, path = self.web.address_of(url)
        place = self.web.layout.locate(host, path)
        assert place is not None
        origin, numbers = self.web.linker.origin(host), []
        for href, _ in self.web.pages.all_links(self.web.pages.source(place)):
            target = href if "://" in href else origin + href if href.startswith("/") else urljoin(url, href)
            found = (self._numbers.get(target + ending) for ending in ("", ".html", "/"))
            numbers += [number for number in found if number is not None][:1]
        return numbers
