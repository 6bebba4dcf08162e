"""Sitemaps: a folder with `sitemap.xml` for each host, as sitemaps.org has it; of a single host the files themselves.

A file has at most 50,000 URLs and 50 MB; with more there are `sitemap-1.xml` and so on, and `sitemap.xml` is the index
that names them, as they would be found at the root of the host. Pages that ask not to be indexed, copies of others and,
unless types are asked for, what is shown in pages (pictures, scripts) are left out. `lastmod` is when the page last
changed, by its history, or what its server said; else it is not there.
"""

from pathlib import Path
from typing import BinaryIO
from xml.sax.saxutils import escape

from lycosa.export.format import ExportFormat, ExportSource, Shape
from lycosa.export.names import origin_name
from lycosa.export.output import Output
from lycosa.inspect import StoredPage
from lycosa.recrawl import UNCHANGED, history
from lycosa.web import format_timestamp, media_kind, parse_date, split_url, url_key

MOST_URLS = 50_000
MOST_BYTES = 50 * 1000 * 1000
_HEAD = b'<?xml version="1.0" encoding="UTF-8"?>\n'
_NAMESPACE = b'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
_END, _INDEX_END = b"</urlset>\n", b"</sitemapindex>\n"


class SitemapFolder(ExportFormat):
    """Sitemaps of the pages of each host."""

    shape = Shape.FOLDER
    resumes = False  # files are begun and ended across pages

    def begin(self, out: Output, source: ExportSource) -> None:
        super().begin(out, source)
        self._host: _HostSitemap | None = None
        self._hosts = 0

    def takes(self, page: StoredPage) -> bool:
        is_part = not self.source.selection.types and media_kind(page.row.essence).is_part_of_pages
        return not (page.row.noindex or page.duplicate_of or is_part)

    def add(self, page: StoredPage) -> None:
        origin = _origin(page.url)
        if self._host is None or self._host.origin != origin:
            self._end_host()
            self._host = _HostSitemap(origin, self.out.folder / origin_name(page.url))
            self._hosts += 1
        self.out.written += self._host.add(page.url, self._changed(page))

    def _changed(self, page: StoredPage) -> str:
        """When the page changed last, as far as that is known."""
        found = history(self.source.collection.state, url_key(page.url))
        last_s = max((at_s for at_s, change in found if change.kind not in UNCHANGED), default=0.0)
        at_s = last_s or parse_date(page.row.last_modified) or 0.0
        return format_timestamp(at_s) if at_s > 0 else ""

    def _end_host(self) -> None:
        if self._host is not None:
            self._host.close()

    def finish(self) -> None:
        self._end_host()
        if self._hosts == 1 and self._host is not None:
            for file in self._host.folder.iterdir():
                file.rename(self.out.folder / file.name)
            self._host.folder.rmdir()


class _HostSitemap:
    """The sitemaps of one host while they are written."""

    def __init__(self, origin: str, folder: Path) -> None:
        self.origin, self.folder = origin, folder
        folder.mkdir()
        self._files = 0
        self._file = self._next()

    def _next(self) -> BinaryIO:
        self._files += 1
        self._urls = 0
        file = (self.folder / f"sitemap-{self._files}.xml").open("wb")
        self._bytes = file.write(_HEAD + b"<urlset " + _NAMESPACE + b">\n")
        return file

    def add(self, url: str, changed: str) -> int:
        """Adds a URL; returns how many bytes that took."""
        lastmod = f"<lastmod>{changed}</lastmod>" if changed else ""
        entry = f"<url><loc>{escape(url)}</loc>{lastmod}</url>\n".encode()
        if self._urls == MOST_URLS or self._bytes + len(entry) + len(_END) > MOST_BYTES:
            self._end_file()
            self._file = self._next()
        self._urls += 1
        self._bytes += self._file.write(entry)
        return len(entry)

    def _end_file(self) -> None:
        self._file.write(_END)
        self._file.close()

    def close(self) -> None:
        self._end_file()
        whole = self.folder / "sitemap.xml"
        if self._files == 1:
            (self.folder / "sitemap-1.xml").rename(whole)
            return
        with whole.open("wb") as file:
            file.write(_HEAD + b"<sitemapindex " + _NAMESPACE + b">\n")
            for number in range(1, self._files + 1):
                file.write(f"<sitemap><loc>{escape(self.origin)}/sitemap-{number}.xml</loc></sitemap>\n".encode())
            file.write(_INDEX_END)


def _origin(url: str) -> str:
    return url[: -len(split_url(url).path)]
