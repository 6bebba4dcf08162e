"""WARC: the records of the selected pages, copied as they are, with their requests and metadata, behind a warcinfo.

No record is compressed again. A copy whose original may not be in the export becomes a response with the body. The file
can be cut at any record, so that an export is resumed.
"""

from lycosa.export.format import ExportFormat, ExportSource, Shape
from lycosa.export.members import ArchiveMembers
from lycosa.export.output import Output
from lycosa.inspect import StoredPage
from lycosa.store import WarcLocation, warcinfo
from lycosa.version import __version__


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
