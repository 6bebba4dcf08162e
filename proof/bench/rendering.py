"""Rendering: a single-page application with a bundle of 150 KB, crawled with `--render auto` and no delay on loopback.

Pages a second over the whole crawl, the start of the browser among it; memory of all its processes late beside early;
how long the event loop was held; pages that are lost when the browser is killed ten times; and whether all pages of an
application built with React and Vite are found, where npm is there. Without rendering one page is found of each.
"""

import json
import sys
from pathlib import Path
from statistics import median
from typing import Any

from lycosa.errors import LycosaError
from proof import Bar, Experiment, Run
from proof.ground import react_app
from proof.ground.app import AppServer, served_app
from proof.ground.commands import lycosa, run_command, scratch

RATE, MEMORY, HELD = "pages/s", "memory late beside early", "longest hold of the event loop"
LOST, BROWSER = "pages lost in ten kills", "requests that a browser sent by itself"
REACT, REACT_WITHOUT = "pages of the React application missed", "pages of the React application without rendering"
SPEED, KILLED, REACT_APP = "speed", "kills", "react"
FIGURES = {SPEED: (RATE, MEMORY, HELD), KILLED: (LOST,), REACT_APP: (REACT,)}
KILLS = 10


def crawl(app: AppServer, into: Path, kills: int = 0) -> dict[str, Any]:
    command: list[str | Path] = [
        sys.executable,
        "-m",
        "proof.ground.rendered_crawl",
        f"{app.origin}/",
        into,
        str(kills),
    ]
    found: dict[str, Any] = json.loads(run_command(command).out)
    return found


def growth(samples: list[list[float]], pages: int) -> float:
    """The memory of the last third of the pages beside that of the second."""
    early = [own + others for done, own, others in samples if pages / 3 < done <= 2 * pages / 3]
    late = [own + others for done, own, others in samples if done > 2 * pages / 3]
    return median(late) / median(early) if early and late else float("nan")


def measure_react(run: Run, folder: Path) -> None:
    try:
        dist = react_app.build(folder / "react")
    except LycosaError as error:
        run.remark(f"the React application was not built: {error}")
        return
    with served_app(30) as app:
        react_app.install(app, dist)
        run.figure(REACT, 30 - crawl(app, folder / "react-crawl")["pages"])
        words = lycosa("crawl", f"{app.origin}/", "--into", folder / "bare", "--delay", "0", "--json", "--quiet")
        run.figure(REACT_WITHOUT, json.loads(run_command(words).out)["pages"])


def measure_speed(run: Run, folder: Path) -> int:
    """Returns how many requests the browser sent by itself."""
    pages = 200 if run.quick else 2_000
    run.setting("pages", pages)
    with served_app(pages) as app:
        found = crawl(app, folder / "c")
    if found["pages"] != pages:
        raise LycosaError(f"{found['pages']:,} of {pages:,} pages were found")
    samples = found["samples"]
    run.figure(RATE, pages / found["seconds"], "/s")
    run.figure(MEMORY, growth(samples, pages), "×")
    run.figure("most memory of browser and driver", max(others for _, _, others in samples), "MB")
    run.figure("most memory of the crawl", max(own for _, own, _ in samples), "MB")
    run.figure(HELD, 1000 * found["held_s"], "ms")
    return sum(each.is_browser for each in app.asked)


def measure_kills(run: Run, folder: Path) -> int:
    """Returns how many requests the browsers sent by themselves."""
    pages = 150 if run.quick else 300
    with served_app(pages) as app:
        killed = crawl(app, folder / "killed", KILLS)
    run.figure("kills", killed["kills"])
    run.figure(LOST, pages - killed["pages"])
    return sum(each.is_browser for each in app.asked)


def measure(run: Run) -> None:
    by_browser = 0
    for part, figures in FIGURES.items():
        if part not in run.chosen:
            for figure in figures:
                run.leave_out(figure, "not asked for")
    with scratch() as folder:
        if SPEED in run.chosen:
            by_browser += measure_speed(run, folder)
        if KILLED in run.chosen:
            by_browser += measure_kills(run, folder)
        if REACT_APP in run.chosen:
            measure_react(run, folder)
    if {SPEED, KILLED} & set(run.chosen):
        run.figure(BROWSER, by_browser)
    else:
        run.leave_out(BROWSER, "not asked for")


EXPERIMENT = Experiment(
    name="rendering",
    summary="pages a second, memory and losses of a crawl with a browser",
    run=measure,
    choices=(SPEED, KILLED, REACT_APP),
    bars=(
        Bar("fast", RATE, ">=", 6.0),
        Bar("flat", MEMORY, "<=", 1.2),
        Bar("never held", HELD, "<=", 50.0),
        Bar("nothing lost", LOST, "<=", 0),
        Bar("nothing around", BROWSER, "<=", 0),
        Bar("React", REACT, "<=", 0),
    ),
)
