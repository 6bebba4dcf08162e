"""A thousand slow hosts, each asked at its politest, by Lycosa and by crawlers that are used for many hosts.

All get the same seeds, one of each host, the same pause and the same time on a simulated web of their own, and are
then ended. Rates and manners are read from the web's log: the window begins when robots.txt of all hosts has long been
fetched. A host that is asked again the moment it may be gives one page in (pause + response time), and that many hosts
at once are what is possible. The pause counts from the end of a response; a crawler that counts it from the start of
the request asks too early by that measure. The benchmark `wide` has Lycosa alone and stricter.
"""

import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import mean
from typing import NamedTuple

from lycosa.errors import LycosaError
from lycosa.simweb import Audit, AuditRules, LoggedRequest, SimSettings, SimWeb, audit_log, read_log
from proof import Bar, Experiment, Run
from proof.bench.wide import DELAY_S, EVERY_HOST_OPEN, PAGES_A_HOST, RTT_MS
from proof.ground import launch, peers
from proof.ground.commands import CommandUsage, lycosa, run_command, scratch
from proof.ground.servers import ServedWeb, free_port, simulated_web

OURS = "Lycosa"
HOSTS, QUICK_HOSTS = 1_000, 30
SECONDS, QUICK_SECONDS = 30, 15  # of the window
WARM_S = 30  # until it begins: a start, robots.txt of every host, the first pages


class Course(NamedTuple):
    """What a crawler is given: a web, a folder of its own, and the hosts with their addresses."""

    web: ServedWeb
    folder: Path
    addresses: dict[str, str]

    @property
    def seeds(self) -> list[str]:
        return [self.web.front_page(n) for n in range(len(self.addresses))]

    def seed_file(self) -> Path:
        file = self.folder / "seeds"
        file.write_text("".join(f"{url}\n" for url in self.seeds))
        return file

    @property
    def transfers(self) -> int:
        """At a time: every host asked once in two seconds, for less than half a second each, with room."""
        return len(self.addresses) // 4 + 50


class HostsCrawl(NamedTuple):
    """What came of it."""

    window: list[LoggedRequest]
    audit: Audit
    usage: CommandUsage


def lycosa_command(course: Course) -> Sequence[str | Path]:
    into: list[str | Path] = ["-i", course.seed_file(), "--into", course.folder / "crawl"]
    return lycosa("crawl", *into, "--scope", "host", "--delay", str(DELAY_S), *course.web.options(), "--quiet")


def scrapy_command(course: Course) -> Sequence[str | Path]:
    """As its manual advises for broad crawls: breadth first, and the queue that looks at the load of hosts."""
    settings = {
        "CONCURRENT_REQUESTS": course.transfers,
        "CONCURRENT_REQUESTS_PER_DOMAIN": 1,
        "DOWNLOAD_DELAY": DELAY_S,
        "RANDOMIZE_DOWNLOAD_DELAY": False,
        "SCHEDULER_PRIORITY_QUEUE": "scrapy.pqueues.DownloaderAwarePriorityQueue",
        "DEPTH_PRIORITY": 1,
        "SCHEDULER_DISK_QUEUE": "scrapy.squeues.PickleFifoDiskQueue",
        "SCHEDULER_MEMORY_QUEUE": "scrapy.squeues.FifoMemoryQueue",
    }
    names = course.folder / "names.json"
    names.write_text(json.dumps(course.addresses))
    return peers.scrapy_command(" ".join(course.seeds), settings, names)


def heritrix_command(course: Course) -> Sequence[str | Path]:
    first, *more = course.seeds
    job = peers.HeritrixJob(first, course.transfers, delay_s=DELAY_S, any_host=True, more_seeds=tuple(more))
    return peers.heritrix_command(job, course.folder, course.addresses)


def bubing_command(course: Course) -> Sequence[str | Path]:
    job = peers.BubingJob(course.seed_file(), course.transfers, DELAY_S, management_port=free_port())
    return peers.bubing_command(job, course.folder, course.addresses)


class Crawler(NamedTuple):
    """How a crawler is started, and the exit code that it has when it is told to end."""

    command: Callable[[Course], Sequence[str | Path]]
    ended: int


CRAWLERS = {
    OURS: Crawler(lycosa_command, 130),
    "Scrapy": Crawler(scrapy_command, 0),
    "Heritrix": Crawler(heritrix_command, 143),
    "BUbiNG": Crawler(bubing_command, 143),
}


def crawl_hosts(crawler: Crawler, hosts: int, seconds: int) -> HostsCrawl:
    """One crawler on a web of its own; `seconds` of it are looked at."""
    settings = SimSettings(hosts=hosts, addresses=hosts, sizes="uniform", pages=hosts * PAGES_A_HOST)
    layout = SimWeb(settings).layout
    addresses = {layout.host_name(n): layout.address_of(n) for n in range(hosts)}
    shape = ["--hosts", str(hosts), "--addresses", str(hosts), "--sizes", "uniform", "--rtt", str(RTT_MS)]
    shape += ["--pages", str(settings.pages), *EVERY_HOST_OPEN]
    with scratch() as folder, scratch() as beside:
        with simulated_web(beside / "log", *shape) as web:
            command = crawler.command(Course(web, folder, addresses))
            time_s = str(WARM_S + seconds + 1)
            launched = [sys.executable, "-I", "-S", launch.__file__, beside / "usage", time_s, *command]
            begin_s = time.monotonic() + WARM_S  # the clock of the log
            usage = run_command(launched, cwd=folder, may=crawler.ended)
        cpu_s, peak_mb = map(float, (beside / "usage").read_text().split())
        pages = [entry for entry in read_log(web.log)[1] if entry.path != "/robots.txt"]
        window = [entry for entry in pages if begin_s <= entry.end < begin_s + seconds]
        if not window:
            raise LycosaError(f"it fetched nothing in the window, and {len(pages):,} pages in all")
        audit = audit_log(web.log, AuditRules(delay_s=DELAY_S))
    return HostsCrawl(window, audit, usage._replace(cpu_s=cpu_s, peak_mb=peak_mb))


def measure(run: Run) -> None:
    hosts, seconds = (QUICK_HOSTS, QUICK_SECONDS) if run.quick else (HOSTS, SECONDS)
    for name, value in (("hosts", hosts), ("seconds", seconds), ("delay", f"{DELAY_S} s"), ("away", f"{RTT_MS} ms")):
        run.setting(name, value)
    found: dict[str, HostsCrawl] = {}
    chosen = {name: crawler for name, crawler in CRAWLERS.items() if name == OURS or name in run.chosen}
    absent = {name: "--only without it" for name in CRAWLERS if name not in chosen}
    with run.progress(len(chosen), "crawlers") as step:
        for name, crawler in chosen.items():
            try:
                found[name] = crawl_hosts(crawler, hosts, seconds)
            except LycosaError as error:
                if name == OURS:
                    raise
                absent[name] = str(error)
            step.advance()
    columns = ["", "pages/s", "% of what is possible", "hosts asked", "requests too early", "CPU ms/page", "peak MB"]
    run.table(columns, [_row(name, each, hosts, seconds) for name, each in found.items()], title="in the window")
    run.figure("rules broken by Lycosa", len(found[OURS].audit.broken()))
    for name in CRAWLERS:
        if name in found and name != OURS:
            run.figure(_rate(name), len(found[OURS].window) / len(found[name].window), "×")
        elif name != OURS:
            run.absent(name, absent[name])
            run.leave_out(_rate(name), absent[name])


def _rate(name: str) -> str:
    return f"pages/s beside {name}"


def _row(name: str, found: HostsCrawl, hosts: int, seconds: int) -> list[str | int | float]:
    rate = len(found.window) / seconds
    possible = hosts / (DELAY_S + mean(entry.end - entry.start for entry in found.window))
    return [
        name,
        round(rate, 1),
        round(100 * rate / possible, 1),
        len({entry.host for entry in found.window}),
        sum(host.early for host in found.audit.hosts),
        round(1000 * found.usage.cpu_s / found.audit.requests, 2),
        round(found.usage.peak_mb),
    ]


EXPERIMENT = Experiment(
    name="broad",
    summary="1,000 slow hosts at their politest, beside Scrapy, Heritrix and BUbiNG, which was built for many hosts",
    run=measure,
    choices=tuple(CRAWLERS),
    bars=(
        *(Bar(f"as fast as {name}", _rate(name), ">=", 1.0) for name in CRAWLERS if name != OURS),
        Bar("audit clean", "rules broken by Lycosa", "<=", 0),
    ),
)
