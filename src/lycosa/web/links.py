"""The links of a page: what is written, where, with which words; not yet what it points to.

Columns rather than records: a page has around a hundred links, and four tuples cost a tenth of a hundred objects to
make, keep and send. Joining a reference with the page's base is the work of `web.url`; each distinct one is here once.
The queries of links on pages that are not in UTF-8 are escaped in the page's encoding, as browsers do, because only
here the encoding is known. `parse_link_header` reads the `Link` header (RFC 8288) of a response.
Pure, linear, never raises. Called by the analysers; read by the crawl, the graph and the frontier.
"""

import re
import string
from collections.abc import Iterator
from enum import IntEnum
from typing import Any, Generic, NamedTuple, TypeVar

from lycosa.web.encodings import encode_text

WHITESPACE = "\t\n\f\r "
# Longer anchors are text, not names; the link index keeps what distinguishes.
ANCHOR_LENGTH = 256
# Of one page; a page with as many counts as cut. The kernel has the same bound.
MAX_LINKS = 50_000

_NO_ADDRESS = ("data:", "javascript:")
_FIRST_OF_NONE = frozenset("dDjJ")

# A refresh as the HTML standard reads it: time, separator, an optional "url=", an optional quote.
_REFRESH = re.compile(
    r"[\t\n\f\r ]*+(?:[0-9]++|(?=\.))[0-9.]*+(?:[\t\n\f\r ]*+[;,]|[\t\n\f\r ])[\t\n\f\r ]*+"
    r"(?:url[\t\n\f\r ]*+=[\t\n\f\r ]*+)?+(?:\"([^\"]*+)|'([^']*+)|(.++))",
    re.ASCII | re.IGNORECASE | re.DOTALL,
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
    """One link, for callers that prefer rows."""

    href: str
    kind: LinkKind
    anchor: str
    rel: str


Columns = tuple[tuple[str, ...], bytes, tuple[str, ...], tuple[str, ...]]
AnyColumns = TypeVar("AnyColumns", bound=tuple[Any, ...])


class KernelColumns(Generic[AnyColumns]):
    """Links in columns, the first three of which are hrefs, kinds and anchors. Of what the kernel has found `kernel` is
    what it keeps; it becomes strings when these are asked for, which a crawl seldom does."""

    __slots__ = ("_columns", "kernel")

    def __init__(self, columns: AnyColumns) -> None:
        self._columns: AnyColumns | None = columns
        self.kernel: Any = None

    @property
    def columns(self) -> AnyColumns:
        if self._columns is None:
            self._columns = self.kernel.columns()
        return self._columns

    @property
    def hrefs(self) -> tuple[str, ...]:
        hrefs: tuple[str, ...] = self.columns[0]
        return hrefs

    @property
    def anchors(self) -> tuple[str, ...]:
        anchors: tuple[str, ...] = self.columns[2]
        return anchors

    def __len__(self) -> int:
        return len(self.kernel if self._columns is None else self._columns[0])


class Links(KernelColumns[Columns]):
    """Links in columns, in document order within a kind, each pair of `href` and kind once.

    `hrefs` are as written, without the white space around them; but queries beyond ASCII are escaped where the page is
    not in UTF-8 (`escape_queries`). `anchors` has the first non-empty text. `rels` has the words that all occurrences
    share, so that a link is nofollow only if it is so everywhere on the page.
    """

    __slots__ = ()

    def __init__(
        self,
        hrefs: tuple[str, ...] = (),
        kinds: bytes = b"",
        anchors: tuple[str, ...] = (),
        rels: tuple[str, ...] = (),
    ) -> None:
        super().__init__((hrefs, kinds, anchors, rels))

    @classmethod
    def by_kernel(cls, found: Any) -> "Links":
        """The links of a page that the kernel has read."""
        links = cls.__new__(cls)
        links._columns, links.kernel = None, found
        return links

    @property
    def is_ascii(self) -> bool:
        """Are all addresses?"""
        return "".join(self.hrefs).isascii() if self._columns is not None else bool(self.kernel.is_ascii())

    @property
    def kinds(self) -> bytes:
        return self._columns[1] if self._columns is not None else self.kernel.kinds()

    @property
    def rels(self) -> tuple[str, ...]:
        return self.columns[3]

    def __repr__(self) -> str:
        return f"Links{self.columns}"

    def __eq__(self, other: object) -> bool:
        return self.columns == other.columns if isinstance(other, Links) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.columns)

    def __reduce__(self) -> tuple[type["Links"], Columns]:
        return Links, self.columns

    def __iter__(self) -> Iterator[Link]:
        for href, kind, anchor, rel in zip(self.hrefs, self.kinds, self.anchors, self.rels, strict=True):
            yield Link(href, LinkKind(kind), anchor, rel)


class LinkCollector:
    """Gathers links into columns; the analysers' only way to make `Links`."""

    __slots__ = ("_anchors", "_hrefs", "_kinds", "_places", "_rels")

    def __init__(self) -> None:
        self._hrefs: list[str] = []
        self._kinds = bytearray()
        self._anchors: list[str] = []
        self._rels: list[str] = []
        self._places: dict[tuple[str, int], int] = {}

    def add(self, href: str, kind: LinkKind, *, anchor: str = "", rel: str = "") -> None:
        """Adds one link, unless it is there already, is no address (`can_be_address`), or there are too many."""
        href = href.strip(WHITESPACE)
        key = href, +kind  # an enumeration's own hash is slow
        place = self._places.get(key)
        if place is not None:
            self._anchors[place] = self._anchors[place] or anchor
            self._rels[place] = common_rel(self._rels[place], rel)
        elif can_be_address(href) and len(self._hrefs) < MAX_LINKS:
            self._places[key] = len(self._hrefs)
            self._hrefs.append(href)
            self._kinds.append(kind)
            self._anchors.append(anchor)
            self._rels.append(rel)

    def links(self) -> Links:
        return Links(tuple(self._hrefs), bytes(self._kinds), tuple(self._anchors), tuple(self._rels))


def can_be_address(href: str) -> bool:
    """Whether `href` can be one; `data:` (often long) and `javascript:` stand in an address's place and are content."""
    return href[:1] not in _FIRST_OF_NONE or not href[:11].lower().startswith(_NO_ADDRESS)


def common_rel(rel: str, other: str) -> str:
    """The words two `rel` values share, in the first one's order."""
    if rel == other or not rel:
        return rel
    others = frozenset(other.lower().split())
    return " ".join(word for word in rel.split() if word.lower() in others)


def shorten_anchor(text: str) -> str:
    """An anchor's text with white space collapsed, cut to `ANCHOR_LENGTH`."""
    return " ".join(text.split())[:ANCHOR_LENGTH].rstrip()


def refresh_target(content: str) -> str | None:
    """Where a `<meta http-equiv=refresh>` leads; `None` for a page that only reloads itself, or nonsense."""
    found = _REFRESH.match(content)
    if found is None:
        return None
    return (found[1] or found[2] or found[3] or "").strip(WHITESPACE) or None


# Pages in these send their queries in UTF-8, as the parser of URLs does by itself.
_AS_UTF8 = frozenset(("UTF-8", "UTF-16LE", "UTF-16BE", "replacement"))
_BEYOND_ASCII = re.compile(r"[^\0-\x7f]+")
# Of other schemes the query is UTF-8, too.
_SCHEMES = frozenset(("http", "https", "ftp", "file"))
_IN_SCHEMES = frozenset(string.ascii_letters + string.digits + "+-.")
# What encodings of many bytes have below 0x80 and a query escapes.
_ESCAPED = frozenset((*range(0x21), *b"\"#'<>", *range(0x7F, 0x100)))
_WRITTEN = [f"%{byte:02X}" if byte in _ESCAPED else chr(byte) for byte in range(256)]


def escape_queries(links: Links, encoding: str) -> Links:
    """The links of a page in `encoding`, with their queries escaped.

    By the URL standard what a query has beyond ASCII goes to the server in the encoding of the document that the link
    stands in, and what that encoding lacks as a numeric reference; path and host are UTF-8 everywhere.
    """
    if encoding in _AS_UTF8 or links.is_ascii:
        return links
    collector = LinkCollector()  # two that were written differently may now be the same
    for link in links:
        collector.add(escape_query(link.href, encoding), link.kind, anchor=link.anchor, rel=link.rel)
    return collector.links()


def escape_query(href: str, encoding: str) -> str:
    """A href with its query in `encoding`, in ASCII."""
    stem, mark, fragment = href.partition("#")
    path, question, query = stem.partition("?")
    if query.isascii() or encoding in _AS_UTF8 or _has_other_scheme(path):
        return href
    query = _BEYOND_ASCII.sub(lambda run: "".join([_WRITTEN[byte] for byte in encode_text(run[0], encoding)]), query)
    return path + question + query + mark + fragment


def _has_other_scheme(path: str) -> bool:
    scheme, colon, _ = path.partition(":")
    is_scheme = colon and scheme[:1].isalpha() and _IN_SCHEMES.issuperset(scheme)
    return bool(is_scheme) and scheme.lower() not in _SCHEMES


MAX_HEADER_CHARACTERS = 32 * 1024
MAX_HEADER_LINKS = 200

_SPACE = r"[ \t]*+"
_LINK = re.compile(
    rf"<([^<>]*+)>((?:{_SPACE};{_SPACE}[^\s;,=\"<>]*+(?:{_SPACE}={_SPACE}(?:\"(?:[^\"\\]|\\.)*+\"|[^\s;,\"]*+))?)*+)",
    re.DOTALL,
)
_PARAMETER = re.compile(
    rf";{_SPACE}([^\s;,=\"<>]++){_SPACE}={_SPACE}(?:\"((?:[^\"\\]|\\.)*+)\"|([^\s;,\"]*+))", re.DOTALL
)


class HeaderLink(NamedTuple):
    """One link: its address as written, its relations and the media type of its target in lower case."""

    href: str
    rels: frozenset[str]
    type: str = ""


def parse_link_header(value: str) -> list[HeaderLink]:
    """The links of a header's value, or of several joined by commas; those about another context are left out."""
    found: list[HeaderLink] = []
    for link in _LINK.finditer(value[:MAX_HEADER_CHARACTERS]):
        parameters: dict[str, str] = {}
        for parameter in _PARAMETER.finditer(link[2]):
            text = parameter[2] if parameter[2] is not None else parameter[3]
            parameters.setdefault(parameter[1].lower(), text)
        if "anchor" not in parameters:
            rels = frozenset(parameters.get("rel", "").lower().split())
            found.append(HeaderLink(link[1].strip(), rels, parameters.get("type", "").strip().lower()))
        if len(found) >= MAX_HEADER_LINKS:
            break
    return found
