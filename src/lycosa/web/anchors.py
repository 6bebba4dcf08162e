"""The anchors of a page, `<a href>`: the bulk of its links.

Read apart from all other elements, in a loop written for speed, in which calls are what costs. An anchor's text is that
of all elements in it, or where there is none the alternative text of an image in it. Where anchors nest by the thousand
(`NESTING_WORK`), those that hold others have their own words only, so that the work stays linear. Called by `html` with
the page's elements, hidden ones already out of the tree.
"""

from collections.abc import Container, Sequence
from itertools import compress, pairwise

from selectolax.lexbor import LexborNode

from lycosa.web import links
from lycosa.web.links import Collector, LinkKind
from lycosa.web.structure import TAG_ID

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


def read_anchors(nodes: Sequence[LexborNode], numbers: bytes, collector: Collector) -> None:
    """Add every `<a href>` among the elements, which come with their tag numbers (`structure.tag_numbers`)."""
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
            rels[place] = links.agreed(rels[place], attributes.get("rel") or "")
    alternatives = _alternatives(nodes, numbers, wordless) if wordless else {}
    for anchor, words in alternatives.items():
        texts[wordless[anchor]] = texts[wordless[anchor]] or words
    hrefs = list(places)
    if not links.are_padded(hrefs):
        collector.extend(hrefs, LinkKind.A, anchors=texts, rels=rels)
        return
    for node in anchors:
        attributes = node.attributes
        href = attributes["href"] if attributes.get("href") is not None else _unusual_href(attributes)
        if href is not None:
            words = _words(node, holders) or alternatives.get(node.mem_id, "")
            collector.add(href, LinkKind.A, anchor=links.short(words), rel=attributes.get("rel") or "")


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
