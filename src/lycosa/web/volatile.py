"""Where the volatile parts of a document are in its bytes: what changes often while the rest, the frame, does not.

Marked parts are the contents of `<span data-vol="ID">` in HTML and of `<Vol1>`, `<Vol2>` … in XML. Any other element is
named by its tag and which one of that name it is, counted from 1 over the start tags in the source: `td:17`.
Pure, and linear in the document's size: no parse, one pass over the tags that knows comments, quoted attributes and
the elements whose content is no mark-up. Whether a part was found rightly is proved by the digests in a `.tvi`.
"""

import re
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

MAX_VOLATILE_PARTS = 1_000
_MARK = b"data-vol"

_SPACE = rb"[\t\n\f\r ]"
_TOKEN = re.compile(
    rb"<!--(?:-?>|.*?(?:--!?>|\Z))|<!\[CDATA\[.*?(?:\]\]>|\Z)"
    rb"|<(/?)([A-Za-z][^\t\n\f\r />]*+)((?:=[\t\n\f\r ]*+(?:\"[^\"]*+(?:\"|\Z)|'[^']*+(?:'|\Z))|[^>])*+)(?:>|\Z)",
    re.DOTALL,
)
_VALUE = re.compile(
    rb"(?:\A|[\t\n\f\r /\"'])data-vol"
    + _SPACE
    + rb"*+="
    + _SPACE
    + rb"*+(?:\"([^\"]*+)\"|'([^']*+)'|([^\t\n\f\r >\"'/]++))",
    re.IGNORECASE,
)
_ID = re.compile(r"[A-Za-z0-9_.-]{1,64}\Z")
_NUMBERED = re.compile(r"([a-z][a-z0-9-]{0,30}):([1-9][0-9]{0,6})\Z")
_VOL = re.compile(rb"Vol[0-9]{1,9}\Z")
# Elements whose content is text whatever it looks like.
_RAW = frozenset(b"script style textarea title xmp iframe noembed noframes".split())
_VOID = frozenset(b"area base br col embed hr img input link meta param source track wbr".split())


class VolatilePart(NamedTuple):
    """The content of one volatile element, without its tags."""

    id: str
    start: int
    end: int


class _Tag(NamedTuple):
    name: bytes
    number: int  # which start tag of this name it is
    start: int
    end: int
    attributes: bytes


def is_part_id(text: str) -> bool:
    """Whether `text` can name a part."""
    return _ID.match(text) is not None or _NUMBERED.match(text) is not None


def marked_parts(body: bytes, *, is_xml: bool) -> list[VolatilePart]:
    """The marked parts, outermost ones, the first of each id, in the document's order."""
    if (b"<Vol" if is_xml else _MARK) not in (body if is_xml else body.lower()):
        return []
    return _outermost(_parts(body, None, is_xml=is_xml))


def parts_by_id(body: bytes, ids: Collection[str], *, is_xml: bool) -> list[VolatilePart] | None:
    """The parts of these ids in the document's order; None if one of them is missing, or is inside another."""
    found = _outermost(_parts(body, frozenset(ids), is_xml=is_xml))
    return found if len(found) == len(ids) else None


def selected_parts(body: bytes, selector: str) -> list[VolatilePart] | None:
    """The outermost elements that a CSS selector finds; None if one of them cannot be told in the source.

    Raises ValueError for what is no selector.
    """
    from selectolax.lexbor import LexborHTMLParser  # lazy: 30 ms, for publishers only

    tree = LexborHTMLParser(body)
    try:
        chosen = tree.css(selector)
    except Exception as error:  # the library has several kinds
        raise ValueError(f"{selector!r} is no CSS selector") from error
    names = {node.tag or "" for node in chosen}
    numbers = {name: {node.mem_id: i for i, node in enumerate(tree.css(name), 1)} for name in names if name.isalnum()}
    counts = _counts(body)
    ids = []
    for node in chosen:
        name = node.tag or ""
        places = numbers.get(name, {})
        if len(places) != counts.get(name.encode(), 0) or node.mem_id not in places:
            return None  # the parser has made, moved or dropped elements of this name
        ids.append(f"{name}:{places[node.mem_id]}")
    found = _parts(body, frozenset(ids), is_xml=False)
    return _outermost(found)


def selected_and_marked_parts(body: bytes, chosen: list[VolatilePart]) -> list[VolatilePart]:
    """The selected and the marked parts of HTML, outermost ones; what is both has the id of its mark."""
    by_start = {part.start: part for part in [*chosen, *marked_parts(body, is_xml=False)]}
    return _outermost([by_start[start] for start in sorted(by_start)])[:MAX_VOLATILE_PARTS]


def cut_parts(body: bytes, parts: Iterable[VolatilePart]) -> bytes:
    """The frame: the document without the content of its volatile parts."""
    return fill_parts(body, [(part, b"") for part in parts])


def fill_parts(body: bytes, contents: Iterable[tuple[VolatilePart, bytes]]) -> bytes:
    """The document with other content in its parts, which come in order and do not overlap."""
    pieces, at = [], 0
    for part, content in contents:
        pieces += [body[at : part.start], content]
        at = part.end
    return b"".join([*pieces, body[at:]])


def _tags(body: bytes, *, is_xml: bool) -> Iterator[_Tag]:
    """All start tags; an end tag has the number 0."""
    counts: dict[bytes, int] = {}
    at = 0
    while (token := _TOKEN.search(body, at)) is not None:
        at = token.end()
        name = token[2]
        if name is None or not body.endswith(b">", token.start(), at):  # a comment, or a tag that never ends
            continue
        name = name if is_xml else name.lower()
        if token[1]:
            yield _Tag(name, 0, token.start(), at, b"")
            continue
        counts[name] = number = counts.get(name, 0) + 1
        yield _Tag(name, number, token.start(), at, token[3])
        if not is_xml and name in _RAW:
            close = re.compile(rb"</" + name + rb"(?=[\t\n\f\r />])", re.IGNORECASE).search(body, at)
            at = close.start() if close else len(body)


def _counts(body: bytes) -> dict[bytes, int]:
    counts: dict[bytes, int] = {}
    for tag in _tags(body, is_xml=False):
        if tag.number:
            counts[tag.name] = tag.number
    return counts


def _parts(body: bytes, ids: frozenset[str] | None, *, is_xml: bool) -> list[VolatilePart]:
    """The parts of these ids, or all marked ones (None), each id once; a part without an end is left out."""
    parts: list[VolatilePart] = []
    taken: set[str] = set()
    open_by_name: dict[bytes, list[tuple[str, int]]] = {}  # for names with a part open: its nested elements, too
    for tag in _tags(body, is_xml=is_xml):
        stack = open_by_name.get(tag.name)
        if not tag.number:
            if stack and (opened := stack.pop())[0]:
                parts.append(VolatilePart(opened[0], opened[1], tag.start))
            continue
        name = _id_of(tag, is_xml=is_xml, ids=ids)
        is_new = bool(name) and name not in taken and len(taken) < MAX_VOLATILE_PARTS
        if is_new and not tag.attributes.endswith(b"/" if is_xml else b"\0") and tag.name not in _VOID:
            taken.add(name)
            open_by_name.setdefault(tag.name, []).append((name, tag.end))
        elif stack and not (is_xml and tag.attributes.endswith(b"/")):
            stack.append(("", 0))
    return sorted(parts, key=lambda part: part.start)


def _id_of(tag: _Tag, *, is_xml: bool, ids: frozenset[str] | None) -> str:
    """The id by which a tag is wanted; empty if it is not."""
    numbered = f"{tag.name.decode('latin-1')}:{tag.number}" if ids else ""
    if ids and numbered in ids:
        return numbered
    mark = ""
    if is_xml:
        mark = tag.name.decode() if _VOL.match(tag.name) else ""
    elif tag.name == b"span" and _MARK in tag.attributes.lower() and (value := _VALUE.search(tag.attributes)):
        mark = (value[1] or value[2] or value[3] or b"").decode("latin-1")
    return mark if mark and _ID.match(mark) and (ids is None or mark in ids) else ""


def _outermost(parts: list[VolatilePart]) -> list[VolatilePart]:
    kept: list[VolatilePart] = []
    for part in parts:
        if not kept or part.start >= kept[-1].end:
            kept.append(part)
    return kept
