"""What shards cost: the same simulated web crawled by one process, by `--workers 1` and by `--workers 2`.

CPU a page is that of the processes that crawl, read from /proc until they end, without their start: what a crawl of one
page takes is taken off. Ray's own processes (its servers, the coordinator, the driver) are counted apart. Every host
has an address of its own, so that no agent waits for another's turn. `--workers 2` is held against what the machine has
left: (cores − the web's − Ray's own CPU) ÷ the plain process's CPU a page.
"""

import subprocess
import time
from statistics import median
from typing import NamedTuple

import msgspec

from lycosa.simweb import read_log
from proof import Bar, Experiment, Run
from proof.experiment import cores
from proof.ground.commands import cpu_s, descendants, lycosa, scratch
from proof.ground.servers import simulated_web

PAGES, QUICK_PAGES = 6_000, 600
HOSTS = 200
LOOK_S = 0.05


class ShardCrawl(NamedTuple):
    """One crawl: pages, seconds from the first request to the last, and CPU of crawlers, of Ray, of the web."""

    pages: int
    seconds: float
    crawl_cpu_s: float
    ray_cpu_s: float
    web_cpu_s: float


def crawl(workers: int, pages: int, limit: int | None = None) -> ShardCrawl:
    shape = ["--hosts", str(HOSTS), "--pages", str(pages), "--sizes", "uniform", "--addresses", str(HOSTS)]
    spent: dict[int, float] = {}
    shards: set[int] = set()
    with scratch() as folder:
        with simulated_web(folder / "log", *shape) as web:
            words = ["--into", str(folder / "c"), "--scope", "any", "--delay", "0", "--quiet", "--json"]
            words += ["--workers", str(workers)] if workers else []
            words += ["--pages", str(limit)] if limit else []
            command = lycosa("crawl", web.front_page(), *words, *web.options())
            process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            while process.poll() is None:
                for pid in descendants(process.pid):
                    try:
                        spent[pid] = cpu_s(pid)
                    except OSError:
                        continue
                shards |= {int(lock.read_text() or 0) for lock in folder.glob("c/shards/*/lycosa.lock")}
                time.sleep(LOOK_S)
            assert process.stdout is not None
            stats = msgspec.json.decode(process.stdout.read())
            web_cpu_s = cpu_s(web.pid)
        entries = list(read_log(web.log)[1])
    seconds = max(entry.end for entry in entries) - min(entry.start for entry in entries)
    crawl_cpu_s = sum(spent.get(pid, 0.0) for pid in (shards if workers else {process.pid}))
    return ShardCrawl(stats["pages"], seconds, crawl_cpu_s, sum(spent.values()) - crawl_cpu_s, web_cpu_s)


def _beyond(whole: float, start: float) -> float:
    return max(0.0, whole - start)


def measure(run: Run) -> None:
    pages = QUICK_PAGES if run.quick else PAGES
    run.setting("pages", pages)
    start = {workers: crawl(workers, pages, limit=1) for workers in (0, 1, 2)}
    runs: dict[int, list[ShardCrawl]] = {0: [], 1: [], 2: []}
    with run.progress(3 * run.runs, "crawls") as step:
        for _ in range(run.runs):
            for workers, found in runs.items():
                found.append(crawl(workers, pages))
                step.advance()

    def a_page(workers: int) -> float:
        return median((one.crawl_cpu_s - start[workers].crawl_cpu_s) / one.pages for one in runs[workers])

    def of_ray(workers: int, one: ShardCrawl) -> float:
        return _beyond(one.ray_cpu_s, start[workers].ray_cpu_s) if workers else 0.0

    def left_s(one: ShardCrawl) -> float:
        """What the cores have left for two workers."""
        return cores() * one.seconds - _beyond(one.web_cpu_s, start[2].web_cpu_s) - of_ray(2, one)

    plain = a_page(0)
    rows = [
        (
            str(workers or "none"),
            found[0].pages,
            round(median(one.pages / one.seconds for one in found)),
            round(1e6 * a_page(workers)),
            round(median(of_ray(workers, one) for one in found), 1),
        )
        for workers, found in runs.items()
    ]
    run.table(("workers", "pages", "pages/s", "CPU µs a page", "Ray's own CPU s"), rows)
    run.figure("--workers 1, CPU a page beside the plain process", a_page(1) / plain, "×")
    share = median(one.pages * plain / left_s(one) for one in runs[2])
    run.figure("--workers 2, of what the cores have left", 100 * share, "%")


EXPERIMENT = Experiment(
    name="workers",
    summary="what shards cost: --workers 1 and 2 beside one process",
    run=measure,
    runs=3,
    bars=(
        Bar("a shard costs little", "--workers 1, CPU a page beside the plain process", "<=", 1.2),
        Bar("two use both cores", "--workers 2, of what the cores have left", ">=", 80.0),
    ),
)
