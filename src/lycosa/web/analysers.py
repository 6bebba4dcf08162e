"""The built-in analysers by the kind of document they read, and the one of plain text.

Imported when the first document comes: the libraries behind it need not be there before the first request is out.
"""

from lycosa.web import document as digests
from lycosa.web import text
from lycosa.web.document import Analysers, Document, Page
from lycosa.web.encodings import decode_text
from lycosa.web.feed import analyse_xml
from lycosa.web.html import analyse_html
from lycosa.web.links import Links
from lycosa.web.media import MediaKind

NO_LINKS = Links()


def analyse_text(document: Document) -> Page:
    """The page of plain text. It has no links: an address in prose is a mention, often cut or with a comma after."""
    return page_of_text(document, decode_text(document.body, document.charset).lstrip("\ufeff"))


def page_of_text(document: Document, content: str, *, title: str | None = None, links: Links = NO_LINKS) -> Page:
    """The page of a document of which the text is known: for analysers of formats that have little else to say."""
    visible, main = text.collapse(content.replace(text.MAIN_START, " ").replace(text.MAIN_END, " "))
    return Page(
        url=document.url,
        media=document.media,
        charset=document.charset,
        fingerprint=document.fingerprint,
        digest=document.digest,
        title=title,
        language=document.content_language,
        links=links,
        text_utf8=visible,
        codes=text.codes_of(visible),
        text_digest=digests.text_digest(main),
    )


ANALYSERS: Analysers = {
    MediaKind.HTML: analyse_html,
    MediaKind.XHTML: analyse_html,
    MediaKind.XML: analyse_xml,
    MediaKind.FEED: analyse_xml,
    MediaKind.TEXT: analyse_text,
}
