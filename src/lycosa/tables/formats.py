"""The formats of tables: TOL, the table of links, and TVI, the table of volatile information.

    # tol 1                      the first line: which table, which version
    # of: page.html              header lines, `# name: value`; unknown names are passed over
    # document: sha-256=…        the digest of the document
    internal<TAB>/a.html<TAB>A   rows: fields between tabs; backslash, tab, line feed and return are escaped

A row of a TOL is place, address as written, anchor, rel, element; the last three may be missing (the element is then
`a`). A row of a TVI is a part's id (see `web.volatile`) and its content; its header `frame` is the digest of the
document without its parts. With the stored document and a new TVI, `patch_document` makes the document that the host
would send now, byte by byte, or says that the whole has to be fetched.

Pure. Whatever the bytes, reading gives a table or a `TableRefusal` that says why it is ignored; a table that is broken
in one line is ignored as a whole; what is written is read back equal. What a table says is a hint: whoever reads it
joins, sifts and checks its links as those of a document. Specified in docs/formats.md.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

import msgspec

from lycosa.web import (
    MAX_VOLATILE_PARTS,
    SNIFF_BYTES,
    LinkKind,
    Links,
    MediaKind,
    cut_parts,
    fill_parts,
    identify_media,
    is_part_id,
    marked_parts,
    parts_by_id,
    selected_and_marked_parts,
    selected_parts,
)

TOL, TVI = "tol", "tvi"
TOL_REL = "table-of-links"  # the relation in the Link header by which a response says that its host has tables
VERSION = 1
TABLE_MAX_BYTES = 4_000_000
MAX_ROWS = 50_000
MAX_LINE_BYTES = 64 * 1024
MAX_HEADERS = 32

# The last part of a name that says what a file is, not which one: `.html`, but not the `.2` of `v1.2`.
_EXTENSION = re.compile(r"(?<=[^/])\.[A-Za-z][A-Za-z0-9]{0,4}\Z")
_HEADER = re.compile(r"# ([a-z-]{1,32}): ([^\x00-\x1f\x7f]*)\Z")
_ESCAPE = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"}
_ESCAPED = re.compile(r"[\\\t\n\r]")
_UNESCAPE = {escape: letter for letter, escape in _ESCAPE.items()}
_BACKSLASH = re.compile(r"\\.?", re.DOTALL)


class TableRefusal(StrEnum):
    """Why a table is ignored."""

    NOT_A_TABLE = "not a table"  # what a host answers that has a page for every address
    VERSION = "a version that is not known"
    TOO_LARGE = "too large"
    ENCODING = "not UTF-8"
    BROKEN = "a line that means nothing"
    OTHER_DOCUMENT = "of another document"
    FRAME_CHANGED = "more than the volatile parts has changed"
    NOT_WHAT_IT_SAYS = "its digest is of something else"


class TableRows(NamedTuple):
    """A table as read: header fields, and rows of fields with escapes undone."""

    headers: dict[str, str]
    rows: list[list[str]]


def read_table(body: bytes, word: str) -> TableRows | TableRefusal:
    """The table `word` (tol, tvi) in `body`."""
    if len(body) > TABLE_MAX_BYTES:
        return TableRefusal.TOO_LARGE
    body = body.removeprefix(b"\xef\xbb\xbf")
    start = f"# {word} ".encode()
    if not body.startswith(start):
        return TableRefusal.NOT_A_TABLE
    try:
        lines = body.decode().replace("\r\n", "\n").split("\n")
    except UnicodeDecodeError:
        return TableRefusal.ENCODING
    if lines[0] != f"# {word} {VERSION}":
        return TableRefusal.VERSION if lines[0][len(start) :].isdecimal() else TableRefusal.NOT_A_TABLE
    if lines[-1]:  # cut on its way: the last line is not whole
        return TableRefusal.BROKEN
    return _read_lines(lines[1:-1])


def read_table_headers(body: bytes, word: str) -> dict[str, str] | TableRefusal:
    """The header fields alone, which is quick; the rows are not looked at."""
    lines = body[: MAX_HEADERS * 4096].split(b"\n", MAX_HEADERS + 1)
    headers = [line for line in lines if line.startswith(b"# ")]
    found = read_table(b"\n".join([*headers, b""]), word)
    return found if isinstance(found, TableRefusal) else found.headers


def _read_lines(lines: list[str]) -> TableRows | TableRefusal:
    first = next((i for i, line in enumerate(lines) if not line.startswith("# ")), len(lines))
    if first > MAX_HEADERS or len(lines) - first > MAX_ROWS:
        return TableRefusal.TOO_LARGE
    headers: dict[str, str] = {}
    for line in lines[:first]:
        header = _HEADER.match(line)
        if header is None or header[1] in headers:
            return TableRefusal.BROKEN
        headers[header[1]] = header[2]
    if max(map(len, lines), default=0) > MAX_LINE_BYTES:
        return TableRefusal.TOO_LARGE
    rows = [line.split("\t") for line in lines[first:]]
    if not any("\\" in line for line in lines):
        return TableRows(headers, rows)
    try:
        headers = {name: _unescaped(value) for name, value in headers.items()}
        return TableRows(headers, [[_unescaped(field) for field in row] for row in rows])
    except KeyError:
        return TableRefusal.BROKEN


def write_table(word: str, headers: Mapping[str, str], *columns: Sequence[str]) -> bytes | TableRefusal:
    """The bytes of a table; empty headers and empty last fields are left out. Refused if nobody would read it."""
    lines = [f"# {word} {VERSION}"]
    for name, value in headers.items():
        if value:
            if _HEADER.match(line := f"# {name}: {_escaped(value)}") is None:
                return TableRefusal.BROKEN
            lines.append(line)
    start = len(lines)
    escaped = [list(map(_escaped, column)) if _ESCAPED.search("\0".join(column)) else column for column in columns]
    lines += [line.rstrip("\t") for line in map("\t".join, zip(*escaped, strict=True))]
    try:
        body = "\n".join([*lines, ""]).encode()
    except UnicodeEncodeError:
        return TableRefusal.ENCODING
    is_large = len(lines) - start > MAX_ROWS or len(body) > TABLE_MAX_BYTES or max(map(len, lines)) > MAX_LINE_BYTES
    return TableRefusal.TOO_LARGE if is_large else body


def _escaped(field: str) -> str:
    return _ESCAPED.sub(lambda found: _ESCAPE[found[0]], field) if _ESCAPED.search(field) else field


def _unescaped(field: str) -> str:
    return _BACKSLASH.sub(lambda found: _UNESCAPE[found[0]], field) if "\\" in field else field


def table_url(url: str, word: str) -> str | None:
    """The URL of a document's table: same name, other extension; `index` for a folder. None for a table itself.

    A query stays where it is. Takes URLs and paths alike, without a fragment.
    """
    path, mark, query = url.partition("?")
    head, slash, name = path.rpartition("/")
    stem = _EXTENSION.sub("", name) if name else "index"
    if name.endswith((".tol", ".tvi")):
        return None
    return f"{head}{slash}{stem}.{word}{mark}{query}"


def is_table_of(of: str, url: str) -> bool:
    """Whether a table whose header says `of` can be that of the document at `url`; an empty header fits all."""
    name = url.partition("?")[0].rpartition("/")[2]
    return not of or of == name or (not name and of.startswith("index."))


def table_digest(body: bytes) -> str:
    """A digest as tables write it."""
    return f"sha-256={hashlib.sha256(body).hexdigest()}"


_ELEMENTS = {kind.name.lower(): kind for kind in LinkKind if kind is not LinkKind.REDIRECT}
_NAMES = {int(kind): name if name != "a" else "" for name, kind in _ELEMENTS.items()}
_PLACES = ("external", "internal")
_ABSOLUTE = re.compile(r"(?:([A-Za-z][A-Za-z0-9+.-]*):)?(?:[/\\]{2}([^/\\?#]*))?")
_SLASHES = ("/", "\\")
_PORTS = {"http": ":80", "https": ":443"}


class Tol(msgspec.Struct, frozen=True):
    """A TOL holds the links of one document and what the document tells robots.

    `of` is its file name, `document` its digest, `site` the origin that internal links belong to, `selector` what chose
    its volatile parts, `volatile` how many those are. All but the links may be missing.
    """

    links: Links
    base_href: str = ""
    robots: str = ""
    of: str = ""
    document: str = ""
    site: str = ""
    selector: str = ""
    volatile: int = 0


def write_tol(tol: Tol) -> bytes | TableRefusal:
    """The bytes of a TOL, or why nobody would read it."""
    headers = {
        "of": tol.of,
        "document": tol.document,
        "site": tol.site,
        "base": tol.base_href,
        "robots": tol.robots,
        "volatile": tol.selector,
        "parts": str(tol.volatile or ""),
    }
    links = tol.links
    home = _authority(tol.site, "") if tol.site else ""
    base = _authority(tol.base_href, home) if tol.base_href else home
    of_relative = _PLACES[base == home]
    places = [
        _PLACES[_authority(href, base) == home] if ":" in href or href[:1] in _SLASHES else of_relative
        for href in links.hrefs
    ]
    names = [_NAMES[kind] for kind in links.kinds]
    return write_table(TOL, headers, places, links.hrefs, links.anchors, links.rels, names)


def parse_tol(body: bytes) -> Tol | TableRefusal:
    """The TOL in `body`, or why it is ignored."""
    found = read_table(body, TOL)
    if isinstance(found, TableRefusal):
        return found
    hrefs: list[str] = []
    kinds = bytearray()
    anchors: list[str] = []
    rels: list[str] = []
    for row in found.rows:
        if len(row) > 5 or row[0] not in _PLACES:
            return TableRefusal.BROKEN
        _, href, anchor, rel, name = (*row, "", "", "", "")[:5]
        kind = _ELEMENTS.get(name or "a")
        if kind is None:
            return TableRefusal.BROKEN
        hrefs.append(href)
        kinds.append(kind)
        anchors.append(anchor)
        rels.append(rel)
    text, parts = found.headers.get, found.headers.get("parts", "0")
    if not (parts.isdecimal() and parts.isascii() and len(parts) < 10):
        return TableRefusal.BROKEN
    return Tol(
        Links(tuple(hrefs), bytes(kinds), tuple(anchors), tuple(rels)),
        base_href=text("base", ""),
        robots=text("robots", ""),
        of=text("of", ""),
        document=text("document", ""),
        site=text("site", ""),
        selector=text("volatile", ""),
        volatile=int(parts),
    )


def _authority(href: str, home: str) -> str:
    """The host and port that an address belongs to, written as in the address; `home` for one that names none."""
    absolute = _ABSOLUTE.match(href)
    assert absolute is not None  # every part of the pattern may be missing
    scheme, authority = absolute.groups()
    if authority is not None:
        return authority.lower().removesuffix(_PORTS.get((scheme or "").lower(), "\n"))
    return home if scheme is None or scheme.lower() in _PORTS else f"{scheme}:"


class Tvi(msgspec.Struct, frozen=True):
    """A TVI holds the volatile parts of one document: pairs of id and content.

    `selector` chose the parts that are not marked. Contents are bytes: the file has them as UTF-8 or, where they are
    not, byte by byte as Latin-1.
    """

    parts: tuple[tuple[str, bytes], ...]
    document: str
    frame: str
    of: str = ""
    selector: str = ""


def has_xml_parts(body: bytes, content_type: str | None) -> bool:
    """Whether the volatile parts of a document are marked as in XML; XHTML is marked as HTML is."""
    return identify_media(content_type, body[:SNIFF_BYTES]).kind in (MediaKind.XML, MediaKind.FEED)


def tvi_of(body: bytes, *, is_xml: bool, selector: str = "", of: str = "") -> Tvi | None:
    """The TVI of a document; None if it has no volatile parts, or one that cannot be found in the source.

    Its parts are the marked ones and, in HTML, those that the selector finds. Raises ValueError for a bad selector.
    """
    chosen = [] if is_xml or not selector else selected_parts(body, selector)
    if chosen is None:
        return None
    parts = selected_and_marked_parts(body, chosen) if chosen else marked_parts(body, is_xml=is_xml)
    if not parts:
        return None
    contents = tuple((part.id, body[part.start : part.end]) for part in parts)
    return Tvi(contents, table_digest(body), table_digest(cut_parts(body, parts)), of, selector if chosen else "")


def write_tvi(tvi: Tvi) -> bytes | TableRefusal:
    """The bytes of a TVI, or why nobody would read it."""
    encoding = "utf-8" if all(map(_is_utf_8, (content for _, content in tvi.parts))) else "latin-1"
    headers = {
        "of": tvi.of,
        "document": tvi.document,
        "frame": tvi.frame,
        "encoding": "" if encoding == "utf-8" else encoding,
        "volatile": tvi.selector,
    }
    names, contents = [name for name, _ in tvi.parts], [content.decode(encoding) for _, content in tvi.parts]
    return write_table(TVI, headers, names, contents)


def parse_tvi(body: bytes) -> Tvi | TableRefusal:
    """The TVI in `body`, or why it is ignored."""
    found = read_table(body, TVI)
    if isinstance(found, TableRefusal):
        return found
    headers = found.headers
    encoding = headers.get("encoding", "utf-8")
    names = [row[0] for row in found.rows]
    if encoding not in ("utf-8", "latin-1") or not headers.get("document") or not headers.get("frame"):
        return TableRefusal.BROKEN
    if len(names) > MAX_VOLATILE_PARTS:
        return TableRefusal.TOO_LARGE
    if any(len(row) > 2 for row in found.rows) or len(set(names)) < len(names) or not all(map(is_part_id, names)):
        return TableRefusal.BROKEN
    try:
        parts = tuple((name, "".join(rest).encode(encoding)) for name, *rest in found.rows)
    except UnicodeEncodeError:
        return TableRefusal.ENCODING
    return Tvi(parts, headers["document"], headers["frame"], headers.get("of", ""), headers.get("volatile", ""))


def patch_document(body: bytes, tvi: Tvi, *, is_xml: bool) -> bytes | TableRefusal:
    """The stored document with the table's parts in it: what the host would send now, proved by its digest."""
    if table_digest(body) == tvi.document:
        return body
    parts = parts_by_id(body, [name for name, _ in tvi.parts], is_xml=is_xml)
    if parts is None or table_digest(cut_parts(body, parts)) != tvi.frame:
        return TableRefusal.FRAME_CHANGED
    contents = dict(tvi.parts)
    patched = fill_parts(body, [(part, contents[part.id]) for part in parts])
    return patched if table_digest(patched) == tvi.document else TableRefusal.NOT_WHAT_IT_SAYS


def _is_utf_8(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True
