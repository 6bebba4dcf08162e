"""The analysis of a fetched document: which kind it is, in which encoding, and the page it makes.

    analyse_page(body, url=…, content_type=…)  →  identify_media  →  detect_charset  →  the kind's analyser  →  Page

`analyse_page` is the one way in: bytes, headers, address and what is wanted go in, a record comes out. It is pure and
never raises on any bytes; a kind without an analyser (images, PDF, archives) gives a page with digests and nothing
else. Analysers are a registry by kind: whoever passes another one replaces some, or adds ones for further kinds or
media types. Called once a document.
"""

from collections.abc import Mapping
from functools import cache

from lycosa.web import charset
from lycosa.web.document import Analyser, Analysers, Document, Page, document_digest, document_fingerprint
from lycosa.web.media import SNIFF_BYTES, Media, MediaKind, identify_media

# Where a document of this kind declares its encoding.
_FORMS: Mapping[MediaKind, charset.Form] = {
    MediaKind.XHTML: "xml",
    MediaKind.XML: "xml",
    MediaKind.FEED: "xml",
    MediaKind.TEXT: "text",
}


def analyse_page(
    body: bytes,
    *,
    url: str,
    content_type: str | None = None,
    content_language: str | None = None,
    links_only: bool = False,
    analysers: Analysers | None = None,
    fingerprint: int | None = None,
    digest: bytes | None = None,
) -> Page:
    """The page of `body` (content coding undone). `content_type` and `content_language` are the headers as sent.

    With `links_only` the page has its links, `base_href` and `robots`, as the built-in analysers find them, and no
    digests: what whoever asks for nothing else gets in half the time. Who has made the digests already hands them on,
    since a body is long.
    """
    media = identify_media(content_type, body[:SNIFF_BYTES])
    if links_only:
        return _with_links(Document(body, url, media, charset_of(body, media)))
    fingerprint = document_fingerprint(body) if fingerprint is None else fingerprint
    digest = document_digest(body) if digest is None else digest
    analyser = built_in_analysers().get(media.kind) if analysers is None else _chosen(analysers, media)
    if analyser is None:
        return Page(url=url, media=media, charset=None, fingerprint=fingerprint, digest=digest)
    language = (content_language or "").partition(",")[0].strip() or None
    return analyser(Document(body, url, media, charset_of(body, media), fingerprint, digest, language))


def _with_links(document: Document) -> Page:
    kind = document.media.kind
    if kind in (MediaKind.HTML, MediaKind.XHTML):
        from lycosa.web.html import read_links  # lazy: the parser takes 30 ms that the first request need not wait for

        return read_links(document)
    if kind.has_links:
        return built_in_analysers()[kind](document)
    return Page(url=document.url, media=document.media, charset=None, fingerprint=0, digest=b"")


def charset_of(body: bytes, media: Media) -> str:
    """The encoding of a document, by its header and by what documents of its kind declare."""
    return charset.detect_charset(body, http_charset=media.charset, form=_FORMS.get(media.kind, "html"))


def _chosen(analysers: Analysers, media: Media) -> Analyser | None:
    return analysers.get(media.essence) or analysers.get(media.kind)


def is_built_in(analysers: Analysers | None, media: Media) -> bool:
    """Whether documents of this kind are read by the built-in analyser, or by none."""
    return analysers is None or _chosen(analysers, media) is built_in_analysers().get(media.kind)


@cache
def built_in_analysers() -> Analysers:
    """The analysers by the kind of document they read."""
    # lazy: the parser takes 30 ms that the first request need not wait for
    from lycosa.web.feed import analyse_xml

    # lazy: as above
    from lycosa.web.html import analyse_html

    # lazy: as above
    from lycosa.web.text import analyse_text

    return {
        MediaKind.HTML: analyse_html,
        MediaKind.XHTML: analyse_html,
        MediaKind.XML: analyse_xml,
        MediaKind.FEED: analyse_xml,
        MediaKind.TEXT: analyse_text,
    }
