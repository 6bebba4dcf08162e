"""The structured data in a page: JSON-LD, OpenGraph and other metas, microdata and RDFa Lite, as plain dictionaries.

    read_json_ld(texts)            the objects of `<script type="application/ld+json">`, those of an @graph one by one
    read_items(tree, MICRODATA)    items as the HTML standard writes them in JSON: {"type": […], "properties": {…}}

Pure; any document gives a result and nothing raises. Work and results are bounded whatever a document holds: JSON by
size, depth and number of values, items by their number, their depth and the text that they hold. Used by `metadata`.
"""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import msgspec
from selectolax.lexbor import LexborHTMLParser, LexborNode

Json = dict[str, Any]

MAX_JSON_CHARS = 1_000_000  # of all scripts of a page together
MAX_SCRIPTS = 100
MAX_DEPTH = 32  # of objects in objects
MAX_VALUES = 20_000  # in the JSON of a page
MAX_PROPERTIES = 5_000  # of all items of a page together
MAX_STEPS = 200_000  # from properties up to their items
MAX_TEXT_CHARS = 2_000_000  # of all properties together; they may nest
MAX_VALUE_CHARS = 50_000

_SURROGATES = re.compile("[\ud800-\udfff]")
_WRAPPING = re.compile(r"^\s*+(?://|/\*)?\s*(?:<!\[CDATA\[|<!--)\s*(?:\*/)?|(?://|/\*)?\s*(?:\]\]>|-->)\s*(?:\*/)?\s*$")
_TRAILING_COMMA = re.compile(r",(\s*+[}\]])")


def read_json_ld(texts: Iterable[str]) -> tuple[Json, ...]:
    """The objects of JSON-LD scripts, those of lists and of an @graph one by one; what is no JSON is left out."""
    found, room, values = list[Json](), MAX_JSON_CHARS, [MAX_VALUES]
    for number, text in enumerate(texts):
        room -= len(text)
        if number >= MAX_SCRIPTS or room < 0:
            break
        document = _bounded(_parsed(text), MAX_DEPTH, values)
        for item in document if isinstance(document, list) else [document]:
            if isinstance(item, dict):
                graph = item.get("@graph")
                members = graph if isinstance(graph, list) else [graph] if isinstance(graph, dict) else [item]
                found += [member for member in members if isinstance(member, dict)]
    return tuple(found)


def _parsed(text: str) -> object:
    """The value of a JSON text; also of one with line breaks in strings, in a comment, or with a comma too many, as
    pages have them. None if it cannot be read."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        pass
    bare = _WRAPPING.sub("", _WRAPPING.sub("", text)).strip().rstrip(";")
    for spelled in (bare, _TRAILING_COMMA.sub(r"\1", bare)):
        try:
            return json.loads(spelled, strict=False, parse_constant=lambda _: None)
        except (ValueError, RecursionError):
            continue
    return None


def _bounded(value: object, depth: int, values: list[int]) -> object:
    """The value without what is too deep or too much, and with text that can be written as UTF-8."""
    values[0] -= 1
    if values[0] < 0 or (depth <= 0 and isinstance(value, dict | list)):
        return None
    if isinstance(value, str):
        return _SURROGATES.sub("\ufffd", value[:MAX_VALUE_CHARS])
    if isinstance(value, dict):
        return {_SURROGATES.sub("\ufffd", key): _bounded(each, depth - 1, values) for key, each in value.items()}
    if isinstance(value, list):
        return [_bounded(each, depth - 1, values) for each in value]
    return value


class ItemSyntax(NamedTuple):
    """The attributes by which a syntax marks items in HTML."""

    scope: str
    kind: str
    name: str
    identity: str
    references: str = ""


MICRODATA = ItemSyntax("itemscope", "itemtype", "itemprop", "itemid", "itemref")
RDFA_LITE = ItemSyntax("typeof", "typeof", "property", "resource")


class _Item:
    """An item while it is read. Properties are text, or an item."""

    def __init__(self, kinds: list[str], identity: str) -> None:
        self.kinds, self.identity = kinds, identity
        self.properties: dict[str, list[str | _Item]] = {}

    def as_json(self, values: list[int], above: tuple["_Item", ...] = ()) -> Json | None:
        """As the HTML standard writes it; None for an item in itself, which references can make, and when as many
        `values` as may be are used up."""
        values[0] -= 1 + sum(map(len, self.properties.values()))
        if self in above or len(above) >= MAX_DEPTH or values[0] < 0:
            return None
        inside = (*above, self)
        properties = {
            name: [
                made for each in found if (made := each.as_json(values, inside) if isinstance(each, _Item) else each)
            ]
            for name, found in self.properties.items()
        }
        identity = {"id": self.identity} if self.identity else {}
        return {"type": self.kinds, **identity, "properties": properties}


def read_items(tree: LexborHTMLParser, syntax: ItemSyntax, absolute: Callable[[str], str] = str) -> tuple[Json, ...]:
    """The items of a document that are in no other. `absolute` makes a URL of a reference."""
    marked = tree.css(f"[{syntax.scope}],[{syntax.name}]")[: 2 * MAX_PROPERTIES]  # what matches twice is there twice
    nodes = list({node.mem_id: node for node in marked}.values())[:MAX_PROPERTIES]
    items: dict[int, _Item] = {}  # by the places of their elements in memory
    references: dict[str, list[_Item]] = {}  # from which items, by the id of the element
    for node in nodes:
        attributes = node.attributes
        if syntax.scope in attributes:
            kinds = [kind.removeprefix("schema:") for kind in _words(attributes.get(syntax.kind))]
            items[node.mem_id] = item = _Item(kinds, (attributes.get(syntax.identity) or "").strip())
            for name in _words(attributes.get(syntax.references)) if syntax.references else ():
                references.setdefault(name, []).append(item)
    holders = _referred_to(tree, references) if references else {}
    steps, room, top = MAX_STEPS, MAX_TEXT_CHARS, list[_Item]()
    for node in nodes:
        names, inner = _words(node.attributes.get(syntax.name)), items.get(node.mem_id)
        if not names:
            top += [inner] if inner is not None else []
            continue
        owners, steps = _owners(node, items, holders, steps)
        steps -= len(owners)
        if steps < 0 or room < 0:
            break
        if not owners:
            top += [inner] if inner is not None else []
            continue
        value: str | _Item = inner if inner is not None else property_value(node, absolute)
        if isinstance(value, str):
            room -= len(value)
            value = value[:MAX_VALUE_CHARS]
        for owner in owners:
            for name in names:
                owner.properties.setdefault(name.removeprefix("schema:"), []).append(value)
    values = [MAX_VALUES]
    return tuple(made for item in top if (made := item.as_json(values)) is not None)


def _owners(
    node: LexborNode, items: dict[int, _Item], holders: dict[int, list[_Item]], steps: int
) -> tuple[list[_Item], int]:
    """The items that a property belongs to: the nearest above it, and those that refer to an element on the way."""
    owners, at = list(holders.get(node.mem_id, ())), node.parent
    while at is not None and steps >= 0:
        steps -= 1
        if (item := items.get(at.mem_id)) is not None:
            return ([*owners, item] if item not in owners else owners), steps
        owners += holders.get(at.mem_id, ())
        at = at.parent
    return owners, steps


def _referred_to(tree: LexborHTMLParser, references: dict[str, list[_Item]]) -> dict[int, list[_Item]]:
    """Which items refer to an element, by its place in memory; the first with an id counts."""
    first = dict[str, LexborNode]()
    for node in tree.css("[id]"):
        first.setdefault(node.attributes["id"] or "", node)
    return {first[name].mem_id: holding for name, holding in references.items() if name in first}


_URL_ATTRIBUTES = {
    **dict.fromkeys("a area link".split(), "href"),
    **dict.fromkeys("audio embed iframe img source track video".split(), "src"),
    "object": "data",
}
_VALUE_ATTRIBUTES = {"meta": "content", "data": "value", "meter": "value", "time": "datetime"}


def property_value(node: LexborNode, absolute: Callable[[str], str]) -> str:
    """The value of an element that is a property: its content, the URL that it is about, or its text."""
    tag, attributes = node.tag or "", node.attributes
    if (content := attributes.get("content")) is not None:  # on any element: RDFa, and microdata as it is written
        return content.strip()
    if tag in _URL_ATTRIBUTES:
        written = (attributes.get(_URL_ATTRIBUTES[tag]) or "").strip()
        return absolute(written) if written else ""
    if (value := attributes.get(_VALUE_ATTRIBUTES.get(tag, ""))) is not None:
        return value.strip()
    return " ".join(node.text().split())


def plain_object(item: Json, depth: int = 4) -> Json:
    """An item of microdata or RDFa as an object of JSON-LD: types without their vocabulary, single values alone."""
    made: Json = {"@type": [str(kind).rsplit("/", 1)[-1] for kind in item["type"]]}
    for name, values in item["properties"].items() if depth else ():
        each = [plain_object(value, depth - 1) if isinstance(value, dict) else value for value in values]
        made[name.rsplit("/", 1)[-1]] = each[0] if len(each) == 1 else each
    return made


def _words(text: str | None) -> Sequence[str]:
    return list(dict.fromkeys(text.split()))[:20] if text else ()
