"""`lycosa watch`: the overview of a collection on a full terminal screen, for people on ssh.

It reads what the crawl commits, as `lycosa status` does, and shows the same numbers as the live page.
"""

import contextlib
import os
import select
import sys
import termios
import time
import tty
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lycosa.cli.options import CommandTable, Folder
from lycosa.cli.progress import STEP_S, STEPS, RateHistory, drawing, line_of
from lycosa.cli.wording import count, fit, most_first, printable
from lycosa.crawl import CrawlStats, crawl_state, is_crawled
from lycosa.inspect import open_to_read, samples_of, stats_of

if TYPE_CHECKING:
    from rich.console import RenderableType

EVERY_S = 1.0
FETCHING_ROWS = 12

app = CommandTable()


@app.command(
    epilog="""
        lycosa watch my-crawl             until q or Ctrl-C
        lycosa watch my-crawl --every 5   every five seconds
    """
)
def watch(
    into: Folder,
    every: Annotated[float, typer.Option(min=0.2, max=3_600, metavar="S", help="Look this often.")] = EVERY_S,
) -> None:
    """Show a collection on the whole terminal, live, until q or Ctrl-C.

    It works beside a running crawl or without one. Where the output is no terminal, it prints a line each time.
    """
    _read(into)  # says so if this is no collection
    if not sys.stdout.isatty():
        while True:
            print(line_of(_read(into), sys.stdout.encoding), flush=True)
            time.sleep(every)
    from rich.console import Console  # lazy: rich takes 0.03 s, which a pipe does without
    from rich.live import Live  # lazy: likewise

    console, rates = Console(highlight=False, markup=False, emoji=False), _rates_of(into)
    with _keys(), Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            stats = _read(into)
            rates.add(time.time(), stats.pages + stats.run_visits)
            state = crawl_state(stats, is_crawled=is_crawled(into))
            live.update(screen(into, stats, rates, state, console.width, console.encoding), refresh=True)
            if _is_left(every):
                return


@contextlib.contextmanager
def _keys() -> Iterator[None]:
    """Keys are read as they are pressed, and not shown."""
    if not sys.stdin.isatty():
        yield
        return
    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    tty.setcbreak(terminal)
    try:
        yield
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)


def _is_left(within_s: float) -> bool:
    """Waits, and says whether `q` was pressed meanwhile."""
    if not sys.stdin.isatty():
        time.sleep(within_s)
        return False
    until = time.monotonic() + within_s
    while select.select([sys.stdin], [], [], max(0.0, until - time.monotonic()))[0]:
        pressed = os.read(sys.stdin.fileno(), 100)
        if not pressed or pressed in (b"q", b"Q"):  # nothing comes of a terminal that is gone
            return True
    return False


def _rates_of(into: Path) -> RateHistory:
    """The rate of the last minutes, by what the crawl has kept of them."""
    with open_to_read(into) as collection:
        samples, stats = samples_of(collection), stats_of(collection)
    rates, now = RateHistory(), time.time()
    for each in samples:
        if each.at_unix >= now - STEPS * STEP_S:
            (rates.begin if each.begins else rates.add)(each.at_unix, each.pages)
    rates.begin(now, stats.pages + stats.run_visits)
    return rates


def _read(into: Path) -> CrawlStats:
    with open_to_read(into) as collection:
        return stats_of(collection)


def screen(
    into: Path, stats: CrawlStats, rates: RateHistory, state: str, width: int, encoding: str
) -> "RenderableType":
    """All that is shown at one moment."""
    from rich.console import Group  # lazy: as above
    from rich.text import Text

    style = "bold green" if state in ("running", "finished") else "bold yellow"
    parts: list[RenderableType] = [
        Text.assemble((f"{into}  ", "bold"), (state, style), ("   q leaves", "dim")),
        Text(""),
        drawing(stats, width=width, encoding=encoding, rates=rates.rates),
        Text(""),
    ]
    for title, counts in (("answers", stats.statuses), ("types", stats.types), ("skipped", stats.dropped)):
        items = [f"{count(many)} {name}" for name, many in most_first(counts)]
        line = printable(fit(items or ["none"], max(1, width - 10)), encoding)
        parts.append(Text.assemble((f"{title:<9}", "dim"), (line, _style(title, counts))))
    in_flight = f"{stats.in_flight:,} in flight, the oldest first" if stats.in_flight else "nothing in flight"
    parts += [Text(""), Text(in_flight, style="dim")]
    now = time.time()
    for each in stats.fetching[:FETCHING_ROWS]:
        waited = max(0.0, now - each.since_unix)
        line = printable(f"{waited:6.1f} s  {each.url}", encoding)[: max(1, width - 1)]
        parts.append(Text(line, style="yellow" if waited > 10 else "", no_wrap=True, overflow="crop"))
    return Group(*parts)


def _style(title: str, counts: dict[str, int]) -> str:
    is_failing = title == "answers" and any(not name.isdigit() or name.startswith("5") for name in counts)
    return "red" if is_failing else ""
