"""Memory over a long crawl: 200,000 simulated pages, and the resident set at 20,000 beside that at the end.

Many pages on few hosts without a delay, so that queues grow far beyond what is held in memory. The crawl's resident set
is read once a second, together with the number of requests that the simulated web has served by then.
"""

import json
from typing import NamedTuple

from proof import Axis, Bar, Experiment, Line, LineChart, Run
from proof.ground.commands import lycosa, memory_mb, run_command, scratch
from proof.ground.servers import simulated_web

PAGES, QUICK_PAGES = 200_000, 10_000
EARLY_SHARE = 0.1
HOSTS = 20
SPARE = 1.3  # pages there are for each one wanted: robots.txt forbids some


class MemorySample(NamedTuple):
    requests: int
    resident_mb: float


def measure(run: Run) -> None:
    pages = QUICK_PAGES if run.quick else PAGES
    run.setting("pages", pages)
    samples: list[MemorySample] = []
    shape = ["--hosts", str(HOSTS), "--pages", str(int(pages * SPARE)), "--sizes", "uniform"]
    with scratch() as folder, simulated_web(folder / "log", *shape) as web, run.progress(pages, "requests") as step:

        def watch(pid: int) -> None:
            before = samples[-1].requests if samples else 0
            if resident := memory_mb(pid):
                samples.append(MemorySample(web.served(), resident))
                step.advance(samples[-1].requests - before)

        manners = ["--delay", "0", "--per-host", "4", "--pages", str(pages), "--into", str(folder / "crawl")]
        seeds = [web.front_page(host) for host in range(HOSTS)]
        command = lycosa("crawl", *seeds, *manners, *web.options(), "--json", "--quiet")
        done = json.loads(run_command(command, watch=watch).out)
    early = next((sample for sample in samples if sample.requests >= pages * EARLY_SHARE), samples[-1])
    last = samples[-1]
    run.figure("pages that are missing", max(0, pages - done["pages"]))
    run.figure("URLs known at the end", done["known"])
    run.figure(f"memory after {early.requests:,} requests", early.resident_mb, "MB")
    run.figure("memory at the end", last.resident_mb, "MB")
    run.figure("growth", 100 * (last.resident_mb / early.resident_mb - 1), "%")
    requests, resident = [s.requests for s in samples], [s.resident_mb for s in samples]
    curve = Line("resident set", requests, resident)
    run.plot(LineChart("Memory stays where it was", Axis("requests"), Axis("resident set", "MB"), (curve,)))


EXPERIMENT = Experiment(
    name="memory",
    summary="200,000 pages: does memory stay where it was at 20,000",
    run=measure,
    bars=(
        Bar("all pages", "pages that are missing", "<=", 0),
        Bar("memory stays flat", "growth", "within", (-15.0, 15.0)),
    ),
)
