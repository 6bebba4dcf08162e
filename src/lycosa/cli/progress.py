"""How a crawl is doing, on standard error: a live view in a terminal, otherwise now and then a line.

A view is told of the crawl by `show` as often as its caller likes and draws when it is time; `note` says a line at
once. It starts no thread and never ends a crawl: one that cannot be written to any more falls silent. Chosen by
`view_on`, closed by its caller.
"""

import contextlib
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol, TextIO

from lycosa.cli.wording import (
    LINE_S,
    REDRAW_S,
    count,
    counted,
    duration,
    fit,
    most_first,
    printable,
    rate,
    reason,
    size,
)
from lycosa.crawl import CrawlStats, Retry

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

LABEL_COLUMNS = 9
SLOW_S = 1.0  # a host that answers sooner is not worth a line
UTF_8 = "utf-8"
STEP_S, STEPS = 2.0, 150  # the rate of the last five minutes
SPARKS, ASCII_SPARKS = "▁▂▃▄▅▆▇█", "_.-=+*#"
BAR_COLUMNS = 40

Clock = Callable[[], float]


class ProgressView(Protocol):
    """Shows a crawl until it is closed."""

    def show(self, stats: CrawlStats) -> None: ...

    def note(self, line: str) -> None: ...

    def close(self) -> None: ...


def view_on(stream: TextIO, *, quiet: bool = False) -> ProgressView:
    """The view that suits the stream."""
    if quiet:
        return SilentView()
    return (terminal_view(stream) if stream.isatty() else None) or LineView(stream)


def terminal_view(stream: TextIO) -> "TerminalView | None":
    """The view for a terminal that can move its cursor; None for another stream."""
    from rich.console import Console  # rich takes 0.03 s to import, which crawls without a terminal do without

    class ErrorConsole(Console):
        """A console that tells of a closed pipe like any other error; rich would end the process."""

        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    console = ErrorConsole(file=stream, highlight=False, markup=False, emoji=False)
    return TerminalView(console) if console.is_terminal and not console.is_dumb_terminal else None


class SilentView:
    """Shows nothing."""

    def show(self, stats: CrawlStats) -> None:
        pass

    def note(self, line: str) -> None:
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
        self.note(line_of(stats, self._stream.encoding or UTF_8))

    def note(self, line: str) -> None:
        try:
            self._stream.write(f"{line}\n")
            self._stream.flush()
        except OSError:
            self._next_s = float("inf")

    def close(self) -> None:
        pass


class TerminalView:
    """A few lines that are drawn anew in place, and gone when it is closed; notes stay above them."""

    def __init__(self, console: "Console", *, clock: Clock = time.monotonic) -> None:
        from rich.live import Live  # as in `terminal_view`

        self._console = console
        self._clock = clock
        self._next_s = clock()
        self._live = Live(console=console, auto_refresh=False, transient=True, redirect_stdout=False)
        self._rates = RateHistory()

    def show(self, stats: CrawlStats) -> None:
        now_s = self._clock()
        if now_s < self._next_s:
            return
        self._next_s = now_s + REDRAW_S
        self._rates.add(now_s, stats.pages + stats.run_visits)
        width, encoding = self._console.width, self._console.encoding
        picture = drawing(stats, width=width, encoding=encoding, rates=self._rates.rates)
        try:
            if not self._live.is_started:
                self._live.start()
            self._live.update(picture, refresh=True)
        except OSError:
            self._next_s = float("inf")

    def note(self, line: str) -> None:
        with contextlib.suppress(OSError):
            self._console.print(printable(line, self._console.encoding))

    def close(self) -> None:
        self._next_s = float("inf")
        with contextlib.suppress(OSError):
            self._live.stop()


class RateHistory:
    """The pages a second of the last minutes, one value for each step of `STEP_S`."""

    def __init__(self) -> None:
        self._last: tuple[float, int] | None = None
        self.rates: deque[float] = deque(maxlen=STEPS)

    def add(self, at_s: float, pages: int) -> None:
        """So many pages were there at a moment."""
        if self._last is None or pages < self._last[1]:
            self._last = (at_s, pages)
        elif (passed_s := at_s - self._last[0]) >= STEP_S:
            steps = min(STEPS, round(passed_s / STEP_S))  # samples of a long crawl are further apart than a step
            self.rates.extend([(pages - self._last[1]) / passed_s] * steps)
            self._last = (at_s, pages)

    def begin(self, at_s: float, pages: int) -> None:
        """So many pages were there when a count began: nobody counted just before."""
        self._last = (at_s, pages)


def line_of(stats: CrawlStats, encoding: str = UTF_8) -> str:
    """A crawl at one moment, in a line for a log."""
    parts = [
        counted(stats.pages, "page"),
        f"{rate(stats.pages_per_s)}/s",
        size(stats.bytes),
        f"{count(stats.queued)} queued",
        f"hosts {hosts_of(stats)}",
        f"{count(sum(stats.failed.values()))} failed",
    ]
    if stats.run_visits or stats.revisiting:
        parts.insert(1, f"{count(stats.run_visits)} revisited, {count(stats.run_changed)} changed")
    if stats.retrying:
        parts.append(f"{count(stats.retrying)} to be retried")
    if stats.left_s is not None:
        parts.append(f"{duration(stats.left_s)} left")
    line, said = ", ".join(parts), stats.pace or stats.standing
    return f"{line}; {printable(said, encoding)}" if said else line


def hosts_of(stats: CrawlStats) -> str:
    """`3 active 2 waiting 0 parked`."""
    return f"{count(stats.hosts_active)} active {count(stats.hosts_waiting)} waiting {count(stats.hosts_parked)} parked"


def drawing(stats: CrawlStats, *, width: int, encoding: str = UTF_8, rates: Sequence[float] = ()) -> "RenderableType":
    """A crawl at one moment, for a terminal `width` columns wide, with the course of its rate. Only the sentence may
    take more than a line."""
    from rich.table import Table  # as in `terminal_view`
    from rich.text import Text

    room = max(1, width - LABEL_COLUMNS)
    grid = Table.grid(padding=0)
    grid.add_column(width=LABEL_COLUMNS, no_wrap=True, style="dim")
    grid.add_column(overflow="crop")
    for label, items, style in _rows(stats):
        line = printable(fit(items, room), encoding)
        grid.add_row(label, Text(line, style=style, no_wrap=True, overflow="crop"))
    if len(rates) > 1:
        grid.add_row("rate", Text(sparkline(rates, room, encoding), style="green", no_wrap=True, overflow="crop"))
    if stats.limit_share is not None:
        grid.add_row(
            "limit", Text(bar(stats.limit_share, min(room, BAR_COLUMNS), encoding), style="cyan", no_wrap=True)
        )
    if said := stats.pace or stats.standing:
        grid.add_row("now", Text(printable(said, encoding), style="dim" if stats.pace else "yellow", overflow="fold"))
    return grid


def sparkline(values: Sequence[float], width: int, encoding: str = UTF_8) -> str:
    """The last values as a line of columns, and the highest of them as a number."""
    most = max(values)
    end = f"  at most {rate(most)}/s"
    marks = SPARKS if printable(SPARKS, encoding) == SPARKS else ASCII_SPARKS
    shown = list(values)[-max(1, width - len(end)) :]
    top = len(marks) - 1
    return "".join(marks[round(top * value / most) if most else 0] for value in shown) + end


def bar(share: float, width: int, encoding: str = UTF_8) -> str:
    """How far a limit is: `[#####     ] 52 %`."""
    full, empty = ("█", "░") if printable("█░", encoding) == "█░" else ("#", ".")
    end = f" {100 * share:.0f} %"
    room = max(1, width - len(end))
    filled = round(room * share)
    return full * filled + empty * (room - filled) + end


def _rows(stats: CrawlStats) -> list[tuple[str, list[str], str]]:
    """Label, items from the most to the least telling, style."""
    pages = [f"{count(stats.pages)}, {rate(stats.pages_per_s)}/s", size(stats.bytes), f"{size(stats.bytes_per_s)}/s"]
    queued = [f"{count(stats.queued)} of {count(stats.known)} known URLs", f"{count(stats.in_flight)} in flight"]
    if stats.duplicates:
        queued.append(counted(stats.duplicates, "duplicate"))
    hosts = [
        f"{count(stats.hosts_active)} active, {count(stats.hosts_waiting)} waiting, {count(stats.hosts_parked)} parked",
        f"{count(stats.hosts)} in all",
    ]
    errors = [f"{count(many)} {reason(kind)}" for kind, many in most_first(stats.failed)]
    slowest = [
        f"{duration(slow.mean_s)} {slow.host} ({count(slow.queued)} queued)"
        for slow in stats.slowest
        if slow.mean_s >= SLOW_S
    ]
    retries = [f"{counted(stats.retrying, 'URL')} waiting", *map(_retry, stats.retries)]
    spent = [duration(stats.seconds)] + ([] if stats.left_s is None else [f"{duration(stats.left_s)} left"])
    rows = [("pages", pages, "bold green"), ("queued", queued, ""), ("hosts", hosts, "")]
    if stats.run_visits or stats.revisiting:
        again = [f"{count(stats.run_visits)} revisited, {count(stats.run_changed)} changed"]
        again += [f"{count(stats.run_not_modified)} not modified", f"{count(stats.revisiting)} waiting"]
        rows.insert(1, ("visits", again, "bold green"))
    rows.append(("failed", errors or ["none"], "red" if errors else ""))
    rows += [("retries", retries, "yellow")] if stats.retrying else []
    rows += [("slowest", slowest, "")] if slowest else []
    return [*rows, ("time", spent, "")]


def _retry(retry: Retry) -> str:
    when = f"in {duration(retry.in_s)}" if retry.in_s else "when its turn comes"
    return f"{retry.next_try} {when}: {retry.url}"
