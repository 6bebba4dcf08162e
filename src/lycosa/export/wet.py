"""WET: the readable text of pages as `conversion` records, as Common Crawl gives it, each with the record it is of."""

from lycosa.export.format import ExportFormat, ExportSource, Shape
from lycosa.export.jsonl import content_of
from lycosa.export.output import Output
from lycosa.export.warc import info_record
from lycosa.inspect import StoredPage
from lycosa.store import WarcLocation, conversion
from lycosa.web import three_letters


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
