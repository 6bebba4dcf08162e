"""The live view of a crawl in a terminal: a few lines drawn anew in place, and gone when it is closed.

The only part of a crawl's command that needs rich: imported when there is a terminal, by `progress.view_on`.
"""

import contextlib
import time
from collections.abc import Callable
from typing import TextIO

from rich.console import Console, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from lycosa.cli.wording import count, counted, duration, fit, most_first, printable, rate, reason, size
from lycosa.crawl.stats import CrawlStats, Retry

# A drawing costs 0.7 ms of the one thread that crawls: 0.3 % of it at this pace.
REDRAW_S = 0.25
LABEL_COLUMNS = 9
UTF_8 = "utf-8"


def terminal_view(stream: TextIO) -> "TerminalView | None":
    """The view for a terminal that can move its cursor; None for another stream."""
    console = _Console(file=stream, highlight=False, markup=False, emoji=False)
    return TerminalView(console) if console.is_terminal and not console.is_dumb_terminal else None


class TerminalView:
    """A few lines that are drawn anew in place, and gone when it is closed."""

    def __init__(self, console: Console, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._clock = clock
        self._next_s = clock()
        self._live = Live(console=console, auto_refresh=False, transient=True, redirect_stdout=False)

    def show(self, stats: CrawlStats) -> None:
        now_s = self._clock()
        if now_s < self._next_s:
            return
        self._next_s = now_s + REDRAW_S
        picture = drawing(stats, width=self._console.width, encoding=self._console.encoding)
        try:
            if not self._live.is_started:
                self._live.start()
            self._live.update(picture, refresh=True)
        except OSError:
            self._next_s = float("inf")

    def close(self) -> None:
        self._next_s = float("inf")
        with contextlib.suppress(OSError):
            self._live.stop()


def drawing(stats: CrawlStats, *, width: int, encoding: str = UTF_8) -> RenderableType:
    """A crawl at one moment, for a terminal `width` columns wide. Only the sentence may take more than a line."""
    room = max(1, width - LABEL_COLUMNS)
    grid = Table.grid(padding=0)
    grid.add_column(width=LABEL_COLUMNS, no_wrap=True, style="dim")
    grid.add_column(overflow="crop")
    for label, items, style in _rows(stats):
        line = printable(fit(items, room), encoding)
        grid.add_row(label, Text(line, style=style, no_wrap=True, overflow="crop"))
    if stats.standing:
        grid.add_row("standing", Text(printable(stats.standing, encoding), style="yellow", overflow="fold"))
    return grid


def _rows(stats: CrawlStats) -> list[tuple[str, list[str], str]]:
    """Label, items from the most to the least telling, style."""
    pages = [f"{count(stats.pages)}, {rate(stats.pages_per_s)}/s", size(stats.bytes), f"{size(stats.bytes_per_s)}/s"]
    queued = [f"{count(stats.queued)} of {count(stats.known)} known", f"{count(stats.in_flight)} in flight"]
    if stats.duplicates:
        queued.append(counted(stats.duplicates, "duplicate"))
    hosts = [
        f"{count(stats.hosts_active)} active, {count(stats.hosts_waiting)} waiting, {count(stats.hosts_parked)} parked",
        f"{count(stats.hosts)} in all",
    ]
    errors = [f"{count(many)} {reason(kind)}" for kind, many in most_first(stats.failed)]
    slowest = [f"{duration(slow.mean_s)} {slow.host} ({count(slow.queued)} queued)" for slow in stats.slowest]
    retries = [f"{counted(stats.retrying, 'URL')} waiting", *map(_retry, stats.retries)]
    spent = [duration(stats.seconds)] + ([] if stats.left_s is None else [f"{duration(stats.left_s)} left"])
    rows = [("pages", pages, "bold green"), ("queued", queued, ""), ("hosts", hosts, "")]
    if stats.run_visits or stats.revisiting:
        again = [f"{count(stats.run_visits)} looked at, {count(stats.run_changed)} changed"]
        again += [f"{count(stats.run_not_modified)} not modified", f"{count(stats.revisiting)} waiting"]
        rows.insert(1, ("again", again, "bold green"))
    rows.append(("errors", errors or ["none"], "red" if errors else ""))
    rows += [("retries", retries, "yellow")] if stats.retrying else []
    rows += [("slowest", slowest, "")] if slowest else []
    return [*rows, ("time", spent, "")]


def _retry(retry: Retry) -> str:
    when = f"in {duration(retry.in_s)}" if retry.in_s else "when its turn comes"
    return f"{retry.next_try} {when}: {retry.url}"


class _Console(Console):
    """A console that tells of a closed pipe like any other error; rich would end the process."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError
