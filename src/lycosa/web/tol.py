"""TOL, the table of links (P4): the links of a document in a small file beside it, to be had before the document.

    # tol 1
    # of: page.html
    # document: sha-256=…     of the document that has these links
    internal<TAB>/a.html<TAB>Anchor words<TAB>nofollow<TAB>a

A row is place, address as written, anchor, rel, element; the last three may be missing (the element is then `a`).
Pure: any bytes give a `Tol` or a `Refusal`; what is written is read back equal. What a table says is a hint: whoever
reads it joins, sifts and checks its links as those of a document. Written by `augment`, read by the engine.
"""

import re

import msgspec

from lycosa.web import table
from lycosa.web.links import LinkKind, Links
from lycosa.web.table import Refusal

WORD = "tol"
REL = "table-of-links"  # of the Link header by which a response says that the host has them

_ELEMENTS = {kind.name.lower(): kind for kind in LinkKind if kind is not LinkKind.REDIRECT}
_NAMES = {int(kind): name if name != "a" else "" for name, kind in _ELEMENTS.items()}
_PLACES = ("external", "internal")
_ABSOLUTE = re.compile(r"(?:([A-Za-z][A-Za-z0-9+.-]*):)?(?:[/\\]{2}([^/\\?#]*))?")
_SLASHES = ("/", "\\")
_PORTS = {"http": ":80", "https": ":443"}


class Tol(msgspec.Struct, frozen=True):
    """The links of one document, and what it tells robots. `of` is its file name, `document` its digest, `site` the
    origin that internal links belong to, `selector` what chose its volatile parts, `volatile` how many those are; all
    may be missing."""

    links: Links
    base_href: str = ""
    robots: str = ""
    of: str = ""
    document: str = ""
    site: str = ""
    selector: str = ""
    volatile: int = 0


def write(tol: Tol) -> bytes | Refusal:
    """The bytes of a table."""
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
    return table.write(WORD, headers, places, links.hrefs, links.anchors, links.rels, names)


def parse(body: bytes) -> Tol | Refusal:
    """The table in `body`, or why it is ignored."""
    found = table.read(body, WORD)
    if isinstance(found, Refusal):
        return found
    hrefs: list[str] = []
    kinds = bytearray()
    anchors: list[str] = []
    rels: list[str] = []
    for row in found.rows:
        if len(row) > 5 or row[0] not in _PLACES:
            return Refusal.BROKEN
        _, href, anchor, rel, name = (*row, "", "", "", "")[:5]
        kind = _ELEMENTS.get(name or "a")
        if kind is None:
            return Refusal.BROKEN
        hrefs.append(href)
        kinds.append(kind)
        anchors.append(anchor)
        rels.append(rel)
    text, parts = found.headers.get, found.headers.get("parts", "0")
    if not (parts.isdecimal() and parts.isascii() and len(parts) < 10):
        return Refusal.BROKEN
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
