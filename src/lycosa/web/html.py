"""The HTML analyser: one parse, one list of elements, everything read from it.

Parsed as a browser without scripting does, so what stands in `<noscript>` is markup and its links count; its text does
not, nor that of scripts and styles, be it the page's, an anchor's or a heading's. Text is that of the body, a space
between any two elements (see `text`).
All elements are fetched by one call and picked by tag number, since each further selector or walk costs a page's worth
of cache misses. Called by `page` for HTML and XHTML.
"""

import re
from collections.abc import Sequence
from itertools import compress
from typing import NamedTuple

from selectolax.lexbor import LexborCSSSelector, LexborDocumentOptions, LexborHTMLParser, LexborNode

from lycosa.web import digests, hazard, links, queries, structure, text
from lycosa.web.anchors import NESTING_WORK, read_anchors
from lycosa.web.charset import to_utf8
from lycosa.web.document import Document, Page
from lycosa.web.links import WHITESPACE, Collector, LinkKind, Links
from lycosa.web.media import Kind
from lycosa.web.structure import TAG_ID

_IMG, _LINK, _META = TAG_ID["img"], TAG_ID["link"], TAG_ID["meta"]
_HTML, _TITLE, _BASE, _MAIN = TAG_ID["html"], TAG_ID["title"], TAG_ID["base"], TAG_ID["main"]
_HEADINGS = {TAG_ID[f"h{level}"]: level for level in range(1, 7)}
# Elements whose text is not for reading.
_HIDDEN = frozenset(TAG_ID[name] for name in ("script", "style", "noscript", "iframe", "noembed", "noframes"))
_SOURCES = {
    _IMG: ("src", LinkKind.IMG),
    TAG_ID["iframe"]: ("src", LinkKind.IFRAME),
    TAG_ID["frame"]: ("src", LinkKind.FRAME),
    TAG_ID["area"]: ("href", LinkKind.AREA),
}
# A title with one of these around it names a drawing, not the page.
_DRAWING = frozenset(("svg", "g", "symbol", "defs", "path", "use", "text", "circle", "rect", "line", "polygon"))

_READ = _HEADINGS.keys() | _SOURCES.keys() | {_LINK, _META, _HTML, _TITLE, _BASE, _MAIN}
# The elements that links and directives are in, and those that hide what is in them.
_LINKING = ":is(a, area, base, frame, iframe, img, link, meta, script, style, noscript, noembed, noframes)"
_IS_HIDDEN = bytes(number in _HIDDEN for number in range(256))
_IS_READ = bytes(number in _READ for number in range(256))
_NOT_READ = bytes(number for number in range(256) if number not in _READ)

_SELECTOR = LexborCSSSelector()  # type: ignore[no-untyped-call]  # a tree would make one of its own

_META_NAMES = frozenset(("description", "robots", "content-language"))
# What is said to one robot, in a meta element with its name; whether it is ours, `robots.directives` knows.
_AIMED = re.compile(r"\s*+(?:all|index|follow|no[a-z]+|unavailable_after|max-[a-z-]+)\s*+(?:[,:]|$)", re.IGNORECASE)
_AIMED_CHARS = 200

# In XML these may be closed by "/>"; an HTML parser would take the rest of the document for their text.
_SELF_CLOSED = re.compile(rb"<(script|style|title|textarea|iframe|noscript|xmp|noembed|noframes)\b([^<>]*)/>")


def analyse_html(document: Document) -> Page:
    """The page of an HTML or XHTML document."""
    tree, is_cut = _parsed(document)
    nodes = _elements(tree)
    numbers = structure.tag_numbers(nodes)
    _hide(nodes, numbers)
    reading = _read(nodes, numbers)
    first, last = structure.of_tree(nodes, numbers)
    visible, main = _text(tree, reading)
    return Page(
        url=document.url,
        media=document.media,
        charset=document.charset,
        fingerprint=document.fingerprint,
        digest=document.digest,
        title=reading.title,
        description=reading.description,
        canonical=reading.canonical and queries.escaped(reading.canonical, document.charset),
        language=reading.language or reading.meta_language or document.content_language,
        base_href=reading.base_href,
        robots=tuple(reading.robots),
        links=queries.in_encoding(reading.links.links(), document.charset),
        text_utf8=visible,
        headings=tuple(reading.headings),
        structure_first=first,
        structure_last=last,
        codes=text.codes_of(visible),
        text_digest=digests.text_digest(main),
        is_cut=is_cut,
        is_volatile=b"data-vol" in document.body,
    )


class Heading(NamedTuple):
    """What a document says before its text: where its links lead, and what it tells robots."""

    links: Links
    base_href: str | None
    robots: tuple[str, ...]


def read_links(document: Document) -> Heading:
    """The links that `analyse_html` finds in the same document, and nothing that takes longer."""
    tree, _ = _parsed(document)
    nodes = _elements(tree, _LINKING)
    if len(nodes) * document.body.count(b"<") > NESTING_WORK:  # whether they nest, only all elements can tell
        nodes = _elements(tree)
    numbers = structure.tag_numbers(nodes)
    _hide(nodes, numbers)
    reading = _read(nodes, numbers)
    found = queries.in_encoding(reading.links.links(), document.charset)
    return Heading(found, reading.base_href, tuple(reading.robots))


def _parsed(document: Document) -> tuple[LexborHTMLParser, bool]:
    """The tree, and whether it is only that of the beginning."""
    body = to_utf8(document.body, document.charset)
    if document.media.kind is Kind.XHTML:
        body = opened(body)
    is_cut = not hazard.is_tame(body)
    if is_cut:
        body = body[: hazard.CUT_BYTES]
    return LexborHTMLParser(body, options=LexborDocumentOptions.WO_EVENTS), is_cut


def opened(body: bytes) -> bytes:
    """XHTML as an HTML parser reads it: elements that close themselves there get an end."""
    return _SELF_CLOSED.sub(rb"<\1\2></\1>", body)


def _elements(tree: LexborHTMLParser, which: str = "*") -> Sequence[LexborNode]:
    """In document order."""
    return _SELECTOR.find(which, root) if (root := tree.root) is not None else []


def _hide(nodes: Sequence[LexborNode], numbers: bytes) -> None:
    """Take what is not for reading out of the tree, before any text is read; the elements themselves stay readable."""
    is_hidden = numbers.translate(_IS_HIDDEN)
    place = is_hidden.find(1)
    while place >= 0:  # by leaps: a page has few of them
        nodes[place].decompose(recursive=False)
        place = is_hidden.find(1, place + 1)


def _read(nodes: Sequence[LexborNode], numbers: bytes) -> "_Reading":
    reading = _Reading()
    read_anchors(nodes, numbers, reading.links)
    reading.read(nodes, numbers)
    return reading


def _only_text(node: LexborNode) -> str | None:
    """The text of an element that holds nothing else."""
    child = node.first_child
    return child.text_content if child is not None and child.next is None else None


def _text(tree: LexborHTMLParser, reading: "_Reading") -> tuple[bytes, bytes]:
    """The visible text and the main element's part of it. Marks that part in the tree: so last of all."""
    if tree.body is None:
        return b"", b""
    if len(reading.mains) == 1:
        reading.mains[0].insert_before(text.MAIN_START)
        reading.mains[0].insert_after(text.MAIN_END)
    return text.collapse(tree.body.text(separator=text.BETWEEN, skip_empty=True))


class _Reading:
    """What is gathered from the elements other than anchors, in one loop over the few that matter."""

    def __init__(self) -> None:
        self.links = Collector()
        self.title: str | None = None
        self.description: str | None = None
        self.canonical: str | None = None
        self.language: str | None = None
        self.meta_language: str | None = None
        self.base_href: str | None = None
        self._is_based = False
        self.robots: list[str] = []
        self.headings: list[tuple[int, str]] = []
        self.mains: list[LexborNode] = []

    def read(self, nodes: Sequence[LexborNode], numbers: bytes) -> None:
        sought = numbers.translate(None, _NOT_READ)
        is_flat = len(sought) * len(nodes) <= NESTING_WORK
        for node, number in zip(compress(nodes, numbers.translate(_IS_READ)), sought, strict=True):
            if number == _META:
                self._meta(node.attributes)
            elif number in _SOURCES:
                self._source(node.attributes, *_SOURCES[number])
            elif number in _HEADINGS:
                words = _only_text(node)
                words = node.text(is_flat, " ") if words is None else words
                self.headings.append((_HEADINGS[number], links.short(words)))
            elif number == _LINK:
                self._link(node.attributes)
            elif number == _TITLE:
                self._title(node)
            elif number == _MAIN:
                self.mains.append(node)
            elif number == _BASE and not self._is_based:
                attributes = node.attributes  # the first that has the attribute counts, even where it is empty
                self.base_href, self._is_based = _stripped(attributes, "href"), "href" in attributes
            elif number == _HTML:
                attributes = node.attributes
                self.language = _stripped(attributes, "lang") or _stripped(attributes, "xml:lang")

    def _source(self, attributes: dict[str, str | None], attribute: str, kind: LinkKind) -> None:
        href = attributes.get(attribute)
        if href is not None:
            anchor = links.short(attributes.get("alt") or "")
            self.links.add(href, kind, anchor=anchor, rel=attributes.get("rel") or "")

    def _link(self, attributes: dict[str, str | None]) -> None:
        href, rel = attributes.get("href"), attributes.get("rel") or ""
        if href is None:
            return
        self.links.add(href, LinkKind.LINK, anchor=links.short(attributes.get("title") or ""), rel=rel)
        if self.canonical is None and "canonical" in rel.lower().split():
            self.canonical = href.strip(WHITESPACE) or None

    def _meta(self, attributes: dict[str, str | None]) -> None:
        content, header = attributes.get("content"), attributes.get("http-equiv")
        name = attributes.get("name") or header
        if not content or not name:
            return
        if header and header.strip(WHITESPACE).lower() == "refresh" and (target := links.refresh_target(content)):
            self.links.add(target, LinkKind.REFRESH)
        if (name := name.strip(WHITESPACE).lower()) not in _META_NAMES:
            if len(content) < _AIMED_CHARS and ":" not in name and not header and _AIMED.match(content):
                self.robots.append(f"{name}: {content}")
            return
        if name == "description":
            self.description = self.description or " ".join(content.split()) or None
        elif name == "robots":
            self.robots.append(content)
        else:
            self.meta_language = self.meta_language or content.partition(",")[0].strip(WHITESPACE) or None

    def _title(self, node: LexborNode) -> None:
        if self.title is None:
            parent = node.parent
            if parent is None or parent.tag not in _DRAWING:
                self.title = " ".join(node.text().split()) or None


def _stripped(attributes: dict[str, str | None], name: str) -> str | None:
    value = attributes.get(name)
    return None if value is None else value.strip(WHITESPACE) or None
