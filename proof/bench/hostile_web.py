"""Every row of the hostile web beside good hosts: its answer, its memory, and what the good hosts lose by it.

A turn is a few crawls at the same time, so that whatever else the machine does slows all of them: one of good hosts
alone, and for each of two rows one of as many good hosts and the row. A row that misses a bar has two more turns of its
own, and counts with the median of the three. The last turn is a crawl of all rows, where three in ten hosts are bad,
beside one of its good hosts alone. Each crawl has a web of its own, in another process. Memory is the largest resident
set above that of the crawl of good hosts alone. Rates are pages of good hosts by the time from the first to the last.
"""

import multiprocessing
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from statistics import median
from typing import NamedTuple

from lycosa.simweb import HOSTILE_ROWS, HostileRow
from proof import Bar, Experiment, Run
from proof.ground.commands import scratch
from proof.ground.hostile_web import HostileCrawl, crawl_hostile

WRONG, MEMORY, RATE, SHARE, TOGETHER = (
    "wrong answers",
    "most memory above normal",
    "lowest rate of good hosts",
    "memory with 30 % bad",
    "rate of good hosts with 30 % bad",
)
GOOD, DELAY_S, PAGES = 20, 0.25, 100_000
EACH_S, ALL_S, TOTAL_S = 6.0, 12.0, 4.0
AT_ONCE, MORE_TURNS = 2, 2
MOST_MB, LEAST_SHARE = 150.0, 0.9
MANY_GOOD = round(len(HOSTILE_ROWS) * 7 / 3)
QUICK = ("gzip-bomb", "gzip-words", "chained-bomb", "sitemap-bomb", "one-byte-chunks", "endless-body", "many-links",
         "million-links", "few-tags", "unclosed-formatting", "deep-html", "open-brackets", "nul-document",
         "robots-wildcards", "drops-connections", "many-cookies", "wildcard")  # fmt: skip


class Turn(NamedTuple):
    """A crawl with bad hosts beside one without."""

    told: HostileCrawl
    clean: HostileCrawl

    @property
    def above_mb(self) -> float:
        return self.told.peak_mb - self.clean.peak_mb

    @property
    def share(self) -> float:
        return self.told.good_rate / self.clean.good_rate

    @property
    def misses(self) -> bool:
        return self.above_mb > MOST_MB or self.share < LEAST_SHARE

    @property
    def wrong(self) -> list[str]:
        return [found for result in self.told.results if (found := result.wrong(TOTAL_S))] + self.told.trespasses


def crawl(rows: Sequence[HostileRow], good: int, most_s: float) -> HostileCrawl:
    with scratch() as folder:
        return crawl_hostile(
            rows, folder, good=good, good_pages=PAGES, total_s=TOTAL_S, most_s=most_s, delay_s=DELAY_S, whole_time=True
        )


def take_turn(
    pool: ProcessPoolExecutor, each: Sequence[Sequence[HostileRow]], good: int = GOOD, most_s: float = EACH_S
) -> list[Turn]:
    """Crawls with each of these sets of rows, and one without, at the same time."""
    clean, *hostile = [pool.submit(crawl, rows, good, most_s) for rows in ((), *each)]
    return [Turn(told.result(), clean.result()) for told in hostile]


def measure(run: Run) -> None:
    rows = [row for row in HOSTILE_ROWS if not run.quick or row.name in QUICK]
    found: dict[str, list[Turn]] = {}
    with ProcessPoolExecutor(1 + AT_ONCE, mp_context=multiprocessing.get_context("spawn")) as pool:
        with run.progress(len(rows), "rows") as step:
            for start in range(0, len(rows), AT_ONCE):
                some = rows[start : start + AT_ONCE]
                for row, turn in zip(some, take_turn(pool, [[row] for row in some]), strict=True):
                    found[row.name] = [turn]
                    step.advance()
        again = [row for row in rows if found[row.name][0].misses]
        with run.progress(len(again) * MORE_TURNS + 1, "turns") as step:
            for row in again * MORE_TURNS:
                found[row.name] += take_turn(pool, [[row]])
                step.advance()
            (together,) = take_turn(pool, [HOSTILE_ROWS], MANY_GOOD, ALL_S)
            step.advance()
    _tell(run, found, together, len(again))


def _tell(run: Run, found: dict[str, list[Turn]], together: Turn, again: int) -> None:
    table: list[list[str | int | float]] = []
    for name, turns in found.items():
        result = turns[0].told.results[0]
        above_mb, share = median(turn.above_mb for turn in turns), median(turn.share for turn in turns)
        longest_s, cpu_s = max(turn.told.results[0].longest_s for turn in turns), turns[0].told.cpu_s
        table.append([name, result.outcome, round(above_mb), round(100 * share), round(longest_s, 1), round(cpu_s, 1)])
    name = f"all {len(HOSTILE_ROWS)}, beside {MANY_GOOD} good hosts"
    longest_s = max(result.longest_s for result in together.told.results)
    above_mb, share = together.above_mb, together.share
    table.append([name, "", round(above_mb), round(100 * share), round(longest_s, 1), round(together.told.cpu_s, 1)])
    run.table(["row", "outcome", "MB above normal", "% of the rate", "longest request, s", "CPU s"], table)
    wrong = [text for turns in found.values() for turn in turns for text in turn.wrong]
    if wrong + together.wrong:
        run.table(["what was wrong"], [[text] for text in wrong + together.wrong])
    run.setting("good hosts", GOOD)
    run.setting("delay", f"{DELAY_S} s")
    run.setting("total_s", f"{TOTAL_S} s")
    run.figure("rows", len(found))
    run.figure("rows that had three turns", again)
    run.figure(WRONG, len(wrong))
    run.figure("wrong answers, or none in the time, with all rows at once", len(together.wrong))
    run.figure(MEMORY, max(median(turn.above_mb for turn in turns) for turns in found.values()), "MB")
    run.figure(RATE, 100 * min(median(turn.share for turn in turns) for turns in found.values()), "%")
    run.figure(TOGETHER, 100 * together.share, "%")
    run.figure(SHARE, together.told.peak_mb / together.clean.peak_mb, "x")


EXPERIMENT = Experiment(
    name="hostile-web",
    summary="every row of the hostile web beside good hosts: answers, memory, and the rate of the good hosts",
    run=measure,
    bars=(
        Bar("every answer is right", WRONG, "<=", 0),
        Bar("small", MEMORY, "<=", MOST_MB),
        Bar("good hosts keep their rate", RATE, ">=", 100 * LEAST_SHARE),
        Bar("three bad hosts in ten: memory", SHARE, "<=", 1.5),
        Bar("three bad hosts in ten: rate", TOGETHER, ">=", 100 * LEAST_SHARE),
    ),
)
