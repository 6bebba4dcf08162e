"""What each policy costs on a real site: `python -m benchmarks.site_policies [--quick] [--runs 2]`.

The crawl of `benchmarks.site` under every policy, in turns with breadth-first; CPU seconds of the whole command a page,
the median of the runs. A policy may cost a tenth more than breadth-first, not more.
"""

import argparse
import tempfile
from pathlib import Path

from benchmarks.ground import say
from benchmarks.measure import Verdict, load, median, run, table
from benchmarks.server import Nginx, nginx_of
from benchmarks.site import QUICK, WHOLE, Site, crawl_command, crawled

BAR = 1.1
POLICIES: dict[str, list[str]] = {
    "breadth": [],
    "top-window": ["--policy", "top-window"],
    "leaf-window": ["--policy", "leaf-window"],
    "pvalue": ["--policy", "pvalue"],
    "rank": ["--policy", "rank"],
    "topic": ["--topic", "concurrency threads locks"],
    "pvalue+leaf-window": ["--policy", "pvalue+leaf-window"],
}


def cpu_us(server: Nginx, site: Site, words: list[str]) -> tuple[int, float]:
    """Pages, and CPU microseconds a page."""
    with tempfile.TemporaryDirectory(prefix="lycosa-bench-") as folder:
        ran = run([*crawl_command(server, site, Path(folder) / "crawl"), *words])
    found = crawled(server.served(), ran)
    return len(found.paths), found.cpu_us


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="postgresql-doc-15 instead of openjdk-17-doc")
    parser.add_argument("--runs", type=int, default=2)
    options = parser.parse_args()
    site = QUICK if options.quick else WHOLE
    spent: dict[str, list[tuple[int, float]]] = {name: [] for name in POLICIES}
    with tempfile.TemporaryDirectory(prefix="lycosa-bench-") as folder, nginx_of(site.folder(), Path(folder)) as server:
        for n in range(options.runs):
            say(f"every policy, {n + 1} of {options.runs}")
            for name, words in POLICIES.items():
                spent[name].append(cpu_us(server, site, words))
    usual = median([us for _, us in spent["breadth"]])
    rows, verdict = [], Verdict()
    for name, runs in spent.items():
        us = median([us for _, us in runs])
        rows.append([name, f"{runs[0][0]:,}", f"{us:,.0f}", f"{us / usual:.2f}"])
    print(f"{site.package}; {load()}")
    print(table(["", "pages", "CPU µs/page", "× breadth"], rows))
    for name, _, _, times in rows:
        verdict.judge(f"{name} costs {times} × breadth-first, at most {BAR}", float(times) <= BAR)
    verdict.exit()


if __name__ == "__main__":
    main()
