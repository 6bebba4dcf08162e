"""What of a document is for reading: its title, its main text without navigation, the headings in it, and Markdown.

There is one extractor, for `get`, `page.text` and `page.markdown`, the search index, and the exports: `outline` finds
the blocks of a page and says which are for reading, `text_of` and `markdown_of` write them. The kernel has the same
(native/src/outline.rs, markdown.rs). Pure; never raises on any bytes. Called by the search index where a page's text
did not come with the crawl, and by whoever shows a stored document.
"""

import msgspec

from lycosa.web.charset import to_utf8
from lycosa.web.document import Analysers, Document, Readable
from lycosa.web.kernel import native
from lycosa.web.markdown import TARGET, markdown_of
from lycosa.web.markup import clean, without_self_closed
from lycosa.web.media import SNIFF_BYTES, MediaKind, identify_media
from lycosa.web.outline import Outline
from lycosa.web.page import analyse_page, charset_of, has_main_text, is_built_in, readable_of
from lycosa.web.pdf import read_pdf
from lycosa.web.plain_text import text_of
from lycosa.web.url import base_url, join_map

UNSHOWN = "data-nosnippet"


def extract_readable(
    body: bytes,
    *,
    url: str,
    content_type: str | None = None,
    analysers: Analysers | None = None,
    for_snippets: bool = False,
    wants_markdown: bool = False,
) -> Readable:
    """What is for reading in `body` (content coding undone); empty for what has no text, such as images.

    Where `analysers` replace the built-in one for HTML, it is what that analyser finds. `for_snippets` leaves out what
    asks not to be shown in results (`data-nosnippet`). With `wants_markdown` it is there as Markdown, too.
    """
    media = identify_media(content_type, body[:SNIFF_BYTES])
    if media.kind is MediaKind.PDF and is_built_in(analysers, media):
        pdf = read_pdf(body)
        return Readable.of(pdf.title, (), pdf.text, pdf.text if wants_markdown else "")
    if not (has_main_text(media) and is_built_in(analysers, media)):
        page = analyse_page(body, url=url, content_type=content_type, analysers=analysers, wants_main=True)
        whole = page.readable or Readable()
        return msgspec.structs.replace(whole, markdown=whole.text) if wants_markdown else whole
    document = Document(body, url, media, charset_of(body, media))
    return main_text(document, unshown=for_snippets, wants_markdown=wants_markdown)


def main_text(document: Document, *, unshown: bool = False, wants_markdown: bool = False) -> Readable:
    """What is for reading in an HTML document, with `unshown` without elements that ask not to be shown."""
    kernel, is_xml = native(), document.media.kind is MediaKind.XHTML
    found = kernel and kernel.read_readable(document.body, document.charset, is_xml, unshown, wants_markdown)
    found = found or read_by_twin(document, unshown=unshown, wants_markdown=wants_markdown)
    readable = readable_of(document, found)
    if not wants_markdown:
        return readable
    base = base_url(document.url, found[4])
    return msgspec.structs.replace(readable, markdown=with_targets(readable.markdown, base))


def read_by_twin(
    document: Document, *, unshown: bool, wants_markdown: bool
) -> tuple[str, bytes, list[str], str, str, str]:
    """The kernel's twin: title, text, headings, the canonical URL and the base as they are written, and Markdown."""
    body, is_xml = to_utf8(document.body, document.charset), document.media.kind is MediaKind.XHTML
    html = clean(without_self_closed(body) if is_xml else body)
    outline = Outline(html, inline=wants_markdown, unshown=UNSHOWN if unshown else "", is_xml=is_xml)
    runs = outline.selection()
    text, headings = text_of(runs)
    markdown = markdown_of(runs) if wants_markdown else ""
    return outline.title, text.encode("utf-8", "replace"), headings, outline.canonical, outline.base_href, markdown


def with_targets(markdown: str, base: str) -> str:
    """Markdown with the URLs that the targets of its links mean; one that is no http URL stays as it is written."""
    if TARGET not in markdown:
        return markdown
    parts = markdown.split(TARGET)
    split = {target: target.partition("#") for target in parts[1::2]}  # a page names most of its targets several times
    joined = join_map(base, {stem for stem, _, _ in split.values()})
    meant = TARGET.join(f"{joined.get(stem, stem)}{mark}{fragment}" for stem, mark, fragment in split.values())
    known = dict(zip(split, _escaped(meant).split(TARGET), strict=True))  # all at once: a page has some sixty
    parts[1::2] = [known[target] for target in parts[1::2]]
    return "".join(parts)


def _escaped(urls: str) -> str:
    """URLs without what would end a link's target; `str.translate` takes ten times as long."""
    urls = urls.replace(" ", "%20").replace("(", "%28").replace(")", "%29")
    return urls.replace("\n", "").replace("\t", "")


def extract_text(body: bytes, *, url: str, content_type: str | None = None, analysers: Analysers | None = None) -> str:
    """The text alone, a line for each block."""
    return extract_readable(body, url=url, content_type=content_type, analysers=analysers).text
