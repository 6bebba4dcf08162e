"""Every row of the hostile web beside good hosts: its answer, its memory, and what the good hosts lose by it.

Two crawls run at the same time, so that whatever else the machine does slows both: one of good hosts alone, and one of
as many good hosts and a row, or of all rows, where three in ten hosts are bad. Memory is the largest resident set above
that of the crawl of good hosts alone. Rates are pages of good hosts by the time from the first of them to the last.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from lycosa.simweb import HOSTILE_ROWS, HostileRow
from proof import Bar, Experiment, Run
from proof.ground.commands import scratch
from proof.ground.hostile_web import HostileCrawl, crawl_hostile

WRONG, MEMORY, RATE, SHARE = (
    "wrong answers",
    "most memory above normal",
    "lowest rate of good hosts",
    "memory with 30 % bad",
)
GOOD, DELAY_S, PAGES = 20, 0.25, 100_000
EACH_S, TOTAL_S = 10.0, 6.0
MANY_GOOD = round(len(HOSTILE_ROWS) * 7 / 3)
QUICK = ("gzip-bomb", "gzip-words", "chained-bomb", "sitemap-bomb", "one-byte-chunks", "endless-body", "many-links",
         "unclosed-formatting", "deep-html", "open-brackets", "nul-document", "robots-wildcards", "drops-connections",
         "many-cookies", "wildcard")  # fmt: skip


def crawl(rows: Sequence[HostileRow], good: int) -> HostileCrawl:
    with scratch() as folder:
        return crawl_hostile(
            rows, folder, good=good, good_pages=PAGES, total_s=TOTAL_S, most_s=EACH_S, delay_s=DELAY_S, whole_time=True
        )


def side_by_side(rows: Sequence[HostileRow], good: int) -> tuple[HostileCrawl, HostileCrawl]:
    """A crawl without the rows and one with them, at the same time."""
    with ThreadPoolExecutor(2) as both:
        clean, hostile = both.submit(crawl, (), good), both.submit(crawl, rows, good)
        return clean.result(), hostile.result()


def measure(run: Run) -> None:
    rows = [row for row in HOSTILE_ROWS if not run.quick or row.name in QUICK]
    table: list[list[str | int | float]] = []
    wrong: list[str] = []
    memory, rate = 0.0, 1.0
    with run.progress(len(rows) + 1, "pairs of crawls") as step:
        for row in rows:
            clean, told = side_by_side([row], GOOD)
            share, above_mb = told.good_rate / clean.good_rate, told.peak_mb - clean.peak_mb
            memory, rate = max(memory, above_mb), min(rate, share)
            found = told.results[0].wrong(TOTAL_S) or "; ".join(told.trespasses)
            wrong += [found] * bool(found)
            outcome = told.results[0].outcome
            table.append([row.name, outcome, round(above_mb), round(100 * share), round(told.cpu_s, 1), found])
            step.advance()
        clean, told = side_by_side(HOSTILE_ROWS, MANY_GOOD)
        wrong_beside_all = [found for result in told.results if (found := result.wrong(TOTAL_S))]
        step.advance()
    share, above_mb = told.good_rate / clean.good_rate, told.peak_mb - clean.peak_mb
    name = f"all {len(HOSTILE_ROWS)}, beside {MANY_GOOD} good hosts"
    table.append([name, "", round(above_mb), round(100 * share), round(told.cpu_s, 1), ""])
    run.table(["row", "outcome", "MB above normal", "% of the rate", "CPU s", "wrong"], table)
    run.setting("good hosts", GOOD)
    run.setting("delay", f"{DELAY_S} s")
    run.figure(WRONG, len(wrong))
    run.figure("wrong answers, or none in the time, with all rows at once", len(wrong_beside_all))
    run.figure(MEMORY, memory, "MB")
    run.figure(RATE, 100 * rate, "%")
    run.figure("rate of good hosts beside all rows", 100 * share, "%")
    run.figure(SHARE, told.peak_mb / clean.peak_mb, "x")


EXPERIMENT = Experiment(
    name="hostile-web",
    summary="every row of the hostile web beside good hosts: answers, memory, and the rate of the good hosts",
    run=measure,
    bars=(
        Bar("every answer is right", WRONG, "<=", 0),
        Bar("small", MEMORY, "<=", 150),
        Bar("good hosts keep their rate", RATE, ">=", 90),
        Bar("three bad hosts in ten", SHARE, "<=", 1.5),
    ),
)
