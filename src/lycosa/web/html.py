"""The HTML analyser, without the native kernel: one parse, one walk over its tree, everything read on the way.

This is the specification of the kernel, which gives the same pages. It parses as a browser without scripting does, so
the content of `<noscript>` is markup and its links count. The rules:

- Links are those of `<a>`, then those of other elements, each group in document order (`links` says which are one).
- The words of an anchor or a heading are those of all text in it; an anchor without words has the alternative text of
  the first image in it.
- What stands in a hidden element (`HIDDEN`) is not for reading: it counts neither as the page's text nor as words of
  an anchor or heading around it. Anchors and headings inside a hidden element have words of their own.
- The page's text is that of the body, a piece for each text node; `text.collapse` joins them. The text digest is of the
  main element, where there is exactly one, else of all text.
- The structure strings are the first and the last letter of every element's tag in document order, of the tree a
  browser sees: `<html>`, `<head>`, `<body>` and `<tbody>` are there whether written or implied, and a tag of one letter
  gives it twice.

The walk visits each node once and copies a text at most twice, however elements nest: time is linear in the size of the
tree. Called by `page` for HTML and XHTML.
"""

import re
from collections.abc import Callable, Sequence
from operator import itemgetter

from selectolax.lexbor import LexborDocumentOptions, LexborHTMLParser, LexborNode

from lycosa.web.charset import to_utf8
from lycosa.web.comparable import comparable_simhash
from lycosa.web.document import Document, Page, text_digest
from lycosa.web.hazard import cut_if_unsafe
from lycosa.web.links import (
    ANCHOR_LENGTH,
    MAX_LINKS,
    WHITESPACE,
    Link,
    LinkCollector,
    LinkKind,
    Links,
    escape_queries,
    escape_query,
    refresh_target,
    shorten_anchor,
)
from lycosa.web.media import MediaKind
from lycosa.web.outline import without_self_closed
from lycosa.web.text import BETWEEN, codes_of, collapse

# Elements whose text is not for reading.
HIDDEN = frozenset(("script", "style", "noscript", "iframe", "noembed", "noframes"))
# A title in one of these names a drawing, not the page.
_DRAWING = frozenset(("svg", "g", "symbol", "defs", "path", "use", "text", "circle", "rect", "line", "polygon"))

# What is said to one robot, in a meta element with its name; whether it is ours, `robots_directives` knows.
_AIMED = re.compile(r"\s*+(?:all|index|follow|no[a-z]+|unavailable_after|max-[a-z-]+)\s*+(?:[,:]|$)", re.IGNORECASE)
_AIMED_CHARS = 200


def analyse_html(document: Document) -> Page:
    """The page of an HTML or XHTML document."""
    tree, is_cut = parse_html(document)
    reader = _PageReader(tree.root)
    visible, main = reader.texts()
    first, last = structure_of_names(reader.names)
    links = reader.links()
    return Page(
        url=document.url,
        media=document.media,
        charset=document.charset,
        fingerprint=document.fingerprint,
        digest=document.digest,
        title=reader.title,
        description=reader.description,
        canonical=reader.canonical and escape_query(reader.canonical, document.charset),
        language=reader.language or reader.meta_language or document.content_language,
        base_href=reader.base_href or None,
        robots=tuple(reader.robots),
        links=escape_queries(links, document.charset),
        text_utf8=visible,
        headings=reader.headings(),
        structure_first=first,
        structure_last=last,
        codes=codes_of(visible),
        text_digest=text_digest(main),
        is_cut=is_cut or len(links) >= MAX_LINKS,
        is_volatile=b"data-vol" in document.body,
        simhash=reader.comparable_simhash(tree) if document.wants_simhash else b"",
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
    return "".join(map(itemgetter(0), names)).lower(), "".join(map(itemgetter(-1), names)).lower()


_AtEnd = Callable[[], object] | None  # what is to be done when an element ends


class _Level:
    """What can name an anchor or heading, on the page or in one hidden element of it, in document order.

    `texts` are those of text nodes, white space collapsed and no longer than a name can be; `images` are alternative
    texts.
    """

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.images: list[str] = []
        self.open_names = 0  # only in an open anchor or heading texts are gathered


class _Name:
    """The name of an anchor or heading: the text in it, once it has ended, and that of its first image."""

    def __init__(self, level: _Level) -> None:
        self.text = self.image = ""
        self._level = level
        self._first_text = len(level.texts)
        self._first_image = len(level.images)
        level.open_names += 1

    def end(self) -> None:
        level, first = self._level, self._first_text
        level.open_names -= 1
        # More texts than a name has characters cannot count. Without this limit nested anchors would take forever.
        self.text = " ".join(level.texts[first : first + ANCHOR_LENGTH])[:ANCHOR_LENGTH].rstrip()
        if len(level.images) > self._first_image:
            self.image = level.images[self._first_image]


class _PageReader:
    """Gathers what the elements and texts of a page say while the walk passes them."""

    def __init__(self, root: LexborNode | None) -> None:
        self.names: list[str] = []
        self.title: str | None = None
        self.description: str | None = None
        self.canonical: str | None = None
        self.language: str | None = None
        self.meta_language: str | None = None
        self.base_href: str | None = None
        self.robots: list[str] = []
        self._headings: list[tuple[int, _Name]] = []
        self._anchors: list[tuple[str, str, _Name]] = []  # href, rel
        self._anchor_nodes: list[LexborNode] = []
        self._hidden_nodes: list[LexborNode] = []
        self._other_links: list[Link] = []
        self._levels = [_Level()]  # of the page, and of each hidden element that is open
        self._pieces: list[str] = []
        self._is_in_body = False
        self._title_level: _Level | None = None  # of the title that is open
        self._title_texts: list[str] = []
        self._mains = 0
        self._main: slice | None = None  # the pieces of the main element
        self._main_node: LexborNode | None = None
        self._walk(root)

    # what was found

    def headings(self) -> tuple[tuple[int, str], ...]:
        return tuple((level, heading.text) for level, heading in self._headings)

    def links(self) -> Links:
        found = LinkCollector()
        for href, rel, anchor in self._anchors:
            found.add(href, LinkKind.A, anchor=anchor.text, rel=rel)
        for href, rel, anchor in self._anchors:  # the words of any anchor with the same address go before an image
            if anchor.image:
                found.add(href, LinkKind.A, anchor=anchor.image, rel=rel)
        for link in self._other_links:
            found.add(link.href, link.kind, anchor=link.anchor, rel=link.rel)
        return found.links()

    def texts(self) -> tuple[bytes, bytes]:
        """The visible text, and the main element's part of it."""
        if self._mains != 1 or self._main is None:
            visible = collapse(BETWEEN.join(self._pieces))
            return visible, visible
        parts = (self._pieces[: self._main.start], self._pieces[self._main], self._pieces[self._main.stop :])
        before, main, after = (collapse(BETWEEN.join(pieces)) for pieces in parts)
        return b" ".join(filter(None, (before, main, after))), main

    def comparable_simhash(self, tree: LexborHTMLParser) -> bytes:
        """The SimHash of what the page says by itself. The tree is taken apart for it."""
        main = self._main_node if self._mains == 1 else None
        return comparable_simhash(tree, main=main, hidden=self._hidden_nodes, links=self._anchor_nodes)

    # what the walk passes

    def _walk(self, root: LexborNode | None) -> None:
        """Reads all nodes in document order. `path` has the open elements, each with what is to be done at its end."""
        path: list[tuple[LexborNode, _AtEnd]] = []
        node = root
        while node is not None:
            if node.is_text_node:
                if not node.is_empty_text_node:
                    self._read_text(node.text_content or "")
                node = node.next
            else:
                path.append((node, self._begin(node)))
                node = node.first_child
            while node is None and path:
                ended, at_end = path.pop()
                if at_end is not None:
                    at_end()
                node = ended.next

    def _read_text(self, text: str) -> None:
        level = self._levels[-1]
        if level.open_names and (words := text.split()):
            level.texts.append(" ".join(words)[:ANCHOR_LENGTH])
        if level is self._title_level:
            self._title_texts.append(text)
        if self._is_in_body and level is self._levels[0]:
            self._pieces.append(text)

    def _begin(self, node: LexborNode) -> _AtEnd:
        tag = node.tag
        if tag is None or tag == "-comment":  # None is an instruction
            return None
        self.names.append(tag)
        read = _READERS.get(tag)
        return None if read is None else read(self, node)

    def read_html(self, element: LexborNode) -> None:
        attributes = element.attributes
        self.language = self.language or _stripped(attributes, "lang") or _stripped(attributes, "xml:lang")

    def begin_body(self, _: LexborNode) -> None:
        self._is_in_body = True

    def begin_main(self, element: LexborNode) -> _AtEnd:
        self._mains += 1
        start = len(self._pieces)
        if not self._is_hidden():
            self._main_node = element

        def end() -> None:
            self._main = slice(start, len(self._pieces))

        return None if self._is_hidden() else end

    def begin_hidden(self, element: LexborNode) -> _AtEnd:
        self._hidden_nodes.append(element)
        self._levels.append(_Level())
        return self._levels.pop

    def begin_iframe(self, element: LexborNode) -> _AtEnd:
        self._source(element, LinkKind.IFRAME, "src")
        return self.begin_hidden(element)

    def begin_title(self, element: LexborNode) -> _AtEnd:
        """The first title that says something counts; one inside another has nothing to add."""
        if self.title is not None or self._title_level is not None or is_in_drawing(element):
            return None
        self._title_level, self._title_texts = self._levels[-1], []
        return self._end_title

    def _end_title(self) -> None:
        self.title = " ".join(" ".join(self._title_texts).split()) or None
        self._title_level = None

    def begin_heading(self, element: LexborNode) -> _AtEnd:
        level = int((element.tag or "")[1])
        self._headings.append((level, heading := _Name(self._levels[-1])))
        return heading.end

    def begin_anchor(self, element: LexborNode) -> _AtEnd:
        attributes = element.attributes
        # `<a href>` without a value leads to the page itself; in SVG the attribute has a prefix.
        href = attributes["href"] or "" if "href" in attributes else attributes.get("xlink:href")
        if href is None:
            return None
        self._anchor_nodes.append(element)
        self._anchors.append((href, attributes.get("rel") or "", anchor := _Name(self._levels[-1])))
        return anchor.end

    def read_image(self, element: LexborNode) -> None:
        self._source(element, LinkKind.IMG, "src")
        if alternative := shorten_anchor(element.attributes.get("alt") or ""):
            self._levels[-1].images.append(alternative)

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

    def _is_hidden(self) -> bool:
        return len(self._levels) > 1

    def _source(self, element: LexborNode, kind: LinkKind, attribute: str) -> None:
        attributes = element.attributes
        href = attributes.get(attribute)
        if href is not None:
            words = shorten_anchor(attributes.get("alt") or "")
            self._other_links.append(Link(href, kind, words, attributes.get("rel") or ""))


def is_in_drawing(title: LexborNode) -> bool:
    """Whether a title names a drawing, not the page."""
    return title.parent is not None and title.parent.tag in _DRAWING


def _stripped(attributes: dict[str, str | None], name: str) -> str:
    return (attributes.get(name) or "").strip(WHITESPACE)


_READERS: dict[str, Callable[[_PageReader, LexborNode], _AtEnd]] = {
    "html": _PageReader.read_html,
    "base": _PageReader.read_base,
    "link": _PageReader.read_link,
    "meta": _PageReader.read_meta,
    "title": _PageReader.begin_title,
    "body": _PageReader.begin_body,
    "main": _PageReader.begin_main,
    "a": _PageReader.begin_anchor,
    "area": _PageReader.read_area,
    "frame": _PageReader.read_frame,
    "img": _PageReader.read_image,
    **dict.fromkeys(("h1", "h2", "h3", "h4", "h5", "h6"), _PageReader.begin_heading),
    **dict.fromkeys(HIDDEN, _PageReader.begin_hidden),
    "iframe": _PageReader.begin_iframe,
}
