"""How the command line writes for people: numbers and times as everywhere (`lycosa.wording`), reasons, lines that fit,
and only what the terminal can show.
"""

import sys
from collections.abc import Iterable, Mapping
from typing import TextIO

import msgspec

from lycosa.wording import counted as counted
from lycosa.wording import duration as duration
from lycosa.wording import rate as rate
from lycosa.wording import size as size


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
