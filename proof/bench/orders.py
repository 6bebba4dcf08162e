"""In which order to crawl: policies on the simulated web's link graph, without a network.

The graph is walked from the same seeds in several ways. `breadth` takes pages as they were found. The others take the
best: (a) exactly, (b) by eight bands, first in first out within a band, (c) the same with hosts in turn, a host giving
only while its best band is the best of all, or at most `slack` below, (d) with hosts in turn and no such rule.
A round is the time in which every host may be asked once: pages a round say how many hosts a policy keeps at work.
"""

import heapq
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from statistics import mean
from urllib.parse import urljoin

import numpy as np

from lycosa.frontier.rankings import BANDS, SEED_CASH, Importance
from lycosa.simweb import SimSettings, SimWeb
from lycosa.simweb.layout import PagePlace
from lycosa.simweb.vocabulary import TOPICS
from lycosa.web import Topic, analyse_page
from proof import Experiment, Run

HOSTS, PAGES, QUICK_PAGES = 50, 20_000, 2_000
SHARE = 0.2  # of the pages: where the orders are compared
DAMPING, ITERATIONS = 0.85, 60
COMMIT_PAGES = 20  # pages between two writings of deltas

Ranks = np.ndarray[tuple[int, ...], np.dtype[np.float64]]


class WebGraph:
    """All pages reachable from the front pages of the first hosts, numbered as breadth-first finds them."""

    def __init__(self, web: SimWeb, *, seed_hosts: int = 1) -> None:
        self.web = web
        self.places: list[PagePlace] = []
        self.urls: list[str] = []
        self._numbers: dict[str, int] = {}
        self.seeds = [self._number(web.url(PagePlace(host, 0, 0))) for host in range(seed_hosts)]
        self.links: list[list[int]] = []
        self.anchors: list[list[str]] = []
        for place in self.places:  # grows while it is walked
            self._follow(place)
        self.hosts = [place.host for place in self.places]

    def __len__(self) -> int:
        return len(self.places)

    def topic(self, page: int) -> int:
        place = self.places[page]
        return self.web.layout.folder(place.host, place.folder).topic

    def _follow(self, place: PagePlace) -> None:
        found: dict[int, str] = {}
        here, origin = len(self.links), self.web.linker.origin(place.host)
        for href, anchor in self.web.pages.all_links(self.web.pages.source(place)):
            number = self._number(_joined(origin, self.urls[here], href))
            if number not in (-1, here):
                found.setdefault(number, anchor)
        self.links.append(list(found))
        self.anchors.append(list(found.values()))

    def _number(self, url: str) -> int:
        """The number of the page that a URL leads to, if need be by a redirect; -1 if it leads nowhere."""
        number = self._numbers.get(url)
        if number is None:
            host, path = self.web.address_of(url)
            places = (self.web.layout.locate(host, path + ending) for ending in ("", ".html", "/"))
            place = next((place for place in places if place), None)
            number = -1 if place is None else self._numbers.get(self.web.url(place), -1)
            if place is not None and number < 0:
                number = len(self.places)
                self.places.append(place)
                self.urls.append(self.web.url(place))
                self._numbers[self.urls[-1]] = number
            self._numbers[url] = number
        return number

    def ranks(self) -> Ranks:
        """PageRank of every page, by power iteration."""
        size = len(self)
        degrees = np.array([len(links) for links in self.links], dtype=np.float64)
        sources, targets = np.repeat(np.arange(size), degrees.astype(int)), np.concatenate(self.links)
        ranks = np.full(size, 1 / size)
        for _ in range(ITERATIONS):
            flow = np.bincount(targets, (ranks / np.maximum(degrees, 1))[sources], size)
            ranks = DAMPING * (flow + ranks[degrees == 0].sum() / size) + (1 - DAMPING) / size
        return ranks


def _joined(origin: str, base: str, href: str) -> str:
    """As `urljoin`, which takes most of a graph's time, but quick for the forms most links have."""
    return href if "://" in href else origin + href if href.startswith("/") else urljoin(base, href)


# scores: what a page is worth while it waits


class RankScores:
    """Cash by page, as the state would hold it; deltas are written every few pages."""

    def __init__(self, graph: WebGraph) -> None:
        self._graph, self._cash = graph, dict.fromkeys(graph.seeds, SEED_CASH)
        self._done: set[int] = set()
        self.flow = Importance()
        self._deltas: defaultdict[int, float] = defaultdict(float)
        self.writes = 0

    def start(self, page: int) -> float:
        return SEED_CASH

    def band(self, score: float) -> int:
        return self.flow.band(score)

    def fetched(self, page: int) -> Iterable[tuple[int, float]]:
        """Fetches a page: (page, new score) of all whose score rises, and of all new ones."""
        self._done.add(page)
        links = self._graph.links[page]
        new = [link for link in links if link not in self._cash]
        self._cash.update(dict.fromkeys(new, 0.0))
        for target, more in self.flow.spread(self._cash[page], links).items():
            self._deltas[target] += more
        deltas: dict[int, float] = {}
        if self.flow.pages % COMMIT_PAGES == 0 or self.flow.pages < COMMIT_PAGES:
            deltas, self._deltas = self._deltas, defaultdict(float)
        for target, more in deltas.items():
            if target not in self._done:
                self._cash[target] += more
        self.writes += len(deltas.keys() - self._done)
        risen = {*new, *deltas} - self._done
        return [(target, self._cash[target]) for target in sorted(risen)]


class TopicScores:
    """Predictions by page: the best that any link gave it."""

    def __init__(self, graph: WebGraph, topic: Topic) -> None:
        self._graph, self.topic = graph, topic
        self._predicted: dict[int, float] = {}
        self._done: set[int] = set()

    def start(self, page: int) -> float:
        return 0.5

    def band(self, score: float) -> int:
        return self.topic.band(score)

    def fetched(self, page: int) -> Iterable[tuple[int, float]]:
        graph, place = self._graph, self._graph.places[page]
        self._done.add(page)
        body = graph.web.answer(place.host, graph.web.layout.path_of(place)).body
        seen = analyse_page(body, url=graph.urls[page], content_type="text/html")
        headings = " ".join([heading for _, heading in seen.headings[:3]])
        predicted = self._predicted.pop(page, None)
        relevance = self.topic.read(
            graph.urls[page], title=seen.title or "", headings=headings, text=seen.text, predicted=predicted
        )
        links, anchors = graph.links[page], graph.anchors[page]
        scores = self.topic.links(anchors, [graph.urls[link] for link in links], parent=relevance)
        for link, score in zip(links, scores, strict=True):
            if link not in self._done and score > self._predicted.get(link, -1.0):
                self._predicted[link] = score
                yield link, score


Scores = RankScores | TopicScores


# orders: which page goes next


def exactly(graph: WebGraph, scores: Scores) -> Iterator[int]:
    """(a) The page with the highest score, of all."""
    best = {page: scores.start(page) for page in graph.seeds}
    heap = [(-score, page) for page, score in best.items()]
    done: set[int] = set()
    while heap:
        score, page = heapq.heappop(heap)
        if page in done or -score != best[page]:
            continue
        done.add(page)
        yield page
        for link, value in scores.fetched(page):
            best[link] = value
            heapq.heappush(heap, (-value, link))


class BandQueues:
    """Queues by band, one set for all hosts or one a host. A page moves up, never down."""

    def __init__(self) -> None:
        self._queues: dict[int, list[deque[int]]] = {}
        self._band: dict[int, int] = {}
        self.moves = 0

    def put(self, group: int, page: int, band: int) -> None:
        before = self._band.get(page, -1)
        if band > before:
            self.moves += before >= 0
            self._band[page] = band
            self._queues.setdefault(group, [deque() for _ in range(BANDS)])[band].append(page)

    def best(self, group: int) -> int:
        """The best band of a group that has a page, or -1."""
        queues = self._queues[group]
        for band in range(BANDS - 1, -1, -1):
            queue = queues[band]
            while queue and self._band[queue[0]] != band:
                queue.popleft()
            if queue:
                return band
        return -1

    def tops(self) -> list[tuple[int, int]]:
        return [(group, band) for group in list(self._queues) if (band := self.best(group)) >= 0]

    def take(self, group: int) -> int:
        page = self._queues[group][self.best(group)].popleft()
        self._band[page] = BANDS  # gone: nothing moves it any more
        return page


class InTurn:
    """(b), (c), (d): by bands, with hosts in turn. `slack` None: no host is held back."""

    def __init__(self, graph: WebGraph, scores: Scores, *, slack: int | None = 0, one_host: bool = False) -> None:
        self._scores, self._slack = scores, slack
        self._group = [0] * len(graph) if one_host else graph.hosts
        self.bands = BandQueues()
        self.rounds = 0
        for page in graph.seeds:
            self.bands.put(self._group[page], page, BANDS - 1)

    def __iter__(self) -> Iterator[int]:
        while tops := self.bands.tops():
            self.rounds += 1
            least = 0 if self._slack is None else max(band for _, band in tops) - self._slack
            for group in [group for group, band in tops if band >= least]:
                if self.bands.best(group) >= 0:
                    page = self.bands.take(group)
                    yield page
                    for link, score in self._scores.fetched(page):
                        self.bands.put(self._group[link], link, self._scores.band(score))


def breadth_in_turn(graph: WebGraph) -> Iterator[int]:
    """Breadth-first by host, hosts in turn: what a polite crawler without a policy does."""
    queues: dict[int, deque[int]] = {}
    known = set(graph.seeds)
    for page in graph.seeds:
        queues.setdefault(graph.hosts[page], deque()).append(page)
    while any(queues.values()):
        for host in [host for host, queue in queues.items() if queue]:
            page = queues[host].popleft()
            yield page
            for link in graph.links[page]:
                if link not in known:
                    known.add(link)
                    queues.setdefault(graph.hosts[link], deque()).append(link)


def first(order: Iterable[int], count: int) -> list[int]:
    return [page for page, _ in zip(order, range(count), strict=False)]


def compare(graph: WebGraph, make: Callable[[], Scores], value: Callable[[list[int]], float]) -> dict[str, str | float]:
    """The value of the first pages of every order, and what the orders by band cost."""
    count = int(len(graph) * SHARE)
    found: dict[str, str | float] = {
        "breadth": value(list(range(count))),
        "breadth, hosts in turn": value(first(breadth_in_turn(graph), count)),
        "(a) exact": value(first(exactly(graph, make()), count)),
    }
    ways: dict[str, tuple[int | None, bool]] = {
        "(b) bands": (0, True),
        "(c) held back": (0, False),
        "(c1) slack 1": (1, False),
        "(c2) slack 2": (2, False),
        "(d) not held back": (None, False),
    }
    for name, (slack, one_host) in ways.items():
        scores = make()
        order = InTurn(graph, scores, slack=slack, one_host=one_host)
        found[name] = value(first(order, count))
        found[f"{name}: pages/round, moves/page"] = f"{count / order.rounds:.1f}, {order.bands.moves / count:.2f}"
        if isinstance(scores, RankScores):
            found[f"{name}: writes/page"] = f"{scores.writes / count:.1f}"
    return found


def rank_figures(graph: WebGraph) -> dict[str, str | float]:
    ranks = graph.ranks()
    best = float(np.sort(ranks)[::-1][: int(len(graph) * SHARE)].sum())
    return compare(graph, lambda: RankScores(graph), lambda pages: float(ranks[pages].sum()) / best)


def topic_figures(graph: WebGraph, topic: int) -> dict[str, str | float]:
    """In on-topic pages for each that breadth-first has."""
    is_on = [graph.topic(page) == topic for page in range(len(graph))]
    count = int(len(graph) * SHARE)
    base = max(1, sum(is_on[:count]))

    def make() -> Scores:
        return TopicScores(graph, Topic.of_words(" ".join(TOPICS[topic])))

    found = compare(graph, make, lambda pages: sum(is_on[page] for page in pages) / base)
    return found | {"most there can be": min(count, sum(is_on)) / base}


def measure(run: Run) -> None:
    pages = QUICK_PAGES if run.quick else PAGES
    run.setting("webs", run.runs)
    run.setting("pages", pages)
    found: dict[str, list[dict[str, str | float]]] = {what: [] for what in run.chosen}
    with run.progress(run.runs, "webs") as step:
        for seed in range(run.seed, run.seed + run.runs):
            graph = WebGraph(SimWeb(SimSettings(seed=seed, hosts=HOSTS, pages=pages)))
            for what in run.chosen:
                topic = seed * 3 % len(TOPICS)
                found[what].append(rank_figures(graph) if what == "rank" else topic_figures(graph, topic))
            step.advance()
    for what, webs in found.items():
        rows = []
        for name in webs[0]:
            cells = [web[name] for web in webs]
            numbers = [cell for cell in cells if isinstance(cell, float)]
            rows.append((name, round(mean(numbers), 3) if numbers else "", *cells))
            if numbers and ":" not in name:
                run.figure(f"{what}, {name}", mean(numbers))
        run.table(["order", "mean", *(f"web {n}" for n in range(1, len(webs) + 1))], rows, title=what)


EXPERIMENT = Experiment(
    name="orders",
    summary="in which order to crawl: policies on the simulated web's link graph, with and without holding hosts back",
    run=measure,
    runs=5,
    choices=("rank", "topic"),
)
