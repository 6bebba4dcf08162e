"""The text of a page out of its outline: a line for each block and for each row of a table, code as it is written.

The twin of the kernel's. Pure. Called by `web.readable`; `web.markdown` writes the lines of code as it does.
"""

from lycosa.web.links import shorten_anchor
from lycosa.web.outline import CELLS, HEADINGS, VERBATIM, Item, Node

_TELLING = HEADINGS | VERBATIM | {"table"}  # what begins or ends with these is another kind of text
_BREAK, _CELL_END, _CODE = "\3", "\5", "\2"  # of lines, of cells, before a block of code


def text_of(runs: list[list[Item]]) -> tuple[str, list[str]]:
    """The text of the items for reading, a line for each block and for each row of a table, and the headings."""
    out, headings = list[str](), list[str]()
    code = list[str]()  # of an open pre
    add = out.append  # or that of `code`
    nodes: list[Node] = []
    flat = heading = 0  # where a heading, cell or pre began, in `nodes` and in `out`: blocks in it are none
    is_code = has_cells = False  # in a pre; in a table that is one
    for run in runs:
        for item in run:
            if type(item) is str:
                add(item)
                continue
            if type(item) is tuple:
                continue
            is_end = item is None
            depth = len(nodes)
            if type(item) is Node:
                nodes.append(item)
                tag = item.tag
            else:
                tag = nodes.pop().tag if is_end else ""
            if not flat:
                if has_cells and tag in CELLS and not is_end:
                    flat = depth + 1
                    continue
                add(_BREAK)
                if tag not in _TELLING:
                    pass
                elif is_end:
                    has_cells = has_cells and tag != "table"
                elif tag in HEADINGS:
                    flat, heading = depth + 1, len(out)
                elif tag in VERBATIM:
                    flat, is_code, code = depth + 1, True, []
                    add = code.append
                elif type(item) is Node:
                    has_cells = not item.is_layout
            elif is_end and flat == depth:
                flat = 0
                if is_code:
                    is_code, add = False, out.append
                    out += [_CODE, "\n".join(code_lines("".join(code))), _BREAK]
                elif tag in HEADINGS:
                    headings.append(shorten_anchor("".join(out[heading:])))
                    add(_BREAK)
                else:
                    add(_CELL_END)
            elif not is_code:
                add(" ")
            elif not tag or (code and not code[-1].endswith("\n")):
                add("\n")
    lines = [_line(line) for line in "".join(out).split(_BREAK) if line and not line.isspace()]
    return "\n".join(filter(None, lines)), [words for words in headings if words]


def _line(text: str) -> str:
    if text[:1] == _CODE:
        return text[1:]
    line = " ".join(text.split())
    return "\t".join(map(str.strip, line.split(_CELL_END))).rstrip("\t") if _CELL_END in line else line


def code_lines(code: str) -> list[str]:
    """The lines of code, without white space behind them and without empty ones around."""
    lines = [line.rstrip(" \t") for line in code.split("\n")]
    first = next((place for place, line in enumerate(lines) if line), len(lines))
    last = next((place for place in range(len(lines), first, -1) if lines[place - 1]), first)
    return lines[first:last]
