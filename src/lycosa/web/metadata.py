"""What a page says of itself: title, author, dates, description, image, site, type and canonical URL.

    page_metadata(body, url=…, content_type=…)  →  PageMetadata

Pages say it in several ways, often in more than one; the first that has something counts:

    title, description, image   OpenGraph, the item that the page is about, Twitter cards, plain elements and metas
    author, published, modified the item that the page is about, `article:` metas, plain metas and elements
    type                        the type of that item, else og:type

The item that a page is about is the first article in its JSON-LD, microdata or RDFa; where there is none, the first
product, recipe, event or the like, else its WebPage. Names from OpenGraph are whole properties, `og:title`. Dates are
ISO 8601, URLs absolute. Pure; any bytes give a record, in bounded time. Called when the metadata of a page is asked
for.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import msgspec
from selectolax.lexbor import LexborHTMLParser

from lycosa.web.charset import to_utf8
from lycosa.web.date import iso_date
from lycosa.web.document import Document
from lycosa.web.html import is_in_drawing, parse_html
from lycosa.web.media import SNIFF_BYTES, MediaKind, identify_media
from lycosa.web.page import analyse_page, charset_of, has_main_text
from lycosa.web.pdf import read_pdf
from lycosa.web.structured import MICRODATA, RDFA_LITE, Json, plain_object, read_items, read_json_ld
from lycosa.web.url import base_url, parse_url

MAX_METAS = 1_000
MAX_CHARS = 10_000  # of one meta
MAX_AUTHORS = 20
MAX_LINKS = 1_000  # elements of the head

_ARTICLES = frozenset(
    "Article NewsArticle BlogPosting TechArticle ScholarlyArticle Report ReportageNewsArticle OpinionNewsArticle "
    "AnalysisNewsArticle ReviewNewsArticle BackgroundNewsArticle AdvertiserContentArticle SatiricalArticle "
    "SocialMediaPosting LiveBlogPosting DiscussionForumPosting".split()
)
_WORKS = frozenset(
    "Product ProductGroup Recipe Event VideoObject AudioObject Book Movie TVSeries TVEpisode PodcastEpisode "
    "MusicRecording MusicAlbum Course JobPosting SoftwareApplication MobileApplication WebApplication Dataset HowTo "
    "QAPage Question FAQPage Review LocalBusiness Restaurant Hotel Person ProfilePage CreativeWork Service "
    "Vehicle Car RealEstateListing Game VideoGame Photograph ImageObject".split()
)
_PAGES = frozenset("WebPage ItemPage CollectionPage AboutPage ContactPage SearchResultsPage MedicalWebPage".split())
_OPEN_GRAPH = ("og:", "article:", "book:", "profile:", "video:", "music:", "product:", "fb:", "al:")

_AUTHORS = ("author", "dc.creator", "dcterms.creator", "citation_author", "parsely-author", "sailthru.author", "byl")
_PUBLISHED = (
    "article:published_time", "date", "pubdate", "publishdate", "publish-date", "dc.date.issued", "dcterms.issued",
    "dc.date", "dcterms.date", "dcterms.created", "citation_publication_date", "citation_date", "parsely-pub-date",
    "sailthru.date", "og:pubdate", "datepublished", "article.published",
)  # fmt: skip
_MODIFIED = (
    "article:modified_time", "og:updated_time", "dcterms.modified", "dc.date.modified", "last-modified",
    "datemodified", "article.updated", "revised",
)  # fmt: skip
_DESCRIPTIONS = ("description", "dc.description", "dcterms.description", "dcterms.abstract")
_TIMES = "time[pubdate],time.entry-date,time.published,time.dt-published,abbr.published"


class PageMetadata(msgspec.Struct, frozen=True, kw_only=True):
    """What a page says of itself; empty where it says nothing. `json_ld`, `microdata` and `rdfa` are the items as
    written, `opengraph` and `twitter` metas by property, `metas` the others by name in lower case: of each the text, or
    a list of texts where there are several."""

    title: str = ""
    author: str = ""
    published: str = ""
    modified: str = ""
    description: str = ""
    image: str = ""
    site_name: str = ""
    type: str = ""
    canonical: str = ""
    json_ld: tuple[Json, ...] = ()
    microdata: tuple[Json, ...] = ()
    rdfa: tuple[Json, ...] = ()
    opengraph: dict[str, str | list[str]] = {}
    twitter: dict[str, str | list[str]] = {}
    metas: dict[str, str | list[str]] = {}


def page_metadata(body: bytes, *, url: str, content_type: str | None = None) -> PageMetadata:
    """The metadata of a document (content coding undone); of one that is not HTML its title and what else it has."""
    media = identify_media(content_type, body[:SNIFF_BYTES])
    if media.kind is MediaKind.PDF:
        pdf = read_pdf(body)
        return PageMetadata(
            title=pdf.title,
            author=pdf.author,
            description=pdf.subject,
            published=pdf.created,
            modified=pdf.modified,
        )
    if not has_main_text(media):
        page = analyse_page(body, url=url, content_type=content_type)
        return PageMetadata(title=page.title or "", description=page.description or "", canonical=page.canonical or "")
    document = Document(body, url, media, charset_of(body, media))
    tree, _ = parse_html(document)
    lowered = to_utf8(body, document.charset).lower()  # a look at the bytes costs less than one at the tree
    return _of_tree(tree, url, lambda mark: mark in lowered)


def _of_tree(tree: LexborHTMLParser, url: str, may_have: Callable[[bytes], bool]) -> PageMetadata:
    bases = tree.css("base[href]") if may_have(b"<base") else []
    base = base_url(url, bases[0].attributes["href"] if bases else None)
    absolute = partial(_absolute, base=base)
    metas = dict[str, list[str]]()
    for node in tree.css("meta")[:MAX_METAS]:
        attributes = node.attributes
        content = (attributes.get("content") or "").strip()[:MAX_CHARS]
        for name in (
            {attributes.get("property"), attributes.get("name"), attributes.get("http-equiv")} if content else ()
        ):
            if name and content not in metas.setdefault(name := name.strip().lower()[:200], []):
                metas[name].append(content)
    json_ld = (
        read_json_ld(node.text() for node in tree.css('script[type*="ld+json" i]')) if may_have(b"ld+json") else ()
    )
    microdata = read_items(tree, MICRODATA, absolute) if may_have(b"itemscope") else ()
    rdfa = read_items(tree, RDFA_LITE, absolute) if may_have(b"typeof") else ()
    items = [*json_ld, *(plain_object(item) for item in (*microdata, *rdfa))]
    by_id = {item["@id"]: item for item in reversed(items) if isinstance(item.get("@id"), str)}
    item = main_item(items)

    def meta(*names: str) -> Iterator[str]:
        return (metas[name][0] for name in names if name in metas)

    def said(*names: str) -> Iterator[str]:
        return (text for name in names if (text := _text(_resolved(item.get(name), by_id))))

    def date(*found: Iterable[str]) -> str:
        return next((iso for texts in found for text in texts if (iso := iso_date(text))), "")

    authors = _names(item.get("author") or item.get("creator"), by_id)
    links = [node.attributes for node in tree.css("link[rel]")[:MAX_LINKS]]
    images = (*meta("og:image", "og:image:url", "og:image:secure_url"), *said("image", "thumbnailUrl"))
    return PageMetadata(
        title=_first(meta("og:title"), said("headline", "name"), meta("twitter:title", "dc.title"), _titles(tree)),
        author=", ".join(authors) or _first(_all(metas, _AUTHORS), _bylines(tree)),
        published=date(said("datePublished", "dateCreated", "uploadDate"), meta(*_PUBLISHED), _times(tree)),
        modified=date(said("dateModified"), meta(*_MODIFIED)),
        description=_first(meta("og:description"), said("description"), meta("twitter:description", *_DESCRIPTIONS)),
        image=absolute(_first(images, meta("twitter:image", "twitter:image:src"), _hrefs(links, "image_src"))),
        site_name=_first(meta("og:site_name"), _site_names(items, item, by_id), meta("application-name")),
        type=_first(_types(item), meta("og:type")),
        canonical=absolute(_first(_hrefs(links, "canonical"), meta("og:url"))),
        json_ld=json_ld,
        microdata=microdata,
        rdfa=rdfa,
        opengraph=_group(metas, lambda name: name.startswith(_OPEN_GRAPH)),
        twitter=_group(metas, lambda name: name.startswith("twitter:")),
        metas=_group(metas, lambda name: not name.startswith((*_OPEN_GRAPH, "twitter:"))),
    )


def main_item(items: Iterable[Json]) -> Json:
    """The item that a page is about: its article, its product or other work, or the page as such; empty if none is."""
    found = list(items)
    pages = [item for item in found if _PAGES.intersection(_types(item))]
    inside: list[Json] = [item["mainEntity"] for item in pages if isinstance(item.get("mainEntity"), dict)]
    for wanted in (_ARTICLES, _WORKS, _PAGES):
        for item in (*inside, *found):
            if wanted.intersection(_types(item)):
                return item
    return {}


def _types(item: Json) -> list[str]:
    kinds = item.get("@type")
    named = [kinds] if isinstance(kinds, str) else kinds if isinstance(kinds, list) else []
    return [kind.rsplit("/", 1)[-1].removeprefix("schema:") for kind in named if isinstance(kind, str)]


def _text(value: Any) -> str:
    """What a value of an item says as text: itself, or the URL or name of an object; of a list the first."""
    if isinstance(value, list):
        return next(filter(None, map(_text, value)), "")
    if isinstance(value, dict):
        return next(
            filter(None, (_plain(value.get(key)) for key in ("@value", "url", "contentUrl", "name", "@id"))), ""
        )
    return _plain(value)


def _plain(value: Any) -> str:
    if isinstance(value, list):
        value = value[0] if value else None
    return " ".join(value.split())[:MAX_CHARS] if isinstance(value, str) else ""


def _resolved(value: Any, by_id: Mapping[str, Json]) -> Any:
    """An object in place of a mere reference to it."""
    if isinstance(value, dict) and value.keys() <= {"@id", "@type", "name"} and not value.get("name"):
        return by_id.get(value.get("@id") or "", value)
    return value


def _names(value: Any, by_id: Mapping[str, Json]) -> list[str]:
    """The names of persons or organisations, each once."""
    names = dict[str, None]()
    for each in (value if isinstance(value, list) else [value])[:MAX_AUTHORS]:
        person = _resolved(each, by_id)
        name = _plain(person.get("name")) if isinstance(person, dict) else _plain(person)
        if name and not _is_url(name):
            names[name] = None
    return list(names)


def _site_names(items: Iterable[Json], item: Json, by_id: Mapping[str, Json]) -> Iterator[str]:
    for each in items:
        if "WebSite" in _types(each):
            yield _plain(each.get("name"))
    yield from _names(item.get("publisher"), by_id)


def _titles(tree: LexborHTMLParser) -> Iterator[str]:
    for node in tree.css("title,h1")[:10]:
        if not is_in_drawing(node):
            yield " ".join(node.text().split())


def _bylines(tree: LexborHTMLParser) -> Iterator[str]:
    for node in tree.css("[rel~=author]")[:3]:
        yield " ".join(node.text().split())[:200]


def _times(tree: LexborHTMLParser) -> Iterator[str]:
    for node in tree.css(_TIMES)[:3]:
        yield node.attributes.get("datetime") or node.attributes.get("title") or node.text()[:MAX_CHARS]


def _hrefs(links: Iterable[Mapping[str, str | None]], rel: str) -> Iterator[str]:
    for attributes in links:
        if rel in (attributes.get("rel") or "").lower().split():
            yield (attributes.get("href") or "").strip()


def _all(metas: Mapping[str, list[str]], names: Iterable[str]) -> Iterator[str]:
    """The values of the first of these metas that has any, together; authors have one each."""
    for name in names:
        yield ", ".join(text for text in metas.get(name, ())[:MAX_AUTHORS] if not _is_url(text))
    yield ", ".join(text for text in metas.get("article:author", ())[:MAX_AUTHORS] if not _is_url(text))


def _group(metas: Mapping[str, list[str]], belongs: Callable[[str], bool]) -> dict[str, str | list[str]]:
    return {name: found[0] if len(found) == 1 else found for name, found in metas.items() if belongs(name)}


def _first(*found: Iterable[str]) -> str:
    return next((" ".join(text.split()) for texts in found for text in texts if text and not text.isspace()), "")


def _is_url(text: str) -> bool:
    return text.lower().startswith(("http://", "https://", "//"))


def _absolute(written: str, base: str) -> str:
    if not written:
        return ""
    url = parse_url(written, base)
    return url.href if url else written
