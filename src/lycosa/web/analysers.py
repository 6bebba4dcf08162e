"""The built-in analysers by the kind of document they read, and the one of plain text.

Imported when the first document comes: the libraries behind it need not be there before the first request is out.
"""

from collections.abc import Mapping

from lycosa.web import digests, text
from lycosa.web.document import Analyser, Document, Page
from lycosa.web.encodings import decode
from lycosa.web.feed import analyse_xml
from lycosa.web.html import analyse_html
from lycosa.web.media import Kind


def analyse_text(document: Document) -> Page:
    """The page of plain text. It has no links: an address in prose is a mention, often cut or with a comma after."""
    content = decode(document.body, document.charset).lstrip("\ufeff")
    visible, main = text.collapse(content.replace(text.MAIN_START, " ").replace(text.MAIN_END, " "))
    return Page(
        url=document.url,
        media=document.media,
        charset=document.charset,
        fingerprint=document.fingerprint,
        digest=document.digest,
        language=document.content_language,
        text_utf8=visible,
        codes=text.codes_of(visible),
        text_digest=digests.text_digest(main),
    )


ANALYSERS: Mapping[Kind, Analyser] = {
    Kind.HTML: analyse_html,
    Kind.XHTML: analyse_html,
    Kind.XML: analyse_xml,
    Kind.FEED: analyse_xml,
    Kind.TEXT: analyse_text,
}
