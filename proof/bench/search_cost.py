"""What the search index adds to a crawl: the real site of `proof.bench.site`, by turns with and without `--index`.

    python -m proof.bench.search_cost [--quick] [--runs 5]

Two times are compared, run by run: from the first response to the last, which is the time of that benchmark, and that
of the whole command, at whose end the index is complete: names and ranks settled, every page found. The median counts.
On a busy machine the clock says little: CPU seconds stand beside it, those of the follower and its readers included.
"""

import argparse
import json
import tempfile
from pathlib import Path
from typing import NamedTuple

from proof.bench.measure import Verdict, load, lycosa, median, run, table
from proof.bench.server import Nginx, nginx_of
from proof.bench.site import QUICK, WHOLE, Site, crawl_command

ADDED_BAR = 0.20


class Cost(NamedTuple):
    """Of one crawl; `documents` are in the index at its end."""

    responses_s: float
    command_s: float
    cpu_s: float
    pages: int
    documents: int


def crawl(server: Nginx, site: Site, *words: str) -> Cost:
    with tempfile.TemporaryDirectory(prefix="lycosa-bench-") as folder:
        into = Path(folder) / "crawl"
        ran = run([*crawl_command(server, site, into), *words])
        pages = json.loads(ran.out)["pages"]
        ends = [each.ended_s for each in server.served()]
        told = json.loads(run(lycosa("index", into, "--json")).out) if words else {"documents": 0, "pages": 0}
    if told["pages"]:
        raise SystemExit(f"{told['pages']} pages were not in the index when the crawl was over")
    return Cost(max(ends) - min(ends), ran.wall_s, ran.cpu_s, pages, told["documents"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="postgresql-doc-15 instead of openjdk-17-doc")
    parser.add_argument("--runs", type=int, default=5, help="of each kind")
    options = parser.parse_args()
    site = QUICK if options.quick else WHOLE
    plain, indexed = [], []
    with tempfile.TemporaryDirectory(prefix="lycosa-bench-") as folder, nginx_of(site.folder(), Path(folder)) as server:
        for _ in range(options.runs):
            plain.append(crawl(server, site))
            indexed.append(crawl(server, site, "--index"))
    rows = [
        [f"{name}, run {n}", f"{cost.pages:,}", f"{cost.documents:,}", *(f"{each:.1f}" for each in cost[:3])]
        for n in range(options.runs)
        for name, cost in (("without", plain[n]), ("with index", indexed[n]))
    ]
    print(f"{site.package}; {load()}")
    print(table(["", "pages", "documents", "first to last s", "command s", "CPU s"], rows))
    responses, command, cpu = (
        median([found[at] / bare[at] for found, bare in zip(indexed, plain, strict=True)]) - 1 for at in range(3)
    )
    print(f"the whole command, the index complete: {command:+.0%}; CPU seconds {cpu:+.0%}")
    verdict = Verdict()
    verdict.judge(f"the index adds {responses:.0%} to the time, at most {ADDED_BAR:.0%}", responses <= ADDED_BAR)
    verdict.exit()


if __name__ == "__main__":
    main()
