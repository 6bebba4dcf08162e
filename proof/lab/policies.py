"""What goes first, and what comes of it: the real crawler on the in-memory simulated web under every policy.

One web is crawled to its end under each policy, for the curves; what is said of a fifth of the pages is the mean over
several webs. Time is virtual: what politeness and the order of requests cost, not what the machine does. The measure is
the web as one who knows it all sees it: every page that can be reached, its topic and its PageRank. Pages that only
guessing finds have no in-links and so no rank here; they count as pages and for their topic.
"""

import math
from collections.abc import Callable, Sequence
from itertools import accumulate
from pathlib import Path
from statistics import mean
from typing import Any, Literal, NamedTuple
from urllib.parse import urljoin

import numpy as np

from lycosa.frontier import Reason, UrlRow, UrlState
from lycosa.graph.ranks import F64, LinkGraph, pagerank
from lycosa.inspect import open_to_read
from lycosa.records import Family
from lycosa.simweb import SimSettings, SimWeb, truth_of
from lycosa.simweb.vocabulary import TOPICS
from proof import Axis, Bar, Column, ColumnChart, Experiment, Line, LineChart, Mark, PaperFigure, Run
from proof.ground.commands import scratch
from proof.ground.memory_crawl import Look, MemoryCrawl, crawl


class KnownWeb:
    """The pages of a web by number, with what each is worth. `seeds` are the front pages it is crawled from."""

    def __init__(self, web: SimWeb, *, seed_hosts: int = 1) -> None:
        self.web = web
        self.seeds = [f"{web.linker.origin(host)}/" for host in range(seed_hosts)]
        self.pages = sorted(truth_of(web, self.seeds, scope="any").pages)  # sorted: a set of strings has no order
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


class MinedPages(NamedTuple):
    """Guesses that were asked for, and those of them that were pages."""

    asked: int
    found: int


class MeasuredCrawl(NamedTuple):
    """A crawl with its worth: on-topic pages and rank mass after each page."""

    crawled: MemoryCrawl
    on_topic: Sequence[int]
    mass: Sequence[float]
    mined: MinedPages

    @property
    def pages(self) -> int:
        return len(self.on_topic)

    def at(self, pages: int) -> Look:
        """The crawl as it was when so many pages were committed."""
        looks = self.crawled.looks
        return next((look for look in looks if look.pages >= pages), looks[-1])


class KnownGround:
    """One known web, a topic to look for, and crawls of it. `fifth` is the number of pages at which orders compare."""

    def __init__(self, seed: int, *, hosts: int, pages: int) -> None:
        self.known = KnownWeb(SimWeb(SimSettings(seed=seed, hosts=hosts, pages=pages)))
        self.topic = seed * 3 % len(TOPICS)  # another one on every web
        self.fifth = len(self.known) // 5

    def __repr__(self) -> str:
        return f"<KnownGround {self.known!r} topic={TOPICS[self.topic][0]}>"

    def crawl(
        self,
        policy: str,
        *,
        mine: str = "ancestors",
        pages: int | None = None,
        advance: Callable[[int], None] = lambda pages: None,
    ) -> MeasuredCrawl:
        """By the real crawler under default politeness, to the end or until there are so many pages."""
        topic = {"topic": " ".join(TOPICS[self.topic])} if policy == "topic" else {}
        with scratch() as folder:
            into = folder / "crawl"
            limits: dict[str, Any] = {"policy": policy, "mine": mine, "pages": pages, **topic}
            done = crawl(self.known.web, into, *self.known.seeds, advance=advance, **limits)
            mined = _mined(into)
        known = self.known
        on_topic = accumulate(int(known.topic_of(url) == self.topic) for url in done.urls)
        numbers = [known.number(url) for url in done.urls]
        mass = accumulate(0.0 if number is None else float(known.ranks[number]) for number in numbers)
        return MeasuredCrawl(done, list(on_topic), list(mass), mined)

    def on_topic_pages(self) -> int:
        return sum(self.known.topic_of(url) == self.topic for url in self.known.pages)

    def unlinked_pages(self) -> int:
        """The pages that only guessing finds: folders and members of series that nobody links to."""
        reachable = truth_of(self.known.web, self.known.seeds, scope="any", mine="all").pages
        return len(reachable) - len(self.known)


def _mined(collection: Path) -> MinedPages:
    with open_to_read(collection) as opened:
        rows = [UrlRow.unpack(row) for _, row in opened.state.walk(Family.URL)]
    guesses = [row for row in rows if row.origin.is_guess]
    found = sum(row.state is UrlState.DONE for row in guesses)
    return MinedPages(found + sum(row.reason is Reason.GUESS for row in guesses), found)


POLICIES = ("breadth", "topic", "rank", "pvalue", "top-window", "leaf-window", "pvalue+leaf-window")
JUDGED = ("breadth", "topic", "rank")  # those with a bar at a fifth of the pages, crawled on every web
MINING = ("off", "ancestors", "all")
POINTS = 120  # of one curve
COLUMNS = (
    "policy",
    "mining",
    "on topic at a fifth",
    "rank at a fifth %",
    "known at a fifth",
    "minutes to a fifth",
    "pages at the end",
    "requests",
    "minutes",
    "audit",
)


class WebSize(NamedTuple):
    hosts: int
    pages: int
    webs: int


WHOLE, QUICK = WebSize(50, 10_000, 5), WebSize(20, 1_500, 2)


class PolicyCrawls(NamedTuple):
    """All that was crawled: each policy on the first web, each way of mining there, and the judged ones on all webs."""

    grounds: list[KnownGround]
    by_policy: dict[str, MeasuredCrawl]
    by_mining: dict[str, MeasuredCrawl]
    fifths: list[dict[str, MeasuredCrawl]]

    def all(self) -> list[MeasuredCrawl]:
        later = [done for fifth in self.fifths[1:] for done in fifth.values()]
        mined = [self.by_mining[mine] for mine in ("off", "all")]
        return [*self.by_policy.values(), *mined, *later]

    def topic_gains(self) -> list[float]:
        """For each web: on-topic pages of `topic` for one that breadth-first has, a fifth of the pages fetched."""
        pairs = zip(self.grounds, self.fifths, strict=True)
        return [_on_topic(crawls["topic"], g) / max(1, _on_topic(crawls["breadth"], g)) for g, crawls in pairs]

    def rank_shares(self, policy: str) -> list[float]:
        """For each web: the rank mass of a fifth of the pages, in percent of the best possible fifth."""
        pairs = zip(self.grounds, self.fifths, strict=True)
        return [_rank_share(crawls[policy], g) for g, crawls in pairs]


def _on_topic(done: MeasuredCrawl, ground: KnownGround) -> int:
    return done.on_topic[min(ground.fifth, done.pages) - 1]


def _rank_share(done: MeasuredCrawl, ground: KnownGround) -> float:
    best = float(ground.known.best_masses()[ground.fifth - 1])
    return 100 * done.mass[min(ground.fifth, done.pages) - 1] / best


def measure(run: Run) -> None:
    size = QUICK if run.quick else WHOLE
    crawls = _crawled(run, size)
    first = crawls.grounds[0]
    run.setting("hosts", size.hosts)
    run.setting("pages", size.pages)
    run.setting("webs", size.webs)
    run.setting("reachable pages of the first web", len(first.known))
    run.setting("topic there", TOPICS[first.topic][0])
    _figures(run, crawls)
    rows = [(policy, "ancestors", done) for policy, done in crawls.by_policy.items()]
    rows += [("breadth", mine, crawls.by_mining[mine]) for mine in ("off", "all")]
    run.table(
        COLUMNS,
        [_row(policy, mine, done, first) for policy, mine, done in rows],
    )
    _plot(run, crawls)


def _crawled(run: Run, size: WebSize) -> PolicyCrawls:
    with run.progress(size.webs, "webs") as step:
        grounds = []
        for i in range(size.webs):
            grounds.append(KnownGround(run.seed + i, hosts=size.hosts, pages=size.pages))
            step.advance()
    first, later = grounds[0], grounds[1:]
    pages = (len(POLICIES) + 2) * len(first.known) + len(JUDGED) * sum(ground.fifth for ground in later)
    with run.progress(pages, "pages") as step:

        def crawl(ground: KnownGround, policy: str, mine: str = "ancestors", pages: int | None = None) -> MeasuredCrawl:
            return ground.crawl(policy, mine=mine, pages=pages, advance=step.advance)

        by_policy = {policy: crawl(first, policy) for policy in POLICIES}
        by_mining = {
            mine: by_policy["breadth"] if mine == "ancestors" else crawl(first, "breadth", mine) for mine in MINING
        }
        fifths = [{policy: by_policy[policy] for policy in JUDGED}]
        fifths += [{policy: crawl(ground, policy, pages=ground.fifth) for policy in JUDGED} for ground in later]
    return PolicyCrawls(grounds, by_policy, by_mining, fifths)


def _figures(run: Run, crawls: PolicyCrawls) -> None:
    run.figure("on-topic pages beside breadth-first", mean(crawls.topic_gains()), "×")
    run.figure("rank mass beside the best possible", mean(crawls.rank_shares("rank")), "%")
    run.figure("rank mass of breadth-first", mean(crawls.rank_shares("breadth")), "%")
    mined = crawls.by_mining["all"].mined
    run.figure("unlinked pages found", 100 * mined.found / max(1, crawls.grounds[0].unlinked_pages()), "%")
    run.figure("requests for each of them", mined.asked / max(1, mined.found))
    run.figure("crawls that broke a rule", sum(not done.crawled.is_polite for done in crawls.all()))


def _row(policy: str, mine: str, done: MeasuredCrawl, ground: KnownGround) -> tuple[str | int | float, ...]:
    there = done.at(ground.fifth)
    return (
        policy,
        mine,
        _on_topic(done, ground),
        round(_rank_share(done, ground), 1),
        there.known,
        round(there.time_s / 60, 1),
        done.pages,
        len(done.crawled.entries),
        round(done.crawled.seconds / 60, 1),
        "clean" if done.crawled.is_polite else "BROKEN",
    )


# the picture


def _plot(run: Run, crawls: PolicyCrawls) -> None:
    """Curves are cut where they have said what they have to say: in the end every policy has everything."""
    first, ways = crawls.grounds[0], crawls.by_policy
    topic, most = TOPICS[first.topic][0], 2 * first.fifth
    until_s = ways["breadth"].at(int(0.9 * len(first.known))).time_s
    pages, minutes, urls = Axis("pages fetched"), Axis("time", "virtual minutes"), Axis("URLs discovered")
    lines = [_over_pages(policy, done.on_topic[:most]) for policy, done in ways.items()]
    there_are = Mark(first.on_topic_pages(), "all there are")
    run.plot(LineChart("topic finds its pages first", pages, Axis(f"pages about {topic}"), tuple(lines), (there_are,)))
    masses = {name: done.mass for name, done in ways.items() if "+" not in name}
    masses["best possible"] = first.known.best_masses().tolist()
    lines = [_over_pages(name, [100 * mass for mass in values[:most]]) for name, values in masses.items()]
    run.plot(LineChart("rank comes near the best possible", pages, Axis("share of the PageRank", "%"), tuple(lines)))
    lines = [_over_time(policy, done, "pages", until_s) for policy, done in ways.items()]
    run.plot(LineChart("rank and topic wait for the hosts that have the best", minutes, pages, tuple(lines)))
    lines = [_over_time(policy, done, "known", until_s) for policy, done in ways.items()]
    run.plot(LineChart("Most is discovered early", minutes, urls, tuple(lines)))
    lines = [_over_time(f"mining {mine}", done, "known") for mine, done in crawls.by_mining.items()]
    run.plot(LineChart("Mining finds what nobody links to", minutes, urls, tuple(lines)))
    columns = tuple(
        Column(f"web {ground.known.web.settings.seed}, {TOPICS[ground.topic][0]}", gain)
        for ground, gain in zip(crawls.grounds, crawls.topic_gains(), strict=True)
    )
    value = Axis("on-topic pages at a fifth of all pages, for one of breadth-first", "×")
    run.plot(ColumnChart("topic beside breadth-first", value, columns, (Mark(2.5, "wanted"),)))


def _over_pages(label: str, values: Sequence[float]) -> Line:
    places = _spaced(len(values))
    return Line(label, [place + 1 for place in places], [values[place] for place in places])


def _over_time(label: str, done: MeasuredCrawl, what: Literal["pages", "known"], until_s: float = math.inf) -> Line:
    looks = [look for look in done.crawled.looks if look.time_s <= until_s]
    shown = [looks[place] for place in _spaced(len(looks))]
    return Line(label, [look.time_s / 60 for look in shown], [getattr(look, what) for look in shown])


def _spaced(count: int) -> list[int]:
    """Places from the first to the last, not more than a curve shows."""
    points = min(count, POINTS)
    return [i * (count - 1) // max(1, points - 1) for i in range(points)]


EXPERIMENT = Experiment(
    name="policies",
    summary="what each policy fetches first, and what mining finds",
    claim_id="Y2, Y3, T2–T5",
    claim="An order finds the pages about a topic, or the important ones, early; guessing finds what nobody links to.",
    bars=(
        Bar("topic", "on-topic pages beside breadth-first", ">=", 2.5),
        Bar("rank", "rank mass beside the best possible", ">=", 85.0),
        Bar("mining finds", "unlinked pages found", ">=", 80.0),
        Bar("mining is cheap", "requests for each of them", "<=", 1.3),
        Bar("polite under every policy", "crawls that broke a rule", "<=", 0),
    ),
    papers=(
        PaperFigure(
            "Y2",
            "relevance is judged before the download: on-topic pages beside breadth-first",
            "",
            "on-topic pages beside breadth-first",
        ),
        PaperFigure("T3", "mining finds pages that nobody links to", "", "unlinked pages found"),
        PaperFigure("T3", "requests for each page that mining finds", "", "requests for each of them"),
    ),
    run=measure,
)
