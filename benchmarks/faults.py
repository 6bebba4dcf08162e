"""What a cluster survives: agent, coordinator or node killed, agent frozen, disk lost, in the middle of a crawl.

    python -m benchmarks.faults [--fault agent] [--pages 3000] [--freeze 60]

Two Ray nodes on this machine, one shard each in a folder that both see, and a simulated web on loopback; for a line
that is cut the second node is in a network namespace (root only), with the same web on a loopback of its own. After a
quarter of the crawl the fault happens. Afterwards the server's log is held against the truth and the rules of
politeness; takeover is the longest time after the fault in which no host of the shard that was hit was asked.

For a node that is gone for good (`gone`) each node has its own folders and there is a central store: all processes of
the second node are killed and the folder of its shard is deleted; what is fetched again is held against its last copy.
`cut-store` cuts the line in such a crawl: the shard is restored on this side while the old one is still there.
"""

import argparse
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import msgspec

from benchmarks.ground import say
from benchmarks.measure import Verdict, load, lycosa
from benchmarks.workers import family
from lycosa.cluster.checkpoints import latest
from lycosa.cluster.coordinator import Coordinator
from lycosa.settings import CrawlSettings
from lycosa.simweb import SimSettings, SimWeb
from lycosa.simweb.audit import Rules, audit
from lycosa.simweb.log import read_log
from lycosa.simweb.truth import truth
from lycosa.store.central import open_store

HOSTS, DELAY_S = 40, 0.05
PORTS = range(6390, 6400)  # one for each fault, so that two can be tried at a time
HEAD, JOINED = "127.0.0.1", "127.0.0.2"
NAMESPACE, LINE, HEAD_APART, JOINED_APART = "lycosa-faults", "lycosa0", "10.213.7.1", "10.213.7.2"
FAULTS = ("none", "agent", "coordinator", "frozen", "node", "cut", "gone", "cut-store")
WITH_STORE = ("gone", "cut-store")
LEASE_S = 24.0  # after a cut an agent may go on for so long, at most
COPY_EVERY_S = 5.0
SHARDS = ("s0", "s1")
TAKEOVER_BAR_S = 60.0
LONGEST_S = 900.0
NOT_PAGES = ("robots.txt", ".xml", ".gz")


class Ground(NamedTuple):
    """What runs, and where."""

    folder: Path
    port: int
    dns_port: int
    at: str
    head: "subprocess.Popen[bytes]"
    joined: "subprocess.Popen[bytes]"

    @property
    def logs(self) -> list[Path]:
        return [log for log in (self.folder / "log", self.folder / "log-apart") if log.exists()]

    @property
    def into(self) -> Path:
        return self.folder / "crawl"

    @property
    def store(self) -> Path:
        return self.folder / "store"


@contextlib.contextmanager
def ground(pages: int, port_of_head: int, *, is_apart: bool) -> Iterator[Ground]:
    """A web and a cluster of two nodes; `is_apart`: the second in a network namespace, with the same web of its own."""
    with tempfile.TemporaryDirectory(prefix="lycosa-faults-") as name, contextlib.ExitStack() as undo:
        folder = Path(name)
        web, port, dns_port = _web(folder / "log", pages, 0, 0, [])
        undo.callback(_end, web)
        head_address, address = (HEAD_APART, JOINED_APART) if is_apart else (HEAD, JOINED)
        inside = ["ip", "netns", "exec", NAMESPACE] if is_apart else []
        if is_apart:
            undo.enter_context(_namespace())
            undo.callback(_end, _web(folder / "log-apart", pages, port, dns_port, inside)[0])
        at = f"{head_address}:{port_of_head}"
        head = _node(
            folder, [], "start", "--head", "--address", head_address, "--port", str(port_of_head), "--processors", "1"
        )
        undo.callback(_end, head)
        _wait_for(head_address, port_of_head)
        joined = _node(folder, inside, "start", "--join", at, "--address", address, "--processors", "1")
        undo.callback(_end, joined)
        time.sleep(10.0)
        yield Ground(folder, port, dns_port, at, head, joined)


def _web(
    log: Path, pages: int, port: int, dns_port: int, inside: list[str]
) -> "tuple[subprocess.Popen[str], int, int]":
    words = ["simweb", "--hosts", str(HOSTS), "--pages", str(pages), "--addresses", str(HOSTS), "--port", str(port)]
    command = [*inside, *lycosa(*words, "--dns-port", str(dns_port), "--log", log, "--json")]
    web = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert web.stdout is not None
    ready = msgspec.json.decode(web.stdout.readline())
    return web, ready["port"], ready["dns_port"]


@contextlib.contextmanager
def _namespace() -> Iterator[None]:
    """A network namespace with one line to it; needs root."""
    lines = [
        f"netns add {NAMESPACE}",
        f"link add {LINE} type veth peer name {LINE}-in netns {NAMESPACE}",
        f"addr add {HEAD_APART}/30 dev {LINE}",
        f"link set {LINE} up",
        f"-n {NAMESPACE} addr add {JOINED_APART}/30 dev {LINE}-in",
        f"-n {NAMESPACE} link set {LINE}-in up",
        f"-n {NAMESPACE} link set lo up",
    ]
    try:
        for line in lines:
            subprocess.run(["ip", *line.split()], check=True)
        yield
    finally:
        subprocess.run(["ip", "netns", "del", NAMESPACE], check=False)


def _node(folder: Path, inside: list[str], *words: str) -> "subprocess.Popen[bytes]":
    command = lycosa("cluster", "--token-file", folder / "token", *words)
    return subprocess.Popen([*inside, *command], stderr=subprocess.DEVNULL)


def _wait_for(address: str, port: int) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError):
            socket.create_connection((address, port), timeout=1).close()
            time.sleep(3.0)
            return
        time.sleep(0.2)


def _end(process: "subprocess.Popen[bytes] | subprocess.Popen[str]") -> None:
    process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=20)
        return
    process.kill()


def crawl(on: Ground, fault: str) -> "subprocess.Popen[bytes]":
    seed = f"http://h0.sim:{on.port}/"
    words = ["crawl", seed, "--into", str(on.into), "--scope", "any", "--delay", str(DELAY_S)]
    if fault in WITH_STORE:
        words += ["--store", str(on.store), "--checkpoint", f"{COPY_EVERY_S:g}s"]
    else:
        words = ["--shared", *words]
    words += ["--dns", f"127.0.0.1:{on.dns_port}", "--allow-private", "127.0.0.0/8", "--quiet", "--workers", "2"]
    command = lycosa("cluster", "--token-file", on.folder / "token", "--at", on.at, *words)
    return subprocess.Popen([*command], stdout=subprocess.DEVNULL)


def holder(on: Ground, shard: str) -> int:
    return int((on.into / "shards" / shard / "lycosa.lock").read_text())


def logged(on: Ground) -> int:
    return sum(log.read_bytes().count(b"\n") for log in on.logs)


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
    if fault in ("cut", "cut-store"):
        shard = _shards_of(on)[0]
        subprocess.run(["ip", "link", "set", LINE, "down"], check=True)
        time.sleep(freeze_s)
        subprocess.run(["ip", "link", "set", LINE, "up"], check=True)
        return shard
    if fault == "coordinator":
        (pid,) = [p for p in family(on.head.pid) if "CoordinatorProcess" in _title(p)]
        os.kill(pid, signal.SIGKILL)
        return ""
    shard = _shards_of(on)[0]
    for pid in family(on.joined.pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    if fault == "gone":
        shutil.rmtree(on.into / "shards" / shard)
    return shard


def _shards_of(on: Ground) -> list[str]:
    """The shards on the second node."""
    mine = family(on.joined.pid)
    return [shard for shard in SHARDS if holder(on, shard) in mine]


def _last_copy(on: Ground, shard: str) -> float:
    """When the copy was made from which the shard will be restored, by the clock of the web's log."""
    copy = latest(open_store(str(on.store)), shard)
    return time.monotonic() - (time.time() - copy.at_s) if copy else float("-inf")


def _title(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    return ""


def judge(fault: str, on: Ground, shard: str, at: float, safe: float, verdict: Verdict) -> None:
    web = SimWeb(SimSettings(hosts=HOSTS, pages=web_pages(on), addresses=HOSTS, port=on.port))
    entries = [entry for log in on.logs for entry in read_log(log)[1]]
    fetched = Counter(e.host + e.path for e in entries if e.status == 200 and not e.path.endswith(NOT_PAGES))
    wanted = {url.partition("//")[2].replace(f":{on.port}", "", 1) for url in _truth(web, on)}
    verdict.judge(f"{fault}: {len(fetched):,} pages, the truth is {len(wanted):,}", set(fetched) == wanted)
    broken = audit(web.settings, entries, Rules(delay_s=DELAY_S)).broken()
    verdict.judge(f"{fault}: audit {'clean' if not broken else broken[:3]}", not broken)
    again = sum(count - 1 for count in fetched.values())
    if fault == "none":
        verdict.judge(f"none: {again} pages fetched by two agents, or twice", not again)
        return
    owners = Coordinator(on.into, CrawlSettings()).table
    has_store = fault in WITH_STORE
    hit = [e for e in entries if not has_store or owners.owner(e.host) == shard]
    until = at + (LEASE_S if fault == "cut-store" else 0.5)
    late = sum(e.status == 200 and safe - 1.0 <= e.end <= until for e in hit)
    since = f"{until - safe:.1f} s since its last copy and the second before" if has_store else "the second before"
    spare = 0 if has_store else 5
    verdict.judge(f"{fault}: {again} fetched again, {late} ended in {since}", again <= late + spare)
    if shard:
        asked = sorted([at, *(e.start for e in entries if e.start > at and owners.owner(e.host) == shard)])
        took = max((after - before for before, after in pairwise(asked)), default=float("inf"))
        verdict.judge(f"{fault}: taken over after {took:.1f} s (≤ {TAKEOVER_BAR_S:g})", took <= TAKEOVER_BAR_S)


def web_pages(on: Ground) -> int:
    return int(read_log(on.logs[0])[0].pages)


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
        with ground(options.pages, PORTS[FAULTS.index(fault)], is_apart=fault.startswith("cut")) as on:
            say(fault)
            crawler = crawl(on, fault)
            try:
                while logged(on) < options.pages / 4 and crawler.poll() is None:
                    time.sleep(0.05)
                at = time.monotonic()
                safe = min((_last_copy(on, shard) for shard in SHARDS), default=at) if fault in WITH_STORE else at
                shard = harm(fault, on, options.freeze)
                code = crawler.wait(timeout=LONGEST_S)
            finally:
                crawler.kill()
            verdict.judge(f"{fault}: the crawl ended with {code}", code == 0)
            judge(fault, on, shard, at, safe, verdict)
    verdict.exit()


if __name__ == "__main__":
    main()
