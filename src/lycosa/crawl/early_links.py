"""Links before their document is whole: from what has arrived of it, from its headers, from the table beside it.

A slow or large document feeds the frontier before its last byte. What is taken early is what the whole document would
have given: the beginning of a document is parsed as the whole is, what is cut off at its end counts for nothing, and
addresses with other letters than ASCII wait for the encoding to be known. When the document is there, the two are
compared; a host whose documents keep saying something else in the end is not read early any more.
With a ranking only tables are taken early: else a link is judged by its whole page.
Memory: the links of documents in flight.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from lycosa.crawl.admission import Admission
from lycosa.crawl.reading import LinkRules, decoded_body, followed, header_hrefs, page_directives
from lycosa.crawl.shard import Shard
from lycosa.frontier import Lease
from lycosa.records import Response
from lycosa.store import LinkRow
from lycosa.web import SNIFF_BYTES, MediaKind, Url, analyse_page, identify_media

# Documents of a host that did not have what was taken early, after which it is not done there any more.
MISLED_MOST = 3
# What has come is not read early if it unpacks to more than this: such a document is waited for.
CAP_BYTES = 4 * 1024 * 1024
# A `<base>` changes every link, and stands before these.
_HEAD_ENDS = (b"<body", b"</head")


class EarlyClaim(NamedTuple):
    """What a table says of its document: its digest, and the URLs of its links; None: there is no table."""

    document: str
    urls: frozenset[str] | None
    has_parts: bool = False


class TakenEarly(NamedTuple):
    """What was taken early for one document: the URLs that were seen in it, and all those that were new."""

    urls: set[str]
    new: list[Url]
    claim: EarlyClaim | None = None


class EarlyLinks:
    """Takes links early. Holds, for documents in flight, what was taken."""

    def __init__(self, shard: Shard, admission: Admission, following: LinkRules) -> None:
        self._shard, self._admission, self._following = shard, admission, following
        self.taken: dict[int, TakenEarly] = {}

    def __repr__(self) -> str:
        return f"<Early documents={len(self.taken)}>"

    def arriving(self, lease: Lease, response: Response) -> None:
        """A part of a document has come."""
        if not self.can_take(lease) or lease.host.row.misled >= MISLED_MOST:
            return
        hrefs = header_hrefs(response)
        if hrefs and not is_nofollow((), response, self._following):
            self.take(lease, hrefs)
        if response.status == 200 and response.body:
            row = links_so_far(response, self._following)
            self.take(lease, self._shard.sifter.joined(row, lease.url).values())

    def can_take(self, lease: Lease) -> bool:
        """Would links of this document be taken while it arrives?"""
        return self._admission.can_take_early(lease)

    def leads_on(self, lease: Lease) -> bool:
        """Are links of this document followed at all?"""
        return self._admission.leads_on(lease)

    def take(self, lease: Lease, urls: Iterable[str]) -> None:
        """These URLs were seen in the document of the lease."""
        taken = self._taken(lease)
        fresh = [url for url in urls if url not in taken.urls]
        taken.urls.update(fresh)
        taken.new.extend(self._admission.take_early(lease, fresh))

    def take_table(self, lease: Lease, links: LinkRow, joined: Mapping[str, str]) -> None:
        """The table of the document of the lease says that it has these links."""
        self._taken(lease).new.extend(self._admission.take_table(lease, links, joined))

    def _taken(self, lease: Lease) -> TakenEarly:
        return self.taken.setdefault(id(lease), TakenEarly(set(), []))

    def ended(self, lease: Lease) -> TakenEarly | None:
        """The request of a lease has ended, one way or the other: what was taken for it is no longer held."""
        return self.taken.pop(id(lease), None)

    def compare(self, lease: Lease, taken: TakenEarly, joined: Mapping[str, str]) -> None:
        """The whole document is there: does it have all that was taken early?"""
        if not taken.urls <= set(joined.values()):
            lease.host.count(misled=1)
            if lease.host.row.misled == MISLED_MOST:
                self._shard.events.write("not-read-early", host=lease.host.origin, url=lease.url)


def links_so_far(response: Response, following: LinkRules) -> LinkRow:
    """The links in what has come of a document, all of which the whole document will have."""
    body, content_type = decoded_body(response, CAP_BYTES), response.headers.get("content-type")
    if len(body) >= CAP_BYTES or identify_media(content_type, body[:SNIFF_BYTES]).kind not in (
        MediaKind.HTML,
        MediaKind.XHTML,
    ):
        return LinkRow(())
    start = body.lower()
    if not any(end in start for end in _HEAD_ENDS):
        return LinkRow(())
    found = analyse_page(body, url=response.url, content_type=content_type, links_only=True)
    if is_nofollow(found.robots, response, following):
        return LinkRow(())
    row = followed(found, following)
    return LinkRow(tuple([href for href in row.hrefs if href.isascii()]), row.base_href)


def is_nofollow(robots: tuple[str, ...], response: Response, following: LinkRules) -> bool:
    """Does a page, or its headers, forbid to follow its links?"""
    return following.obeys_nofollow and page_directives(robots, response, following.agent).nofollow
