"""What shards cost: the same simulated web crawled by one process, by `--workers 1` and by `--workers 2`.

    python -m proof.bench.workers [--pages 6000] [--runs 3]

CPU a page is that of the processes that crawl, read from /proc until they end, without their start: what a crawl of one
page takes is taken off. Ray's own processes (its servers, the coordinator, the driver) are counted apart. Every host
has an address of its own, so that no agent waits for another's turn. `--workers 2` is held against what the machine has
left: (cores − the web's − Ray's own CPU) ÷ the plain process's CPU a page.
"""

import argparse
import os
import subprocess
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import msgspec

from proof.bench.ground import say
from proof.bench.measure import Verdict, load, lycosa, median, table

ONE_BAR, TWO_BAR = 1.2, 0.8
TICKS = os.sysconf("SC_CLK_TCK")
HOSTS = 200
LOOK_S = 0.05


class Crawled(NamedTuple):
    """One crawl: pages, seconds from the first request to the last, and CPU of crawlers, of Ray, of the web."""

    pages: int
    seconds: float
    crawl_cpu_s: float
    ray_cpu_s: float
    web_cpu_s: float


class Web:
    """The simulated web in a process of its own."""

    def __init__(self, folder: Path, pages: int) -> None:
        self.log = folder / "log"
        words = ["simweb", "--hosts", str(HOSTS), "--pages", str(pages), "--port", "0", "--dns-port", "0", "--json"]
        words += ["--sizes", "uniform", "--addresses", str(HOSTS), "--log", str(self.log)]
        self.process = subprocess.Popen(
            [*lycosa(), *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert self.process.stdout is not None
        ready = msgspec.json.decode(self.process.stdout.readline())
        self.port, self.dns_port = ready["port"], ready["dns_port"]

    def close(self) -> None:
        self.process.terminate()
        self.process.wait()


def cpu_s(pid: int) -> float:
    """User and system time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def family(root: int) -> list[int]:
    """The process and all below it."""
    found, known = [root], {root}
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, ValueError):
                continue
            children.setdefault(parent, []).append(int(entry.name))
    for pid in found:
        new = [child for child in children.get(pid, []) if child not in known]
        known.update(new)
        found += new
    return found


def crawl(workers: int, pages: int, limit: int | None = None) -> Crawled:
    with tempfile.TemporaryDirectory(prefix="lycosa-bench-") as name:
        folder = Path(name)
        web = Web(folder, pages)
        words = ["crawl", f"http://h0.sim:{web.port}/", "--into", str(folder / "c"), "--scope", "any", "--delay", "0"]
        words += ["--dns", f"127.0.0.1:{web.dns_port}", "--allow-private", "127.0.0.0/8", "--quiet", "--json"]
        words += ["--workers", str(workers)] if workers else []
        words += ["--pages", str(limit)] if limit else []
        try:
            process = subprocess.Popen([*lycosa(), *words], stdout=subprocess.PIPE, text=True)
            spent: dict[int, float] = {}
            shards: set[int] = set()
            while process.poll() is None:
                for pid in family(process.pid):
                    try:
                        spent[pid] = cpu_s(pid)
                    except OSError:
                        continue
                shards |= {int(lock.read_text() or 0) for lock in folder.glob("c/shards/*/lycosa.lock")}
                time.sleep(LOOK_S)
            assert process.stdout is not None
            stats = msgspec.json.decode(process.stdout.read())
            web_cpu_s = cpu_s(web.process.pid)
        finally:
            web.close()
        crawlers = shards if workers else {process.pid}
        entries = [msgspec.json.decode(line) for line in web.log.read_text().splitlines()[1:]]
    seconds = max(e["end"] for e in entries) - min(e["start"] for e in entries)
    crawl_cpu_s = sum(spent.get(pid, 0.0) for pid in crawlers)
    return Crawled(stats["pages"], seconds, crawl_cpu_s, sum(spent.values()) - crawl_cpu_s, web_cpu_s)


def _beyond(whole: float, start: float) -> float:
    return max(0.0, whole - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=6000)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    say(load())
    start = {workers: crawl(workers, options.pages, limit=1) for workers in (0, 1, 2)}
    runs: dict[int, list[Crawled]] = {0: [], 1: [], 2: []}
    for _ in range(options.runs):
        for workers, found in runs.items():
            say(f"--workers {workers}")
            found.append(crawl(workers, options.pages))

    def a_page(workers: int) -> float:
        return median([(one.crawl_cpu_s - start[workers].crawl_cpu_s) / one.pages for one in runs[workers]])

    plain = a_page(0)
    rows = []
    for workers, found in runs.items():
        ray = median([_beyond(one.ray_cpu_s, start[workers].ray_cpu_s) for one in found]) if workers else 0.0
        rate = median([one.pages / one.seconds for one in found])
        rows.append(
            (str(workers or "none"), f"{found[0].pages:,}", f"{rate:.0f}", f"{1e6 * a_page(workers):.0f}", f"{ray:.1f}")
        )
    print(table(("workers", "pages", "pages/s", "CPU µs a page", "Ray's own CPU s"), rows))
    cores = len(os.sched_getaffinity(0))
    two = [
        one.pages
        * plain
        / (
            cores * one.seconds
            - _beyond(one.web_cpu_s, start[2].web_cpu_s)
            - _beyond(one.ray_cpu_s, start[2].ray_cpu_s)
        )
        for one in runs[2]
    ]
    verdict = Verdict()
    one = a_page(1) / plain
    verdict.judge(f"--workers 1: {one:.2f} × the plain process's CPU a page (≤ {ONE_BAR})", one <= ONE_BAR)
    share = median(two)
    verdict.judge(f"--workers 2: {100 * share:.0f} % of what the cores have left (≥ {TWO_BAR:.0%})", share >= TWO_BAR)
    verdict.exit()


if __name__ == "__main__":
    main()
