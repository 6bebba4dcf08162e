"""What features cost a crawl that uses none of them: instructions a page, beside a crawl without their seams.

The same pages are crawled from memory on virtual time, with the tree as it is and with the lines taken out that only
serve sessions, rendering, requisites, `--keep`, `--external`, preferences and identity (see `without_features`).
valgrind counts the instructions of both, which other work on the machine does not change; those of a crawl of fewer
pages are taken off, so that the start does not count. Only the thread that crawls is counted: the features' lines run
there, and when RocksDB's threads flush and compact differs from crawl to crawl. Two crawls of the same kind stand
beside them, to show how far the counts can be told apart. Network, libcurl and those threads are not in the counts,
which makes the bar stricter. The calls of Python's functions are the same in each crawl: how many the lines add, and
that none goes into the features' rooms.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from statistics import median

from lycosa.errors import LycosaError
from proof import Bar, Experiment, Run
from proof.ground.commands import run_command, scratch
from proof.ground.peers import valgrind
from proof.ground.sites import POSTGRESQL

CALLS, INSTRUCTIONS = "calls", "instructions"
IN_ROOMS, ADDED = "calls into the rooms of features", "calls that the seams add, a page"
COST, NOISE = "instructions a page beside a crawl without the seams", "two crawls of the same kind differ by"
# Pages.
FEW, MANY, QUICK_MANY = 50, 1_150, 350
WHOLE, WITHOUT = "with the seams", "without"


def instructions(words: list[str | Path], folder: Path, pages: int) -> int:
    """Those of the thread that crawls, in one crawl, its start among them."""
    counted = folder / f"counted-{pages}"
    crawl = [sys.executable, "-m", "proof.ground.without_features", *words, folder / f"crawl-{pages}", str(pages)]
    by_thread = ["--tool=callgrind", "--separate-threads=yes", f"--callgrind-out-file={counted}"]
    command = [valgrind(), *by_thread, *crawl]
    same = {**os.environ, "PYTHONHASHSEED": "0"}
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, env=same, check=False)
    if done.returncode or json.loads(done.stdout)["pages"] != pages:
        raise LycosaError(f"a crawl in valgrind ended with {done.returncode}: {done.stderr.strip()[-200:]}")
    first = counted.with_name(f"{counted.name}-01")  # of the first thread
    found = re.search(r"^totals: (\d+)", first.read_text(), re.MULTILINE)
    if found is None:
        raise LycosaError("valgrind has counted nothing")
    return int(found[1])


def per_page(words: list[str | Path], many: int) -> float:
    with scratch() as folder:
        return (instructions(words, folder, many) - instructions(words, folder, FEW)) / (many - FEW)


def measure_calls(run: Run) -> None:
    found = {}
    for name, words in ((WHOLE, ["--whole"]), (WITHOUT, [])):
        with scratch() as folder:
            command = [sys.executable, "-m", "proof.ground.without_features", "--calls", *words]
            done = run_command([*command, POSTGRESQL.folder(), folder / "crawl", str(QUICK_MANY)])
        found[name] = json.loads(done.out)
        if found[name]["pages"] != QUICK_MANY:
            raise LycosaError(f"a crawl had {found[name]['pages']} pages")
    run.figure(IN_ROOMS, found[WHOLE]["in_rooms"])
    run.figure(ADDED, (found[WHOLE]["calls"] - found[WITHOUT]["calls"]) / QUICK_MANY)
    run.figure("calls, a page", found[WHOLE]["calls"] / QUICK_MANY)


def measure(run: Run) -> None:
    run.setting("site", POSTGRESQL.package)
    if CALLS in run.chosen:
        measure_calls(run)
    else:
        run.leave_out(IN_ROOMS, "not asked for")
        run.leave_out(ADDED, "not asked for")
    if INSTRUCTIONS in run.chosen:
        measure_instructions(run)
    else:
        run.leave_out(COST, "not asked for")
        run.leave_out(NOISE, "not asked for")


def measure_instructions(run: Run) -> None:
    many = QUICK_MANY if run.quick else MANY
    run.setting("pages", f"{FEW} to {many}")
    spent: dict[str, list[float]] = {WHOLE: [], WITHOUT: []}
    rows = []
    with run.progress(2 * run.runs, "crawls") as step:
        for number in range(run.runs):
            for name, words in ((WHOLE, ["--whole"]), (WITHOUT, [])):
                spent[name].append(per_page([*words, POSTGRESQL.folder()], many))
                rows.append((f"{name}, run {number + 1}", round(spent[name][-1])))
                step.advance()
    run.table(["crawl", "instructions a page"], rows)
    run.figure(COST, median(spent[WHOLE]) / median(spent[WITHOUT]), "×")
    run.figure(NOISE, max(max(each) / min(each) for each in spent.values()), "×")


EXPERIMENT = Experiment(
    name="features",
    summary="what features cost a crawl that uses none of them, in instructions",
    run=measure,
    runs=2,
    choices=(CALLS, INSTRUCTIONS),
    bars=(
        Bar("not called", IN_ROOMS, "<=", 0),
        Bar("absent when off", COST, "<=", 1.01),
        Bar("can be told", NOISE, "<=", 1.01),
    ),
)
