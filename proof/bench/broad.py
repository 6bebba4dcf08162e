"""A thousand slow hosts, each asked at its politest, by Lycosa and by BUbiNG, which was built for many hosts.

Both get the same seeds, one of each host, the same pause and the same time on a simulated web of their own, and are
then ended. Rates and manners are read from the web's log: the window is the last part of the run, when robots.txt of
all hosts has long been fetched. A host that is asked again the moment it may be gives one page in (delay + response
time); that many hosts at once are what is possible. The benchmark `wide` has Lycosa alone and stricter.
"""

import sys
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

OURS, BUBING = "Lycosa", "BUbiNG"
HOSTS, QUICK_HOSTS = 1_000, 100
SECONDS, QUICK_SECONDS = 60, 15  # of the window
WARM_S = 30  # until it begins: a start, robots.txt of every host, the first pages
RATE = "pages/s beside BUbiNG"


class Course(NamedTuple):
    """What a crawler is given: a web, its folder, a file of seeds, and the addresses of the hosts."""

    web: ServedWeb
    folder: Path
    seeds: Path
    addresses: dict[str, str]


class HostsCrawl(NamedTuple):
    """What came of it."""

    window: list[LoggedRequest]
    audit: Audit
    usage: CommandUsage


def lycosa_command(course: Course) -> Sequence[str | Path]:
    manners = ["--scope", "host", "--delay", str(DELAY_S)]
    words: list[str | Path] = [
        "-i",
        course.seeds,
        "--into",
        course.folder / "crawl",
        *manners,
        *course.web.options(),
        "--quiet",
    ]
    return lycosa("crawl", *words)


def bubing_command(course: Course) -> Sequence[str | Path]:
    return peers.bubing_command(course.seeds, course.addresses, course.folder, delay_s=DELAY_S, port=free_port())


class Crawler(NamedTuple):
    """How a crawler is started, and the exit code that it has when it is told to end."""

    command: Callable[[Course], Sequence[str | Path]]
    ended: int


CRAWLERS = {OURS: Crawler(lycosa_command, 130), BUBING: Crawler(bubing_command, 143)}


def crawl_hosts(crawler: Crawler, hosts: int, seconds: int) -> HostsCrawl:
    """One crawler on a web of its own; `seconds` of the end are looked at."""
    web_settings = SimSettings(hosts=hosts, addresses=hosts, sizes="uniform", pages=hosts * PAGES_A_HOST)
    layout = SimWeb(web_settings).layout
    shape = ["--hosts", str(hosts), "--addresses", str(hosts), "--sizes", "uniform", "--rtt", str(RTT_MS)]
    shape += ["--pages", str(web_settings.pages), *EVERY_HOST_OPEN]
    with scratch() as folder, scratch() as beside:
        with simulated_web(beside / "log", *shape) as web:
            (beside / "seeds").write_text("".join(f"{web.front_page(n)}\n" for n in range(hosts)))
            addresses = {layout.host_name(n): layout.address_of(n) for n in range(hosts)}
            words = crawler.command(Course(web, folder, beside / "seeds", addresses))
            launched = [sys.executable, "-I", "-S", launch.__file__, beside / "usage", str(WARM_S + seconds), *words]
            usage = run_command(launched, cwd=folder, may=crawler.ended)
            cpu_s, peak_mb = map(float, (beside / "usage").read_text().split())
        pages = [entry for entry in read_log(web.log)[1] if entry.path != "/robots.txt"]
        if not pages:
            raise LycosaError("it fetched nothing")
        end = max(entry.end for entry in pages)
        window = [entry for entry in pages if end - seconds <= entry.end]
        found = audit_log(web.log, AuditRules(delay_s=DELAY_S))
        return HostsCrawl(window, found, usage._replace(cpu_s=cpu_s, peak_mb=peak_mb))


def measure(run: Run) -> None:
    hosts, seconds = (QUICK_HOSTS, QUICK_SECONDS) if run.quick else (HOSTS, SECONDS)
    for name, value in (("hosts", hosts), ("seconds", seconds), ("delay", f"{DELAY_S} s"), ("away", f"{RTT_MS} ms")):
        run.setting(name, value)
    rows, rates = [], {}
    with run.progress(len(CRAWLERS), "crawlers") as step:
        for name, crawler in CRAWLERS.items():
            try:
                found = crawl_hosts(crawler, hosts, seconds)
                rates[name] = len(found.window) / seconds
                rows.append(_row(name, found, hosts, seconds))
                if name == OURS:
                    run.figure("rules broken by Lycosa", len(found.audit.broken()))
            except LycosaError as error:
                if name == OURS:
                    raise
                run.remark(f"{name} left out: {error}")
                run.leave_out(RATE, str(error))
            step.advance()
    columns = ["", "pages/s", "% of what is possible", "hosts asked", "CPU ms/page", "peak MB", "rules broken"]
    run.table(columns, rows, title=f"the last {seconds} seconds")
    if BUBING in rates:
        run.figure(RATE, rates[OURS] / rates[BUBING], "×")


def _row(name: str, found: HostsCrawl, hosts: int, seconds: int) -> list[str | int | float]:
    rate = len(found.window) / seconds
    possible = hosts / (DELAY_S + mean(entry.end - entry.start for entry in found.window))
    return [
        name,
        round(rate, 1),
        round(100 * rate / possible, 1),
        len({entry.host for entry in found.window}),
        round(1000 * found.usage.cpu_s / found.audit.requests, 2),
        round(found.usage.peak_mb),
        len(found.audit.broken()),
    ]


EXPERIMENT = Experiment(
    name="broad",
    summary="1,000 slow hosts at their politest, Lycosa beside BUbiNG, which was built for many hosts",
    run=measure,
    bars=(
        Bar("as fast as BUbiNG", RATE, ">=", 1.0),
        Bar("audit clean", "rules broken by Lycosa", "<=", 0),
    ),
)
