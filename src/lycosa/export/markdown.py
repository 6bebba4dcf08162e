"""Markdown: a folder with a file for each page, which begins with what is known of it as YAML front matter.

Files are named after URLs (`names`), in a folder for each host. The values of the front matter are strings in double
quotes, numbers and flow collections, so that any YAML reader takes any page.
"""

import json
import os
import re
from typing import Any

from lycosa.export.format import ExportFormat, ExportSource, Shape
from lycosa.export.jsonl import clean_text, content_of
from lycosa.export.names import file_name
from lycosa.export.output import Output
from lycosa.inspect import StoredPage

# What YAML does not take as it is, or takes for the end of a line.
_UNPRINTABLE = re.compile("[^\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")
_FOLDERS_KNOWN = 10_000
_encode = json.JSONEncoder(ensure_ascii=False).encode  # `json.dumps` would make an encoder for each value


class MarkdownFolder(ExportFormat):
    """One Markdown file a page."""

    shape = Shape.FOLDER

    def begin(self, out: Output, source: ExportSource) -> None:
        super().begin(out, source)
        self._folder = os.fspath(out.folder)
        self._made: set[str] = set()  # folders, which need not be made again

    def add(self, page: StoredPage) -> None:
        content = clean_text(content_of(page, "markdown", self.extractor))  # first: the language is told by its text
        data = front_matter(page) + content.encode() + b"\n"
        mark = "" if page.is_current else re.sub(r"[-:]", "", page.fetched)
        name = file_name(page.url, ".md", mark)
        folder = name.rpartition("/")[0]
        if folder not in self._made:
            (self.out.folder / folder).mkdir(parents=True, exist_ok=True)
            self._made = self._made if len(self._made) < _FOLDERS_KNOWN else set()
            self._made.add(folder)
        self.out.written += len(data)
        _write_file(f"{self._folder}/{name}", data)


def _write_file(path: str, data: bytes) -> None:
    """Writes a file with no more calls of the system than that takes: a file object makes three before it writes."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    try:
        while data:
            data = data[os.write(file, data) :]
    finally:
        os.close(file)


def front_matter(page: StoredPage) -> bytes:
    """The block between two lines of hyphens."""
    known: dict[str, Any] = {
        "url": page.url,
        "title": page.title,
        "fetched": page.fetched,
        "status": page.status,
        "content_type": page.content_type,
        "language": page.language,
        "depth": page.depth,
        "duplicate_of": page.duplicate_of,
        "fields": dict(page.fields),
    }
    lines = [f"{name}: {_yaml(value)}" for name, value in known.items() if value not in ("", None, {})]
    return "\n".join(["---", *lines, "---", "", ""]).encode()


def _yaml(value: Any) -> str:
    """A value on one line: JSON is YAML, but for characters that YAML wants escaped."""
    return _UNPRINTABLE.sub(_escaped, clean_text(_encode(value)))


def _escaped(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"
