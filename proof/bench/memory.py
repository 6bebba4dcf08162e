"""Memory over a long crawl: 200,000 simulated pages, and the resident set at 20,000 beside that at the end.

    python -m proof.bench.memory [--pages 200000]

Many pages on few hosts without a delay, so that queues grow far beyond what is held in memory. The crawl's resident set
is read once a second, together with the number of requests that the simulated web has served by then.
"""

import argparse
import json
import tempfile
import urllib.request
from pathlib import Path
from typing import NamedTuple

from proof.bench.ground import say
from proof.bench.measure import Verdict, load, lycosa, resident_mb, run, table
from proof.bench.server import Simulated, simulated_web

GROWTH_BAR = 0.15
EARLY_SHARE = 0.1
HOSTS = 20
SPARE = 1.3  # pages there are for each one wanted: robots.txt forbids some
SAMPLE_ROWS = 10


class Sample(NamedTuple):
    requests: int
    resident_mb: float


def served(web: Simulated) -> int:
    with urllib.request.urlopen(f"http://127.0.0.1:{web.port}/.simweb/stats") as answer:
        return int(json.load(answer)["requests"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=200_000)
    options = parser.parse_args()
    pages: int = options.pages
    samples: list[Sample] = []
    shape = ["--hosts", str(HOSTS), "--pages", str(int(pages * SPARE)), "--sizes", "uniform"]
    with tempfile.TemporaryDirectory(prefix="lycosa-bench-") as name, simulated_web(Path(name), *shape) as web:

        def watch(pid: int) -> None:
            samples.append(Sample(served(web), resident_mb(pid)))
            if len(samples) % 30 == 0:
                say(f"{samples[-1].requests:,} requests, {samples[-1].resident_mb:.0f} MB")

        seeds = [f"http://h{n}.sim:{web.port}/" for n in range(HOSTS)]
        manners = ["--delay", "0", "--per-host", "4", "--pages", str(pages)]
        command = lycosa("crawl", *seeds, "--into", Path(name) / "crawl", *manners, *web.options(), "--json", "--quiet")
        ran = run(command, watch=watch)
        done = json.loads(ran.out)
    report([sample for sample in samples if sample.resident_mb], done, pages)


def report(samples: list[Sample], done: dict[str, int], pages: int) -> None:
    early = next((sample for sample in samples if sample.requests >= pages * EARLY_SHARE), samples[-1])
    last = samples[-1]
    shown = [samples[i * (len(samples) - 1) // (SAMPLE_ROWS - 1)] for i in range(SAMPLE_ROWS)]
    rows = [[f"{sample.requests:,}", f"{sample.resident_mb:.0f}"] for sample in shown]
    print(f"{done['pages']:,} pages kept, {done['known']:,} URLs known, {done['queued']:,} queued at the end; {load()}")
    print(table(["requests", "MB resident"], rows))
    growth = last.resident_mb / early.resident_mb - 1
    words = f"{early.resident_mb:.0f} MB after {early.requests:,} requests, {last.resident_mb:.0f} MB at the end"
    verdict = Verdict()
    verdict.judge(f"{done['pages']:,} pages kept, at least {pages:,}", done["pages"] >= pages)
    verdict.judge(f"{words} ({growth:+.0%}), within {GROWTH_BAR:.0%}", abs(growth) <= GROWTH_BAR)
    verdict.exit()


if __name__ == "__main__":
    main()
