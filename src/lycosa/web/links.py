"""The links of a page: what is written, where, with which words — not yet what it points to.

Columns rather than records: a page has around a hundred links, and four tuples cost a tenth of a hundred objects to
make, keep and send. Joining a reference with the page's base is `web.url`'s work; each distinct one is here once.
Called by the analysers; read by the engine, the graph and the frontier.
"""

import re
from collections.abc import Iterator, Mapping
from enum import IntEnum
from itertools import compress
from typing import NamedTuple

import msgspec

WHITESPACE = "\t\n\f\r "
# Longer anchors are text, not names; the link index keeps what distinguishes.
ANCHOR_LENGTH = 256

_NO_ADDRESS = ("data:", "javascript:")

# A refresh as the HTML standard reads it: time, separator, an optional "url=", an optional quote.
_REFRESH = re.compile(
    r"[\t\n\f\r ]*+(?:[0-9]++|(?=\.))[0-9.]*+(?:[\t\n\f\r ]*+[;,]|[\t\n\f\r ])[\t\n\f\r ]*+"
    r"(?:url[\t\n\f\r ]*+=[\t\n\f\r ]*+)?+(?:\"([^\"]*+)|'([^']*+)|(.++))",
    re.IGNORECASE | re.DOTALL,
)


class LinkKind(IntEnum):
    """The element a link is written in. Values are stored: never renumber."""

    A = 1
    AREA = 2
    IFRAME = 3
    FRAME = 4
    IMG = 5
    LINK = 6
    REFRESH = 7
    REDIRECT = 8  # written in no element: the page is one


class Link(NamedTuple):
    """One link, for those who prefer rows."""

    href: str
    kind: LinkKind
    anchor: str
    rel: str

    @property
    def is_nofollow(self) -> bool:
        return "nofollow" in self.rel.lower().split()


class Links(msgspec.Struct, frozen=True):
    """Links in columns, in document order within a kind, each pair of `href` and kind once.

    `hrefs` are as written, without the white space around them; but queries beyond ASCII are escaped where the page is
    not in UTF-8 (`web.queries`). `anchors` has the first non-empty text. `rels` has the
    words all occurrences agree on, so that a link is nofollow only if it is so everywhere on the page.
    """

    hrefs: tuple[str, ...] = ()
    kinds: bytes = b""
    anchors: tuple[str, ...] = ()
    rels: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.hrefs)

    def __iter__(self) -> Iterator[Link]:
        for href, kind, anchor, rel in zip(self.hrefs, self.kinds, self.anchors, self.rels, strict=True):
            yield Link(href, LinkKind(kind), anchor, rel)


class Collector:
    """Gathers links into columns; the analysers' only way to make `Links`."""

    __slots__ = ("_anchors", "_hrefs", "_kinds", "_places", "_rels")

    def __init__(self) -> None:
        self._hrefs: list[str] = []
        self._kinds = bytearray()
        self._anchors: list[str] = []
        self._rels: list[str] = []
        self._places: dict[tuple[str, int], int] = {}

    def add(self, href: str, kind: LinkKind, *, anchor: str = "", rel: str = "") -> None:
        """Add one link, unless it is there or is no address (`is_address`)."""
        href = href.strip(WHITESPACE)
        place = self._places.get((href, kind))
        if place is not None:
            self._anchors[place] = self._anchors[place] or anchor
            self._rels[place] = agreed(self._rels[place], rel)
        elif is_address(href):
            self._places[href, kind] = len(self._hrefs)
            self._hrefs.append(href)
            self._kinds.append(kind)
            self._anchors.append(anchor)
            self._rels.append(rel)

    def extend(self, hrefs: list[str], kind: LinkKind, *, anchors: list[str], rels: Mapping[int, str]) -> None:
        """Add links of a kind not added before: distinct hrefs, not padded, a text each, and a `rel` for some places.

        What `add` looks for in each link is looked for in all of them at once: it is nearly never there.
        """
        if _are_loose(anchors):
            anchors = [" ".join(anchor.split()) for anchor in anchors]
        if max(map(len, anchors), default=0) > ANCHOR_LENGTH:
            anchors = [anchor if len(anchor) <= ANCHOR_LENGTH else short(anchor) for anchor in anchors]
        column = [""] * len(hrefs)
        for place, rel in rels.items():
            column[place] = rel
        together = "\0".join(hrefs).lower()
        if any(word in together for word in _NO_ADDRESS):
            good = list(map(is_address, hrefs))
            hrefs, anchors, column = (list(compress(each, good)) for each in (hrefs, anchors, column))
        self._hrefs += hrefs
        self._kinds += bytes((kind,)) * len(hrefs)
        self._anchors += anchors
        self._rels += column

    def links(self) -> Links:
        return Links(tuple(self._hrefs), bytes(self._kinds), tuple(self._anchors), tuple(self._rels))


def is_address(href: str) -> bool:
    """False for what stands in an address's place and is content: `data:` (often long) and `javascript:`."""
    return not href[:11].lower().startswith(_NO_ADDRESS)


def are_padded(hrefs: list[str]) -> bool:
    """Does one of them begin or end with white space?"""
    together = "\0".join(hrefs)
    is_spaced = any(space in together for space in WHITESPACE)
    return is_spaced and any(href.strip(WHITESPACE) != href for href in hrefs)


def _are_loose(texts: list[str]) -> bool:
    """Is there white space in one of them that is more than a single space between words?"""
    together = "\0".join(texts)
    return together != " ".join(together.split()) or "\0 " in together or " \0" in together


def agreed(rel: str, other: str) -> str:
    """The words two `rel` values share, in the first one's order."""
    if rel == other or not rel:
        return rel
    others = other.lower().split()
    return " ".join(word for word in rel.split() if word.lower() in others)


def short(text: str) -> str:
    """An anchor: white space collapsed, cut to `ANCHOR_LENGTH`."""
    words = text.split()
    if len(words) == 1:
        return words[0][:ANCHOR_LENGTH]
    return " ".join(words[:ANCHOR_LENGTH])[:ANCHOR_LENGTH].rstrip()


def refresh_target(content: str) -> str | None:
    """Where a `<meta http-equiv=refresh>` leads; `None` for a page that only reloads itself, or nonsense."""
    found = _REFRESH.match(content)
    if found is None:
        return None
    return (found[1] or found[2] or found[3] or "").strip(WHITESPACE) or None
