"""The records of a document's analysis: `Document` goes into an analyser, `Page` comes out; and the digests of both.

All records are frozen and survive pickling. A `Page` holds what a document says of itself, nothing resolved: references
are as written, and `web.url` joins them with `base_href` and the page's address. No heavy library is imported here,
since the crawl loop looks a document up by its digests before it is analysed.
"""

import hashlib
from collections.abc import Mapping
from math import sqrt
from typing import Protocol

import msgspec
import xxhash

from lycosa.web.kernel import native
from lycosa.web.links import Links
from lycosa.web.media import Media
from lycosa.web.url import FollowedLinks, LinkRules

DIGEST_BYTES = 16
# What has it may have marked volatile parts (`web.volatile`).
VOLATILE_MARK = b"data-vol"
# Counts up, here and in native/src/outline.rs, with every change of what the main text of a document is. Nothing that
# is compared between two visits is made of it: a new version makes no page a changed one.
MAIN_TEXT_VERSION = 3


def document_fingerprint(body: bytes) -> int:
    """The 64-bit number by which an equal document is looked up (XXH3; anybody can make two bodies collide)."""
    return int(xxhash.xxh3_64_intdigest(body))


def payload_sha1(body: bytes) -> bytes:
    """The digest by which archives name a body."""
    return hashlib.sha1(body, usedforsecurity=False).digest()


def document_digest(body: bytes) -> bytes:
    """The 128 bits that confirm a fingerprint: the archive's SHA-1, cut. Nobody can make another document pass for a
    stored one of somebody else; whoever makes two that collide, in this and in the fingerprint, has one of his own
    kept."""
    return payload_sha1(body)[:DIGEST_BYTES]


def document_digests(payload: bytes, body: bytes) -> tuple[int, bytes, bytes]:
    """Of the payload of an answer and the document in it: the document's fingerprint, the payload's SHA-1, and the
    document's digest. Other threads run meanwhile."""
    kernel = native()
    if kernel is not None:
        made: tuple[int, bytes, bytes] = kernel.document_digests(payload, body)
        return made
    sha1 = payload_sha1(payload)
    digest = sha1[:DIGEST_BYTES] if body is payload else document_digest(body)
    return document_fingerprint(body), sha1, digest


def text_digest(main_text: bytes) -> bytes:
    """128 bits of the main text, to compare a page with its own past: speed counts, forgery gains nothing (XXH3)."""
    return bytes(xxhash.xxh3_128_digest(main_text))


class TextCodes(msgspec.Struct, frozen=True):
    """The exact sums that both text codes of a page are made of."""

    total: int = 0
    squares: int = 0
    distinct: int = 0
    length: int = 0

    @property
    def mean_per_symbol(self) -> float:
        """The sum of the character codes over the number of distinct characters; 0 for no text."""
        return self.total / self.distinct if self.distinct else 0.0

    @property
    def root_of_squares(self) -> float:
        """The square root of the sum of squared character codes over the number of characters; 0 for no text."""
        return sqrt(self.squares) / self.length if self.length else 0.0


class Document(msgspec.Struct, frozen=True):
    """A body on its way to an analyser: content coding undone, encoding known; its digests are handed on to the page.
    `wants_main`: the page should have its main text, if that costs no second parse. `wants_simhash`: it should have the
    SimHash of its main text. `follow`: it should have the links that are followed by these rules, if they can be told
    in the same step."""

    body: bytes
    url: str
    media: Media
    charset: str
    fingerprint: int = 0
    digest: bytes = b""
    content_language: str | None = None
    wants_main: bool = False
    wants_simhash: bool = False
    follow: LinkRules | None = None


class Readable(msgspec.Struct, frozen=True, array_like=True):
    """What of a document is for reading: its title, its main text, one line for each block, the headings in it, and the
    same as Markdown, where that was asked for. `canonical` is the URL that the document names as its canonical one. The
    text is kept as bytes, as it goes to the search index; made of a str by `of`."""

    title: str = ""
    headings: tuple[str, ...] = ()
    text_utf8: bytes = b""
    markdown: str = ""
    canonical: str = ""

    @classmethod
    def of(cls, title: str, headings: tuple[str, ...], text: str, markdown: str = "") -> "Readable":
        return cls(title, headings, text.encode("utf-8", "replace"), markdown)

    @property
    def text(self) -> str:
        return self.text_utf8.decode("utf-8", "replace")


class Page(msgspec.Struct, frozen=True):
    """One analysed document. Whatever it does not have is `None`, empty or zero.

    `fingerprint` and `digest` are of the body's bytes, `text_digest` is of the main element's text, or of all text
    where there is not exactly one main element. `structure_first` and `structure_last` are the structure strings (see
    `html`), `codes` the text codes. `robots` are the contents of `<meta name=robots>`, and of those that name one
    robot, and what is said on the use of the page (`web.preferences`), with that name before; `headings` are pairs of
    level and text. `is_volatile`: it has marks of volatile parts, or what looks like them. `text_utf8` is the text as
    bytes, because most callers never need its characters.
    `is_cut`: only the beginning was analysed, since the whole was built to choke a parser. `readable` and `followed`
    are there only if they were asked for, and the kernel read the page; `simhash` (see there) if it was asked for.
    """

    url: str
    media: Media
    charset: str | None
    fingerprint: int
    digest: bytes
    title: str | None = None
    description: str | None = None
    canonical: str | None = None
    language: str | None = None
    base_href: str | None = None
    robots: tuple[str, ...] = ()
    links: Links = Links()
    text_utf8: bytes = b""
    headings: tuple[tuple[int, str], ...] = ()
    structure_first: str = ""
    structure_last: str = ""
    codes: TextCodes = TextCodes()
    text_digest: bytes = b""
    is_cut: bool = False
    is_volatile: bool = False
    readable: Readable | None = None
    simhash: bytes = b""
    followed: FollowedLinks | None = None

    @property
    def text(self) -> str:
        return self.text_utf8.decode("utf-8", "replace")


class Analyser(Protocol):
    """A reader of one kind of document. Contract: any bytes give a page, in time linear in their number; it never
    raises."""

    def __call__(self, document: Document) -> Page: ...


Analysers = Mapping[str, Analyser]  # by kind, or by media type, which goes first
