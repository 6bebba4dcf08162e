"""What a cluster survives, each fault several times in the middle of a crawl: killed, frozen, cut off, out of disk.

Two Ray nodes on this machine, one shard each, in a folder that both see (`ground/ray_nodes.py`). After a quarter of
the crawl the fault happens:

    none          nothing
    agent         a shard's process is killed
    coordinator   the coordinator's process is killed
    frozen        a shard's process is stopped (SIGSTOP) for a while
    node          all processes of the second node are killed
    cut           the line to the second node is cut for a while (root only)
    gone          the same, and the folder of its shard is deleted: it is restored elsewhere from its last copy in a
                  central store, against which what is fetched again is held
    cut_store     the line is cut in a crawl with a central store: the shard is restored on this side while the old one
                  still runs, until its lease is void (root only)
    head          all processes of the first node and the command are killed; a new head elsewhere, the same command
                  again, and then the second node joins the new head
    disk          the disk of one shard is full (a small tmpfs, root only), until there is more of it
    version       the second node has another version; then the right one, and the same command again

Afterwards the server's log is held against the truth and the rules of politeness. Takeover is the longest time after
the fault in which no host of the shard that was hit was asked. Crawls that are done are remembered: the same command
goes on where it was interrupted, by the same code.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import msgspec

from lycosa.cluster.checkpoints import latest_checkpoint
from lycosa.cluster.coordinator import Coordinator
from lycosa.settings import CrawlSettings
from lycosa.simweb import AuditRules, audit
from lycosa.store import open_central_store
from proof import Bar, Experiment, Run
from proof.ground.commands import descendants
from proof.ground.ledger import Ledger
from proof.ground.ray_nodes import LINE, NOT_PAGES, RayNodes, kill_descendants, two_nodes

HOSTS, DELAY_S = 40, 0.05
PAGES, QUICK_PAGES = 3_000, 600
FREEZE_S, QUICK_FREEZE_S = 60.0, 20.0
FAULTS = ("none", "agent", "coordinator", "frozen", "node", "cut", "gone", "cut_store", "head", "disk", "version")
ROOT_ONLY = ("cut", "cut_store", "disk")
SAYS_WHY = ("disk", "version")
WITH_STORE = ("gone", "cut_store")
OWN_FOLDERS = (*WITH_STORE, *SAYS_WHY)  # shards stay on their machine
COPY_EVERY_S = 5.0
LEASE_S = 14.0
TAKEOVER_BAR_S = 60.0
LONGEST_S = 900.0
SMALL_DISK, LARGE_DISK = "2m", "400m"


class FaultedCrawl(msgspec.Struct, frozen=True):
    """One crawl with a fault: how it ended, what is wrong with it, pages fetched again and how many may be."""

    fault: str
    code: int
    missing: int
    strange: int
    broken: int
    again: int
    again_most: int
    takeover_s: float | None
    words: str = ""

    @property
    def is_fine(self) -> bool:
        is_whole = self.code == 0 and not self.missing and not self.strange and not self.broken
        return is_whole and self.again <= self.again_most and (self.takeover_s or 0.0) <= TAKEOVER_BAR_S


class ShardMisplaced(Exception):
    """Ray put no shard on the second node: there is nothing to be tried."""


class FaultTrial:
    """The crawl of one trial; a fault may have to begin it again."""

    def __init__(self, on: RayNodes, fault: str, freeze_s: float) -> None:
        self.on, self.fault, self.freeze_s = on, fault, freeze_s
        self.shard, self.words = "", ""
        self.safe_since: float | None = None  # when what the shard that was hit goes on from was written
        self.safe_until = 0.0  # so long it went on itself; 0: until the fault
        self.at = float("inf")  # when the fault happened
        self.command = self.begin()

    def begin(self) -> "subprocess.Popen[bytes]":
        store = ["--store", str(self.on.store), "--checkpoint", f"{COPY_EVERY_S:g}s"]
        store = store if self.fault in WITH_STORE else []
        return self.on.crawl(DELAY_S, *store, is_shared=self.fault not in OWN_FOLDERS)

    def hear(self, *what: str) -> str:
        """Waits until the crawl says something with one of these words; returns the line."""
        deadline = time.monotonic() + LONGEST_S
        while time.monotonic() < deadline:
            for line in self.on.said.read_text(errors="replace").splitlines():
                if any(word in line for word in what):
                    return line.removeprefix("lycosa: ")
            if self.command.poll() is not None:
                break
            time.sleep(0.1)
        return ""

    def _shard_of_joined(self) -> str:
        found = self.on.shards_of_joined()
        if not found:
            raise ShardMisplaced
        return found[0]

    # the faults

    def none(self) -> None:
        pass

    def agent(self) -> None:
        self.shard = "s1"
        os.kill(self.on.holder("s1"), signal.SIGKILL)
        self.at = time.monotonic()

    def coordinator(self) -> None:
        (pid,) = [p for p in descendants(self.on.head.pid) if "CoordinatorProcess" in _title(p)]
        os.kill(pid, signal.SIGKILL)
        self.at = time.monotonic()

    def frozen(self) -> None:
        self.shard, pid = "s1", self.on.holder("s1")
        os.kill(pid, signal.SIGSTOP)
        self.at = time.monotonic()
        time.sleep(self.freeze_s)
        with contextlib.suppress(ProcessLookupError):  # it may have been ended meanwhile
            os.kill(pid, signal.SIGCONT)

    def node(self) -> None:
        self.shard = self._shard_of_joined()
        kill_descendants(self.on.joined.pid)
        self.at = time.monotonic()

    def gone(self) -> None:
        self.node()
        shutil.rmtree(self.on.into / "shards" / self.shard)
        self.safe_since = self._last_copy()

    def cut_store(self) -> None:
        (self.shard, *_) = self.on.shards_of_joined()
        self.safe_since, self.safe_until = self._last_copy(), time.monotonic() + LEASE_S
        self.cut()

    def _last_copy(self) -> float:
        """When the last copy of the shard was made, by the clock of the web's log."""
        copy = latest_checkpoint(open_central_store(str(self.on.store)), self.shard)
        return time.monotonic() - (time.time() - copy.at_s) if copy else float("-inf")

    def cut(self) -> None:
        self.shard = self._shard_of_joined()
        subprocess.run(["ip", "link", "set", LINE, "down"], check=True)
        self.at = time.monotonic()
        time.sleep(self.freeze_s)
        subprocess.run(["ip", "link", "set", LINE, "up"], check=True)

    def head(self) -> None:
        kill_descendants(self.on.head.pid)
        self.at = time.monotonic()
        self.command.kill()
        self.command.wait()
        self.on.move_head()
        self.command = self.begin()
        self.on.joined.terminate()  # its shard went on meanwhile, until its lease was void
        self.on.joined.wait()
        self.on.start_joined()

    def disk(self) -> None:
        self.words = self.hear("no space left")
        subprocess.run(["mount", "-o", f"remount,size={LARGE_DISK}", str(self.on.into / "shards" / "s1")], check=True)

    def version(self) -> None:
        self.words = self.hear("has Lycosa 0.0.0")
        self.command.wait(timeout=LONGEST_S)
        self.on.joined.terminate()
        self.on.joined.wait()
        self.on.start_joined()
        self.command = self.begin()


def _title(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    return ""


@contextlib.contextmanager
def _small_disk(on: RayNodes):  # type: ignore[no-untyped-def]
    folder = on.into / "shards" / "s1"
    folder.mkdir(parents=True)
    (on.into / "cluster.json").write_text("{}")  # else the folder is not taken for a collection
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SMALL_DISK}", "lycosa-disk", str(folder)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=False)


def _other_version(on: RayNodes) -> None:
    """The second node again, with a Lycosa that thinks that it is another one."""
    on.joined.terminate()
    on.joined.wait()
    (on.folder / "sitecustomize.py").write_text("from lycosa import version\nversion.__version__ = '0.0.0'\n")
    paths = os.pathsep.join([str(on.folder), *filter(None, [os.environ.get("PYTHONPATH", "")])])
    on.start_joined({"PYTHONPATH": paths})


def trial(fault: str, pages: int, freeze_s: float) -> FaultedCrawl:
    with contextlib.ExitStack() as stack:
        on = stack.enter_context(two_nodes(HOSTS, pages, is_apart=fault.startswith("cut")))
        if fault == "disk":
            stack.enter_context(_small_disk(on))
        if fault == "version":
            _other_version(on)
        crawling = FaultTrial(on, fault, freeze_s)
        try:
            while on.logged() < pages / 4 and crawling.command.poll() is None and fault not in SAYS_WHY:
                time.sleep(0.05)
            harm: Callable[[], None] = getattr(crawling, fault)
            harm()
            code = crawling.command.wait(timeout=LONGEST_S)
        finally:
            crawling.command.kill()
        return judged(fault, on, crawling, code)


def judged(fault: str, on: RayNodes, crawling: FaultTrial, code: int) -> FaultedCrawl:
    entries, wanted, at = on.entries(), on.truth(), crawling.at
    fetched = Counter(e.host + e.path for e in entries if e.status == 200 and not e.path.endswith(NOT_PAGES))
    findings = audit(on.web().settings, entries, AuditRules(delay_s=DELAY_S))
    again = fetched.total() - len(fetched)
    owners = Coordinator(on.into, CrawlSettings()).table
    hit = [e for e in entries if not crawling.shard or owners.owner(e.host) == crawling.shard]
    since = (at if crawling.safe_since is None else crawling.safe_since) - 1.0
    until = crawling.safe_until or at + 0.5
    again_most = 0 if fault == "none" else 5 + sum(e.status == 200 and since <= e.end <= until for e in hit)
    if fault in SAYS_WHY:
        again_most = len(wanted)  # each failure may cost the second before it; what counts is in the words
    takeover_s = None
    if crawling.shard:
        asked = sorted([at, *(e.start for e in hit if e.start > at)])
        takeover_s = max((after - before for before, after in pairwise(asked)), default=float("inf"))
    if fault in SAYS_WHY and not crawling.words:
        code = code or -1  # nobody said what the matter was
    return FaultedCrawl(
        fault=fault,
        code=code,
        missing=len(wanted - fetched.keys()),
        strange=len(fetched.keys() - wanted),
        broken=len(findings.broken()),
        again=again,
        again_most=again_most,
        takeover_s=takeover_s,
        words=crawling.words,
    )


def measure(run: Run) -> None:
    pages, freeze_s = (QUICK_PAGES, QUICK_FREEZE_S) if run.quick else (PAGES, FREEZE_S)
    run.setting("pages", pages)
    run.setting("times", run.runs)
    rows: list[tuple[str | int | float, ...]] = []
    ledger = Ledger("faults", FaultedCrawl, pages, freeze_s)
    run.after_publishing(ledger.close)
    if ledger.parts:
        run.say(f"going on after {len(ledger.parts)} crawls")
    with run.progress(len(run.chosen) * run.runs, "crawls") as step:
        step.advance(len(ledger.parts))
        for fault in FAULTS:
            if fault not in run.chosen or (fault in ROOT_ONLY and os.geteuid()):
                run.leave_out(_wrong(fault), "needs root" if fault in run.chosen else "--only")
                continue
            while len(crawls := [each for each in ledger.parts if each.fault == fault]) < run.runs:
                with contextlib.suppress(ShardMisplaced):
                    ledger.add(trial(fault, pages, freeze_s))
                    run.say(str(ledger.parts[-1]))
                    step.advance()
            run.figure(_wrong(fault), sum(not each.is_fine for each in crawls))
            takeovers = [each.takeover_s for each in crawls if each.takeover_s is not None]
            taken_over = round(max(takeovers), 1) if takeovers else ""
            rows.append((fault, len(crawls), max(each.again for each in crawls), taken_over))
            if crawls[0].words:
                run.remark(f"{fault}: it said: {crawls[0].words}")
    run.table(["fault", "crawls", "pages fetched again, at most", "taken over after s, at most"], rows)


def _wrong(fault: str) -> str:
    return f"{fault}: crawls that were not complete and clean"


EXPERIMENT = Experiment(
    name="faults",
    summary="two Ray nodes on this machine: what is killed, frozen or cut off, and what becomes of the crawl",
    run=measure,
    runs=3,
    choices=FAULTS,
    bars=tuple(Bar(fault, _wrong(fault), "<=", 0) for fault in FAULTS),
)
