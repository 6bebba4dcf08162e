"""What kind of document this is, told before it is read: by its header and a look at its first bytes.

The header decides between the kinds of text; the bytes overrule it where they are plainly something else (a PDF sent as
HTML, a feed sent as XML), and decide alone where there is no header, as in the WHATWG MIME Sniffing standard.
Invariant: reads at most `SNIFF_BYTES`, never raises. Called by `page`, and by fetch to choose before the body is read.
"""

import re
from enum import StrEnum

import msgspec

from lycosa.web import mime

# The MIME Sniffing standard's "resource header".
SNIFF_BYTES = 1445


class Kind(StrEnum):
    """Which analyser applies. Those from PDF on have none: they are stored unread."""

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


class Media(msgspec.Struct, frozen=True):
    """`essence` is the MIME type without parameters, `charset` the header's, as sent."""

    kind: Kind
    essence: str
    charset: str | None = None


_KIND_OF_ESSENCE = {
    "text/html": Kind.HTML,
    "application/xhtml+xml": Kind.XHTML,
    "text/xml": Kind.XML,
    "application/xml": Kind.XML,
    "application/rss+xml": Kind.FEED,
    "application/atom+xml": Kind.FEED,
    "application/rdf+xml": Kind.FEED,
    "text/plain": Kind.TEXT,
    "text/markdown": Kind.TEXT,
    "text/x-markdown": Kind.TEXT,
    "text/x-rst": Kind.TEXT,
    "text/csv": Kind.TEXT,
    "text/tab-separated-values": Kind.TEXT,
    "application/pdf": Kind.PDF,
    "application/x-pdf": Kind.PDF,
    "application/zip": Kind.ARCHIVE,
    "application/gzip": Kind.ARCHIVE,
    "application/x-gzip": Kind.ARCHIVE,
    "application/x-tar": Kind.ARCHIVE,
    "application/x-bzip2": Kind.ARCHIVE,
    "application/zstd": Kind.ARCHIVE,
    "image/svg+xml": Kind.IMAGE,
}
_KIND_OF_TYPE = {"image": Kind.IMAGE, "audio": Kind.AUDIO_VIDEO, "video": Kind.AUDIO_VIDEO, "font": Kind.FONT}
# Headers that say nothing: the bytes decide.
_UNKNOWN = frozenset(("unknown/unknown", "application/unknown", "*/*"))
_READ_AS_TEXT = frozenset((Kind.HTML, Kind.XHTML, Kind.XML, Kind.FEED, Kind.TEXT))

# First bytes that nothing but this type begins with.
_SIGNATURES = (
    (b"%PDF-", Kind.PDF, "application/pdf"),
    (b"\x89PNG\r\n\x1a\n", Kind.IMAGE, "image/png"),
    (b"\xff\xd8\xff", Kind.IMAGE, "image/jpeg"),
    (b"GIF87a", Kind.IMAGE, "image/gif"),
    (b"GIF89a", Kind.IMAGE, "image/gif"),
    (b"\0\0\1\0", Kind.IMAGE, "image/x-icon"),
    (b"PK\3\4", Kind.ARCHIVE, "application/zip"),
    (b"\x1f\x8b\x08", Kind.ARCHIVE, "application/gzip"),
    (b"BZh", Kind.ARCHIVE, "application/x-bzip2"),
    (b"\xfd7zXZ\0", Kind.ARCHIVE, "application/x-xz"),
    (b"7z\xbc\xaf\x27\x1c", Kind.ARCHIVE, "application/x-7z-compressed"),
    (b"\x28\xb5\x2f\xfd", Kind.ARCHIVE, "application/zstd"),
    (b"Rar!\x1a\7", Kind.ARCHIVE, "application/x-rar-compressed"),
    (b"wOFF", Kind.FONT, "font/woff"),
    (b"wOF2", Kind.FONT, "font/woff2"),
    (b"OggS\0", Kind.AUDIO_VIDEO, "application/ogg"),
    (b"ID3", Kind.AUDIO_VIDEO, "audio/mpeg"),
    (b"\x1aE\xdf\xa3", Kind.AUDIO_VIDEO, "video/webm"),
)
_FIRST_BYTES = frozenset(signature[0][0] for signature in _SIGNATURES) | frozenset(b"R")
_RIFF = {
    b"WEBP": (Kind.IMAGE, "image/webp"),
    b"WAVE": (Kind.AUDIO_VIDEO, "audio/wave"),
    b"AVI ": (Kind.AUDIO_VIDEO, "video/avi"),
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


def identify(content_type: str | None, head: bytes = b"") -> Media:
    """The media of a document from its `Content-Type` and its first bytes (as many as are there, content-decoded)."""
    sent = mime.from_header(content_type)
    if sent is None or sent.essence in _UNKNOWN:
        kind, essence = _sniff(head[:SNIFF_BYTES])
        return Media(kind, essence, sent.charset if sent else None)
    kind = kind_of(sent.essence)
    if kind in _READ_AS_TEXT:
        kind, essence = _corrected(kind, sent.essence, head[:SNIFF_BYTES])
        return Media(kind, essence, sent.charset)
    return Media(kind, sent.essence, sent.charset)


def kind_of(essence: str) -> Kind:
    """What a header alone promises; fetch asks this before it takes the body."""
    kind = _KIND_OF_ESSENCE.get(essence)
    if kind is not None:
        return kind
    if essence.endswith("+xml"):
        return Kind.XML
    return _KIND_OF_TYPE.get(essence.partition("/")[0], Kind.OTHER)


def _corrected(kind: Kind, essence: str, head: bytes) -> tuple[Kind, str]:
    """Where the bytes deny what the header says of a text, they are believed."""
    if head and head[0] in _FIRST_BYTES and (signed := _signature(head)) is not None:
        return signed
    if kind is Kind.TEXT:
        is_binary = not head.startswith(_TEXT_BOMS) and _BINARY.search(head) is not None
        return (Kind.OTHER, "application/octet-stream") if is_binary else (kind, essence)
    if kind is Kind.XML:
        return _xml_kind(head), essence
    if kind is Kind.HTML and head.startswith((b"<?xml", b"<rss", b"<feed")) and _root(head) in _FEED_ROOTS:
        return Kind.FEED, essence
    return kind, essence


def _sniff(head: bytes) -> tuple[Kind, str]:
    """The type of bytes that came without one."""
    if _HTML_START.match(head):
        return Kind.HTML, "text/html"
    if head.lstrip(b"\t\n\f\r ").startswith((b"<?xml", b"\xef\xbb\xbf<?xml")):
        return _xml_kind(head), "text/xml"
    if (signed := _signature(head)) is not None:
        return signed
    if head.startswith(_TEXT_BOMS) or not _BINARY.search(head):
        return Kind.TEXT, "text/plain"
    return Kind.OTHER, "application/octet-stream"


def _signature(head: bytes) -> tuple[Kind, str] | None:
    for signature, kind, essence in _SIGNATURES:
        if head.startswith(signature):
            return kind, essence
    return _RIFF.get(head[8:12]) if head.startswith(b"RIFF") else None


def _xml_kind(head: bytes) -> Kind:
    root = _root(head)
    if root in _FEED_ROOTS:
        return Kind.FEED
    return Kind.XHTML if root == b"html" else Kind.XML


def _root(head: bytes) -> bytes:
    root = _ROOT.match(head)
    return b"" if root is None else root[1].lower()
