"""Rewrites the addresses in HTML and CSS, so that a replayed page asks the archive for what it shows and links to.

The text is read tag by tag and stays as it was but for the attributes that hold addresses; time is linear in its
length. A reader of tags can be deceived by markup that a browser reads otherwise. What it misses is not loaded, since
the policy that goes with a page (`replay.replay`) forbids it: rewriting is for pages to work, the policy for safety.
Scripts do not run in a replayed page and are left as they are. Called for every document of type HTML, XHTML, SVG and
CSS. Pure.
"""

import re
from collections.abc import Callable
from html import escape
from html.entities import html5
from typing import NamedTuple

from lycosa.web import base_url, escape_query, parse_url

_SPACE = r"\t\n\f\r "  # of HTML; any other one is part of a name
_VALUE = rf"[{_SPACE}]*+=[{_SPACE}]*+(?:\"(%s[^\"]*+)(?:\"|\Z)|'(%s[^']*+)(?:'|\Z)|(%s[^{_SPACE}>\"'][^{_SPACE}>]*+))?+"
_ATTRIBUTES = rf"(?:[{_SPACE}/]++|=?[^{_SPACE}/>=]++(?:{_VALUE % (('?:',) * 3)})?+|=)*+"
_COMMENT = r"<!--(?:-?>|.*?(?:--!?>|\Z))"
_TAG = rf"<(?P<name>[a-zA-Z][^{_SPACE}/>]*+)(?P<attributes>{_ATTRIBUTES})(?P<end>>|\Z)"
_HTML_TOKEN = re.compile(rf"{_COMMENT}|{_TAG}", re.DOTALL)
_XML_TOKEN = re.compile(rf"{_COMMENT}|<!\[CDATA\[.*?(?:\]\]>|\Z)|{_TAG}", re.DOTALL)
_ATTRIBUTE = re.compile(rf"(=?[^{_SPACE}/>=]++)(?:{_VALUE % (('',) * 3)})?+")
_REFERENCE = re.compile(r"&(?:#([0-9]{1,9});?|#[xX]([0-9a-fA-F]{1,8});?|([a-zA-Z][a-zA-Z0-9]*+;?))(=?)")
_CSS = re.compile(
    r"/\*.*?(?:\*/|\Z)|@namespace[^;]*+;?"
    r"|(?P<import>@import\s++)(?P<string>\"[^\"]*+\"|'[^']*+')"
    r"|url\(\s*+(?P<url>\"[^\"]*+\"|'[^']*+'|(?:[^\s\"'()\\]|\\[0-9a-fA-F]{1,6}+\s?|\\.)*+)\s*+\)",
    re.DOTALL | re.IGNORECASE,
)
_CSS_ESCAPE = re.compile(r"\\(?:([0-9a-fA-F]{1,6})\s?|\n|(.))", re.DOTALL)
_SCHEME = re.compile(r"[\0-\x20]*(?:about|blob|data|javascript|mailto|tel|sms|cid|magnet):", re.ASCII | re.IGNORECASE)
_REFRESH = re.compile(r"(?P<wait>[\s0-9.]*+[;,]?\s*+(?:url\s*+=\s*+)?)(?P<url>.*)", re.IGNORECASE | re.DOTALL)

# Elements whose content is not markup. Scripts are off, so `noscript` is not among them.
_RAW = frozenset(("script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes"))
_LINKS = frozenset(("a", "area", "svg:a"))
_FRAMES = frozenset(("iframe", "frame", "object", "embed"))
_ADDRESSES = frozenset(("href", "src", "data", "poster", "background", "xlink:href", "longdesc"))
_SETS = frozenset(("srcset", "imagesrcset"))
# What would load or tell something by itself, or fail since the bytes are not the same any more.
_DROPPED = frozenset(("integrity", "crossorigin", "ping", "nonce", "srcdoc", "attributionsrc", "archive", "codebase"))
_DROPPED_METAS = frozenset(
    ("content-security-policy", "content-security-policy-report-only", "x-dns-prefetch-control", "set-cookie")
)
_OWN_TARGETS = frozenset(("", "_self", "_top", "_parent"))


class ReplayAddresses(NamedTuple):
    """The beginnings of the addresses that a document is given: of what a link leads to, of a document in a frame, and
    of everything else. `is_inner`: the document stands in a frame of another one, and its links stay there."""

    link: str
    frame: str
    file: str
    is_inner: bool = False


class HtmlRewriter:
    """Rewrites one document. `charset` is the encoding it was written in, by which queries are encoded."""

    def __init__(self, url: str, charset: str, addresses: ReplayAddresses, *, is_xml: bool = False) -> None:
        self._url = self._base = url
        self._charset, self._to, self._is_xml = charset, addresses, is_xml
        self._known: dict[str, str | None] = {}

    def rewrite(self, text: str) -> str:
        parts, at, token = [], 0, _XML_TOKEN if self._is_xml else _HTML_TOKEN
        while (found := token.search(text, at)) is not None:
            parts.append(text[at : found.start()])
            at = found.end()
            name = (found["name"] or "").lower()
            if not name:
                parts.append(found[0])
                continue
            parts.append(self._tag(name, found))
            is_closed = self._is_xml and found["attributes"].endswith("/")
            if name in _RAW and not is_closed and (name == "style" or not self._is_xml):
                end = re.compile(rf"</{name}(?=[{_SPACE}/>])", re.ASCII | re.IGNORECASE).search(text, at)
                stop = end.start() if end else len(text)
                parts.append(self._css(text[at:stop]) if name == "style" else text[at:stop])
                at = stop
            elif name == "plaintext" and not self._is_xml:
                break
        parts.append(text[at:])
        return "".join(parts)

    def _tag(self, name: str, found: re.Match[str]) -> str:
        pairs: list[tuple[str, str | None]] = []
        for each in _ATTRIBUTE.finditer(found["attributes"]):
            value = next((group for group in each.groups()[1:] if group is not None), None)
            pairs.append((each[1], None if value is None else unescape_attribute(value)))
        if not pairs:
            return found[0]
        given: dict[str, str] = {}
        for written, value in pairs:
            given.setdefault(written.lower(), value or "")
        changed = self._changed(name, given)
        if changed is None:
            return found[0]
        lines = "".join(f' {key}="{escape(value)}"' for key, value in changed.items())
        slash = " /" if found["attributes"].endswith("/") else ""
        return f"<{found['name']}{lines}{slash}{found['end']}"

    def _changed(self, name: str, given: dict[str, str]) -> dict[str, str] | None:
        """The attributes of a tag as they are replayed; None if they stay as they are."""
        if name == "base":
            if "href" in given and self._base == self._url:
                self._base = base_url(self._url, given["href"])
            return {"target": given["target"]} if self._to.is_inner and "target" in given else {}
        if name == "meta":
            return self._meta(given)
        made: dict[str, str] = {}
        for key, value in given.items():
            if key in _DROPPED:
                continue
            if key == "style":
                made[key] = self._css(value)
            elif key in _SETS:
                made[key] = self._set(value)
            elif key in _ADDRESSES and (key != "data" or name == "object"):
                new = self._address(value, self._start(name, given))
                if new is not None:
                    made[key] = new
            else:
                made[key] = value
        if name in _LINKS and not self._to.is_inner and (link := made.get("href") or made.get("xlink:href")):
            self._set_target(made, given, link)
        return None if made == given else made

    def _start(self, name: str, given: dict[str, str]) -> str:
        if name in _LINKS:
            is_named = given.get("target", "").lower() not in _OWN_TARGETS | {"_blank"}
            return self._to.frame if self._to.is_inner or is_named else self._to.link
        return self._to.frame if name in _FRAMES else self._to.file

    def _set_target(self, made: dict[str, str], given: dict[str, str], link: str) -> None:
        """A link leads to another page with its own date, so it replaces the page that shows this one."""
        if link.startswith(self._to.link) and given.get("target", "").lower() in _OWN_TARGETS:
            made["target"] = "_top"
        elif given.get("target", "").lower() == "_blank":
            made["rel"] = "noopener"

    def _meta(self, given: dict[str, str]) -> dict[str, str] | None:
        kind = given.get("http-equiv", "").strip().lower()
        if kind in _DROPPED_METAS:
            return {}
        if kind == "refresh" and (found := _REFRESH.match(given.get("content", ""))) and found["url"].strip("\"' "):
            new = self._address(found["url"].strip().strip("\"'"), self._to.frame)
            return {"http-equiv": "refresh", "content": f"{found['wait']}{new}"} if new else {}
        return None

    def _address(self, written: str, start: str) -> str | None:
        """An address as it is replayed; None for one that leads nowhere."""
        if written.lstrip().startswith("#") or not written.strip():
            return written
        if written not in self._known:
            url = parse_url(escape_query(written, self._charset), self._base)
            fragment = written.partition("#")[2].rstrip()
            self._known[written] = f"{url.href}{'#' if fragment else ''}{fragment}" if url else None
        found = self._known[written]
        if found is not None:
            return start + found
        return written if _SCHEME.match(written) else None

    def _set(self, written: str) -> str:
        """A `srcset`: addresses with what they are for, between commas."""
        made, at = [], 0
        while (found := re.compile(r"[\s,]*+(\S++)").match(written, at)) is not None:
            url, at = found[1], found.end()
            words = ""
            if url.endswith(","):
                url = url.rstrip(",")
            else:
                end = written.find(",", at)
                end = len(written) if end < 0 else end
                words, at = written[at:end], end
            new = self._address(url, self._to.file)
            if new is not None:
                made.append(f"{new}{words.rstrip()}")
        return ", ".join(made)

    def _css(self, text: str) -> str:
        return rewrite_css(text, lambda written: self._address(written, self._to.file))


def rewrite_css(text: str, address: Callable[[str], str | None]) -> str:
    """A style sheet with its addresses replaced; those that lead nowhere become empty."""

    def replace(found: re.Match[str]) -> str:
        written = found["url"] if found["url"] is not None else found["string"]
        if written is None:
            return found[0]
        plain = written[1:-1] if written[:1] in ("'", '"') else written
        plain = _CSS_ESCAPE.sub(_css_character, plain)
        new = address(plain)
        if new == plain:
            return found[0]
        quoted = (new or "").replace("\\", "\\\\").replace('"', "%22").replace("\n", "").replace("<", "%3C")
        return f'{found["import"]}"{quoted}"' if found["import"] else f'url("{quoted}")'

    return _CSS.sub(replace, text)


def _css_character(found: re.Match[str]) -> str:
    if found[1]:
        code = int(found[1], 16)
        return chr(code) if 0 < code <= 0x10FFFF and not 0xD800 <= code < 0xE000 else "\ufffd"
    return found[2] or ""


def unescape_attribute(value: str) -> str:
    """The value of an attribute as a browser reads it: `&copy=1` in a query is no character reference."""
    return _REFERENCE.sub(_character, value) if "&" in value else value


def _character(found: re.Match[str]) -> str:
    if found[3]:
        is_one = found[3].endswith(";") or not found[4]
        return html5.get(found[3], "&" + found[3]) + found[4] if is_one else found[0]
    code = int(found[1]) if found[1] else int(found[2], 16)
    return (chr(code) if 0 < code <= 0x10FFFF and not 0xD800 <= code < 0xE000 else "\ufffd") + found[4]
