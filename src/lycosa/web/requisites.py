"""What a document needs to be shown: the URLs of stylesheets, scripts, fonts, images, icons, manifests and frames.

HTML is parsed as it is for links. Style sheets, style elements and style attributes are scanned by the rules of CSS
Syntax: comments and strings are passed over, escapes are undone (in URLs and in the name `url` itself), `@import`,
`url()` and the strings of `image-set()` count, `@namespace` does not. Videos and sound are left out: they are played,
not shown. Pure, linear, never raises. Called by `crawl.requisites`.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from selectolax.lexbor import LexborNode

from lycosa.web.charset import detect_charset, to_utf8
from lycosa.web.document import Document
from lycosa.web.html import parse_html
from lycosa.web.links import WHITESPACE, can_be_address
from lycosa.web.media import SNIFF_BYTES, MediaKind, identify_media
from lycosa.web.page import charset_of
from lycosa.web.url import base_url, join_map

MOST_REQUISITES = 1_000  # of one document
MOST_BYTES = 1 << 20  # of a document that are looked at, so that the event loop is not held

_RELS = frozenset(
    "stylesheet icon apple-touch-icon apple-touch-icon-precomposed mask-icon manifest preload modulepreload".split()
)
_SOURCES = {
    "script": ("src",),
    "img": ("src", "data-src", "srcset", "data-srcset"),
    "source": ("srcset", "data-srcset"),  # of <picture>; the `src` is that of a video
    "input": ("src",),
    "video": ("poster",),
    "iframe": ("src",),
    "frame": ("src",),
    "embed": ("src",),
    "object": ("data",),
    "image": ("href", "xlink:href"),
    "use": ("href", "xlink:href"),
    "body": ("background",),
    "table": ("background",),
    "td": ("background",),
    "th": ("background",),
}
_SELECTOR = ",".join(("link[href]", "style", "[style]", *_SOURCES))
_CANDIDATE = re.compile(r"[\t\n\f\r ,]*+([^\t\n\f\r ]++)")
_DESCRIPTORS = re.compile(r"(?:\([^)]*+\)?+|[^(,])*+")


class DocumentRequisites(NamedTuple):
    """The URLs, normalised, that a document needs to be shown, each once and in order. `imported` are the style sheets
    that a style sheet imports: they are parts of it."""

    needed: list[str]
    imported: list[str]


def document_requisites(body: bytes, *, url: str, content_type: str | None = None) -> DocumentRequisites:
    """What the document at `url` (content coding undone) needs; nothing where it is neither HTML nor CSS."""
    media = identify_media(content_type, body[:SNIFF_BYTES])
    if media.kind in (MediaKind.HTML, MediaKind.XHTML):
        found, base = _of_html(Document(body[:MOST_BYTES], url, media, charset_of(body, media)))
    elif media.essence == "text/css":
        encoding = detect_charset(body, http_charset=media.charset, form="text")
        text = str(to_utf8(body[:MOST_BYTES], encoding), "utf-8", "replace")
        named = list(islice(css_addresses(text), MOST_REQUISITES))
        imported = _joined((address for address, is_import in named if is_import), url, url)
        needed = _joined((address for address, is_import in named if not is_import), url, url)
        return DocumentRequisites(needed, imported)
    else:
        return DocumentRequisites([], [])
    return DocumentRequisites(_joined(found, base, url), [])


def _joined(found: Iterable[str], base: str, url: str) -> list[str]:
    """Addresses without their fragments, so that a part of the document itself is no requisite."""
    written: dict[str, None] = {}
    for text in found:
        address = text.strip(WHITESPACE)
        if address and address[0] != "#" and can_be_address(address):
            written[address] = None
            if len(written) >= MOST_REQUISITES:
                break
    return [target for target in dict.fromkeys(join_map(base, written).values()) if target != url]


# HTML


def _of_html(document: Document) -> tuple[Iterator[str], str]:
    tree, _ = parse_html(document)
    first = tree.css_first("base[href]")
    base = base_url(document.url, first.attributes.get("href") if first else None)
    return _of_elements(tree.css(_SELECTOR)), base


def _of_elements(elements: Iterable[LexborNode]) -> Iterator[str]:
    for element in elements:
        attributes, tag = element.attributes, element.tag or ""
        style = attributes.get("style")
        if style:
            yield from (address for address, _ in css_addresses(style))
        if tag == "link":
            if not _RELS.isdisjoint((attributes.get("rel") or "").lower().split()):
                yield attributes.get("href") or ""
                yield from srcset_addresses(attributes.get("imagesrcset") or "")
        elif tag == "style":
            yield from (address for address, _ in css_addresses(element.text()))
        else:
            for name in _SOURCES.get(tag, ()):
                value = attributes.get(name)
                if value:
                    yield from srcset_addresses(value) if name.endswith("srcset") else (value,)


def srcset_addresses(value: str) -> Iterator[str]:
    """The addresses of a `srcset`, as the HTML standard splits it: one may hold commas, but does not end with one."""
    at = 0
    while found := _CANDIDATE.match(value, at):
        address, at = found[1], found.end()
        if address[-1] != ",":
            descriptors = _DESCRIPTORS.match(value, at)
            at = descriptors.end() if descriptors else at
        yield address.rstrip(",")


# CSS


_SPACE = r"[\t\n\f\r ]"


def _letters(word: str) -> str:
    """A pattern for a word in either case, any letter of which may be escaped; an escaped a to f is a digit."""

    def one(letter: str) -> str:
        as_itself = "" if letter in "abcdef" else rf"\\{letter}|"
        return rf"(?:{letter}|{as_itself}\\0{{0,4}}(?:{ord(letter):x}|{ord(letter.upper()):x})(?:\r\n|{_SPACE})?+)"

    return "".join(map(one, word))


_DOUBLE, _SINGLE = r"(?:[^\"\\\n\r\f]|\\(?:\r\n|[\s\S]))*+\"?+", r"(?:[^'\\\n\r\f]|\\(?:\r\n|[\s\S]))*+'?+"
_STRING = rf"\"{_DOUBLE}|'{_SINGLE}"
_COMMENT = r"\*(?:[^*]|\*(?!/))*+(?:\*/)?+"
_BARE = r"(?:[^\"'()\\\t\n\f\r \x00-\x08\x0b\x0e-\x1f\x7f]|\\[^\n\r\f])*+"
_ADDRESS = rf"\({_SPACE}*+(?:({_STRING})|({_BARE})){_SPACE}*+\)"
_URL = re.compile(_letters("url") + _ADDRESS, re.IGNORECASE | re.ASCII)
# Each alternative begins behind a character of one set, which the engine looks for by itself: twice as fast.
_CSS = re.compile(
    r"[/@uUiI\\\"'()](?:"
    rf"(?<=/){_COMMENT}"
    rf"|(?<=@)(?:{_letters('namespace')}|{_letters('charset')})\b(?:{_STRING}|[^;\"'])*+;?+"
    rf"|(?<=@){_letters('import')}(?:{_SPACE}|/{_COMMENT})*+(?:({_STRING})|({_letters('url')}(?=\()))"
    rf"|(?:(?<=[uU])(?<![\w-].)|(?<=\\)(?:u|0{{0,4}}[57]5(?:\r\n|{_SPACE})?+)){_letters('rl')}{_ADDRESS}"
    rf"|(?<=[iI]){_letters('mage')}-{_letters('set')}(\()"
    rf"|(?<=\"){_DOUBLE}()|(?<='){_SINGLE}()"
    r"|(?<=\\)[\s\S]"
    r"|(?<=[()])())",
    re.IGNORECASE | re.ASCII | re.DOTALL,
)
_IMPORTED, _IMPORTS, _QUOTED, _PLAIN, _SET, _IN_DOUBLE, _IN_SINGLE, _BRACKET = range(1, 9)
_ESCAPE = re.compile(r"\\(?:([0-9a-fA-F]{1,6}+)(?:\r\n|[ \t\r\n\f])?+|(\r\n|[\n\r\f])|([\s\S]))")
# Whoever has none of these names nothing.
_NAMES_SOMETHING = re.compile(r"[uU][rR][lL]\(|@[iI]|[sS][eE][tT]\(|\\")


def css_addresses(text: str) -> Iterator[tuple[str, bool]]:
    """The addresses that a style sheet names, as written but with escapes undone, each with whether it is that of
    another style sheet that it imports."""
    if _NAMES_SOMETHING.search(text) is None:
        return
    sets, depth, at = list[int](), 0, 0  # `sets`: depths at which an image-set() is open
    while found := _CSS.search(text, at):
        which, at = found.lastindex, found.end()
        if which == _IMPORTED:
            yield _unquoted(found[_IMPORTED]), True
        elif which == _IMPORTS:
            if address := _URL.match(text, found.start(_IMPORTS)):
                yield _unquoted(address[1]) if address[1] else _unescaped(address[2]), True
                at = address.end()
        elif which == _QUOTED:
            yield _unquoted(found[_QUOTED]), False
        elif which == _PLAIN:
            yield _unescaped(found[_PLAIN]), False
        elif which == _SET:
            depth += 1
            sets.append(depth)
        elif which in (_IN_DOUBLE, _IN_SINGLE):
            if sets and depth == sets[-1]:  # not the string of a type() in it
                yield _unquoted(found[0]), False
        elif which == _BRACKET:
            depth += 1 if found[0] == "(" else -1
            if sets and depth < sets[-1]:
                sets.pop()


def _unquoted(text: str) -> str:
    end = len(text) - (len(text) > 1 and text[-1] == text[0])
    return _unescaped(text[1:end])


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(_character, text) if "\\" in text else text


def _character(escape: "re.Match[str]") -> str:
    digits, newline, other = escape.groups()
    if digits is None:
        return "" if newline else str(other)
    number = int(digits, 16)
    return chr(number) if 0 < number < 0x110000 and not 0xD800 <= number < 0xE000 else "\N{REPLACEMENT CHARACTER}"
