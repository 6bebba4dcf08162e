"""What of a document is for reading: its title, its headings and its main text, without navigation.

Leaner than `page.analyse` (no links, no digests), for the search index, which reads every document once more, and for
snippets. The main element counts where there is exactly one, else the body; navigation, footers, scripts and styles are
left out, unless next to nothing is left then. Pure; never raises on any bytes. Called by the search index.
"""

import msgspec
from selectolax.lexbor import LexborDocumentOptions, LexborHTMLParser, LexborNode

from lycosa.web import charset, hazard
from lycosa.web.media import SNIFF_BYTES, Kind, identify
from lycosa.web.page import analyse

_HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
_LEFT_OUT = (
    "script,style,noscript,template,nav,footer,iframe,[role=navigation],[role=contentinfo],"
    '[class^=nav],[class*="-nav"],[class*=" nav"],[id^=nav],[class*=breadcrumb],[class*=sidebar]'
)
_SOUGHT = f"{','.join(_HEADINGS)},{_LEFT_OUT}"
_HIDDEN = ("script", "style", "noscript", "template", "iframe")
_HEADING_CHARS = 20_000  # of all headings together; they may nest
_LITTLE_CHARS = 200  # of a body's text: a page with less may be all navigation, and is read as a whole


class Readable(msgspec.Struct, frozen=True):
    """Texts as they stand in the document, white space included."""

    title: str = ""
    headings: tuple[str, ...] = ()
    text: str = ""


def readable(body: bytes, *, url: str, content_type: str | None = None) -> Readable:
    """What is for reading in `body` (content coding undone); empty for what has no text here, such as images."""
    media = identify(content_type, body[:SNIFF_BYTES])
    if media.kind is not Kind.HTML:
        page = analyse(body, url=url, content_type=content_type)
        return Readable(page.title or "", tuple(text for _, text in page.headings), page.text)
    body = charset.to_utf8(body, charset.detect(body, http_charset=media.charset, form="html"))
    if not hazard.is_tame(body):
        body = body[: hazard.CUT_BYTES]
    found, has_main = _read(body, is_whole=False)
    is_enough = bool(found.text) if has_main else len(found.text) > _LITTLE_CHARS
    return found if is_enough else _read(body, is_whole=True)[0]


def _read(body: bytes, *, is_whole: bool) -> tuple[Readable, bool]:
    """What is for reading, and whether it is that of a main element."""
    tree = LexborHTMLParser(body, options=LexborDocumentOptions.WO_EVENTS)
    title = tree.css_first("title")
    root = tree.body
    if root is None:
        return Readable(title.text() if title else ""), False
    has_main = False
    if not is_whole and b"<main" in body:
        mains = tree.css("main")
        has_main = len(mains) == 1
        root = mains[0] if has_main else root
    headings: list[str] = []
    left_out: list[LexborNode] = []
    room = _HEADING_CHARS
    for node in root.css(_SOUGHT):
        tag = node.tag
        if tag in _HEADINGS:
            if room > 0:
                headings.append(node.text(separator=" ")[:room])
                room -= len(headings[-1])
        elif tag in _HIDDEN or not (is_whole or tag in ("html", "body", "main")):
            left_out.append(node)
    for node in reversed(left_out):  # from the inside out: what is taken out is not touched again
        node.decompose()
    text = root.text(separator=" ", skip_empty=True)
    return Readable(title.text() if title else "", tuple(headings), text), has_main
