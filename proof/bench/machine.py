"""What a crawl does when the machine fails under it: each fault once, then the same command again until it is complete.

    disk-full     a disk of 5 MB, enlarged after the crawl has said that it is full: it goes on by itself
    disk-stays    the same, never enlarged: exit code 4, and the same command goes on when there is room
    write-error   writes into the archive fail with EIO (strace): exit code 4, nothing of it is told as saved
    fsync-error   fsync fails with EIO under `--durability power`: likewise
    read-only     the file system is read-only: exit code 4
    tail-cut      the last bytes of the archive are gone: it says so and fetches those pages again
    log-cut       the last bytes of the state's log are gone: it says so, and the rest is kept
    descriptors   40 file descriptors: it ends in a sentence or crawls on, never in a traceback
    memory        800 MB of address space: likewise
    sigterm       SIGTERM: it commits and ends
    sigstop       stopped for some seconds and continued: it goes on, politely
    server-down   the server is silent for some seconds and comes back: its pages are fetched

Afterwards the pages are held against the truth, the log against the rules of politeness, and the state against itself.
Faults of clusters are `make bench NAME=faults`.
"""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from lycosa.simweb import AuditRules, SimSettings, SimWeb, audit, read_log, truth_of
from proof import Bar, Experiment, Run
from proof.ground.commands import lycosa, scratch
from proof.ground.servers import ServedWeb, free_port, simulated_web
from tests.crawl.consistency import problems

HOSTS, PAGES, QUICK_PAGES = 12, 1_500, 600
DELAY_S = 0.02
LONGEST_S = 240.0
NOT_PAGES = ("robots.txt", ".xml", ".gz")
STORAGE, DONE = 4, 0
STOPPED_S = 4.0
SMALL_DISK, FULL = "5m", "no space left"
NEEDS_ROOT = ("disk-full", "disk-stays", "read-only")
NEEDS_STRACE = ("write-error", "fsync-error")


class FaultEnd(NamedTuple):
    """How the crawl under a fault ended: its code, what it said, whether that is right."""

    code: int
    said: str
    is_right: bool


class MachineTrial:
    """One crawl of a small web, and the fault that it meets."""

    def __init__(self, web: ServedWeb, folder: Path, stack: ExitStack) -> None:
        self.web, self.folder, self.stack = web, folder, stack
        self.into, self.said = folder / "disk" / "crawl", folder / "said"
        self.into.parent.mkdir()

    def start(self, *more: str, before: Sequence[str] = ()) -> "subprocess.Popen[str]":
        manners = ["--scope", "any", "--delay", str(DELAY_S), *more]
        words = lycosa("crawl", self.web.front_page(), "--into", self.into, *manners, *self.web.options())
        with self.said.open("w") as said:
            return subprocess.Popen([*before, *map(str, words)], stdout=subprocess.DEVNULL, stderr=said, text=True)

    def end(self, process: "subprocess.Popen[str]", codes: Sequence[int], *words: str) -> FaultEnd:
        """Right are one of these codes, these words, and no traceback."""
        try:
            process.wait(timeout=LONGEST_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        said = self.said.read_text(errors="replace").replace(str(self.folder), "")
        is_right = process.returncode in codes and all(word in said for word in words) and "Traceback" not in said
        return FaultEnd(process.returncode, " ".join(said.split())[-300:], is_right)

    def run_until(self, requests: int) -> "subprocess.Popen[str]":
        process = self.start()
        self.wait(requests, process)
        return process

    def wait(self, requests: int, process: "subprocess.Popen[str]") -> None:
        deadline = time.monotonic() + LONGEST_S
        while self.web.served() < requests and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.1)

    def small_disk(self, size: str) -> None:
        disk = self.into.parent
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "lycosa-disk", str(disk)], check=True)
        self.stack.callback(subprocess.run, ["umount", "-l", str(disk)], check=False)

    def remount(self, options: str) -> None:
        subprocess.run(["mount", "-o", f"remount,{options}", str(self.into.parent)], check=True)

    # the faults

    def disk_full(self) -> FaultEnd:
        self.small_disk(SMALL_DISK)
        process = self.start()
        deadline = time.monotonic() + LONGEST_S
        while process.poll() is None and FULL not in self.said.read_text() and time.monotonic() < deadline:
            time.sleep(0.1)
        self.remount("size=400m")
        return self.end(process, [DONE], FULL)

    def disk_stays(self) -> FaultEnd:
        self.small_disk(SMALL_DISK)
        end = self.end(self.start(), [STORAGE], FULL)
        self.remount("size=400m")
        return end

    def write_error(self) -> FaultEnd:
        before = (
            "strace",
            "-f",
            "-qq",
            "-o",
            "/dev/null",
            "-e",
            "trace=pwrite64",
            "-e",
            "inject=pwrite64:error=EIO:when=3+",
        )
        return self.end(self.start(before=before), [STORAGE], "input/output error")

    def fsync_error(self) -> FaultEnd:
        calls = "fsync,fdatasync"
        before = (
            "strace",
            "-f",
            "-qq",
            "-o",
            "/dev/null",
            "-e",
            f"trace={calls}",
            "-e",
            f"inject={calls}:error=EIO:when=12+",
        )
        return self.end(self.start("--durability", "power", before=before), [STORAGE], "input/output error")

    def read_only(self) -> FaultEnd:
        self.small_disk("400m")
        process = self.run_until(200)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        self.remount("ro")
        end = self.end(self.start(), [STORAGE], "read-only")
        self.remount("rw")
        return end

    def _cut(self, folder: str, pattern: str) -> None:
        process = self.run_until(PAGES // 3)
        process.kill()
        process.communicate()
        last = max((self.into / folder).glob(pattern), key=lambda path: path.stat().st_size)
        os.truncate(last, max(0, last.stat().st_size - 20_000))

    def tail_cut(self) -> FaultEnd:
        self._cut("warc", "*.warc.gz")
        return self._told(self.end(self.start(), [DONE]), "lost")

    def log_cut(self) -> FaultEnd:
        self._cut("state", "*.log")
        return self.end(self.start(), [DONE])

    def _told(self, end: FaultEnd, word: str) -> FaultEnd:
        log = (self.into / "log.jsonl").read_text(errors="replace")
        return end._replace(is_right=end.is_right and word in log + end.said)

    def descriptors(self) -> FaultEnd:
        return self.end(self.start(before=("prlimit", "--nofile=40:40")), range(5))

    def memory(self) -> FaultEnd:
        return self.end(self.start(before=("prlimit", "--as=800000000")), range(5))

    def sigterm(self) -> FaultEnd:
        process = self.run_until(200)
        process.terminate()
        return self.end(process, [0, 130, 143])

    def sigstop(self) -> FaultEnd:
        process = self.run_until(200)
        process.send_signal(signal.SIGSTOP)
        time.sleep(STOPPED_S)
        process.send_signal(signal.SIGCONT)
        return self.end(process, [DONE])

    def server_down(self) -> FaultEnd:
        process = self.run_until(200)
        os.kill(self.web.pid, signal.SIGSTOP)  # takes connections and answers none of them
        time.sleep(STOPPED_S)
        os.kill(self.web.pid, signal.SIGCONT)
        return self.end(process, [DONE])


FAULTS: dict[str, Callable[[MachineTrial], FaultEnd]] = {
    name.replace("_", "-"): getattr(MachineTrial, name)
    for name in (
        "disk_full", "disk_stays", "write_error", "fsync_error", "read_only", "tail_cut", "log_cut", "descriptors",
        "memory", "sigterm", "sigstop", "server_down",
    )
}  # fmt: skip


def trial(fault: str, pages: int) -> tuple[FaultEnd, list[str]]:
    """The end of the crawl under the fault, and what is wrong with the collection once the same command has ended."""
    with ExitStack() as stack:
        folder = stack.enter_context(scratch())
        shape = ["--hosts", str(HOSTS), "--pages", str(pages)]
        web = stack.enter_context(simulated_web(folder / "log", *shape, port=free_port()))
        trying = MachineTrial(web, folder, stack)
        end = FAULTS[fault](trying)
        again = trying.end(trying.start(), [DONE])
        wrong = [] if again.is_right else [f"afterwards: exit code {again.code}: {again.said}"]
        return end, wrong + wrongs(trying, pages)


def wrongs(trying: MachineTrial, pages: int) -> list[str]:
    web = SimWeb(SimSettings(hosts=HOSTS, pages=pages, port=trying.web.port))
    entries = list(read_log(trying.web.log)[1])
    got = {e.host + e.path for e in entries if e.status == 200 and not e.path.endswith(NOT_PAGES)}
    wanted = {
        url.removeprefix("http://").replace(f":{trying.web.port}", "")
        for url in truth_of(web, [trying.web.front_page()], scope="any", mine="ancestors").pages
    }
    broken = audit(web.settings, entries, AuditRules(delay_s=DELAY_S)).broken()
    found = [f"{len(wanted - got)} pages are missing"] if wanted - got else []
    return found + [str(each) for each in broken[:3]] + problems(trying.into)[:3]


def measure(run: Run) -> None:
    pages = QUICK_PAGES if run.quick else PAGES
    run.setting("pages", pages)
    rows: list[tuple[str | int, ...]] = []
    tried = 0
    with run.progress(len(run.chosen), "faults") as step:
        for fault in FAULTS:
            why = "--only" if fault not in run.chosen else _why_not(fault)
            if why:
                run.leave_out(_figure(fault), why)
                continue
            end, wrong = trial(fault, pages)
            tried += 1
            run.say(f"{fault}: {end} {wrong}")
            run.figure(_figure(fault), len(wrong) + (not end.is_right))
            rows.append((fault, end.code, end.said[-120:] or "–", "; ".join(wrong) or "whole"))
            step.advance()
    run.figure("faults tried", tried)
    run.table(["fault", "exit code", "it said", "afterwards"], rows)


def _why_not(fault: str) -> str:
    if fault in NEEDS_ROOT and os.geteuid():
        return "needs root"
    return "needs strace" if fault in NEEDS_STRACE and shutil.which("strace") is None else ""


def _figure(fault: str) -> str:
    return f"{fault}: what was wrong"


EXPERIMENT = Experiment(
    name="machine",
    summary="full and failing disks, cut files, signals, too few descriptors, too little memory: one crawl each",
    run=measure,
    choices=tuple(FAULTS),
    bars=tuple(Bar(fault, _figure(fault), "<=", 0) for fault in FAULTS),
)
