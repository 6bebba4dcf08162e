"""The analysis of a fetched document: which kind it is, in which encoding, and the page that its analyser makes of it.

    analyse_page(body, url=…, content_type=…)  →  identify_media  →  detect_charset  →  the kind's analyser  →  Page

`analyse_page` is the one way in: bytes, headers, address and what is wanted go in, a record comes out. It is pure and
never raises on any bytes; a kind without an analyser (images, PDF, archives) gives a page with digests and nothing
else. Analysers are a registry by kind: whoever passes another one replaces some, or adds ones for further kinds or
media types. Called once a document.

Analysers, like all parts of a crawl, can be named in the settings: `named_part` finds an entry point of the group
`lycosa.parts`, or `module:attribute`, and calls it with the settings to get the part. Built-in parts are found in the
same way. This module imports no part itself: the search index reads documents without what a crawl needs. Called by the
assembly of a crawl, and by whoever reads the documents of a collection.
"""

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

import msgspec

from lycosa.errors import PartError
from lycosa.web import charset
from lycosa.web.document import (
    VOLATILE_MARK,
    Analyser,
    Analysers,
    Document,
    Page,
    Readable,
    TextCodes,
    document_digest,
    document_fingerprint,
)
from lycosa.web.kernel import native
from lycosa.web.links import MAX_LINKS, Links, escape_queries, escape_query
from lycosa.web.media import SNIFF_BYTES, Media, MediaKind, identify_media
from lycosa.web.url import FollowedLinks, LinkRules, base_url, parse_url

if TYPE_CHECKING:
    from importlib.metadata import EntryPoints

GROUP = "lycosa.parts"  # of entry points

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
    analysers: Analysers | None = None,
    fingerprint: int | None = None,
    digest: bytes | None = None,
    wants_main: bool = False,
    wants_simhash: bool = False,
    follow: LinkRules | None = None,
) -> Page:
    """The page of `body` (content coding undone). `content_type` and `content_language` are the headers as sent.

    Who has made the digests already hands them on, since a body is long. `wants_main` and `follow`: the page should
    have its main text, and the links that are followed by these rules, if that costs no second step. `wants_simhash`:
    it should have the SimHash of its main text.
    """
    media = identify_media(content_type, body[:SNIFF_BYTES])
    fingerprint = document_fingerprint(body) if fingerprint is None else fingerprint
    digest = document_digest(body) if digest is None else digest
    analyser = built_in_analysers().get(media.kind) if analysers is None else _chosen(analysers, media)
    if analyser is None:
        # A PDF has a text, which is read later: it would hold the event loop for too long.
        read = Readable() if wants_main and media.kind is not MediaKind.PDF else None
        return Page(url=url, media=media, charset=None, fingerprint=fingerprint, digest=digest, readable=read)
    language = _first_language(content_language)
    encoding = charset_of(body, media)
    page = analyser(
        Document(body, url, media, encoding, fingerprint, digest, language, wants_main, wants_simhash, follow)
    )
    if wants_simhash and not (has_main_text(media) and is_built_in(analysers, media)):
        page = msgspec.structs.replace(page, simhash=_simhash_of(page.text))
    if wants_main and page.readable is None and not (has_main_text(media) and is_built_in(analysers, media)):
        headings = tuple(text for _, text in page.headings)
        read = Readable(page.title or "", headings, page.text_utf8)
        return msgspec.structs.replace(page, readable=read)
    return page


def _first_language(header: str | None) -> str | None:
    return (header or "").partition(",")[0].strip() or None


def has_main_text(media: Media) -> bool:
    """Is the main text of such a document another than all of its text?"""
    return media.kind in (MediaKind.HTML, MediaKind.XHTML)


def analyse_html(document: Document) -> Page:
    """The page of an HTML or XHTML document, by the native kernel, or by its twin where there is none or the document
    needs a tree."""
    return read_natively(document) or _parsed(document)


def _parsed(document: Document) -> Page:
    from lycosa.web import html  # lazy: the parser takes 30 ms that no start waits for, and few pages need it

    return html.analyse_html(document)


def _simhash_of(text: str) -> bytes:
    from lycosa.web.similarity import simhash  # lazy: numpy, which few documents need here

    return simhash(text)


def html_document(
    body: bytes,
    *,
    url: str,
    content_type: str | None = None,
    content_language: str | None = None,
    wants_main: bool = False,
    wants_simhash: bool = False,
    follow: LinkRules | None = None,
    finds_charset: bool = True,
) -> Document | None:
    """The document of `body`, without digests, for whoever has it read elsewhere; None where it is not HTML. Its
    encoding is left open unless `finds_charset`."""
    media = identify_media(content_type, body[:SNIFF_BYTES])
    if not has_main_text(media):
        return None
    encoding, language = charset_of(body, media) if finds_charset else "", _first_language(content_language)
    return Document(body, url, media, encoding, 0, b"", language, wants_main, wants_simhash, follow)


def kernel_arguments(
    document: Document,
) -> tuple[str, bool, bool, bool, tuple[str, tuple[bool, bool, int, int]] | None]:
    """What the kernel has to know of an HTML document beside its bytes."""
    rules = document.follow
    follow = None if rules is None else (document.url, rules.for_kernel)
    is_xml = document.media.kind is MediaKind.XHTML
    return document.charset, is_xml, document.wants_main, document.wants_simhash, follow


def read_natively(document: Document) -> Page | None:
    """The page of an HTML or XHTML document; None where there is no kernel or the document needs a tree."""
    kernel = native()
    found = kernel and kernel.analyse_html(document.body, *kernel_arguments(document))
    return _page_of(document, found, document.fingerprint, document.digest) if found is not None else None


def beginning_read(body: bytes, content_type: str | None) -> int:
    """How many bytes of a document its page, apart from a main text, is made of: of one with too many tags it is its
    beginning alone, where that can be told by the bytes as they are, and without a tree."""
    media, kernel = identify_media(content_type, body[:SNIFF_BYTES]), native()
    if kernel is None or media.kind is not MediaKind.HTML:
        return len(body)
    encoding = charset_of(body, media)
    is_same = encoding == charset_of(body[: charset.LATE_BYTES], media)
    if not is_same or not (encoding == "UTF-8" or (encoding == charset.DEFAULT_CHARSET and body.isascii())):
        return len(body)
    from lycosa.web.hazard import MAX_TAGS  # lazy: its patterns take milliseconds that no start waits for

    length: int = kernel.safe_length(body)
    is_by_tags = body[length : length + 1] == b"<" and body.count(b"<", 0, length) == MAX_TAGS
    # With the tag that is too many, since that says that the document was cut.
    return length + 1 if is_by_tags and body.find(VOLATILE_MARK, length) < 0 else len(body)


def page_from_kernel(document: Document, found: Any, fingerprint: int, digest: bytes) -> Page:
    """The page of a document that the kernel has read and made the digests of; where it found that a tree is needed,
    one is built."""
    if found is None:
        return _parsed(msgspec.structs.replace(document, fingerprint=fingerprint, digest=digest))
    return _page_of(document, found, fingerprint, digest)


def _page_of(document: Document, found: Any, fingerprint: int, digest: bytes) -> Page:
    head, written, text, main, simhash, found_followed, is_cut, is_volatile = found
    title, description, canonical, language, base_href, robots = head
    links = escape_queries(as_written := Links.by_kernel(written), document.charset)
    followed = None
    if found_followed is not None and links is as_written:
        followed = FollowedLinks.by_kernel(found_followed, base_url(document.url, base_href), base_href or "")
    visible, headings, first, last, codes, text_digest = text
    return Page(
        url=document.url,
        media=document.media,
        charset=document.charset,
        fingerprint=fingerprint,
        digest=digest,
        title=title,
        description=description,
        canonical=canonical and escape_query(canonical, document.charset),
        language=language or document.content_language,
        base_href=base_href,
        robots=robots,
        links=links,
        followed=followed,
        text_utf8=visible,
        headings=headings,
        structure_first=first,
        structure_last=last,
        codes=TextCodes(*codes),
        text_digest=text_digest,
        is_cut=is_cut or len(written) >= MAX_LINKS,
        is_volatile=is_volatile,
        readable=None if main is None else readable_of(document, main),
        simhash=simhash,
    )


def readable_of(document: Document, found: Any) -> Readable:
    """What the kernel, or its twin, found for reading."""
    title, text, headings, canonical, base_href, markdown = found
    named = canonical_url(document, canonical, base_href) if canonical else ""
    return Readable(title, tuple(headings), text, markdown, named)


def canonical_url(document: Document, href: str, base_href: str | None) -> str:
    """The URL that a document names as its canonical one; empty where that leads nowhere."""
    url = parse_url(escape_query(href, document.charset), base_url(document.url, base_href))
    return url.href if url is not None else ""


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
    from lycosa.web.text import analyse_text

    return {
        MediaKind.HTML: analyse_html,
        MediaKind.XHTML: analyse_html,
        MediaKind.XML: analyse_xml,
        MediaKind.FEED: analyse_xml,
        MediaKind.TEXT: analyse_text,
    }


class UnknownPart(PartError):
    """No part has this name."""


def named_part(kind: str, name: str, settings: Any) -> Any:
    """The part that the settings name; raises PartError that says what went wrong."""
    try:
        return _maker(kind, name)(settings)
    except PartError:
        raise
    except ImportError as error:
        hint = "install its package, or name its folder in PYTHONPATH"
        raise PartError(f"the {kind} {name!r} cannot be imported: {error}; {hint}") from error
    except Exception as error:  # whatever a user's part raises is the part's
        raise PartError(f"the {kind} {name!r} cannot be made: {error!r}") from error


def _maker(kind: str, name: str) -> Callable[[Any], Any]:
    module, colon, attribute = name.partition(":")
    if colon:
        return getattr(import_module(module), attribute)  # type: ignore[no-any-return]
    known = {entry.name: entry for entry in _entry_points() if entry.name.startswith(f"{kind}.")}
    if f"{kind}.{name}" not in known:
        names = ", ".join(sorted(entry.partition(".")[2] for entry in known)) or "none"
        raise UnknownPart(f"there is no {kind} called {name!r}; there is {names}, or write module:attribute")
    return known[f"{kind}.{name}"].load()  # type: ignore[no-any-return]


@cache
def _entry_points() -> "EntryPoints":
    """The parts of all installed packages, looked up once, which takes some ten milliseconds."""
    from importlib.metadata import entry_points  # lazy: 5 ms, which the follower of a crawl need not take

    return entry_points(group=GROUP)


# analysers


def named_analysers(settings: Any, given: Mapping[str, Analyser] | None = None) -> Analysers | None:
    """The analysers by kind of document or media type: the built-in ones, those that `settings.analysers` name, and
    those given as objects, the later in place of the earlier. None means the built-in ones only, which are imported
    with the first document."""
    named = dict(entry.split("=", 1) for entry in settings.analysers)
    parts: dict[str, Analyser] = {kind: named_part("analyser", name, settings) for kind, name in named.items()}
    parts |= given or {}
    if unknown := [kind for kind in parts if "/" not in kind and kind not in set(MediaKind)]:
        names = f"there is {', '.join(MediaKind)}, or write TYPE/SUBTYPE"
        raise PartError(f"there is no kind of document called {unknown[0]!r}; {names}")
    return {**built_in_analysers(), **{kind: _strict(part, kind) for kind, part in parts.items()}} if parts else None


def reads_links_as_usual(analysers: Analysers | None) -> bool:
    """Whether the built-in analysers read the links. Only then may those of a part of a document count early."""
    return analysers is None or built_in_analysers().items() <= analysers.items()


def _strict(part: Analyser, kind: str) -> Analyser:
    """Wraps an analyser, so that what it must not do ends the crawl with a sentence; nothing is lost."""

    def read(document: Document) -> Page:
        try:
            page = part(document)
        except Exception as error:  # whatever a user's part raises is the part's
            raise PartError(f"the analyser of {kind} failed on {document.url}: {error!r}") from error
        if not isinstance(page, Page):
            raise PartError(
                f"the analyser of {kind} gave {type(page).__name__} for {document.url}, where a Page was due"
            )
        try:
            msgspec.msgpack.encode(page, enc_hook=_columns_of)
        except UnicodeEncodeError as error:
            raise PartError(
                f"the analyser of {kind} gave text for {document.url} that cannot be kept: {error.object[:80]!r} has"
                " half of a surrogate pair in it"
            ) from error
        return page

    return part if part in built_in_analysers().values() else read


def _columns_of(links: Any) -> Any:
    return links.columns


def html_analyser(_: Any) -> Analyser:
    """The built-in analyser named `html`."""
    return built_in_analysers()[MediaKind.HTML]


def xml_analyser(_: Any) -> Analyser:
    """The built-in analyser named `xml`, which reads feeds, too."""
    return built_in_analysers()[MediaKind.XML]


def text_analyser(_: Any) -> Analyser:
    """The built-in analyser named `text`."""
    return built_in_analysers()[MediaKind.TEXT]
