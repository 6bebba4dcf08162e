"""What of a document is for reading: its title, its headings and its main text, without navigation.

It is leaner than `analyse_page` (no links, no digests): the search index reads every document once more with it, and
so do snippets. The main element counts where there is exactly one, else the body; navigation, footers, scripts and
styles are left out, unless next to nothing is left then. Pure; never raises on any bytes. Called by the search index.
"""

import re
from collections.abc import Sequence

import msgspec
from selectolax.lexbor import LexborCSSSelector, LexborNode

from lycosa.web.document import Analysers, Document
from lycosa.web.html import parse_html
from lycosa.web.media import SNIFF_BYTES, MediaKind, identify_media
from lycosa.web.page import analyse_page, charset_of, is_built_in

UNSHOWN = "data-nosnippet"
_HEADINGS = frozenset(("h1", "h2", "h3", "h4", "h5", "h6"))
_HIDDEN = frozenset(("script", "style", "noscript", "template", "iframe"))
# Everything that matters is fetched by one call: each further walk costs a third of what the parser does.
_SOUGHT = (
    "title,main,h1,h2,h3,h4,h5,h6,script,style,noscript,template,iframe,nav,footer,[role=navigation],"
    "[role=contentinfo],[id^=nav],[class*=nav],[class*=breadcrumb],[class*=sidebar]"
)
_NAVIGATION = re.compile("^nav|[- ]nav|breadcrumb|sidebar")  # of a class; "canavan" is none
_FURNITURE = frozenset(("nav", "footer"))
_ROLES = frozenset(("navigation", "contentinfo"))
_ROOTS = frozenset(("html", "body", "main", "title"))
_HEADING_CHARS = 20_000  # of all headings together; they may nest
_LITTLE_CHARS = 200  # of a body's text: a page with less may be all navigation, and is read as a whole
_SELECTOR = LexborCSSSelector()  # type: ignore[no-untyped-call]  # a tree would make one of its own


class Readable(msgspec.Struct, frozen=True):
    """The texts of a document that are for reading, as they stand there, white space included."""

    title: str = ""
    headings: tuple[str, ...] = ()
    text: str = ""


def extract_readable(
    body: bytes,
    *,
    url: str,
    content_type: str | None = None,
    analysers: Analysers | None = None,
    for_snippets: bool = False,
) -> Readable:
    """What is for reading in `body` (content coding undone); empty for what has no text, such as images.

    Where `analysers` replace the built-in one for HTML, it is what that analyser finds. `for_snippets` leaves out what
    asks not to be shown in results (`data-nosnippet`).
    """
    media = identify_media(content_type, body[:SNIFF_BYTES])
    if media.kind not in (MediaKind.HTML, MediaKind.XHTML) or not is_built_in(analysers, media):
        page = analyse_page(body, url=url, content_type=content_type, analysers=analysers)
        return Readable(page.title or "", tuple(text for _, text in page.headings), page.text)
    document = Document(body, url, media, charset_of(body, media))
    may_hide = document.charset.startswith("UTF-16") or UNSHOWN.encode() in body.lower()
    unshown = UNSHOWN if for_snippets and may_hide else ""
    found, has_main = _read(document, unshown, is_whole=False)
    is_enough = bool(found.text) if has_main else len(found.text) > _LITTLE_CHARS
    return found if is_enough else _read(document, unshown, is_whole=True)[0]


def extract_text(body: bytes, *, url: str, content_type: str | None = None, analysers: Analysers | None = None) -> str:
    """The text alone, each run of white space as one space."""
    return " ".join(extract_readable(body, url=url, content_type=content_type, analysers=analysers).text.split())


def _read(document: Document, unshown: str, *, is_whole: bool) -> tuple[Readable, bool]:
    """What is for reading, without elements that have the attribute `unshown`, and whether that is of a main
    element."""
    tree, _ = parse_html(document)
    top, root = tree.root, tree.body
    if top is None or root is None:
        title = tree.css_first("title")
        return Readable(title.text() if title else ""), False
    nodes = _SELECTOR.find(f"{_SOUGHT},[{unshown}]" if unshown else _SOUGHT, top)
    tags = [node.tag for node in nodes]
    title = nodes[tags.index("title")] if "title" in tags else None
    has_main = not is_whole and tags.count("main") == 1
    if has_main:
        at = tags.index("main")
        root = nodes[at]
        end = at + 1 + _inside(nodes[at + 1 :], root)
        nodes, tags = nodes[at + 1 : end], tags[at + 1 : end]
    headings: list[str] = []
    left_out: list[LexborNode] = []
    room = _HEADING_CHARS
    for node, tag in zip(nodes, tags, strict=True):
        if unshown and unshown in node.attributes:
            left_out.append(node)
        elif tag in _HEADINGS:
            if room > 0:
                headings.append(node.text(separator=" ")[:room])
                room -= len(headings[-1])
        elif tag in _HIDDEN or (not is_whole and tag not in _ROOTS and _is_furniture(node, tag)):
            left_out.append(node)
    said = title.text() if title else ""  # before anything is taken out
    for node in reversed(left_out):  # from the inside out: what is taken out is not touched again
        node.decompose()
    return Readable(said, tuple(headings), root.text(separator=" ", skip_empty=True)), has_main


def _inside(nodes: Sequence[LexborNode], root: LexborNode) -> int:
    """How many of the nodes that follow an element lie within it: in document order they come first."""
    sought, low, high = root.mem_id, 0, len(nodes)
    while low < high:
        middle = (low + high) // 2
        above = nodes[middle].parent
        while above is not None and above.mem_id != sought:
            above = above.parent
        low, high = (middle + 1, high) if above is not None else (low, middle)
    return low


def _is_furniture(node: LexborNode, tag: str | None) -> bool:
    """Whether an element is navigation, or what stands on every page."""
    if tag in _FURNITURE:
        return True
    attributes = node.attributes
    said = attributes.get("class")
    return (
        attributes.get("role") in _ROLES
        or (attributes.get("id") or "").startswith("nav")
        or (said is not None and _NAVIGATION.search(said) is not None)
    )
