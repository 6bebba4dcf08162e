"""The outline of an HTML document: its blocks and texts in document order, and which of them are not for reading.

    Outline(html)  →  items and nodes  →  `selection`: the items for reading  →  `plain_text`, `markdown`

It is read off the tags as they are written, without a tree: a block ends with its end tag, with that of a block around
it, or where the next of its kind begins. This is the specification of the kernel's native/src/outline.rs, which finds
the same. What is left out:

- what is never for reading: scripts, styles, drawings, templates, `noscript`, lists of choices, buttons;
- navigation, banners, footers and the like: by element, by role, by the words of class and id, or because nearly all of
  it is links. What a word speaks against stays where the page's heading or much of its text is in it;
- what is outside of the main element, or of the only article, where there is one.

Pure and linear; never raises. Called by `readable`.
"""

import re
from bisect import bisect_left
from operator import attrgetter

import msgspec

from lycosa.web.markup import (
    RAW_TEXT,
    OddMarkup,
    ascii_lower,
    attributes_of,
    resolve,
    split_markup,
    split_odd_markup,
    split_tag,
)

HEADINGS = frozenset(("h1", "h2", "h3", "h4", "h5", "h6"))
CELLS = frozenset(("td", "th"))
VERBATIM = frozenset(("pre", "listing"))
_VOID = frozenset(("br", "hr"))
_HIDDEN = frozenset(("noscript", "template", "svg", "select", "button"))
_BUTTON_HOLDERS = HEADINGS | {"dt", "summary"}  # a button in one of these opens what it names
_BLOCKS = _VOID | _HIDDEN | HEADINGS
_BLOCKS |= frozenset(
    "address article aside blockquote body caption center dd details dialog dir div dl dt fieldset figcaption figure "
    "footer form header hgroup li listing main menu nav ol p pre search section summary table tbody td tfoot th thead "
    "tr ul".split()
)
_IGNORED = frozenset("area base col embed html head img input link meta param source track wbr".split())
_PARTS, _SECTIONS = frozenset(("table",)), frozenset(("thead", "tbody", "tfoot"))
_TABLE = _PARTS | _SECTIONS | CELLS | {"tr", "caption"}
# What the start of an element ends: the last of these, unless one of those is nearer.
_Ends = tuple[frozenset[str], frozenset[str]]
_ENDS: dict[str, _Ends] = {
    "li": (frozenset(("li",)), frozenset(("ul", "ol", "menu", "dir"))),
    "dt": (frozenset(("dt", "dd")), frozenset(("dl",))),
    "td": (CELLS, _PARTS | {"tr"}),
    "tr": (frozenset(("tr",)), _PARTS),
    "tbody": (_SECTIONS, _PARTS),
}
_ENDS |= {"dd": _ENDS["dt"], "th": _ENDS["td"], "tfoot": _ENDS["tbody"]}
_MOST_UP = 100  # open elements among which one to be ended is searched for

_INLINE_NAMES = frozenset(
    "a abbr b big cite code del em font i ins kbd label q s samp small span strike strong sub sup time tt u".split()
)
# The inline tags that Markdown writes.
_WRITTEN = frozenset("a b strong i em code kbd samp tt del s strike".split())
_WRITTEN |= frozenset(f"/{name}" for name in _WRITTEN)
# Kinds of tags. A plain start does nothing but begin a block.
_PLAIN_START, _START, _END, _INLINE, _LINK, _CODE_START, _INLINE_END, _LINK_END, _CODE_END, _LOW = range(10)
_BREAK_TAG, _RAW, _HEAD, _NOTHING = range(10, 14)
_KINDS = {
    **dict.fromkeys(_IGNORED, _NOTHING),
    **dict.fromkeys(RAW_TEXT, _RAW),
    **dict.fromkeys((f"/{name}" for name in _IGNORED | RAW_TEXT), _NOTHING),
    **dict.fromkeys(_BLOCKS, _START),
    **dict.fromkeys((f"/{name}" for name in _BLOCKS), _END),
    **dict.fromkeys(("sub", "sup"), _LOW),
    **dict.fromkeys(("br", "/br", "hr"), _BREAK_TAG),
    **dict.fromkeys(("base", "link"), _HEAD),
    "": _NOTHING,
    "a": _LINK,
    "/a": _LINK_END,
    "code": _CODE_START,
    "/code": _CODE_END,
}

# Why a node is left out: never for reading, by a rule, by a word of its class or id.
HIDDEN, RULE, WORD = 1, 2, 3
_NO_LINK, _NAVIGATES, _IN_CODE = range(3)  # links within code are references, part of what is said
_IS_MAIN = 4  # the role of the main element
_LEFT_OUT = frozenset(("nav", "footer", "aside", "dialog"))
_NAMED = frozenset("center dir div dl fieldset figure form header menu ol section table ul".split())
_ROLES = frozenset(
    "alert alertdialog banner complementary contentinfo dialog form menu menubar navigation search toolbar "
    "tooltip".split()
)
_WORDS = frozenset(
    "addthis adsense advert advertisement banner breadcrumb breadcrumbs comments consent cookie cookies copyright "
    "disqus footer gdpr login masthead menu menus modal nav navbar navfooter navheader navi navigation newsletter "
    "outbrain overlay pagenav pager pagination popup promo promotion recommendations recommended related "
    "relatedposts respond share sharing sidebar sidenav signup sitemap skip social sponsor sponsored subscribe "
    "subscription taboola tags toc toolbar tooltip topbar widgets".split()
)
_WORD = re.compile("[A-Z]?[a-z]+|[A-Z]+")
# Blocks of which something is noted when they begin or end; those whose characters count; those that make a table.
_JUDGED = _HIDDEN | _LEFT_OUT | HEADINGS | VERBATIM | {"table", "main", "article"}
_COUNTED = _NAMED | CELLS | {"p", "article"}
_TABLE_MAKERS = CELLS | HEADINGS | {"tr"}
_MOST_ID_WORDS = 3  # a longer id is a heading, in short
_UNSEEN = re.compile(r"(?:^|[; ])(?:display: ?none|visibility: ?hidden)")
_LINKED = frozenset("div dl ol p section table td ul".split())  # may be nothing but links
_LINKED_CHARS = 400  # a longer one is for reading
_LITTLE_CHARS = 200  # a page of which no more is left may be all navigation, and is read as a whole
_FORM_CHARS = 200  # a form around more has text of the page
_CELL_CHARS = 1_000  # a cell with more is a part of the page, its table is there for the layout, unless a row heads it
_NO_GAP, _TOUCHES, _GAP = range(3)  # between texts: nothing; the end of an inline element, and a start behind it
PERMALINKS = frozenset(("¶", "#", "§"))  # as the words of a link: to the heading that it stands in


class Node(msgspec.Struct, eq=False, gc=False):  # it refers to nothing that could refer to it
    """A block: its place in the items, how many characters are in it and in its links, and whether it is left out.
    While it is open, `chars`, `linked` and `links` are what was counted before it; of a block for which they do not
    matter they stay so."""

    tag: str
    attributes: str
    start: int
    chars: int
    linked: int
    links: int
    end: int = 0
    left_out: int = 0
    rows: int = 0  # of a table; of a row, its cells of headings and all of them
    columns: int = 0
    is_layout: bool = False
    is_data: bool = False
    has_code: bool = False
    has_head: bool = False

    def __repr__(self) -> str:
        return f"<Node {self.tag} {self.start}:{self.end} left_out={self.left_out}>"


# A text, the start of a block, the end of the last one, a line break, or an inline tag with its attributes.
Item = str | Node | None | int | tuple[str, str]
BREAK, RULER = 1, 2
_BORDERS = (Node, type(None))  # of blocks


class Outline:
    """The items of a document; inline tags only if they are asked for. `unshown` is an attribute whose elements are
    left out, `is_xml`: an element can end itself."""

    def __init__(self, html: str, *, inline: bool = False, unshown: str = "", is_xml: bool = False) -> None:
        self._unshown, self._is_xml = unshown, is_xml
        try:
            self._begin()
            self._read(*split_markup(html), inline, may_be_odd=True)
        except OddMarkup:
            self._begin()
            self._read(*split_odd_markup(html), inline, may_be_odd=False)
        self._close_to(1)
        self.root.end, self.root.chars, self.root.linked = len(self.items), self._chars, self._linked

    def _begin(self) -> None:
        self.title = self.base_href = self.canonical = ""  # the latter two as they are written
        self.items: list[Item] = []
        self._chars = self._linked = self._links = 0  # up to here: of text, of text in links, and how many links
        self._headings: list[int] = []  # where they begin
        self._h1s: list[int] = []  # in order
        self.root = Node("", "", 0, 0, 0, 0)
        self.mains: list[Node] = []
        self.articles: list[Node] = []
        self._open = [self.root]
        self._tables: list[Node] = []
        self._drawings = self._verbatim = self._pres = 0  # open ones: svg; pre and code; pre and listing
        self._left_out: list[Node] = []  # those that end first come first
        self._words: list[Node] = []  # those of them that are left out for a word
        self._lists: list[Node] = []  # long, and nearly all links

    def _read(self, texts: list[str], tags: list[str], inline: bool, *, may_be_odd: bool) -> None:
        opened, items, unshown = self._open, self.items, self._unshown
        add = items.append
        link, last = _NO_LINK, ""  # the last text
        gap = _NO_GAP
        tokens = iter(zip(texts, [*map(_TAGS.__getitem__, tags), _LAST_TAG], strict=True))
        for piece, (kind, name, attributes, said, ends, item) in tokens:
            if not piece:
                pass
            elif piece.isspace() and piece.isascii():
                last, gap = " ", _NO_GAP
                # Between two blocks it is nothing, unless they stand in code.
                if (
                    self._pres
                    or not (kind <= _START or (kind == _END and opened[-1].tag == name))
                    or (items and type(items[-1]) not in _BORDERS)
                ):
                    add(piece)
            else:
                text = resolve(piece) if "&" in piece else piece
                if gap == _GAP and is_letter(text[0]) and is_letter(last[-1:]):
                    add(" ")  # the words of two elements are two words
                gap = _NO_GAP
                words = text.strip()
                if not (link and words in PERMALINKS):
                    if words:
                        self._chars += len(words)
                        if link == _NAVIGATES:
                            self._linked += len(words)
                    last = text
                    add(text)
            if _INLINE <= kind <= _LOW:
                if unshown and self._hides_inline(name, attributes):
                    continue
                if kind <= _CODE_START:
                    if kind == _LINK:
                        link = _IN_CODE if self._verbatim else _NAVIGATES
                        self._links += link == _NAVIGATES
                    elif kind == _CODE_START:
                        self._verbatim += 1
                    if gap == _TOUCHES:
                        gap = _NO_GAP if self._verbatim else _GAP
                elif kind != _LOW:
                    if kind == _LINK_END:
                        link = _NO_LINK
                    elif kind == _CODE_END and self._verbatim:
                        self._verbatim -= 1
                    gap = gap or _TOUCHES
                if inline and item:
                    add(item)
            elif kind == _PLAIN_START and not unshown:
                if opened[-1].tag == "p":
                    self._close()
                if ends and opened[-1].tag not in ends[1]:
                    self._close_last(*ends)
                node = Node(name, attributes, len(items), self._chars, self._linked, self._links)
                add(node)
                opened.append(node)
            elif kind == _END:
                if opened[-1].tag == name:  # as nearly always
                    self._close()
                else:
                    self._close_last(frozenset((name,)), frozenset() if name in _TABLE else CELLS)
            elif kind <= _START:
                self._start(name, attributes, said, ends)
            elif kind == _BREAK_TAG:
                add(RULER if name == "hr" else BREAK)
            elif kind == _RAW:
                content, end = next(tokens)
                if may_be_odd and end[1] != f"/{name}" and end is not _LAST_TAG:
                    raise OddMarkup
                if name == "title" and content and not self.title and not self._drawings:
                    self.title = " ".join(resolve(content).split())
            elif kind == _HEAD:
                self._note_head(name, attributes)

    def _note_head(self, name: str, attributes: str) -> None:
        """Notes the base and the canonical URL, the first of each."""
        if name == "base" and not self.base_href:
            self.base_href = attributes_of(attributes).get("href", "")
        elif name == "link" and not self.canonical and ("canonical" in attributes.lower() or "&" in attributes):
            named = attributes_of(attributes)
            if "canonical" in named.get("rel", "").lower().split():
                self.canonical = named.get("href", "").strip()

    def _start(self, tag: str, attributes: str, said: int, ends: _Ends | None) -> None:
        opened, items = self._open, self.items
        if opened[-1].tag == "p" and tag not in _HIDDEN:
            self._close()
        if ends:
            self._close_last(*ends)
        node = Node(tag, attributes, len(items), self._chars, self._linked, self._links)
        if tag in _JUDGED or self._unshown:
            self._judge_start(node, opened[-1].tag, said)
        elif said:
            self._note_name(node, said)
        items.append(node)
        opened.append(node)
        if attributes and attributes[-1] == "/" and (self._is_xml or tag == "svg"):
            self._close()

    def _hides_inline(self, name: str, attributes: str) -> bool:
        """Whether an inline tag begins or ends an element that is not to be shown, or one of that name in it."""
        tag = name.removeprefix("/")
        is_open = tag in _INLINE_NAMES and any(node.tag == tag for node in self._open[-_MOST_UP:])
        if is_open and tag != name:
            self._close_last(frozenset((tag,)), frozenset())
        elif is_open or (name in _INLINE_NAMES and self._unshown in attributes_of(attributes)):
            node = Node(tag, "", len(self.items), self._chars, self._linked, self._links)
            node.left_out = HIDDEN
            self.items.append(node)
            self._open.append(node)
            return True
        return is_open

    def _judge_start(self, node: Node, parent: str, said: int) -> None:
        tag, attributes = node.tag, node.attributes
        if tag == "table":
            if self._tables:
                self._tables[-1].is_layout = True
            self._tables.append(node)
        elif tag == "pre":
            self._pres += 1
            self._verbatim += 1
            if self._tables:
                self._tables[-1].has_code = True
        elif tag == "listing":
            self._pres += 1
        elif tag in HEADINGS:
            self._headings.append(node.start)
            if tag == "h1":
                self._h1s.append(node.start)
        elif tag == "svg":
            self._drawings += 1
        elif tag == "main":
            self.mains.append(node)
        elif tag == "article":
            self.articles.append(node)
        is_unshown = bool(self._unshown and attributes) and self._unshown in attributes_of(attributes)
        if is_unshown or (tag in _HIDDEN and not (tag == "button" and parent in _BUTTON_HOLDERS)):
            node.left_out = HIDDEN
        elif tag in _LEFT_OUT:
            self._leave_out(node, RULE)
        elif said:
            self._note_name(node, said)

    def _note_name(self, node: Node, said: int) -> None:
        """Notes what the attributes of a block say of it."""
        if said == _IS_MAIN:
            self.mains.append(node)
        else:
            self._leave_out(node, said)
            if said == WORD:
                self._words.append(node)

    def _leave_out(self, node: Node, why: int) -> None:
        node.left_out = why
        self._left_out.append(node)

    def _close_last(self, tags: frozenset[str], bounds: frozenset[str]) -> None:
        """Ends the last open block with one of these tags, and what is in it, unless one of the bounds is nearer."""
        opened = self._open
        for place in range(len(opened) - 1, max(0, len(opened) - 1 - _MOST_UP), -1):
            tag = opened[place].tag
            if tag in tags:
                self._close_to(place)
                return
            if tag in bounds:
                return

    def _close_to(self, place: int) -> None:
        while len(self._open) > place:
            self._close()

    def _close(self) -> None:
        """Ends the last open block."""
        items, node = self.items, self._open.pop()
        tag = node.tag
        if tag in _JUDGED or self._unshown:
            self._note_end(node)
            if node.left_out == HIDDEN:
                self._forget(node)
                return
        node.end = len(items)
        items.append(None)
        if tag in _COUNTED:
            node.chars = self._chars - node.chars
            node.linked = self._linked - node.linked
            node.links = self._links - node.links
            if (node.links or tag not in _LINKED) and not node.left_out and self._is_left_out(node):
                self._leave_out(node, RULE)
                return
        if self._tables and tag in _TABLE_MAKERS:
            self._judge_cell(node, self._tables[-1])

    def _note_end(self, node: Node) -> None:
        tag = node.tag
        if tag == "pre":
            self._pres -= 1
            self._verbatim = max(0, self._verbatim - 1)  # an end of code in it may have been counted
        elif tag == "listing":
            self._pres -= 1
        elif tag == "svg":
            self._drawings -= 1
        elif tag == "table":
            self._tables.pop()
            has_few = node.rows < 2 or node.columns < 2
            node.is_layout |= has_few or (node.has_code and not node.has_head)

    def _forget(self, node: Node) -> None:
        """Takes out what came since the start of a block."""
        start = node.start
        del self.items[start:]
        self._chars, self._linked, self._links = node.chars, node.linked, node.links
        for starts in (self._headings, self._h1s):
            while starts and starts[-1] >= start:
                starts.pop()
        for nodes in (self.mains, self.articles, self._left_out, self._lists):
            while nodes and nodes[-1].start >= start:
                nodes.pop()

    def _judge_cell(self, node: Node, table: Node) -> None:
        """What a block in a table says of the table."""
        tag = node.tag
        if tag in CELLS:
            table.has_head |= tag == "th"
            table.is_layout |= node.chars > _CELL_CHARS and not table.is_data
            self._open[-1].columns += 1
            self._open[-1].rows += tag == "th"
        elif tag == "tr":
            table.rows += 1
            table.columns = max(table.columns, node.columns)
            table.is_data |= node.rows == node.columns > 1
        else:
            table.is_layout = True

    def _is_left_out(self, node: Node) -> bool:
        """Whether a block that has ended is nothing for reading, by what is in it."""
        if self._headings and self._headings[-1] >= node.start:
            return False
        tag = node.tag
        if tag in _LINKED:
            if node.chars < _LINKED_CHARS:
                return node.links > 1 and node.linked * 10 > node.chars * 6
            if node.linked * 10 > node.chars * 9 and tag in ("div", "section", "ul"):
                self._lists.append(node)
            return False
        if tag == "header":
            return not any(each.tag in ("article", "main") for each in self._open[-_MOST_UP:])
        return tag == "form" and node.chars < _FORM_CHARS

    def selection(self) -> list[list[Item]]:
        """The items for reading, in runs."""
        root = self.root
        text_chars = root.chars - root.linked
        for node in self._words:  # what a word speaks against holds the page, sometimes
            first = bisect_left(self._h1s, node.start)
            has_h1 = first < len(self._h1s) and self._h1s[first] < node.end
            if has_h1 or (node.chars - node.linked) * 10 > text_chars * 4:
                node.left_out = 0
        if len(self.mains) == 1 and (runs := self._runs(self.mains[0])) and _has_text(runs, 0):
            return runs
        if len(self.articles) == 1 and not self.mains and self.articles[0].chars * 5 > root.chars:
            runs = self._runs(self.articles[0])
            if _has_text(runs, _LITTLE_CHARS):
                return runs
        for node in self._lists:
            if node.chars * 4 < text_chars:  # the page is about something else
                self._leave_out(node, RULE)
        runs = self._runs(root)
        return runs if _has_text(runs, _LITTLE_CHARS) else [self.items]

    def _runs(self, root: Node) -> list[list[Item]]:
        runs, start = list[list[Item]](), root.start
        for node in sorted(self._left_out, key=attrgetter("start")):
            if node.left_out and start <= node.start < root.end and node is not root:
                runs.append(self.items[start : node.start])
                start = node.end + 1
        runs.append(self.items[start : root.end])
        return runs


def is_letter(character: str) -> bool:
    """Whether a character is part of a word, or may be."""
    return character >= "\x80" or (character.isascii() and character.isalnum())


def _has_text(runs: list[list[Item]], chars: int) -> bool:
    """Whether there are more characters of text than these."""
    for run in runs:
        for item in run:
            if type(item) is str:
                chars -= len(item.strip())
                if chars < 0:
                    return True
    return False


def _left_out_by_name(tag: str, attributes: str) -> int:
    """Whether the role, the class, the id or the style of a block says that it is not for reading, or that it is the
    main element. The id of a section is its heading, in short."""
    named = attributes_of(attributes)
    role = named.get("role", "").lower()
    if role in _ROLES:
        return RULE
    if "hidden" in named or _UNSEEN.search(named.get("style", "").lower()):
        return WORD
    words = _WORD.findall(named.get("class", ""))
    if tag != "section" and "section" not in words and len(ids := _WORD.findall(named.get("id", ""))) <= _MOST_ID_WORDS:
        words += ids
    if any(word.lower() in _WORDS for word in words):
        return WORD
    return _IS_MAIN if role == "main" else 0


# What a tag says wherever it stands: its kind, the name of the element, its attributes; of a block what these say, and
# what its start ends; of an inline tag that Markdown writes its item.
_Tag = tuple[int, str, str, int, _Ends | None, tuple[str, str] | None]
_LAST_TAG: _Tag = (_NOTHING, "", "", 0, None, None)
_MOST_TAGS, _SHORT_TAG_CHARS = 16_384, 200


class _Tags(dict[str, _Tag]):
    """What tags say, by how they are written: a site has most of its tags again and again."""

    def __missing__(self, written: str) -> _Tag:
        name, attributes = split_tag(written)
        kind = _KINDS.get(name)
        if kind is None:
            name = ascii_lower(name)
            kind = _KINDS.get(name, _INLINE_END if name[0] == "/" else _INLINE)
        if kind == _START:
            said = _left_out_by_name(name, attributes) if attributes and name in _NAMED else 0
            if not (said or name in _JUDGED or attributes.endswith("/")):
                kind = _PLAIN_START
            tag: _Tag = (kind, name, attributes, said, _ENDS.get(name), None)
        elif kind == _END:
            tag = (kind, name[1:], attributes, 0, None, None)
        else:
            tag = (kind, name, attributes, 0, None, (name, attributes) if name in _WRITTEN else None)
        if len(written) <= _SHORT_TAG_CHARS:
            if len(self) >= _MOST_TAGS:
                self.clear()
            self[written] = tag
        return tag


_TAGS = _Tags()
