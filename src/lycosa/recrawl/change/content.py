"""The main content of a page, normalised, and the parts of it that change on every visit.

Content is the text that is read, the addresses of links and the images that are shown, inside the one main element
where a page has one. White space, classes, styles, ids, scripts and comments do not count. Equal contents are the same
page. Reading content needs a parse of its own, so it happens only for a page whose bytes have changed.

A piece of text or an address is a *skeleton* of words with *slots* for values: "Read 812 times" is the skeleton "Read _
times" with the slot "812". A slot whose value differed on two visits, and on at least half of all visits since, is
volatile and is left out of comparisons. So words are never masked, and neither is a value that changed once: a new
price is news, a counter is not. A slot is known by its skeleton or, where several pieces share one, by that and its
neighbour's. Pure. Called by `recrawl.change.verdict`; what it learns of a page, its `Masks`, is in the visit row.
"""

import re
from collections import Counter
from collections.abc import Container, Iterator, Sequence
from itertools import count

import msgspec
import xxhash
from selectolax.lexbor import LexborHTMLParser, LexborNode

from lycosa.recrawl.change.ignored import IgnoredParts
from lycosa.web import (
    LinkKind,
    Page,
    analyse_page,
    cut_if_unsafe,
    cut_parts,
    marked_parts,
    to_utf8,
)
from lycosa.web import MediaKind as MediaKind

# Attributes that carry content. A link's `rel` does not.
_LINKS = {"a": "href", "area": "href", "iframe": "src", "frame": "src", "form": "action", "object": "data"}
_IMAGES = {"img": ("src", "srcset"), "source": ("srcset",), "video": ("poster",)}
_WORDS = ("alt", "title", "aria-label", "datetime", "placeholder")
_WORDED = ", ".join(f"[{name}]" for name in _WORDS)
_HIDDEN = "script, style, noscript, template, noembed, noframes"
# The attribute by which an author marks what changes all the time.
MARKED = "[data-vol]"
MARK = "\2"  # in the place of a marked part; no parsed text contains it
_BETWEEN = "\0"
_BYTE = 256
_MOST_LEVELS = 6_000  # more than a document that is parsed has


class Content(msgspec.Struct, frozen=True):
    """The normalised main content of a document.

    `pieces`: the title, then text in document order, one piece a text node, then words in attributes. `links`:
    addresses as written. `images`: address, size and alternative text, each image one string. `tags`: one byte an
    element.
    """

    pieces: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    images: tuple[str, ...] = ()
    tags: bytes = b""

    @property
    def words(self) -> tuple[str, ...]:
        """All strings that may have a volatile part."""
        return self.pieces + self.links + self.images


def content_of(page: Page, body: bytes, ignored: IgnoredParts | None = None) -> Content:
    """The content of an analysed document without what is ignored; if no analyser reads it, the digest of its bytes."""
    content = _content_of(page, body, ignored.selector if ignored is not None else "")
    if ignored is None:
        return content
    links, images = ignored.words(content.links), ignored.words(content.images)
    return Content(ignored.pieces(content.pieces), links, images, content.tags)


def _content_of(page: Page, body: bytes, left_out: str) -> Content:
    if page.media.kind in (MediaKind.HTML, MediaKind.XHTML):
        return _of_html(to_utf8(body, page.charset or "utf-8"), left_out)
    if page.is_volatile:
        page, body = _without_marked(page, body)
    if not page.text_utf8 and not page.links.hrefs:
        return Content(pieces=(page.digest.hex(),))
    links = tuple(href for href, kind in zip(page.links.hrefs, page.links.kinds, strict=True) if kind != LinkKind.IMG)
    lines = to_utf8(body, page.charset or "utf-8").decode("utf-8", "replace").splitlines()
    pieces = tuple(" ".join(line.split()) for line in lines) if page.media.kind is MediaKind.TEXT else (page.text,)
    return Content((page.title or "", *filter(None, pieces)), links, (), page.structure_first.encode())


def _without_marked(page: Page, body: bytes) -> tuple[Page, bytes]:
    """An XML document with its marked parts emptied."""
    parts = marked_parts(body, is_xml=True)
    if not parts:
        return page, body
    body = cut_parts(body, parts)
    sent = f"{page.media.essence}; charset={page.charset}" if page.charset else page.media.essence
    return analyse_page(body, url=page.url, content_type=sent), body


def _of_html(body: bytes, left_out: str = "") -> Content:
    body = cut_if_unsafe(body)
    tree = LexborHTMLParser(body)
    title = tree.css_first("head > title")
    if tree.body is None:
        return Content((_squeezed(title.text()),) if title else ())
    for node in tree.css(_HIDDEN):
        node.decompose(recursive=False)
    mains = tree.css("main, [role=main]")
    root = mains[0] if len(mains) == 1 else tree.body
    if left_out:
        for node in _outermost(root.css(left_out)):
            if node.mem_id != root.mem_id:
                node.decompose()
    _cut_marked(root)
    nodes = root.css("*")
    links = (node.attributes.get(_LINKS[node.tag]) for node in nodes if node.tag in _LINKS)
    images = (_image(node, node.tag) for node in nodes if node.tag in _IMAGES)
    words = [
        _squeezed(value)
        for node in root.css(_WORDED)
        for name in _WORDS
        if (value := node.attributes.get(name)) and not (name == "alt" and node.tag == "img")
    ]
    text = root.text(separator=_BETWEEN, skip_empty=True).split(_BETWEEN)
    pieces = filter(None, map(_squeezed, text))
    return Content(
        pieces=((_squeezed(title.text()) if title else ""), *pieces, *words),
        links=tuple(value.strip() for value in links if value),
        images=tuple(filter(None, images)),
        tags=bytes(_tag_number(node) for node in nodes),
    )


def _tag_number(node: LexborNode) -> int:
    """The parser's number of an element's tag; 0 where it has none and numbers the tag by its place in memory."""
    return number if (number := node.tag_id) < _BYTE else 0


def _cut_marked(root: LexborNode) -> None:
    """Replaces every outermost marked part by `MARK`."""
    for node in _outermost(root.css(MARKED)):
        node.insert_before(MARK)
        node.decompose()


def _outermost(nodes: Sequence[LexborNode]) -> list[LexborNode]:
    """Those that are inside no other, each once."""
    known = {node.mem_id: node for node in nodes}
    return [node for node in known.values() if not _is_inside(node, known)]


def _is_inside(node: LexborNode, known: Container[int]) -> bool:
    above = node.parent
    for _ in range(_MOST_LEVELS):
        if above is None:
            return False
        if above.mem_id in known:
            return True
        above = above.parent
    return False


def _image(node: LexborNode, tag: str) -> str:
    """An image as one string: `/logo.png (64×32) “Our logo”`."""
    found = node.attributes
    parts = [_squeezed(value) for name in _IMAGES[tag] if (value := found.get(name))]
    width, height = found.get("width") or "", found.get("height") or ""
    if width or height:
        parts.append(f"({width}×{height})")
    if alt := _squeezed(found.get("alt") or "") if tag == "img" else "":
        parts.append(f"“{alt}”")
    return " ".join(parts)


def _squeezed(text: str) -> str:
    return " ".join(text.split())


def digest_of(parts: list[tuple[str, ...]], tags: bytes = b"") -> bytes:
    """A 128-bit digest of lists of strings, each list apart, and of the tags."""
    hasher = xxhash.xxh3_128()
    for strings in parts:
        hasher.update(("\n".join(strings) + "\1").encode("utf-8", "surrogatepass"))
    hasher.update(tags)
    return bytes(hasher.digest())


MOST_PARTS = 64  # a page; more is a list of values, and its changes are news
LEARNED_AFTER = 2  # changes seen
LEAST_SHARE = 0.5  # of the visits since a value was first seen to change
FORGET_AFTER = 6  # visits after which a slot that hardly changes is no longer watched

_UNITS = "milliseconds?|ms|seconds?|secs?|minutes?|mins?|hours?|hrs?|days?|weeks?|months?|years?"
_DATES = (
    "jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|"
    "nov(?:ember)?|dec(?:ember)?|mon(?:day)?|tue(?:s(?:day)?)?|wed(?:nesday)?|thu(?:rs(?:day)?)?|fri(?:day)?|"
    "sat(?:urday)?|sun(?:day)?|am|pm|utc|gmt|ago|yesterday|today|tomorrow|just|now"
)
# A value is anything with a digit in it, hexadecimal, a long token, or a word of dates. A slot is a run of values.
_VALUE = rf"\b(?:\w*\d\w*|[0-9a-f]{{6,}}|\w{{24,}}|{_UNITS}|{_DATES})\b"
_SLOT = re.compile(rf"{_VALUE}(?:[\s.,:/+%-]{{0,3}}{_VALUE})*", re.ASCII | re.IGNORECASE)
# Without a digit there is hardly a value, and to look for one takes its time.
_PLAIN = re.compile(r"\D*\Z", re.ASCII).match
_GAP = "\0"
_MASKED = "\3"


class ChangingPart(msgspec.Struct, array_like=True, frozen=True):
    """One slot that was seen to change.

    The key of its skeleton, its number there, a hash of its latest value, how often it changed, on how many visits
    since the first change, and whether it is left out. If the version before cannot be read, slots are watched before
    they change: they count no visits until they do.
    """

    key: int
    slot: int
    value: int
    changed: int = 1
    seen: int = 1
    is_volatile: bool = False

    def judged(self) -> "ChangingPart":
        """The part is volatile once it changed on most visits, and until it hardly ever does."""
        if self.is_volatile:
            is_volatile = self.seen < FORGET_AFTER or self.changed >= LEAST_SHARE / 2 * self.seen
        else:
            is_volatile = self.changed >= LEARNED_AFTER and self.changed >= LEAST_SHARE * self.seen
        return msgspec.structs.replace(self, is_volatile=is_volatile)


class Masks(msgspec.Struct, array_like=True, frozen=True):
    """The slots of a page that were seen to change."""

    parts: tuple[ChangingPart, ...] = ()

    def volatile(self) -> dict[int, set[int]]:
        """The slots to leave out, by the key of their skeleton."""
        found: dict[int, set[int]] = {}
        for part in self.parts:
            if part.is_volatile:
                found.setdefault(part.key, set()).add(part.slot)
        return found

    def unchanged(self) -> "Masks":
        """The masks after a visit on which nothing had changed."""
        if not self.parts:
            return self
        return Masks(tuple(msgspec.structs.replace(part, seen=part.seen + bool(part.changed)) for part in self.parts))

    def seen(self, new: Content) -> "Masks":
        """The masks after a visit that found `new`; what is left out stays: the stored digest was made with it."""
        if not self.parts:
            return self
        return Masks(tuple(_counted(self.parts, dict(_slots(new.words)))))

    def learned(self, old: Content, new: Content) -> "Masks":
        """The masks after a visit that found `new` in place of `old`; more or less may be left out than before."""
        before, after = dict(_slots(old.words)), dict(_slots(new.words))
        known = {(part.key, part.slot) for part in self.parts}
        parts = [part.judged() for part in _counted(self.parts, after)]
        parts = [part for part in parts if part.is_volatile or part.seen < FORGET_AFTER]
        for key, values in after.items():
            others = before.get(key)
            if others is None or others == values or len(others) != len(values):
                continue
            parts += [
                ChangingPart(key, slot, _hash(value))
                for slot, (value, other) in enumerate(zip(values, others, strict=True))
                if value != other and (key, slot) not in known
            ]
        return Masks(tuple(parts[:MOST_PARTS]))

    def watching(self, new: Content) -> "Masks":
        """As `learned` if the old version cannot be read: all slots of `new` are watched from now on."""
        after = dict(_slots(new.words))
        parts = [part.judged() for part in _counted(self.parts, after)]
        parts = [part for part in parts if part.changed and (part.is_volatile or part.seen < FORGET_AFTER)]
        known = {(part.key, part.slot) for part in parts}
        parts += [
            ChangingPart(key, slot, _hash(value), changed=0, seen=0)
            for key, values in after.items()
            for slot, value in enumerate(values)
            if (key, slot) not in known
        ]
        return Masks(tuple(parts[:MOST_PARTS]))


def _counted(parts: Sequence[ChangingPart], after: dict[int, list[str]]) -> Iterator[ChangingPart]:
    """The parts after one more visit; a part whose text was edited stays as it is."""
    for part in parts:
        values = after.get(part.key)
        if values is None or part.slot >= len(values):
            yield part
            continue
        value = _hash(values[part.slot])
        changed = part.changed + (value != part.value)
        yield msgspec.structs.replace(part, value=value, changed=changed, seen=part.seen + bool(changed))


def masked(strings: Sequence[str], volatile: dict[int, set[int]]) -> tuple[str, ...]:
    """The strings with the volatile slots left out."""
    if not volatile:
        return tuple(strings)
    found = list(strings)
    for place, key in _keys(strings):
        if slots := volatile.get(key):
            found[place] = _without(strings[place], slots)
    return tuple(found)


def _without(text: str, slots: set[int]) -> str:
    numbers = count()
    return _SLOT.sub(lambda match: _MASKED if next(numbers) in slots else match[0], text)


def masked_content(content: Content, volatile: dict[int, set[int]]) -> Content:
    """The content without its volatile slots."""
    if not volatile:
        return content
    words = masked(content.words, volatile)
    texts, links = len(content.pieces), len(content.links)
    return Content(words[:texts], words[texts : texts + links], words[texts + links :], content.tags)


def content_digest(content: Content, masks: Masks) -> bytes:
    """A 128-bit digest of the content without its volatile parts: equal digests are the same page."""
    left = masked_content(content, masks.volatile())
    return digest_of([left.pieces, left.links, left.images], left.tags)


def _keys(strings: Sequence[str]) -> Iterator[tuple[int, int]]:
    """(place, key) of every string that has a slot; only the first of equal keys."""
    skeletons = {
        place: skeleton
        for place, text in enumerate(strings)
        if (not _PLAIN(text) or "now" in text or "day" in text) and _GAP in (skeleton := _SLOT.sub(_GAP, text))
    }
    counts = Counter(skeletons.values())
    seen = set()
    for place, skeleton in skeletons.items():
        is_alone = counts[skeleton] == 1 and len(skeleton) > skeleton.count(_GAP)
        key = _hash(skeleton if is_alone else f"{_SLOT.sub(_GAP, strings[place - 1]) if place else ''}\1{skeleton}")
        if key not in seen:
            seen.add(key)
            yield place, key


def _slots(strings: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    for place, key in _keys(strings):
        yield key, _SLOT.findall(strings[place])


def _hash(text: str) -> int:
    return int(xxhash.xxh3_64_intdigest(text.encode("utf-8", "surrogatepass")))
