"""HTML as it is written: its texts, its tags and their attributes, and what character references mean.

    split_markup(html)  →  texts, and the tags between them  →  `split_tag`: the name and the attributes of each

A tag ends with the next ">", unless a quoted value holds one; what is in scripts and comments is no markup; "<" and ">"
may stand for themselves. Of most pages that need not be known: a page is split at all of them, and where that may be
wrong `OddMarkup` tells it, in the tags at the latest. Then `split_odd_markup` splits it. Pure and linear. Called by
`outline`; `markdown` asks for attributes.
"""

import re
from functools import lru_cache
from html.entities import html5

_SPACE = r"\t\n "  # other controls are spaces before the tags are looked for
_NAME = rf"/?[a-zA-Z][^{_SPACE}/>]*+"
_ATTRIBUTE = (
    rf"(%s[^{_SPACE}/>][^{_SPACE}/>=]*+)[{_SPACE}]*+"
    rf"(?:(?!=)|=[{_SPACE}]*+(?:\"(%s[^\"]*+)\"|'(%s[^']*+)'|(?![\"'])(%s[^{_SPACE}>]*+)))"
)
# Without the slashes before it: the search would begin at each of them, and go through all that follow.
_ATTRIBUTES = re.compile(_ATTRIBUTE % (("",) * 4))
# The rest of a tag: in nearly all tags every value is quoted; the other form is that of the standard.
_PLAIN_REST = rf"[^\"'<>=]*+(?:(?<![{_SPACE}/\"])=\"[^\"<>]*+\"[^\"'<>=]*+)*+"
_REST = rf"(?:[{_SPACE}/]*+{_ATTRIBUTE % (('?:',) * 4)})*+[{_SPACE}/]*+"
RAW_TEXT = frozenset("script style title textarea iframe noembed noframes xmp".split())  # what is in these is no markup
_RAW = rf"(?ai:{'|'.join(sorted(RAW_TEXT))})(?![^{_SPACE}/>])"

_TAG = re.compile(f"<({_NAME})({_PLAIN_REST}|{_REST})")
_NO_TAG = re.compile("<(?:!(?!--).*|[?].*|/(?![a-zA-Z]).*|!--(?:-?|.*--!?))", re.DOTALL)
_ODD = re.compile(
    rf"<(?:(?![a-zA-Z/!?])(?:<(?![a-zA-Z/!?]))*+"
    rf"|(?!(?!{_RAW})/?[a-zA-Z][^{_SPACE}/<>]*+{_PLAIN_REST}>)"
    rf"(?:(?={_RAW})({_NAME}){_REST}>([^<]*+(?:<(?!/(?ai:\1)[{_SPACE}/>])[^<]*+)*+)"
    rf"|({_NAME}{_REST})>"
    rf"|(!--(?:-?>|.*?(?:--!?>|\Z))|[!?][^>]*+>?|/(?:>|[^a-zA-Z>][^>]*+>?))"
    rf"|/?[a-zA-Z].*|))",
    re.DOTALL,
)
_MARKED_TAG = re.compile("(<[^<>]*)>")
_LESS, _GREATER, _BETWEEN = "\1", "\2", "\0"  # no document has controls

_SHORT_CHARS = 60
_REFERENCE = re.compile("&(?:#(?:[xX][0-9a-fA-F]+|[0-9]+);?|([a-zA-Z0-9]{1,32};?))")
_CONTROLS = bytes(byte if byte >= 0x20 or byte in b"\t\n" else 0x20 for byte in range(256))
# What numeric references between 0x80 and 0x9F mean; five of them have no other meaning.
_WINDOWS = {code: bytes((code,)).decode("cp1252", "ignore") or chr(code) for code in range(0x80, 0xA0)}

# In XML these may be closed by "/>"; in HTML the rest of the document would be their text.
_SELF_CLOSED = re.compile(rb"<(script|style|title|textarea|iframe|noscript|xmp|noembed|noframes)\b([^<>]*)/>")


class OddMarkup(Exception):
    """Something looks like a tag and is none, or the other way round."""


def split_markup(html: str) -> tuple[list[str], list[str]]:
    """The texts of a document and the tags between them, each up to its ">": one text more than there are tags."""
    pieces = html.replace("<", "><").split(">")
    if len(pieces) != 2 * html.count("<") + 1:  # one ">" for each "<"
        raise OddMarkup
    return pieces[::2], pieces[1::2]


def split_odd_markup(html: str) -> tuple[list[str], list[str]]:
    """The same of any document."""
    pieces = _MARKED_TAG.split(_ODD.sub(_mark_brackets, html))
    pieces = _BETWEEN.join(pieces).replace(_LESS, "<").replace(_GREATER, ">").split(_BETWEEN)
    return pieces[::2], pieces[1::2]


def split_tag(tag: str) -> tuple[str, str]:
    """The name of a tag, with a slash where it ends an element, and its attributes; nothing of a comment."""
    if found := _TAG.fullmatch(tag):
        return found[1], found[2]
    if _NO_TAG.fullmatch(tag):
        return "", ""
    raise OddMarkup


def _mark_brackets(found: re.Match[str]) -> str:
    """The same with other characters for brackets that do not begin or end a tag. Comments are empty."""
    raw, content, tag, comment = found.groups()
    if raw:
        return f"<{raw}>{_marked(content)}"
    if tag:
        return f"<{_marked(tag)}>"
    if comment:
        return "<!>"
    return "" if found[0].strip("<") else _marked(found[0])  # a tag that has no end is nothing


def _marked(text: str) -> str:
    return text.replace("<", _LESS).replace(">", _GREATER)


def attributes_of(attributes: str) -> dict[str, str]:
    """The attributes of a tag by their names; the first of a name counts."""
    found: dict[str, str] = {}
    lower = str.lower if attributes.isascii() else ascii_lower
    for name, double, single, plain in _ATTRIBUTES.findall(attributes):
        found.setdefault(lower(name), resolve(double or single or plain, in_attribute=True))
    return found


def ascii_lower(name: str) -> str:
    """A name in small letters, as HTML compares them: with `str.lower` the Kelvin sign is a k."""
    return name.lower() if name.isascii() else name.encode().lower().decode()


def clean(body: bytes) -> str:
    """A document in UTF-8 as text: controls are spaces, line ends are line feeds."""
    if b"\r" in body:  # few have any, and to look for two bytes takes long
        body = body.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return body.translate(_CONTROLS).decode("utf-8", "replace")


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
