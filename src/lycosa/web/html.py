"""The HTML analyser: one parse, one list of elements, everything read from it.

It parses as a browser without scripting does, so the content of `<noscript>` is markup and its links count; its text
does not, nor that of scripts and styles, be it the page's, an anchor's or a heading's. Text is that of the body, with a
space between any two elements (see `text`). All elements are fetched by one call and picked by tag number, since each
further selector or walk costs a page's worth of cache misses. The structure strings are the first and the last letter
of every element's tag in document order, of the tree a browser sees: `<html>`, `<head>`, `<body>` and `<tbody>` are
there whether written or implied, and a tag of one letter gives it twice. Anchors, the bulk of a page's links, are read
in a loop of their own that is written for speed; where they nest by the thousand (`NESTING_WORK`), those that hold
others have their own words only, so that the work stays linear. Called by `page` for HTML and XHTML.
"""

import re
from collections.abc import Callable, Container, Iterable, Sequence
from itertools import compress, pairwise
from operator import attrgetter

from selectolax.lexbor import LexborCSSSelector, LexborDocumentOptions, LexborHTMLParser, LexborNode

from lycosa.web import text
from lycosa.web.charset import to_utf8
from lycosa.web.document import Document, Page, text_digest
from lycosa.web.hazard import cut_if_unsafe
from lycosa.web.links import (
    WHITESPACE,
    LinkCollector,
    LinkKind,
    are_padded,
    common_rel,
    escape_queries,
    escape_query,
    refresh_target,
    shorten_anchor,
)
from lycosa.web.media import MediaKind

# The names looked up in a table; any other (custom elements, rare SVG) is asked of its node, one by one.
_NAMES = (
    "a abbr acronym address applet area article aside audio b base basefont bdi bdo bgsound big blink "
    "blockquote body br button canvas caption center cite clippath code col colgroup data datalist dd del desc "
    "details dfn dialog dir div dl dt em embed fieldset figcaption figure font footer form frame frameset h1 "
    "h2 h3 h4 h5 h6 head header hgroup hr html i iframe image img input ins kbd label legend li lineargradient "
    "link listing main map mark marquee math menu meta meter mi mn mo mtext nav nobr noembed noframes noscript "
    "object ol optgroup option output p param path picture plaintext pre progress q rp rt ruby s samp script "
    "search section select slot small source span strike strong style sub summary sup svg table tbody td "
    "template textarea tfoot th thead time title tr track tt u ul var video wbr xmp"
)
_BYTE = 256
_tag_id: Callable[[LexborNode], int] = attrgetter("tag_id")


def _numbers() -> dict[str, int]:
    tree = LexborHTMLParser("")
    return {name: tree.create_node(name).tag_id for name in _NAMES.split()}


TAG_ID = {name: number for name, number in _numbers().items() if number < _BYTE}


def tag_table(values: dict[str, int]) -> bytes:
    """A `bytes.translate` table from tag numbers to the given value of their name, 0 for all others."""
    row = bytearray(_BYTE)
    for name, value in values.items():
        row[TAG_ID[name]] = value
    return bytes(row)


_FIRST = tag_table({name: ord(name[0]) for name in TAG_ID})
_LAST = tag_table({name: ord(name[-1]) for name in TAG_ID})


def tag_numbers(nodes: Sequence[LexborNode]) -> bytes:
    """One byte an element: its tag number, 0 for a tag that lexbor knows no number for."""
    try:
        return bytes(map(_tag_id, nodes))
    except ValueError:  # unknown tags are numbered by their place in memory
        return bytes([number if number < _BYTE else 0 for number in map(_tag_id, nodes)])


def structure_of_tree(nodes: Sequence[LexborNode], numbers: bytes) -> tuple[str, str]:
    """The structure strings of a document's elements, given with their tag numbers."""
    first, last = numbers.translate(_FIRST), numbers.translate(_LAST)
    if b"\0" not in first:
        return first.decode("ascii"), last.decode("ascii")
    names = [node.tag or "?" for node, letter in zip(nodes, first, strict=True) if not letter]
    return _filled(first, [name[0] for name in names]), _filled(last, [name[-1] for name in names])


def structure_of_names(names: Iterable[str]) -> tuple[str, str]:
    """The structure strings of a list of tag names, none of them empty."""
    names = list(names)
    return "".join(name[0] for name in names), "".join(name[-1] for name in names)


def _filled(letters: bytes, missing: list[str]) -> str:
    gaps = iter(missing)
    return "".join(part + next(gaps, "") for part in letters.decode("ascii").split("\0")).lower()


# Texts of nested elements are read once a level: above this many (elements to read) × (elements there are) it is looked
# whether they nest. A flat page of this size takes some 20 ms.
NESTING_WORK = 20_000_000

_A = TAG_ID["a"]
_IS_A = bytes(number == _A for number in range(256))
_IS_IMG = bytes(number == TAG_ID["img"] for number in range(256))
_LEVELS = 6  # that an image is looked for below its anchor

# An anchor ends the one before it, unless one of these stands between (0: a tag without a number, maybe in a drawing).
_PARTING_NAMES = ("applet", "object", "marquee", "caption", "td", "th", "svg", "math")
_PARTING = frozenset((0, *(TAG_ID[name] for name in _PARTING_NAMES)))
_CANNOT_PART = bytes(number for number in range(256) if number not in _PARTING)
_NONE: frozenset[int] = frozenset()


def read_anchors(nodes: Sequence[LexborNode], numbers: bytes, collector: LinkCollector) -> None:
    """Adds every `<a href>` among the elements, which come with their tag numbers."""
    anchors = list(compress(nodes, numbers.translate(_IS_A)))
    holders = _holders(nodes, numbers) if len(anchors) * len(nodes) > NESTING_WORK else _NONE
    places: dict[str, int] = {}
    texts: list[str] = []
    rels: dict[int, str] = {}
    wordless: dict[int, int] = {}  # anchors without a text of their own, and their places
    for node in anchors:
        attributes = node.attributes
        href = attributes.get("href")
        if href is None:
            href = _unusual_href(attributes)
            if href is None:
                continue
        place = places.get(href)
        if place is None:
            place = places[href] = len(texts)
            child = node.first_child  # nearly always a text and the only one, which is read in half the time
            words = child.text_content if child is not None and child.next is None else None
            texts.append(_words(node, holders) if words is None else words)
            if not texts[place]:
                wordless[node.mem_id] = place
            if rel := attributes.get("rel"):
                rels[place] = rel
            continue
        if not texts[place] or texts[place].isspace():
            texts[place] = _words(node, holders)
            if not texts[place]:
                wordless[node.mem_id] = place
        if place in rels:
            rels[place] = common_rel(rels[place], attributes.get("rel") or "")
    alternatives = _alternatives(nodes, numbers, wordless) if wordless else {}
    for anchor, words in alternatives.items():
        texts[wordless[anchor]] = texts[wordless[anchor]] or words
    hrefs = list(places)
    if not are_padded(hrefs):
        collector.extend(hrefs, LinkKind.A, anchors=texts, rels=rels)
        return
    for node in anchors:
        attributes = node.attributes
        href = attributes["href"] if attributes.get("href") is not None else _unusual_href(attributes)
        if href is not None:
            words = _words(node, holders) or alternatives.get(node.mem_id, "")
            collector.add(href, LinkKind.A, anchor=shorten_anchor(words), rel=attributes.get("rel") or "")


def _words(node: LexborNode, holders: frozenset[int]) -> str:
    """An anchor's text, without that of elements in it if among those is another anchor."""
    return " ".join(node.text(node.mem_id not in holders, " ").split())


def _alternatives(nodes: Sequence[LexborNode], numbers: bytes, anchors: Container[int]) -> dict[int, str]:
    """The alternative texts of images in these anchors: of each anchor the first."""
    found: dict[int, str] = {}
    for image in compress(nodes, numbers.translate(_IS_IMG)):
        words, above = (image.attributes.get("alt") or "").strip(), image.parent
        for _ in range(_LEVELS if words else 0):
            if above is None:
                break
            if above.mem_id in anchors:
                found.setdefault(above.mem_id, words)
                break
            above = above.parent
    return found


def _unusual_href(attributes: dict[str, str | None]) -> str | None:
    """`<a href>` without a value leads to the page itself; in SVG the attribute has a prefix."""
    return "" if "href" in attributes else attributes.get("xlink:href")


def _holders(nodes: Sequence[LexborNode], numbers: bytes) -> frozenset[int]:
    """The anchors that hold another one. All steps from one up to the other lie between them: linear in all."""
    if not numbers.translate(None, _CANNOT_PART):
        return _NONE
    places = [place for place, number in enumerate(numbers) if number == _A]
    found = set()
    for outer, inner in pairwise(places):
        sought = nodes[outer].mem_id
        above = nodes[inner].parent
        for _ in range(inner - outer):
            if above is None:
                break
            if above.mem_id == sought:
                found.add(sought)
                break
            above = above.parent
    return frozenset(found)


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
# What is said to one robot, in a meta element with its name; whether it is ours, `robots_directives` knows.
_AIMED = re.compile(r"\s*+(?:all|index|follow|no[a-z]+|unavailable_after|max-[a-z-]+)\s*+(?:[,:]|$)", re.IGNORECASE)
_AIMED_CHARS = 200

# In XML these may be closed by "/>"; an HTML parser would take the rest of the document for their text.
_SELF_CLOSED = re.compile(rb"<(script|style|title|textarea|iframe|noscript|xmp|noembed|noframes)\b([^<>]*)/>")


def analyse_html(document: Document) -> Page:
    """The page of an HTML or XHTML document."""
    tree, is_cut = parse_html(document)
    nodes = _elements(tree)
    numbers = tag_numbers(nodes)
    _hide(nodes, numbers)
    reading = _read_elements(nodes, numbers)
    first, last = structure_of_tree(nodes, numbers)
    visible, main = _visible_text(tree, reading)
    return Page(
        url=document.url,
        media=document.media,
        charset=document.charset,
        fingerprint=document.fingerprint,
        digest=document.digest,
        title=reading.title,
        description=reading.description,
        canonical=reading.canonical and escape_query(reading.canonical, document.charset),
        language=reading.language or reading.meta_language or document.content_language,
        base_href=reading.base_href,
        robots=tuple(reading.robots),
        links=escape_queries(reading.links.links(), document.charset),
        text_utf8=visible,
        headings=tuple(reading.headings),
        structure_first=first,
        structure_last=last,
        codes=text.codes_of(visible),
        text_digest=text_digest(main),
        is_cut=is_cut,
        is_volatile=b"data-vol" in document.body,
    )


def read_links(document: Document) -> Page:
    """The links that `analyse_html` finds in the same document, and nothing that takes longer."""
    tree, is_cut = parse_html(document)
    nodes = _elements(tree, _LINKING)
    if len(nodes) * document.body.count(b"<") > NESTING_WORK:  # whether they nest, only all elements can tell
        nodes = _elements(tree)
    numbers = tag_numbers(nodes)
    _hide(nodes, numbers)
    reading = _read_elements(nodes, numbers)
    return Page(
        url=document.url,
        media=document.media,
        charset=document.charset,
        fingerprint=0,
        digest=b"",
        base_href=reading.base_href,
        robots=tuple(reading.robots),
        links=escape_queries(reading.links.links(), document.charset),
        is_cut=is_cut,
    )


def parse_html(document: Document) -> tuple[LexborHTMLParser, bool]:
    """The tree of an HTML or XHTML document, and whether it is only that of its beginning."""
    body = to_utf8(document.body, document.charset)
    if document.media.kind is MediaKind.XHTML:
        body = _SELF_CLOSED.sub(rb"<\1\2></\1>", body)
    safe = cut_if_unsafe(body)
    return LexborHTMLParser(safe, options=LexborDocumentOptions.WO_EVENTS), safe is not body


def _elements(tree: LexborHTMLParser, which: str = "*") -> Sequence[LexborNode]:
    """The elements in document order."""
    return _SELECTOR.find(which, root) if (root := tree.root) is not None else []


def _hide(nodes: Sequence[LexborNode], numbers: bytes) -> None:
    """Takes what is not for reading out of the tree, before any text is read; the elements themselves stay readable."""
    is_hidden = numbers.translate(_IS_HIDDEN)
    place = is_hidden.find(1)
    while place >= 0:  # by leaps: a page has few of them
        nodes[place].decompose(recursive=False)
        place = is_hidden.find(1, place + 1)


def _read_elements(nodes: Sequence[LexborNode], numbers: bytes) -> "_ElementReader":
    reading = _ElementReader()
    read_anchors(nodes, numbers, reading.links)
    reading.read(nodes, numbers)
    return reading


def _only_text(node: LexborNode) -> str | None:
    """The text of an element that holds nothing else."""
    child = node.first_child
    return child.text_content if child is not None and child.next is None else None


def _visible_text(tree: LexborHTMLParser, reading: "_ElementReader") -> tuple[bytes, bytes]:
    """The visible text and the main element's part of it. This marks that part in the tree, so it comes last."""
    if tree.body is None:
        return b"", b""
    if len(reading.mains) == 1:
        reading.mains[0].insert_before(text.MAIN_START)
        reading.mains[0].insert_after(text.MAIN_END)
    return text.collapse(tree.body.text(separator=text.BETWEEN, skip_empty=True))


class _ElementReader:
    """Gathers what the elements other than anchors say, in one loop over the few that matter."""

    def __init__(self) -> None:
        self.links = LinkCollector()
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
                self.headings.append((_HEADINGS[number], shorten_anchor(words)))
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
                named = _stripped(attributes, "lang") or _stripped(attributes, "xml:lang")
                self.language = self.language or named

    def _source(self, attributes: dict[str, str | None], attribute: str, kind: LinkKind) -> None:
        href = attributes.get(attribute)
        if href is not None:
            anchor = shorten_anchor(attributes.get("alt") or "")
            self.links.add(href, kind, anchor=anchor, rel=attributes.get("rel") or "")

    def _link(self, attributes: dict[str, str | None]) -> None:
        href, rel = attributes.get("href"), attributes.get("rel") or ""
        if href is None:
            return
        self.links.add(href, LinkKind.LINK, anchor=shorten_anchor(attributes.get("title") or ""), rel=rel)
        if self.canonical is None and "canonical" in rel.lower().split():
            self.canonical = href.strip(WHITESPACE) or None

    def _meta(self, attributes: dict[str, str | None]) -> None:
        content, header = attributes.get("content"), attributes.get("http-equiv")
        name = attributes.get("name") or header
        if not content or not name:
            return
        if header and header.strip(WHITESPACE).lower() == "refresh" and (target := refresh_target(content)):
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
        if self.title is None and not is_in_drawing(node):
            self.title = " ".join(node.text(separator=" ").split()) or None


def is_in_drawing(title: LexborNode) -> bool:
    """Whether a title names a drawing, not the page."""
    return title.parent is not None and title.parent.tag in _DRAWING


def _stripped(attributes: dict[str, str | None], name: str) -> str | None:
    value = attributes.get(name)
    return None if value is None else value.strip(WHITESPACE) or None
