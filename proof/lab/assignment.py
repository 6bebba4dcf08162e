"""Who gets which host: the paper's letter sum, Nutch's three partitions and ours.

Crawled: the simulated web by five crawlers, as in the paper, with and without a sixth that joins half-way; who fetched
what is read from the web's logs (`lab.assigned_crawl`). Counted: how evenly the functions spread a million host names
over 2 to 64 crawlers, and what moves when one joins. Neither is timed: the same seed gives the same numbers.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from lycosa.cluster.assignment import Member, build_table, letter_sum
from lycosa.simweb import SimSettings, SimWeb
from lycosa.web import bucket_of, domain_of
from proof import Axis, Bar, Column, ColumnChart, Experiment, Line, LineChart, PaperFigure, Run
from proof.ground.assigned_crawl import OURS, AssignedCrawl, AssignmentWay, Key, crawl_by
from proof.ground.commands import scratch
from proof.ground.host_names import HostArray, Hosts, Integers, make_hosts

CRAWLERS = 5  # the paper's
COUNTED = (2, CRAWLERS, 8, 16, 32, 64)
HOSTS, QUICK_HOSTS = 1_000_000, 30_000
WEB, QUICK_WEB = (150, 3_000), (24, 240)  # hosts and pages of the web that is crawled
HOSTS_A_SITE = 3
ROUNDS = 5  # of Nutch, in a crawl
PAPER = "letter-sum"
NUTCH = ("Nutch by host", "Nutch by domain", "Nutch by IP")
FEWER = "pages of hosts of several crawlers, fewer than with Nutch"
WAYS = (PAPER, *NUTCH, OURS)

Owners = Callable[[int], Integers]  # number of crawlers → owner of every host


class Spread(NamedTuple):
    """One function with one number of crawlers."""

    variation: float  # standard deviation over mean of the hosts that the crawlers get
    moved: float  # hosts that have another owner when one more crawler has joined, in percent


def measure(run: Run) -> None:
    hosts = make_hosts(QUICK_HOSTS if run.quick else HOSTS, run.seed)
    count, pages = QUICK_WEB if run.quick else WEB
    web = SimWeb(SimSettings(seed=run.seed, hosts=count, pages=pages, sites=count // HOSTS_A_SITE))
    run.setting("crawlers", CRAWLERS)
    run.setting("hosts of the web", count)
    run.setting("sites of the web", count // HOSTS_A_SITE)
    run.setting("pages of the web", pages)
    run.setting("rounds of Nutch", ROUNDS)
    run.setting("host names counted", len(hosts.names))
    owners = _owners(hosts)
    with run.progress(2 * len(WAYS) + 1 + len(owners) * len(COUNTED), "crawls and counts") as step:
        crawled = {}
        for way in _ways(web):
            for joins in (False, True):
                crawled[way.name, joins] = _crawl(way, web, run.seed, joins=joins)
                step.advance()
        relayed = _crawl(AssignmentWay(OURS), web, run.seed, joins=False, exchange="coordinator")
        step.advance()
        counted = {}
        for name, of in owners.items():
            for crawlers in COUNTED:
                counted[name, crawlers] = _spread(of(crawlers), of(crawlers + 1), crawlers)
                step.advance()
    _report(run, crawled, relayed, counted)


def _ways(web: SimWeb) -> list[AssignmentWay]:
    """The three systems. Nutch hashes the host, its domain or its address as Java does."""
    layout = web.layout

    @cache
    def java(text: str) -> int:
        return int(HostArray([text]).java_hashes()[0])

    @cache
    def address(host: str) -> str:
        return layout.address_of(layout.host_number(host) or 0)

    keys: tuple[Key, ...] = (java, lambda host: java(domain_of(host)), lambda host: java(address(host)))
    nutch = [AssignmentWay(name, key, ROUNDS) for name, key in zip(NUTCH, keys, strict=True)]
    return [AssignmentWay(PAPER, letter_sum), *nutch, AssignmentWay(OURS)]


def _crawl(way: AssignmentWay, web: SimWeb, seed: int, *, joins: bool, **options: Any) -> AssignedCrawl:
    with scratch() as folder:
        return crawl_by(way, web, folder, crawlers=CRAWLERS, joins=joins, seed=seed, **options)


def _owners(hosts: Hosts) -> dict[str, Owners]:
    names, domains = HostArray(hosts.names), HostArray(hosts.domains)
    letters, by_host = names.letter_sums(), names.java_hashes()
    by_domain = domains.java_hashes()[hosts.site]
    bucket = np.fromiter(map(bucket_of, hosts.domains), np.int64, len(hosts.domains))[hosts.site]

    def rendezvous(crawlers: int) -> Integers:
        members = [Member(f"agent-{number}", number) for number in range(crawlers)]
        return np.frombuffer(build_table(1, members).owners, ">u2").astype(np.int64)[bucket]

    return {
        PAPER: lambda crawlers: letters % crawlers,
        NUTCH[0]: lambda crawlers: by_host % crawlers,
        NUTCH[1]: lambda crawlers: by_domain % crawlers,
        NUTCH[2]: lambda crawlers: hosts.addresses % crawlers,
        OURS: rendezvous,
    }


def _spread(owners: Integers, after: Integers, crawlers: int) -> Spread:
    parts = np.bincount(owners, minlength=crawlers)
    return Spread(float(parts.std() / parts.mean()), 100 * float((owners != after).mean()))


def _report(
    run: Run,
    crawled: dict[tuple[str, bool], AssignedCrawl],
    relayed: AssignedCrawl,
    counted: dict[tuple[str, int], Spread],
) -> None:
    run.table(
        [
            "assignment", "a crawler joins", "pages fetched by several %", "pages of hosts of several %",
            "sites of several %", "variation of pages", "pages missed %",
        ],
        [
            (name, "yes" if joins else "no", *(f"{value:.3g}" for value in crawled[name, joins][:5]))
            for name in WAYS for joins in (False, True)
        ],
    )  # fmt: skip
    both, ours = [crawled[OURS, False], crawled[OURS, True]], counted[OURS, CRAWLERS]
    run.figure("pages fetched by several crawlers", max(one.pages_twice for one in both), "%")
    run.figure("sites of several crawlers", both[0].shared_sites, "%")
    run.figure("pages missed", max(one.missed for one in both), "%")
    run.figure("crawls that broke a rule of politeness", sum(not one.is_polite for one in [*both, relayed]))
    for joins, words in ((False, "no join"), (True, "a join")):
        for name in (PAPER, OURS):
            share = crawled[name, joins].pages_of_shared_hosts
            run.figure(f"pages of hosts of several crawlers, {name}, {words}", share, "%")
        least = min(crawled[name, joins].pages_of_shared_hosts for name in NUTCH)
        run.figure(f"pages of hosts of several crawlers, the least of Nutch, {words}", least, "%")
        fewer = least - crawled[OURS, joins].pages_of_shared_hosts
        run.figure(f"{FEWER}, {words}", fewer, "points")
    run.figure("pages fetched by several crawlers, letter-sum, a join", crawled[PAPER, True].pages_twice, "%")
    run.figure("variation by hosts, 5 crawlers", ours.variation)
    run.figure("variation by hosts, letter-sum, 5 crawlers", counted[PAPER, CRAWLERS].variation)
    run.figure("hosts moved beside the least, 5 crawlers", ours.moved / (100 / (CRAWLERS + 1)), "×")
    for mode, one in (("direct", both[0]), ("coordinator", relayed)):
        run.figure(f"{mode}: messages a page", one.messages)
        run.figure(f"{mode}: bytes a page", one.bytes, "bytes")
    run.remark(_verdict(crawled))
    for joins, words in ((False, "Five crawlers"), (True, "Five crawlers, and one that joins")):
        columns = tuple(Column(name, crawled[name, joins].pages_of_shared_hosts) for name in WAYS)
        run.plot(ColumnChart(f"{words}: pages of hosts that several fetched from", Axis("pages", "%"), columns))
    columns = tuple(Column(name, crawled[name, True].pages_twice) for name in WAYS)
    run.plot(ColumnChart("A crawler joins: pages fetched by several", Axis("pages", "%"), columns))
    axis = Axis("crawlers", log=True)
    spread = tuple(Line(name, COUNTED, [counted[name, n].variation for n in COUNTED]) for name in WAYS)
    run.plot(LineChart("Balance: variation over crawlers, by hosts", axis, Axis("coefficient of variation"), spread))
    moved = tuple(Line(name, COUNTED, [counted[name, n].moved for n in COUNTED]) for name in WAYS)
    run.plot(LineChart("Hosts that move when a crawler joins", axis, Axis("hosts", "%"), moved))


def _verdict(crawled: dict[tuple[str, bool], AssignedCrawl]) -> str:
    """What the crawls say of the paper's claim."""
    words = []
    for joins, when in ((False, "Without a join"), (True, "With a join")):
        paper, nutch = crawled[PAPER, joins], [crawled[name, joins] for name in NUTCH]
        twice, site = min(one.pages_twice for one in nutch), min(one.pages_of_shared_hosts for one in nutch)
        words.append(
            f"{when} {paper.pages_twice:.3g} % of the pages are fetched by more than one crawler with letter-sum,"
            f" {twice:.3g} % with Nutch, so by pages the paper's claim {_holds(paper.pages_twice, twice)};"
            f" {paper.pages_of_shared_hosts:.3g} % belong to a host that more than one fetched from, {site:.3g} % with"
            f" the best of Nutch's modes, so by websites it {_holds(paper.pages_of_shared_hosts, site)}."
        )
    return " ".join(words)


def _holds(paper: float, nutch: float) -> str:
    return "holds" if paper < nutch else "does not hold" + (" (they are equal)" if paper == nutch else "")


EXPERIMENT = Experiment(
    name="assignment",
    summary="who gets which host: pages and sites fetched by several crawlers, balance, what a join moves",
    claim_id="H1, H4",
    claim="The parts are disjoint and even, and fewer pages are fetched by more than one crawler than with Nutch's.",
    bars=(
        Bar("a page is fetched once, with and without a join", "pages fetched by several crawlers", "<=", 0),
        Bar("a site has one crawler", "sites of several crawlers", "<=", 0),
        Bar("nothing is missed", "pages missed", "<=", 0),
        Bar("politely", "crawls that broke a rule of politeness", "<=", 0),
        Bar("fewer hosts of several than with Nutch", f"{FEWER}, no join", ">=", 0),
        Bar("so with a join, too", f"{FEWER}, a join", ">=", 0),
        Bar("as even as may be", "variation by hosts, 5 crawlers", "<=", 0.1),
        Bar("little moves", "hosts moved beside the least, 5 crawlers", "<=", 1.3),
    ),
    papers=(
        PaperFigure("H1", "no page is fetched by two crawlers", "0 %", "pages fetched by several crawlers"),
        PaperFigure(
            "H1",
            "the parts are even: standard deviation over mean",
            "near 0",
            "variation by hosts, letter-sum, 5 crawlers",
        ),
        PaperFigure("H1", "the same, by our own assignment", "near 0", "variation by hosts, 5 crawlers"),
        PaperFigure("H4", "pages of hosts that several crawlers asked, fewer than with Nutch", "", f"{FEWER}, no join"),
    ),
    run=measure,
)
