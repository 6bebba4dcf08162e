"""Structure by method I (two strings) and method II (level table, level-order walk)."""

import pytest

from lycosa.recrawl.change.structure import (
    StructureNode,
    changed_levels,
    element_tree,
    first_difference,
    level_table,
    structure_differs,
)
from lycosa.web.html import structure_of_names

# Y8: the nodes of each level before and after, as the paper's table has them.
BEFORE = [1, 1, 2, 2, 1, 2, 1, 4, 1]
AFTER = [1, 1, 2, 2, 1, 2, 2, 5, 3]


def tree_with(levels: list[int]) -> list[StructureNode]:
    """A tree with so many nodes on each level, all of them children of the level's last node above."""
    nodes: list[StructureNode] = []
    above = -1
    for level, count in enumerate(levels, start=1):
        for _ in range(count):
            nodes.append(StructureNode("n", level, above))
            if above >= 0:
                nodes[above].children.append(len(nodes) - 1)
        above = len(nodes) - 1
    return nodes


def test_level_table_of_the_papers_tree_shows_levels_seven_to_nine() -> None:
    old, new = tree_with(BEFORE), tree_with(AFTER)
    assert level_table(old) == BEFORE
    assert level_table(new) == AFTER
    assert changed_levels(old, new) == [7, 8, 9]


def test_level_order_walk_of_the_papers_tree_finds_the_first_level_that_grew() -> None:
    found = first_difference(tree_with(BEFORE), tree_with(AFTER))
    assert found is not None
    assert (found.level, found.added, found.removed) == (7, ("n",), ())


def test_strings_of_the_papers_page_differ_in_the_first_or_the_second() -> None:
    page = structure_of_names(["html", "head", "title", "body", "h1", "p", "p"])
    assert page == ("hhtbhpp", "ldey1pp")
    assert structure_differs(page, page) is None
    assert structure_differs(page, structure_of_names(["html", "head", "title", "body", "h1", "p"])) == 1
    assert structure_differs(page, structure_of_names(["html", "head", "title", "body", "h2", "p", "p"])) == 2


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        ("<main><p>a<p>b</main>", "<main><p>a<p>b<ul><li>c</ul></main>", "html > body > main: +ul"),
        ("<div><p>a</div><div><p>b</div>", "<div><p>a</div><div></div>", "html > body > div:2: −p"),
        ("<p>a<b>c</b>", "<p>a<i>c</i>", "html > body > p: +i −b"),
    ],
)
def test_walk_of_two_documents_says_where_they_part(old: str, new: str, where: str) -> None:
    assert str(first_difference(element_tree(old.encode()), element_tree(new.encode()))) == where


def test_walk_of_one_structure_finds_nothing_where_only_text_changed() -> None:
    old, new = (element_tree(body) for body in (b"<p>one</p><p>two</p>", b"<p>one</p><p>three</p>"))
    assert first_difference(old, new) is None
    assert changed_levels(old, new) == []


def test_tree_of_anything_never_raises() -> None:
    for body in (b"", b"\0\xff", b"<div>" * 20_000, b"plain"):
        assert first_difference(element_tree(body), element_tree(body)) is None
