"""What goes first, and what comes of it: the real engine on the in-memory simulated web under every policy.

One web is crawled to its end under each policy, for the curves; what is said of a fifth of the pages is the mean over
several webs. Time is virtual: what politeness and the order of requests cost, not what the machine does.
"""

import math
from collections.abc import Sequence
from statistics import mean
from typing import Literal, NamedTuple

from lycosa.simweb.vocabulary import TOPICS
from proof import Axis, Bar, Column, Columns, Experiment, Line, Lines, Mark, Run
from proof.measured_crawl import Ground, Measured

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


class Size(NamedTuple):
    hosts: int
    pages: int
    webs: int


WHOLE, QUICK = Size(50, 10_000, 5), Size(20, 1_500, 2)


class Crawls(NamedTuple):
    """All that was crawled: each policy on the first web, each way of mining there, and the judged ones on all webs."""

    grounds: list[Ground]
    by_policy: dict[str, Measured]
    by_mining: dict[str, Measured]
    fifths: list[dict[str, Measured]]

    def all(self) -> list[Measured]:
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


def _on_topic(done: Measured, ground: Ground) -> int:
    return done.on_topic[min(ground.fifth, done.pages) - 1]


def _rank_share(done: Measured, ground: Ground) -> float:
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


def _crawled(run: Run, size: Size) -> Crawls:
    with run.progress(size.webs, "webs") as step:
        grounds = []
        for i in range(size.webs):
            grounds.append(Ground(run.seed + i, hosts=size.hosts, pages=size.pages))
            step.advance()
    first, later = grounds[0], grounds[1:]
    pages = (len(POLICIES) + 2) * len(first.known) + len(JUDGED) * sum(ground.fifth for ground in later)
    with run.progress(pages, "pages") as step:

        def crawl(ground: Ground, policy: str, mine: str = "ancestors", pages: int | None = None) -> Measured:
            return ground.crawl(policy, mine=mine, pages=pages, advance=step.advance)

        by_policy = {policy: crawl(first, policy) for policy in POLICIES}
        by_mining = {
            mine: by_policy["breadth"] if mine == "ancestors" else crawl(first, "breadth", mine) for mine in MINING
        }
        fifths = [{policy: by_policy[policy] for policy in JUDGED}]
        fifths += [{policy: crawl(ground, policy, pages=ground.fifth) for policy in JUDGED} for ground in later]
    return Crawls(grounds, by_policy, by_mining, fifths)


def _figures(run: Run, crawls: Crawls) -> None:
    run.figure("on-topic pages beside breadth-first", mean(crawls.topic_gains()), "×")
    run.figure("rank mass beside the best possible", mean(crawls.rank_shares("rank")), "%")
    run.figure("rank mass of breadth-first", mean(crawls.rank_shares("breadth")), "%")
    mined = crawls.by_mining["all"].mined
    run.figure("unlinked pages found", 100 * mined.found / max(1, crawls.grounds[0].unlinked_pages()), "%")
    run.figure("requests for each of them", mined.asked / max(1, mined.found))
    run.figure("crawls that broke a rule", sum(not done.crawled.is_polite for done in crawls.all()))


def _row(policy: str, mine: str, done: Measured, ground: Ground) -> tuple[str | int | float, ...]:
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


def _plot(run: Run, crawls: Crawls) -> None:
    """Curves are cut where they have said what they have to say: in the end every policy has everything."""
    first, ways = crawls.grounds[0], crawls.by_policy
    topic, most = TOPICS[first.topic][0], 2 * first.fifth
    until_s = ways["breadth"].at(int(0.9 * len(first.known))).time_s
    pages, minutes, urls = Axis("pages fetched"), Axis("time", "virtual minutes"), Axis("URLs discovered")
    lines = [_over_pages(policy, done.on_topic[:most]) for policy, done in ways.items()]
    there_are = Mark(first.on_topic_pages(), "all there are")
    run.plot(Lines("topic finds its pages first", pages, Axis(f"pages about {topic}"), tuple(lines), (there_are,)))
    masses = {name: done.mass for name, done in ways.items() if "+" not in name}
    masses["best possible"] = first.known.best_masses().tolist()
    lines = [_over_pages(name, [100 * mass for mass in values[:most]]) for name, values in masses.items()]
    run.plot(Lines("rank comes near the best possible", pages, Axis("share of the PageRank", "%"), tuple(lines)))
    lines = [_over_time(policy, done, "pages", until_s) for policy, done in ways.items()]
    run.plot(Lines("rank and topic wait for the hosts that have the best", minutes, pages, tuple(lines)))
    lines = [_over_time(policy, done, "known", until_s) for policy, done in ways.items()]
    run.plot(Lines("Most is discovered early", minutes, urls, tuple(lines)))
    lines = [_over_time(f"mining {mine}", done, "known") for mine, done in crawls.by_mining.items()]
    run.plot(Lines("Mining finds what nobody links to", minutes, urls, tuple(lines)))
    columns = tuple(
        Column(f"web {ground.known.web.settings.seed}, {TOPICS[ground.topic][0]}", gain)
        for ground, gain in zip(crawls.grounds, crawls.topic_gains(), strict=True)
    )
    value = Axis("on-topic pages at a fifth of all pages, for one of breadth-first", "×")
    run.plot(Columns("topic beside breadth-first", value, columns, (Mark(2.5, "wanted"),)))


def _over_pages(label: str, values: Sequence[float]) -> Line:
    places = _spaced(len(values))
    return Line(label, [place + 1 for place in places], [values[place] for place in places])


def _over_time(label: str, done: Measured, what: Literal["pages", "known"], until_s: float = math.inf) -> Line:
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
    run=measure,
)
