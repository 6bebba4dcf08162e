"""Admission and head-only looks where the policy ranks URLs: what speaks for a link, and for a page by its beginning.

Every link counts for the URL it leads to. If a ranking sees all links, the evidence for known URLs gathers here and
goes to the frontier in batches, so that a link on every page of a site costs one addition a page. What the ranking has
learned is written now and then. A crawl without a ranking has nothing of this.
"""

from collections.abc import Iterable, Mapping
from functools import partial

from lycosa.crawl.admission import Admission
from lycosa.crawl.committer import CommitParticipant
from lycosa.crawl.pages import PageHandler
from lycosa.crawl.reading import decoded_body, read_page
from lycosa.crawl.seams import ReadPage
from lycosa.crawl.shard import Shard
from lycosa.frontier import HeadReader, Lease, LinkSource, Ranking
from lycosa.learning import TrapGuard
from lycosa.records import Family, Request, Response
from lycosa.store import Batch, LinkRow
from lycosa.web import TOPIC_HEAD_BYTES, Page, Url

EVIDENCE_MOST = 4_000  # URLs whose evidence is gathered before it goes to the frontier
EVIDENCE_EVERY_S = 2.0
LEARNED_EVERY_S = 30.0
HEAD_ONLY = frozenset({206, 416})  # a part of the page, or a page that is shorter than its part


class RankedAdmission(Admission, CommitParticipant):
    """Follows the links of pages for a ranking. Holds the evidence that the frontier has not heard of yet."""

    def __init__(self, shard: Shard, traps: TrapGuard, ranking: Ranking) -> None:
        super().__init__(shard, traps)
        self._ranking = ranking
        self._evidence: dict[str, float] = {}
        self._told_at = self._learned_at = shard.now()
        self._key = f"policy:{ranking.name}".encode()
        if learned := shard.collection.state.get(Family.META, self._key):
            ranking.load(learned)

    def can_take_early(self, lease: Lease) -> bool:
        return False

    def take_table(self, lease: Lease, links: LinkRow, joined: Mapping[str, str]) -> list[Url]:
        """The links count from now on; what the words of the page say in favour of them is heard when it comes."""
        if self._ranking.reads_words:
            return self.take_early(lease, list(joined.values()))
        return self._ranked(lease, links, joined, None, frozenset(), counts=True)

    def _follow(self, read: ReadPage, *, counts: bool) -> list[Url]:
        return self._ranked(read.lease, read.links, read.joined, read.page, read.taken, counts=counts)

    def _ranked(
        self,
        lease: Lease,
        links: LinkRow,
        joined: Mapping[str, str],
        page: Page | None,
        taken: frozenset[str],
        *,
        counts: bool,
    ) -> list[Url]:
        ranking, link_filter = self._ranking, self._shard.link_filter
        if taken and not ranking.reads_words:  # they have counted
            joined = {href: url for href, url in joined.items() if url not in taken}
            if not joined:
                return []
        fresh = link_filter.unseen(joined.values())
        kept = self._without_doubles(lease, link_filter.sift(fresh, counts=counts)) if fresh else []
        urls = list(dict.fromkeys(joined.values())) if ranking.sees_all else [url.href for url in kept]
        if taken and not ranking.sees_all:
            urls = list(dict.fromkeys([*urls, *taken.intersection(joined.values())]))
        credit = lease.credit if lease.credit is not None else partial(self._frontier.credit, lease.url)
        source, anchors = LinkSource(lease.url, lease.depth, credit), list[str]()
        if ranking.reads_words:
            source.title, source.text = (page.title or "", page.text) if page else ("", "")
            anchors = _anchors(urls, links, joined) if urls else []
        worth = ranking.fetched(source, urls, anchors)
        credits = dict(zip(urls, worth, strict=True))
        if ranking.sees_all:
            self._gather(credits, set(fresh))
        elif taken:
            self._frontier.add_evidence({url: credits[url] for url in taken if credits.get(url)}, self._shard.now())
        if not kept:
            return []
        found = [credits[url.href] for url in kept]
        return self._frontier.admit(
            kept, depth=lease.depth + 1, now=self._shard.now(), credits=found, source=lease.host.host
        )

    def _gather(self, credits: Mapping[str, float], fresh: set[str]) -> None:
        evidence, combine = self._evidence, self._ranking.combine
        for url, credit in credits.items():
            if credit and url not in fresh:
                evidence[url] = combine(evidence[url], credit) if url in evidence else credit
        if len(evidence) >= EVIDENCE_MOST:
            self._tell()

    def _tell(self) -> None:
        evidence, self._evidence = self._evidence, {}
        self._told_at = self._shard.now()
        self._frontier.add_evidence(evidence, self._told_at)

    def before_commit(self, batch: Batch, *, is_last: bool) -> None:
        """What has gathered goes to the frontier, and what the ranking has learned into the batch, now and then."""
        now = self._shard.now()
        self._ranking.matured(self._shard.counters.totals.pages, self._frontier.known)
        if self._evidence and now - self._told_at >= EVIDENCE_EVERY_S:
            self._tell()
        if is_last or now - self._learned_at >= LEARNED_EVERY_S:
            self._learned_at = now
            batch.put(Family.META, self._key, self._ranking.dump())


class HeadLooks:
    """Handles pages where a ranking looks at the beginning of a page before the rest is asked for."""

    def __init__(self, shard: Shard, pages: PageHandler, reader: HeadReader) -> None:
        self._frontier, self._pages, self._reader = shard.frontier, pages, reader
        self._fields = (
            *((name, value) for name, value in pages.requests.fields if name.lower() != "accept-encoding"),
            ("Accept-Encoding", "identity"),
            ("Range", f"bytes=0-{TOPIC_HEAD_BYTES - 1}"),
        )

    def request(self, lease: Lease) -> Request:
        if lease.is_head:
            return self._pages.requests.build(lease, fields=self._fields)
        return self._pages.request(lease)

    def handle(self, lease: Lease, request: Request | None, response: Response) -> ReadPage | None:
        if not lease.is_head or response.status not in HEAD_ONLY:  # it may send the whole page nevertheless
            return self._pages.handle(lease, request, response)
        if not self._pages.failures.handle(lease, request, response):
            self._judge(lease, response)
            self._pages.release(lease, response)
        return None

    def _judge(self, lease: Lease, response: Response) -> None:
        credit = self._frontier.credit(lease.url)
        if response.status == 206:
            page = read_page(response, decoded_body(response, TOPIC_HEAD_BYTES), self._pages.keeper.analysers)
            credit = self._reader.refine(credit, page.title or "", page.text)
        self._frontier.rerank(lease, credit)


def _anchors(urls: Iterable[str], links: LinkRow, joined: Mapping[str, str]) -> list[str]:
    """The first words that a page links to each of the URLs with."""
    anchors = dict.fromkeys(urls, "")
    for href, words in zip(links.hrefs, links.anchors, strict=True):
        url = joined.get(href, "")
        if words and anchors.get(url) == "":
            anchors[url] = words
    return list(anchors.values())
