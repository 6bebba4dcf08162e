"""TVI, the table of volatile information (P7): the parts of a document that change often, in a small file beside it.

    # tvi 1
    # of: page.html
    # document: sha-256=…     of the document with these parts in it
    # frame: sha-256=…        of the document with the content of all its parts cut out
    1<TAB>Read 17 times

A row is a part's id (see `web.volatile`) and its content. With the stored document and a new table, `patch` makes the
document that the host would send now, byte by byte, or says that the whole has to be fetched.
Pure: any bytes give a `Tvi` or a `Refusal`; what is written is read back equal.
"""

import msgspec

from lycosa.web import table, volatile
from lycosa.web.media import SNIFF_BYTES, Kind, identify
from lycosa.web.table import Refusal, digest_of

WORD = "tvi"
REL = "table-of-volatile-information"
UTF_8, LATIN_1 = "utf-8", "latin-1"
_XML = (Kind.XML, Kind.FEED)


class Tvi(msgspec.Struct, frozen=True):
    """The volatile parts of one document: pairs of id and content. `selector` is what those were chosen by that are not
    marked. Contents are bytes: the table has them as UTF-8 or, where they are none, byte by byte as Latin-1."""

    parts: tuple[tuple[str, bytes], ...]
    document: str
    frame: str
    of: str = ""
    selector: str = ""


def is_xml(body: bytes, content_type: str | None) -> bool:
    """Whether the volatile parts of a document are marked as in XML; what is XHTML has those of HTML."""
    return identify(content_type, body[:SNIFF_BYTES]).kind in _XML


def of_document(body: bytes, *, is_xml: bool, selector: str = "", of: str = "") -> Tvi | None:
    """The table of a document; None if it has no volatile parts, or one that the source does not show.

    Its parts are the marked ones and, in HTML, those that the selector finds too. Raises ValueError for what is none.
    """
    chosen = [] if is_xml or not selector else volatile.selected(body, selector)
    if chosen is None:
        return None
    parts = volatile.united(body, chosen) if chosen else volatile.marked(body, is_xml=is_xml)
    if not parts:
        return None
    contents = tuple((part.id, body[part.start : part.end]) for part in parts)
    return Tvi(contents, digest_of(body), digest_of(volatile.cut(body, parts)), of, selector if chosen else "")


def write(tvi: Tvi) -> bytes | Refusal:
    """The bytes of a table."""
    encoding = UTF_8 if all(map(_is_utf_8, (content for _, content in tvi.parts))) else LATIN_1
    headers = {
        "of": tvi.of,
        "document": tvi.document,
        "frame": tvi.frame,
        "encoding": "" if encoding == UTF_8 else encoding,
        "volatile": tvi.selector,
    }
    names, contents = [name for name, _ in tvi.parts], [content.decode(encoding) for _, content in tvi.parts]
    return table.write(WORD, headers, names, contents)


def parse(body: bytes) -> Tvi | Refusal:
    """The table in `body`, or why it is ignored."""
    found = table.read(body, WORD)
    if isinstance(found, Refusal):
        return found
    headers = found.headers
    encoding = headers.get("encoding", UTF_8)
    names = [row[0] for row in found.rows]
    if encoding not in (UTF_8, LATIN_1) or not headers.get("document") or not headers.get("frame"):
        return Refusal.BROKEN
    if len(names) > volatile.MAX_PARTS:
        return Refusal.TOO_LARGE
    if any(len(row) > 2 for row in found.rows) or len(set(names)) < len(names) or not all(map(volatile.is_id, names)):
        return Refusal.BROKEN
    try:
        parts = tuple((name, "".join(rest).encode(encoding)) for name, *rest in found.rows)
    except UnicodeEncodeError:
        return Refusal.ENCODING
    return Tvi(parts, headers["document"], headers["frame"], headers.get("of", ""), headers.get("volatile", ""))


def patch(body: bytes, tvi: Tvi, *, is_xml: bool) -> bytes | Refusal:
    """The stored document with the table's parts in it: what the host would send now, proved by its digest."""
    if digest_of(body) == tvi.document:
        return body
    parts = volatile.named(body, [name for name, _ in tvi.parts], is_xml=is_xml)
    if parts is None or digest_of(volatile.cut(body, parts)) != tvi.frame:
        return Refusal.FRAME_CHANGED
    contents = dict(tvi.parts)
    patched = volatile.fill(body, [(part, contents[part.id]) for part in parts])
    return patched if digest_of(patched) == tvi.document else Refusal.NOT_WHAT_IT_SAYS


def _is_utf_8(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True
