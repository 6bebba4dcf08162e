"""How far a run is, on standard error: a bar in a terminal, otherwise now and then a line.

Neither starts a thread: what is shown moves when the experiment says so, and nothing runs beside what it measures.
Chosen by the command line, used by experiments through `Run.progress`.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol, TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

REDRAW_S = 0.1  # fast enough to look alive, rare enough to cost nothing
LINE_S = 5.0  # a log of an hour's run stays readable


class Step(Protocol):
    """The hand of one task: moved by the experiment."""

    def advance(self, count: int = 1) -> None: ...


class ProgressSteps(Protocol):
    """`shown` is around a whole run; inside it tasks follow or enclose one another."""

    def shown(self) -> AbstractContextManager[None]: ...

    def task(self, total: int, label: str) -> AbstractContextManager[Step]: ...

    def say(self, words: str) -> None: ...


def view_on(stream: TextIO) -> ProgressSteps:
    """The view that suits the stream."""
    console = Console(file=stream, highlight=False, markup=False, emoji=False)
    return TerminalSteps(console) if console.is_terminal and not console.is_dumb_terminal else LineSteps(stream)


class LineSteps:
    """Plain lines, at most one every `LINE_S` over all tasks."""

    def __init__(self, stream: TextIO, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._clock = clock
        self._next_s = clock()

    @contextmanager
    def shown(self) -> Iterator[None]:
        yield

    @contextmanager
    def task(self, total: int, label: str) -> Iterator[Step]:
        yield _Counter(lambda done: self._show(done, total, label))

    def say(self, words: str) -> None:
        self._stream.write(f"· {words}\n")
        self._stream.flush()

    def _show(self, done: int, total: int, label: str) -> None:
        now = self._clock()
        if now >= self._next_s:
            self._next_s = now + LINE_S
            self._stream.write(f"{label}: {done:,} of {total:,}\n")
            self._stream.flush()


class TerminalSteps:
    """A bar for each task that is under way; gone when the run ends."""

    def __init__(self, console: Console, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._next_s = clock()
        self._bars = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=console,
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
        )

    @contextmanager
    def shown(self) -> Iterator[None]:
        with self._bars:
            yield

    @contextmanager
    def task(self, total: int, label: str) -> Iterator[Step]:
        bar = self._bars.add_task(label, total=total)
        try:
            yield _Counter(lambda done: self._show(bar, done))
        finally:
            self._bars.remove_task(bar)

    def say(self, words: str) -> None:
        self._bars.console.print(f"· {words}")

    def _show(self, bar: TaskID, done: int) -> None:
        now = self._clock()
        if now >= self._next_s:
            self._next_s = now + REDRAW_S
            self._bars.update(bar, completed=done, refresh=True)


class _Counter:
    """Counts one task's steps and tells its view each time."""

    def __init__(self, show: Callable[[int], None]) -> None:
        self._done = 0
        self._show = show
        show(0)

    def advance(self, count: int = 1) -> None:
        self._done += count
        self._show(self._done)
