"""Links before their document is whole, from its headers and from what has arrived of it: an observer of fetches.

A slow or large document feeds the frontier before its last byte. What is taken early is what the whole document would
have given: the beginning of a document is parsed as the whole is, what is cut off at its end counts for nothing, and
addresses with other letters than ASCII wait for the encoding to be known. When the document is there, the two are
compared; a host whose documents keep saying something else in the end is not read early any more.
Where the policy ranks URLs nothing is taken early: a link is judged by its whole page.
Memory: the links of documents in flight.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from lycosa.crawl.admission import Admission
from lycosa.crawl.reading import LARGE_BYTES, LinkRules, decoded_body, followed_links, header_hrefs, page_directives
from lycosa.crawl.seams import ReadPage
from lycosa.crawl.shard import Shard
from lycosa.frontier import Lease
from lycosa.records import Response
from lycosa.web import SNIFF_BYTES, MediaKind, Url, analyse_page, identify_media

# Documents of a host that did not have what was taken early, after which it is not done there any more.
MAX_MISLED = 3
# What has come is not read early if it unpacks to more than this: such a document is waited for.
CAP_BYTES = LARGE_BYTES
# Links that are taken at a time, so that the event loop is not held; the others come with the next look or the page.
MAX_TAKEN = 1_000
# A `<base>` changes every link, and stands before these.
_HEAD_ENDS = (b"<body", b"</head")


class TakenEarly(NamedTuple):
    """What was taken early of one document: the URLs that were seen in it, and those among them that were new."""

    urls: set[str]
    new: list[Url]


class EarlyLinks:
    """Observes fetches and takes links while their document arrives. Holds, for documents in flight, what was taken."""

    def __init__(self, shard: Shard, admission: Admission) -> None:
        self._shard, self._admission, self._rules = shard, admission, shard.reader.rules
        self._taken: dict[int, TakenEarly] = {}  # by ticket

    def __repr__(self) -> str:
        return f"<EarlyLinks documents={len(self._taken)}>"

    def started(self, lease: Lease) -> Lease:
        return lease

    def idle(self) -> Iterator[Lease]:
        return iter(())

    def arriving(self, lease: Lease, response: Response) -> None:
        if lease.host.row.misled >= MAX_MISLED or not self._admission.can_take_early(lease):
            return
        hrefs = header_hrefs(response)
        if hrefs and not is_nofollow((), response, self._rules):
            self._take(lease, hrefs)
        if response.status == 200 and response.body:
            self._take(lease, links_so_far(response, self._rules, lease.url))

    def _take(self, lease: Lease, urls: Iterable[str]) -> None:
        taken = self._taken.setdefault(lease.ticket, TakenEarly(set(), []))
        fresh = [url for url in urls if url not in taken.urls][:MAX_TAKEN]
        taken.urls.update(fresh)
        taken.new.extend(self._admission.take_early(lease, fresh))

    def ended(self, lease: Lease, response: Response, page: ReadPage | None) -> None:
        """What was taken counts with the page; a page that lacks some of it in the end counts against its host."""
        taken = self._taken.pop(lease.ticket, None)
        if taken is None or page is None:
            return
        page.new += taken.new
        if not taken.urls <= set(page.joined.values()):
            lease.host.count(misled=1)
            if lease.host.row.misled == MAX_MISLED:
                self._shard.events.write("not-read-early", host=lease.host.origin, url=lease.url)


def links_so_far(response: Response, rules: LinkRules, url: str) -> list[str]:
    """The URLs that what has come of a document links to, all of which the whole document will link to."""
    body, content_type = decoded_body(response, CAP_BYTES), response.headers.get("content-type")
    if len(body) >= CAP_BYTES or identify_media(content_type, body[:SNIFF_BYTES]).kind not in (
        MediaKind.HTML,
        MediaKind.XHTML,
    ):
        return []
    start = body.lower()
    if not any(end in start for end in _HEAD_ENDS):
        return []
    found = analyse_page(body, url=response.url, content_type=content_type, links_only=True)
    if is_nofollow(found.robots, response, rules):
        return []
    _, joined = followed_links(found, rules, url)
    return [target for href, target in joined.items() if href.isascii()]


def is_nofollow(robots: tuple[str, ...], response: Response, rules: LinkRules) -> bool:
    """Does a page, or its headers, forbid to follow its links?"""
    return rules.obeys_nofollow and page_directives(robots, response, rules.agent).nofollow
