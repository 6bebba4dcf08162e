"""Do agents add up? The same web, 300 ms away, crawled by 1, 2, 4 and 8 agents of 20 transfers each.

    python -m proof.bench.scale [--agents 1 2 4 8] [--seconds 40]

What bounds the pace is the distance, not processors, on two cores too: an agent with 20 transfers gets at most 67
answers a second, and eight of them 533. Pages a second are those of the server's log in the second half of the time,
when robots.txt and sitemaps of all hosts are known to one agent, too. Memory is each agent's largest resident set, CPU
that of the agents, exchange is what agents told in their logs.
"""

import argparse
import contextlib
import subprocess
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import msgspec

from proof.bench.ground import say
from proof.bench.measure import Verdict, load, lycosa, resident_mb, table
from proof.bench.workers import cpu_s

HOSTS, PAGES = 400, 60_000
RTT_MS, TRANSFERS = 300, 20
EFFICIENCY_BAR, RATE_BAR = 0.85, 400.0
NOT_PAGES = ("robots.txt", ".xml", ".gz")


class Ran(NamedTuple):
    pages_per_s: float
    largest_mb: float
    cpu_us: float  # of the agents, a page
    exchange_bytes: float  # a page
    messages: float  # for 1,000 pages


def run(agents: int, seconds: float) -> Ran:
    with tempfile.TemporaryDirectory(prefix="lycosa-scale-") as name:
        folder = Path(name)
        words = [
            "simweb",
            "--hosts",
            str(HOSTS),
            "--pages",
            str(PAGES),
            "--addresses",
            str(HOSTS),
            "--sizes",
            "uniform",
        ]
        words += ["--rtt", str(RTT_MS), "--port", "0", "--dns-port", "0", "--log", str(folder / "log"), "--json"]
        web = subprocess.Popen([*lycosa(*words)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert web.stdout is not None
        ready = msgspec.json.decode(web.stdout.readline())
        config = folder / "scale.toml"
        config.write_text(f"transfers = {TRANSFERS}\ntime_s = {seconds}\ndelay_s = 0\n")
        seeds = [f"http://h{number}.sim:{ready['port']}/" for number in range(0, HOSTS, 4)]
        words = ["crawl", *seeds, "--into", str(folder / "c"), "--scope", "any", "--config", str(config), "--quiet"]
        words += ["--dns", f"127.0.0.1:{ready['dns_port']}", "--allow-private", "127.0.0.0/8", "--json"]
        crawler = subprocess.Popen([*lycosa(*words, "--workers", str(agents))], stdout=subprocess.PIPE, text=True)
        largest = 0.0
        looks: list[tuple[float, float]] = []  # when, CPU seconds of all agents so far
        while crawler.poll() is None:
            pids = [int(lock.read_text() or 0) for lock in folder.glob("c/shards/*/lycosa.lock")]
            largest = max([largest, *(resident_mb(pid) for pid in pids)])
            with contextlib.suppress(OSError):  # one has just ended
                looks.append((time.monotonic(), sum(cpu_s(pid) for pid in pids)))
            time.sleep(0.5)
        assert crawler.stdout is not None
        pages = max(1, msgspec.json.decode(crawler.stdout.read())["pages"])
        web.terminate()
        web.wait()
        entries = [msgspec.json.decode(line) for line in (folder / "log").read_text().splitlines()[1:]]
        events = [
            msgspec.json.decode(line)
            for log in folder.glob("c/shards/*/log.jsonl")
            for line in log.read_text().splitlines()
        ]
    ends = [e["end"] for e in entries if e["status"] == 200 and not e["path"].endswith(NOT_PAGES)]
    first, last = min(ends), max(ends)
    begin, end = first + (last - first) / 2, first + 0.95 * (last - first)
    rate = sum(begin <= at < end for at in ends) / (end - begin)
    inside = [look for look in looks if begin <= look[0] < end]
    (since, cpu_before), (until, cpu_after) = inside[0], inside[-1]
    cpu_us = 1e6 * (cpu_after - cpu_before) / max(1, sum(since <= at < until for at in ends))
    told = [event for event in events if event["event"] == "exchange"]
    sent, messages = (sum(event[what] for event in told) for what in ("bytes", "messages"))
    return Ran(rate, largest, cpu_us, sent / pages, 1000 * messages / pages)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--agents", type=int, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument("--seconds", type=float, default=40.0)
    options = parser.parse_args()
    say(load())
    found = {}
    for agents in options.agents:
        say(f"{agents} agents")
        found[agents] = run(agents, options.seconds)
    one = found[options.agents[0]].pages_per_s / options.agents[0]
    rows = [
        (
            str(agents),
            f"{ran.pages_per_s:.0f}",
            f"{100 * ran.pages_per_s / agents / one:.0f} %",
            f"{ran.largest_mb:.0f}",
            f"{ran.cpu_us:.0f}",
            f"{ran.exchange_bytes:.0f}",
            f"{ran.messages:.0f}",
        )
        for agents, ran in found.items()
    ]
    head = (
        "agents",
        "pages/s",
        "efficiency",
        "largest agent MB",
        "CPU µs a page",
        "exchange bytes a page",
        "messages for 1,000 pages",
    )
    print(table(head, rows))
    most = max(found)
    efficiency = found[most].pages_per_s / most / one
    verdict = Verdict()
    verdict.judge(f"{most} agents: efficiency {efficiency:.0%} (≥ {EFFICIENCY_BAR:.0%})", efficiency >= EFFICIENCY_BAR)
    rate = found[most].pages_per_s
    verdict.judge(f"{most} agents: {rate:.0f} pages/s (≥ {RATE_BAR:.0f})", rate >= RATE_BAR)
    verdict.exit()


if __name__ == "__main__":
    main()
