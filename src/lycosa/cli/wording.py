"""How the command line writes for people: numbers and times as everywhere (`lycosa.wording`), reasons, lines that fit,
how far a long command is, and only what the terminal can show.
"""

import sys
import time
from collections.abc import Iterable, Mapping
from typing import TextIO

import msgspec

from lycosa.wording import counted as counted
from lycosa.wording import duration as duration
from lycosa.wording import folder_word as folder_word
from lycosa.wording import rate as rate
from lycosa.wording import size as size

# In a terminal; a drawing of a crawl costs 0.7 ms of the one thread that crawls: 0.3 % of it at this pace.
REDRAW_S = 0.25
LINE_S = 5.0  # elsewhere: the log of an hour stays readable


def count(number: int) -> str:
    """`12,345`."""
    return f"{number:,}"


def reason(name: str) -> str:
    """`out-of-scope` → `out of scope`."""
    return name.replace("-", " ")


def most_first(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    """The largest first, equal ones by name; what is zero is left out."""
    return sorted(((name, many) for name, many in counts.items() if many), key=lambda pair: (-pair[1], pair[0]))


def fit(items: Iterable[str], width: int) -> str:
    """As many items as a line has room for, and how many are left out: `5 connect, 3 dns, +2`."""
    all_items = list(items)
    for kept in range(len(all_items), 0, -1):
        left_out = len(all_items) - kept
        line = ", ".join(all_items[:kept] + ([f"+{left_out}"] if left_out else []))
        if len(line) <= width or kept == 1:
            return line
    return ""


def printable(text: str, encoding: str) -> str:
    """Text that came from elsewhere, on one line, in what a terminal can show: no control characters."""
    shown = "".join(c if c.isprintable() else " " for c in text)
    return shown.encode(encoding, "replace").decode(encoding)


def say(line: str) -> None:
    """A line with text that came from elsewhere, on standard output."""
    print(printable(line, sys.stdout.encoding))


def say_json(value: object, *, stream: TextIO | None = None) -> None:
    """A JSON object on standard output, or on another stream."""
    (stream or sys.stdout).buffer.write(msgspec.json.encode(value) + b"\n")


def note(text: str) -> None:
    """A line beside the answer, on standard error."""
    print(text, file=sys.stderr)


class ProgressLine:
    """How far a long command is, on standard error: a line that is drawn again in a terminal, elsewhere one now and
    then. A command derives its own, which draws when `is_due`."""

    def __init__(self) -> None:
        self._is_terminal = sys.stderr.isatty()
        self._every_s = REDRAW_S if self._is_terminal else LINE_S
        self._began_s = time.monotonic()
        self._next_s = self._began_s + self._every_s
        self._has_drawn = False

    @property
    def is_due(self) -> bool:
        return time.monotonic() >= self._next_s

    def pace(self, done: int) -> str:
        """How much was done in a second, since the beginning."""
        return f"{rate(done / max(0.001, time.monotonic() - self._began_s))}/s"

    def draw(self, line: str) -> None:
        self._next_s, self._has_drawn = time.monotonic() + self._every_s, self._is_terminal
        start, end = ("\r", "\x1b[K") if self._is_terminal else ("", "\n")
        print(f"{start}{line}", file=sys.stderr, end=end, flush=True)

    def end(self) -> None:
        """Makes room for what the command says."""
        if self._has_drawn:
            print("\r\x1b[K", file=sys.stderr, end="", flush=True)
