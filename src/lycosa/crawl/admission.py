"""From a page's links to the frontier: new URLs with their credit, and evidence for known ones.

Only URLs that were not seen a moment ago go to the frontier and are filtered. If a ranking sees all links, the evidence
for known URLs gathers here and goes to the frontier in batches, so that a link on every page of a site costs one
addition a page. When depth, scope or a filter has changed since the run before, `readmit_links` goes once through the
stored links of all pages, because what was left out is not kept as a URL.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import islice

import msgspec
import xxhash

from lycosa.crawl.reading import decoded_body, read_page
from lycosa.crawl.shard import Shard
from lycosa.frontier import Host, Lease, LinkSource, Ranking, Reason, RequestKind, UrlRow, UrlState
from lycosa.learning import TrapGuard
from lycosa.records import Family, Response
from lycosa.settings import CrawlSettings
from lycosa.store import Batch, LinkRow, unpack_links, unpack_page
from lycosa.web import TOPIC_HEAD_BYTES, Analysers, Page, Url, filter_urls, split_url, url_from_key

EVIDENCE_MOST = 4_000  # URLs whose evidence is gathered before it goes to the frontier
EVIDENCE_EVERY_S = 2.0
LEARNED_EVERY_S = 30.0


class Admission:
    """Follows the links of pages. Holds the evidence that the frontier has not heard of yet."""

    def __init__(self, shard: Shard, traps: TrapGuard, analysers: Analysers | None) -> None:
        self._shard, self._frontier, self._traps, self._analysers = shard, shard.frontier, traps, analysers
        self._ranking = shard.frontier.policy.ranking
        self._evidence: dict[str, float] = {}
        self._told_at = self._learned_at = shard.now()
        if self._ranking is not None:
            self._key = f"policy:{self._ranking.name}".encode()
            if learned := shard.collection.state.get(Family.META, self._key):
                self._ranking.load(learned)

    def __repr__(self) -> str:
        return f"<Admission {self._frontier.policy.name} evidence={len(self._evidence)}>"

    def follow(
        self,
        lease: Lease,
        links: LinkRow,
        joined: Mapping[str, str],
        page: Page | None,
        told: frozenset[str] = frozenset(),
    ) -> list[Url]:
        """A page was fetched: its links are taken in, one step deeper; returns the URLs that were new. `told` are those
        that its table has named before."""
        depth = lease.depth
        if not self.leads_on(lease):
            self._shard.counters.totals.ignored[Reason.DEPTH] += len(links.hrefs)
            return []
        if self._ranking is not None:
            return self._follow_ranked(self._ranking, lease, links, joined, page, told)
        wanted = self._shard.sifter.wanted(joined.values())
        if not wanted:
            return []
        kept = self._without_doubles(lease.host, wanted)
        return self._frontier.admit(kept, depth=depth + 1, now=self._shard.now(), source=lease.host.host)

    def _without_doubles(self, host: Host, urls: Sequence[Url]) -> list[Url]:
        """Leaves out URLs that differ from known ones in idle parameters only."""
        kept = self._traps.without_doubles(host, urls)
        self._shard.counters.totals.ignored[Reason.PARAMETER] += len(urls) - len(kept)
        return kept

    def can_take_early(self, lease: Lease) -> bool:
        """May links be taken before their page is whole? Not where the page has a say in what they are worth."""
        return self._ranking is None and self.leads_on(lease)

    def leads_on(self, lease: Lease) -> bool:
        """Are links of this page followed at all, as deep as it is?"""
        limit = self._shard.settings.depth
        return limit is None or lease.depth < limit

    def take_early(self, lease: Lease, urls: Sequence[str]) -> list[Url]:
        """Links of a page that is still on its way; returns the URLs that were new."""
        wanted = self._shard.sifter.wanted(urls)
        kept = self._without_doubles(lease.host, wanted) if wanted else []
        if not kept:
            return []
        return self._frontier.admit(kept, depth=lease.depth + 1, now=self._shard.now(), source=lease.host.host)

    def take_table(self, lease: Lease, links: LinkRow, joined: Mapping[str, str]) -> list[Url]:
        """Links that the table of a page names. They count from now on; what the words of the page say in favour of
        them is heard when it comes."""
        if self._ranking is None or self._ranking.reads_words:
            return self.take_early(lease, list(joined.values()))
        return self._follow_ranked(self._ranking, lease, links, joined, None)

    def _follow_ranked(
        self,
        ranking: Ranking,
        lease: Lease,
        links: LinkRow,
        joined: Mapping[str, str],
        page: Page | None,
        told: frozenset[str] = frozenset(),
    ) -> list[Url]:
        sifter = self._shard.sifter
        if told and not ranking.reads_words:  # they have counted
            joined = {href: url for href, url in joined.items() if url not in told}
            if not joined:
                return []
        fresh = sifter.unseen(joined.values())
        kept = self._without_doubles(lease.host, sifter.sift(fresh)) if fresh else []
        urls = list(dict.fromkeys(joined.values())) if ranking.sees_all else [url.href for url in kept]
        if told and not ranking.sees_all:
            urls = list(dict.fromkeys([*urls, *told.intersection(joined.values())]))
        credit = lease.credit if lease.credit is not None else partial(self._frontier.credit, lease.url)
        source, anchors = LinkSource(lease.url, lease.depth, credit), list[str]()
        if ranking.reads_words:
            source.title, source.text = (page.title or "", page.text) if page else ("", "")
            anchors = _anchors(urls, links, joined) if urls else []
        worth = ranking.fetched(source, urls, anchors)
        credits = dict(zip(urls, worth, strict=True))
        if ranking.sees_all:
            self._gather(ranking, credits, set(fresh))
        elif told:
            self._frontier.add_evidence({url: credits[url] for url in told if credits.get(url)}, self._shard.now())
        if not kept:
            return []
        found = [credits[url.href] for url in kept]
        return self._frontier.admit(
            kept, depth=lease.depth + 1, now=self._shard.now(), credits=found, source=lease.host.host
        )

    def read_head(self, lease: Lease, response: Response) -> None:
        """The beginning of a page came, to judge it by before the rest is asked for."""
        reader, credit = self._frontier.policy.head_reader, self._frontier.credit(lease.url)
        assert reader is not None
        if response.status == 206:
            page = read_page(response, decoded_body(response, TOPIC_HEAD_BYTES), self._analysers)
            credit = reader.refine(credit, page.title or "", page.text)
        self._frontier.rerank(lease, credit)

    def _gather(self, ranking: Ranking, credits: Mapping[str, float], fresh: set[str]) -> None:
        evidence, combine = self._evidence, ranking.combine
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
        if self._ranking is None:
            return
        now, totals = self._shard.now(), self._shard.counters.totals
        self._ranking.matured(totals.pages, self._frontier.known)
        if self._evidence and now - self._told_at >= EVIDENCE_EVERY_S:
            self._tell()
        if is_last or now - self._learned_at >= LEARNED_EVERY_S:
            self._learned_at = now
            batch.put(Family.META, self._key, self._ranking.dump())


def _anchors(urls: Iterable[str], links: LinkRow, joined: Mapping[str, str]) -> list[str]:
    """The first words that a page links to each of the URLs with."""
    anchors = dict.fromkeys(urls, "")
    for href, words in zip(links.hrefs, links.anchors, strict=True):
        url = joined.get(href, "")
        if words and anchors.get(url) == "":
            anchors[url] = words
    return list(anchors.values())


JUDGED_BY_KEY = b"judged-by"
JUDGING_SETTINGS = (
    "seeds",
    "scope",
    "include",
    "exclude",
    "skip_extensions",
    "depth",
    "pages_per_host",
    "host_depth",
)
DROPPED_BY = {"pages_per_host": Reason.PAGES_PER_HOST, "host_depth": Reason.DEPTH}  # limits whose URLs are known
PAGES_AT_ONCE = 2_000


def readmit_links(shard: Shard, commit: Callable[[], None]) -> int:
    """Queues what the settings of now let in and those of before did not; returns the number of URLs."""
    state, judged_by = shard.collection.state, _judged_by(shard.settings)
    packed = state.get(Family.META, JUDGED_BY_KEY)
    before = msgspec.json.decode(packed, type=dict[str, object]) if packed else judged_by
    queued = 0
    changed = {name for name in JUDGING_SETTINGS if before.get(name) != judged_by[name]}
    if changed - DROPPED_BY.keys():
        queued += _readmit_stored_links(shard, commit)
    if changed & DROPPED_BY.keys():
        queued += _requeue_over_limit(shard, commit, {DROPPED_BY[name] for name in changed & DROPPED_BY.keys()})
    shard.committer.batch.put(Family.META, JUDGED_BY_KEY, msgspec.json.encode(judged_by))
    return queued


def _judged_by(settings: CrawlSettings) -> dict[str, object]:
    values = {name: getattr(settings, name) for name in JUDGING_SETTINGS}
    values["seeds"] = xxhash.xxh3_64_hexdigest("\n".join(settings.seeds).encode("utf-8", "surrogatepass"))
    return msgspec.json.decode(msgspec.json.encode(values), type=dict[str, object])


def _readmit_stored_links(shard: Shard, commit: Callable[[], None]) -> int:
    """The links of all pages that may lead deeper."""
    state, limit, queued = shard.collection.state, shard.settings.depth, 0
    rest = state.walk(Family.LINK)
    while some := list(islice(rest, PAGES_AT_ONCE)):
        rows = state.get_many(Family.PAGE, [key for key, _ in some])
        for (key, links), packed in zip(some, rows, strict=True):
            row = unpack_page(packed) if packed else None
            if row is None or (limit is not None and row.depth >= limit):
                continue
            url = url_from_key(key)
            joined = shard.sifter.joined(unpack_links(links), url)
            kept, _ = filter_urls(shard.sifter.unseen(joined.values()), shard.sifter.filters)
            source = split_url(url).host
            queued += len(shard.frontier.admit(kept, depth=row.depth + 1, now=shard.now(), source=source))
        commit()
    return queued


def _requeue_over_limit(shard: Shard, commit: Callable[[], None], reasons: set[Reason]) -> int:
    """URLs that were dropped because of a limit of their host; if they still are over it, they are dropped again."""
    queued = 0
    rest = shard.collection.state.walk(Family.URL)
    while some := list(islice(rest, PAGES_AT_ONCE)):
        for key, packed in some:
            row = UrlRow.unpack(packed)
            if row.state is UrlState.DROPPED and row.reason in reasons:
                reason, origin = row.reason, row.origin
                shard.frontier.requeue(
                    url_from_key(key), row.depth, kind=RequestKind.PAGE, origin=origin, dropped=reason, now=shard.now()
                )
                queued += 1
        commit()
    return queued
