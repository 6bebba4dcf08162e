"""The text of PDF documents, read by pypdfium2 (the extra `pdf`) in a process of its own: `read_pdf(body)`.

PDF is a large format and its readers have had bugs: see `reader_process`. The child is `web.pdf_child`; the pages that
it read before a failure are kept. One child serves all documents of a process, one after the other; it ends with it.
Nothing raises on any bytes; without the extra a document has no text. Called by `readable` and `metadata`, when
somebody asks for the text of a document; never by a crawl.
"""

import importlib.util
import json
import re
from functools import cache
from typing import Any

import msgspec

from lycosa.web.date import iso_date
from lycosa.web.reader_process import ReaderLimits, ReaderProcess, borrowed

MEMORY_BYTES = 1 << 30  # of address space; a large document takes 100 MB
SECONDS = 15.0  # for one document; a page takes a millisecond
MAX_PAGES = 2_000
MAX_CHARS = 5_000_000
DOCUMENTS = 200  # that one child reads: what a library leaks is given back

_PDF_DATE = re.compile(r"(?:D:)?(\d{4})(\d\d)?(\d\d)?(?:(\d\d)(\d\d)(\d\d)?)?(Z|[+-]\d\d)?'?(\d\d)?")
_HYPHEN = re.compile("[\x02\ufffe]\r?\n?")  # one that the end of a line made
_SPACE = re.compile(r"[^\S\n]+")
_BLANK = re.compile(r"\s*\n\s*")


class PdfText(msgspec.Struct, frozen=True):
    """A document as far as it could be read: its title, author, subject and dates (ISO 8601), the text of each page, of
    how many there are, and what kept the rest from being read."""

    title: str = ""
    author: str = ""
    subject: str = ""
    created: str = ""
    modified: str = ""
    pages: tuple[str, ...] = ()
    page_count: int = 0
    error: str = ""

    @property
    def text(self) -> str:
        return "\n".join(filter(None, self.pages))


@cache
def can_read_pdf() -> bool:
    """Whether the extra is installed."""
    return importlib.util.find_spec("pypdfium2") is not None


def read_pdf(body: bytes) -> PdfText:
    """What a PDF document says."""
    if not can_read_pdf():
        return PdfText(error="its reader is not installed")
    with borrowed(PdfProcess) as reader:
        return reader.read(body)


class PdfProcess(ReaderProcess):
    """A child that reads PDF documents."""

    program = "pdf_child.py"

    def limits(self) -> ReaderLimits:
        arguments = (MEMORY_BYTES, int(SECONDS), MAX_PAGES, MAX_CHARS)
        return ReaderLimits(SECONDS, 4 * MAX_CHARS + (1 << 20), DOCUMENTS, arguments)

    def read(self, body: bytes) -> PdfText:
        """Reads one document, as far as that is possible."""
        found: dict[str, Any] = {"pages": []}

        def take(kind: bytes, value: bytes) -> None:
            if kind == b"P":
                found["pages"].append(_clean(value.decode("utf-8", "replace")))
            elif kind == b"M":
                found["about"] = json.loads(value)
            else:
                found.update(count=(end := json.loads(value))["pages"], error=end["error"])

        if error := self.exchange(body, take):
            found["error"] = error
        return _text_of(found)


def _text_of(found: dict[str, Any]) -> PdfText:
    about = found.get("about") or {}
    words = {name: " ".join(str(about.get(name, "")).split()) for name in ("Title", "Author", "Subject")}
    return PdfText(
        title=words["Title"],
        author=words["Author"],
        subject=words["Subject"],
        created=pdf_date(about.get("CreationDate", "")),
        modified=pdf_date(about.get("ModDate", "")),
        pages=tuple(found["pages"]),
        page_count=found.get("count", len(found["pages"])),
        error=found.get("error", ""),
    )


def _clean(text: str) -> str:
    """The text of a page, a line for each line, words that a line end cut in two made whole."""
    lines = _HYPHEN.sub("", text).replace("\r", "\n").replace("\0", "")
    return _BLANK.sub("\n", _SPACE.sub(" ", lines)).strip()


def pdf_date(written: str) -> str:
    """A date of a PDF document, `D:20240501100000+02'00'`, by ISO 8601; empty for what is none."""
    found = _PDF_DATE.match(written.strip())
    if found is None:
        return ""
    year, month, day, hour, minute, second, zone, zone_minute = found.groups()
    text = "-".join(filter(None, (year, month, day)))
    if hour:
        offset = "Z" if zone in (None, "Z") else f"{zone}:{zone_minute or '00'}"
        text += f"T{hour}:{minute}:{second or '00'}{offset}"
    return iso_date(text)
