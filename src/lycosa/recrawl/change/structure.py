"""Structure: whether it changed (Y7, two strings) and where (Y8, the level table and a level-order walk).

Method I compares the strings that the analyser made of every page (`web.html`). Method II needs both documents: it
counts the nodes of each level before and after, and walks the levels in order to the first node whose children differ.
Pure. Called by `cascade` and `verdict`.
"""

from collections.abc import Sequence

import msgspec
import xxhash
from selectolax.lexbor import LexborHTMLParser, LexborNode

from lycosa.web import codes_of, hazard

Strings = tuple[str, str]
MOST_NODES = 200_000  # of a document; what comes after is not looked at


def structure_differs(old: Strings, new: Strings) -> int | None:
    """Y7: 1 or 2, the string in which two structures differ; None when they are alike by method I."""
    return 1 if old[0] != new[0] else 2 if old[1] != new[1] else None


def structure_digest(strings: Strings) -> tuple[int, int, int]:
    """What a history keeps of both strings: the number of tags, and 64 bits of each."""
    first, last = (int(xxhash.xxh3_64_intdigest(string.encode())) for string in strings)
    return (len(strings[0]), first, last) if strings[0] else (0, 0, 0)


class StructureNode(msgspec.Struct):
    """One element. `content` is the root mean square of its own text's character codes, `children` are indexes."""

    name: str
    level: int
    parent: int
    content: float = 0.0
    children: list[int] = msgspec.field(default_factory=list)


class StructureLocation(msgspec.Struct, frozen=True):
    """Where two trees differ first, in level order: `path` from the root, and how many elements came and went there."""

    level: int
    path: str
    added: tuple[str, ...]
    removed: tuple[str, ...]

    def __str__(self) -> str:
        changes = [*(f"+{name}" for name in self.added), *(f"−{name}" for name in self.removed)]
        return f"{self.path}: {' '.join(changes[:8])}" if changes else self.path


def element_tree(html: bytes, *, with_content: bool = False) -> list[StructureNode]:
    """The elements of a document in level order; a node's id is its index, the root is 0 on level 1. Content values are
    worked out if they are wanted."""
    parser = LexborHTMLParser(html if hazard.is_safe_to_parse(html) else html[: hazard.UNSAFE_PARSED_BYTES])
    nodes: list[StructureNode] = []
    if parser.root is None:
        return nodes
    waiting: list[tuple[LexborNode, int, int]] = [(parser.root, 1, -1)]
    for element, level, parent in waiting:  # grows while it is walked: level order
        number = len(nodes)
        content = _content_value(element.text(deep=False)) if with_content else 0.0
        nodes.append(StructureNode(element.tag or "?", level, parent, content))
        if parent >= 0:
            nodes[parent].children.append(number)
        if len(waiting) < MOST_NODES:
            waiting += [(child, level + 1, number) for child in element.iter(include_text=False)]
    return nodes


def _content_value(text: str) -> float:
    """The root mean square of the character codes, as in the text code of method II (Y10); 0 for no text."""
    return codes_of(text.strip().encode("utf-8", "replace")).root_of_squares


def level_table(nodes: Sequence[StructureNode]) -> list[int]:
    """Y8: the number of nodes on each level, level 1 first."""
    counts: list[int] = []
    for node in nodes:
        counts += [0] * (node.level - len(counts))
        counts[node.level - 1] += 1
    return counts


def changed_levels(old: Sequence[StructureNode], new: Sequence[StructureNode]) -> list[int]:
    """Y8: the levels whose number of nodes is another one."""
    before, after = level_table(old), level_table(new)
    deepest = max(len(before), len(after))
    before += [0] * (deepest - len(before))
    after += [0] * (deepest - len(after))
    return [level for level, pair in enumerate(zip(before, after, strict=True), start=1) if pair[0] != pair[1]]


def first_difference(old: Sequence[StructureNode], new: Sequence[StructureNode]) -> StructureLocation | None:
    """Y8: the first node in level order whose children are others; None when the trees have the same shape and names.

    Nodes are paired from the root on: the n-th child with the n-th child as long as their lists of names agree.
    """
    if not old or not new:
        return None if bool(old) == bool(new) else StructureLocation(1, "", _names(new[:1]), _names(old[:1]))
    if old[0].name != new[0].name:
        return StructureLocation(1, new[0].name, (new[0].name,), (old[0].name,))
    pairs = [(0, 0)]
    for before, after in pairs:  # grows while it is walked
        left = [old[child].name for child in old[before].children]
        right = [new[child].name for child in new[after].children]
        if left != right:
            added, removed = _difference(left, right)
            return StructureLocation(new[after].level + 1, path_of(new, after), added, removed)
        pairs += zip(old[before].children, new[after].children, strict=True)
    return None


def changed_contents(old: Sequence[StructureNode], new: Sequence[StructureNode]) -> list[int]:
    """The nodes of `new` whose own text has another content value, when both trees have one shape."""
    return [
        number
        for number, (before, after) in enumerate(zip(old, new, strict=False))
        if before.content != after.content and before.name == after.name
    ]


def path_of(nodes: Sequence[StructureNode], number: int) -> str:
    """A node for the eye: html > body > main > p:3."""
    steps = []
    while number >= 0:
        node = nodes[number]
        siblings = nodes[node.parent].children if node.parent >= 0 else [number]
        same = [child for child in siblings if nodes[child].name == node.name]
        steps.append(node.name if len(same) == 1 else f"{node.name}:{same.index(number) + 1}")
        number = node.parent
    return " > ".join(reversed(steps))


def _difference(left: Sequence[str], right: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What came and what went, without the common beginning and end."""
    start = 0
    while start < min(len(left), len(right)) and left[start] == right[start]:
        start += 1
    end = 0
    while end < min(len(left), len(right)) - start and left[-1 - end] == right[-1 - end]:
        end += 1
    return tuple(right[start : len(right) - end]), tuple(left[start : len(left) - end])


def _names(nodes: Sequence[StructureNode]) -> tuple[str, ...]:
    return tuple(node.name for node in nodes)
