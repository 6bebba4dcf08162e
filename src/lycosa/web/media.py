"""Which kind of document this is, told before it is read: by its `Content-Type` and a look at its first bytes.

The header decides between the kinds of text; the bytes overrule it where they are plainly something else (a PDF sent as
HTML, a feed sent as XML), and decide alone where there is no header, as in the WHATWG MIME Sniffing standard. The
header itself is read by the same standard: a bad parameter is left out, the first of two of one name counts. Invariant:
reads at most `SNIFF_BYTES`, never raises. Called by `page`, and by the crawl to choose before the body is read.
"""

import re
from enum import StrEnum
from functools import lru_cache

import msgspec

_WHITESPACE = "\t\n\r "
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+\Z")
_QUOTED_OR_TOKEN_TEXT = re.compile(r"[\t\x20-\x7e\x80-\xff]*\Z")
_ESSENCE = re.compile(r"([!#$%&'*+\-.^_`|~0-9A-Za-z]+)/([!#$%&'*+\-.^_`|~0-9A-Za-z]+)[\t\n\r ]*(?:;|\Z)")
_QUOTED_STRING = re.compile(r'"((?:[^"\\]|\\.)*)(\\?)(?:"|\Z)', re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
# A comma between two values of a repeated header: one outside quotes.
_HEADER_VALUE = re.compile(r'(?:[^",]|"(?:[^"\\]|\\.)*(?:"|\\?\Z))*', re.DOTALL)
# A crawl sees the same few headers again and again; longer ones are not worth keeping.
_CACHED_LENGTH = 100


class MimeType(msgspec.Struct, frozen=True):
    """A MIME type: `essence` is `type/subtype` in lower case; parameter names are lower case, values as sent."""

    essence: str
    parameters: dict[str, str] = {}

    @property
    def charset(self) -> str | None:
        return self.parameters.get("charset")


def parse_mime_type(value: str) -> MimeType | None:
    """One MIME type, as the standard's "parse a MIME type" reads it."""
    value = value.strip(_WHITESPACE)
    head = _ESSENCE.match(value)
    if head is None:
        return None
    parameters: dict[str, str] = {}
    at = head.end()
    while at < len(value):
        name, content, at = _parameter(value, at)
        if content is not None and _TOKEN.match(name) and _QUOTED_OR_TOKEN_TEXT.match(content):
            parameters.setdefault(name, content)
    return MimeType(f"{head[1]}/{head[2]}".lower(), parameters)


def parse_content_type(value: str | None) -> MimeType | None:
    """The MIME type of a `Content-Type` header, whose repetitions are joined by commas: the last valid one counts.

    A later value of the same essence without a charset keeps the charset of the one before it.
    """
    if not value:
        return None
    return _from_short_header(value) if len(value) <= _CACHED_LENGTH else _from_values(value)


@lru_cache(maxsize=64)
def _from_short_header(value: str) -> MimeType | None:
    return _from_values(value)


def _from_values(header: str) -> MimeType | None:
    found: MimeType | None = None
    charset: str | None = None
    for part in _values(header):
        mime = parse_mime_type(part)
        if mime is None or mime.essence == "*/*":
            continue
        if found is None or mime.essence != found.essence or mime.charset is not None:
            charset = mime.charset
        elif charset is not None:
            mime = MimeType(mime.essence, {**mime.parameters, "charset": charset})
        found = mime
    return found


def _values(header: str) -> list[str]:
    if "," not in header:
        return [header]
    values: list[str] = []
    at = 0
    while at <= len(header):
        value = _HEADER_VALUE.match(header, at)
        assert value is not None  # the pattern matches the empty string
        values.append(value[0])
        at = value.end() + 1
    return values


def _parameter(value: str, at: int) -> tuple[str, str | None, int]:
    """The parameter at `at`: its name, its content (`None` if it has none), and where the next one begins."""
    while at < len(value) and value[at] in _WHITESPACE:
        at += 1
    end = _first_of(value, ";=", at)
    name = value[at:end].lower()
    if end >= len(value) or value[end] == ";":
        return name, None, end + 1
    at = end + 1
    if value.startswith('"', at):
        quoted = _QUOTED_STRING.match(value, at)
        assert quoted is not None  # it begins with a quote, and the end of input closes it
        return name, _ESCAPED.sub(r"\1", quoted[1]) + quoted[2], _first_of(value, ";", quoted.end()) + 1
    end = _first_of(value, ";", at)
    return name, value[at:end].rstrip(_WHITESPACE) or None, end + 1


def _first_of(value: str, stops: str, at: int) -> int:
    found = [index for index in (value.find(stop, at) for stop in stops) if index >= 0]
    return min(found, default=len(value))


# The MIME Sniffing standard's "resource header".
SNIFF_BYTES = 1445


class MediaKind(StrEnum):
    """The kind of a document, by which its analyser is chosen. Those from PDF on have none: they are stored unread."""

    HTML = "html"
    XHTML = "xhtml"
    XML = "xml"
    FEED = "feed"
    TEXT = "text"
    PDF = "pdf"
    IMAGE = "image"
    AUDIO_VIDEO = "audio-video"
    FONT = "font"
    ARCHIVE = "archive"
    OTHER = "other"

    @property
    def has_links(self) -> bool:
        """Whether documents of this kind can have links that are read."""
        return self in (MediaKind.HTML, MediaKind.XHTML, MediaKind.XML, MediaKind.FEED)

    @property
    def is_part_of_pages(self) -> bool:
        """Whether documents of this kind are shown in pages rather than by themselves; imports have them as pages."""
        return self in (MediaKind.IMAGE, MediaKind.FONT, MediaKind.AUDIO_VIDEO, MediaKind.OTHER)


class Media(msgspec.Struct, frozen=True):
    """The type of a document: `essence` is the MIME type without parameters, `charset` the header's, as sent."""

    kind: MediaKind
    essence: str
    charset: str | None = None


_KIND_OF_ESSENCE = {
    "text/html": MediaKind.HTML,
    "application/xhtml+xml": MediaKind.XHTML,
    "text/xml": MediaKind.XML,
    "application/xml": MediaKind.XML,
    "application/rss+xml": MediaKind.FEED,
    "application/atom+xml": MediaKind.FEED,
    "application/rdf+xml": MediaKind.FEED,
    "text/plain": MediaKind.TEXT,
    "text/markdown": MediaKind.TEXT,
    "text/x-markdown": MediaKind.TEXT,
    "text/x-rst": MediaKind.TEXT,
    "text/csv": MediaKind.TEXT,
    "text/tab-separated-values": MediaKind.TEXT,
    "application/pdf": MediaKind.PDF,
    "application/x-pdf": MediaKind.PDF,
    "application/zip": MediaKind.ARCHIVE,
    "application/gzip": MediaKind.ARCHIVE,
    "application/x-gzip": MediaKind.ARCHIVE,
    "application/x-tar": MediaKind.ARCHIVE,
    "application/x-bzip2": MediaKind.ARCHIVE,
    "application/zstd": MediaKind.ARCHIVE,
    "image/svg+xml": MediaKind.IMAGE,
}
_KIND_OF_TYPE = {
    "image": MediaKind.IMAGE,
    "audio": MediaKind.AUDIO_VIDEO,
    "video": MediaKind.AUDIO_VIDEO,
    "font": MediaKind.FONT,
}
# Headers that say nothing: the bytes decide.
_UNKNOWN = frozenset(("unknown/unknown", "application/unknown", "*/*"))
_READ_AS_TEXT = frozenset((MediaKind.HTML, MediaKind.XHTML, MediaKind.XML, MediaKind.FEED, MediaKind.TEXT))

# First bytes that nothing but this type begins with.
_SIGNATURES = (
    (b"%PDF-", MediaKind.PDF, "application/pdf"),
    (b"\x89PNG\r\n\x1a\n", MediaKind.IMAGE, "image/png"),
    (b"\xff\xd8\xff", MediaKind.IMAGE, "image/jpeg"),
    (b"GIF87a", MediaKind.IMAGE, "image/gif"),
    (b"GIF89a", MediaKind.IMAGE, "image/gif"),
    (b"\0\0\1\0", MediaKind.IMAGE, "image/x-icon"),
    (b"PK\3\4", MediaKind.ARCHIVE, "application/zip"),
    (b"\x1f\x8b\x08", MediaKind.ARCHIVE, "application/gzip"),
    (b"BZh", MediaKind.ARCHIVE, "application/x-bzip2"),
    (b"\xfd7zXZ\0", MediaKind.ARCHIVE, "application/x-xz"),
    (b"7z\xbc\xaf\x27\x1c", MediaKind.ARCHIVE, "application/x-7z-compressed"),
    (b"\x28\xb5\x2f\xfd", MediaKind.ARCHIVE, "application/zstd"),
    (b"Rar!\x1a\7", MediaKind.ARCHIVE, "application/x-rar-compressed"),
    (b"wOFF", MediaKind.FONT, "font/woff"),
    (b"wOF2", MediaKind.FONT, "font/woff2"),
    (b"OggS\0", MediaKind.AUDIO_VIDEO, "application/ogg"),
    (b"ID3", MediaKind.AUDIO_VIDEO, "audio/mpeg"),
    (b"\x1aE\xdf\xa3", MediaKind.AUDIO_VIDEO, "video/webm"),
)
_FIRST_BYTES = frozenset(signature[0][0] for signature in _SIGNATURES) | frozenset(b"R")
_RIFF = {
    b"WEBP": (MediaKind.IMAGE, "image/webp"),
    b"WAVE": (MediaKind.AUDIO_VIDEO, "audio/wave"),
    b"AVI ": (MediaKind.AUDIO_VIDEO, "video/avi"),
}
_HTML_START = re.compile(
    rb"[\t\n\f\r ]*<(?:!--|"
    rb"(?:!doctype html|html|head|script|iframe|h1|div|font|table|a|style|title|b|body|br|p)[\t\n\f\r />])",
    re.IGNORECASE,
)
# Past the prologue (declaration, comments, doctype without a subset) to the first element.
_ROOT = re.compile(
    rb"(?:\xef\xbb\xbf)?(?:[\t\n\r ]+|<\?[^>]*+>|<!--(?:[^-]|-(?!->))*+-->|<![A-Za-z][^>\[]*+>)*+"
    rb"<([A-Za-z_][^\t\n\r />]*)"
)
_FEED_ROOTS = frozenset((b"rss", b"feed", b"atom:feed", b"rdf:rdf"))
_BINARY = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")
_TEXT_BOMS = (b"\xef\xbb\xbf", b"\xfe\xff", b"\xff\xfe")


def identify_media(content_type: str | None, head: bytes = b"") -> Media:
    """The media of a document from its `Content-Type` and its first bytes (as many as are there, content-decoded)."""
    sent = parse_content_type(content_type)
    if sent is None or sent.essence in _UNKNOWN:
        kind, essence = _sniff(head[:SNIFF_BYTES])
        return Media(kind, essence, sent.charset if sent else None)
    kind = media_kind(sent.essence)
    if kind in _READ_AS_TEXT:
        kind, essence = _corrected(kind, sent.essence, head[:SNIFF_BYTES])
        return Media(kind, essence, sent.charset)
    return Media(kind, sent.essence, sent.charset)


def media_kind(essence: str) -> MediaKind:
    """The kind that a header alone promises, for whoever decides before the body is there."""
    kind = _KIND_OF_ESSENCE.get(essence)
    if kind is not None:
        return kind
    if essence.endswith("+xml"):
        return MediaKind.XML
    return _KIND_OF_TYPE.get(essence.partition("/")[0], MediaKind.OTHER)


def _corrected(kind: MediaKind, essence: str, head: bytes) -> tuple[MediaKind, str]:
    """The kind by the bytes, where they contradict what the header says of a text."""
    if head and head[0] in _FIRST_BYTES and (signed := _signature(head)) is not None:
        return signed
    if kind is MediaKind.TEXT:
        is_binary = not head.startswith(_TEXT_BOMS) and _BINARY.search(head) is not None
        return (MediaKind.OTHER, "application/octet-stream") if is_binary else (kind, essence)
    if kind is MediaKind.XML:
        return _xml_kind(head), essence
    if kind is MediaKind.HTML and head.startswith((b"<?xml", b"<rss", b"<feed")) and _root(head) in _FEED_ROOTS:
        return MediaKind.FEED, essence
    return kind, essence


def _sniff(head: bytes) -> tuple[MediaKind, str]:
    """The kind and type of bytes that came without a type."""
    if _HTML_START.match(head):
        return MediaKind.HTML, "text/html"
    if head.lstrip(b"\t\n\f\r ").startswith((b"<?xml", b"\xef\xbb\xbf<?xml")):
        return _xml_kind(head), "text/xml"
    if (signed := _signature(head)) is not None:
        return signed
    if head.startswith(_TEXT_BOMS) or not _BINARY.search(head):
        return MediaKind.TEXT, "text/plain"
    return MediaKind.OTHER, "application/octet-stream"


def _signature(head: bytes) -> tuple[MediaKind, str] | None:
    for signature, kind, essence in _SIGNATURES:
        if head.startswith(signature):
            return kind, essence
    return _RIFF.get(head[8:12]) if head.startswith(b"RIFF") else None


def _xml_kind(head: bytes) -> MediaKind:
    root = _root(head)
    if root in _FEED_ROOTS:
        return MediaKind.FEED
    return MediaKind.XHTML if root == b"html" else MediaKind.XML


def _root(head: bytes) -> bytes:
    root = _ROOT.match(head)
    return b"" if root is None else root[1].lower()
