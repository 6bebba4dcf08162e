"""The HTML analyser, without the native kernel: one parse, one walk over its elements, texts where they are wanted.

This is the specification of the kernel, which gives the same pages. It parses as a browser without scripting does, so
the content of `<noscript>` is markup and its links count. The rules:

- Links are those of `<a>`, then those of other elements, each group in document order (`links` says which are one).
- The words of an anchor or a heading are those of all text in it; an anchor without words has the alternative text of
  the first image in it.
- What stands in a hidden element (`HIDDEN`) is not for reading: it counts neither as the page's text nor as words of
  an anchor or heading around it. Anchors and headings inside a hidden element have words of their own. So hidden
  elements are taken out of the tree before any text is read, each with what is in it.
- The page's text is that of the body, a piece for each text node; `text.collapse` joins them. The text digest is of the
  main element, where there is exactly one that is not hidden, else of all text.
- The structure strings are the first and the last letter of every element's tag in document order, of the tree a
  browser sees: `<html>`, `<head>`, `<body>` and `<tbody>` are there whether written or implied, and a tag of one letter
  gives it twice.

The walk has a few Python steps for an element and none for a text. Where there are many anchors or headings and some
are in others, the words of all are read together, so that time is linear in the size of the tree. Called by `page` for
HTML and XHTML.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from operator import itemgetter

from selectolax.lexbor import LexborDocumentOptions, LexborHTMLParser, LexborNode

from lycosa.web.charset import to_utf8
from lycosa.web.document import VOLATILE_MARK, Document, Page, text_digest
from lycosa.web.hazard import cut_if_unsafe
from lycosa.web.links import (
    ANCHOR_LENGTH,
    MAX_LINKS,
    WHITESPACE,
    Link,
    LinkCollector,
    LinkKind,
    Links,
    common_rel,
    escape_queries,
    escape_query,
    refresh_target,
    shorten_anchor,
)
from lycosa.web.markup import without_self_closed
from lycosa.web.media import MediaKind
from lycosa.web.similarity import comparable_simhash
from lycosa.web.text import BETWEEN, codes_of, collapse

# Elements whose text is not for reading.
HIDDEN = frozenset(("script", "style", "noscript", "iframe", "noembed", "noframes"))
# A title in one of these names a drawing, not the page.
_DRAWING = frozenset(("svg", "g", "symbol", "defs", "path", "use", "text", "circle", "rect", "line", "polygon"))

# What is said to one robot, in a meta element with its name; whether it is ours, `robots_directives` knows.
_AIMED = re.compile(r"\s*+(?ai:all|index|follow|no[a-z]+|unavailable_after|max-[a-z-]+)\s*+(?:[,:]|$)")
_AIMED_CHARS = 200

# So many elements may be looked at when the words of each anchor and heading are read by themselves; it takes some 20
# ms at the most.
LITTLE_WORK = 20_000_000
# Stands around the main element while the text is read. No parsed text contains NUL.
_MARK = "\0main"


def analyse_html(document: Document) -> Page:
    """The page of an HTML or XHTML document."""
    tree, is_cut = parse_html(document)
    reader = _PageReader(tree)
    title, links, headings = reader.title(), reader.links(), reader.headings()
    visible, main = reader.texts()  # it marks the main element in the tree
    first, last = structure_of_names(reader.names)
    return Page(
        url=document.url,
        media=document.media,
        charset=document.charset,
        fingerprint=document.fingerprint,
        digest=document.digest,
        title=title,
        description=reader.description,
        canonical=reader.canonical and escape_query(reader.canonical, document.charset),
        language=reader.language or reader.meta_language or document.content_language,
        base_href=reader.base_href or None,
        robots=tuple(reader.robots),
        links=escape_queries(links, document.charset),
        text_utf8=visible,
        headings=headings,
        structure_first=first,
        structure_last=last,
        codes=codes_of(visible),
        text_digest=text_digest(main),
        is_cut=is_cut or len(links) >= MAX_LINKS,
        is_volatile=VOLATILE_MARK in document.body,
        simhash=reader.comparable_simhash() if document.wants_simhash else b"",
    )


def parse_html(document: Document) -> tuple[LexborHTMLParser, bool]:
    """The tree of an HTML or XHTML document, and whether it is only that of its beginning."""
    body = to_utf8(document.body, document.charset)
    if document.media.kind is MediaKind.XHTML:
        body = without_self_closed(body)
    safe = cut_if_unsafe(body)
    text = safe.decode("utf-8", "replace")  # here: the parser would drop a NUL between two halves of a character
    return LexborHTMLParser(text, options=LexborDocumentOptions.WO_EVENTS), safe is not body


def structure_of_names(names: Sequence[str]) -> tuple[str, str]:
    """The structure strings of a list of tag names, none of them empty."""
    first, last = "".join(map(itemgetter(0), names)), "".join(map(itemgetter(-1), names))
    return first.lower(), last.replace("Σ", "σ").lower()  # each by itself: at the end of a word it would be another one


class _Words:
    """The words of all elements that have any, read in one walk over the page and over each element taken out of it."""

    def __init__(self, roots: Iterable[LexborNode], named: Iterable[LexborNode]) -> None:
        self._found = {node.mem_id: ("", "") for node in named}
        for root in roots:
            self._read(root)

    def text(self, node: LexborNode) -> str:
        return self._found[node.mem_id][0]

    def image(self, node: LexborNode) -> str:
        return self._found[node.mem_id][1]

    def _read(self, root: LexborNode) -> None:
        """Reads all nodes in document order. `path` has the open elements that have words, each with how many texts and
        images came before it."""
        texts, images = list[str](), list[str]()
        path: list[tuple[LexborNode, tuple[int, int] | None]] = []
        node: LexborNode | None = root
        while node is not None:
            if node.is_text_node:
                if words := (node.text_content or "").split():
                    texts.append(" ".join(words)[:ANCHOR_LENGTH])
                node = node.next
            else:
                if node.tag == "img" and (alternative := _alternative(node)):
                    images.append(alternative)
                path.append((node, (len(texts), len(images)) if node.mem_id in self._found else None))
                node = node.first_child
            while node is None and path:
                ended, before = path.pop()
                if before is not None:
                    first_text, first_image = before
                    # More texts than a name has characters cannot count: without this limit nested anchors would take
                    # forever.
                    text = shorten_anchor(" ".join(texts[first_text : first_text + ANCHOR_LENGTH]))
                    self._found[ended.mem_id] = text, next(iter(images[first_image : first_image + 1]), "")
                node = ended.next


class _WordsOnDemand:
    """The words of the elements that are asked for, each read by itself."""

    def text(self, node: LexborNode) -> str:
        return shorten_anchor(node.text(separator=" "))

    def image(self, node: LexborNode) -> str:
        return next(filter(None, map(_alternative, node.css("img[alt]"))), "")


def _alternative(image: LexborNode) -> str:
    return shorten_anchor(image.attributes.get("alt") or "")


class _PageReader:
    """Gathers what the elements of a page say while the walk passes them; then hidden elements are taken out of the
    tree, and texts are read."""

    def __init__(self, tree: LexborHTMLParser) -> None:
        self.names: list[str] = []
        self.description: str | None = None
        self.canonical: str | None = None
        self.language: str | None = None
        self.meta_language: str | None = None
        self.base_href: str | None = None
        self.robots: list[str] = []
        self._titles: list[LexborNode] = []
        self._headings: list[LexborNode] = []
        self._anchors: list[tuple[str, str, LexborNode]] = []  # href, rel
        self._heading_places: list[int] = []  # among all elements
        self._anchor_places: list[int] = []
        self._hidden: list[LexborNode] = []
        self._other_links: list[Link] = []
        self._mains = 0
        self._main: LexborNode | None = None  # the main element, unless it is hidden
        self._tree = tree
        self._words: _Words | _WordsOnDemand = _WordsOnDemand()
        root = tree.root
        if root is not None:
            self._walk(root)
            named = [*self._headings, *(anchor for _, _, anchor in self._anchors)]
            if len(named) * len(self.names) > LITTLE_WORK and self._nests():
                self._words = _Words((root, *self._hidden), named)

    def _walk(self, root: LexborNode) -> None:
        note, readers = self.names.append, _READERS
        for node in root.traverse():
            tag = node.tag
            if tag is not None and tag != "-comment":  # None is an instruction
                note(tag)
                if tag in readers:
                    readers[tag](self, node)
        for node in self._hidden:
            node.decompose(recursive=False)

    def _nests(self) -> bool:
        """Whether an anchor is in an anchor, or a heading in a heading."""
        anchors = [anchor for _, _, anchor in self._anchors]
        return _nest(anchors, self._anchor_places) or _nest(self._headings, self._heading_places)

    # what was found

    def title(self) -> str | None:
        """The first title that says something."""
        texts = (" ".join(title.text(separator=" ").split()) for title in self._titles)
        return next(filter(None, texts), None)

    def headings(self) -> tuple[tuple[int, str], ...]:
        return tuple((int((heading.tag or "")[1]), self._words.text(heading)) for heading in self._headings)

    def links(self) -> Links:
        named, rels = dict[str, str](), dict[str, str]()  # a page has most of its addresses several times
        for href, rel, anchor in self._anchors:
            if not named.get(href):
                named[href] = self._words.text(anchor)
            rels[href] = common_rel(rels.get(href, rel), rel)
        if not all(named.values()):  # the words of any anchor with the same address go before an image
            for href, _, anchor in self._anchors:
                named[href] = named[href] or self._words.image(anchor)
        found = LinkCollector()
        for href, words in named.items():
            found.add(href, LinkKind.A, anchor=words, rel=rels[href])
        for link in self._other_links:
            found.add(link.href, link.kind, anchor=link.anchor, rel=link.rel)
        return found.links()

    def texts(self) -> tuple[bytes, bytes]:
        """The visible text, and the main element's part of it."""
        body, main = self._tree.body, self._main_element
        if body is None or body.tag != "body":  # of a page of frames
            return b"", b""
        if main is not None:
            main.insert_before(_MARK)
            main.insert_after(_MARK)
        text = BETWEEN + body.text(separator=BETWEEN, skip_empty=True)
        parts = [collapse(part) for part in text.split(BETWEEN + _MARK)]
        return b" ".join(filter(None, parts)), parts[main is not None]

    def comparable_simhash(self) -> bytes:
        """The SimHash of what the page says by itself. The tree is taken apart for it."""
        return comparable_simhash(self._tree, main=self._main_element, links=[anchor for _, _, anchor in self._anchors])

    @property
    def _main_element(self) -> LexborNode | None:
        return self._main if self._mains == 1 else None

    # what the walk passes

    def read_html(self, element: LexborNode) -> None:
        attributes = element.attributes
        self.language = self.language or _stripped(attributes, "lang") or _stripped(attributes, "xml:lang")

    def read_main(self, element: LexborNode) -> None:
        self._mains += 1
        if self._mains == 1:
            above: LexborNode | None = element
            while above is not None and above.tag not in HIDDEN:
                above = above.parent
            self._main = element if above is None else None

    def read_hidden(self, element: LexborNode) -> None:
        self._hidden.append(element)

    def read_iframe(self, element: LexborNode) -> None:
        self._source(element, LinkKind.IFRAME, "src")
        self._hidden.append(element)

    def read_title(self, element: LexborNode) -> None:
        if not is_in_drawing(element):
            self._titles.append(element)

    def read_heading(self, element: LexborNode) -> None:
        self._headings.append(element)
        self._heading_places.append(len(self.names))

    def read_anchor(self, element: LexborNode) -> None:
        attributes = element.attributes
        # `<a href>` without a value leads to the page itself; in SVG the attribute has a prefix.
        href = attributes["href"] or "" if "href" in attributes else attributes.get("xlink:href")
        if href is not None:
            self._anchors.append((href.strip(WHITESPACE), attributes.get("rel") or "", element))
            self._anchor_places.append(len(self.names))

    def read_image(self, element: LexborNode) -> None:
        self._source(element, LinkKind.IMG, "src")

    def read_frame(self, element: LexborNode) -> None:
        self._source(element, LinkKind.FRAME, "src")

    def read_area(self, element: LexborNode) -> None:
        self._source(element, LinkKind.AREA, "href")

    def read_base(self, element: LexborNode) -> None:
        attributes = element.attributes
        if self.base_href is None and "href" in attributes:  # the first that has one counts, even where it is empty
            self.base_href = _stripped(attributes, "href")

    def read_link(self, element: LexborNode) -> None:
        attributes = element.attributes
        href, rel = attributes.get("href"), attributes.get("rel") or ""
        if href is None:
            return
        if (attributes.get("type") or "").lower() == "application/rsl+xml":
            self.robots.append(f"rsl:license: {href.strip(WHITESPACE)}")
        self._other_links.append(Link(href, LinkKind.LINK, shorten_anchor(attributes.get("title") or ""), rel))
        if self.canonical is None and "canonical" in rel.lower().split():
            self.canonical = href.strip(WHITESPACE) or None

    def read_meta(self, element: LexborNode) -> None:
        attributes = element.attributes
        content, header = attributes.get("content"), attributes.get("http-equiv")
        name = attributes.get("name") or header
        if not content or not name:
            return
        if header and header.strip(WHITESPACE).lower() == "refresh" and (target := refresh_target(content)):
            self._other_links.append(Link(target, LinkKind.REFRESH, "", ""))
        name = name.strip(WHITESPACE).lower()
        if name == "description":
            self.description = self.description or " ".join(content.split()) or None
        elif name == "robots":
            self.robots.append(content)
        elif name in ("tdm-reservation", "tdm-policy"):
            self.robots.append(f"{name}: {content}")
        elif name == "content-language":
            self.meta_language = self.meta_language or content.partition(",")[0].strip(WHITESPACE) or None
        elif not header and ":" not in name and len(content) < _AIMED_CHARS and _AIMED.match(content):
            self.robots.append(f"{name}: {content}")

    def _source(self, element: LexborNode, kind: LinkKind, attribute: str) -> None:
        attributes = element.attributes
        href = attributes.get(attribute)
        if href is not None:
            words = shorten_anchor(attributes.get("alt") or "")
            self._other_links.append(Link(href, kind, words, attributes.get("rel") or ""))


def _nest(elements: Sequence[LexborNode], places: Sequence[int]) -> bool:
    """Whether one of the elements holds another. Then it holds the next one, and all steps from that up to it lie
    between the two: linear in all."""
    for (outer, start), (inner, end) in pairwise(zip(elements, places, strict=True)):
        above, sought = inner.parent, outer.mem_id
        for _ in range(end - start):
            if above is None:
                break
            if above.mem_id == sought:
                return True
            above = above.parent
    return False


def is_in_drawing(title: LexborNode) -> bool:
    """Whether a title names a drawing, not the page."""
    return title.parent is not None and title.parent.tag in _DRAWING


def _stripped(attributes: dict[str, str | None], name: str) -> str:
    return (attributes.get(name) or "").strip(WHITESPACE)


_READERS: dict[str, Callable[[_PageReader, LexborNode], None]] = {
    "html": _PageReader.read_html,
    "base": _PageReader.read_base,
    "link": _PageReader.read_link,
    "meta": _PageReader.read_meta,
    "title": _PageReader.read_title,
    "main": _PageReader.read_main,
    "a": _PageReader.read_anchor,
    "area": _PageReader.read_area,
    "frame": _PageReader.read_frame,
    "img": _PageReader.read_image,
    **dict.fromkeys(("h1", "h2", "h3", "h4", "h5", "h6"), _PageReader.read_heading),
    **dict.fromkeys(HIDDEN, _PageReader.read_hidden),
    "iframe": _PageReader.read_iframe,
}
