"""What of a document is for reading: its title, its main text without navigation, and the headings in it.

The main text is the visible text of the main element where there is exactly one, else of the body: one line for each
block, navigation and footers left out, unless next to nothing is left then. The kernel finds it on its one way over a
page; `main_text` here is the twin, for documents that need a tree. Pure; never raises on any bytes. Called by the
search index where a page's text did not come with the crawl, and by whoever shows a stored document.
"""

import re

import msgspec
import xxhash
from selectolax.lexbor import LexborHTMLParser, LexborNode

from lycosa.web.charset import to_utf8
from lycosa.web.document import Analysers, Document, Readable
from lycosa.web.html import is_in_drawing, parse_html
from lycosa.web.kernel import native
from lycosa.web.links import WHITESPACE, shorten_anchor
from lycosa.web.markdown import TARGET, markdown_of
from lycosa.web.media import SNIFF_BYTES, MediaKind, identify_media
from lycosa.web.outline import Outline, clean
from lycosa.web.page import analyse_page, canonical_url, charset_of, has_main_text, is_built_in, read_natively
from lycosa.web.pdf import read_pdf
from lycosa.web.url import base_url, join_map

UNSHOWN = "data-nosnippet"
_IN_TARGET = str.maketrans({" ": "%20", "(": "%28", ")": "%29", "\n": "", "\t": ""})  # what would end a link's target
_HIDDEN = "script,style,noscript,iframe,noembed,noframes"
_HEADINGS = "h1,h2,h3,h4,h5,h6"
_BLOCKS = (
    "address,article,aside,blockquote,br,caption,center,dd,details,dialog,dir,div,dl,dt,fieldset,figcaption,figure,"
    f"footer,form,{_HEADINGS},header,hgroup,hr,li,listing,main,menu,nav,ol,optgroup,option,p,plaintext,pre,search,"
    "section,select,summary,table,tbody,tfoot,thead,tr,ul,xmp"
)
_MAY_NAVIGATE = (
    "nav,footer,[role=navigation],[role=contentinfo],[id^=nav],[class*=nav],[class*=breadcrumb],[class*=sidebar]"
)
_NAVIGATION = re.compile(r"(?:^|[- \t\n\f\r])nav|breadcrumb|sidebar")  # of a class; "canavan" is none
_ROLES = frozenset(("navigation", "contentinfo"))
_ROOTS = frozenset(("html", "body", "main", "title"))
_LITTLE_CHARS = 200  # of a body's text: a page with less may be all navigation, and is read as a whole
_SHINGLE_WORDS = 3  # words in a row that count as one feature of a text
_NEAR_BITS = 3  # that the hashes of near texts differ in at the most
_HEADING_CHARS = 20_000  # of all headings together; they may nest

# Between two pieces of text, and where a line ends. Two pieces are two words, except where punctuation clings.
_BETWEEN, _BREAK = "\0", "\3"
_CLINGING = re.compile(r"(?<=[(\[{])\0[\0-\2\4- ]*|\0(?=[.,;:!?)\]}%'])")
_SPACE = re.compile("[\0-\2\4- ]+")
_LINE_END = re.compile(" ?\3[ \3]*")


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
        return Readable(pdf.title, (), pdf.text, pdf.text if wants_markdown else "")
    if not (has_main_text(media) and is_built_in(analysers, media)):
        page = analyse_page(body, url=url, content_type=content_type, analysers=analysers, wants_main=True)
        whole = page.readable or Readable()
        return msgspec.structs.replace(whole, markdown=whole.text) if wants_markdown else whole
    document = Document(body, url, media, charset_of(body, media), wants_main=True)
    may_hide = document.charset.startswith("UTF-16") or UNSHOWN.encode() in body.lower()
    unshown = for_snippets and may_hide
    read = None if unshown else read_natively(document)
    found = read.readable if read is not None and read.readable is not None else main_text(document, unshown=unshown)
    return msgspec.structs.replace(found, markdown=_markdown(document, unshown=unshown)) if wants_markdown else found


def _markdown(document: Document, *, unshown: bool) -> str:
    is_xml = document.media.kind is MediaKind.XHTML
    html = clean(to_utf8(document.body, document.charset))
    outline = Outline(html, inline=True, unshown=UNSHOWN if unshown else "", is_xml=is_xml)
    return with_targets(markdown_of(outline.selection()), base_url(document.url, outline.base_href))


def with_targets(markdown: str, base: str) -> str:
    """Markdown with the URLs that the targets of its links mean; one that is no http URL stays as it is written."""
    parts = markdown.split(TARGET)
    written = parts[1::2]
    joined = join_map(base, {target.partition("#")[0] for target in written})
    for place, target in enumerate(written):
        stem, mark, fragment = target.partition("#")
        url = f"{joined.get(stem, stem)}{mark}{fragment}"
        parts[2 * place + 1] = url.translate(_IN_TARGET)
    return "".join(parts)


def extract_text(body: bytes, *, url: str, content_type: str | None = None, analysers: Analysers | None = None) -> str:
    """The text alone, a line for each block."""
    return extract_readable(body, url=url, content_type=content_type, analysers=analysers).text


def simhash(text: str) -> int:
    """64 bits of a main text that are nearly the same for nearly the same texts: of each bit, what most of the hashes
    of its shingles have; 0 for no text. `are_near` compares two."""
    kernel = native()
    if kernel is not None:
        return int(kernel.simhash(text))
    words = [word for word in re.split("[ \n]", text) if word]
    size = min(_SHINGLE_WORDS, len(words))
    shingles = (" ".join(words[at : at + size]) for at in range(len(words) - size + 1))
    hashes = [f"{xxhash.xxh3_64_intdigest(shingle.encode()):064b}" for shingle in shingles] if words else []
    bits = ("1" if 2 * bit.count("1") > len(hashes) else "0" for bit in zip(*hashes, strict=True))
    return int("".join(bits) or "0", 2)


def are_near(one: int, other: int) -> bool:
    """Whether two texts are nearly the same, by their hashes; texts without words are not."""
    return one != 0 != other and (one ^ other).bit_count() <= _NEAR_BITS


def main_text(document: Document, *, unshown: bool = False) -> Readable:
    """What is for reading in an HTML document, with `unshown` without elements that ask not to be shown."""
    tree, _ = parse_html(document)
    canonical = _canonical(document, tree)
    titles, mains = [node for node in tree.css("title") if not is_in_drawing(node)], tree.css("main")
    for node in tree.css(f"{_HIDDEN},[{UNSHOWN}]" if unshown else _HIDDEN):
        node.decompose(recursive=False)  # out of the tree; titles in it stay readable
    title = next(filter(None, (" ".join(node.text(separator=" ").split()) for node in titles)), "")
    if tree.body is None:
        return Readable(title, canonical=canonical)
    has_main = len(mains) == 1 and len(tree.css("main")) == 1
    headings, room = dict[int, str](), _HEADING_CHARS  # by their places in memory
    for node in tree.body.css(_HEADINGS):
        headings[node.mem_id] = shorten_anchor(node.text(separator=" ")) if room > 0 else ""
        room -= len(headings[node.mem_id])
    for node in [*tree.css(_BLOCKS), *filter(_is_navigation, tree.css(_MAY_NAVIGATE))]:
        node.insert_before(_BREAK)
        node.insert_after(_BREAK)
    whole = Readable(title, tuple(filter(None, headings.values())), _lines(tree.body), canonical=canonical)
    root = mains[0] if has_main else tree.body
    for node in reversed(list(filter(_is_navigation, root.css(_MAY_NAVIGATE)))):
        node.decompose()
    text = _lines(root)
    if not text if has_main else len(text) <= _LITTLE_CHARS:
        return whole
    kept = tuple(filter(None, (headings[node.mem_id] for node in root.css(_HEADINGS))))
    return Readable(title, kept, text, canonical=canonical)


def _canonical(document: Document, tree: LexborHTMLParser) -> str:
    """The URL that the document names as its canonical one: the first `<link>` with that relation counts."""
    links = (node.attributes for node in tree.css("link[rel][href]"))
    hrefs = (each["href"] for each in links if "canonical" in (each["rel"] or "").lower().split())
    href = next(filter(None, ((each or "").strip(WHITESPACE) for each in hrefs)), "")
    if not href:
        return ""
    base = tree.css_first("base[href]")
    base_href = (base.attributes["href"] or "").strip(WHITESPACE) if base is not None else None
    return canonical_url(document, href, base_href)


def _lines(root: LexborNode) -> str:
    """The text of an element with breaks in it, one line for each block."""
    pieces = _CLINGING.sub("", root.text(separator=_BETWEEN, skip_empty=True))
    return _LINE_END.sub("\n", _SPACE.sub(" ", pieces)).strip(" \n")


def _is_navigation(node: LexborNode) -> bool:
    """Whether an element is navigation, or what stands on every page."""
    if node.tag in _ROOTS:
        return False
    attributes = node.attributes
    return (
        node.tag in ("nav", "footer")
        or attributes.get("role") in _ROLES
        or (attributes.get("id") or "").startswith("nav")
        or _NAVIGATION.search(attributes.get("class") or "") is not None
    )
