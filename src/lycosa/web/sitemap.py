"""Sitemaps: the URLs a site names in XML sitemaps, sitemap indexes, feeds (RSS, Atom) and text files, gzip or not.

Any bytes give a `Sitemap`, possibly empty; broken XML gives what stands before the break, or more after one repair.
Safe by construction: expat never opens anything, a document type definition is refused (so there are no entities to
expand), and bytes, URLs, elements and depth are bounded. Entries are normalised http(s) URLs. Whoever fetches a
sitemap calls `read_sitemap`, or `read_sitemap_steps` where nothing may be held up; the caller decides whether a date
can be believed, and how deep indexes may nest.
"""

import re
import zlib
from collections.abc import Iterable, Iterator
from enum import StrEnum
from functools import lru_cache
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
_UNPACKED_BYTES = 1024 * 1024
_ENTITY_CHARS = 10  # `&#x10FFFF;`: none of those we know is longer
_UNCLOSED_TOKEN = expat.errors.codes[expat.errors.XML_ERROR_UNCLOSED_TOKEN]
_GZIP = b"\x1f\x8b"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_BLANK = b" \t\r\n\x0b\x0c\xef\xbb\xbf"
_STRAY_AMPERSAND = re.compile(r"&(?!(?:amp|lt|gt|quot|apos|#[0-9]{1,7}|#x[0-9A-Fa-f]{1,6});)")
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_LINE = re.compile(rb"[^\r\n]+")
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
    return run_steps(read_sitemap_steps(body, base))


def read_sitemap_steps(body: bytes, base: str) -> Steps[Sitemap]:
    """As `read_sitemap`, in steps of a few milliseconds."""
    body, problem = yield from _unpacked(body)
    start = _blank_end(body)
    if not body.startswith((b"<", *_UTF16_MARKS), start):
        return (yield from _finished(SitemapKind.TEXT, _text_lines(body), base, problem))
    reader = _SitemapReader()
    yield from reader.feed(body, _chunks(body, start), start=start)
    if reader.problem and not reader.is_final and len(body) <= MAX_REPAIR_BYTES:
        repaired = _SitemapReader()
        yield from repaired.feed(body, _repaired(body[start:]), encoding="utf-8")
        if len(repaired.found) > len(reader.found):
            reader = repaired
    return (yield from _finished(reader.kind, reader.found[:MAX_SITEMAP_URLS], base, reader.problem or problem))


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

    def feed(self, body: bytes, chunks: Iterable[bytes], *, start: int = 0, encoding: str | None = None) -> Steps[None]:
        """Reads the chunks, which are those of `body` from `start` on or stand for them; a step a chunk."""
        self._parser = parser = expat.ParserCreate(encoding)
        parser.buffer_text = True
        parser.StartDoctypeDeclHandler = self._doctype
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        fed = 0
        try:
            for chunk in chunks:
                parser.Parse(chunk, False)
                fed += len(chunk)
                if fed - parser.CurrentByteIndex > MAX_TAG_BYTES:
                    raise _Stop("a tag without end")
                yield
            parser.Parse(b"", True)
        except _Stop as stop:
            self.problem, self.is_final = str(stop), True
        except expat.ExpatError as error:
            self.problem = str(error)
            cut_at = start + parser.ErrorByteIndex
            if error.code == _UNCLOSED_TOKEN and b"<" in body[cut_at : cut_at + 2]:
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


def _text_lines(body: bytes) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for number, line in enumerate(_LINE.finditer(body)):
        if number >= MAX_ELEMENTS or len(found) >= MAX_SITEMAP_URLS:
            break
        text = line[0][:MAX_TEXT_CHARS].decode("utf-8", "replace").strip(" \t\ufeff")
        if text:
            found.append((text, ""))
    return found


def _unpacked(body: bytes) -> Steps[tuple[bytes, str]]:
    """The bytes without gzip, at most as many as a sitemap may have, and what was wrong with them."""
    if not body.startswith(_GZIP):
        return body[:MAX_SITEMAP_BYTES], _too_long(len(body) > MAX_SITEMAP_BYTES)
    parts: list[bytes] = []
    room = MAX_SITEMAP_BYTES + 1
    for _ in range(MAX_GZIP_MEMBERS):
        member = zlib.decompressobj(zlib.MAX_WBITS | 16)
        while body and not member.eof:
            try:
                parts.append(member.decompress(body, min(room, _UNPACKED_BYTES)))
            except zlib.error as error:
                return b"".join(parts), f"broken gzip: {error}"
            room -= len(parts[-1])
            if not room:
                return b"".join(parts), _too_long(True)
            body = member.unconsumed_tail
            yield
        body = member.unused_data
        if not body.startswith(_GZIP):
            return b"".join(parts), "" if member.eof else "broken gzip: it ends too early"
    return b"".join(parts), "broken gzip: too many members"


def _chunks(body: bytes, start: int) -> Iterable[bytes]:
    return (body[position : position + _CHUNK_BYTES] for position in range(start, len(body), _CHUNK_BYTES))


def _blank_end(body: bytes) -> int:
    """Where the content begins: XML may not, but often does, begin with blank lines and a byte order mark."""
    head = body[:_CHUNK_BYTES]
    return len(head) - len(head.lstrip(_BLANK))


def _too_long(is_too_long: bool) -> str:
    return f"cut at {MAX_SITEMAP_BYTES} bytes" if is_too_long else ""


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
