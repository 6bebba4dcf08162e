"""The main content of a page, normalised: the pieces of text that are read, where links lead, which images are shown.

White space, classes, styles, ids, scripts and comments are no content; nor is what stands outside the one main element,
where there is one. This is what the verdict rests on: equal contents are the same page. Needs a parse of its own, so it
is made only for a page whose bytes have changed. Called by `verdict`, by `masks` to learn, by `diff` to show.
"""

from itertools import compress

import msgspec
import xxhash
from selectolax.lexbor import LexborHTMLParser, LexborNode

from lycosa.web import hazard, volatile
from lycosa.web.charset import to_utf8
from lycosa.web.links import LinkKind
from lycosa.web.media import Kind as MediaKind
from lycosa.web.page import Page, analyse
from lycosa.web.structure import table, tag_numbers

# Attributes that carry content. A link's `rel` does not.
_LINKS = {"a": "href", "area": "href", "iframe": "src", "frame": "src", "form": "action", "object": "data"}
_IMAGES = {"img": ("src", "srcset"), "source": ("srcset",), "video": ("poster",)}
_WORDS = ("alt", "title", "aria-label", "datetime", "placeholder")
_WORDED = ", ".join(f"[{name}]" for name in _WORDS)
_IS_LINK, _IS_IMAGE = table(dict.fromkeys(_LINKS, 1)), table(dict.fromkeys(_IMAGES, 1))
_HIDDEN = "script, style, noscript, template, noembed, noframes"
# The mark that an author puts on what changes all the time (P7).
MARKED = "[data-vol]"
MARK = "\2"  # in the place of a marked part; no parsed text contains it
_BETWEEN = "\0"
_MOST_LEVELS = 6_000  # more than a document that is parsed has


class Content(msgspec.Struct, frozen=True):
    """`pieces`: the title, then text in document order, one piece a text node, then words in attributes.
    `links`: addresses as written. `images`: address, size and alternative text, each image one string. `tags`: one byte
    an element."""

    pieces: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    images: tuple[str, ...] = ()
    tags: bytes = b""

    @property
    def words(self) -> tuple[str, ...]:
        """All that may hold a part that is volatile."""
        return self.pieces + self.links + self.images


def content_of(page: Page, body: bytes) -> Content:
    """The content of an analysed document; of one that no analyser reads, the digest of its bytes."""
    if page.media.kind in (MediaKind.HTML, MediaKind.XHTML):
        return _of_html(to_utf8(body, page.charset or "utf-8"))
    if page.is_volatile:
        page, body = _without_marked(page, body)
    if not page.text_utf8 and not page.links.hrefs:
        return Content(pieces=(page.digest.hex(),))
    links = tuple(href for href, kind in zip(page.links.hrefs, page.links.kinds, strict=True) if kind != LinkKind.IMG)
    lines = to_utf8(body, page.charset or "utf-8").decode("utf-8", "replace").splitlines()
    pieces = tuple(" ".join(line.split()) for line in lines) if page.media.kind is MediaKind.TEXT else (page.text,)
    return Content((page.title or "", *filter(None, pieces)), links, (), page.structure_first.encode())


def _without_marked(page: Page, body: bytes) -> tuple[Page, bytes]:
    """An XML document with nothing in its marked parts."""
    parts = volatile.marked(body, is_xml=True)
    if not parts:
        return page, body
    body = volatile.cut(body, parts)
    sent = f"{page.media.essence}; charset={page.charset}" if page.charset else page.media.essence
    return analyse(body, url=page.url, content_type=sent), body


def _of_html(body: bytes) -> Content:
    if not hazard.is_tame(body):
        body = body[: hazard.CUT_BYTES]
    tree = LexborHTMLParser(body)
    title = tree.css_first("head > title")
    if tree.body is None:
        return Content((_squeezed(title.text()),) if title else ())
    for node in tree.css(_HIDDEN):
        node.decompose(recursive=False)
    mains = tree.css("main, [role=main]")
    root = mains[0] if len(mains) == 1 else tree.body
    _cut_marked(root)
    nodes = root.css("*")
    tags = tag_numbers(nodes)
    links = _addresses(nodes, tags)
    images = filter(None, map(_image, compress(nodes, tags.translate(_IS_IMAGE))))
    words = [
        _squeezed(value)
        for node in root.css(_WORDED)
        for name in _WORDS
        if (value := node.attributes.get(name)) and not (name == "alt" and node.tag == "img")
    ]
    text = root.text(separator=_BETWEEN, skip_empty=True).split(_BETWEEN)
    pieces = filter(None, map(_squeezed, text))
    return Content(((_squeezed(title.text()) if title else ""), *pieces, *words), links, tuple(images), tags)


def _cut_marked(root: LexborNode) -> None:
    """Puts a mark in the place of every marked part; one inside another goes with it."""
    marked = root.css(MARKED)
    known = {node.mem_id for node in marked}
    outer = [node for node in marked if not _is_inside(node, known)]
    for node in outer:
        node.insert_before(MARK)
        node.decompose()


def _is_inside(node: LexborNode, known: set[int]) -> bool:
    above = node.parent
    for _ in range(_MOST_LEVELS):
        if above is None:
            return False
        if above.mem_id in known:
            return True
        above = above.parent
    return False


def _addresses(nodes: list[LexborNode], tags: bytes) -> tuple[str, ...]:
    """Where links lead, in document order."""
    values = (node.attributes.get(_LINKS[node.tag or ""]) for node in compress(nodes, tags.translate(_IS_LINK)))
    return tuple(value.strip() for value in values if value)


def _image(node: LexborNode) -> str:
    """What a page says of an image: `/logo.png (64×32) “Our logo”`."""
    found = node.attributes
    parts = [_squeezed(value) for name in _IMAGES[node.tag or ""] if (value := found.get(name))]
    width, height = found.get("width") or "", found.get("height") or ""
    if width or height:
        parts.append(f"({width}×{height})")
    if alt := _squeezed(found.get("alt") or "") if node.tag == "img" else "":
        parts.append(f"“{alt}”")
    return " ".join(parts)


def _squeezed(text: str) -> str:
    return " ".join(text.split())


def digest_of(parts: list[tuple[str, ...]], tags: bytes = b"") -> bytes:
    """128 bits of lists of strings, each list apart, and of the tags."""
    hasher = xxhash.xxh3_128()
    for strings in parts:
        hasher.update(("\n".join(strings) + "\1").encode("utf-8", "surrogatepass"))
    hasher.update(tags)
    return bytes(hasher.digest())
