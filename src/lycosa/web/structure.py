"""Structure strings (Y7): the first and the last letter of every tag, in document order.

A tag is an element of the parsed document: what a browser sees, so tags in comments, scripts and templates are none,
and `<html>`, `<head>`, `<body>` and `<tbody>` are there whether written or implied. `h1` gives `h` and `1`, a tag of
one letter gives it twice. Also home of the tag numbers lexbor gives elements, by which `html` picks those it reads.
Invariant: both strings have one character an element. Called by `html` for a tree, by `feed` for a list of names.
"""

from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter

from selectolax.lexbor import LexborHTMLParser, LexborNode

# The names looked up in a table; any other (custom elements, rare SVG) is asked of its node, one by one.
_NAMES = (
    "a abbr acronym address applet area article aside audio b base basefont bdi bdo bgsound big blink "
    "blockquote body br button canvas caption center cite clippath code col colgroup data datalist dd del desc "
    "details dfn dialog dir div dl dt em embed fieldset figcaption figure font footer form frame frameset h1 "
    "h2 h3 h4 h5 h6 head header hgroup hr html i iframe image img input ins kbd label legend li lineargradient "
    "link listing main map mark marquee math menu meta meter mi mn mo mtext nav nobr noembed noframes noscript "
    "object ol optgroup option output p param path picture plaintext pre progress q rp rt ruby s samp script "
    "search section select slot small source span strike strong style sub summary sup svg table tbody td "
    "template textarea tfoot th thead time title tr track tt u ul var video wbr xmp"
)
_BYTE = 256
_tag_id: Callable[[LexborNode], int] = attrgetter("tag_id")


def _numbers() -> dict[str, int]:
    tree = LexborHTMLParser("")
    return {name: tree.create_node(name).tag_id for name in _NAMES.split()}


TAG_ID = {name: number for name, number in _numbers().items() if number < _BYTE}


def table(values: dict[str, int]) -> bytes:
    """A `bytes.translate` table from tag numbers to the given value of their name, 0 for all others."""
    row = bytearray(_BYTE)
    for name, value in values.items():
        row[TAG_ID[name]] = value
    return bytes(row)


_FIRST = table({name: ord(name[0]) for name in TAG_ID})
_LAST = table({name: ord(name[-1]) for name in TAG_ID})


def tag_numbers(nodes: Sequence[LexborNode]) -> bytes:
    """One byte an element: its tag number, 0 for a tag that lexbor knows no number for."""
    try:
        return bytes(map(_tag_id, nodes))
    except ValueError:  # unknown tags are numbered by their place in memory
        return bytes([number if number < _BYTE else 0 for number in map(_tag_id, nodes)])


def of_tree(nodes: Sequence[LexborNode], numbers: bytes) -> tuple[str, str]:
    """The structure strings of a document's elements, given with their tag numbers."""
    first, last = numbers.translate(_FIRST), numbers.translate(_LAST)
    if b"\0" not in first:
        return first.decode("ascii"), last.decode("ascii")
    names = [node.tag or "?" for node, letter in zip(nodes, first, strict=True) if not letter]
    return _filled(first, [name[0] for name in names]), _filled(last, [name[-1] for name in names])


def of_names(names: Iterable[str]) -> tuple[str, str]:
    """The structure strings of a list of tag names, none of them empty."""
    names = list(names)
    return "".join(name[0] for name in names), "".join(name[-1] for name in names)


def _filled(letters: bytes, missing: list[str]) -> str:
    gaps = iter(missing)
    return "".join(part + next(gaps, "") for part in letters.decode("ascii").split("\0")).lower()
