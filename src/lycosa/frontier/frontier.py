"""The frontier decides which URL is fetched next, knows every URL once, and keeps every host's politeness.

    in            admit (new URLs) · add_evidence (more links to known ones) · requeue · revisit · claim
    leasing       next → Lease · additional, in_place_of (a table of links with its page)
    outcomes      finish · retry · rerank · keep_as_next · return_to_queue: what became of the URL
                  release: the request's slots are free again
    host_control  set_robots, robots_failed · want · make_wait · give_up · on_resolved
    commit        load · before_commit · on_committed · move_hosts

A URL is queued (a row in `queue`), leased (in memory; the row stays), and then done, failed or dropped (a row in `url`,
with the reason). Only `outcomes.finish`, `outcomes.retry` and a drop take it out of its queue, in the same batch as its
outcome, so that a crash loses nothing. Time is an argument: `now` is monotonic, `now_unix` the wall clock. What is
written down is in `frontier.queues`, whose turn it is in `frontier.scheduler`, which of its URLs goes in
`frontier.lease`, which hosts are in memory in `frontier.host_cache`.
"""

from collections.abc import Callable, Iterable, Mapping
from itertools import repeat

import msgspec

from lycosa.frontier.forwarding import UrlForwarder, forward_evidence, forward_foreign
from lycosa.frontier.host_cache import MEMORY_LIMITS, HostCache, MemoryLimits
from lycosa.frontier.hosts import Host, HostJob, HostPlace
from lycosa.frontier.lease import Lease, LeaseOutcomes, Leasing, path_of
from lycosa.frontier.policy import BREADTH, Policy
from lycosa.frontier.politeness import Politeness, ProcessStart
from lycosa.frontier.queues import Queues
from lycosa.frontier.rows import (
    KEY_END,
    HostRow,
    Origin,
    Reason,
    RequestKind,
    Rows,
    UrlCounts,
    UrlState,
    Writes,
)
from lycosa.frontier.scheduler import FetchChecks, FrontierHook, HostScheduler
from lycosa.records import Mapped
from lycosa.web import BUCKET_BYTES, Robots, Url, url_key


class FrontierStats(msgspec.Struct, frozen=True):
    """How many URLs and hosts there are; hosts with work are `active`, between two requests (`waiting`), or `parked`
    after a failure."""

    known: int
    queued: int
    hosts: int
    active: int
    waiting: int
    parked: int
    revisiting: int = 0
    requisites: int = 0


class Frontier:
    """The frontier of one shard.

    `locate` returns a host's address, or None when it has to be resolved first. `forwarder` takes URLs that belong to
    other shards. `counts` are the collection's so far. With `only_due` the frontier leases nothing but revisits and
    URLs that wait for a time. What `is_forgotten` is never admitted, whoever names it. Other rooms read `counts`,
    `scheduler` and `hosts`, but do not change them.
    """

    def __init__(
        self,
        rows: Rows,
        batch: Writes,
        politeness: Politeness,
        start: ProcessStart,
        *,
        locate: Callable[[Host], Mapped | None],
        policy: Policy = BREADTH,
        forwarder: UrlForwarder | None = None,
        counts: UrlCounts | None = None,
        only_due: bool = False,
        is_forgotten: Callable[[Url], bool] | None = None,
        memory: MemoryLimits = MEMORY_LIMITS,
    ) -> None:
        self.politeness, self.policy, self.only_due = politeness, policy, only_due
        self._batch, self._forwarder = batch, forwarder
        self.counts = counts = counts or UrlCounts()
        self._checks = FetchChecks(politeness)
        self.scheduler = HostScheduler(policy, self._checks, restarted_at=start.now if start.is_restart else None)
        self._cache = HostCache(
            rows,
            self.scheduler,
            start,
            politeness,
            counts,
            memory,
            alternates_direction=policy.walk.alternates_direction,
            only_due=only_due,
        )
        self.hosts: Mapping[bytes, Host] = self._cache.hosts
        self._queues = Queues(rows, batch, policy, self.hosts, counts, memory)
        self.rows_of, self.credit = self._queues.rows_of, self._queues.credit
        self.leasing = Leasing(
            self.scheduler, self._queues, self._checks, politeness, locate=locate, head_reader=policy.head_reader
        )
        self.outcomes = LeaseOutcomes(
            self.scheduler, self._queues, self._checks, counts_links=policy.link_counter is not None
        )
        self.host_control = HostControl(self.scheduler, self._queues, self._checks, politeness, host_of=self._host)
        self._is_forgotten = is_forgotten

    def __repr__(self) -> str:
        return f"<Frontier {self.policy.name} known={self.counts.known} queued={self.counts.queued} {self.scheduler!r}>"

    def stats(self) -> FrontierStats:
        places, counts = self.scheduler.places, self.counts
        resting = places[HostPlace.IDLE] + places[HostPlace.PARKED] + places[HostPlace.WAITING]
        return FrontierStats(
            counts.known,
            counts.queued,
            counts.hosts,
            places.total() - resting,
            places[HostPlace.WAITING],
            places[HostPlace.PARKED],
            counts.revisiting,
            counts.requisites,
        )

    def owns(self, host: str) -> bool:
        """Return whether a host belongs to this shard."""
        return self._forwarder is None or self._forwarder.owns(host)

    def add_hook(self, hook: FrontierHook) -> None:
        """Give `hook` a say in which URLs are fetched; adding it twice does no harm."""
        if hook not in self._checks.hooks:
            self._checks.hooks.append(hook)

    # taking URLs in

    def admit(
        self,
        urls: Iterable[Url],
        *,
        depth: int,
        kind: RequestKind = RequestKind.PAGE,
        hops: int = 0,
        now: float,
        origin: Origin = Origin.LINK,
        credits: Iterable[float] | None = None,
        source: str = "",
        now_unix: float = 0.0,
    ) -> list[Url]:
        """Enqueue those of the URLs that are not known yet, and return them. A seed revives a host that was given up.

        `credits` is the evidence for each URL, where the policy ranks; it also counts for URLs that are known already.
        `source` is the host of the page that links to them, or the URL of the page that needs them. URLs of other
        shards are forwarded, and returned if they have not been forwarded lately. Of a REQUISITE `now_unix` is asked
        for.
        """
        sent: list[Url] = []
        if self._is_forgotten is not None:
            urls, credits = self._remembered(self._is_forgotten, urls, credits)
        if self._forwarder is not None:
            urls, credits, sent = forward_foreign(
                self._forwarder, urls, credits, depth=depth, kind=kind, hops=hops, origin=origin, source=source
            )
        queues, is_seed = self._queues, origin is Origin.SEED
        offered = list(zip(urls, repeat(0.0) if credits is None else credits, strict=credits is not None))
        asked = [
            (url, key, credit) for url, credit in offered if (key := url_key(url.href)) not in queues.pending or is_seed
        ]
        touched: dict[bytes, Host] = {}
        new: list[Url] = []
        # One read of the state for all links of a page, not one for each: this is the most frequent read of a crawl.
        for (url, key, credit), row in zip(asked, queues.committed([key for _, key, _ in asked]), strict=True):
            if row is not None and not is_seed:
                continue
            host = self._host(key, now)
            if is_seed and host.row.gave_up:  # whoever names it again may know that it is back
                queues.revive(host)
                touched[host.key] = host
            if row is not None or key in queues.pending:
                continue
            if kind is RequestKind.REQUISITE:
                queues.enqueue_requisite(host, key, url.path, depth=depth, hops=hops, now=now, now_unix=now_unix)
            else:
                queues.enqueue(host, key, url.path, credit, kind=kind, depth=depth, hops=hops, origin=origin)
            touched[host.key] = host
            new.append(url)
        self.counts.known += len(new)
        # Once a host, not once a URL: most links of a page go to a few hosts.
        for host in touched.values():
            self.scheduler.on_more_work(host, now)
        if credits is not None and len(new) < len(offered):
            taken = {url.href for url in new}
            self.add_evidence({url.href: credit for url, credit in offered if credit and url.href not in taken}, now)
        return new + sent if sent else new

    @staticmethod
    def _remembered(
        is_forgotten: Callable[[Url], bool], urls: Iterable[Url], credits: Iterable[float] | None
    ) -> tuple[list[Url], list[float] | None]:
        """The URLs, with their credits, that were not forgotten."""
        offered = list(zip(urls, repeat(0.0) if credits is None else credits, strict=credits is not None))
        kept = [(url, credit) for url, credit in offered if not is_forgotten(url)]
        return [url for url, _ in kept], None if credits is None else [credit for _, credit in kept]

    def add_evidence(self, evidence: Mapping[str, float], now: float) -> None:
        """Add to the credit of URLs, by URL; those that are queued may move to another band."""
        if self.policy.ranking is None or not evidence:
            return
        if self._forwarder is not None:
            evidence = forward_evidence(self._forwarder, evidence)
        keys = [url_key(href) for href in evidence]
        touched: dict[bytes, Host] = {}
        for key, more, row in zip(keys, evidence.values(), self.rows_of(keys), strict=True):
            if row is not None and row.state is UrlState.QUEUED and row.position is not None:
                host = self._host(key, now)
                if self._queues.add_evidence(host, key, row, more):
                    touched[host.key] = host
        for host in touched.values():
            self.scheduler.on_more_work(host, now)

    def requeue(
        self,
        href: str,
        depth: int,
        *,
        kind: RequestKind,
        now: float,
        now_unix: float = 0.0,
        hops: int = 0,
        pages: int = 0,
        failed: int = 0,
        dropped: Reason | None = None,
        origin: Origin = Origin.LOST,
        links: int | None = None,
    ) -> None:
        """Enqueue a URL again that was done but whose result is lost (`pages` of its host go with it), that had failed
        (`failed` failures go with it), or that was `dropped`. `links` is the number of links on its page, if known. Of
        a REQUISITE `now_unix` is asked for."""
        key = url_key(href)
        host = self._host(key, now)
        if pages or failed:
            host.count(pages=-pages, failed=-failed)
        if dropped is not None:
            self.counts.dropped[dropped] -= 1
        path, queues = path_of(href), self._queues
        if kind is RequestKind.REQUISITE:
            queues.enqueue_requisite(host, key, path, depth=depth, hops=hops, now=now, now_unix=now_unix)
        else:
            queues.enqueue(host, key, path, 0.0, kind=kind, depth=depth, hops=hops, origin=origin, links=links)
        self.scheduler.on_more_work(host, now)

    def revisit(self, href: str, depth: int, origin: Origin, *, now: float, now_unix: float) -> None:
        """Enqueue a finished URL for another visit, before everything else of its host; its state stays as it is."""
        host = self._host(url_key(href), now)
        if host.row.gave_up:
            self._queues.revive(host)
        self._queues.enqueue_revisit(host, path_of(href), depth, origin, now=now, now_unix=now_unix)
        self.scheduler.on_more_work(host, now)

    def claim(self, url: Url, kind: RequestKind, *, depth: int, origin: Origin, now: float) -> Lease:
        """Lease a URL whose answer is there already, without asking anybody: a PAGE that is not known yet, or a REVISIT
        of one that is finished. It ends as every lease does."""
        host = self._host(url_key(url.href), now)
        if host.row.gave_up:
            self._queues.revive(host)
        self.counts.known += kind is RequestKind.PAGE
        entry = self._queues.claim(host, url.path, kind, depth, origin)
        host.leased.add(entry.key)
        return Lease(host, kind, url.href, "", entry, is_claimed=True)

    def _host(self, key: bytes, now: float) -> Host:
        """Return the host of a URL, and bring it into memory if it is not there."""
        host, is_new = self._cache.get(key[: key.index(KEY_END, BUCKET_BYTES)])
        if is_new:  # it may have work from before
            if host.row.gave_up and self._cache.tries_again:
                self._queues.revive(host)
            self.scheduler.place(host, now)
        return host

    # giving URLs out

    def hold_pages(self, is_held: bool, now: float) -> None:
        """Lease nothing but what pages that are there need to be shown, and what is due; or lease everything again."""
        if self._checks.holds_pages != is_held:
            self._checks.holds_pages = is_held
            movable = self._cache.set_only_due(is_held or self.only_due)
            for host in () if is_held else movable:  # one that has nothing to give is placed when its turn comes
                self.scheduler.place(host, now)

    @property
    def holds_pages(self) -> bool:
        """Return whether no pages are leased at the moment."""
        return self._checks.holds_pages

    # commits

    def load(self, now: float) -> None:
        """Bring the first hosts with work into memory; the others follow as there is room. If nothing is queued, look
        on for hosts that earlier runs gave up."""
        self._take_in(self._cache.rotate(), now)
        # A crawl with nothing queued would end before the rows of hosts given up are reached.
        while self.counts.queued <= 0 and self._cache.tries_again and self._cache.room > 0:
            self._take_in(self._cache.rotate(), now)

    def _take_in(self, hosts: Iterable[Host], now: float) -> None:
        """Place hosts that have come from disk."""
        # Those that an earlier run gave up are tried again, once a run: it may have been the network connection, not
        # the host.
        for host in hosts:
            if host.row.gave_up:
                self._queues.revive(host)
            self.scheduler.place(host, now)

    def before_commit(self) -> None:
        """Put the rows of all hosts that changed into the batch."""
        self._cache.write(self._batch)

    def on_committed(self, batch: Writes, now: float) -> None:
        """The batch is on disk; `batch` is the next one to write into."""
        self._batch = batch
        self._queues.on_committed(batch)
        self._take_in(self._cache.on_committed(now), now)
        self.scheduler.review_deferred(now, self.hosts)

    def move_hosts(
        self, lost: Iterable[tuple[bytes, HostRow]], came: Iterable[HostRow], *, now: float, now_unix: float
    ) -> None:
        """Count hosts out that went to another shard and in that came from one, between two commits; nothing may be in
        flight at those that go. `load` then brings the others into memory."""
        for key, row in lost:
            self.counts.move_host(row, -1)
            self._cache.remove(key)
        for row in came:
            self.counts.move_host(row, 1)
        # The shard that had them may have asked them a moment ago: each waits one full delay, as after a restart.
        self._cache.begin_anew(ProcessStart(now, now_unix, is_restart=True))
        self.scheduler.begin_anew(now)


class HostControl:
    """What the crawl learns of a host is told here: its rules, that it waits or is given up, what else it is asked for.
    Each of them may change when the host's turn comes, so that it is placed anew. `host_of` brings the host of a key
    into memory."""

    def __init__(
        self,
        scheduler: HostScheduler,
        queues: Queues,
        checks: FetchChecks,
        politeness: Politeness,
        *,
        host_of: Callable[[bytes, float], Host],
    ) -> None:
        self._scheduler, self._queues, self._checks, self._politeness = scheduler, queues, checks, politeness
        self._host_of = host_of

    def __repr__(self) -> str:
        return f"<HostControl {self._scheduler!r}>"

    def make_wait(self, host: Host, now: float, *, wait_s: float, reason: str, now_unix: float) -> None:
        """Let the whole host wait, for something that happened outside of its own requests."""
        host.wait(now, wait_s, reason, now_unix)
        # From the other places it is placed again by what it waits for: a request, a name, a slot, its rules.
        if host.place in (HostPlace.READY, HostPlace.WAITING, HostPlace.IDLE):
            self._scheduler.place(host, now)

    def give_up(self, host: Host, reason: str, now: float) -> None:
        """Fetch nothing more from this host; its queue stays on disk, in case it is wanted again."""
        if not host.row.gave_up:
            self._queues.give_up(host, reason)
            for hook in self._checks.hooks:
                hook.gave_up(host)
            self._scheduler.place(host, now)  # it may still have to be asked for another host's robots.txt

    def on_resolved(self, name: str, now: float) -> None:
        """A name has been resolved: the hosts that waited for it go on."""
        for host in self._scheduler.named(name):
            self._scheduler.place(host, now)

    def want(self, job: HostJob, now: float) -> None:
        """Fetch the URL of a job before anything else of its host."""
        other = self._host_of(url_key(job.url), now)
        # In the turn of the host that has it, with its slots and its delay: a redirect is no way round politeness.
        other.jobs.append(job)
        if other.place in (HostPlace.IDLE, HostPlace.WAITING, HostPlace.PARKED, HostPlace.ROBOTS):
            self._scheduler.place(other, now)

    def set_robots(self, host: Host, robots: Robots, *, until_unix: float, now: float) -> None:
        """Set the host's rules: it may go on."""
        host.row.robots, host.row.robots_until, host.row.robots_tries = robots, until_unix, 0
        host.row.tries = 0
        before, host.delay_s = host.delay_s, self._politeness.pause_s(robots)
        if host.delay_s > before:  # its Crawl-delay holds for the pause after robots.txt itself, too
            host.slots.later_by(host.delay_s - before)
        self._on_robots(host, now)

    def robots_failed(self, host: Host, now: float, *, counts: bool = True) -> None:
        """Record that the host's rules could not be fetched; they are tried again when the host may be asked again."""
        host.row.robots_tries += counts
        self._on_robots(host, now)

    def _on_robots(self, host: Host, now: float) -> None:
        host.awaits_robots = False
        host.touch()
        if host.place is HostPlace.ROBOTS:
            self._scheduler.place(host, now)
