"""What sitemaps and feeds say of changes: a page that is said to have changed is looked at sooner, where that is true.

Only dates later than the last look count. Whether a host is to be believed is learned: of the pages that it said had
changed, how many had? A host that is not known yet gets a few looks on trust; one that dates everything today loses it.
Pages with volatile parts are left out: their date changes with a counter. Nothing here adds visits to the budget, it
only says which come first. Called when a sitemap or a feed has been read, and with every visit.
"""

from collections.abc import Iterable, Sequence

from lycosa.engine.pages import unpack_page
from lycosa.engine.shard import Shard
from lycosa.engine.visit_rows import VisitRow, due_key, unpack_visit
from lycosa.frontier.hosts import Host
from lycosa.frontier.lease import Lease
from lycosa.frontier.rows import HostRow
from lycosa.records import Family
from lycosa.web import sitemap
from lycosa.web.media import Kind
from lycosa.web.page import Page
from lycosa.web.sitemap import SitemapEntry
from lycosa.web.steps import Steps, finish
from lycosa.web.url import parse, url_key

TRIED_FIRST = 5  # pages of a host that are looked at on trust
LEAST_TRUE = 0.5  # of what a host said: then it is believed
READ = 500  # rows read at a time


class Hints:
    """The hints of a shard. `is_off` where everything is looked at anyway."""

    def __init__(self, shard: Shard, *, is_off: bool = False) -> None:
        self._shard, self._state, self.is_off = shard, shard.collection.state, is_off

    def heard(self, host: Host, entries: Sequence[SitemapEntry]) -> Steps[int]:
        """A sitemap or a feed of `host` was read; returns how many pages are looked at sooner for it."""
        left = _trust(host.row)
        if self.is_off or not left:
            return 0
        dated: dict[bytes, float] = {}
        for start in range(0, len(entries), READ):
            for entry in entries[start : start + READ]:
                if entry.lastmod_s is not None and (url := parse(entry.url)) and url.host == host.host:
                    dated[url_key(url.href)] = entry.lastmod_s
            yield
        sooner, keys = 0, sorted(dated)
        for start in range(0, len(keys), READ):
            some = keys[start : start + READ]
            visits = self._state.get_many(Family.VISIT, some)
            claimed = [
                (key, visit, dated[key])
                for key, packed in zip(some, visits, strict=True)
                if packed and self._is_waiting(visit := unpack_visit(packed)) and dated[key] > visit.hint_s
            ]
            sooner += self._pull(claimed, left - sooner)
            if sooner >= left:
                break
            yield
        self._shard.frontier.shelf.touch(host)
        return sooner

    def heard_feed(self, lease: Lease, page: Page, body: bytes) -> None:
        """A page was read; if it is a feed, it says something of others."""
        if page.media.kind is Kind.FEED:
            finish(self.heard(lease.host, sitemap.read(body, lease.url).entries))

    def _is_waiting(self, visit: VisitRow) -> bool:
        """Is the page to be looked at later, and has it no part that changes all the time?"""
        return visit.due_s > self._shard.now_unix() and not any(part.is_volatile for part in visit.masks.parts)

    def _pull(self, claimed: Iterable[tuple[bytes, VisitRow, float]], most: int) -> int:
        now, batch, sooner = self._shard.now_unix(), self._shard.committer.batch, 0
        for key, visit, lastmod_s in claimed:
            if sooner >= most:
                break
            seen_s = visit.checked_s or self._fetched_s(key)
            if not seen_s < lastmod_s <= now:
                continue
            batch.delete(Family.DUE, due_key(key, visit.due_s))
            visit.hint_s, visit.due_s = lastmod_s, now
            batch.put(Family.DUE, due_key(key, now), b"")
            batch.put(Family.VISIT, key, visit.pack())
            sooner += 1
        return sooner

    def _fetched_s(self, key: bytes) -> float:
        packed = self._state.get(Family.PAGE, key)
        return unpack_page(packed).fetched_s if packed else float("inf")

    @staticmethod
    def proved(host: Host, before: VisitRow, *, changed: bool) -> None:
        """A page was looked at: had its host said that it changed?"""
        if before.hint_s > before.checked_s:
            host.row.hints += 1
            host.row.hints_true += changed


def _trust(row: HostRow) -> int:
    """How many pages of a host are looked at sooner because it says so."""
    if row.hints < TRIED_FIRST:
        return TRIED_FIRST - row.hints
    return 1_000_000 if row.hints_true >= LEAST_TRUE * row.hints else 0
