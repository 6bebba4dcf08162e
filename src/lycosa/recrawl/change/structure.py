"""The structure of a page: whether it has changed, and where.

Whether: by the two structure strings that the analyser makes of every page. Where: both documents are needed; the nodes
of each level are counted before and after, and the levels are walked in order to the first node whose children differ.
Pure. Called by `recrawl.change.verdict` and `recrawl.change.diff`.
"""

from collections.abc import Sequence

import msgspec
import xxhash
from selectolax.lexbor import LexborHTMLParser, LexborNode

from lycosa.web import cut_if_unsafe

Strings = tuple[str, str]
MOST_NODES = 200_000  # of a document; the rest is ignored
DEEPEST_SHOWN = 40  # levels by which a line of an outline is indented


def structure_differs(old: Strings, new: Strings) -> int | None:
    """The number, 1 or 2, of the string in which two structures differ; None if both are the same."""
    return 1 if old[0] != new[0] else 2 if old[1] != new[1] else None


def structure_digest(strings: Strings) -> tuple[int, int, int]:
    """What a history keeps of both strings: the number of tags, and a 64-bit hash of each string."""
    first, last = (int(xxhash.xxh3_64_intdigest(string.encode())) for string in strings)
    return (len(strings[0]), first, last) if strings[0] else (0, 0, 0)


class StructureNode(msgspec.Struct):
    """One element. Parent and children are indexes in the list of all elements."""

    name: str
    level: int
    parent: int
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


def element_tree(html: bytes) -> list[StructureNode]:
    """The elements of a document in level order; a node's id is its index, the root is 0 on level 1."""
    parser = LexborHTMLParser(cut_if_unsafe(html))
    nodes: list[StructureNode] = []
    if parser.root is None:
        return nodes
    waiting: list[tuple[LexborNode, int, int]] = [(parser.root, 1, -1)]
    for element, level, parent in waiting:  # grows while it is walked: level order
        number = len(nodes)
        nodes.append(StructureNode(element.tag or "?", level, parent))
        if parent >= 0:
            nodes[parent].children.append(number)
        if len(waiting) < MOST_NODES:
            waiting += [(child, level + 1, number) for child in element.iter(include_text=False)]
    return nodes


def outline(nodes: Sequence[StructureNode]) -> list[str]:
    """The elements in the order of the document, a line each, indented by their level."""
    lines, waiting = list[str](), [0] if nodes else []
    while waiting:
        node = nodes[waiting.pop()]
        lines.append("  " * min(node.level - 1, DEEPEST_SHOWN) + node.name)
        waiting += reversed(node.children)
    return lines


def level_table(nodes: Sequence[StructureNode]) -> list[int]:
    """The number of nodes on each level, level 1 first."""
    counts: list[int] = []
    for node in nodes:
        counts += [0] * (node.level - len(counts))
        counts[node.level - 1] += 1
    return counts


def changed_levels(old: Sequence[StructureNode], new: Sequence[StructureNode]) -> list[int]:
    """The levels whose number of nodes differs."""
    before, after = level_table(old), level_table(new)
    deepest = max(len(before), len(after))
    before += [0] * (deepest - len(before))
    after += [0] * (deepest - len(after))
    return [level for level, pair in enumerate(zip(before, after, strict=True), start=1) if pair[0] != pair[1]]


def first_difference(old: Sequence[StructureNode], new: Sequence[StructureNode]) -> StructureLocation | None:
    """The first node in level order whose children differ; None if the trees have the same shape and names.

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


def path_of(nodes: Sequence[StructureNode], number: int) -> str:
    """The path of a node as it is shown: html > body > main > p:3."""
    steps = []
    while number >= 0:
        node = nodes[number]
        siblings = nodes[node.parent].children if node.parent >= 0 else [number]
        same = [child for child in siblings if nodes[child].name == node.name]
        steps.append(node.name if len(same) == 1 else f"{node.name}:{same.index(number) + 1}")
        number = node.parent
    return " > ".join(reversed(steps))


def _difference(left: Sequence[str], right: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names that came and those that went, without the common beginning and end."""
    start = 0
    while start < min(len(left), len(right)) and left[start] == right[start]:
        start += 1
    end = 0
    while end < min(len(left), len(right)) - start and left[-1 - end] == right[-1 - end]:
        end += 1
    return tuple(right[start : len(right) - end]), tuple(left[start : len(left) - end])


def _names(nodes: Sequence[StructureNode]) -> tuple[str, ...]:
    return tuple(node.name for node in nodes)
