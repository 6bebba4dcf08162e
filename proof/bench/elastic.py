"""Shards that join and leave in the middle of a crawl: who pauses, what moves, is all of it there in the end?

    python -m proof.bench.elastic [--pages 6000] [--hosts 400] [--delay 1.0] [--times 1]

Two Ray nodes on this machine and three shards (`proof.bench.fault_ground`). After a third of the crawl a fourth one
joins (`lycosa cluster grow`), after two thirds the second one leaves (`shrink`). From the server's log: the longest
time in which no host was asked that stays with its agent while hosts move, for each agent that is there throughout; the
same while nothing moves, for comparison. Moved are hosts that were asked before and have another owner afterwards; the
least that could move is the new one's even share, or what the leaver had.
"""

import argparse
import time
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from lycosa.cluster.assignment import AssignmentTable
from lycosa.cluster.coordinator import Coordinator
from lycosa.settings import CrawlSettings
from lycosa.simweb.log import AuditRules, LoggedRequest, audit
from proof.bench.fault_ground import NOT_PAGES, Ground, ground
from proof.bench.ground import say
from proof.bench.measure import Verdict, load

SHARDS = 3
DELAY_S = 1.0  # with 0.3 three shards want more than two cores have, and pause whether hosts move or not
PAUSE_BAR_S, MOVED_BAR = 1.0, 1.3
LONGEST_S = 900.0


class Moved(NamedTuple):
    """One change of members: when it was ordered and when the new table was in force, and both tables."""

    what: str
    began: float
    ended: float
    before: AssignmentTable
    after: AssignmentTable


def table_of(on: Ground) -> AssignmentTable:
    return Coordinator(on.into, CrawlSettings()).table


def change(on: Ground, *words: str) -> Moved:
    """Orders it, and waits until the new table is in force."""
    before, began = table_of(on), time.monotonic()
    if on.order(*words):
        raise SystemExit(f"lycosa cluster {' '.join(words)} failed")
    while table_of(on).epoch == before.epoch and time.monotonic() - began < LONGEST_S:
        time.sleep(0.05)
    return Moved(" ".join(words), began, time.monotonic(), before, table_of(on))


def gap_s(starts: Sequence[float], since: float, until: float) -> float:
    """The longest time without a request, from the last one before to the first one after."""
    inside = sorted(at for at in starts if since <= at <= until)
    return max((after - before for before, after in pairwise([since, *inside, until])), default=until - since)


def longest_pause(move: Moved, entries: Sequence[LoggedRequest]) -> tuple[float, float]:
    """Over the agents that stay: the longest pause while hosts moved, and in as long a time before."""
    stay = {member.name for member in move.before.members} & {member.name for member in move.after.members}
    took = max(2.0, move.ended - move.began + 1.0)
    during, calm = [], []
    for name in stay:
        starts = [e.start for e in entries if {move.before.owner(e.host), move.after.owner(e.host)} == {name}]
        during.append(gap_s(starts, move.began, move.began + took))
        calm.append(gap_s(starts, move.began - took, move.began))
    return max(during), max(calm)


def moved_hosts(move: Moved, entries: Sequence[LoggedRequest]) -> tuple[int, float]:
    """Hosts that moved, and the least that could."""
    hosts = {e.host for e in entries if e.start < move.ended}
    going = sum(move.before.owner(host) != move.after.owner(host) for host in hosts)
    old, new = ({member.name for member in each.members} for each in (move.before, move.after))
    if new - old:
        return going, len(hosts) * len(new - old) / len(new)
    return going, float(sum(move.before.owner(host) in old - new for host in hosts))


def run(hosts: int, pages: int, delay_s: float, verdict: Verdict) -> None:
    with ground(hosts, pages) as on:
        crawler = on.crawl(delay_s, workers=SHARDS)
        moves = []
        try:
            total = len(on.truth())
            for share, words in ((1 / 3, ("grow", "1")), (2 / 3, ("shrink", "s1"))):
                while on.logged() < share * total and crawler.poll() is None:
                    time.sleep(0.05)
                moves.append(change(on, *words))
                say(f"{moves[-1].what}: {moves[-1].ended - moves[-1].began:.1f} s")
            code = crawler.wait(timeout=LONGEST_S)
        finally:
            crawler.kill()
        entries, wanted = on.entries(), on.truth()
        findings = audit(on.web().settings, entries, AuditRules(delay_s=delay_s))
    fetched = [e.host + e.path for e in entries if e.status == 200 and not e.path.endswith(NOT_PAGES)]
    verdict.judge(
        f"{len(set(fetched)):,} pages of {len(wanted):,}, ended with {code}", set(fetched) == wanted and not code
    )
    verdict.judge(f"{len(fetched) - len(set(fetched))} fetched twice", len(fetched) == len(set(fetched)))
    verdict.judge(f"audit: {'clean' if findings.is_clean else findings.broken()[:3]}", findings.is_clean)
    for move in moves:
        during_s, calm_s = longest_pause(move, entries)
        paused = (
            f"{move.what}: longest pause of the others {during_s:.2f} s (≤ {PAUSE_BAR_S:g}), before it {calm_s:.2f} s"
        )
        verdict.judge(paused, during_s <= PAUSE_BAR_S)
        going, least = moved_hosts(move, entries)
        went = f"{move.what}: {going} hosts moved, {going / least:.2f} × the least (≤ {MOVED_BAR})"
        verdict.judge(went, going <= MOVED_BAR * least)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hosts", type=int, default=400)
    parser.add_argument("--pages", type=int, default=6000)
    parser.add_argument("--delay", type=float, default=DELAY_S)
    parser.add_argument("--times", type=int, default=1)
    options = parser.parse_args()
    say(load())
    verdict = Verdict()
    for _ in range(options.times):
        run(options.hosts, options.pages, options.delay, verdict)
    verdict.exit()


if __name__ == "__main__":
    main()
