"""CSV: a header, then a line a page, with the columns of `COLUMNS`, one for each field by CSS, and where asked for the
content. Several values of a field stand below each other in one cell.

As RFC 4180 has it: UTF-8, lines end with CR LF, cells with commas, quotes or newlines are quoted. A cell that a
spreadsheet would take for a formula gets an apostrophe in front (`wording.safe_cell`). NUL and lone surrogates become
U+FFFD.
"""

import csv
import io
from collections.abc import Iterable, Sequence

from lycosa.export.format import ExportFormat, ExportSource
from lycosa.export.jsonl import clean_text, content_of
from lycosa.export.output import Output
from lycosa.inspect import StoredPage
from lycosa.web import FieldValue
from lycosa.wording import safe_cell

COLUMNS = (
    "url", "status", "fetched", "content_type", "title", "language", "depth", "bytes", "duplicate_of", "preferences",
)  # fmt: skip


class CsvTable(ExportFormat):
    """A table of pages."""

    suffix = ".csv"

    def __init__(self, content: str = "none") -> None:
        self._content = content

    def begin(self, out: Output, source: ExportSource) -> None:
        super().begin(out, source)
        if not out.is_resumed:
            more = () if self._content == "none" else (self._content,)
            out.write(csv_line((*COLUMNS, *source.field_names, *more)))

    def add(self, page: StoredPage) -> None:
        cells: list[str | int] = [
            page.url,
            page.status,
            page.fetched,
            page.content_type,
            page.title,
            page.row.language if self._content == "none" else page.language,  # detection reads the body
            page.depth,
            page.sent_bytes,
            page.duplicate_of,
            "; ".join(page.row.preferences.splitlines()),
        ]
        if self.source.field_names:
            cells += [_cell(page.fields.get(name)) for name in self.source.field_names]
        if self._content != "none":
            cells.append(content_of(page, self._content, self.extractor))
        self.out.write(csv_line(cells))


def _cell(value: FieldValue | None) -> str:
    return "" if value is None else value if isinstance(value, str) else "\n".join(value)


def csv_line(cells: Iterable[str | int]) -> bytes:
    """A line of a table, in which no cell is a formula."""
    return csv_lines([[text_cell(cell) if isinstance(cell, str) else cell for cell in cells]])


def csv_lines(rows: Iterable[Sequence[str | int]]) -> bytes:
    """Lines of a table whose cells are safe already."""
    lines = io.StringIO()
    csv.writer(lines).writerows(rows)
    return lines.getvalue().encode()


def text_cell(text: str) -> str:
    """The text as a cell that is never a formula and always UTF-8."""
    return safe_cell(clean_text(text.replace("\0", "\ufffd")))
