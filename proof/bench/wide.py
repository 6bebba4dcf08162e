"""Wide and slow: 1,000 equal hosts on an address each, 200 ms away, a delay of 2 s. How near to what politeness allows?

A first short crawl fetches every host's robots.txt; the same command again is timed. A host that is asked again the
moment it may be is asked every (delay + response time) seconds, and that many hosts at once give the rate to reach.
Rate and response time are read from the server's log; the audit of the whole log must be clean. The window begins some
turns after the first response: at the start all hosts are asked at once, and a window that began there would count one
request a host more than its length holds.
"""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import mean, median, quantiles

from lycosa.simweb import AuditRules, LoggedRequest, audit_log, read_log
from proof import Bar, Experiment, Run
from proof.ground.commands import CommandUsage, lycosa, run_command, scratch
from proof.ground.servers import ServedWeb, simulated_web

HOSTS, QUICK_HOSTS = 1_000, 100
SECONDS, QUICK_SECONDS = 60, 10
DELAY_S, RTT_MS = 2, 200
WARM_S = 12  # robots.txt of every host, and the first pages
SPREAD_S = 10  # from the first response to the window
BEFORE_S = SPREAD_S + 5  # a known host first waits one delay
PAGES_A_HOST = 200  # more than can be asked for in the time
EVERY_HOST_OPEN = ("--robots", "rules=0,sitemap=0,missing=0")


def crawl(web: ServedWeb, folder: Path, time_s: float) -> CommandUsage:
    """The command, whole; the limit of time counts over both crawls."""
    manners = ["--scope", "host", "--delay", str(DELAY_S), "--time", f"{time_s:.0f}"]
    seeds: list[str | Path] = ["-i", folder / "seeds", "--into", folder / "crawl"]
    return run_command(lycosa("crawl", *seeds, *manners, *web.options(), "--json", "--quiet"))


def window(log: Path, since_s: float, seconds: float) -> list[LoggedRequest]:
    """The requests that ended in the window; `since_s` is of the monotonic clock, as the log's times are."""
    _, entries = read_log(log)
    timed = [entry for entry in entries if entry.start >= since_s and entry.path != "/robots.txt"]
    begin = min(entry.end for entry in timed) + SPREAD_S
    return [entry for entry in timed if begin <= entry.end < begin + seconds]


def _gaps(entries: list[LoggedRequest]) -> Iterator[float]:
    """From the end of each request to the start of the next to the same host."""
    before: dict[str, float] = {}
    for entry in sorted(entries, key=lambda entry: entry.start):
        if entry.host in before:
            yield entry.start - before[entry.host]
        before[entry.host] = entry.end


def measure(run: Run) -> None:
    hosts, seconds = (QUICK_HOSTS, QUICK_SECONDS) if run.quick else (HOSTS, SECONDS)
    for name, value in (("hosts", hosts), ("seconds", seconds), ("delay", f"{DELAY_S} s"), ("away", f"{RTT_MS} ms")):
        run.setting(name, value)
    shape = ["--hosts", str(hosts), "--addresses", str(hosts), "--sizes", "uniform", "--rtt", str(RTT_MS)]
    shape += ["--pages", str(hosts * PAGES_A_HOST), *EVERY_HOST_OPEN]
    with scratch() as folder:
        with simulated_web(folder / "log", *shape) as web:
            (folder / "seeds").write_text("".join(f"{web.front_page(n)}\n" for n in range(hosts)))
            run.say("a first crawl, for the hosts' robots.txt")
            before_s = json.loads(crawl(web, folder, WARM_S).out)["seconds"]
            since_s = time.monotonic()
            run.say("the timed crawl")
            usage = crawl(web, folder, before_s + BEFORE_S + seconds)
        entries = window(web.log, since_s, seconds)
        audit = audit_log(web.log, AuditRules(delay_s=DELAY_S))
    response_s = mean(entry.end - entry.start for entry in entries)
    rate, possible = len(entries) / seconds, hosts / (DELAY_S + response_s)
    late_s = [gap - DELAY_S for gap in _gaps(entries)]
    run.figure("response time", response_s * 1000, "ms")
    run.figure("possible", possible, "pages/s")
    run.figure("reached", rate, "pages/s")
    run.figure("share of what is possible", 100 * rate / possible, "%")
    run.figure("asked after they might be, median", median(late_s), "s")
    run.figure("asked after they might be, one in ten", quantiles(late_s, n=10)[-1], "s")
    run.figure("hosts that answered", len({entry.host for entry in entries}))
    run.figure("share of a core", 100 * usage.cpu_s / usage.wall_s, "%")
    run.figure("memory", usage.peak_mb, "MB")
    run.figure("requests in the audit", audit.requests)
    run.figure("rules broken", len(audit.broken()))
    for sentence in audit.broken()[:10]:
        run.remark(sentence)


EXPERIMENT = Experiment(
    name="wide",
    summary="1,000 slow hosts at their politest: how near to the rate that politeness allows",
    run=measure,
    bars=(
        Bar("as fast as politeness allows", "share of what is possible", ">=", 95.0),
        Bar("audit clean", "rules broken", "<=", 0),
    ),
)
