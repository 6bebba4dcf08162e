"""How the command line writes numbers, sizes, times and reasons for people: in ASCII, so that every terminal can.

Files for machines and `--json` get the numbers themselves.
"""

import sys
from collections.abc import Iterable, Mapping
from typing import TextIO

import msgspec

from lycosa.crawl import duration as duration  # written alike in all of it

_SIZES = ("B", "kB", "MB", "GB", "TB")


def count(number: int) -> str:
    """`12,345`."""
    return f"{number:,}"


def counted(number: int, thing: str) -> str:
    """`1 page`, `12,345 pages`, `2 addresses`."""
    ending = "" if number == 1 else "es" if thing.endswith("s") else "s"
    return f"{number:,} {thing}{ending}"


def rate(per_s: float) -> str:
    """`0.42`, `8.3`, `1,204`: as many digits as say something."""
    decimals = 0 if per_s >= 100 else 1 if per_s >= 1 or not per_s else 2
    return f"{per_s:,.{decimals}f}"


def size(size_bytes: float) -> str:
    """`999 B`, `1.5 MB`, `152 MB`; decimal units."""
    for unit in _SIZES:
        if size_bytes < 999.5 or unit == _SIZES[-1]:
            break
        size_bytes /= 1000
    return f"{size_bytes:,.0f} {unit}" if unit == "B" or size_bytes >= 99.95 else f"{size_bytes:.1f} {unit}"


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
