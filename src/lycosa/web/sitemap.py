"""Sitemaps: the URLs a site names in XML sitemaps, sitemap indexes, feeds (RSS, Atom) and text files, gzip or not.

Any bytes give a `Sitemap`, possibly empty; broken XML gives what stands before the break, or more after one repair.
Safe by construction: expat never opens anything, a document type definition is refused (so there are no entities to
expand), and bytes, URLs, elements and depth are bounded. Entries are normalised http(s) URLs. Whoever fetches a
sitemap calls `read_sitemap`, or `read_sitemap_steps` where nothing may be held up; the caller decides whether a date
can be believed, and how deep indexes may nest.
"""

import re
import zlib
from collections import deque
from collections.abc import Iterable, Iterator
from enum import StrEnum
from functools import lru_cache
from itertools import chain
from xml.parsers import expat

import msgspec

from lycosa.web.date import parse_date
from lycosa.web.robots import Steps, run_steps
from lycosa.web.url import domain_of, join_map, split_url

# The protocol's own bounds for one file, the first one after decompression.
MAX_SITEMAP_BYTES = 50 * 1024 * 1024
MAX_SITEMAP_URLS = 50_000
# A file of 50,000 URLs has some 5 elements each, with images and alternates perhaps 40; more is there to keep us busy.
MAX_ELEMENTS = 2_000_000
# A longer tag or comment ends the reading: expat scans an unfinished one anew with every chunk.
MAX_TAG_BYTES = 1024 * 1024
# A text file with a longer line is none of URLs, such as one of NULs.
MAX_LINE_BYTES = 1024 * 1024
# Sitemaps nest four deep, feeds with markup inside a few more.
MAX_DEPTH = 64
# Text of one element that is looked at: no URL or date we keep is longer.
MAX_TEXT_CHARS = 4_096
# Larger files are not repaired: it takes several copies of them in memory.
MAX_REPAIR_BYTES = 10 * 1024 * 1024
# What becomes a record in one step.
ENTRIES_A_STEP = 500
# gzip files joined end to end are one file, but nobody joins more than a few.
MAX_GZIP_MEMBERS = 16

_CHUNK_BYTES = 64 * 1024
_ENTITY_CHARS = 10  # `&#x10FFFF;`: none of those we know is longer
_UNCLOSED_TOKEN = expat.errors.codes[expat.errors.XML_ERROR_UNCLOSED_TOKEN]
_GZIP = b"\x1f\x8b"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_BLANK = b" \t\r\n\x0b\x0c\xef\xbb\xbf"
_STRAY_AMPERSAND = re.compile(r"&(?!(?:amp|lt|gt|quot|apos|#[0-9]{1,7}|#x[0-9A-Fa-f]{1,6});)")
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_LINE_ENDS = re.compile(rb"[\r\n]+")
_BARE_HOST = re.compile(r"[\w-]+(?:\.[\w-]+)+(?=[/?:]|\Z)", re.ASCII)


class SitemapKind(StrEnum):
    """What a file turned out to be; `UNKNOWN` has no entries."""

    URLS = "urls"
    INDEX = "index"
    FEED = "feed"
    TEXT = "text"
    UNKNOWN = "unknown"


# root element → what the file is, and the elements that are its entries
_ROOTS = {
    "urlset": (SitemapKind.URLS, frozenset({"url"})),
    "sitemapindex": (SitemapKind.INDEX, frozenset({"sitemap"})),
    "rss": (SitemapKind.FEED, frozenset({"item"})),
    "rdf": (SitemapKind.FEED, frozenset({"item"})),
    "feed": (SitemapKind.FEED, frozenset({"entry"})),
}
_DATE_FIELDS = frozenset({"lastmod", "pubdate", "date", "updated", "published"})
_FIELDS = frozenset({"loc", "link", "guid"}) | _DATE_FIELDS


class SitemapEntry(msgspec.Struct, frozen=True, gc=False):
    """One URL and when its site says it last changed, in seconds since 1970."""

    url: str
    lastmod_s: float | None = None


class Sitemap(msgspec.Struct, frozen=True):
    """One file. `entries` are pages, or in an index the sitemaps it names. `problem` says what was wrong with it."""

    kind: SitemapKind = SitemapKind.UNKNOWN
    entries: tuple[SitemapEntry, ...] = ()
    problem: str = ""

    @property
    def is_index(self) -> bool:
        return self.kind is SitemapKind.INDEX


def read_sitemap(body: bytes, base: str) -> Sitemap:
    """The sitemap in `body`, which came from `base` (a normalised URL).

    Its content decides what it is, not its name or media type.
    """
    return run_steps(read_sitemap_steps([body], base))


def read_sitemap_steps(pieces: Iterable[bytes], base: str) -> Steps[Sitemap]:
    """As `read_sitemap`, in steps of a few milliseconds, of a file that comes in pieces. No more of it is held than a
    repair needs, and none is asked for after the end of what counts."""
    file = _File(pieces)
    chunks = iter(file)
    first = next(chunks, b"")
    start = len(first) - len(first.lstrip(_BLANK))  # XML may not, but often does, begin with blank lines and a mark
    content = chain([first[start:]], chunks)
    if not first.startswith((b"<", *_UTF16_MARKS), start):
        lines = yield from _text_lines(content)
        return (yield from _finished(SitemapKind.TEXT, lines, base, file.problem))
    reader = _SitemapReader()
    yield from reader.feed(content)
    if reader.problem and not reader.is_final:
        for _ in chunks:  # the repair needs all of it
            yield
        if file.kept is not None:
            repaired = _SitemapReader()
            yield from repaired.feed(_repaired(b"".join(file.kept)[start:]), encoding="utf-8")
            if len(repaired.found) > len(reader.found):
                reader = repaired
    return (yield from _finished(reader.kind, reader.found[:MAX_SITEMAP_URLS], base, reader.problem or file.problem))


class _File:
    """The bytes of a sitemap without gzip, in chunks, and at most as many as one may have. `problem` says what was
    wrong with them; `kept` are those that were given out, None once they are too many for a repair."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = iter(pieces)
        self.problem = ""
        self.kept: list[bytes] | None = []

    def __iter__(self) -> Iterator[bytes]:
        came = _chunks(self._pieces)
        first = next(came, b"")
        chunks, size = chain([first], came), 0
        for chunk in _chunks(self._unpacked(chunks)) if first.startswith(_GZIP) else chunks:
            size += len(chunk)
            if size > MAX_SITEMAP_BYTES:
                self.problem = f"cut at {MAX_SITEMAP_BYTES} bytes"
            elif size > MAX_REPAIR_BYTES:
                self.kept = None
            elif self.kept is not None:
                self.kept.append(chunk)
            yield chunk[: max(0, MAX_SITEMAP_BYTES - size + len(chunk))]
            if self.problem:
                return

    def _unpacked(self, packed: Iterable[bytes]) -> Iterator[bytes]:
        member, members = zlib.decompressobj(zlib.MAX_WBITS | 16), 1
        for chunk in packed:
            data = chunk
            while data:
                if member.eof:
                    if data[0] != _GZIP[0]:  # something else is behind it
                        return
                    member, members = zlib.decompressobj(zlib.MAX_WBITS | 16), members + 1
                    if members > MAX_GZIP_MEMBERS:
                        self.problem = "broken gzip: too many members"
                        return
                try:
                    yield member.decompress(data, _CHUNK_BYTES)
                except zlib.error as error:
                    self.problem = f"broken gzip: {error}"
                    return
                data = member.unused_data if member.eof else member.unconsumed_tail
        if not member.eof:
            self.problem = "broken gzip: it ends too early"


def _chunks(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The bytes of pieces of any size, in chunks of one size."""
    held = bytearray()
    for piece in pieces:
        for at in range(0, len(piece), _CHUNK_BYTES):
            held += piece[at : at + _CHUNK_BYTES]
            if len(held) >= _CHUNK_BYTES:
                yield bytes(held[:_CHUNK_BYTES])
                del held[:_CHUNK_BYTES]
    if held:
        yield bytes(held)


class _Stop(Exception):
    """Ends the reading from within expat's callbacks: a bound was reached, or something is refused on principle."""


class _SitemapReader:
    """Gathers (url text, date text) from the elements of one file.

    An entry is open from a `url`, `sitemap`, `item` or `entry` to its end. A second `loc` in it begins another one, as
    some files forget the tags between. Names are compared without their prefix, whatever it is bound to: wrong and
    missing namespaces are common. `image:loc` and the like have another parent and are not taken.
    """

    def __init__(self) -> None:
        self.kind = SitemapKind.UNKNOWN
        self.found: list[tuple[str, str]] = []
        self.problem = ""
        self.is_final = False  # whether a second attempt would be pointless
        self._entry_names: frozenset[str] = frozenset()
        self._elements = self._depth = self._entry_depth = 0
        self._url = self._guid = self._date = ""
        self._taking, self._taking_depth = "", 0  # the element whose text is gathered
        self._text: list[str] = []
        self._text_size = 0

    def feed(self, chunks: Iterable[bytes], *, encoding: str | None = None) -> Steps[None]:
        """Reads the chunks; a step a chunk."""
        self._parser = parser = expat.ParserCreate(encoding)
        parser.buffer_text = True
        parser.StartDoctypeDeclHandler = self._doctype
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        fed, recent, recent_bytes = 0, deque[bytes](), 0  # the recent ones hold at least the tag that is unfinished
        try:
            for chunk in chunks:
                fed, recent_bytes = fed + len(chunk), recent_bytes + len(chunk)
                recent.append(chunk)
                while recent_bytes - len(recent[0]) > MAX_TAG_BYTES:
                    recent_bytes -= len(recent.popleft())
                parser.Parse(chunk, False)
                if fed - parser.CurrentByteIndex > MAX_TAG_BYTES:
                    raise _Stop("a tag without end")
                yield
            parser.Parse(b"", True)
        except _Stop as stop:
            self.problem, self.is_final = str(stop), True
        except expat.ExpatError as error:
            self.problem = str(error)
            cut_at = parser.ErrorByteIndex - (fed - recent_bytes)
            if error.code == _UNCLOSED_TOKEN and b"<" in b"".join(recent)[cut_at : cut_at + 2]:
                self._take_text()  # cut off within a tag, so the text before it is whole; within an entity it is not
            self._end_entry()
        except (LookupError, ValueError) as error:  # an encoding Python does not know, or expat cannot take
            self.problem = str(error)

    def _doctype(self, name: str, system_id: str | None, public_id: str | None, has_subset: bool) -> None:
        if has_subset:
            raise _Stop("refused: it brings its own document type definition")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._elements += 1
        self._depth = depth = self._depth + 1
        if self._elements > MAX_ELEMENTS or depth > MAX_DEPTH:
            raise _Stop("too many or too deeply nested elements")
        if self._entry_depth:
            if depth == self._entry_depth + 1:
                self._start_field(_local(name), attributes)
        elif depth > 1:
            if _local(name) in self._entry_names:
                self._entry_depth = depth
                self._take("", depth)
        else:
            self._start_root(_local(name))

    def _start_root(self, name: str) -> None:
        if name not in _ROOTS:
            raise _Stop(f"not a sitemap: its root is <{name[:40]}>")
        self.kind, self._entry_names = _ROOTS[name]

    def _start_field(self, name: str, attributes: dict[str, str]) -> None:
        self._drop_text()  # an entry's own text counts only where it is all there is
        if name == "loc" and self._url:
            self._end_entry()
        if name == "link" and "href" in attributes:
            if not self._url and attributes.get("rel", "alternate") == "alternate":
                self._url = attributes["href"]
        elif name in _FIELDS:
            self._take(name, self._depth)

    def _end(self, name: str) -> None:
        depth = self._depth
        self._depth = depth - 1
        if depth == self._taking_depth:
            self._take_text()
        if depth == self._entry_depth:
            self._end_entry()
            self._entry_depth = 0
            if len(self.found) > MAX_SITEMAP_URLS:
                raise _Stop(f"more than {MAX_SITEMAP_URLS} URLs")

    def _characters(self, text: str) -> None:
        if self._text_size < MAX_TEXT_CHARS:
            self._text.append(text)
            self._text_size += len(text)

    def _take(self, name: str, depth: int) -> None:
        self._taking, self._taking_depth = name, depth
        self._text, self._text_size = [], 0
        self._parser.CharacterDataHandler = self._characters

    def _take_text(self) -> None:
        text = "".join(self._text).strip()
        if self._taking in _DATE_FIELDS:
            self._date = self._date or text
        elif self._taking == "guid":
            self._guid = text
        else:
            self._url = self._url or text
        self._drop_text()

    def _drop_text(self) -> None:
        if self._taking_depth:
            self._taking, self._taking_depth, self._text = "", 0, []
            self._parser.CharacterDataHandler = None

    def _end_entry(self) -> None:
        url = self._url or (self._guid if "://" in self._guid else "")
        if url:
            self.found.append((url, self._date))
        self._url = self._guid = self._date = ""


@lru_cache(1_024)
def _local(name: str) -> str:
    """`sit:Loc` → `loc`."""
    return name.rpartition(":")[2].lower()


def _finished(kind: SitemapKind, found: list[tuple[str, str]], base: str, problem: str) -> Steps[Sitemap]:
    """Makes the record: texts become URLs, each URL once, and dates numbers."""
    site = split_url(base)
    domain = domain_of(site.host)
    entries: dict[str, SitemapEntry] = {}
    for start in range(0, len(found), ENTRIES_A_STEP):
        some = found[start : start + ENTRIES_A_STEP]
        meant = {text: _meant(text, kind, site.scheme, domain) for text, _ in some}
        urls = join_map(base, filter(None, meant.values()))
        for text, date in some:
            url = urls.get(meant[text])
            if url and url not in entries:
                entries[url] = SitemapEntry(url, parse_date(date))
        yield
    if kind is SitemapKind.TEXT and not entries:
        kind, problem = SitemapKind.UNKNOWN, problem or "not a sitemap: no line is a URL"
    return Sitemap(kind, tuple(entries.values()), problem)


def _meant(text: str, kind: SitemapKind, scheme: str, domain: str) -> str:
    """The href that `text` stands for, or nothing. Sitemaps must name whole URLs, yet some leave out the scheme or
    scheme and host; feeds may be relative."""
    if "://" in text or text.startswith("/") or kind is SitemapKind.FEED:
        return text
    host = _BARE_HOST.match(text)
    return f"{scheme}://{text}" if host and domain_of(host[0].lower()) == domain else ""


def _text_lines(chunks: Iterable[bytes]) -> Steps[list[tuple[str, str]]]:
    """The lines of a text, each as far as it is looked at; a step a chunk."""
    found: list[tuple[str, str]] = []
    rest, number, unended_bytes = b"", 0, 0
    for chunk in chain(chunks, [b"\n"]):
        *lines, rest = _LINE_ENDS.split(rest + chunk)
        rest = rest[:MAX_TEXT_CHARS]
        unended_bytes = 0 if lines else unended_bytes + len(chunk)
        for line in lines:
            text = line[:MAX_TEXT_CHARS].decode("utf-8", "replace").strip(" \t\ufeff")
            if text:
                found.append((text, ""))
        number += len(lines)
        if number >= MAX_ELEMENTS or len(found) >= MAX_SITEMAP_URLS or unended_bytes > MAX_LINE_BYTES:
            return found[:MAX_SITEMAP_URLS]
        yield
    return found


def _repaired(body: bytes) -> Iterator[bytes]:
    """Mends what most often breaks otherwise good files: `&` that begins no entity, control characters, bytes that are
    not what the file says they are. (As Latin-1 every byte is something, and ASCII, which URLs are, stays.)"""
    if body.startswith(_UTF16_MARKS):
        text = body.decode("utf-16", "replace")
    else:
        try:
            text = body.decode()
        except UnicodeDecodeError:
            text = body.decode("latin-1")
    start = 0
    while start < len(text):
        end = start + _CHUNK_BYTES
        entity = text.rfind("&", end - _ENTITY_CHARS, end)
        end = entity if entity > start else end  # an entity is not cut in two
        piece, start = text[start:end], end
        yield _STRAY_AMPERSAND.sub("&amp;", _CONTROLS.sub(" ", piece)).encode("utf-8", "replace")
