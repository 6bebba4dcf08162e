"""Do agents add up? The same web, 300 ms away, crawled by 1, 2, 4 and 8 agents of 20 transfers each.

What bounds the pace is the distance, not processors, on two cores too: an agent with 20 transfers gets at most 67
answers a second, and eight of them 533. Pages a second are those of the server's log in the second half of the time,
when robots.txt and sitemaps of all hosts are known to one agent, too. Memory is each agent's largest resident set, CPU
that of the agents, exchange is what agents told in their logs.
"""

import contextlib
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

import msgspec

from lycosa.errors import LycosaError
from lycosa.simweb import read_log
from proof import Bar, Experiment, Run
from proof.ground.commands import cpu_s, lycosa, memory_mb, scratch
from proof.ground.servers import simulated_web

AGENTS, QUICK_AGENTS = (1, 2, 4, 8), (1, 2)
SECONDS, QUICK_SECONDS = 40.0, 25.0
HOSTS, PAGES = 400, 60_000
RTT_MS, TRANSFERS = 300, 20
NOT_PAGES = ("robots.txt", ".xml", ".gz")
SHAPE = {"hosts": HOSTS, "pages": PAGES, "addresses": HOSTS, "sizes": "uniform", "rtt": RTT_MS}


class AgentsCrawl(NamedTuple):
    pages_per_s: float
    largest_mb: float
    cpu_us: float  # of the agents, a page
    exchange_bytes: float  # a page
    messages: float  # for 1,000 pages


def crawl(agents: int, seconds: float) -> AgentsCrawl:
    largest = 0.0
    looks: list[tuple[float, float]] = []  # when, CPU seconds of all agents so far
    shape = [word for name, value in SHAPE.items() for word in (f"--{name}", str(value))]
    with scratch() as folder:
        with simulated_web(folder / "log", *shape) as web:
            config = folder / "scale.toml"
            config.write_text(f"transfers = {TRANSFERS}\ntime_s = {seconds}\ndelay_s = 0\n")
            seeds = [web.front_page(host) for host in range(0, HOSTS, 4)]
            words: list[str | Path] = ["--into", folder / "c", "--config", config, "--scope", "any", *web.options()]
            command = lycosa("crawl", *seeds, *words, "--workers", str(agents), "--quiet", "--json")
            crawler = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            while crawler.poll() is None:
                pids = [int(lock.read_text() or 0) for lock in folder.glob("c/shards/*/lycosa.lock")]
                largest = max([largest, *(memory_mb(pid) for pid in pids)])
                with contextlib.suppress(OSError):  # one has just ended
                    looks.append((time.monotonic(), sum(cpu_s(pid) for pid in pids)))
                time.sleep(0.5)
            assert crawler.stdout is not None
            out = crawler.stdout.read()
            if crawler.returncode:
                raise LycosaError(f"the crawl of {agents} agents ended with {crawler.returncode}")
            pages = max(1, msgspec.json.decode(out)["pages"])
        entries = list(read_log(web.log)[1])
        logs = [log.read_text().splitlines() for log in folder.glob("c/shards/*/log.jsonl")]
    ends = [entry.end for entry in entries if entry.status == 200 and not entry.path.endswith(NOT_PAGES)]
    if len(ends) < 2:
        raise LycosaError(f"{agents} agents got {len(ends)} pages in {seconds:g} s: the machine is too busy for this")
    first, last = min(ends), max(ends)
    begin, end = first + (last - first) / 2, first + 0.95 * (last - first)
    inside = [look for look in looks if begin <= look[0] < end]
    (since, cpu_before), (until, cpu_after) = inside[0], inside[-1]
    events = [msgspec.json.decode(line) for lines in logs for line in lines]
    sent, messages = (
        sum(event[what] for event in events if event["event"] == "exchange") for what in ("bytes", "messages")
    )
    return AgentsCrawl(
        pages_per_s=sum(begin <= at < end for at in ends) / (end - begin),
        largest_mb=largest,
        cpu_us=1e6 * (cpu_after - cpu_before) / max(1, sum(since <= at < until for at in ends)),
        exchange_bytes=sent / pages,
        messages=1000 * messages / pages,
    )


def measure(run: Run) -> None:
    counts, seconds = (QUICK_AGENTS, QUICK_SECONDS) if run.quick else (AGENTS, SECONDS)
    run.setting("seconds", seconds)
    with run.progress(len(counts), "crawls") as step:
        found = {}
        for agents in counts:
            found[agents] = crawl(agents, seconds)
            step.advance()
    one = found[counts[0]].pages_per_s / counts[0]
    columns = ["agents", "pages/s", "efficiency %", "largest agent MB", "CPU µs a page", "exchange bytes a page"]
    rows = [
        (agents, *(round(value) for value in (each.pages_per_s, 100 * each.pages_per_s / agents / one, *each[1:])))
        for agents, each in found.items()
    ]
    run.table([*columns, "messages for 1,000 pages"], rows)
    run.figure("efficiency of the most agents", 100 * found[counts[-1]].pages_per_s / counts[-1] / one, "%")
    run.figure("pages/s of the most agents", found[counts[-1]].pages_per_s, "/s")


EXPERIMENT = Experiment(
    name="scale",
    summary="1 to 8 agents and a web that is far away: do they add up",
    run=measure,
    bars=(
        Bar("they add up", "efficiency of the most agents", ">=", 85.0),
        Bar("eight are fast", "pages/s of the most agents", ">=", 400.0),
    ),
)
