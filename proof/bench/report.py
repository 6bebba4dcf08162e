"""How long the report of a large crawl takes, on one core, and in how much memory.

The pages are those of a simulated web, crawled in virtual time; the report is the command, which writes the page, the
table and the JSON.
"""

from lycosa.simweb import SimSettings, SimWeb
from proof import Bar, Experiment, Run
from proof.bench.export import on_one_core
from proof.ground.commands import lycosa, run_command, scratch
from proof.ground.memory_crawl import look

PAGES, QUICK_PAGES = 135_000, 5_000  # of which three quarters are reached
HOSTS = 20
SECONDS, CPU, PEAK = "seconds of the command", "CPU seconds of the command", "peak memory"


def measure(run: Run) -> None:
    web = SimWeb(SimSettings(seed=run.seed, hosts=HOSTS, pages=QUICK_PAGES if run.quick else PAGES))
    with scratch() as folder:
        run.say("crawling")
        stats = look(web, folder / "c", days=0, moves=False).stats
        run.setting("pages", stats.pages)
        done = run_command(on_one_core(lycosa("report", folder / "c", "--out", folder / "report")))
    run.figure(SECONDS, done.wall_s, "s")
    run.figure(CPU, done.cpu_s, "s")
    run.figure(PEAK, done.peak_mb, "MB")


EXPERIMENT = Experiment(
    name="report",
    summary="how long the report of a crawl of 100,000 simulated pages takes",
    run=measure,
    bars=(Bar("fast", SECONDS, "<=", 60.0), Bar("bounded", PEAK, "<=", 400)),
)
