"""What a cluster survives: agent, coordinator or node killed, agent frozen, in the middle of a crawl; or nothing.

    python -m benchmarks.faults [--fault agent] [--pages 3000] [--freeze 60]

Two Ray nodes on this machine, at 127.0.0.1 and 127.0.0.2, one shard each in a folder that both see; a simulated web on
loopback. After a quarter of the crawl the fault happens. Afterwards the server's log is held against the truth and the
rules of politeness; takeover is the time from the fault to the next request to a host of the shard that was hit.
"""

import argparse
import contextlib
import os
import signal
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from benchmarks.ground import say
from benchmarks.measure import Verdict, load, lycosa
from benchmarks.workers import family
from lycosa.cluster.coordinator import Coordinator
from lycosa.settings import CrawlSettings
from lycosa.simweb import SimSettings, SimWeb
from lycosa.simweb.audit import Rules, audit
from lycosa.simweb.log import read_log
from lycosa.simweb.truth import truth

HOSTS, DELAY_S = 40, 0.05
PORT = 6390
HEAD, JOINED = "127.0.0.1", "127.0.0.2"
FAULTS = ("none", "agent", "coordinator", "frozen", "node")
TAKEOVER_BAR_S = 60.0
LONGEST_S = 900.0
NOT_PAGES = ("robots.txt", ".xml", ".gz")


class Ground(NamedTuple):
    """What runs, and where."""

    folder: Path
    port: int
    dns_port: int
    head: "subprocess.Popen[bytes]"
    joined: "subprocess.Popen[bytes]"

    @property
    def log(self) -> Path:
        return self.folder / "log"

    @property
    def into(self) -> Path:
        return self.folder / "crawl"


@contextlib.contextmanager
def ground(pages: int) -> Iterator[Ground]:
    """A web and a cluster of two nodes."""
    with tempfile.TemporaryDirectory(prefix="lycosa-faults-") as name, contextlib.ExitStack() as undo:
        folder = Path(name)
        words = ["simweb", "--hosts", str(HOSTS), "--pages", str(pages), "--addresses", str(HOSTS), "--port", "0"]
        words += ["--dns-port", "0", "--log", str(folder / "log"), "--json"]
        web = subprocess.Popen([*lycosa(*words)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        undo.callback(_end, web)
        assert web.stdout is not None
        ready = msgspec.json.decode(web.stdout.readline())
        head = _node(folder, "start", "--head", "--address", HEAD, "--port", str(PORT), "--processors", "1")
        undo.callback(_end, head)
        _wait_for_head()
        joined = _node(folder, "start", "--join", f"{HEAD}:{PORT}", "--address", JOINED, "--processors", "1")
        undo.callback(_end, joined)
        time.sleep(8.0)
        yield Ground(folder, ready["port"], ready["dns_port"], head, joined)


def _node(folder: Path, *words: str) -> "subprocess.Popen[bytes]":
    command = lycosa("cluster", "--token-file", folder / "token", *words)
    return subprocess.Popen([*command], stderr=subprocess.DEVNULL)


def _wait_for_head() -> None:
    import socket

    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError):
            socket.create_connection((HEAD, PORT), timeout=1).close()
            time.sleep(3.0)
            return
        time.sleep(0.2)


def _end(process: "subprocess.Popen[bytes] | subprocess.Popen[str]") -> None:
    process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=20)
        return
    process.kill()


def crawl(on: Ground) -> "subprocess.Popen[bytes]":
    seed = f"http://h0.sim:{on.port}/"
    words = ["--shared", "crawl", seed, "--into", str(on.into), "--scope", "any", "--delay", str(DELAY_S)]
    words += ["--dns", f"127.0.0.1:{on.dns_port}", "--allow-private", "127.0.0.0/8", "--quiet", "--workers", "2"]
    command = lycosa("cluster", "--token-file", on.folder / "token", "--at", f"{HEAD}:{PORT}", *words)
    return subprocess.Popen([*command], stdout=subprocess.DEVNULL)


def holder(on: Ground, shard: str) -> int:
    return int((on.into / "shards" / shard / "lycosa.lock").read_text())


def logged(on: Ground) -> int:
    return on.log.read_bytes().count(b"\n") if on.log.exists() else 0


def harm(fault: str, on: Ground, freeze_s: float) -> str:
    """Does it; returns the shard that was hit, none for the coordinator."""
    if fault == "none":
        return ""
    if fault == "agent":
        os.kill(holder(on, "s1"), signal.SIGKILL)
        return "s1"
    if fault == "frozen":
        pid = holder(on, "s1")
        os.kill(pid, signal.SIGSTOP)
        time.sleep(freeze_s)
        with contextlib.suppress(ProcessLookupError):  # it may have been ended meanwhile
            os.kill(pid, signal.SIGCONT)
        return "s1"
    if fault == "coordinator":
        (pid,) = [p for p in family(on.head.pid) if "CoordinatorProcess" in _title(p)]
        os.kill(pid, signal.SIGKILL)
        return ""
    mine = family(on.joined.pid)
    shards = [shard for shard in ("s0", "s1") if holder(on, shard) in mine]
    for pid in mine:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return shards[0] if shards else ""


def _title(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    return ""


def judge(fault: str, on: Ground, shard: str, at: float, verdict: Verdict) -> None:
    web = SimWeb(SimSettings(hosts=HOSTS, pages=web_pages(on), addresses=HOSTS, port=on.port))
    entries = list(read_log(on.log)[1])
    fetched = Counter(e.host + e.path for e in entries if e.status == 200 and not e.path.endswith(NOT_PAGES))
    wanted = {url.partition("//")[2].replace(f":{on.port}", "", 1) for url in _truth(web, on)}
    verdict.judge(f"{fault}: {len(fetched):,} pages, the truth is {len(wanted):,}", set(fetched) == wanted)
    broken = audit(web.settings, entries, Rules(delay_s=DELAY_S)).broken()
    verdict.judge(f"{fault}: audit {'clean' if not broken else broken[:3]}", not broken)
    again = sum(count - 1 for count in fetched.values())
    if fault == "none":
        verdict.judge(f"none: {again} pages fetched by two agents, or twice", not again)
        return
    late = sum(e.status == 200 and at - 1.0 <= e.end <= at + 0.5 for e in entries)
    verdict.judge(f"{fault}: {again} fetched again, {late} ended in the second before", again <= late + 5)
    if shard:
        owners = Coordinator(on.into, CrawlSettings()).table
        after = [e.start for e in entries if e.start > at + 0.5 and owners.owner(e.host) == shard]
        took = min(after, default=float("inf")) - at
        verdict.judge(f"{fault}: taken over after {took:.1f} s (≤ {TAKEOVER_BAR_S:g})", took <= TAKEOVER_BAR_S)


def web_pages(on: Ground) -> int:
    return int(read_log(on.log)[0].pages)


def _truth(web: SimWeb, on: Ground) -> set[str]:
    return set(truth(web, [f"http://h0.sim:{on.port}/"], scope="any", mine="ancestors").pages)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fault", choices=FAULTS, action="append")
    parser.add_argument("--pages", type=int, default=3000)
    parser.add_argument("--freeze", type=float, default=60.0)
    options = parser.parse_args()
    say(load())
    verdict = Verdict()
    for fault in options.fault or FAULTS:
        with ground(options.pages) as on:
            say(fault)
            crawler = crawl(on)
            try:
                while logged(on) < options.pages / 4 and crawler.poll() is None:
                    time.sleep(0.05)
                at = time.monotonic()
                shard = harm(fault, on, options.freeze)
                code = crawler.wait(timeout=LONGEST_S)
            finally:
                crawler.kill()
            verdict.judge(f"{fault}: the crawl ended with {code}", code == 0)
            judge(fault, on, shard, at, verdict)
    verdict.exit()


if __name__ == "__main__":
    main()
