"""CDXJ: the sorted index of captures that replay tools read, one line for each, with where its record is.

    org,example)/p 20261116080247 {"url":…,"mime":…,"status":…,"digest":…,"length":…,"offset":…,"filename":…}

The lines are made from the rows of pages, without reading a record, but for copies: those are revisits, and their type
is `warc/revisit`. An export of everything has all versions of every page; the file names are those of `DIR/warc`.
"""

import heapq
from base64 import b32encode
from collections.abc import Iterator
from pathlib import Path

import msgspec

from lycosa.export.format import ExportFormat, ExportSource
from lycosa.export.members import ArchiveMembers
from lycosa.export.output import Output, reported
from lycosa.inspect import StoredPage
from lycosa.records import Family
from lycosa.recrawl import split_change_key, unpack_change, version_row
from lycosa.store import CollectionStore, PageRow, WarcLocation, page_at, warc_path
from lycosa.web import format_capture_time, surt_key, url_from_key

REVISIT = "warc/revisit"
RUN_BYTES = 32 << 20  # of lines that are sorted in memory; with what Python adds, some 100 MB


class CdxLine(msgspec.Struct):
    """The JSON of a line. Numbers are strings."""

    url: str
    mime: str
    status: str
    digest: str
    length: str
    offset: str
    filename: str


_encode = msgspec.json.Encoder().encode


def cdx_line(url: str, fetched_s: float, about: CdxLine) -> bytes:
    """A line, with its newline."""
    captured = format_capture_time(fetched_s)
    return b"%b %b %b\n" % (surt_key(url).encode(), captured.encode(), _encode(about))


class CdxLines:
    """Makes the lines of captures, where they are in the archive."""

    def __init__(self, collection: CollectionStore) -> None:
        self._members = ArchiveMembers(collection)

    def of(self, url: str, row: PageRow, *, is_copy: bool) -> bytes | None:
        """The line of a row; None where it has no record."""
        if not row.place:
            return None
        place = WarcLocation.unpack(row.place)
        mime = REVISIT if is_copy and self._members.is_revisit(place) else mime_of(row)
        return cdx_line(
            url, row.fetched_s, about_record(url, row, place, mime, warc_path(Path(), place.file_number).name)
        )


def mime_of(row: PageRow) -> str:
    """The media type of a row as an index names it: `unk` where the row does not know it."""
    return "unk" if row.is_sitemap else row.essence or "unk"


def about_record(url: str, row: PageRow, place: WarcLocation, mime: str, filename: str) -> CdxLine:
    digest = f"sha1:{b32encode(row.payload_sha1).decode()}" if row.payload_sha1 else "-"
    return CdxLine(url, mime, str(row.status), digest, str(place.length), str(place.offset), filename)


class CdxIndex(ExportFormat):
    """The lines of all captures, sorted at the end."""

    suffix = ".cdxj"
    resumes = False
    takes_answers = needs_records = True

    def begin(self, out: Output, source: ExportSource) -> None:
        super().begin(out, source)
        self._sorted, self._lines = SortedLines(out.scratch), CdxLines(source.collection)

    def add(self, page: StoredPage) -> None:
        if line := self._lines.of(page.url, page.row, is_copy=bool(page.row.original)):
            self._sorted.add(line)

    def finish(self) -> None:
        if self.source.selection.is_everything:
            for line in version_lines(self.source.collection, self._lines):
                self._sorted.add(line)
        for line in self._sorted:
            self.out.write(line)


def version_lines(collection: CollectionStore, lines: CdxLines) -> Iterator[bytes]:
    """The lines of the earlier versions in the histories of pages."""
    for packed_key, packed in collection.state.walk(Family.CHANGE):
        change = unpack_change(packed)
        key, at_s = split_change_key(packed_key)
        if not change.place or ((now := page_at(collection.state, key)) is not None and now.place == change.place):
            continue
        if line := lines.of(url_from_key(key), version_row(at_s, change), is_copy=True):
            yield line


class SortedLines:
    """Takes more lines than memory holds, in any order, and gives them back sorted bytewise, each once: in runs on
    disk, which are merged. Each ends with a newline."""

    def __init__(self, scratch: Path) -> None:
        self._scratch, self._lines, self._size = scratch, list[bytes](), 0
        self._runs: list[Path] = []

    def add(self, line: bytes) -> None:
        self._lines.append(line)
        self._size += len(line)
        if self._size >= RUN_BYTES:
            self._write_run()

    def _write_run(self) -> None:
        path = self._scratch / f"sorted-{len(self._runs)}"
        with reported(path), path.open("wb") as file:
            file.writelines(sorted(self._lines))
        self._runs.append(path)
        self._lines, self._size = [], 0

    def __iter__(self) -> Iterator[bytes]:
        self._lines.sort()
        files = [path.open("rb", buffering=max(1 << 16, (16 << 20) // (len(self._runs) + 1))) for path in self._runs]
        try:
            last = b""
            for line in heapq.merge(*files, self._lines) if files else self._lines:
                if line != last:
                    yield line
                last = line
        finally:
            for file, path in zip(files, self._runs, strict=True):
                file.close()
                path.unlink()
