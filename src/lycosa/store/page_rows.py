"""What a collection keeps of every URL it has fetched: the `page` row, the `doc` row and the `link` row.

    page  url key                       → PageRow
    doc   fingerprint (8 bytes)         → digest (16 bytes) · url key of the first page with this document
    doc   claimed: bucket · digest      → the first page of all shards with it (`crawl.documents`)
    link  url key                       → LinkRow: the links that are followed, as written, with kinds and anchor texts

Written by the crawl in the commit that ends with a URL, read by it and by whoever looks at a collection.
"""

from collections.abc import Sequence

import msgspec

from lycosa.records import Family
from lycosa.store.state import State
from lycosa.web import FollowedLinks, Purpose, RobotsDirectives, objection, usage

REDIRECTS = frozenset({301, 302, 303, 307, 308})  # statuses that lead on
SELF_CANONICAL = "="  # in place of a canonical URL: the page's own
SITEMAP = "sitemap"  # the essence of what is read as one, whatever its media type


class PageRow(msgspec.Struct, array_like=True, omit_defaults=True):
    """One fetched URL. `place` is where its record stands, `original` the URL that had the same document before,
    `file_num` its number in the collection (0: it was never a page), `volatile` whether it has volatile parts,
    `failure` the name by which it is counted as failed. `size_bytes` is the body as sent, or the document where a table
    made it; `document_bytes` is the body with its content coding undone, 0 in rows that do not know it. `is_elsewhere`:
    another shard has its very payload, under `original`. `content` is the digest of its main content, where no body is
    kept that it could be made from. `relevance` to the topic is there if the store asks for it. `noindex`, `nosnippet`,
    `noarchive` and `unavailable_s` are what it said to robots (`web.robots`). `tries` is how many requests were
    made for a URL that has failed, 0 in rows that do not know it. `took_ms` is how long the request took, from its
    start to the end of the body, 0 in rows that do not know it; a revisit that finds nothing new keeps it. `fields` are
    those that pipelines have added, packed (`crawl.pipeline`). `requisite`: a page needs it to be shown, from
    which it is so many steps away. `preferences` is what was said on its use when it was fetched
    (`web.preferences`). `is_followed_only`: its links were read, and its body was not wanted (`--keep`). `simhash` is
    that of its text (`web.similarity`), empty where the text is short and in rows that do not know it; `canonical` the
    URL that the page names as canonical, `SELF_CANONICAL` for its own. `is_external`: it is out of scope,
    and was only checked."""

    status: int
    fetched_s: float
    depth: int = 0
    essence: str = ""
    size_bytes: int = 0
    place: bytes = b""
    payload_sha1: bytes = b""
    fingerprint: int = 0
    digest: bytes = b""
    text_digest: bytes = b""
    etag: str = ""
    last_modified: str = ""
    title: str = ""
    language: str = ""
    charset: str = ""
    location: str = ""
    original: str = ""
    links: int = 0
    truncated: str = ""
    noindex: bool = False
    structure: tuple[str, str] = ("", "")
    codes: tuple[int, int, int, int] = (0, 0, 0, 0)
    file_num: int = 0
    volatile: bool = False
    failure: str = ""
    document_bytes: int = 0
    is_elsewhere: bool = False
    content: bytes = b""
    relevance: float | None = None
    nosnippet: bool = False
    noarchive: bool = False
    unavailable_s: int = 0
    tries: int = 0
    took_ms: int = 0
    fields: bytes = b""
    requisite: int = 0
    preferences: str = ""
    is_followed_only: bool = False
    simhash: bytes = b""
    canonical: str = ""
    is_external: bool = False

    @property
    def is_sitemap(self) -> bool:
        return self.essence == SITEMAP

    @property
    def is_page(self) -> bool:
        """Whether it is a document that counts as a page, rather than a redirect, a sitemap, a requisite or a link that
        was checked."""
        return not (self.location or self.is_sitemap or self.requisite or self.is_external)

    @property
    def lacks_body(self) -> bool:
        """Whether it is a document whose body was not kept (`archive = none`)."""
        return bool(self.payload_sha1) and not self.place and self.is_page

    @property
    def has_failed(self) -> bool:
        """Whether it was asked for in vain, and never was a page."""
        return bool(self.failure or self.status >= 400) and not self.file_num

    @property
    def is_stored_page(self) -> bool:
        """Whether it is a page that was kept, rather than a redirect, a sitemap, an error or an answer that broke off
        at every try."""
        return self.is_page and 200 <= self.status < 300 and not (self.is_followed_only or self.has_failed)

    @property
    def directives(self) -> RobotsDirectives:
        """What the page says to robots, but for `nofollow`."""
        return RobotsDirectives(self.noindex, False, self.noarchive, self.nosnippet, self.unavailable_s)

    @property
    def is_image(self) -> bool:
        return self.essence.startswith("image/")

    def objection(self, purpose: Purpose, *, now: float) -> str:
        """Why the page may not be used for a purpose: what forbids it, or nothing."""
        return objection(self.preferences, self.directives, purpose, is_image=self.is_image, now=now)

    def usage(self, *, now: float) -> dict[str, str]:
        """What its publisher allows (`y`) and forbids (`n`), by purpose."""
        said = usage(self.preferences, self.directives, is_image=self.is_image, now=now)
        return {str(purpose): "y" if may else "n" for purpose, may in said.items()}

    def apply_directives(self, directives: RobotsDirectives) -> None:
        """Takes over what a page says to robots."""
        self.noindex, self.nosnippet, self.noarchive = directives.noindex, directives.nosnippet, directives.noarchive
        self.unavailable_s = int(directives.unavailable_s)


class PageHead(msgspec.Struct, array_like=True):
    """The first fields of a `PageRow`, for whoever reads many rows and no more of them: an eighth of the time."""

    status: int
    fetched_s: float
    depth: int = 0
    essence: str = ""
    size_bytes: int = 0


class LinkRow(msgspec.Struct, array_like=True, omit_defaults=True):
    """The followed links of a document, in columns, before they are joined."""

    hrefs: tuple[str, ...]
    base_href: str = ""
    kinds: bytes = b""
    anchors: tuple[str, ...] = ()


_encode = msgspec.msgpack.Encoder().encode
_decode_page = msgspec.msgpack.Decoder(PageRow).decode
_decode_head = msgspec.msgpack.Decoder(PageHead).decode
_decode_links = msgspec.msgpack.Decoder(LinkRow).decode


def pack_row(row: PageRow | LinkRow) -> bytes:
    return _encode(row)


def link_row(links: FollowedLinks | LinkRow) -> LinkRow:
    """The row of a page's links."""
    return links if isinstance(links, LinkRow) else LinkRow(links.hrefs, links.base_href, links.kinds, links.anchors)


def pack_links(links: FollowedLinks) -> bytes:
    """The packed row of a page's links; the kernel has made it beside the event loop."""
    return links.kernel.row() if links.kernel is not None else _encode(link_row(links))


def unpack_page(row: bytes) -> PageRow:
    return _decode_page(row)


def unpack_head(row: bytes) -> PageHead:
    return _decode_head(row)


def page_at(state: State, key: bytes) -> PageRow | None:
    """The row of the page with this URL key, if there is one."""
    row = state.get(Family.PAGE, key)
    return unpack_page(row) if row else None


def pages_at(state: State, keys: Sequence[bytes]) -> list[PageRow | None]:
    """The rows of the pages with these URL keys, each if there is one."""
    return [unpack_page(row) if row else None for row in state.get_many(Family.PAGE, keys)]


def unpack_links(row: bytes) -> LinkRow:
    return _decode_links(row)


def doc_key(fingerprint: int) -> bytes:
    return fingerprint.to_bytes(8)
