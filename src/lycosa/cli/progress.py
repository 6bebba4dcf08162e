"""How a crawl is doing, on standard error: a live view in a terminal, otherwise now and then a line.

A view is told of the crawl by `show` as often as the engine likes and draws when it is time; it starts no thread and
never ends a crawl: one that cannot be written to any more falls silent. Chosen by `view_on`, closed by its caller.
"""

import contextlib
import time
from collections.abc import Callable
from typing import Protocol, TextIO

from rich.console import Console, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from lycosa.cli.wording import count, duration, fit, most_first, printable, rate, reason, size
from lycosa.engine.stats import CrawlStats

# A drawing costs 0.7 ms of the one thread that crawls: 0.3 % of it at this pace.
REDRAW_S = 0.25
# A log of an hour's crawl stays readable.
LINE_S = 5.0
LABEL_COLUMNS = 9
UTF_8 = "utf-8"

Clock = Callable[[], float]


class ProgressView(Protocol):
    """Shows a crawl until it is closed."""

    def show(self, stats: CrawlStats) -> None: ...

    def close(self) -> None: ...


def view_on(stream: TextIO, *, quiet: bool = False) -> ProgressView:
    """The view that suits the stream."""
    if quiet:
        return SilentView()
    console = _Console(file=stream, highlight=False, markup=False, emoji=False)
    return TerminalView(console) if console.is_terminal and not console.is_dumb_terminal else LineView(stream)


class SilentView:
    """Shows nothing."""

    def show(self, stats: CrawlStats) -> None:
        pass

    def close(self) -> None:
        pass


class LineView:
    """A line at once, then one every `LINE_S`; one more when a crawl stands still before it has fetched anything."""

    def __init__(self, stream: TextIO, *, clock: Clock = time.monotonic) -> None:
        self._stream = stream
        self._clock = clock
        self._next_s = clock()
        self._has_told = False

    def show(self, stats: CrawlStats) -> None:
        now_s = self._clock()
        is_stuck = bool(stats.standing) and not stats.pages and not self._has_told
        if now_s < self._next_s and not is_stuck:
            return
        self._has_told = self._has_told or is_stuck
        self._next_s = now_s + LINE_S
        try:
            self._stream.write(f"{line_of(stats, self._stream.encoding or UTF_8)}\n")
            self._stream.flush()
        except OSError:
            self._next_s = float("inf")

    def close(self) -> None:
        pass


class TerminalView:
    """A few lines that are drawn anew in place, and gone when it is closed."""

    def __init__(self, console: Console, *, clock: Clock = time.monotonic) -> None:
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


def line_of(stats: CrawlStats, encoding: str = UTF_8) -> str:
    """A crawl at one moment, in a line for a log."""
    hosts = f"hosts {count(stats.hosts_active)} active {count(stats.hosts_waiting)} waiting"
    parts = [
        f"{count(stats.pages)} pages",
        f"{rate(stats.pages_per_s)}/s",
        size(stats.bytes),
        f"{count(stats.queued)} queued",
        f"{hosts} {count(stats.hosts_parked)} parked",
        f"{count(sum(stats.failed.values()))} failed",
    ]
    if stats.left_s is not None:
        parts.append(f"{duration(stats.left_s)} left")
    line = ", ".join(parts)
    return f"{line}; {printable(stats.standing, encoding)}" if stats.standing else line


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
        queued.append(f"{count(stats.duplicates)} duplicates")
    hosts = [
        f"{count(stats.hosts_active)} active, {count(stats.hosts_waiting)} waiting, {count(stats.hosts_parked)} parked",
        f"{count(stats.hosts)} in all",
    ]
    errors = [f"{count(many)} {reason(kind)}" for kind, many in most_first(stats.failed)]
    slowest = [f"{duration(slow.mean_s)} {slow.host} ({count(slow.queued)} queued)" for slow in stats.slowest]
    spent = [duration(stats.seconds)] + ([] if stats.left_s is None else [f"{duration(stats.left_s)} left"])
    rows = [("pages", pages, "bold green"), ("queued", queued, ""), ("hosts", hosts, "")]
    rows.append(("errors", errors or ["none"], "red" if errors else ""))
    rows += [("slowest", slowest, "")] if slowest else []
    return [*rows, ("time", spent, "")]


class _Console(Console):
    """A console that tells of a closed pipe like any other error; rich would end the process."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError
