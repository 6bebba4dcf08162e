"""Markdown of an outline: headings, paragraphs, lists, tables, code, quotes, links, emphasis.

CommonMark with the tables of GitHub. Blocks have an empty line between them, items of a list have none. A table that is
there for the layout only is written as its blocks; one without a row of headings gets an empty one. The target of a
link stands between two `TARGET` characters, for the caller to put its URL there. What is written once for each line,
or once for each part of a link, is bounded, so that the Markdown is no longer than some times the document. The
kernel's writer, in native/src/markdown.rs, is the same. Pure and linear. Called by `readable`.
"""

import re
from collections.abc import Iterable
from functools import lru_cache

from lycosa.web.markup import attributes_of
from lycosa.web.outline import CELLS, HEADINGS, RULER, VERBATIM, Item, Node
from lycosa.web.plain_text import code_lines

TARGET = "\1"
_CODE = "\2"  # begins and ends code in a line, until it is known how many backticks that takes
_LINK = "["
_MARKS = {
    **dict.fromkeys(("b", "strong"), "**"),
    **dict.fromkeys(("i", "em"), "*"),
    **dict.fromkeys(("del", "s", "strike"), "~~"),
    **dict.fromkeys(("code", "kbd", "samp", "tt"), _CODE),
}
_ENDED_MARKS = {f"/{name}": mark for name, mark in _MARKS.items()}
_SPECIAL = re.compile(r"[\\`*\[\]<&_]")
_LETTER = r"[a-zA-Z0-9\x80-\U0010ffff]"
_ESCAPED = re.compile(
    rf"[\\`*]|(?<!{_LETTER})_|_(?!{_LETTER})|\](?=[(:\[])|<(?=[a-zA-Z/!?])|&(?=#?[a-zA-Z0-9]{{1,32}};)"
)
_ESCAPED_IN_LINK = re.compile(rf"[\[\]]|{_ESCAPED.pattern}")
# What would make a line another block: escaped before its last character. The look at the first one is for speed.
_LINE_START = re.compile(
    r"(?=[#+=>~0-9-])(?:()(?:#{1,6}|[-+=])(?= |$)|()(?:>|---|===|~~~)|([0-9]{1,9})(?=[.)](?: |$)))"
)
_CODE_SPAN = re.compile(f"{_CODE}([^{_CODE}]*){_CODE}")
_LANGUAGE = re.compile(r"(?:^| )(?:language-|lang-|highlight-source-|highlight-|brush: ?)([a-zA-Z0-9+#.-]+)")
_NO_LANGUAGES = frozenset(("default", "none", "text", "plain", "plaintext", "notranslate"))
_LANGUAGE_UP = 3  # the code and the blocks around it whose class may name its language
_MOST_CELLS = 100  # in a row, however many columns a cell spans
_MOST_ROWS = 1_000  # that a cell spans
_MOST_PARTS = 20  # of a link that other blocks, line breaks or marks interrupt; the words behind them are no link
# Of what stands before the lines in lists and quotes: so many characters, and some more for each block and each
# character in it. Blocks for which that does not suffice are written as if they stood in none.
_PREFIX_CHARS, _PREFIX_CHARS_OF_BLOCK, _PREFIX_CHARS_OF_CHAR = 65_536, 16, 4
_LISTS = frozenset(("ul", "ol", "menu", "dir"))
# Blocks that are written as something; the others only begin and end lines. `thead` is looked for by the rows in it.
_WRITTEN_BLOCKS = HEADINGS | VERBATIM | CELLS | _LISTS | {"table", "tr", "li", "blockquote"}
_FIRST_HREF = re.compile(r'[\t\n ]*href="([^"&]*)"', re.ASCII | re.IGNORECASE)  # as nearly all links have it
_SHORT_CHARS = 200
_NO_TARGETS = ("#", "javascript:", "data:")


def markdown_of(runs: Iterable[Iterable[Item]]) -> str:
    """The Markdown of the items for reading."""
    writer = _Writer()
    for run in runs:
        for item in run:
            if type(item) is str:
                writer.add_text(item)
            elif type(item) is tuple:
                writer.add_inline(*item)
            elif type(item) is Node:
                writer.open(item)
            elif item is None:
                writer.close()
            else:
                writer.add_break(is_rule=item == RULER)
    return writer.end()


class _Writer:
    """Writes blocks as they come. `_line` is the open block: words, with marks between them."""

    def __init__(self) -> None:
        self._out: list[str] = []
        self._last = ""  # the kind of the last block
        self._nodes: list[Node] = []
        self._prefixes: list[_Prefix] = []
        self._width = 0  # of them all
        self._others: str | None = None  # all of them, as they stand before most lines
        self._items = 0  # how many of them are list items
        self._spare_chars = _PREFIX_CHARS
        self._numbers: list[int] = []  # of each open list: that of its next item, 0 without numbers
        self._line: list[str] = []
        self._has_space = False
        self._counts = dict.fromkeys(_MARKS.values(), 0)  # open elements of each mark
        self._marks: list[str] = []  # that are open, in their order
        self._begun = 0  # so many of them are written; the others are before the next word
        self._target = ""  # of the open link
        self._parts = 0  # of it, up to here
        self._flat = 0  # where an open heading or pre is in the nodes: blocks in it are none
        self._code: list[str] | None = None  # of an open pre
        self._language = ""
        self._languages: dict[str, str] = {}  # by the attributes of the blocks around code
        self._table: _Table | None = None
        self._cell: list[str] | None = None  # the blocks of an open cell

    # blocks

    def open(self, node: Node) -> None:
        tag = node.tag
        self._nodes.append(node)
        if self._flat:
            self._add_boundary()
            return
        if self._line:
            self._end_line()
        self._has_space = False
        if tag in _WRITTEN_BLOCKS:
            if tag in HEADINGS:
                self._flat = len(self._nodes)
            elif tag in VERBATIM:
                self._flat, self._code = len(self._nodes), []
                around = (self._language_by(each.attributes) for each in self._nodes[-_LANGUAGE_UP:][::-1])
                self._language = next(filter(None, around), "")
            elif self._table is not None:
                if tag == "tr":
                    self._table.begin_row()
                elif tag in CELLS:
                    self._cell = []
            elif tag == "table":
                self._table = None if node.is_layout else _Table()
            elif tag in _LISTS:
                self._numbers.append(_number(attributes_of(node.attributes).get("start"), 1) if tag == "ol" else 0)
            elif tag == "li":
                self._begin_prefix(self._item_prefix())
            elif tag == "blockquote":
                self._begin_prefix(_Prefix("> ", "> ", is_item=False))

    def _language_by(self, attributes: str) -> str:
        if attributes not in self._languages:
            self._languages[attributes] = _language(attributes_of(attributes).get("class", ""))
        return self._languages[attributes]

    def _begin_prefix(self, prefix: "_Prefix") -> None:
        self._prefixes.append(prefix)
        self._width += len(prefix.others)
        self._items += prefix.is_item
        self._others = None

    def _end_prefix(self) -> None:
        prefix = self._prefixes.pop()
        self._width -= len(prefix.others)
        self._items -= prefix.is_item
        self._others = None

    def _item_prefix(self) -> "_Prefix":
        number = self._numbers[-1] if self._numbers else 0
        if number:
            self._numbers[-1] += 1
        marker = f"{number}. " if number else "- "
        return _Prefix(marker, " " * len(marker), is_item=True)

    def close(self) -> None:
        node = self._nodes.pop()
        tag = node.tag
        if self._flat > len(self._nodes):
            self._flat = 0
            if self._code is not None:
                self._end_code()
            elif self._line:
                self._end_line(int(tag[1]))
            self._has_space = False
            return
        if self._flat:
            self._add_boundary()
            return
        if self._line:
            self._end_line()
        self._has_space = False
        if tag in _WRITTEN_BLOCKS:
            if self._table is not None:
                self._close_in_table(node, self._table)
            elif tag in _LISTS:
                self._numbers.pop()
                self._last = self._last if self._numbers else "list"
            elif tag == "li" or tag == "blockquote":
                self._end_prefix()

    def _close_in_table(self, node: Node, table: "_Table") -> None:
        if node.tag in CELLS:
            table.add_cell("<br>".join(self._cell or ()).replace("|", "\\|"), node.attributes)
            self._cell = None
        elif node.tag == "tr":
            is_head = node.columns == node.rows or (bool(self._nodes) and self._nodes[-1].tag == "thead")
            table.end_row(is_head=is_head)
        elif node.tag == "table":
            self._table = self._cell = None
            if table.rows:
                self._emit(table.lines(), "table")

    # text and inline elements

    def add_text(self, text: str) -> None:
        if self._code is not None:
            self._code.append(text)
            return
        words = " ".join(text.split())
        if not words:
            self._has_space = True
            return
        if self._line and self._line[-1] != "\n" and (self._has_space or text[0].isspace()):
            self._line.append(" ")
        if self._begun < len(self._marks):
            if _LINK in self._marks[self._begun :]:
                self._begin_part()
            self._line += self._marks[self._begun :]
            self._begun = len(self._marks)
        if _CODE not in self._marks and _SPECIAL.search(words):
            words = (_ESCAPED_IN_LINK if _LINK in self._marks else _ESCAPED).sub(r"\\\g<0>", words)
        self._line.append(words)
        self._has_space = text[-1].isspace()

    def add_inline(self, name: str, attributes: str) -> None:
        if self._code is not None:
            if name == "code" and not self._language:
                self._language = _language(attributes_of(attributes).get("class", ""))
        elif name == "a" or name == "/a":
            if _LINK in self._marks:
                self._finish(_LINK)
            if name == "a" and (target := _target_of(attributes)):
                self._begin_link(target)
        elif name[0] == "/":
            if (mark := _ENDED_MARKS.get(name)) and self._counts[mark]:
                self._counts[mark] -= 1
                if not self._counts[mark]:
                    self._finish(mark)
        elif mark := _MARKS.get(name):
            self._counts[mark] += 1
            if self._counts[mark] == 1:
                self._marks.append(mark)

    def _begin_link(self, target: str) -> None:
        """A link cannot stand in code: code ends before it, and begins again in it and after it."""
        is_code = _CODE in self._marks
        if is_code:
            self._finish(_CODE)
        self._target, self._parts = target, 0
        self._marks.append(_LINK)
        if is_code:
            self._marks.append(_CODE)

    def _begin_part(self) -> None:
        """The open link begins, or goes on, unless it did so too often."""
        self._parts += 1
        if self._parts > _MOST_PARTS:
            self._marks.remove(_LINK)

    def _finish(self, mark: str) -> None:
        """Ends a mark, and those that were opened after it, which then begin again."""
        place = self._marks.index(mark)
        if place < self._begun:
            self._pause(place)
        del self._marks[place]

    def _closing(self, mark: str) -> str:
        return f"]({TARGET}{self._target}{TARGET})" if mark == _LINK else mark

    def _pause(self, first: int = 0) -> None:
        """Ends the marks from the first on; they wait for the next word."""
        for mark in reversed(self._marks[first : self._begun]):
            self._line.append(self._closing(mark))
        self._begun = first

    def add_break(self, *, is_rule: bool) -> None:
        if self._code is not None:
            self._code.append("\n")
        elif is_rule and not self._flat and self._cell is None:
            if self._line:
                self._end_line()
            self._has_space = False
            self._emit(["---"], "rule")
        elif self._flat or not self._line:
            self._has_space = True
        elif self._line[-1] != "\n":
            self._pause()
            self._line.append("\n")

    # what is written

    def _end_line(self, level: int = 0) -> None:
        """Ends the open line, which there is."""
        if self._marks:
            self._pause()
        text = "".join(self._line).rstrip("\n")
        self._line = []
        if _CODE in text:
            text = _with_code(text)
        lines = text.split("\n")
        if level:
            self._emit([f"{'#' * level} {' '.join(lines)}"], "heading")
        else:
            self._emit(
                [_LINE_START.sub(_escape_start, line, 1) if _LINE_START.match(line) else line for line in lines],
                "text",
            )

    def _emit(self, lines: list[str], kind: str) -> None:
        if self._cell is not None:
            self._cell += lines
            return
        if not (self._prefixes and self._affords_prefixes(lines)):
            if self._out:
                self._out.append("\n\n")
            self._out.append(("  \n" if kind == "text" else "\n").join(lines))
            self._last = kind
            return
        if self._others is None:
            self._others = "".join([prefix.others for prefix in self._prefixes])
        first = empty = others = self._others
        is_new_item = False
        if not self._prefixes[-1].is_used:
            first, empty, is_new_item = self._use_prefixes()
        if self._out:
            self._out.append("\n" if is_new_item and self._last == "item" else f"\n{empty.rstrip()}\n")
        self._out.append(first + ("  \n" if kind == "text" else "\n").join(lines).replace("\n", f"\n{others}"))
        self._last = "item" if self._items and kind == "text" else kind

    def _use_prefixes(self) -> tuple[str, str, bool]:
        """Of the first block in some list items or quotes: what stands before its first line and before an empty line
        above it, and whether an item begins."""
        first = empty = ""
        is_new_item = False
        for prefix in self._prefixes:
            if prefix.is_used:
                first += prefix.others
                empty += prefix.others
            else:
                first += prefix.first
                is_new_item |= prefix.is_item
                prefix.is_used = True
        return first, empty, is_new_item

    def _affords_prefixes(self, lines: list[str]) -> bool:
        self._spare_chars += _PREFIX_CHARS_OF_BLOCK + _PREFIX_CHARS_OF_CHAR * len("".join(lines))
        cost = self._width * len(lines)
        if cost > self._spare_chars:
            return False
        self._spare_chars -= cost
        return True

    def _add_boundary(self) -> None:
        """A block begins or ends in a heading or in code."""
        self._has_space = True
        if self._code and not self._code[-1].endswith("\n"):
            self._code.append("\n")

    def _end_code(self) -> None:
        lines = code_lines("".join(self._code or ()))
        self._code = None
        if self._cell is not None:
            whole = filter(None, map(str.strip, lines))
            self._cell += [_with_code(f"{_CODE}{line}{_CODE}") for line in whole]
        elif lines:
            starts = [line.lstrip() for line in lines if "```" in line]
            longest = max((len(start) - len(start.lstrip("`")) for start in starts), default=0)
            fence = "`" * max(3, longest + 1)
            self._emit([f"{fence}{self._language}", *lines, fence], "code")

    def end(self) -> str:
        while self._nodes:
            self.close()
        if self._line:
            self._end_line()
        return "".join(self._out)


class _Prefix:
    """What stands before the first line of a list item or quote, and before the others."""

    __slots__ = ("first", "is_item", "is_used", "others")

    def __init__(self, first: str, others: str, *, is_item: bool) -> None:
        self.first, self.others, self.is_item, self.is_used = first, others, is_item, False


class _Table:
    """The rows of a table as they come; `heads` says whether the first is one of headings."""

    def __init__(self) -> None:
        self.rows: list[list[str]] = []
        self.has_head = False
        self._row: list[str] = []
        self._spans: dict[int, int] = {}  # how many rows a cell above still takes, by column

    def begin_row(self) -> None:
        self._row = []
        self._skip_taken()

    def _skip_taken(self) -> None:
        while self._spans.get(len(self._row)):
            self._spans[len(self._row)] -= 1
            self._row.append("")

    def add_cell(self, text: str, attributes: str) -> None:
        spans = attributes_of(attributes) if "span" in attributes.lower() else {}
        columns = min(_number(spans.get("colspan"), 1), _MOST_CELLS)
        rows = min(_number(spans.get("rowspan"), 1), _MOST_ROWS)
        for _ in range(columns):
            if len(self._row) < _MOST_CELLS:
                self._spans[len(self._row)] = rows - 1
                self._row.append(text)
                text = ""
        self._skip_taken()

    def end_row(self, *, is_head: bool) -> None:
        if any(self._row):
            self.has_head |= is_head and not self.rows
            self.rows.append(self._row)
        self._row = []

    def lines(self) -> list[str]:
        rows = self.rows if self.has_head else [[], *self.rows]
        width = max(map(len, rows))
        head, *others = [f"| {' | '.join(row + [''] * (width - len(row)))} |" for row in rows]
        return [head, f"|{' --- |' * width}", *others]


def _target_of(attributes: str) -> str:
    """Where a link leads, if that is written in Markdown."""
    return _short_target(attributes) if len(attributes) <= _SHORT_CHARS else _target(attributes)


def _target(attributes: str) -> str:
    found = _FIRST_HREF.match(attributes)
    target = (found[1] if found else attributes_of(attributes).get("href", "")).strip()
    return "" if target.lower().startswith(_NO_TARGETS) else target


_short_target = lru_cache(maxsize=8192)(_target)  # a site names most of its targets again and again


def _number(text: str | None, default: int) -> int:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 9 and int(text) else default


def _language(classes: str) -> str:
    found = _LANGUAGE.search(classes)
    return "" if found is None or found[1].lower() in _NO_LANGUAGES else found[1].lower()


def _escape_start(found: re.Match[str]) -> str:
    return f"{found[3]}\\" if found[3] else f"\\{found[0]}"


def _with_code(text: str) -> str:
    """A text with backticks around the code in it, more than one where there are some in the code."""
    return _CODE_SPAN.sub(_code_span, text) if "`" in text else text.replace(_CODE, "`")


def _code_span(found: re.Match[str]) -> str:
    text = found[1]
    if "`" not in text:
        return f"`{text}`"
    fence = "`" * (1 + max(map(len, re.findall("`+", text))))
    return f"{fence} {text} {fence}"
