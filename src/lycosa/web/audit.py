"""What the owner of a site wants to know of a page's markup: what is missing in it, doubled, or loaded insecurely.

The native kernel reads title, description, canonical URL and headings on its one way over the page. A tree is made only
where the bytes look as if there were something to find, and then the tree decides: of all of a page for resources, of
its head alone for titles, descriptions and alternates. Pure; any bytes give a record, in time linear in their number.
Called once a page by the site report.
"""

import re
from collections.abc import Iterator

import msgspec
from selectolax.lexbor import LexborHTMLParser, LexborNode

from lycosa.web.charset import to_utf8
from lycosa.web.document import Document, Page
from lycosa.web.html import parse_html
from lycosa.web.links import LinkKind, parse_link_header
from lycosa.web.media import SNIFF_BYTES, MediaKind, identify_media
from lycosa.web.page import analyse_page
from lycosa.web.url import base_url, parse_url

MISSING, EMPTY, SEVERAL = "missing", "empty", "several"  # what can be wrong with a title or a description
MOST_TOLD = 10  # resources of one kind that are named, and canonical URLs
MOST_ALTERNATES = 200
TEXT_CHARS = 1_000  # of a title or a description

_HEAD_BYTES = 256 * 1024  # of a page whose head does not end
_HEAD_END = re.compile(rb"</head|<body", re.IGNORECASE)
_DESCRIPTION = re.compile(rb"name\s{0,9}=\s{0,9}[\"']?description", re.IGNORECASE)
# What may be there by the bytes. No attribute is searched beyond the next tag, so the work stays linear.
_MAY_LACK_ALT = re.compile(rb"<img(?![^<>]{0,2000}\balt\b)", re.IGNORECASE)
_MAY_BE_INSECURE = re.compile(
    rb"<(?:script|img|iframe|frame|link|audio|video|source|object|embed|track|input)\b[^<>]{0,2000}?http://",
    re.IGNORECASE,
)
# Element → the attributes that name what a browser loads with the page.
_LOADED = {
    "script": ("src",),
    "img": ("src", "srcset"),
    "iframe": ("src",),
    "frame": ("src",),
    "link": ("href",),
    "audio": ("src",),
    "video": ("src", "poster"),
    "source": ("src", "srcset"),
    "object": ("data",),
    "embed": ("src",),
    "track": ("src",),
    "input": ("src",),
}
_LOADED_RELS = frozenset({"stylesheet", "icon", "preload", "modulepreload", "manifest", "apple-touch-icon"})
_HIDDEN_ROLES = frozenset({"presentation", "none"})


class PageAudit(msgspec.Struct, frozen=True, array_like=True):
    """What was found on one HTML page. `canonicals` are the distinct canonical URLs that the page and its headers name,
    `alternates` pairs of language code and URL (`hreflang`), `insecure` resources that are loaded over http. Counts are
    of all, lists may be shorter. `is_html`: it is a page that can have any of this."""

    is_html: bool = False
    title: str = ""
    title_problem: str = ""
    description: str = ""
    description_problem: str = ""
    h1: int = 0
    canonicals: tuple[str, ...] = ()
    alternates: tuple[tuple[str, str], ...] = ()
    without_alt: int = 0
    images: tuple[str, ...] = ()
    insecure_count: int = 0
    insecure: tuple[str, ...] = ()


def audit_page(body: bytes, *, url: str, content_type: str | None = None, link_header: str = "") -> PageAudit:
    """What is to be said of the page at `url` (content coding undone); `link_header` is its `Link` header."""
    media = identify_media(content_type, body[:SNIFF_BYTES])
    if media.kind not in (MediaKind.HTML, MediaKind.XHTML):
        return PageAudit(canonicals=_canonicals(None, url, link_header))
    page = analyse_page(body, url=url, content_type=content_type, fingerprint=0, digest=b"")
    encoding = page.charset or "UTF-8"
    if encoding.startswith("UTF-16"):  # the bytes are looked at below
        body, encoding = to_utf8(body, encoding), "UTF-8"
    document = Document(body, url, media, encoding)
    base = base_url(url, page.base_href)
    head = _Head(document)
    images, insecure = _resources(document, base)
    return PageAudit(
        is_html=True,
        title=(page.title or "")[:TEXT_CHARS],
        title_problem=_problem(page.title, head.titles),
        description=(page.description or "")[:TEXT_CHARS],
        description_problem=_problem(page.description, head.descriptions),
        h1=sum(1 for level, _ in page.headings if level == 1),
        canonicals=_canonicals(page, url, link_header),
        alternates=head.alternates(base),
        without_alt=len(images),
        images=tuple(images[:MOST_TOLD]),
        insecure_count=len(insecure),
        insecure=tuple(insecure[:MOST_TOLD]),
    )


def _problem(text: str | None, elements: int) -> str:
    if elements > 1:
        return SEVERAL
    return "" if text else EMPTY if elements else MISSING


def _canonicals(page: Page | None, url: str, link_header: str) -> tuple[str, ...]:
    """The canonical URLs that a document names, then those in its headers, each once."""
    written: list[tuple[str, str]] = []
    if page is not None:
        base = base_url(url, page.base_href)
        written += [(page.canonical, base)] if page.canonical else []
        rows = zip(page.links.hrefs, page.links.kinds, page.links.rels, strict=True)
        written += [
            (href, base) for href, kind, rel in rows if kind == LinkKind.LINK and "canonical" in rel.lower().split()
        ]
    written += [(link.href, url) for link in parse_link_header(link_header) if "canonical" in link.rels]
    found = (parse_url(href, base) for href, base in written)
    return tuple(dict.fromkeys(each.href for each in found if each is not None))[:MOST_TOLD]


class _Head:
    """The head of a page: how many titles and descriptions it has, and its alternates."""

    def __init__(self, document: Document) -> None:
        body = document.body
        end = _HEAD_END.search(body, 0, _HEAD_BYTES)
        head = body[: end.start() if end else _HEAD_BYTES]
        lower = head.lower()
        self.titles = lower.count(b"<title")
        self.descriptions = len(_DESCRIPTION.findall(lower))
        self._tree: LexborHTMLParser | None = None
        if self.titles > 1 or self.descriptions > 1 or b"hreflang" in lower:
            self._tree = parse_html(msgspec.structs.replace(document, body=head))[0]
            self.titles = sum(1 for title in self._tree.css("title") if title.parent and title.parent.tag == "head")
            self.descriptions = sum(1 for meta in self._tree.css("meta[name]") if _name(meta) == "description")

    def alternates(self, base: str) -> tuple[tuple[str, str], ...]:
        """Language codes in lower case, each with its URL; those without a URL that can be one are left out."""
        found: list[tuple[str, str]] = []
        for link in self._tree.css("link[hreflang]") if self._tree is not None else ():
            attributes = link.attributes
            if "alternate" in (attributes.get("rel") or "").lower().split():
                target = parse_url(attributes.get("href") or "", base)
                code = (attributes.get("hreflang") or "").strip().lower()[:40]
                if target is not None:
                    found.append((code, target.href))
        return tuple(dict.fromkeys(found))[:MOST_ALTERNATES]


def _name(meta: LexborNode) -> str:
    return (meta.attributes.get("name") or "").strip().lower()


def _resources(document: Document, base: str) -> tuple[list[str], list[str]]:
    """The images without an alternative text, and what is loaded insecurely by a page that came over https."""
    body, is_secure = document.body, document.url.startswith("https:")
    lacks_alt = _MAY_LACK_ALT.search(body) is not None
    may_be_insecure = is_secure and (base.startswith("http:") or _MAY_BE_INSECURE.search(body) is not None)
    if not (lacks_alt or may_be_insecure):
        return [], []
    tree, _ = parse_html(document)
    images = [_source(image) for image in tree.css("img") if _needs_alt(image)] if lacks_alt else []
    insecure = dict.fromkeys(_insecure(tree, base)) if may_be_insecure else {}
    return images, list(insecure)


def _source(image: LexborNode) -> str:
    return (image.attributes.get("src") or image.attributes.get("data-src") or "")[:TEXT_CHARS]


def _needs_alt(image: LexborNode) -> bool:
    """An image needs an alternative text unless it says that it is decoration."""
    attributes = image.attributes
    is_decoration = attributes.get("aria-hidden") == "true" or attributes.get("role") in _HIDDEN_ROLES
    return not ("alt" in attributes or "aria-label" in attributes or "aria-labelledby" in attributes or is_decoration)


def _insecure(tree: LexborHTMLParser, base: str) -> Iterator[str]:
    for element in tree.css(",".join(_LOADED)):
        attributes, tag = element.attributes, element.tag or ""
        if tag == "link" and _LOADED_RELS.isdisjoint((attributes.get("rel") or "").lower().split()):
            continue
        for name in _LOADED[tag]:
            for written in _addresses(name, attributes.get(name) or ""):
                target = parse_url(written, base)
                if target is not None and target.scheme == "http":
                    yield target.href


def _addresses(attribute: str, value: str) -> list[str]:
    if attribute != "srcset":
        return [value.strip()] if value.strip() else []
    candidates = (candidate.split() for candidate in value.split(", "))
    return [words[0] for words in candidates if words]
