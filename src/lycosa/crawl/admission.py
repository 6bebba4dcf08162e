"""From a page's links to the frontier: which links of a page are followed, how deep, and what speaks for them.

Only URLs that were not seen a moment ago are filtered and go to the frontier, which keeps each once. Where the policy
ranks URLs, `RankedAdmission` takes the place of `Admission`: every link counts for the URL it leads to. If the ranking
sees all links, the evidence for known URLs gathers here and goes to the frontier in batches, so that a link on every
page of a site costs one addition a page; what the ranking has learned is written now and then. Called by `crawl.pages`
and `recrawl` with every page that is read, by observers with links that are known before their page is.

`EarlyLinks` is such an observer: a slow or large document feeds the frontier before its last byte. What is taken early
is what the whole document would have given: the beginning of a document is parsed as the whole is, what is cut off at
its end counts for nothing, and addresses with other letters than ASCII wait for the encoding to be known. When the
document is there, the two are compared; a host whose documents keep saying something else in the end is not read early
any more. Where the policy ranks URLs nothing is taken early: a link is judged by its whole page.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from lycosa.crawl.committer import CommitParticipant
from lycosa.crawl.reading import LARGE_BYTES, decoded_body, followed_links, header_hrefs, page_directives
from lycosa.crawl.seams import FetchObserver, ReadPage, Shard
from lycosa.frontier import Lease, LinkSource, Origin, QueueEntry, Ranking, Reason, RequestKind
from lycosa.learning import TrapGuard
from lycosa.records import Family, Response
from lycosa.store import Batch
from lycosa.web import SNIFF_BYTES, FollowedLinks, LinkRules, MediaKind, Page, Steps, Url, analyse_page, identify_media

LINKS_PER_STEP = 250  # of a page that has very many
MAX_EVIDENCE = 4_000  # URLs whose evidence is gathered before it goes to the frontier
EVIDENCE_EVERY_S = 2.0
LEARNED_EVERY_S = 30.0
# Documents of a host that did not have what was taken early, after which it is not done there any more.
MAX_MISLED = 3
# What has come is not read early if it unpacks to more than this: such a document is waited for.
CAP_BYTES = LARGE_BYTES
# Links that are taken at a time, so that the event loop is not held; the others come with the next look or the page.
# And so many new URLs say what a page is worth.
MAX_TAKEN = 1_000
# A `<base>` changes every link, and stands before these.
_HEAD_ENDS = (b"<body", b"</head")


class Admission:
    """Follows the links of pages."""

    def __init__(self, shard: Shard, traps: TrapGuard) -> None:
        self._shard, self._frontier, self._traps = shard, shard.frontier, traps

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._frontier.policy.name}>"

    def follow(self, read: ReadPage) -> list[Url]:
        """Admits the links of a page that was read, one step deeper; returns the URLs that were new. Links that are
        ignored are counted once, not again when a page is revisited."""
        lease = read.lease
        counts = lease.kind is not RequestKind.REVISIT
        if not self.leads_on(lease):
            if counts:
                self._shard.counters.ignored(Reason.DEPTH, len(read.links))
            return []
        return self._follow(read, counts=counts)

    def follow_redirect(self, lease: Lease, entry: QueueEntry, target: Url, kind: RequestKind) -> None:
        """Admits where a redirect leads, at the same depth, with what spoke for the URL that leads there."""
        kept = self._shard.link_filter.sift([target.href])
        self._frontier.admit(
            kept,
            depth=entry.depth,
            kind=kind,
            hops=entry.hops + 1,
            now=self._shard.now(),
            origin=Origin.REDIRECT,
            credits=[self._frontier.credit(lease.url)] * len(kept),
        )

    def _follow(self, read: ReadPage, *, counts: bool) -> list[Url]:
        wanted = self._shard.link_filter.wanted_of(read.links.urls, counts=counts)
        return self._admit(read.lease, wanted) if wanted else []

    def _admit(self, lease: Lease, wanted: Sequence[Url]) -> list[Url]:
        kept = self._without_doubles(lease, wanted)
        return self._frontier.admit(kept, depth=lease.depth + 1, now=self._shard.now(), source=lease.host.host)

    def _without_doubles(self, lease: Lease, urls: Sequence[Url]) -> list[Url]:
        """Leaves out URLs that differ from known ones in idle parameters only."""
        kept = self._traps.without_doubles(lease.host, urls)
        if len(kept) < len(urls):
            self._shard.counters.ignored(Reason.PARAMETER, len(urls) - len(kept))
        return kept

    def leads_on(self, lease: Lease) -> bool:
        """Are links of this page followed at all, as deep as it is?"""
        limit = self._shard.settings.depth
        return limit is None or lease.depth < limit

    # links that are known before their page is

    def can_take_early(self, lease: Lease) -> bool:
        """May links be taken before their page is whole? Not where the page has a say in what they are worth."""
        return self.leads_on(lease)

    def take_early(self, lease: Lease, urls: Sequence[str]) -> list[Url]:
        """Admits links of a page that is still on its way; returns the URLs that were new."""
        wanted = self._shard.link_filter.wanted(urls, counts=lease.kind is not RequestKind.REVISIT)
        return self._admit(lease, wanted) if wanted else []

    def take_in_steps(self, lease: Lease, links: FollowedLinks) -> Steps[list[Url]]:
        """Admits the many links of a page before it is kept, some at a time; returns URLs that were new: the first
        ones, and the first one of each further host. It may take several commits: until the last the page is still
        queued, and after a crash it is fetched again."""
        new, hosts = list[Url](), set[str]()
        for some in links.url_parts(LINKS_PER_STEP):
            found = self.take_early(lease, some)
            if len(new) >= MAX_TAKEN:
                found = [url for url in found if url.host not in hosts]
            hosts.update(url.host for url in found)
            new += found
            self._shard.committer.count_outcomes(len(some))
            yield
        return new

    def take_table(self, lease: Lease, links: FollowedLinks) -> list[Url]:
        """Admits links that the table of a page names; returns the URLs that were new."""
        return self.take_early(lease, list(links.joined.values()))


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

    def take_table(self, lease: Lease, links: FollowedLinks) -> list[Url]:
        """The links count from now on; what the words of the page say in favour of them is heard when it comes."""
        if self._ranking.reads_words:
            return self.take_early(lease, list(links.joined.values()))
        return self._ranked(lease, links, None, frozenset(), counts=True)

    def _follow(self, read: ReadPage, *, counts: bool) -> list[Url]:
        return self._ranked(read.lease, read.links, read.page, read.taken, counts=counts)

    def _ranked(
        self,
        lease: Lease,
        links: FollowedLinks,
        page: Page | None,
        taken: frozenset[str],
        *,
        counts: bool,
    ) -> list[Url]:
        ranking, link_filter, joined = self._ranking, self._shard.link_filter, links.joined
        if taken and not ranking.reads_words:  # they have counted
            joined = {href: url for href, url in joined.items() if url not in taken}
            if not joined:
                return []
        fresh = link_filter.unseen(list(joined.values()))
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
        if len(evidence) >= MAX_EVIDENCE:
            self._tell()

    def _tell(self) -> None:
        evidence, self._evidence = self._evidence, {}
        self._told_at = self._shard.now()
        self._frontier.add_evidence(evidence, self._told_at)

    def before_commit(self, batch: Batch, *, is_last: bool) -> None:
        """What has gathered goes to the frontier, and what the ranking has learned into the batch, now and then."""
        now = self._shard.now()
        self._ranking.matured(self._shard.counters.totals.pages, self._frontier.counts.known)
        if self._evidence and now - self._told_at >= EVIDENCE_EVERY_S:
            self._tell()
        if is_last or now - self._learned_at >= LEARNED_EVERY_S:
            self._learned_at = now
            batch.put(Family.META, self._key, self._ranking.dump())


def _anchors(urls: Iterable[str], links: FollowedLinks, joined: Mapping[str, str]) -> list[str]:
    """The first words that a page links to each of the URLs with."""
    anchors = dict.fromkeys(urls, "")
    for href, words in zip(links.hrefs, links.anchors, strict=True):
        url = joined.get(href, "")
        if words and anchors.get(url) == "":
            anchors[url] = words
    return list(anchors.values())


class TakenEarly(NamedTuple):
    """What was taken early of one document: the URLs that were seen in it, and those among them that were new."""

    urls: set[str]
    new: list[Url]


class EarlyLinks(FetchObserver):
    """Observes fetches and takes links while their document arrives. Holds, for documents in flight, what was taken."""

    def __init__(self, shard: Shard, admission: Admission) -> None:
        self._shard, self._admission, self._rules = shard, admission, shard.reader.rules
        self._taken: dict[int, TakenEarly] = {}  # by ticket

    def __repr__(self) -> str:
        return f"<EarlyLinks documents={len(self._taken)}>"

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
        missing = set(taken.urls)
        for some in page.links.url_parts(MAX_TAKEN):
            missing.difference_update(some)
        if missing:
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
    found = analyse_page(body, url=response.url, content_type=content_type)
    if is_nofollow(found.robots, response, rules):
        return []
    joined = followed_links(found, rules, url).joined
    return [target for href, target in joined.items() if href.isascii()]


def is_nofollow(robots: tuple[str, ...], response: Response, rules: LinkRules) -> bool:
    """Does a page, or its headers, forbid to follow its links?"""
    return rules.obeys_nofollow and page_directives(robots, response, rules.agent).nofollow
