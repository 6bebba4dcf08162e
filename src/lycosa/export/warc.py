"""WARC: the records of the selected pages, copied as they are, with their requests and metadata, behind a warcinfo.
WET: the readable text of pages as `conversion` records, as Common Crawl gives it, each with the record it is of.

No record is compressed again. A copy whose original may not be in the export becomes a response with the body. The file
can be cut at any record, so that an export is resumed.
"""

from lycosa.export.format import ExportFormat, ExportSource, Shape
from lycosa.export.jsonl import content_of
from lycosa.export.members import ArchiveMembers
from lycosa.export.output import Output
from lycosa.inspect import StoredPage
from lycosa.store import WarcLocation, conversion, warcinfo
from lycosa.version import __version__
from lycosa.web import three_letters


def info_record(source: ExportSource, filename: str) -> bytes:
    """The record that an exported WARC file opens with."""
    fields = {
        "software": f"lycosa/{__version__}",
        "format": "WARC File Format 1.1",
        "description": f"exported from {source.collection.path.name}",
    }
    return warcinfo(fields, filename=filename, created_s=source.began_s)


class WarcCopy(ExportFormat):
    """One WARC file, a gzip member a record."""

    suffix = ".warc.gz"
    shape = Shape.FILE
    takes_answers = needs_records = True
    compresses_itself = True

    def begin(self, out: Output, source: ExportSource) -> None:
        super().begin(out, source)
        self._members = ArchiveMembers(source.collection)
        if not out.is_resumed:
            out.write(info_record(source, f"{source.collection.path.name}.warc.gz"))

    def add(self, page: StoredPage) -> None:
        for member in self._members.exchange(WarcLocation.unpack(page.row.place), wants_whole=True):
            self.out.write(member)

    def finish(self) -> None:
        self._members.close()


class WetTexts(ExportFormat):
    """One WARC file of texts; pages without text are left out."""

    suffix = ".wet.gz"
    shape = Shape.FILE
    compresses_itself = True

    def begin(self, out: Output, source: ExportSource) -> None:
        super().begin(out, source)
        if not out.is_resumed:
            out.write(info_record(source, f"{source.collection.path.name}.wet.gz"))

    def takes(self, page: StoredPage) -> bool:
        return self._text(page) != ""

    def _text(self, page: StoredPage) -> str:
        return content_of(page, "text", self.extractor).strip()

    def add(self, page: StoredPage) -> None:
        record = self.source.collection.record(WarcLocation.unpack(page.row.place))
        member = conversion(
            page.url,
            self._text(page).encode("utf-8", "replace") + b"\n",
            fetched_s=page.row.fetched_s,
            refers_to=record.header("WARC-Record-ID") or "",
            language=three_letters(page.language),
        )
        self.out.write(member)
