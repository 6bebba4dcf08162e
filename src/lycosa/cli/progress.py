"""How a crawl is doing, on standard error: a live view in a terminal, otherwise now and then a line.

A view is told of the crawl by `show` as often as the engine likes and draws when it is time; it starts no thread and
never ends a crawl: one that cannot be written to any more falls silent. Chosen by `view_on`, closed by its caller.
"""

import time
from collections.abc import Callable
from typing import Protocol, TextIO

from lycosa.cli.wording import count, counted, duration, printable, rate, size
from lycosa.crawl.stats import CrawlStats

# A log of an hour's crawl stays readable.
LINE_S = 5.0
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
    if not stream.isatty():
        return LineView(stream)
    from lycosa.cli.live import terminal_view

    return terminal_view(stream) or LineView(stream)


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


def line_of(stats: CrawlStats, encoding: str = UTF_8) -> str:
    """A crawl at one moment, in a line for a log."""
    hosts = f"hosts {count(stats.hosts_active)} active {count(stats.hosts_waiting)} waiting"
    parts = [
        counted(stats.pages, "page"),
        f"{rate(stats.pages_per_s)}/s",
        size(stats.bytes),
        f"{count(stats.queued)} queued",
        f"{hosts} {count(stats.hosts_parked)} parked",
        f"{count(sum(stats.failed.values()))} failed",
    ]
    if stats.run_visits or stats.revisiting:
        parts.insert(1, f"{count(stats.run_visits)} looked at again, {count(stats.run_changed)} changed")
    if stats.retrying:
        parts.append(f"{count(stats.retrying)} to be tried again")
    if stats.left_s is not None:
        parts.append(f"{duration(stats.left_s)} left")
    line = ", ".join(parts)
    return f"{line}; {printable(stats.standing, encoding)}" if stats.standing else line
