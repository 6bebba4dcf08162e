"""The analysis of a fetched document: which kind it is, in which encoding, and the page it makes.

    analyse(body, url=…, content_type=…)  →  media.identify  →  charset.detect  →  the kind's analyser  →  Page

Pure, and never raises on any bytes; a kind without an analyser (images, PDF, archives) gives a page with digests and
nothing else. The built-in analysers (`web.analysers`) are a registry by kind: pass another to replace some, or to add
ones of further kinds or media types.
Called once a document.
"""

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

from lycosa.web import charset
from lycosa.web import document as digests
from lycosa.web.document import Analyser, Analysers, Document, Page
from lycosa.web.media import SNIFF_BYTES, Media, MediaKind, identify_media

if TYPE_CHECKING:
    from lycosa.web.html import PageLinks

__all__ = [
    "Analyser",
    "Analysers",
    "Document",
    "Page",
    "analyse_page",
    "built_in_analysers",
    "extract_links",
    "is_built_in",
]

# Where a document of this kind declares its encoding.
_FORMS: Mapping[MediaKind, charset.Form] = {
    MediaKind.XML: "xml",
    MediaKind.XHTML: "xml",
    MediaKind.FEED: "xml",
    MediaKind.TEXT: "text",
}


def analyse_page(
    body: bytes,
    *,
    url: str,
    content_type: str | None = None,
    content_language: str | None = None,
    analysers: Analysers | None = None,
    fingerprint: int | None = None,
    digest: bytes | None = None,
) -> Page:
    """The page of `body` (content coding undone). `content_type` and `content_language` are the headers as sent.

    Who has made the digests already hands them on; a body is long.
    """
    fingerprint = digests.document_fingerprint(body) if fingerprint is None else fingerprint
    digest = digests.document_digest(body) if digest is None else digest
    media = identify_media(content_type, body[:SNIFF_BYTES])
    analyser = built_in_analysers().get(media.kind) if analysers is None else _chosen(analysers, media)
    if analyser is None:
        return Page(url=url, media=media, charset=None, fingerprint=fingerprint, digest=digest)
    encoding = charset.detect_charset(body, http_charset=media.charset, form=_FORMS.get(media.kind, "html"))
    language = (content_language or "").partition(",")[0].strip() or None
    return analyser(Document(body, url, media, encoding, fingerprint, digest, language))


def _chosen(analysers: Analysers, media: Media) -> Analyser | None:
    return analysers.get(media.essence) or analysers.get(media.kind)


def is_built_in(analysers: Analysers | None, media: Media) -> bool:
    """Whether documents of this kind are read by the built-in analyser, or by none."""
    return analysers is None or _chosen(analysers, media) is built_in_analysers().get(media.kind)


def extract_links(body: bytes, *, url: str, content_type: str | None = None) -> "PageLinks | None":
    """The links that `analyse` finds, and what stands beside them; None for a document that has none by its kind."""
    from lycosa.web.html import PageLinks, read_links  # later: as `built_in`

    media = identify_media(content_type, body[:SNIFF_BYTES])
    if media.kind in (MediaKind.HTML, MediaKind.XHTML):
        encoding = charset.detect_charset(body, http_charset=media.charset, form=_FORMS.get(media.kind, "html"))
        return read_links(Document(body, url, media, encoding))
    if media.kind not in (MediaKind.XML, MediaKind.FEED):
        return None
    page = analyse_page(body, url=url, content_type=content_type)
    return PageLinks(page.links, page.base_href, page.robots)


@cache
def built_in_analysers() -> Analysers:
    """The usual analysers; the first call imports them, which takes a tenth of a second."""
    from lycosa.web.analysers import ANALYSERS

    return ANALYSERS
