"""WACZ 1.1.1: a ZIP file with the archive, its index, and a list of pages with their text, which replays by itself.

    archive/*.warc.gz         stored. An export of everything has the archive's files as they are; another one a WARC
                              file of the selected captures, whose records are copied
    indexes/index.cdx.gz      stored: the lines of the CDXJ index in gzip members of 1,024 lines
    indexes/index.idx         the first line of each member
    pages/pages.jsonl         the pages of the collection with title, time and, unless `--content none`, text
    datapackage.json          the hashes of all these; datapackage-digest.json that of this one

Written as one stream, from beginning to end, so that it can go anywhere; the list of pages and the lines of the index
wait in temporary files. ReplayWeb.page opens it, and pywb, and py-wacz validates it.
"""

import hashlib
import re
import struct
import time
import zipfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import IO, cast

import msgspec
from isal import isal_zlib

from lycosa.errors import SettingsError, StoreError
from lycosa.export.cdxj import CdxLines, SortedLines, about_record, cdx_line, mime_of, version_lines
from lycosa.export.format import ExportFormat, ExportSource, Shape
from lycosa.export.members import ArchiveMembers
from lycosa.export.output import Output, reported
from lycosa.export.warc import info_record
from lycosa.inspect import StoredPage
from lycosa.store import JoinedCollection, WarcLocation, committed_lengths, released_files, warc_path
from lycosa.version import __version__
from lycosa.web import format_timestamp

LINES_PER_MEMBER = 1_024
CHUNK_BYTES = 1 << 20
_PAGES_HEADER = {"format": "json-pages-1.0", "id": "pages", "title": "All Pages"}
_DEFLATE_LEVEL = 2
_FRONT_PAGE = re.compile(r"/(?:(?:index|default|home)\.[a-z]+)?\Z", re.IGNORECASE)  # imported pages are all of depth 0


class WaczArchive(ExportFormat):
    """One WACZ file. `content` is `text` or `none`: what pages.jsonl says of each page's body."""

    suffix = ".wacz"
    shape = Shape.FILE
    resumes = False
    takes_answers = needs_records = True
    compresses_itself = True

    def __init__(self, content: str = "text") -> None:
        if content not in ("text", "none"):
            raise SettingsError(f"--content is {content!r}: the pages of a WACZ file have text, or none")
        self._has_text = content == "text"

    def begin(self, out: Output, source: ExportSource) -> None:
        super().begin(out, source)
        self._members, self._lines = ArchiveMembers(source.collection), CdxLines(source.collection)
        self._sorted = SortedLines(out.scratch)
        self._package = _WaczPackage(out)
        self._whole_files = self._files_as_they_are() if source.selection.is_everything else []
        self._pages_path = out.scratch / "pages.jsonl"
        with reported(self._pages_path):
            self._pages = self._pages_path.open("wb")
        self._page_count = 0
        self._main: tuple[str, str] | None = None
        self._main_rank: tuple[int, int, bool, int] = (0, 0, False, 0)
        self._pages.write(msgspec.json.encode({**_PAGES_HEADER, "hasText": self._has_text}) + b"\n")
        if not self._whole_files:
            self._copy = self._package.open("archive/data.warc.gz", is_stored=True)
            self._copy.write(info_record(source, "data.warc.gz"))

    def _files_as_they_are(self) -> list[tuple[Path, int]]:
        """The files of the archive with their committed lengths; none where some are in a central store."""
        collection = self.source.collection
        shards = collection.shards if isinstance(collection, JoinedCollection) else [collection]
        found: list[tuple[Path, int]] = []
        for shard in shards:
            if released_files(shard.state):
                return []
            lengths = committed_lengths(shard.state)
            found += [(warc_path(shard.warc_folder, number), size) for number, size in sorted(lengths.items())]
        return found

    def add(self, page: StoredPage) -> None:
        row = page.row
        is_page = page.is_current and row.is_stored_page and row.essence in _PAGES
        text = page.text if is_page and self._has_text else ""
        is_copy = bool(row.original)
        line = self._lines.of(page.url, row, is_copy=is_copy) if self._whole_files else self._copied(page)
        if line:
            self._sorted.add(line)
        if is_page:
            self._add_page(page, text)

    def _copied(self, page: StoredPage) -> bytes:
        """Copies the records of a page, and gives the line of where its response is now."""
        members = self._members.exchange(WarcLocation.unpack(page.row.place), wants_whole=True)
        at = [index for index, member in enumerate(members) if len(members) == 1 or _is_answer(member)]
        line = b""
        for index, member in enumerate(members):
            if index in at:
                place = WarcLocation(0, self._copy.size, len(member))
                about = about_record(page.url, page.row, place, mime_of(page.row), "data.warc.gz")
                line = cdx_line(page.url, page.row.fetched_s, about)
            self._copy.write(member)
        return line

    def _add_page(self, page: StoredPage, text: str) -> None:
        self._page_count += 1
        moment = format_timestamp(page.row.fetched_s)
        rank = page.depth, page.url.count("/"), not _FRONT_PAGE.search(page.url), len(page.url)
        if self._main is None or rank < self._main_rank:
            self._main, self._main_rank = (page.url, moment), rank
        about: dict[str, object] = {"id": f"p{self._page_count}", "url": page.url, "ts": moment, "title": page.title}
        about["size"] = page.sent_bytes
        if self._has_text:
            about["text"] = text
        with reported(self._pages_path):
            self._pages.write(msgspec.json.encode(about) + b"\n")

    def finish(self) -> None:
        self._pages.close()
        if self._whole_files:
            for path, size in self._whole_files:
                self._package.copy(f"archive/{path.name}", path, size)
            for line in version_lines(self.source.collection, self._lines):
                self._sorted.add(line)
        else:
            self._copy.close()
        self._write_index()
        self._package.copy("pages/pages.jsonl", self._pages_path, self._pages_path.stat().st_size, is_stored=False)
        self._package.finish(self.source, self._main)
        self._members.close()

    def _write_index(self) -> None:
        entries = [b'!meta 0 {"format":"cdxj-gzip-1.0","filename":"index.cdx.gz"}\n']
        lines = iter(self._sorted)
        file = self._package.open("indexes/index.cdx.gz", is_stored=True)
        while some := list(islice(lines, LINES_PER_MEMBER)):
            member: bytes = isal_zlib.compress(b"".join(some), 2, 31)
            digest = f"sha256:{hashlib.sha256(member).hexdigest()}"
            about = msgspec.json.encode({"offset": file.size, "length": len(member), "digest": digest})
            entries.append(b"%b %b %b\n" % (*some[0].split(b" ", 2)[:2], about))
            file.write(member)
        file.close()
        index = self._package.open("indexes/index.idx")
        index.write(b"".join(entries))
        index.close()


_PAGES = frozenset({"text/html", "application/xhtml+xml", "application/pdf", "text/plain", "text/markdown"})


def _is_answer(member: bytes) -> bool:
    """Whether a member is the response or the revisit, by its first bytes."""
    head = isal_zlib.decompressobj(31).decompress(member, 64)
    return head.startswith((b"WARC/1.1\r\nWARC-Type: response", b"WARC/1.1\r\nWARC-Type: revisit"))


class _PackageFile:
    """A file in the package while it is written: `size` and the hash are of what was written so far."""

    def __init__(self, file: IO[bytes], path: str, resources: list[dict[str, object]]) -> None:
        self._file, self._path, self._resources = file, path, resources
        self._hash, self.size = hashlib.sha256(), 0

    def write(self, data: bytes) -> None:
        self._file.write(data)
        self._hash.update(data)
        self.size += len(data)

    def close(self) -> None:
        self._file.close()
        name = self._path.rpartition("/")[2]
        digest = f"sha256:{self._hash.hexdigest()}"
        self._resources.append({"name": name, "path": self._path, "hash": digest, "bytes": self.size})


class _WaczPackage:
    """The ZIP file, one file after the other."""

    def __init__(self, out: Output) -> None:
        self._zip = zipfile.ZipFile(cast(IO[bytes], out), "w")
        self._resources: list[dict[str, object]] = []
        now_s = time.time()
        self._now = time.gmtime(now_s)[:6]
        # ReplayWeb.page takes a file to have no extra fields in its local header if the directory lists none. Those of
        # ZIP64 are in local headers alone as long as a file is small, so each file has its time in both.
        self._times = struct.pack("<HHBL", 0x5455, 5, 1, int(now_s))

    def open(self, path: str, *, is_stored: bool = False) -> _PackageFile:
        info = zipfile.ZipInfo(path, self._now)
        info.compress_type = zipfile.ZIP_STORED if is_stored else zipfile.ZIP_DEFLATED
        info.extra = self._times
        file = self._zip.open(info, "w", force_zip64=True)
        if not is_stored:  # a fifth of the time of zlib, which would be half of that of the export
            file._compressor = isal_zlib.compressobj(_DEFLATE_LEVEL, isal_zlib.DEFLATED, -15)  # type: ignore[attr-defined]
        return _PackageFile(file, path, self._resources)

    def copy(self, path: str, source: Path, size: int, *, is_stored: bool = True) -> None:
        """Adds the first `size` bytes of a file."""
        target = self.open(path, is_stored=is_stored)
        for chunk in _chunks(source, size):
            target.write(chunk)
        target.close()

    def finish(self, source: ExportSource, main: tuple[str, str] | None) -> None:
        """Adds what describes the package, and ends it."""
        moment = format_timestamp(source.began_s)
        about: dict[str, object] = {
            "profile": "data-package",
            "wacz_version": "1.1.1",
            "title": source.collection.path.absolute().name,
            "created": moment,
            "software": f"lycosa/{__version__}",
        }
        if main is not None:
            about |= {"mainPageUrl": main[0], "mainPageDate": main[1]}
        data = msgspec.json.format(msgspec.json.encode({**about, "resources": self._resources}), indent=2)
        digest = {"path": "datapackage.json", "hash": f"sha256:{hashlib.sha256(data).hexdigest()}"}
        for path, content in (("datapackage.json", data), ("datapackage-digest.json", msgspec.json.encode(digest))):
            file = self.open(path)
            file.write(content)
            file.close()
        self._zip.close()


def _chunks(path: Path, size: int) -> Iterator[bytes]:
    with path.open("rb") as file:
        while size > 0:
            data = file.read(min(size, CHUNK_BYTES))
            if not data:
                raise StoreError(f"{path} is shorter than the collection says: open it with a crawl, which mends it")
            size -= len(data)
            yield data
