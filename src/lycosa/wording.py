"""How numbers, sizes and times are written for people: alike on terminals, on pages and in sentences, in ASCII.

Files for machines and JSON get the numbers themselves. Cells of CSV files that come from the web are written so that no
spreadsheet takes them for a formula.
"""

import shlex
import time
from pathlib import Path

_SIZES = ("B", "kB", "MB", "GB", "TB")
_FORMULA_STARTS = frozenset("=+-@\t\r\n|%＝＋－＠")  # and of commands; the full-width spellings, too


def counted(number: int, thing: str) -> str:
    """`1 page`, `12,345 pages`, `2 addresses`."""
    ending = "" if number == 1 else "es" if thing.endswith("s") else "s"
    return f"{number:,} {thing}{ending}"


def folder_word(folder: Path) -> str:
    """A folder as it is typed in a shell; one whose name begins with a dash is no option."""
    name = str(folder)
    return shlex.quote(f"./{name}" if name.startswith("-") else name)


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


def duration(seconds: float) -> str:
    """`0.4 s`, `42 s`, `3m 12s`, `2h 05m`, `3d 04h`."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    minutes, s = divmod(round(seconds), 60)
    hours, m = divmod(minutes, 60)
    days, h = divmod(hours, 24)
    if days:
        return f"{days:,}d {h:02}h"
    if hours:
        return f"{hours}h {m:02}m"
    return f"{minutes}m {s:02}s" if minutes else f"{s} s"


def clock(unix_s: float, *, now_unix: float) -> str:
    """The time of day where the user is, `14:05:00`; on another day than today with its date."""
    then, today = time.localtime(unix_s), time.localtime(now_unix)
    return time.strftime("%H:%M:%S" if then[:3] == today[:3] else "%Y-%m-%d %H:%M:%S", then)


def safe_cell(value: str) -> str:
    """The text with an apostrophe before it where a spreadsheet would take it for a formula, and without NUL."""
    if not value:
        return value
    text = value.replace("\0", "") if "\0" in value else value
    return f"'{text}" if text[:1] in _FORMULA_STARTS or text.lstrip(" ")[:1] in _FORMULA_STARTS else text
