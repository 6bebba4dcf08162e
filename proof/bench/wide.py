"""Wide and slow: 1,000 equal hosts on an address each, 200 ms away, a delay of 2 s. How near to what politeness allows?

    python -m proof.bench.wide [--hosts 1000] [--seconds 60]

A first short crawl fetches every host's robots.txt; the same command again is timed. A host that is asked again the
moment it may be is asked every (delay + response time) seconds, and that many hosts at once give the rate to reach.
Rate and response time are read from the server's log; the audit of the whole log must be clean. The window begins some
turns after the first response: at the start all hosts are asked at once, and a window that began there would count one
request a host more than its length holds.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from lycosa.simweb.log import AuditRules, LoggedRequest, audit_log, read_log
from proof.bench.ground import say
from proof.bench.measure import Ran, Verdict, load, lycosa, run
from proof.bench.server import Simulated, simulated_web

SHARE_BAR = 0.95
DELAY_S, RTT_MS = 2, 200
WARM_S = 12  # robots.txt of every host, and the first pages
SPREAD_S = 10  # from the first response to the window
BEFORE_S = SPREAD_S + 5  # a known host first waits one delay
PAGES_A_HOST = 200  # more than can be asked for in the time
EVERY_HOST_OPEN = ("--robots", "rules=0,sitemap=0,missing=0")


def crawl(web: Simulated, folder: Path, time_s: float) -> Ran:
    """The command, whole; the limit of time counts over both crawls."""
    manners = ["--scope", "host", "--delay", str(DELAY_S), "--time", f"{time_s:.0f}"]
    seeds: list[str | Path] = ["-i", folder / "seeds", "--into", folder / "crawl"]
    return run(lycosa("crawl", *seeds, *manners, *web.options(), "--json", "--quiet"))


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=1_000)
    parser.add_argument("--seconds", type=int, default=60)
    options = parser.parse_args()
    hosts: int = options.hosts
    shape = ["--hosts", str(hosts), "--addresses", str(hosts), "--sizes", "uniform", "--rtt", str(RTT_MS)]
    shape += ["--pages", str(hosts * PAGES_A_HOST), *EVERY_HOST_OPEN]
    with tempfile.TemporaryDirectory(prefix="lycosa-bench-") as name:
        folder = Path(name)
        with simulated_web(folder, *shape) as web:
            (folder / "seeds").write_text("".join(f"http://h{n}.sim:{web.port}/\n" for n in range(hosts)))
            say(f"{hosts:,} hosts, {RTT_MS} ms away; fetching their robots.txt")
            before_s = json.loads(crawl(web, folder, WARM_S).out)["seconds"]
            since_s = time.monotonic()
            say(f"the timed crawl, {options.seconds} s")
            ran = crawl(web, folder, before_s + BEFORE_S + options.seconds)
        entries = window(web.log, since_s, options.seconds)
        audit = audit_log(web.log, AuditRules(delay_s=DELAY_S))
    response_s = sum(entry.end - entry.start for entry in entries) / len(entries)
    rate, possible = len(entries) / options.seconds, hosts / (DELAY_S + response_s)
    print(
        f"{hosts:,} hosts, delay {DELAY_S} s, response time {response_s * 1000:.0f} ms: {possible:.1f} pages/s possible"
    )
    late_s = sorted(_gaps(entries))
    print(
        f"asked {late_s[len(late_s) // 2] - DELAY_S:.3f} s after they might be (median), "
        f"{late_s[len(late_s) * 9 // 10] - DELAY_S:.3f} s (one in ten)"
    )
    print(
        f"{len({entry.host for entry in entries}):,} hosts answered {len(entries):,} requests in {options.seconds} s, "
        f"{rate:.1f} a second; {ran.cpu_s / ran.wall_s:.0%} of a core, {ran.peak_mb:.0f} MB; {load()}"
    )
    for sentence in audit.broken()[:10]:
        print(f"  {sentence}")
    verdict = Verdict()
    verdict.judge(
        f"rate {rate / possible:.1%} of what is possible, at least {SHARE_BAR:.0%}", rate / possible >= SHARE_BAR
    )
    verdict.judge(f"audit of {audit.requests:,} requests clean", audit.is_clean)
    verdict.exit()


if __name__ == "__main__":
    main()
