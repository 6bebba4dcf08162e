"""The XML analyser: any well-formed XML, and of feeds (RSS, RDF, Atom) the entries' links with their titles.

Read by expat as events, so depth costs nothing. Safe by construction: no file or network is ever opened, and a document
that declares an entity is not read beyond the declaration. Where the XML breaks, what came before counts.
Called by `page` for XML and feeds.
"""

import re
from contextlib import suppress
from xml.parsers import expat

import msgspec

from lycosa.web import text
from lycosa.web.document import Document, Page
from lycosa.web.encodings import decode_text
from lycosa.web.html import structure_of_names
from lycosa.web.links import WHITESPACE, LinkCollector, LinkKind, shorten_anchor
from lycosa.web.media import MediaKind

_ENTRIES = frozenset(("item", "entry"))
# Elements whose text makes a feed's record or an entry's, under no prefix or a usual one: `media:title` is none.
_FIELDS = frozenset(("title", "link", "description", "subtitle", "summary", "guid", "language", "id"))
_OWN_PREFIXES = frozenset(("", "atom", "atom10", "a10", "rss", "rdf"))
# Markup that feeds carry as text.
_TAG = re.compile(r"<[^<>]*>")


class _Refused(Exception):
    """The document declares an entity."""


def analyse_xml(document: Document) -> Page:
    """The page of an XML document or feed."""
    reader = _FeedReader() if document.media.kind is MediaKind.FEED else _XmlReader()
    reader.read(decode_text(document.body, document.charset).lstrip("\ufeff"))
    content = text.BETWEEN.join(reader.pieces)
    if document.media.kind is MediaKind.FEED and "<" in content:
        content = _TAG.sub(text.BETWEEN, content)
    first, last = structure_of_names(reader.names)
    return msgspec.structs.replace(
        text.page_of_text(document, content, title=reader.title, links=reader.links.links()),
        description=reader.description,
        language=reader.language or document.content_language,
        structure_first=first,
        structure_last=last,
        is_volatile=b"<Vol" in document.body,
    )


class _XmlReader:
    """Gathers tag names, text and the links that any XML may have: XLink, and the anchors of embedded XHTML."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.pieces: list[str] = []
        self.links = LinkCollector()
        self.title: str | None = None
        self.description: str | None = None
        self.language: str | None = None

    def read(self, document: str) -> None:
        parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.UseForeignDTD(True)  # an entity nobody declared, such as &nbsp;, is left out rather than an error
        parser.StartElementHandler = self.start
        parser.EndElementHandler = self.end
        parser.CharacterDataHandler = self.characters
        parser.EntityDeclHandler = _refuse
        with suppress(expat.ExpatError, _Refused):  # broken here: the part before it has been read
            parser.Parse(document, True)

    def start(self, name: str, attributes: dict[str, str]) -> None:
        local = name.rpartition(":")[2]
        self.names.append(local.lower() or "?")
        if self.language is None and "xml:lang" in attributes:
            self.language = attributes["xml:lang"].strip(WHITESPACE) or None
        href = attributes.get("xlink:href") or (attributes.get("href") if local == "a" else None)
        if href:
            self.links.add(href, LinkKind.A, rel=attributes.get("rel", ""))

    def end(self, name: str) -> None:
        pass

    def characters(self, data: str) -> None:
        self.pieces.append(data)


class _FeedReader(_XmlReader):
    """Gathers the feed's title, description and language, too, and each entry's links under its title."""

    def __init__(self) -> None:
        super().__init__()
        self._field: str | None = None
        self._value: list[str] = []
        self._in_entry = False
        self._entry: dict[str, str] = {}
        self._hrefs: list[str] = []
        self._guid_is_link = True

    def start(self, name: str, attributes: dict[str, str]) -> None:
        super().start(name, attributes)
        prefix, _, local = name.rpartition(":")
        local = local.lower()
        if prefix.lower() not in _OWN_PREFIXES:
            return
        if local in _ENTRIES:
            self._in_entry, self._entry, self._hrefs, self._guid_is_link = True, {}, [], True
        elif local in _FIELDS:
            self._field, self._value = local, []
            if local == "guid":
                self._guid_is_link = attributes.get("isPermaLink", "true").lower() != "false"
        if local == "link" and "href" in attributes:
            self._atom_link(attributes)

    def characters(self, data: str) -> None:
        super().characters(data)
        if self._field is not None:
            self._value.append(data)

    def end(self, name: str) -> None:
        prefix, _, local = name.rpartition(":")
        local = local.lower()
        if prefix.lower() not in _OWN_PREFIXES:
            return
        if local in _ENTRIES:
            self._close_entry()
        elif local == self._field:
            self._close_field(local, " ".join("".join(self._value).split()))

    def _atom_link(self, attributes: dict[str, str]) -> None:
        rel = attributes.get("rel", "alternate")
        if rel.lower() != "alternate":
            self.links.add(attributes["href"], LinkKind.LINK, rel=rel)
        elif self._in_entry:
            self._hrefs.append(attributes["href"])
        else:
            self.links.add(attributes["href"], LinkKind.A, anchor=shorten_anchor(self.title or ""))

    def _close_field(self, field: str, value: str) -> None:
        self._field = None
        if not value:
            return
        if self._in_entry:
            self._entry.setdefault(field, value)
        elif field == "link":
            self.links.add(value, LinkKind.A, anchor=shorten_anchor(self.title or ""))
        elif field == "title":
            self.title = self.title or value
        elif field in ("description", "subtitle"):
            self.description = self.description or value
        elif field == "language":
            self.language = self.language or value

    def _close_entry(self) -> None:
        entry, hrefs = self._entry, self._hrefs
        if "link" in entry:
            hrefs.append(entry["link"])
        if not hrefs and self._guid_is_link and entry.get("guid", "").lower().startswith(("http://", "https://")):
            hrefs.append(entry["guid"])
        for href in hrefs:
            self.links.add(href, LinkKind.A, anchor=shorten_anchor(entry.get("title", "")))
        self._in_entry, self._entry, self._hrefs = False, {}, []


def _refuse(*_: object) -> None:
    raise _Refused
