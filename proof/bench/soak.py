"""An hour on a web of which nearly a third is bad: memory, descriptors and threads stay, and the counts add up.

Three hosts in ten are traps without end, or refuse requests for some seconds out of every twenty; names fail to
resolve, and single documents hang, drip, lie about their length, never end or are bombs. The crawl is watched from
outside: once a minute its memory, file descriptors and threads are read from the kernel, and the counts from its state,
beside it: every known URL must be counted in exactly one place. `--minutes 5` makes it shorter; a crawl that ends by
itself is not long enough, either.

A soak that is interrupted, even by `kill -9`, goes on by the same command and code: the collection stays, the web
serves it at the same ports, and the samples are kept, so minutes add up. A new process begins with empty caches, so
what grew is measured within each process and added up over them: starting anew hides nothing. The minutes of a process
that ended before it can be judged do not count.
"""

import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from statistics import median

import msgspec

from lycosa.errors import LycosaError, StoreError
from lycosa.inspect import open_to_read, stats_of
from lycosa.simweb import DOCUMENT_TROUBLE, AuditRules, LoggedRequest, audit, read_log
from lycosa.store import is_collection
from proof import Axis, Bar, Experiment, Line, LineChart, Run
from proof.ground.commands import ending_with_us, lycosa, memory_mb, run_command
from proof.ground.ledger import Ledger
from proof.ground.servers import simulated_web
from tests.crawl.consistency import uncounted

MINUTES, QUICK_MINUTES = 60.0, 0.4
SAMPLES_MOST, QUICK_EVERY_S = 60, 4.0
LEAST_SAMPLES = 8  # of a process: with fewer it is too short to tell whether something grows
HOSTS, PAGES = 300, 3_000_000
DELAY_S = 0.1
INTERRUPTED = 130
BAD_HOSTS = ("unavailable", "too-many", "calendar", "path-loop", "session-ids", "soft-404")
BAD_HOST_SHARE = 0.05  # of each kind
BAD_DOCUMENT_SHARE = 0.002  # of each kind
BAD_NAMES = {"servfail": 0.02, "timeout": 0.02, "slow": 0.02}
LASTED, WRONG, DESCRIPTORS, THREADS, MEMORY = (
    "minutes that count",
    "times the counts did not add up",
    "file descriptors more at the end",
    "threads more at the end",
    "growth of memory",
)


class SoakProcess(msgspec.Struct, frozen=True, tag="process"):
    """One process of the crawl: where its web was served, and how far the time of day is ahead of that web's clock."""

    port: int
    dns_port: int
    ahead_s: float


class SoakSample(msgspec.Struct, frozen=True, tag="sample"):
    """What the kernel and the state say so many seconds after the start of a process."""

    process: int
    at_s: float
    memory_mb: float
    descriptors: int
    threads: int
    known: int
    uncounted: int


SoakLedger = Ledger[SoakProcess | SoakSample]


def _processes(ledger: SoakLedger) -> list[SoakProcess]:
    return [each for each in ledger.parts if isinstance(each, SoakProcess)]


def _samples(ledger: SoakLedger) -> list[SoakSample]:
    return [each for each in ledger.parts if isinstance(each, SoakSample)]


def sample(pid: int, into: Path, process: int, at_s: float) -> SoakSample | None:
    """None while there is no state yet, or when the crawl has just ended."""
    try:
        descriptors = len(list(Path(f"/proc/{pid}/fd").iterdir()))
        threads = len(list(Path(f"/proc/{pid}/task").iterdir()))
        if not is_collection(into) or not descriptors:
            return None
        with open_to_read(into) as collection:
            count = stats_of(collection)
    except (OSError, StoreError):
        return None
    return SoakSample(process, at_s, memory_mb(pid), descriptors, threads, count.known, uncounted(count))


def judged(samples: Iterable[SoakSample]) -> list[list[SoakSample]]:
    """The samples of each process that ran for long enough."""
    by_process: dict[int, list[SoakSample]] = {}
    for each in samples:
        by_process.setdefault(each.process, []).append(each)
    return [each for each in by_process.values() if len(each) >= LEAST_SAMPLES]


def _trouble() -> list[str]:
    shares = [f"{name}={BAD_HOST_SHARE}" for name in BAD_HOSTS]
    shares += [f"{name}={BAD_DOCUMENT_SHARE}" for name in DOCUMENT_TROUBLE]
    words = [word for share in shares for word in ("--trouble", share)]
    return words + [word for name, share in BAD_NAMES.items() for word in ("--dns", f"{name}={share}")]


def measure(run: Run) -> None:
    minutes = run.minutes or QUICK_MINUTES
    run.setting("minutes", minutes)
    run.setting("share of bad hosts", round(len(BAD_HOSTS) * BAD_HOST_SHARE, 2))
    ledger: SoakLedger = Ledger("soak", (SoakProcess, SoakSample), run.seed, run.quick, minutes, HOSTS, PAGES)
    run.after_publishing(ledger.close)
    try:
        _soak(run, ledger, 60 * minutes)
    except (KeyboardInterrupt, SystemExit):
        done = _minutes(_samples(ledger))
        run.say(f"interrupted with {done:.1f} of {minutes:g} minutes; the same command goes on")
        raise
    _report(run, _samples(ledger))
    with open_to_read(ledger.folder / "crawl") as collection:
        count = stats_of(collection)
    run.figure("pages", count.pages)
    run.figure("failed URLs", count.failed.total())
    settings, _ = read_log(ledger.folder / "log-0")
    broken = audit(settings, _requests(ledger.folder, _processes(ledger)), AuditRules(delay_s=DELAY_S)).broken()
    run.figure("politeness violations", len(broken))
    for finding in broken[:5]:
        run.say(finding)


def _minutes(samples: list[SoakSample]) -> float:
    return sum(process[-1].at_s for process in judged(samples)) / 60


def _soak(run: Run, ledger: SoakLedger, seconds: float) -> None:
    """One process more, until its minutes and those of the processes before it are enough."""
    every_s = QUICK_EVERY_S if run.quick else max(5.0, seconds / SAMPLES_MOST)
    former, done_s = _processes(ledger), 60 * _minutes(_samples(ledger))
    number, folder = len(former), ledger.folder
    if former:
        run.say(f"going on after {done_s / 60:.1f} of {seconds / 60:g} minutes")
    if done_s >= seconds:  # only its results could not be written
        return
    left_s = max(seconds - done_s, LEAST_SAMPLES * every_s) if done_s else seconds
    last = former[-1] if former else SoakProcess(0, 0, 0.0)
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / f"log-{number}"
    log.unlink(missing_ok=True)  # of a web that was killed before there was a process
    shape = ["--seed", str(run.seed), "--hosts", str(HOSTS), "--pages", str(PAGES), "--sizes", "uniform", *_trouble()]
    inside = ending_with_us("TERM")  # which leaves it the time to write its log
    with (
        simulated_web(log, *shape, port=last.port, dns_port=last.dns_port, inside=inside) as web,
        run.progress(int(left_s), "seconds") as step,
    ):
        ledger.add(SoakProcess(web.port, web.dns_port, time.time() - time.monotonic()))
        into, passed, due_s, is_over = folder / "crawl", 0, every_s, False

        def watch(pid: int) -> None:
            nonlocal passed, due_s, is_over
            passed += 1  # of its own, should it have been stopped meanwhile
            step.advance()
            if is_over:
                return
            if passed >= due_s and (found := sample(pid, into, number, passed)) is not None:
                due_s = (passed // every_s + 1) * every_s
                ledger.add(found)
                if found.uncounted:
                    run.say(f"after {passed} s: {found.uncounted} of {found.known} URLs are counted nowhere or twice")
            has_last = due_s > left_s or passed >= left_s + every_s  # the last sample may be late
            if passed >= left_s and has_last:
                is_over = True
                os.kill(pid, signal.SIGTERM)

        seeds = [web.front_page(host) for host in range(HOSTS)]
        manners = ["--delay", str(DELAY_S), "--scope", "any", "--into", str(into)]
        words = lycosa("crawl", *seeds, *manners, *web.options(), "--json", "--quiet")
        try:
            run_command([*ending_with_us("KILL"), *words], watch=watch, may=INTERRUPTED)
        except StoreError:  # no room for the ledger
            raise
        except LycosaError:  # a crawl that failed is no crawl to go on with
            ledger.close()
            raise
        if not is_over:
            run.say(f"the crawl ended by itself after {passed} s")


def _requests(folder: Path, processes: list[SoakProcess]) -> Iterator[LoggedRequest]:
    """The requests of all processes, on the time of day: a pause between two processes is judged, too."""
    for number, process in enumerate(processes):
        for each in read_log(folder / f"log-{number}")[1]:
            times = {"start": each.start + process.ahead_s, "end": each.end + process.ahead_s}
            yield msgspec.structs.replace(each, **times)


def _report(run: Run, samples: list[SoakSample]) -> None:
    run.figure("samples", len(samples))
    run.figure(WRONG, sum(bool(each.uncounted) for each in samples))
    if run.quick:
        run.leave_out(LASTED, "a quick run")
    else:
        run.figure(LASTED, _minutes(samples))
    if not (processes := judged(samples)):
        for figure in (DESCRIPTORS, THREADS, MEMORY):
            run.leave_out(figure, "too short to tell")
        return
    run.figure("processes, one after the other", len(processes))
    run.figure(DESCRIPTORS, grown(processes, lambda each: each.descriptors)[0])
    run.figure(THREADS, grown(processes, lambda each: each.threads)[0])
    growth_mb, early_mb = grown(processes, lambda each: each.memory_mb)
    run.figure(MEMORY, 100 * growth_mb / early_mb, "%")
    run.figure("memory at the end", processes[-1][-1].memory_mb, "MB")
    run.figure("URLs known at the end", processes[-1][-1].known)
    lines, began_s = list[Line](), 0.0
    for number, process in enumerate(processes, 1):
        times = [began_s + each.at_s for each in process]
        lines.append(Line(f"process {number}", times, [each.memory_mb for each in process]))
        began_s = times[-1]
    run.plot(LineChart("Memory stays where it was", Axis("seconds"), Axis("resident set", "MB"), tuple(lines)))


def grown(processes: list[list[SoakSample]], of: Callable[[SoakSample], float]) -> tuple[float, float]:
    """By how much it grew, and from what. Growth is that from the second quarter of a process to its last one, added up
    over the processes; or from the first process to the last one, where that is more."""
    early, late = list[float](), list[float]()
    for process in processes:
        quarter = len(process) // 4
        early.append(median(map(of, process[quarter : 2 * quarter])))
        late.append(median(map(of, process[-quarter:])))
    return max(sum(late) - sum(early), late[-1] - early[0]), early[0]


EXPERIMENT = Experiment(
    name="soak",
    summary="an hour on a web of which nearly a third is bad: nothing grows, and the counts add up",
    run=measure,
    minutes=MINUTES,
    bars=(
        Bar("long enough", LASTED, ">=", MINUTES),
        Bar("counts add up", WRONG, "<=", 0),
        Bar("descriptors", DESCRIPTORS, "<=", 50),
        Bar("threads", THREADS, "<=", 2),
        Bar("memory stays flat", MEMORY, "<=", 20),
        Bar("polite", "politeness violations", "<=", 0),
    ),
)
