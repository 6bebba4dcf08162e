"""How far a run is, on standard error: a line that is written over in a terminal, otherwise now and then a new one.

No thread is started: what is shown moves when the experiment says so, and nothing runs beside what it measures.
Made by the command line, used by experiments through `Run.progress` and `Run.say`.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

REDRAW_S = 0.1  # fast enough to look alive, rare enough to cost nothing
LINE_S = 5.0  # a log of an hour's run stays readable
CLEAR = "\r\x1b[K"  # back to the beginning of the line, and empty it


class ProgressSteps:
    """Shows tasks, which follow or enclose one another: at most one line every `LINE_S` over all of them."""

    def __init__(self, stream: TextIO, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream, self._clock, self._is_terminal = stream, clock, stream.isatty()
        self._next_s = clock()

    @contextmanager
    def task(self, total: int, label: str) -> Iterator["Step"]:
        try:
            yield Step(lambda done: self._show(done, total, label))
        finally:
            if self._is_terminal:
                self._write(CLEAR)

    def say(self, words: str) -> None:
        self._write(f"{CLEAR if self._is_terminal else ''}· {words}\n")

    def _show(self, done: int, total: int, label: str) -> None:
        now, words = self._clock(), f"{label}: {done:,} of {total:,}"
        if now >= self._next_s:
            self._next_s = now + (REDRAW_S if self._is_terminal else LINE_S)
            self._write(f"{CLEAR}{words}" if self._is_terminal else f"{words}\n")

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


class Step:
    """The hand of one task, moved by the experiment."""

    def __init__(self, show: Callable[[int], None]) -> None:
        self._done, self._show = 0, show
        show(0)

    def advance(self, count: int = 1) -> None:
        self._done += count
        self._show(self._done)
