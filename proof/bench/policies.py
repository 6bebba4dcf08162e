"""What policies cost: the frontier alone, state on disk, and a real site.

`frontier`: admits URLs of many hosts, then gives them out and takes them back as done, a commit every few thousand;
rankings hear of as many links to known URLs as a page of a real site has, and move URLs between bands. URLs given out
and taken back a second of CPU time, with what the rankings' evidence costs in it and without.

`site`: the crawl of the benchmark `site` under every policy, in turns with breadth-first: two policies, breadth-first,
two others. What a policy costs is CPU seconds of the whole command a page, beside the mean of the breadth-first crawls
just before and just after: the machine's own drift is mostly in both. The median of the runs counts.
"""

import random
from collections.abc import Callable
from statistics import median
from typing import NamedTuple

from lycosa.frontier import Lease, Policy, PValue, Rank, Ranking, Relevance, UrlState, parse_policy
from lycosa.store import CollectionStore
from lycosa.web import Topic
from proof import Bar, Experiment, Run
from proof.bench.frontier import A_COMMIT, FrontierFeed, url_of
from proof.ground.commands import own_cpu_s, run_command, scratch
from proof.ground.servers import Nginx
from proof.ground.sites import RealSite, SiteCrawl, crawl_command, served_site

POLICIES = ("breadth", "top-window", "leaf-window", "pvalue", "rank", "topic", "pvalue+leaf-window", "rank+top-window")
MAKERS: dict[str, Callable[[], Ranking]] = {
    "pvalue": PValue,
    "rank": Rank,
    "topic": lambda: Relevance(Topic.of_words("solar power storage")),
}
LINKS = 3  # to known URLs that a page adds to the evidence, after those that stand on every page are put together
URLS, QUICK_URLS = 200_000, 20_000

BREADTH = "breadth"
SITE_POLICIES: dict[str, list[str]] = {
    "top-window": ["--policy", "top-window"],
    "leaf-window": ["--policy", "leaf-window"],
    "pvalue": ["--policy", "pvalue"],
    "rank": ["--policy", "rank"],
    "topic": ["--topic", "concurrency threads locks"],
    "pvalue+leaf-window": ["--policy", "pvalue+leaf-window"],
}
BETWEEN = 2  # policies between two crawls breadth-first


def policy_of(name: str) -> Policy:
    return parse_policy(name, lambda ranking: MAKERS[ranking]())


def measure(run: Run) -> None:
    if "frontier" in run.chosen:
        measure_frontier(run)
    if "site" in run.chosen:
        measure_site(run)
    for bar in BARS:
        if bar.name.split(":")[0] not in run.chosen:
            run.leave_out(bar.figure, "--only")


# the frontier alone


def measure_frontier(run: Run) -> None:
    urls = QUICK_URLS if run.quick else URLS
    rows: list[tuple[str, int, str | int]] = []
    with run.progress(len(POLICIES), "policies") as step:
        for name in POLICIES:
            rate = max(urls_per_s(name, urls, 0) for _ in range(3))
            run.figure(f"{name}, frontier alone", rate, "URLs/s")
            has_ranking = policy_of(name).ranking is not None
            rows.append((name, round(rate), round(urls_per_s(name, urls, LINKS)) if has_ranking else ""))
            step.advance()
    run.table(["policy", "URLs/s of CPU", "with evidence"], rows, title="the frontier alone")


def urls_per_s(name: str, urls: int, links: int) -> float:
    """URLs a second of CPU time."""
    chance = random.Random(1)
    with scratch() as folder, CollectionStore.create(folder / "collection") as collection:
        feed = FrontierFeed(collection, policy_of(name))
        feed.admit(0, urls)
        began, done = own_cpu_s(), 0
        while feed.frontier.counts.queued > 0:
            leases: list[Lease] = []
            while len(leases) < A_COMMIT and (lease := feed.frontier.leasing.next(feed.now, feed.now)):
                leases.append(lease)
            for lease in leases:
                feed.frontier.outcomes.finish(lease, UrlState.DONE)
                feed.frontier.outcomes.release(lease, feed.now, feed.now)
            done += len(leases)
            if links and feed.frontier.policy.ranking:
                known = (url_of(chance.randrange(urls)).href for _ in range(links * len(leases)))
                feed.frontier.add_evidence(dict.fromkeys(known, 1.0), feed.now)
            feed.commit()
        return done / (own_cpu_s() - began)


# a real site


class PolicyCost(NamedTuple):
    """One crawl: its pages, CPU microseconds a page, and how many times that of breadth-first around it."""

    pages: int
    cpu_us: float
    times: float = 1.0


def crawl(server: Nginx, site: RealSite, name: str) -> PolicyCost:
    with scratch() as folder:
        usage = run_command([*crawl_command(server, site, folder / "crawl"), *SITE_POLICIES.get(name, [])])
    found = SiteCrawl.of(server.served(), usage)
    return PolicyCost(len(found.paths), found.cpu_us)


def measure_site(run: Run) -> None:
    names = list(SITE_POLICIES)
    with served_site(run) as (site, server), run.progress(run.runs * len(names), "crawls of policies") as step:
        spent: dict[str, list[PolicyCost]] = {BREADTH: [crawl(server, site, BREADTH)], **{name: [] for name in names}}
        for _ in range(run.runs):
            for at in range(0, len(names), BETWEEN):
                found = {name: crawl(server, site, name) for name in names[at : at + BETWEEN]}
                before, after = spent[BREADTH][-1], crawl(server, site, BREADTH)
                usual = (before.cpu_us + after.cpu_us) / 2
                spent[BREADTH].append(after)
                for name, cost in found.items():
                    spent[name].append(cost._replace(times=cost.cpu_us / usual))
                    step.advance()
    rows: list[tuple[str | int | float, ...]] = []
    for name, costs in spent.items():
        times = [cost.times for cost in costs]
        rows.append(
            (name, costs[0].pages, round(median(c.cpu_us for c in costs)), median(times), min(times), max(times))
        )
        if name != BREADTH:
            run.figure(f"{name}, CPU a page of a real site", median(times), "× breadth")
    run.table(["policy", "pages", "CPU µs/page", "× breadth", "least", "most"], rows, title="a real site")


BARS = (
    *(Bar(f"frontier: {name}", f"{name}, frontier alone", ">=", 15_000) for name in POLICIES),
    *(Bar(f"site: {name}", f"{name}, CPU a page of a real site", "<=", 1.1) for name in SITE_POLICIES),
)
EXPERIMENT = Experiment(
    name="policies",
    summary="what policies cost: the frontier alone, URLs a second, and a real site, CPU a page",
    run=measure,
    runs=3,
    choices=("frontier", "site"),
    bars=BARS,
)
