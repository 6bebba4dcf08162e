"""What a crawl does when the machine fails under it: each fault once, then the same command again until it is complete.

    disk-full     a disk of 5 MB, enlarged after the crawl has said that it is full: it goes on by itself
    disk-stays    the same, never enlarged: exit code 4, and the same command goes on when there is room
    write-error   writes into the archive fail with EIO (strace): exit code 4, nothing of it is told as saved
    fsync-error   fsync fails with EIO under `--durability power`: likewise
    read-only     the file system is read-only: exit code 4
    tail-cut      the last bytes of the archive are gone: it says so and fetches those pages again
    tail-bits     bits in the last part of the archive are turned over: likewise
    log-cut       the last bytes of the state's log are gone: the rest is kept
    log-bits      bits in the last part of the state's log are turned over: likewise
    links-bits    bits in the newest segment of the link index are turned over: it is made anew
    index-bits    bits in the newest file of the search index are turned over: a search answers or says what to do
    descriptors   40 file descriptors: it ends in a sentence or crawls on, never in a traceback
    memory        800 MB of address space: likewise
    memory-group  a control group with less memory than the crawl has: it is killed, and the same command goes on
    sigterm       SIGTERM: it commits and ends with 130
    sigstop       stopped for some seconds and continued: it goes on, politely
    server-silent the server is silent for some seconds and comes back: its pages are fetched
    server-gone   the server and its name server are gone for half a minute and come back: likewise
    names-dead    the name server knows the first host alone for a minute, and is silent about others: likewise
    clock-jumps   the wall clock jumps a year ahead, a year back, and right again: nothing is noticed
    clock-ahead   it was a year ahead in a run that was killed: the next one holds nothing back
    clock-behind  it was a year behind: likewise

Afterwards the pages are held against the truth, the log against the rules of politeness, and the state against itself.
Faults of clusters are `make bench NAME=faults`.
"""

import os
import shutil
import signal
import time
from collections.abc import Callable
from contextlib import ExitStack, closing

from lycosa.simweb.server import FLUSH_S
from proof import Bar, Experiment, Run
from proof.ground.commands import memory_mb, scratch
from proof.ground.machine_trial import (
    LIMITS,
    FaultEnd,
    MachineTrial,
    NameRelay,
    can_limit_memory,
    memory_group,
    wrong_clock,
)
from proof.ground.servers import free_port

PAGES, QUICK_PAGES = 1_500, 600
STORAGE, DONE, INTERRUPTED, KILLED = 4, 0, 130, -signal.SIGKILL
STOPPED_S, GONE_S, DEAD_S = 4.0, 30.0, 60.0
QUICK_S = 4.0  # in place of the longer ones
YEAR_S = 365 * 86_400.0
SOME = 200  # requests after which a fault begins
SMALL_DISK, FULL = "5m", "no space left"
NEEDS_ROOT = ("disk-full", "disk-stays", "read-only")
NEEDS_STRACE = ("write-error", "fsync-error")
NEEDS_GROUPS = ("memory-group",)
STRACE = ("strace", "-f", "-qq", "-o", "/dev/null")

# disks and files


def disk_full(trial: MachineTrial) -> FaultEnd:
    trial.small_disk(SMALL_DISK)
    process = trial.start()
    trial.wait_for_words(process, FULL)
    trial.remount("size=400m")
    return trial.end(process, [DONE], FULL)


def disk_stays(trial: MachineTrial) -> FaultEnd:
    trial.small_disk(SMALL_DISK)
    end = trial.end(trial.start(), [STORAGE], FULL)
    trial.remount("size=400m")
    return end


def write_error(trial: MachineTrial) -> FaultEnd:
    before = (*STRACE, "-e", "trace=pwrite64", "-e", "inject=pwrite64:error=EIO:when=3+")
    return trial.end(trial.start(before=before), [STORAGE], "input/output error")


def fsync_error(trial: MachineTrial) -> FaultEnd:
    calls = "fsync,fdatasync"
    before = (*STRACE, "-e", f"trace={calls}", "-e", f"inject={calls}:error=EIO:when=12+")
    return trial.end(trial.start("--durability", "power", before=before), [STORAGE], "input/output error")


def read_only(trial: MachineTrial) -> FaultEnd:
    trial.small_disk("400m")
    trial.kill_at(SOME)
    trial.remount("ro")
    end = trial.end(trial.start(), [STORAGE], "read-only")
    trial.remount("rw")
    return end


def tail_cut(trial: MachineTrial) -> FaultEnd:
    trial.kill_at(trial.pages // 3)
    trial.cut_tail(trial.newest("warc", "*.warc.gz"))
    return trial.told(trial.end(trial.start(), [DONE]), "records-lost")


def tail_bits(trial: MachineTrial) -> FaultEnd:
    trial.kill_at(trial.pages // 3)
    trial.flip_bits(trial.newest("warc", "*.warc.gz"))
    return trial.told(trial.end(trial.start(), [DONE]), "records-lost")


def log_cut(trial: MachineTrial) -> FaultEnd:
    trial.kill_at(trial.pages // 3)
    trial.cut_tail(trial.newest("state", "*.log"))
    return trial.told(trial.end(trial.start(), [DONE]), "archive-cut")


def log_bits(trial: MachineTrial) -> FaultEnd:
    trial.kill_at(trial.pages // 3)
    trial.flip_bits(trial.newest("state", "*.log"))
    return trial.told(trial.end(trial.start(), [DONE]), "archive-cut")


def links_bits(trial: MachineTrial) -> FaultEnd:
    trial.end(trial.start(), [DONE])
    trial.flip_bits(trial.newest("graph", "*.links"))
    return trial.end(trial.start(), [DONE])


def index_bits(trial: MachineTrial) -> FaultEnd:
    trial.end(trial.start("--index"), [DONE])
    trial.flip_bits(trial.newest("index", "**/*"))
    end = trial.end(trial.run("search", trial.into, "page"), [DONE, STORAGE])
    again = trial.end(trial.run("index", trial.into, *(["--rebuild"] if end.code else [])), [DONE])
    return end._replace(is_right=end.is_right and again.is_right)


# limits and signals


def descriptors(trial: MachineTrial) -> FaultEnd:
    return trial.end(trial.start(before=("prlimit", "--nofile=40:40")), [DONE, STORAGE])


def memory(trial: MachineTrial) -> FaultEnd:
    return trial.end(trial.start(before=("prlimit", "--as=800000000")), [DONE, STORAGE])


def memory_of_a_group(trial: MachineTrial) -> FaultEnd:
    process = trial.run_until(SOME)
    with memory_group() as group:
        (group / "cgroup.procs").write_text(str(process.pid))
        limit = next(group / name for name in LIMITS if (group / name).exists())
        limit.write_text(str(int(memory_mb(process.pid) * 0.1 * 1024 * 1024)))
        return trial.end(process, [KILLED])


def sigterm(trial: MachineTrial) -> FaultEnd:
    process = trial.run_until(SOME)
    process.terminate()
    return trial.end(process, [INTERRUPTED])


def sigstop(trial: MachineTrial) -> FaultEnd:
    process = trial.run_until(SOME)
    process.send_signal(signal.SIGSTOP)
    time.sleep(STOPPED_S)
    process.send_signal(signal.SIGCONT)
    return trial.end(process, [DONE])


# servers and names


def server_silent(trial: MachineTrial) -> FaultEnd:
    process = trial.run_until(SOME)
    os.kill(trial.web.pid, signal.SIGSTOP)  # takes connections and answers none of them
    time.sleep(STOPPED_S)
    os.kill(trial.web.pid, signal.SIGCONT)
    return trial.end(process, [DONE])


def server_gone(trial: MachineTrial) -> FaultEnd:
    process = trial.run_until(SOME)
    trial.end_web()
    time.sleep(_long(trial, GONE_S))
    trial.begin_web()
    return _with_all_pages(trial, trial.end(process, [DONE]))


def names_dead(trial: MachineTrial) -> FaultEnd:
    with closing(NameRelay(trial.web.dns_port)) as relay:
        trial.dns_port, relay.is_dead = relay.port, True
        process = trial.run_until(1)
        time.sleep(_long(trial, DEAD_S))
        relay.is_dead = False
        end = _with_all_pages(trial, trial.end(process, [DONE]))
        trial.dns_port = trial.web.dns_port
        return end._replace(is_right=end.is_right and relay.unanswered > 0)


def _long(trial: MachineTrial, seconds: float) -> float:
    return seconds if trial.pages == PAGES else QUICK_S


def _with_all_pages(trial: MachineTrial, end: FaultEnd) -> FaultEnd:
    """Right only if no host was given up: the same command need not be said again."""
    time.sleep(2 * FLUSH_S)  # the log has all by then
    return end._replace(is_right=end.is_right and not trial.missing())


# clocks


def clock_jumps(trial: MachineTrial) -> FaultEnd:
    offset = trial.folder / "offset"
    offset.write_text("0")
    process = trial.run_until(SOME // 2, program=wrong_clock(offset))
    for jump in (YEAR_S, -YEAR_S, 0.0):
        offset.write_text(str(jump))
        trial.wait(trial.web.served() + SOME // 2, process)
    return trial.end(process, [DONE])


def clock_ahead(trial: MachineTrial) -> FaultEnd:
    return _with_clock_before(trial, YEAR_S)


def clock_behind(trial: MachineTrial) -> FaultEnd:
    return _with_clock_before(trial, -YEAR_S)


def _with_clock_before(trial: MachineTrial, offset_s: float) -> FaultEnd:
    offset = trial.folder / "offset"
    offset.write_text(str(offset_s))
    trial.kill_at(trial.pages // 3, program=wrong_clock(offset))
    return _with_all_pages(trial, trial.end(trial.start(), [DONE]))


FAULTS: dict[str, Callable[[MachineTrial], FaultEnd]] = {
    "disk-full": disk_full,
    "disk-stays": disk_stays,
    "write-error": write_error,
    "fsync-error": fsync_error,
    "read-only": read_only,
    "tail-cut": tail_cut,
    "tail-bits": tail_bits,
    "log-cut": log_cut,
    "log-bits": log_bits,
    "links-bits": links_bits,
    "index-bits": index_bits,
    "descriptors": descriptors,
    "memory": memory,
    "memory-group": memory_of_a_group,
    "sigterm": sigterm,
    "sigstop": sigstop,
    "server-silent": server_silent,
    "server-gone": server_gone,
    "names-dead": names_dead,
    "clock-jumps": clock_jumps,
    "clock-ahead": clock_ahead,
    "clock-behind": clock_behind,
}


def tried(fault: str, pages: int) -> tuple[FaultEnd, list[str]]:
    """The end of the crawl under the fault, and what is wrong with the collection once the same command has ended."""
    with ExitStack() as stack:
        folder = stack.enter_context(scratch())
        trial = MachineTrial(pages, folder, stack, (free_port(), free_port()))
        stack.callback(trial.end_web)
        end = FAULTS[fault](trial)
        again = trial.end(trial.start(), [DONE])
        trial.end_web()  # then its log is whole
        wrong = [] if again.is_right else [f"afterwards: exit code {again.code}: {again.said}"]
        return end, wrong + trial.wrongs()


def measure(run: Run) -> None:
    pages = QUICK_PAGES if run.quick else PAGES
    run.setting("pages", pages)
    rows: list[tuple[str | int, ...]] = []
    with run.progress(len(run.chosen), "faults") as step:
        for fault in FAULTS:
            why = "--only" if fault not in run.chosen else _why_not(fault)
            if why:
                run.leave_out(_figure(fault), why)
                continue
            try:
                end, wrong = tried(fault, pages)
            except Exception as error:  # the other faults are tried all the same
                end, wrong = FaultEnd(-1, "", False), [f"the trial itself failed: {error!r}"]
            run.say(f"{fault}: {end} {wrong}")
            run.figure(_figure(fault), len(wrong) + (not end.is_right))
            rows.append((fault, end.code, end.said[-120:] or "–", "; ".join(wrong) or "whole"))
            step.advance()
    run.figure("faults tried", len(rows))
    run.table(["fault", "exit code", "it said", "afterwards"], rows)


def _why_not(fault: str) -> str:
    if fault in NEEDS_ROOT and os.geteuid():
        return "needs root"
    if fault in NEEDS_GROUPS and not can_limit_memory():
        return "needs control groups"
    return "needs strace" if fault in NEEDS_STRACE and shutil.which("strace") is None else ""


def _figure(fault: str) -> str:
    return f"{fault}: what was wrong"


EXPERIMENT = Experiment(
    name="machine",
    summary="full and failing disks, damaged files, signals, limits, dead servers, wrong clocks: one crawl each",
    run=measure,
    choices=tuple(FAULTS),
    bars=tuple(Bar(fault, _figure(fault), "<=", 0) for fault in FAULTS),
)
