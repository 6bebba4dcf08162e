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
from collections.abc import Iterator
from functools import lru_cache
from html.entities import html5
from typing import Any

import msgspec

_SPACE = r"\t\n "  # other controls are spaces before the tags are looked for
# The rest of a tag: in nearly all tags every value is quoted; the second form is that of the standard.
_PLAIN_REST = rf"[^\"'>=]*+(?:(?<![{_SPACE}/\"])=\"[^\"]*+\"[^\"'>=]*+)*+(?=>)"
_ATTRIBUTE = (
    rf"[{_SPACE}/]*+(%s[^{_SPACE}/>][^{_SPACE}/>=]*+)[{_SPACE}]*+"
    rf"(?:(?!=)|=[{_SPACE}]*+(?:\"(%s[^\"]*+)\"|'(%s[^']*+)'|(?![\"'])(%s[^{_SPACE}>]*+)))"
)
_REST = rf"(?:{_PLAIN_REST}|(?:{_ATTRIBUTE % (('?:',) * 4)})*+[{_SPACE}/]*+(?=>))"
_ATTRIBUTES = re.compile(_ATTRIBUTE % (("",) * 4))
_RAW = "script|style|title|textarea|iframe|noembed|noframes|xmp"  # what is in these is no markup
_TOKENS = re.compile(
    rf"<(?:(?=[sS][cCtT]|[tT][iIeE]|[iI][fF]|[nN][oO]|[xX][mM])(?i:({_RAW}))(?![^{_SPACE}/>]){_REST}>([^<]*+(?:<(?!/(?i:\1)[{_SPACE}/>])[^<]*+)*+)"
    rf"|(/?[a-zA-Z][^{_SPACE}/>]*+)((?=>)|{_REST})>"
    rf"|!--(?:-?>|.*?(?:--!?>|\Z))|[!?][^>]*+>?|/(?:>|[^a-zA-Z>][^>]*+>?)|/?[a-zA-Z].*)",
    re.DOTALL,
)
_SHORT_CHARS = 60
_REFERENCE = re.compile("&(?:#(?:[xX][0-9a-fA-F]+|[0-9]+);?|([a-zA-Z0-9]{1,32};?))")
_CONTROLS = bytes(byte if byte >= 0x20 or byte in b"\t\n" else 0x20 for byte in range(256))
# What numeric references between 0x80 and 0x9F mean; five of them have no other meaning.
_WINDOWS = {code: bytes((code,)).decode("cp1252", "ignore") or chr(code) for code in range(0x80, 0xA0)}

# In XML these may be closed by "/>"; in HTML the rest of the document would be their text.
_SELF_CLOSED = re.compile(rb"<(script|style|title|textarea|iframe|noscript|xmp|noembed|noframes)\b([^<>]*)/>")

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
_IGNORED |= frozenset(_RAW.split("|"))
_PARTS, _SECTIONS = frozenset(("table",)), frozenset(("thead", "tbody", "tfoot"))
_TABLE = _PARTS | _SECTIONS | CELLS | {"tr", "caption"}
# What the start of an element ends: the last of these, unless one of those is nearer.
_ENDS = {
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
_INLINE, _LINK, _CODE_START, _INLINE_END, _LINK_END, _CODE_END, _LOW, _START, _END, _BREAK_TAG, _NOTHING = range(11)
_KINDS = {
    **dict.fromkeys("a b strong i em code kbd samp tt del s strike span u small big font abbr cite q".split(), _INLINE),
    **dict.fromkeys("/b /strong /i /em /code /kbd /samp /tt /del /s /strike /span /u /small".split(), _INLINE_END),
    **dict.fromkeys((*_IGNORED, *(f"/{name}" for name in _IGNORED)), _NOTHING),
    **dict.fromkeys(_BLOCKS, _START),
    **dict.fromkeys((f"/{name}" for name in _BLOCKS), _END),
    **dict.fromkeys(("sub", "sup"), _LOW),
    **dict.fromkeys(("br", "/br", "hr"), _BREAK_TAG),
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
        self.title = self.base_href = self.canonical = ""  # the latter two as they are written
        self.items: list[Item] = []
        self._chars = self._linked = self._links = 0  # up to here: of text, of text in links, and how many links
        self._headings: list[int] = []  # where they begin
        self._h1s: list[int] = []
        self.root = Node("", "", 0, 0, 0, 0)
        self.mains: list[Node] = []
        self.articles: list[Node] = []
        self._open = [self.root]
        self._tables: list[Node] = []
        self._drawings = self._verbatim = self._pres = 0  # open ones: svg; pre and code; pre and listing
        self._unshown, self._is_xml = unshown, is_xml
        self._words: list[Node] = []  # left out for a word
        self._lists: list[Node] = []  # long, and nearly all links
        self._read(html, inline)
        self._close_to(1)
        self.root.end, self.root.chars, self.root.linked = len(self.items), self._chars, self._linked

    def _read(self, html: str, inline: bool) -> None:
        opened, items, known_kind = self._open, self.items, _KINDS.get
        add = items.append
        link, last = _NO_LINK, ""  # the last character of text
        touches = has_gap = False
        tokens: Iterator[Any] = iter([*_TOKENS.split(html), *[None] * 4])
        for piece, raw, content, name, attributes in zip(tokens, tokens, tokens, tokens, tokens, strict=True):
            if not piece:
                pass
            elif piece.isspace() and piece.isascii():
                last, has_gap, touches = " ", False, False
                # Between two blocks it is nothing, unless they stand in code.
                is_between = not items or type(items[-1]) in _BORDERS
                if self._pres or not (is_between and self._has_border(name, known_kind(name))):
                    add(piece)
            else:
                text = resolve(piece) if "&" in piece else piece
                if has_gap and is_letter(text[0]) and is_letter(last):
                    add(" ")  # the words of two elements are two words
                has_gap = touches = False
                words = text.strip()
                if not (link and words in PERMALINKS):
                    if words:
                        self._chars += len(words)
                        if link == _NAVIGATES:
                            self._linked += len(words)
                    last = text[-1]
                    add(text)
            if name is None:
                if content and not self.title and not self._drawings and raw.lower() == "title":
                    self.title = " ".join(resolve(content).split())
                continue
            tag, kind = name, known_kind(name)
            if kind is None:
                tag = name.lower()
                kind = known_kind(tag, _INLINE_END if tag[0] == "/" else _INLINE)
            if kind == _START:
                self._start(tag, attributes)
            elif kind == _END:
                ended = tag[1:]
                if opened[-1].tag == ended:  # as nearly always
                    self._close()
                else:
                    self._close_last(frozenset((ended,)), frozenset() if ended in _TABLE else CELLS)
            elif kind <= _LOW:
                if self._unshown and self._hides_inline(tag, attributes):
                    continue
                if kind <= _CODE_START:
                    if kind == _LINK:
                        link = _IN_CODE if self._verbatim else _NAVIGATES
                        self._links += link == _NAVIGATES
                    elif kind == _CODE_START:
                        self._verbatim += 1
                    has_gap |= touches and not self._verbatim
                    touches = False
                elif kind != _LOW:
                    if kind == _LINK_END:
                        link = _NO_LINK
                    elif kind == _CODE_END and self._verbatim:
                        self._verbatim -= 1
                    touches = True
                if inline and tag in _WRITTEN:
                    add((tag, attributes))
            elif kind == _BREAK_TAG:
                add(RULER if tag == "hr" else BREAK)
            else:
                self._note_head(tag, attributes)

    def _has_border(self, tag: str | None, kind: int | None) -> bool:
        """Does a tag surely begin or end a block?"""
        return tag is not None and (kind == _START or (kind == _END and self._open[-1].tag == tag[1:]))

    def _note_head(self, name: str, attributes: str) -> None:
        """Notes the base and the canonical URL, the first of each."""
        if name == "base" and not self.base_href:
            self.base_href = attributes_of(attributes).get("href", "")
        elif name == "link" and not self.canonical:
            named = attributes_of(attributes)
            if "canonical" in named.get("rel", "").lower().split():
                self.canonical = named.get("href", "").strip()

    def _start(self, tag: str, attributes: str) -> None:
        opened, items = self._open, self.items
        if opened[-1].tag == "p" and tag not in _HIDDEN:
            self._close()
        if tag in _ENDS:
            self._close_last(*_ENDS[tag])
        node = Node(tag, attributes, len(items), self._chars, self._linked, self._links)
        if tag in _JUDGED or self._unshown:
            self._judge_start(node, opened[-1].tag)
        elif attributes and tag in _NAMED and (found := _left_out_by_name(tag, attributes)):
            self._note_name(node, found)
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

    def _judge_start(self, node: Node, parent: str) -> None:
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
            node.left_out = RULE
        elif attributes and tag in _NAMED and (found := _left_out_by_name(tag, attributes)):
            self._note_name(node, found)

    def _note_name(self, node: Node, found: int) -> None:
        """Notes what the attributes of a block say of it."""
        if found == _IS_MAIN:
            self.mains.append(node)
        else:
            node.left_out = found
            if found == WORD:
                self._words.append(node)

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
        if tag in _JUDGED:
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
            if not node.left_out and (node.links or tag not in _LINKED) and self._is_left_out(node):
                node.left_out = RULE
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
        self.mains = [each for each in self.mains if each.start < start]
        self.articles = [each for each in self.articles if each.start < start]

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
            has_h1 = any(node.start <= start < node.end for start in self._h1s)
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
                node.left_out = RULE
        runs = self._runs(root)
        return runs if _has_text(runs, _LITTLE_CHARS) else [self.items]

    def _runs(self, root: Node) -> list[list[Item]]:
        runs, start = list[list[Item]](), root.start
        for item in self.items[root.start : root.end]:
            if type(item) is Node and item.left_out and item.start >= start and item is not root:
                runs.append(self.items[start : item.start])
                start = item.end + 1
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


@lru_cache(maxsize=8192)
def _left_out_by_name(tag: str, attributes: str) -> int:
    """Whether the role, the class, the id or the style of a block says that it is not for reading, or that it is the
    main element. The id of a section is its heading, in short."""
    named = attributes_of(attributes)
    role = named.get("role", "").lower()
    if role in _ROLES:
        return RULE
    if "hidden" in named or _UNSEEN.search(named.get("style", "").lower()):
        return WORD
    words, ids = _WORD.findall(named.get("class", "")), _WORD.findall(named.get("id", ""))
    if tag != "section" and len(ids) <= _MOST_ID_WORDS and "section" not in words:
        words += ids
    if any(word.lower() in _WORDS for word in words):
        return WORD
    return _IS_MAIN if role == "main" else 0


def attributes_of(attributes: str) -> dict[str, str]:
    """The attributes of a tag by their names; the first of a name counts."""
    found: dict[str, str] = {}
    for name, double, single, plain in _ATTRIBUTES.findall(attributes):
        found.setdefault(name.lower(), resolve(double or single or plain, in_attribute=True))
    return found


def clean(body: bytes) -> str:
    """A document in UTF-8 as text: controls are spaces, line ends are line feeds."""
    return body.replace(b"\r\n", b"\n").replace(b"\r", b"\n").translate(_CONTROLS).decode("utf-8", "replace")


def without_self_closed(body: bytes) -> bytes:
    """An XHTML document in which elements whose text is no markup have end tags."""
    return _SELF_CLOSED.sub(rb"<\1\2></\1>", body)


def resolve(text: str, *, in_attribute: bool = False) -> str:
    """The text with its character references resolved; those of controls are spaces."""
    if "&" not in text:
        return text
    if len(text) <= _SHORT_CHARS:
        return _resolved_short(text, in_attribute)
    return _resolved(text, in_attribute)


def _resolved(text: str, in_attribute: bool) -> str:
    def meaning(found: re.Match[str]) -> str:
        reference = found[0]
        if (known := _meaning(reference)) is not None:
            return known
        name = found[1]
        for end in range(len(name), 1, -1):
            if known := html5.get(name[:end]):
                after = name[end:] or text[found.end() : found.end() + 1]
                goes_on = after[:1] == "=" or (after[:1].isascii() and after[:1].isalnum())
                return reference if in_attribute and name[end - 1] != ";" and goes_on else known + name[end:]
        return reference

    return _REFERENCE.sub(meaning, text)


_resolved_short = lru_cache(maxsize=8192)(_resolved)  # a site says the same again and again


@lru_cache(maxsize=1024)
def _meaning(reference: str) -> str | None:
    """What a reference means wherever it stands; None for a name that may be another one, or none."""
    if reference[1] != "#":
        return html5.get(reference[1:]) if reference[-1] == ";" else None
    digits = reference[2:].rstrip(";")
    code = int(digits[1:].lstrip("0")[:8] or "0", 16) if digits[0] in "xX" else int(digits.lstrip("0")[:8] or "0")
    code = code if code < 0x110000 and not 0xD800 <= code < 0xE000 and code else 0xFFFD
    return " " if code < 0x20 and code not in (9, 10) else _WINDOWS.get(code, chr(code))
