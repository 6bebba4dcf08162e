"""What the search index adds to a crawl: the real site of the benchmark `site`, by turns with and without `--index`.

Two times are compared, run by run: from the first response to the last, which is the time of that benchmark, and that
of the whole command, at whose end the index is complete: names and ranks settled, every page found. The median counts.
On a busy machine the clock says little: CPU seconds stand beside it, those of the follower and its readers included.
"""

import json
from statistics import median
from typing import NamedTuple

from lycosa.errors import LycosaError
from proof import Bar, Experiment, Run
from proof.ground.commands import lycosa, run_command, scratch
from proof.ground.servers import Nginx
from proof.ground.sites import RealSite, SiteCrawl, crawl_command, served_site

CPU = "CPU"


class IndexCost(NamedTuple):
    """Of one crawl; `documents` are in the index at its end."""

    responses_s: float
    command_s: float
    cpu_s: float
    pages: int
    documents: int


def crawl(server: Nginx, site: RealSite, *words: str) -> IndexCost:
    with scratch() as folder:
        into = folder / "crawl"
        usage = run_command([*crawl_command(server, site, into), *words])
        found = SiteCrawl.of(server.served(), usage)
        told = json.loads(run_command(lycosa("index", into, "--json")).out) if words else {"documents": 0, "pages": 0}
    if told["pages"]:
        raise LycosaError(f"{told['pages']} pages were not in the index when the crawl was over")
    pages = json.loads(usage.out)["pages"]
    return IndexCost(found.seconds, usage.wall_s, usage.cpu_s, pages, told["documents"])


def measure(run: Run) -> None:
    plain, indexed = [], []
    with served_site(run) as (site, server), run.progress(2 * run.runs, "crawls") as step:
        for _ in range(run.runs):
            plain.append(crawl(server, site))
            step.advance()
            indexed.append(crawl(server, site, "--index"))
            step.advance()
    rows: list[tuple[str | int | float, ...]] = [
        (f"{name}, run {n + 1}", cost.pages, cost.documents, *(round(each, 1) for each in cost[:3]))
        for n in range(run.runs)
        for name, cost in (("without", plain[n]), ("with index", indexed[n]))
    ]
    run.table(["", "pages", "documents", "first to last s", "command s", "CPU s"], rows)
    for at, what in enumerate(("first response to last", "the whole command, the index complete", CPU)):
        ratio = median(float(found[at]) / bare[at] for found, bare in zip(indexed, plain, strict=True))
        run.figure(f"{what}: with the index beside without", ratio, "×")


EXPERIMENT = Experiment(
    name="search-cost",
    summary="what the search index adds to a crawl of a real site",
    run=measure,
    runs=5,
    bars=(
        Bar("a crawl hardly notices", "first response to last: with the index beside without", "<=", 1.2),
        Bar("half as much again", f"{CPU}: with the index beside without", "<=", 1.5),
    ),
)
