"""What tables of links and of volatile information have in common: their name, their lines, their limits.

    # tol 1                      the first line: which table, which version
    # of: page.html              header lines, `# name: value`; unknown names are passed over
    internal<TAB>/a.html<TAB>A   rows: fields between tabs; backslash, tab, line feed and return are escaped

Pure. Whatever the bytes, reading gives a table or a `Refusal` that says why it is ignored; a table that is broken in
one line is ignored as a whole. The format is specified in docs/formats.md. Used by `web.tol` and `web.tvi`.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

VERSION = 1
MAX_BYTES = 4_000_000
MAX_ROWS = 50_000
MAX_LINE_BYTES = 64 * 1024
MAX_HEADERS = 32

# The last part of a name that says what a file is, not which one: `.html`, but not the `.2` of `v1.2`.
_EXTENSION = re.compile(r"(?<=[^/])\.[A-Za-z][A-Za-z0-9]{0,4}\Z")
_HEADER = re.compile(r"# ([a-z-]{1,32}): ([^\x00-\x1f\x7f]*)\Z")
_ESCAPE = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"}
_ESCAPED = re.compile(r"[\\\t\n\r]")
_UNESCAPE = {escape: letter for letter, escape in _ESCAPE.items()}
_BACKSLASH = re.compile(r"\\.?", re.DOTALL)


class Refusal(StrEnum):
    """Why a table is ignored."""

    NOT_A_TABLE = "not a table"  # what a host answers that has a page for every address
    VERSION = "a version that is not known"
    TOO_LARGE = "too large"
    ENCODING = "not UTF-8"
    BROKEN = "a line that means nothing"
    OTHER_DOCUMENT = "of another document"
    FRAME_CHANGED = "more than the volatile parts has changed"
    NOT_WHAT_IT_SAYS = "its digest is of something else"


class Rows(NamedTuple):
    """A table as read: header fields, and rows of fields with escapes undone."""

    headers: dict[str, str]
    rows: list[list[str]]


def read(body: bytes, word: str) -> Rows | Refusal:
    """The table `word` (tol, tvi) in `body`."""
    if len(body) > MAX_BYTES:
        return Refusal.TOO_LARGE
    body = body.removeprefix(b"\xef\xbb\xbf")
    start = f"# {word} ".encode()
    if not body.startswith(start):
        return Refusal.NOT_A_TABLE
    try:
        lines = body.decode().replace("\r\n", "\n").split("\n")
    except UnicodeDecodeError:
        return Refusal.ENCODING
    if lines[0] != f"# {word} {VERSION}":
        return Refusal.VERSION if lines[0][len(start) :].isdecimal() else Refusal.NOT_A_TABLE
    if lines[-1]:  # cut on its way: the last line is not whole
        return Refusal.BROKEN
    return _read_lines(lines[1:-1])


def read_headers(body: bytes, word: str) -> dict[str, str] | Refusal:
    """The header fields alone, which is quick; the rows are not looked at."""
    lines = body[: MAX_HEADERS * 4096].split(b"\n", MAX_HEADERS + 1)
    headers = [line for line in lines if line.startswith(b"# ")]
    found = read(b"\n".join([*headers, b""]), word)
    return found if isinstance(found, Refusal) else found.headers


def _read_lines(lines: list[str]) -> Rows | Refusal:
    first = next((i for i, line in enumerate(lines) if not line.startswith("# ")), len(lines))
    if first > MAX_HEADERS or len(lines) - first > MAX_ROWS:
        return Refusal.TOO_LARGE
    headers: dict[str, str] = {}
    for line in lines[:first]:
        header = _HEADER.match(line)
        if header is None or header[1] in headers:
            return Refusal.BROKEN
        headers[header[1]] = header[2]
    if max(map(len, lines), default=0) > MAX_LINE_BYTES:
        return Refusal.TOO_LARGE
    rows = [line.split("\t") for line in lines[first:]]
    if not any("\\" in line for line in lines):
        return Rows(headers, rows)
    try:
        headers = {name: _unescaped(value) for name, value in headers.items()}
        return Rows(headers, [[_unescaped(field) for field in row] for row in rows])
    except KeyError:
        return Refusal.BROKEN


def write(word: str, headers: Mapping[str, str], *columns: Sequence[str]) -> bytes | Refusal:
    """The bytes of a table; empty headers and empty last fields are left out. Refused if nobody would read it."""
    lines = [f"# {word} {VERSION}"]
    for name, value in headers.items():
        if value:
            if _HEADER.match(line := f"# {name}: {_escaped(value)}") is None:
                return Refusal.BROKEN
            lines.append(line)
    start = len(lines)
    escaped = [list(map(_escaped, column)) if _ESCAPED.search("\0".join(column)) else column for column in columns]
    lines += [line.rstrip("\t") for line in map("\t".join, zip(*escaped, strict=True))]
    try:
        body = "\n".join([*lines, ""]).encode()
    except UnicodeEncodeError:
        return Refusal.ENCODING
    is_large = len(lines) - start > MAX_ROWS or len(body) > MAX_BYTES or max(map(len, lines)) > MAX_LINE_BYTES
    return Refusal.TOO_LARGE if is_large else body


def _escaped(field: str) -> str:
    return _ESCAPED.sub(lambda found: _ESCAPE[found[0]], field) if _ESCAPED.search(field) else field


def _unescaped(field: str) -> str:
    return _BACKSLASH.sub(lambda found: _UNESCAPE[found[0]], field) if "\\" in field else field


# names and digests


def beside(url: str, word: str) -> str | None:
    """Where the table of a document is: same name, other extension; `index` for a folder. None for a table itself.

    A query stays where it is. Takes URLs and paths alike, without a fragment.
    """
    path, mark, query = url.partition("?")
    head, slash, name = path.rpartition("/")
    stem = _EXTENSION.sub("", name) if name else "index"
    if name.endswith((".tol", ".tvi")):
        return None
    return f"{head}{slash}{stem}.{word}{mark}{query}"


def is_of(of: str, url: str) -> bool:
    """Whether a table whose header says `of` can be that of the document at `url`; an empty header fits all."""
    name = url.partition("?")[0].rpartition("/")[2]
    return not of or of == name or (not name and of.startswith("index."))


def digest_of(body: bytes) -> str:
    """A digest as tables write it."""
    return f"sha-256={hashlib.sha256(body).hexdigest()}"
