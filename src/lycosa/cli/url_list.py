"""URLs from a file or standard input: one a line, blank lines and lines that begin with # left out.

Used by the commands that take `-i FILE`. A line that is no URL is named by its number.
"""

import sys
from pathlib import Path

from lycosa.errors import SettingsError

STANDARD_INPUT = "-"
SHOWN_CHARS = 60  # of a line that is no URL


def read_urls(file: str) -> list[str]:
    """The lines of a list of URLs; `-` is standard input."""
    name = "standard input" if file == STANDARD_INPUT else file
    try:
        raw = sys.stdin.buffer.read() if file == STANDARD_INPUT else Path(file).read_bytes()
    except OSError as error:
        raise SettingsError(f"-i: cannot read {name}: {error.strerror or error}") from error
    except ValueError as error:  # a file name with a null byte
        raise SettingsError(f"-i: {file!r} is no file name") from error
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise SettingsError(f"-i: {name}, line {line}, is not UTF-8 text") from error
    lines = [line.strip() for line in text.split("\n")]
    return [_seed(line, name, number) for number, line in enumerate(lines, 1) if line and not line.startswith("#")]


def _seed(line: str, name: str, number: int) -> str:
    """The URL in a line, as the settings write it."""
    from lycosa.settings import values

    try:
        return values.seed(values.text(line))
    except values.Unfit as unfit:
        shown = repr(line) if len(line) <= SHOWN_CHARS else f"{line[:SHOWN_CHARS]!r}…"
        raise SettingsError(f"-i: {name}, line {number}, is {shown}, {unfit.phrase}") from unfit
