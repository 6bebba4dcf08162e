"""The text of a page out of its outline: a line for each block and for each row of a table, code as it is written.

The twin of the kernel's. Pure. Called by `web.readable`; `web.markdown` writes the lines of code as it does.
"""

from collections.abc import Iterator
from itertools import chain

from lycosa.web.links import shorten_anchor
from lycosa.web.outline import CELLS, HEADINGS, VERBATIM, Item, Node

_TELLING = HEADINGS | VERBATIM | {"table"}  # what is in these is another kind of text
_BREAK, _CELL_END, _CODE = "\3", "\5", "\2"  # of lines, of cells, before a block of code


def text_of(runs: list[list[Item]]) -> tuple[str, list[str]]:
    """The text of the items for reading, a line for each block and for each row of a table, and the headings."""
    out, headings, codes = list[str](), list[str](), list[str]()
    add = out.append
    in_table = 0  # how many blocks are open in a table that is one, with it
    items = chain.from_iterable(runs)
    for item in items:
        if type(item) is str:
            add(item)
        elif item is None:
            add(_BREAK)
            if in_table:
                in_table -= 1
        elif type(item) is Node:
            tag = item.tag
            if in_table and tag in CELLS:
                out += [*_pieces(items), _CELL_END]
                continue
            add(_BREAK)
            if tag in HEADINGS:
                words = "".join(_pieces(items))
                headings.append(shorten_anchor(words))
                out += [words, _BREAK]
            elif tag in VERBATIM:
                codes.append("\n".join(code_lines("".join(_pieces_of_code(items)))))
                out += [_CODE, _BREAK]
            elif in_table:
                in_table += 1
            elif tag == "table":
                in_table = not item.is_layout
        elif type(item) is int:
            add(_BREAK)
    text = "".join(out)
    lines = [" ".join(line.split()) for line in text.split(_BREAK) if line]
    if _CELL_END in text:
        lines = [_cells(line) if _CELL_END in line else line for line in lines]
    if codes:
        following = iter(codes)
        lines = [next(following) if line == _CODE else line for line in lines]
    return "\n".join(filter(None, lines)), [words for words in headings if words]


def _pieces(items: Iterator[Item]) -> Iterator[str]:
    """The texts of a heading or a cell, up to its end: blocks in it are none."""
    depth = 1
    for item in items:
        if type(item) is str:
            yield item
        elif type(item) is not tuple:
            depth += -1 if item is None else type(item) is Node
            if not depth:
                return
            yield " "


def _pieces_of_code(items: Iterator[Item]) -> Iterator[str]:
    """Code, up to its end: blocks in it begin on lines of their own."""
    depth, last = 1, ""
    for item in items:
        if type(item) is str:
            yield (last := item)
        elif type(item) is not tuple:
            depth += -1 if item is None else type(item) is Node
            if not depth:
                return
            if type(item) is int or (last and not last.endswith("\n")):
                yield (last := "\n")


def _cells(line: str) -> str:
    return "\t".join(map(str.strip, line.split(_CELL_END))).rstrip("\t")


def code_lines(code: str) -> list[str]:
    """The lines of code, without white space behind them and without empty ones around."""
    lines = [line.rstrip(" \t") for line in code.split("\n")]
    first = next((place for place, line in enumerate(lines) if line), len(lines))
    last = next((place for place in range(len(lines), first, -1) if lines[place - 1]), first)
    return lines[first:last]
