"""What the search index adds to a crawl: the real site of `benchmarks.site`, by turns with and without `--index`.

    python -m benchmarks.search_cost [--quick] [--runs 3]

The time is that of the whole command, with the index complete at its end: names and ranks settled, every page found.
The medians of the runs are compared. On a busy machine the clock says little: CPU seconds stand beside it, those of the
follower and its share of both cores included.
"""

import argparse
import json
import tempfile
from pathlib import Path

from benchmarks.measure import Verdict, load, lycosa, median, run, table
from benchmarks.server import Nginx, nginx_of
from benchmarks.site import QUICK, WHOLE, Site, crawl_command

ADDED_BAR = 0.20


def crawl(server: Nginx, site: Site, *words: str) -> tuple[float, float, int, int]:
    """Seconds by the clock and of CPU, pages, and documents in the index at the end."""
    with tempfile.TemporaryDirectory(prefix="lycosa-bench-") as folder:
        into = Path(folder) / "crawl"
        ran = run([*crawl_command(server, site, into), *words])
        pages = json.loads(ran.out)["pages"]
        told = json.loads(run(lycosa("index", into, "--json")).out) if words else {"documents": 0, "pages": 0}
    server.served()
    if told["pages"]:
        raise SystemExit(f"{told['pages']} pages were not in the index when the crawl was over")
    return ran.wall_s, ran.cpu_s, pages, told["documents"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="postgresql-doc-15 instead of openjdk-17-doc")
    parser.add_argument("--runs", type=int, default=3, help="of each kind")
    options = parser.parse_args()
    site = QUICK if options.quick else WHOLE
    plain, indexed = [], []
    with tempfile.TemporaryDirectory(prefix="lycosa-bench-") as folder, nginx_of(site.folder(), Path(folder)) as server:
        for _ in range(options.runs):
            plain.append(crawl(server, site))
            indexed.append(crawl(server, site, "--index"))
    rows = [
        [f"{name}, run {n}", f"{pages:,}", f"{documents:,}", f"{wall_s:.1f}", f"{cpu_s:.1f}"]
        for n in range(options.runs)
        for name, (wall_s, cpu_s, pages, documents) in (("without", plain[n]), ("with index", indexed[n]))
    ]
    print(f"{site.package}; {load()}")
    print(table(["", "pages", "documents", "command s", "CPU s"], rows))
    added = median([each[0] for each in indexed]) / median([each[0] for each in plain]) - 1
    cpu = median([each[1] for each in indexed]) / median([each[1] for each in plain]) - 1
    print(f"CPU seconds {cpu:+.0%}")
    verdict = Verdict()
    verdict.judge(f"the index adds {added:.0%} to the time, at most {ADDED_BAR:.0%}", added <= ADDED_BAR)
    verdict.exit()


if __name__ == "__main__":
    main()
