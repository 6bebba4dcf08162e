"""The analysis of a fetched document: which kind it is, in which encoding, and the page it makes.

    analyse(body, url=…, content_type=…)  →  media.identify  →  charset.detect  →  the kind's analyser  →  Page

Pure, and never raises on any bytes; a kind without an analyser (images, PDF, archives) gives a page with digests and
nothing else. The analysers are a registry by kind: pass another to replace or add one. Called once a document.
"""

from collections.abc import Mapping

from lycosa.web import charset, text
from lycosa.web.document import Analyser, Document, Page
from lycosa.web.encodings import decode
from lycosa.web.feed import analyse_xml
from lycosa.web.html import analyse_html
from lycosa.web.media import SNIFF_BYTES, Kind, identify

__all__ = ["ANALYSERS", "Analyser", "Document", "Page", "analyse"]

# Where a document of this kind declares its encoding.
_FORMS: Mapping[Kind, charset.Form] = {Kind.XML: "xml", Kind.XHTML: "xml", Kind.FEED: "xml", Kind.TEXT: "text"}


def analyse_text(document: Document) -> Page:
    """The page of plain text. It has no links: an address in prose is a mention, often cut or with a comma after."""
    content = decode(document.body, document.charset).lstrip("\ufeff")
    visible, main = text.collapse(content.replace(text.MAIN_START, " ").replace(text.MAIN_END, " "))
    return Page(
        url=document.url,
        media=document.media,
        charset=document.charset,
        fingerprint=text.document_fingerprint(document.body),
        digest=text.document_digest(document.body),
        language=document.content_language,
        text=visible.decode("utf-8"),
        codes=text.codes_of(visible),
        text_digest=text.text_digest(main),
    )


ANALYSERS: Mapping[Kind, Analyser] = {
    Kind.HTML: analyse_html,
    Kind.XHTML: analyse_html,
    Kind.XML: analyse_xml,
    Kind.FEED: analyse_xml,
    Kind.TEXT: analyse_text,
}


def analyse(
    body: bytes,
    *,
    url: str,
    content_type: str | None = None,
    content_language: str | None = None,
    analysers: Mapping[Kind, Analyser] = ANALYSERS,
) -> Page:
    """The page of `body` (content coding undone). `content_type` and `content_language` are the headers as sent."""
    media = identify(content_type, body[:SNIFF_BYTES])
    analyser = analysers.get(media.kind)
    if analyser is None:
        fingerprint, digest = text.document_fingerprint(body), text.document_digest(body)
        return Page(url=url, media=media, charset=None, fingerprint=fingerprint, digest=digest)
    encoding = charset.detect(body, http_charset=media.charset, form=_FORMS.get(media.kind, "html"))
    language = (content_language or "").partition(",")[0].strip() or None
    return analyser(Document(body, url, media, encoding, language))
