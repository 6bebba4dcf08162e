"""Which encoding a document is in: byte order mark, then HTTP, then what it says of itself, then windows-1252.

Follows the HTML standard's encoding sniffing, with one step of our own: a document that declares nothing and is valid
UTF-8 with at least one character beyond ASCII is taken as UTF-8. (A browser must show the first bytes before it has the
last, and so cannot look; we can, and text in another encoding is practically never valid UTF-8 by chance.)
A declaration after the first 1,024 bytes comes too late for the sniffing; a browser that meets one starts over in the
encoding it names, so we look for it a little further on.
Invariant: never raises; reads no more than 16 KiB in search of a declaration. Called once a document.
"""

import codecs
import re
from typing import Literal

from lycosa.web.encodings import decode_text, encoding_of
from lycosa.web.kernel import native

# How a document may declare its encoding: in a `<meta>`, in an XML declaration, or not at all.
Form = Literal["html", "xml", "text"]

DEFAULT_CHARSET = "windows-1252"
# The HTML standard stops looking for a declaration here.
PRESCAN_BYTES = 1024
# How far a late declaration is looked for: a head longer than this is rare, and each byte here costs Python time.
LATE_BYTES = 16 * 1024

_MARKS = {"UTF-8": b"\xef\xbb\xbf", "UTF-16BE": b"\xfe\xff", "UTF-16LE": b"\xff\xfe"}
_COMMENT_END = re.compile(rb"-->")
_META = re.compile(rb"<meta(?=[\t\n\f\r /])", re.IGNORECASE)
_TAG = re.compile(rb"</?[a-zA-Z][^\t\n\f\r >]*")
_ATTRIBUTE = re.compile(
    rb"[\t\n\f\r /]*([^\t\n\f\r />=][^\t\n\f\r />=]*|=[^\t\n\f\r />=]*)"
    rb"(?:[\t\n\f\r ]*=[\t\n\f\r ]*(?:\"([^\"]*)\"|'([^']*)'|([^\"'\t\n\f\r >][^\t\n\f\r >]*)))?"
)
_UNCLOSED_VALUE = re.compile(rb"[\t\n\f\r ]*=[\t\n\f\r ]*[\"']")
_CONTENT_CHARSET = re.compile(
    rb"charset[\t\n\f\r ]*=[\t\n\f\r ]*(?:\"([^\"]*)\"|'([^']*)'|([^\"'\t\n\f\r ;][^\t\n\f\r ;]*))", re.IGNORECASE
)
_XML_DECLARATION = re.compile(rb"<\?xml[^>]*?encoding[\t\n\r ]*=[\t\n\r ]*(?:\"([^\">]*)\"|'([^'>]*)')")


def detect_charset(body: bytes, *, http_charset: str | None = None, form: Form = "html") -> str:
    """The encoding of `body`. `http_charset` is Content-Type's parameter as sent; an unknown one counts for nothing."""
    kernel = native()
    if kernel is not None:
        return str(kernel.detect_charset(body, http_charset, form))
    for encoding, mark in _MARKS.items():
        if body.startswith(mark):
            return encoding
    if http_charset is not None and (declared := encoding_of(http_charset)) is not None:
        return declared
    if form == "xml":
        return _xml_declared(body) or "UTF-8"
    if form == "text":
        return _by_validity(body)
    return _prescan(body) or _xml_declared(body) or _prescan(body, within=LATE_BYTES) or _by_validity(body)


def to_utf8(body: bytes, encoding: str) -> bytes:
    """`body` as UTF-8 without a byte order mark. Bytes that are UTF-8 already are handed on unread and unchecked."""
    kernel = native()
    if kernel is not None:
        return bytes(kernel.to_utf8(body, encoding))
    body = body.removeprefix(_MARKS.get(encoding, b""))
    if encoding == "UTF-8" or (encoding == DEFAULT_CHARSET and body.isascii()):
        return body
    return decode_text(body, encoding).encode()


def _prescan(body: bytes, *, within: int = PRESCAN_BYTES) -> str | None:
    """The encoding that a `<meta>` in the first bytes declares, by the standard's prescan algorithm."""
    head = body[:within]
    at = head.find(b"<") if b"charset" in head.lower() else -1
    while at >= 0:
        if head.startswith(b"<!--", at):
            end = _COMMENT_END.search(head, at + 2)
            at = len(head) if end is None else end.end()
        elif meta := _META.match(head, at):
            declared, at = _read_meta(head, meta.end())
            if declared is not None:
                return declared
        elif tag := _TAG.match(head, at):
            _, at = _attributes(head, tag.end())
        elif head[at + 1 : at + 2] in (b"!", b"/", b"?"):
            end_at = head.find(b">", at + 1)
            at = len(head) if end_at < 0 else end_at + 1
        else:
            at += 1
        at = head.find(b"<", at)
    return None


def _xml_declared(body: bytes) -> str | None:
    """The encoding in `<?xml … encoding="…"?>`; a document whose declaration can be read as ASCII is not UTF-16."""
    if body.startswith(b"<\0?\0x\0"):
        return "UTF-16LE"
    if body.startswith(b"\0<\0?\0x"):
        return "UTF-16BE"
    if not body.startswith(b"<?xml"):
        return None
    declaration = _XML_DECLARATION.match(body[:PRESCAN_BYTES])
    if declaration is None:
        return None
    return _as_declared(_encoding_of_bytes(declaration[1] or declaration[2] or b""))


def _read_meta(head: bytes, at: int) -> tuple[str | None, int]:
    """What the `<meta>` whose attributes begin at `at` declares, and where it ends."""
    attributes, end = _attributes(head, at)
    charset = _encoding_of_bytes(attributes[b"charset"]) if b"charset" in attributes else None
    if b"charset" not in attributes and attributes.get(b"http-equiv", b"").lower() == b"content-type":
        charset = _content_charset(attributes.get(b"content", b""))
    return _as_declared(charset), end


def _as_declared(encoding: str | None) -> str | None:
    """A document that can be read as ASCII is not in UTF-16, whatever it says; and x-user-defined means the default."""
    if encoding in ("UTF-16LE", "UTF-16BE"):
        return "UTF-8"
    return DEFAULT_CHARSET if encoding == "x-user-defined" else encoding


def _content_charset(content: bytes) -> str | None:
    found = _CONTENT_CHARSET.search(content)
    return None if found is None else _encoding_of_bytes(found[1] or found[2] or found[3] or b"")


def _attributes(head: bytes, at: int) -> tuple[dict[bytes, bytes], int]:
    """The attributes from `at` up to the tag's end (lower-case names, the first of a name counts), and that end.

    A tag that does not end within the prescan has none: what is cut off may have been about to say otherwise.
    """
    found: dict[bytes, bytes] = {}
    while attribute := _ATTRIBUTE.match(head, at):
        at = attribute.end()
        if attribute.lastindex == 1 and _UNCLOSED_VALUE.match(head, at):
            return {}, len(head)
        value = attribute[2] or attribute[3] or attribute[4] or b""
        found.setdefault(attribute[1].lower(), value)
    end = head.find(b">", at)
    return ({}, len(head)) if end < 0 else (found, end + 1)


def _by_validity(body: bytes) -> str:
    if body.isascii():
        return DEFAULT_CHARSET
    try:
        codecs.utf_8_decode(body, "strict", False)  # a last character cut off by a size limit is no objection
    except UnicodeDecodeError:
        return DEFAULT_CHARSET
    return "UTF-8"


def _encoding_of_bytes(label: bytes) -> str | None:
    return encoding_of(label.decode("latin-1"))
