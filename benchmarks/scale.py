"""Do agents add up? The same web, 200 ms away, crawled by 1, 2, 4 and 8 agents of 24 transfers each.

    python -m benchmarks.scale [--agents 1 2 4 8] [--seconds 30]

What bounds the pace is the distance, not processors: an agent with 24 transfers gets at most 120 answers a second.
Pages a second are those of the server's log between a quarter and three quarters of the time. Memory is each
agent's largest resident set, exchange is what agents told in their logs.
"""

import argparse
import subprocess
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import msgspec

from benchmarks.ground import say
from benchmarks.measure import Verdict, load, lycosa, resident_mb, table

HOSTS, PAGES = 400, 60_000
RTT_MS, TRANSFERS = 200, 24
EFFICIENCY_BAR, RATE_BAR = 0.85, 400.0
NOT_PAGES = ("robots.txt", ".xml", ".gz")


class Ran(NamedTuple):
    pages_per_s: float
    largest_mb: float
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
        config.write_text(f"transfers = {TRANSFERS}\ntime_s = {seconds}\ndelay_s = 0.2\n")
        seeds = [f"http://h{number}.sim:{ready['port']}/" for number in range(0, HOSTS, 4)]
        words = ["crawl", *seeds, "--into", str(folder / "c"), "--scope", "any", "--config", str(config), "--quiet"]
        words += ["--dns", f"127.0.0.1:{ready['dns_port']}", "--allow-private", "127.0.0.0/8", "--json"]
        crawler = subprocess.Popen([*lycosa(*words, "--workers", str(agents))], stdout=subprocess.PIPE, text=True)
        largest = 0.0
        while crawler.poll() is None:
            locks = folder.glob("c/shards/*/lycosa.lock")
            largest = max([largest, *(resident_mb(int(lock.read_text() or 0)) for lock in locks)])
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
    begin, end = first + (last - first) / 4, first + 3 * (last - first) / 4
    rate = sum(begin <= at < end for at in ends) / (end - begin)
    told = [event for event in events if event["event"] == "exchange"]
    sent, messages = (sum(event[what] for event in told) for what in ("bytes", "messages"))
    return Ran(rate, largest, sent / pages, 1000 * messages / pages)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--agents", type=int, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument("--seconds", type=float, default=30.0)
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
            f"{ran.exchange_bytes:.0f}",
            f"{ran.messages:.0f}",
        )
        for agents, ran in found.items()
    ]
    head = ("agents", "pages/s", "efficiency", "largest agent MB", "exchange bytes a page", "messages for 1,000 pages")
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
