"""Shards that join and leave in the middle of a crawl: who pauses, what moves, is all of it there in the end?

Two Ray nodes on this machine and three shards (`ground/ray_nodes.py`). After a third of the crawl a fourth one
joins (`lycosa cluster grow`), after two thirds the second one leaves (`shrink`). From the server's log: the longest
time in which no host was asked that stays with its agent while hosts move, for each agent that is there throughout; the
same while nothing moves, for comparison. Moved are hosts that were asked before and have another owner afterwards; the
least that could move is the new one's even share, or what the leaver had.
"""

import time
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from lycosa.cluster.assignment import AssignmentTable
from lycosa.cluster.coordinator import Coordinator
from lycosa.errors import LycosaError
from lycosa.settings import CrawlSettings
from lycosa.simweb import AuditRules, LoggedRequest, audit
from proof import Bar, Experiment, Run
from proof.ground.ray_nodes import NOT_PAGES, RayNodes, two_nodes

SHARDS = 3
DELAY_S = 1.0  # with 0.3 three shards want more than two cores have, and pause whether hosts move or not
HOSTS, PAGES = 400, 6_000
QUICK_HOSTS, QUICK_PAGES = 60, 600
LONGEST_S = 900.0
GROW, SHRINK = ("grow", "1"), ("shrink", "s1")


class MemberChange(NamedTuple):
    """One change of members: when it was ordered and when the new table was in force, and both tables."""

    what: str
    began: float
    ended: float
    before: AssignmentTable
    after: AssignmentTable


def table_of(on: RayNodes) -> AssignmentTable:
    return Coordinator(on.into, CrawlSettings()).table


def change(on: RayNodes, *words: str) -> MemberChange:
    """Orders it, and waits until the new table is in force."""
    before, began = table_of(on), time.monotonic()
    if on.order(*words):
        raise LycosaError(f"lycosa cluster {' '.join(words)} failed")
    while table_of(on).epoch == before.epoch and time.monotonic() - began < LONGEST_S:
        time.sleep(0.05)
    return MemberChange(" ".join(words), began, time.monotonic(), before, table_of(on))


def gap_s(starts: Sequence[float], since: float, until: float) -> float:
    """The longest time without a request, from the last one before to the first one after."""
    inside = sorted(at for at in starts if since <= at <= until)
    return max((after - before for before, after in pairwise([since, *inside, until])), default=until - since)


def longest_pause(move: MemberChange, entries: Sequence[LoggedRequest]) -> tuple[float, float]:
    """Over the agents that stay: the longest pause while hosts moved, and in as long a time before."""
    stay = {member.name for member in move.before.members} & {member.name for member in move.after.members}
    took = max(2.0, move.ended - move.began + 1.0)
    during, calm = [], []
    for name in stay:
        starts = [e.start for e in entries if {move.before.owner(e.host), move.after.owner(e.host)} == {name}]
        during.append(gap_s(starts, move.began, move.began + took))
        calm.append(gap_s(starts, move.began - took, move.began))
    return max(during), max(calm)


def moved_hosts(move: MemberChange, entries: Sequence[LoggedRequest]) -> tuple[int, float]:
    """Hosts that moved, and the least that could."""
    hosts = {e.host for e in entries if e.start < move.ended}
    going = sum(move.before.owner(host) != move.after.owner(host) for host in hosts)
    old, new = ({member.name for member in each.members} for each in (move.before, move.after))
    if new - old:
        return going, len(hosts) * len(new - old) / len(new)
    return going, float(sum(move.before.owner(host) in old - new for host in hosts))


class ElasticCrawl(NamedTuple):
    """One crawl: pages missing and fetched twice, rules broken, and for each change of members the pause of the others,
    that before it, and how many hosts moved beside the least that could."""

    missing: int
    twice: int
    broken: int
    pauses: dict[str, tuple[float, float]]
    moved: dict[str, float]


def crawl(run: Run, hosts: int, pages: int) -> ElasticCrawl:
    with two_nodes(hosts, pages) as on:
        crawler = on.crawl(DELAY_S, workers=SHARDS)
        moves = []
        try:
            total = len(on.truth())
            for share, words in ((1 / 3, GROW), (2 / 3, SHRINK)):
                while on.logged() < share * total and crawler.poll() is None:
                    time.sleep(0.05)
                moves.append(change(on, *words))
                run.say(f"{moves[-1].what}: {moves[-1].ended - moves[-1].began:.1f} s")
            code = crawler.wait(timeout=LONGEST_S)
        finally:
            crawler.kill()
        entries, wanted = on.entries(), on.truth()
        findings = audit(on.web().settings, entries, AuditRules(delay_s=DELAY_S))
    if code:
        raise LycosaError(f"the crawl ended with {code}")
    fetched = [e.host + e.path for e in entries if e.status == 200 and not e.path.endswith(NOT_PAGES)]
    moved = {move.what: moved_hosts(move, entries) for move in moves}
    return ElasticCrawl(
        missing=len(set(fetched) ^ wanted),
        twice=len(fetched) - len(set(fetched)),
        broken=len(findings.broken()),
        pauses={move.what: longest_pause(move, entries) for move in moves},
        moved={what: going / least for what, (going, least) in moved.items()},
    )


def measure(run: Run) -> None:
    hosts, pages = (QUICK_HOSTS, QUICK_PAGES) if run.quick else (HOSTS, PAGES)
    run.setting("hosts", hosts)
    run.setting("pages", pages)
    crawls = [crawl(run, hosts, pages) for _ in range(run.runs)]
    run.figure("pages missing or strange", max(each.missing for each in crawls))
    run.figure("pages fetched twice", max(each.twice for each in crawls))
    run.figure("rules broken", max(each.broken for each in crawls))
    for words in (GROW, SHRINK):
        what = " ".join(words)
        run.figure(f"{what}: longest pause of the others", max(each.pauses[what][0] for each in crawls), "s")
        run.figure(f"{what}: longest pause before it", max(each.pauses[what][1] for each in crawls), "s")
        run.figure(f"{what}: hosts moved, beside the least", max(each.moved[what] for each in crawls), "×")


EXPERIMENT = Experiment(
    name="elastic",
    summary="shards join and leave in the middle of a crawl: who pauses, what moves",
    run=measure,
    bars=(
        Bar("complete", "pages missing or strange", "<=", 0),
        Bar("once", "pages fetched twice", "<=", 0),
        Bar("audit clean", "rules broken", "<=", 0),
        *(
            Bar("nobody waits", f"{' '.join(words)}: longest pause of the others", "<=", 1.0)
            for words in (GROW, SHRINK)
        ),
        *(
            Bar("little moves", f"{' '.join(words)}: hosts moved, beside the least", "<=", 1.3)
            for words in (GROW, SHRINK)
        ),
    ),
)
