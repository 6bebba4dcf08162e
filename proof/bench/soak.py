"""An hour on a web of which nearly a third is bad: memory, descriptors and threads stay, and the counts add up.

Three hosts in ten are traps without end, or refuse requests for some seconds out of every twenty; names fail to
resolve, and single documents hang, drip, lie about their length, never end or are bombs. The crawl is watched from
outside: once a minute its memory, file descriptors and threads are read from the kernel, and the counts from its state,
beside it: every known URL must be counted in exactly one place. `--minutes 5` makes it shorter.
"""

import json
import os
import signal
from pathlib import Path
from statistics import median
from typing import NamedTuple

from lycosa.errors import StoreError
from lycosa.inspect import open_to_read, stats_of
from lycosa.simweb import DOCUMENT_TROUBLE, AuditRules, audit_log
from lycosa.store import is_collection
from proof import Axis, Bar, Experiment, Line, LineChart, Run
from proof.ground.commands import lycosa, memory_mb, run_command, scratch
from proof.ground.servers import simulated_web
from tests.crawl.consistency import uncounted

MINUTES, QUICK_MINUTES = 60.0, 0.4
SAMPLES_MOST, QUICK_EVERY_S = 60, 4.0
HOSTS, PAGES = 300, 3_000_000
DELAY_S = 0.1
INTERRUPTED = 130
BAD_HOSTS = ("unavailable", "too-many", "calendar", "path-loop", "session-ids", "soft-404")
BAD_HOST_SHARE = 0.05  # of each kind
BAD_DOCUMENT_SHARE = 0.002  # of each kind
BAD_NAMES = {"servfail": 0.02, "timeout": 0.02, "slow": 0.02}
WRONG, DESCRIPTORS, THREADS, MEMORY = (
    "times the counts did not add up",
    "file descriptors more at the end",
    "threads more at the end",
    "growth of memory",
)


class SoakSample(NamedTuple):
    """What the kernel and the state say at one moment."""

    at_s: float
    memory_mb: float
    descriptors: int
    threads: int
    known: int
    uncounted: int


def sample(pid: int, into: Path, at_s: float) -> SoakSample | None:
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
    return SoakSample(at_s, memory_mb(pid), descriptors, threads, count.known, uncounted(count))


def _trouble() -> list[str]:
    shares = [f"{name}={BAD_HOST_SHARE}" for name in BAD_HOSTS]
    shares += [f"{name}={BAD_DOCUMENT_SHARE}" for name in DOCUMENT_TROUBLE]
    words = [word for share in shares for word in ("--trouble", share)]
    return words + [word for name, share in BAD_NAMES.items() for word in ("--dns", f"{name}={share}")]


def measure(run: Run) -> None:
    minutes = run.minutes or (QUICK_MINUTES if run.quick else MINUTES)
    seconds = 60 * minutes
    every_s = QUICK_EVERY_S if run.quick else max(5.0, seconds / SAMPLES_MOST)
    run.setting("minutes", minutes)
    run.setting("share of bad hosts", round(len(BAD_HOSTS) * BAD_HOST_SHARE, 2))
    samples: list[SoakSample] = []
    shape = ["--hosts", str(HOSTS), "--pages", str(PAGES), "--sizes", "uniform", *_trouble()]
    with (
        scratch() as folder,
        simulated_web(folder / "log", *shape) as web,
        run.progress(int(seconds), "seconds") as step,
    ):
        into, passed = folder / "crawl", 0

        def watch(pid: int) -> None:
            nonlocal passed
            passed += 1
            step.advance()
            if passed == int(seconds):  # of its own, should it have been stopped meanwhile
                os.kill(pid, signal.SIGTERM)
            if passed % int(every_s) == 0 and (found := sample(pid, into, passed)) is not None:
                samples.append(found)
                if found.uncounted:
                    run.say(f"after {passed} s: {found.uncounted} of {found.known} URLs are counted nowhere or twice")

        seeds = [web.front_page(host) for host in range(HOSTS)]
        manners = ["--delay", str(DELAY_S), "--scope", "any", "--into", str(into)]
        words = lycosa("crawl", *seeds, *manners, *web.options(), "--json", "--quiet")
        done = json.loads(run_command(words, watch=watch, may=INTERRUPTED).out)
        broken = audit_log(web.log, AuditRules(delay_s=DELAY_S)).broken()
    _report(run, samples)
    run.figure("pages", done["pages"])
    run.figure("failed URLs", done["failed"])
    run.figure("politeness violations", len(broken))
    for finding in broken[:5]:
        run.say(str(finding))


def _report(run: Run, samples: list[SoakSample]) -> None:
    run.figure("samples", len(samples))
    run.figure(WRONG, sum(bool(each.uncounted) for each in samples))
    if len(samples) < 8:
        for figure in (DESCRIPTORS, THREADS, MEMORY):
            run.leave_out(figure, "too short to tell")
        return
    quarter = len(samples) // 4
    early, late = samples[quarter : 2 * quarter], samples[-quarter:]
    run.figure(DESCRIPTORS, median(s.descriptors for s in late) - median(s.descriptors for s in early))
    run.figure(THREADS, median(s.threads for s in late) - median(s.threads for s in early))
    growth = median(s.memory_mb for s in late) / median(s.memory_mb for s in early) - 1
    run.figure(MEMORY, 100 * growth, "%")
    run.figure("memory at the end", late[-1].memory_mb, "MB")
    run.figure("URLs known at the end", late[-1].known)
    times = [s.at_s for s in samples]
    memory = Line("resident set", times, [s.memory_mb for s in samples])
    run.plot(LineChart("Memory stays where it was", Axis("seconds"), Axis("resident set", "MB"), (memory,)))


EXPERIMENT = Experiment(
    name="soak",
    summary="an hour on a web of which nearly a third is bad: nothing grows, and the counts add up",
    run=measure,
    bars=(
        Bar("counts add up", WRONG, "<=", 0),
        Bar("descriptors", DESCRIPTORS, "<=", 50),
        Bar("threads", THREADS, "<=", 2),
        Bar("memory stays flat", MEMORY, "<=", 20),
        Bar("polite", "politeness violations", "<=", 0),
    ),
)
