"""URLs from a file or standard input: one a line, blank lines and lines that begin with # left out.

Used by the commands that take `-i FILE`. Whether a line is a URL is for the settings to say.
"""

import sys
from pathlib import Path

from lycosa.errors import SettingsError

STANDARD_INPUT = "-"


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
    lines = (line.strip() for line in text.split("\n"))
    return [line for line in lines if line and not line.startswith("#")]
