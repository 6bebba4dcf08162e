"""From a page's links to the frontier: which links of a page are followed, and how deep.

Only URLs that were not seen a moment ago are filtered and go to the frontier, which keeps each once. `RankedAdmission`
(`crawl.ranking`) takes this class's place where the policy ranks URLs. Called by `crawl.pages` and `recrawl` with every
page that is read, by observers with links that are known before their page is.
"""

from collections.abc import Mapping, Sequence

from lycosa.crawl.seams import ReadPage
from lycosa.crawl.shard import Shard
from lycosa.frontier import Lease, Reason, RequestKind
from lycosa.learning import TrapGuard
from lycosa.store import LinkRow
from lycosa.web import Url


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
                self._shard.counters.ignored(Reason.DEPTH, len(read.links.hrefs))
            return []
        return self._follow(read, counts=counts)

    def _follow(self, read: ReadPage, *, counts: bool) -> list[Url]:
        wanted = self._shard.link_filter.wanted(read.joined.values(), counts=counts)
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
        wanted = self._shard.link_filter.wanted(urls)
        return self._admit(lease, wanted) if wanted else []

    def take_table(self, lease: Lease, links: LinkRow, joined: Mapping[str, str]) -> list[Url]:
        """Admits links that the table of a page names; returns the URLs that were new."""
        return self.take_early(lease, list(joined.values()))
