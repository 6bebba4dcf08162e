"""What each policy costs on a real site: `python -m proof.bench.site_policies [--quick] [--runs 3] [--policy topic]`.

The crawl of `site` under every policy, in turns with breadth-first: two policies, breadth-first, two others.
What a policy costs is CPU seconds of the whole command a page, beside the mean of the breadth-first crawls just before
and just after: the machine's own drift is mostly in both. The median of the runs counts, the least and the most are
shown. A policy may cost a tenth more than breadth-first, not more. `--policy`, once or more, takes only those.
"""

import argparse
import tempfile
from pathlib import Path
from typing import NamedTuple

from proof.bench.ground import say
from proof.bench.measure import Verdict, load, median, run, table
from proof.bench.server import Nginx, nginx_of
from proof.bench.site import QUICK, WHOLE, Site, crawl_command, crawled

BAR = 1.1
BREADTH = "breadth"
POLICIES: dict[str, list[str]] = {
    "top-window": ["--policy", "top-window"],
    "leaf-window": ["--policy", "leaf-window"],
    "pvalue": ["--policy", "pvalue"],
    "rank": ["--policy", "rank"],
    "topic": ["--topic", "concurrency threads locks"],
    "pvalue+leaf-window": ["--policy", "pvalue+leaf-window"],
}
BETWEEN = 2  # policies between two crawls breadth-first


class Cost(NamedTuple):
    """One crawl: its pages, CPU microseconds a page, and how many times that of breadth-first around it."""

    pages: int
    cpu_us: float
    times: float = 1.0


def crawl(server: Nginx, site: Site, name: str) -> Cost:
    with tempfile.TemporaryDirectory(prefix="lycosa-bench-") as folder:
        ran = run([*crawl_command(server, site, Path(folder) / "crawl"), *POLICIES.get(name, [])])
    found = crawled(server.served(), ran)
    return Cost(len(found.paths), found.cpu_us)


def in_turns(server: Nginx, site: Site, names: list[str], runs: int) -> dict[str, list[Cost]]:
    """The costs of breadth-first and of every policy."""
    say("breadth-first")
    spent: dict[str, list[Cost]] = {BREADTH: [crawl(server, site, BREADTH)], **{name: [] for name in names}}
    for n in range(runs):
        for at in range(0, len(names), BETWEEN):
            some = names[at : at + BETWEEN]
            say(f"{', '.join(some)} and breadth-first, {n + 1} of {runs}")
            found = {name: crawl(server, site, name) for name in some}
            before, after = spent[BREADTH][-1], crawl(server, site, BREADTH)
            usual = (before.cpu_us + after.cpu_us) / 2
            spent[BREADTH].append(after)
            for name, cost in found.items():
                spent[name].append(cost._replace(times=cost.cpu_us / usual))
    return spent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="postgresql-doc-15 instead of openjdk-17-doc")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--policy", action="append", choices=POLICIES, help="only this one, and others so named")
    options = parser.parse_args()
    site = QUICK if options.quick else WHOLE
    with tempfile.TemporaryDirectory(prefix="lycosa-bench-") as folder, nginx_of(site.folder(), Path(folder)) as server:
        spent = in_turns(server, site, options.policy or list(POLICIES), options.runs)
    rows, verdict = [], Verdict()
    for name, costs in spent.items():
        times = [cost.times for cost in costs]
        spread = "" if name == BREADTH else f"{min(times):.2f} to {max(times):.2f}"
        us = [cost.cpu_us for cost in costs]
        rows.append([name, f"{costs[0].pages:,}", f"{median(us):,.0f}", f"{median(times):.3f}", spread])
    print(f"{site.package}; {load()}")
    print(table(["", "pages", "CPU µs/page", "× breadth", "least and most"], rows))
    for name, *_, times_breadth, _ in rows[1:]:
        verdict.judge(f"{name} costs {times_breadth} × breadth-first, at most {BAR}", float(times_breadth) <= BAR)
    verdict.exit()


if __name__ == "__main__":
    main()
